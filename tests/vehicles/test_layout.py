"""Rotor layouts: exact cant for every arm, order and spin, and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skycrane.vehicles.layout import canted_axes, coaxial, ring

ANGLES = np.linspace(-np.pi, np.pi, 37)
CANT = st.floats(-1.5, 1.5)


@pytest.mark.parametrize("kind", ["torsional", "flapwise"])
def test_a_cant_of_ten_degrees_leans_by_ten_degrees_on_every_arm(kind):
    axes = canted_axes(ANGLES, **{kind: np.deg2rad(10.0)})
    np.testing.assert_allclose(np.arccos(axes[:, 2]), np.deg2rad(10.0), rtol=1e-12)
    outward = np.stack([np.cos(ANGLES), np.sin(ANGLES)], -1)
    along = np.sum(axes[:, :2] * outward, -1)
    # Flapwise leans outward, torsional across: clockwise seen from above.
    across = outward[:, 0] * axes[:, 1] - outward[:, 1] * axes[:, 0]
    expected = (np.sin(np.deg2rad(10.0)), 0.0) if kind == "flapwise" else (0.0, -np.sin(np.deg2rad(10.0)))
    np.testing.assert_allclose(along, expected[0], atol=1e-15)
    np.testing.assert_allclose(across, expected[1], atol=1e-15)


@settings(max_examples=50, deadline=None)
@given(st.floats(-3.2, 3.2), CANT, CANT)
def test_axes_are_the_two_turns_of_the_docstring(angle, torsional, flapwise):
    outward, tangent = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])

    def turn(axis, by, vector):
        return vector * np.cos(by) + np.cross(axis, vector) * np.sin(by) + axis * (axis @ vector) * (1 - np.cos(by))

    expected = turn(outward, torsional, turn(tangent, flapwise, np.array([0.0, 0.0, 1.0])))
    axis = canted_axes(np.array([angle]), torsional, flapwise)[0]
    np.testing.assert_allclose(axis, expected, atol=1e-14)
    assert np.linalg.norm(axis) == pytest.approx(1.0, abs=1e-15)


def test_a_ring_counts_from_its_first_angle():
    layout = ring(4, 0.3, first_angle=-np.pi / 4, clockwise=True, height=0.05)
    s = 0.3 * np.sqrt(0.5)
    np.testing.assert_allclose(layout.position_B, [[s, -s, 0.05], [-s, -s, 0.05], [-s, s, 0.05], [s, s, 0.05]], atol=1e-15)
    np.testing.assert_array_equal(layout.spin, [1, -1, 1, -1])


def test_coaxial_pairs_turn_against_each_other():
    layout = coaxial(3, 0.4, 0.1, height=0.02)
    pairs = layout.position_B.reshape(3, 2, 3)
    np.testing.assert_allclose(pairs[:, 0] - pairs[:, 1], np.tile([0, 0, 0.1], (3, 1)), atol=1e-15)
    np.testing.assert_allclose(pairs.mean(1)[:, 2], 0.02)
    np.testing.assert_array_equal(layout.spin.reshape(3, 2).sum(1), 0)


def test_layouts_differentiate_by_lengths_and_angles():
    def height_of_thrust(numbers):
        arm, cant = numbers
        layout = ring(6, arm, torsional=cant * jnp.array([1.0, -1, 1, -1, 1, -1]))
        moment = jnp.cross(layout.position_B, layout.axis_B)
        return jnp.sum(moment[:, 2] * jnp.asarray(layout.spin))

    at = jnp.array([0.4, 0.3])
    gradient = jax.grad(height_of_thrust)(at)
    # Each rotor: moment about z = -arm sin(cant) spin.
    np.testing.assert_allclose(gradient, [-6 * np.sin(0.3), -6 * 0.4 * np.cos(0.3)], rtol=1e-12)
