"""Attitude errors and wanted attitudes, against SciPy's rotations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skycrane.control.attitude import attitude_along, attitude_error, geometric_acceleration, limit_tilt, quaternion_error, turn_towards
from skycrane.math.components import Mat3, Vec3

SEEDS = st.integers(0, 10_000)


def mat(rotation):
    return Mat3.of(jnp.asarray(rotation.as_matrix()))


def vec(array):
    return Vec3.of(jnp.asarray(array, float))


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("angle", [0.5 * np.pi, -0.5 * np.pi, 0.1])
def test_an_attitude_ahead_of_the_wanted_one_has_a_positive_error(axis, angle):  # case 7
    wanted = Rotation.random(random_state=axis)
    ahead = wanted * Rotation.from_rotvec(angle * np.eye(3)[axis])
    np.testing.assert_allclose(attitude_error(mat(ahead), mat(wanted)).array(), np.sin(angle) * np.eye(3)[axis], atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_errors_are_sine_and_twice_the_half_sine_of_the_rotation_between(seed):
    here, there = Rotation.random(2, random_state=seed)
    vector = (here.inv() * there).as_rotvec()
    angle = np.linalg.norm(vector)
    np.testing.assert_allclose(attitude_error(mat(here), mat(there)).array(), -np.sin(angle) * vector / angle, atol=1e-12)
    if angle < 3.1:
        np.testing.assert_allclose(quaternion_error(mat(here), mat(there)).array(), 2 * np.sin(angle / 2) * vector / angle, atol=1e-9)


def test_the_quaternion_error_stays_finite_at_half_a_turn():
    for axis in np.eye(3):
        here, there = Rotation.identity(), Rotation.from_rotvec(np.pi * axis)
        error = quaternion_error(mat(here), mat(there))
        assert np.all(np.isfinite(error.array()))
        assert np.all(
            np.isfinite(jax.jacobian(lambda v, there=there: quaternion_error(Mat3.skew(v), mat(there)).array())(vec([0.1, 0, 0])).array())
        )


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_wanted_attitudes_are_rotations_with_their_axis_and_heading(seed):
    rng = np.random.default_rng(seed)
    axis, heading = rng.normal(size=3), rng.normal(size=3)
    heading /= np.linalg.norm(heading)
    R = np.asarray(attitude_along(vec(axis), vec(heading)).array())
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)
    np.testing.assert_allclose(R[:, 2], axis / np.linalg.norm(axis), atol=1e-12)
    assert R[:, 0] @ heading > 0
    assert abs(np.cross(axis, heading) @ R[:, 0]) < 1e-9


def test_a_vertical_heading_problem_has_an_answer():
    R = np.asarray(attitude_along(vec([1.0, 0, 0]), vec([1.0, 0, 0])).array())
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(R[:, 1], [0, 1, 0], atol=1e-12)


def test_tilt_is_limited_and_height_comes_first():
    A = limit_tilt(vec([30.0, 40.0, -5.0]), 0.5, 2.0)
    np.testing.assert_allclose(A.array(), 2.0 * np.array([0.6 * np.tan(0.5), 0.8 * np.tan(0.5), 1.0]), rtol=1e-12)
    np.testing.assert_allclose(limit_tilt(vec([1.0, 0, 9.0]), 0.5, 2.0).array(), [1.0, 0, 9.0])


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.floats(0.0, 1.5))
def test_turning_towards_an_axis_goes_no_further_than_it_must(seed, within):
    start = Rotation.random(random_state=seed)
    axis = np.random.default_rng(seed).normal(size=3)
    angle = np.arccos(start.as_matrix()[:, 2] @ axis / np.linalg.norm(axis))
    turned = Rotation.from_matrix(np.asarray(turn_towards(mat(start), vec(axis), within).array()))
    left = np.arccos(np.clip(turned.as_matrix()[:, 2] @ axis / np.linalg.norm(axis), -1, 1))
    assert left == pytest.approx(min(angle, within), abs=1e-6)
    assert (start.inv() * turned).magnitude() == pytest.approx(max(angle - within, 0.0), abs=1e-6)


def test_the_law_follows_a_turning_attitude_exactly():
    # On the wanted motion the law must give the body's own angular acceleration: d/dt of w.
    R = Rotation.random(random_state=1)
    w, alpha = np.array([0.3, -0.5, 0.8]), np.array([0.2, 0.1, -0.4])
    gain = vec([9.0, 9.0, 9.0])
    law = geometric_acceleration(mat(R), vec(w), mat(R), vec(w), gain, gain, vec(alpha))
    np.testing.assert_allclose(law.array(), alpha, atol=1e-12)
