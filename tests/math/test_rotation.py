import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skycrane.math import rotation
from skycrane.math.components import Mat3, Quat, Vec3, put, safe_sqrt, take

RNG = np.random.default_rng(0)
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]


def random_quaternions(n):
    q = RNG.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def scipy_rotation(q):
    return Rotation.from_quat(np.asarray(rotation.scipy_order(q)))


def test_matrix_agrees_with_scipy_and_back():
    q = random_quaternions(500)
    R = rotation.to_matrix(q)
    np.testing.assert_allclose(R, scipy_rotation(q).as_matrix(), atol=1e-14)
    assert rotation.angle_between(rotation.from_matrix(R), q).max() < 1e-14


def test_half_turns_survive_the_matrix():
    for axis in np.eye(3):
        q = np.concatenate([[0.0], axis])
        assert rotation.angle_between(rotation.from_matrix(rotation.to_matrix(q)), q) < 1e-15


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_euler_sequences_round_trip_and_agree_with_scipy(sequence):
    q = random_quaternions(300)
    angles = np.asarray(rotation.to_euler(sequence, q))
    assert rotation.angle_between(rotation.from_euler(sequence, angles), q).max() < 1e-13
    np.testing.assert_allclose(np.exp(1j * angles), np.exp(1j * scipy_rotation(q).as_euler(sequence.upper())), atol=1e-12)


@pytest.mark.parametrize("sequence", ["xxz", "zy", "abc", "zzy"])
def test_unknown_sequences_are_refused(sequence):
    with pytest.raises(ValueError, match="Euler sequence"):
        rotation.from_euler(sequence, [0.0, 0.0, 0.0])


def test_roll_ramp_comes_back_as_a_roll_ramp():
    t = np.linspace(0, 10, 50)
    roll = np.radians(5.0 * t)
    q = rotation.from_euler("zyx", np.stack([0.3 + 0 * t, 0 * t - 0.2, roll], -1))
    np.testing.assert_allclose(np.gradient(rotation.to_euler("zyx", q)[:, 2], t), np.radians(5.0), rtol=1e-10)


def test_euler_rates_at_60_degrees_pitch():
    rates = rotation.euler_rates("zyx", [0.0, np.pi / 3, 0.0], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(rates, [2.0, 0.0, np.sqrt(3)], atol=1e-14)  # yaw, pitch, roll


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_euler_rates_against_finite_differences(sequence):
    q, w = random_quaternions(1)[0], RNG.normal(size=3)
    h = 1e-6
    step = lambda s: rotation.to_euler(sequence, rotation.multiply(q, rotation.exp(s * h * w)))  # noqa: E731
    numeric = (np.asarray(step(1)) - np.asarray(step(-1))) / (2 * h)
    np.testing.assert_allclose(rotation.euler_rates(sequence, rotation.to_euler(sequence, q), w), numeric, rtol=1e-6, atol=1e-7)


def test_exp_and_log_agree_with_scipy():
    q = random_quaternions(500)
    np.testing.assert_allclose(rotation.log(q), scipy_rotation(q).as_rotvec(), atol=1e-13)
    assert rotation.angle_between(rotation.exp(rotation.log(q)), q).max() < 1e-14


def test_gradients_at_the_identity_are_finite_and_right_also_inside_a_batch():
    np.testing.assert_allclose(jax.jacobian(rotation.exp)(jnp.zeros(3))[1:], 0.5 * np.eye(3))
    np.testing.assert_allclose(jax.jacobian(rotation.log)(jnp.array([1.0, 0, 0, 0]))[:, 1:], 2 * np.eye(3))
    batch = jnp.asarray(np.stack([np.zeros(3), [0.3, -0.2, 0.1]]))
    gradient = jax.grad(lambda v: jnp.sum(rotation.log(rotation.exp(v)) ** 2))(batch)
    np.testing.assert_allclose(gradient, 2 * batch, atol=1e-12)


def test_scaled_quaternion_is_the_same_rotation_with_the_same_pose_derivative():
    q, w = random_quaternions(1)[0], jnp.array([0.3, -1.0, 2.0])

    def pose_rate(q):
        rate = Quat.of(q).rate(Vec3.of(w)).array()
        return jax.jvp(rotation.to_matrix, (q,), (rate,))

    for a, b in zip(pose_rate(jnp.asarray(q)), pose_rate(1.1 * jnp.asarray(q)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-15)


def test_components_equal_array_arithmetic():
    a, b, M = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3, 3))
    A, B, C = Vec3.of(jnp.asarray(a)), Vec3.of(jnp.asarray(b)), Mat3.of(jnp.asarray(M))
    np.testing.assert_allclose(A.cross(B).array(), np.cross(a, b))
    np.testing.assert_allclose((Mat3.skew(A) @ B).array(), np.cross(a, b))
    np.testing.assert_allclose(A.dot(B), np.sum(a * b, -1))
    np.testing.assert_allclose((C @ A).array(), np.einsum("nij,nj->ni", M, a))
    np.testing.assert_allclose((C.T @ C).array(), np.einsum("nji,njk->nik", M, M))
    np.testing.assert_allclose((np.array(2.0) * A - B / 2).array(), 2 * a - b / 2)
    np.testing.assert_allclose(Mat3.skew(A).vee().array(), a)


def test_norms_have_zero_derivative_at_zero():
    zero = jnp.zeros(3)
    assert not jax.grad(lambda v: Vec3.of(v).norm())(zero).any()
    assert not jax.jacobian(lambda v: Vec3.of(v).unit().array())(zero).any()
    assert jax.grad(safe_sqrt)(0.0) == 0.0


@pytest.mark.parametrize("bodies", [(0,), (2,), (0, 1, 2, 3), (1, 2), (3, 1), (1, 1, 1), (2, 0, 2)])
def test_take_and_put_are_a_gather_and_its_transpose(bodies):
    x = jnp.asarray(RNG.normal(size=4))
    y = jnp.asarray(RNG.normal(size=len(bodies)))
    taken = take(x, bodies)
    wanted = np.asarray(x)[[bodies[0]]] if len(set(bodies)) == 1 else np.asarray(x)[list(bodies)]
    np.testing.assert_array_equal(taken, wanted)
    scattered = np.zeros(4)
    np.add.at(scattered, list(bodies), np.asarray(y))
    np.testing.assert_allclose(put(y, bodies, 4), scattered)


def test_roll_pitch_yaw_written_out_equals_the_general_product():
    angles = np.random.default_rng(7).uniform(-3, 3, (20, 3))
    np.testing.assert_allclose(rotation.from_roll_pitch_yaw(angles), rotation.from_euler("zyx", angles[:, ::-1]), atol=1e-14)
