"""Interpolation, angles and camera against independent formulas."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from skycrane.viz.geometry import (
    camera_for,
    dashes,
    euler_zyx,
    interpolate,
    round_step,
    shape_radius,
    slerp,
    z_axis_to,
)


def quaternions(count, seed=0):
    return Rotation.random(count, rng=np.random.default_rng(seed)).as_quat(scalar_first=True)


def angle_between(a, b):
    turn = Rotation.from_quat(a, scalar_first=True).inv() * Rotation.from_quat(b, scalar_first=True)
    return turn.magnitude()


def test_slerp_agrees_with_scipy_for_every_body():
    time = np.sort(np.random.default_rng(3).uniform(0.0, 5.0, 40))
    q = np.stack([quaternions(40, seed) for seed in range(3)], axis=1)
    at = np.linspace(time[0], time[-1], 333)
    ours = slerp(time, q, at)
    assert ours.shape == (333, 3, 4)
    for body in range(3):
        theirs = Slerp(time, Rotation.from_quat(q[:, body], scalar_first=True))(at).as_quat(scalar_first=True)
        assert np.max(angle_between(ours[:, body], theirs)) < 1e-9


def test_slerp_takes_the_shorter_way_whatever_the_signs():
    time = np.linspace(0.0, 1.0, 20)
    turning = Rotation.from_euler("z", 0.2 * np.arange(20)[:, None]).as_quat(scalar_first=True)
    flipped = turning * np.where(np.arange(20) % 2 == 0, 1.0, -1.0)[:, None]
    at = np.linspace(0.0, 1.0, 77)
    expected = Rotation.from_euler("z", 0.2 * 19 * at[:, None]).as_quat(scalar_first=True)
    assert np.max(angle_between(slerp(time, flipped, at), expected)) < 1e-9


def test_slerp_of_equal_and_of_unnormalised_samples_is_a_unit_quaternion():
    q = np.array([[2.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0]])
    out = slerp(np.array([0.0, 1.0, 2.0]), q, np.linspace(0.0, 2.0, 9))
    assert np.allclose(np.linalg.norm(out, axis=-1), 1.0, atol=1e-14)
    assert np.allclose(out[2], [1.0, 0.0, 0.0, 0.0])


def test_interpolation_is_linear_clamped_and_jumps_at_a_repeated_time():
    time = np.array([0.0, 1.0, 1.0, 2.0])
    values = np.array([[0.0], [1.0], [5.0], [6.0]])
    out = interpolate(time, values, np.array([-1.0, 0.5, 1.0, 1.5, 9.0]))
    assert np.allclose(out[:, 0], [0.0, 0.5, 5.0, 5.5, 6.0])


def test_a_missing_sample_spoils_only_its_own_intervals():
    out = interpolate(np.arange(4.0), np.array([0.0, 1.0, np.nan, 3.0]), np.array([0.5, 1.0, 1.5, 2.5, 3.0]))
    assert np.array_equal(np.isnan(out), [False, False, True, True, False])


def test_euler_angles_agree_with_scipy():
    q = quaternions(200, 5)
    ours = euler_zyx(q)
    theirs = Rotation.from_quat(q, scalar_first=True).as_euler("ZYX")[:, ::-1]
    assert np.allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("direction", [(0, 0, 1), (0, 0, -1), (3, 0, 0), (-1, 2, -0.5), (0, 1e-3, -1)])
def test_z_axis_turns_to_the_direction(direction):
    turned = Rotation.from_quat(z_axis_to(direction), scalar_first=True).apply([0.0, 0.0, 1.0])
    assert np.allclose(turned, np.array(direction) / np.linalg.norm(direction), atol=1e-12)


@pytest.mark.parametrize(("length", "step"), [(1.0, 1.0), (0.19, 0.1), (4.9, 2.0), (5.0, 5.0), (730.0, 500.0), (0.002, 0.002)])
def test_grid_steps_are_round(length, step):
    assert round_step(length) == pytest.approx(step)


def test_dashes_are_equally_long_and_a_still_path_has_none():
    angle = np.linspace(0.0, 2.0 * np.pi, 400)
    circle = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    circle[7] = np.nan
    marks = dashes(circle, 0.05)
    lengths = np.linalg.norm(marks[:, 1] - marks[:, 0], axis=1)
    assert len(marks) == 62
    assert np.allclose(lengths, lengths[0], rtol=2e-3)
    assert dashes(np.ones((50, 3)), 0.1).shape == (0, 2, 3)
    assert dashes(np.full((50, 3), np.nan), 0.1).shape == (0, 2, 3)


@pytest.mark.parametrize("scale", [0.05, 3.0, 400.0])
def test_camera_frames_every_point(scale):
    points = np.random.default_rng(2).normal(size=(500, 3)) * scale * [3.0, 1.0, 0.4] + [10.0, -5.0, 2.0]
    camera, target = camera_for(points, (0.3, 0.8, -0.5), fov=0.85, aspect=1.4)
    forward = (target - camera) / np.linalg.norm(target - camera)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    offset = points - camera
    depth = offset @ forward
    assert np.all(depth > 0.0)
    across = np.abs(offset @ right) / depth / (1.4 * np.tan(0.425))
    up = np.abs(offset @ np.cross(right, forward)) / depth / np.tan(0.425)
    assert max(across.max(), up.max()) <= 1.0
    assert max(across.max(), up.max()) > 0.7, "the motion should fill the picture"


def test_shape_radius_holds_the_shape():
    assert shape_radius({"kind": "box", "size": [2.0, 0.0, 0.0], "position": [0.0, 0.0, 3.0]}) == pytest.approx(4.0)
    assert shape_radius({"kind": "rod", "from": [0, 0, 0], "to": [0, 3, 4], "radius": 0.1}) == pytest.approx(5.1)
    assert shape_radius({"kind": "cylinder", "radius": 3.0, "height": 8.0}) == pytest.approx(5.0)
    assert shape_radius({"kind": "rotor", "radius": 0.1, "position": [0.2, 0.0, 0.0], "axis": [0, 0, 1]}) == pytest.approx(0.3)
