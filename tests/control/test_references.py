"""References: derivatives that belong together, closed forms, and the shortest curves through points."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from skycrane.control.references import Circle, FigureEight, Hover
from skycrane.control.splines import Sampled, Waypoints

POINTS = np.array([[0.0, 0, 0], [2.0, 0, 1], [2.0, 2, 1.5], [-1.0, 1, 0.5]])
TIMES = np.array([0.5, 2.0, 3.0, 5.5])
TWO = np.array([[0.0, 0, 1], [5.0, -2, 3]])
RNG = np.random.default_rng(0)
SAMPLES = np.sort(RNG.uniform(0, 6, 40))

REFERENCES = {
    "hover": Hover.create(TWO, [0.3, -1.0]),
    "circle": Circle.create(TWO, [2.0, 1.0], [6.0, -4.0], phase=0.4, ramp=[2.0, 0.0], heading="forward", yaw=0.1),
    "circle inward": Circle.create(TWO, 2.0, 6.0, ramp=1.0, heading="inward"),
    "eight": FigureEight.create(TWO, 6.0, 3.0, [8.0, -5.0], ramp=1.5, heading="forward"),
    "eight fixed": FigureEight.create(TWO[0], 6.0, 3.0, 8.0, yaw=0.7),
    "jerk": Waypoints.create(POINTS, TIMES, yaw=[0.0, 0.5, 1.0, -1.0]),
    "snap": Waypoints.create(np.stack([POINTS, 2 * POINTS + 1]), TIMES, minimize="snap", yaw=[0.2, 0.4]),
    "sampled": Sampled.create(SAMPLES, RNG.normal(size=(40, 3)), yaw=RNG.normal(size=40)),
}


@functools.cache
def evaluate(name):
    return jax.jit(jax.vmap(REFERENCES[name]))


@pytest.mark.parametrize("name", REFERENCES)
def test_velocity_acceleration_and_turning_are_the_derivatives(name):
    t = np.array([0.7, 1.3, 2.6, 3.3, 4.7, 5.2])
    t = t[np.abs(t[:, None] - SAMPLES).min(1) > 1e-3] if name == "sampled" else t
    h = 1e-5
    at, ahead, behind = (evaluate(name)(jnp.asarray(x)) for x in (t, t + h, t - h))
    np.testing.assert_allclose(at.v_W, (ahead.p_W - behind.p_W) / (2 * h), atol=2e-7)
    np.testing.assert_allclose(at.a_W, (ahead.v_W - behind.v_W) / (2 * h), atol=2e-6)
    before, after = (Rotation.from_quat(np.roll(np.asarray(x.q_WB).reshape(-1, 4), -1, -1)) for x in (behind, ahead))
    np.testing.assert_allclose(at.w_B, ((before.inv() * after).as_rotvec() / (2 * h)).reshape(at.w_B.shape), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(at.q_WB, axis=-1), 1.0, atol=1e-12)


def test_a_circle_by_its_closed_form():
    target = evaluate("circle")(jnp.array([0.0, 2.0, 4.0]))
    # Vehicle 2: no ramp, backwards: phase 0.4 - 2 pi t / 4.
    phase = 0.4 - np.pi / 2 * np.array([0.0, 2.0, 4.0])
    np.testing.assert_allclose(target.p_W[:, 1], np.stack([5 + np.cos(phase), -2 + np.sin(phase), 3 + 0 * phase], -1), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(target.v_W[:, 1], axis=-1), np.pi / 2, rtol=1e-12)
    # Vehicle 1 starts at rest; after the ramp of two seconds it lags by one second of full speed.
    np.testing.assert_allclose(target.v_W[0, 0], 0.0, atol=1e-15)
    np.testing.assert_allclose(target.a_W[0, 0], 0.0, atol=1e-15)
    phase = 0.4 + 2 * np.pi / 6.0 * (4.0 - 1.0)
    np.testing.assert_allclose(target.p_W[2, 0], [2 * np.cos(phase), 2 * np.sin(phase), 1.0], atol=1e-12)


@pytest.mark.parametrize("name", ["circle", "eight"])
def test_a_forward_heading_is_along_the_velocity(name):
    target = evaluate(name)(jnp.linspace(0.5, 6.0, 12))
    nose = Rotation.from_quat(np.roll(np.asarray(target.q_WB).reshape(-1, 4), -1, -1)).apply([1.0, 0, 0]).reshape(12, 2, 3)
    v = np.asarray(target.v_W)
    turn = 0.1 if name == "circle" else 0.0  # its added yaw
    cosine = np.sum(nose * v, -1) / np.linalg.norm(v, axis=-1)
    np.testing.assert_allclose(cosine, np.cos(turn), atol=1e-9)


def test_an_inward_heading_looks_at_the_center():
    target = evaluate("circle inward")(jnp.linspace(0.0, 6.0, 6))
    nose = Rotation.from_quat(np.roll(np.asarray(target.q_WB).reshape(-1, 4), -1, -1)).apply([1.0, 0, 0]).reshape(6, 2, 3)
    np.testing.assert_allclose(np.asarray(target.p_W) + 2.0 * nose, np.broadcast_to(TWO, (6, 2, 3)), atol=1e-9)


@pytest.mark.parametrize("name", ["jerk", "snap"])
def test_waypoints_pass_their_points_and_rest_at_the_ends(name):
    at = evaluate(name)(jnp.asarray(TIMES))
    np.testing.assert_allclose(at.p_W[:, 0], POINTS, atol=1e-12)
    for outside in (0.0, 0.5, 5.5, 9.0):
        target = evaluate(name)(jnp.array([outside]))
        np.testing.assert_allclose(target.p_W[0, 0], POINTS[0 if outside < 1 else -1], atol=1e-12)
        for rate in (target.v_W, target.a_W, target.w_B):
            np.testing.assert_allclose(rate, 0.0, atol=1e-8)


@pytest.mark.parametrize(("minimize", "order", "continuous"), [("jerk", 3, 4), ("snap", 4, 6)])
def test_no_other_curve_through_the_points_has_less(minimize, order, continuous):
    path = Waypoints.create(POINTS, TIMES, minimize=minimize).path
    knots, pieces = np.asarray(path.knots), np.asarray(path.coefficients)

    def piece(i, t, d):  # derivative d of piece i, by NumPy's polynomials
        h = knots[i + 1] - knots[i]
        columns = [np.polynomial.Polynomial(c) for c in pieces[i].T]
        return np.stack([(c.deriv(d) if d else c)((t - knots[i]) / h) / h**d for c in columns], -1)

    for d in range(continuous + 1):
        for i in (1, 2):
            np.testing.assert_allclose(piece(i - 1, knots[i], d), piece(i, knots[i], d), rtol=1e-7, atol=1e-7 * 10.0**d)
    # Any change that keeps points and rest adds to the integral: its product with the curve's own derivative is zero.
    nodes, weights = np.polynomial.legendre.leggauss(24)
    change = np.polynomial.Polynomial(RNG.normal(size=5))
    for knot in TIMES:
        power = order if knot in (TIMES[0], TIMES[-1]) else 1
        change = change * np.polynomial.Polynomial([-knot, 1.0]) ** power
    product, size = 0.0, 0.0
    for i in range(3):
        t = knots[i] + (knots[i + 1] - knots[i]) * (nodes + 1) / 2
        w = weights * (knots[i + 1] - knots[i]) / 2
        own, other = piece(i, t, order)[:, 0], change.deriv(order)(t)
        product, size = product + w @ (own * other), size + w @ np.abs(own * other)
    assert abs(product) < 1e-7 * size


def test_two_points_at_minimum_jerk_are_the_classical_polynomial():
    path = jax.jit(jax.vmap(Waypoints.create([[0.0, 0, 0], [1.0, 2, 3]], [0.0, 2.0])))
    s = np.linspace(0.0, 1.0, 9)
    expected = (10 * s**3 - 15 * s**4 + 6 * s**5)[:, None] * [1.0, 2, 3]  # Flash and Hogan 1985
    np.testing.assert_allclose(path(jnp.asarray(2 * s)).p_W[:, 0], expected, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_waypoints_are_linear_in_their_points(seed):
    # So they differentiate by them: a change of one point moves the path by the same path through that change.
    change = np.random.default_rng(seed).normal(size=POINTS.shape)

    def at(points):
        return Waypoints.create(points, TIMES)(jnp.asarray(2.7)).p_W[0]

    _, slope = jax.jvp(at, (jnp.asarray(POINTS),), (jnp.asarray(change),))
    np.testing.assert_allclose(slope, at(change), atol=1e-12)


def test_a_mean_speed_sets_the_times():
    path = Waypoints.at_speed(POINTS, 2.0, start=1.0)
    np.testing.assert_allclose(np.diff(path.path.knots), np.linalg.norm(np.diff(POINTS, axis=0), axis=1) / 2.0)
    assert path.path.knots[0] == 1.0


def test_samples_are_joined_as_scipy_does_it(tmp_path):
    positions, yaw = RNG.normal(size=(40, 3)), np.cumsum(RNG.normal(size=40) * 0.3)
    rows = np.column_stack([SAMPLES, positions, np.angle(np.exp(1j * yaw))])
    np.savetxt(tmp_path / "path.csv", rows, delimiter=",", header="time,x,y,z,yaw", comments="", fmt="%.17g")
    t = np.linspace(SAMPLES[0] + 0.01, SAMPLES[-1] - 0.01, 50)
    target = jax.jit(jax.vmap(Sampled.from_csv(tmp_path / "path.csv")))(jnp.asarray(t))
    oracle = CubicSpline(SAMPLES, positions)
    np.testing.assert_allclose(target.p_W[:, 0], oracle(t), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(target.v_W[:, 0], oracle(t, 1), rtol=1e-7, atol=1e-7)
    turned = 2 * np.arctan2(target.q_WB[:, 0, 3], target.q_WB[:, 0, 0]) - CubicSpline(SAMPLES, yaw)(t)
    np.testing.assert_allclose(np.exp(1j * turned), np.exp(1j * (turned[0])), atol=1e-8)


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ValueError, match="expected 'fixed', 'forward' or 'inward'"):
        Circle.create([0, 0, 0.0], 1.0, 1.0, heading="outward")
    with pytest.raises(ValueError, match="crossing"):
        FigureEight.create([0, 0, 0.0], 1.0, 1.0, 1.0, heading="inward")
    with pytest.raises(ValueError, match="'jerk' or 'snap'"):
        Waypoints.create(POINTS, TIMES, minimize="acceleration")
    with pytest.raises(ValueError, match="times must increase"):
        Waypoints.create(POINTS, TIMES[::-1])
    with pytest.raises(ValueError, match="one time for each"):
        Waypoints.create(POINTS, TIMES[:3])
    with pytest.raises(ValueError, match="no two equal points"):
        Waypoints.at_speed(POINTS[[0, 0, 1]], 1.0)
    with pytest.raises(ValueError, match="yaw has shape"):
        Waypoints.create(POINTS, TIMES, yaw=[0.0, 1.0])
    (tmp_path / "bad.csv").write_text("time,x,y\n0,0,0\n1,1,1\n")
    with pytest.raises(ValueError, match="column z is missing"):
        Sampled.from_csv(tmp_path / "bad.csv")
    (tmp_path / "nan.csv").write_text("time,x,y,z\n0,0,0,0\n1,1,nan,1\n")
    with pytest.raises(ValueError, match="line 3"):
        Sampled.from_csv(tmp_path / "nan.csv")
