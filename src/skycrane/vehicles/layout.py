"""Where the rotors of a multirotor sit and where they push: rings, coaxial pairs, canted axes.

Body axes: x forward, y left, z up. A rotor at horizontal angle phi (from forward towards left) has the outward direction
``k = (cos phi, sin phi, 0)`` and the tangent ``t = (-sin phi, cos phi, 0)``. Its thrust axis starts as z, is turned by the flapwise
angle f about t, which leans it outward, and then by the torsional angle c about k, which leans it clockwise seen from above:

    axis = sin f k - cos f sin c t + cos f cos c z

so |axis| = 1 for every arm. All functions take NumPy or JAX numbers and differentiate by lengths and angles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any
"""A NumPy array, or a JAX array where an argument is one."""


class Layout(NamedTuple):
    """n rotors: hubs ``position_B`` (n, 3) m from B, unit thrust directions ``axis_B`` (n, 3), ``spin`` (n,) +1 ccw, -1 cw from above."""

    position_B: Array
    axis_B: Array
    spin: Array


def canted_axes(angle: Array, torsional: Array = 0.0, flapwise: Array = 0.0) -> Array:
    """Unit thrust axes (n, 3) of rotors at horizontal angles (n,), canted by angles (n,) or one for all, rad."""
    xp = _namespace(angle, torsional, flapwise)
    angle = xp.asarray(angle)
    c, f = xp.broadcast_to(xp.asarray(torsional), angle.shape), xp.broadcast_to(xp.asarray(flapwise), angle.shape)
    outward, across = xp.sin(f), -xp.cos(f) * xp.sin(c)
    cos, sin = xp.cos(angle), xp.sin(angle)
    return xp.stack([outward * cos - across * sin, outward * sin + across * cos, xp.cos(f) * xp.cos(c)], -1)


def ring(
    count: int,
    arm: Array,
    *,
    first_angle: Array = 0.0,
    clockwise: bool = False,
    height: Array = 0.0,
    spin: Array | None = None,
    torsional: Array = 0.0,
    flapwise: Array = 0.0,
) -> Layout:
    """Rotors evenly spaced on a circle of radius ``arm`` [m].

    Args:
        first_angle: of the first rotor, rad from forward towards left.
        clockwise: whether the rotors are counted clockwise seen from above.
        height: of all rotors along body z, m.
        spin: (count,) +1 or -1; alternating from +1 by default.
        torsional, flapwise: cant of each rotor (count,) or of all, rad.
    """
    xp = _namespace(arm, first_angle, height, torsional, flapwise)
    angle = first_angle + (-1.0 if clockwise else 1.0) * 2.0 * np.pi / count * np.arange(count)
    level = xp.broadcast_to(xp.asarray(height), (count,))
    position_B = xp.stack([arm * xp.cos(angle), arm * xp.sin(angle), level], -1)
    return Layout(position_B, canted_axes(angle, torsional, flapwise), alternating(count) if spin is None else np.asarray(spin))


def coaxial(
    arms: int,
    arm: Array,
    gap: Array,
    *,
    first_angle: Array = 0.0,
    clockwise: bool = False,
    height: Array = 0.0,
    first_spin: float = 1.0,
) -> Layout:
    """Pairs of opposite spin, ``gap`` [m] apart and centred at ``height`` [m]; rotors 2i and 2i + 1 are upper and lower of arm i.

    The upper rotors alternate from ``first_spin`` (+1 or -1) from arm to arm.
    """
    upper = ring(arms, arm, first_angle=first_angle, clockwise=clockwise, height=height + 0.5 * gap)
    lower = ring(arms, arm, first_angle=first_angle, clockwise=clockwise, height=height - 0.5 * gap)
    xp = _namespace(upper.position_B)
    position_B = xp.stack([upper.position_B, lower.position_B], 1).reshape(2 * arms, 3)
    spin = first_spin * alternating(arms)
    return Layout(position_B, np.tile([0.0, 0.0, 1.0], (2 * arms, 1)), np.stack([spin, -spin], 1).reshape(2 * arms))


def alternating(count: int) -> np.ndarray:
    """+1, -1, +1, ... (count,)."""
    return np.where(np.arange(count) % 2 == 0, 1.0, -1.0)


def _namespace(*values: Array) -> Any:
    """jax.numpy where a JAX array takes part, else NumPy, which needs no compilation."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np
