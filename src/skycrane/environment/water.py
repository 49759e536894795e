"""Water: a surface that waves move, and the velocity of the water below it.

The surface is the height ``level + zeta(t, x, y)``; the velocity is that of the waves (with their Stokes drift) and the current together.
The same functions give forces, metrics and pictures.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.environment.waves import Waves
from skycrane.math.components import Scalar, Vec3

FRESH_DENSITY = 1000.0  # kg/m^3
SEA_DENSITY = 1025.0
KINEMATIC_VISCOSITY = 1.787e-6  # m^2/s, near 0 C


class Current(eqx.Module):
    """A steady horizontal current.

    ``velocity`` (3,) m/s at the mean level, world axes, where the water goes to.  With ``depth`` [m] it falls off below that level as
    ``(1 + z/depth)^exponent`` (a seventh for a tidal current, 1 for one that the wind drives; DNV-RP-C205, 4.1.4) and is 0 below.
    """

    velocity: Array
    depth: Array | float | None = None
    exponent: Array | float = 1.0 / 7.0

    def velocity_W(self, z: Scalar) -> Vec3:
        """Velocity [m/s] at the height ``z`` above the mean level."""
        v = Vec3.of(jnp.asarray(self.velocity))
        if self.depth is None:
            return v
        part = jnp.minimum(1.0 + z / self.depth, 1.0)
        wet = part > 1e-6
        return v * jnp.where(wet, jnp.where(wet, part, 1.0) ** self.exponent, 0.0)


class WaterMotion(NamedTuple):
    """World height of the surface [m]; velocity [m/s] and acceleration [m/s^2] of the water, world axes."""

    level: Scalar
    velocity_W: Vec3
    acceleration_W: Vec3


class Water(eqx.Module):
    """Water with its mean ``level`` [m] in the world, of a ``density`` [kg/m^3] and a kinematic ``viscosity`` [m^2/s].

    ``waves`` and ``current`` are None where there are none.
    """

    level: Array | float = 0.0
    density: Array | float = FRESH_DENSITY
    viscosity: Array | float = KINEMATIC_VISCOSITY
    waves: Waves | None = None
    current: Current | None = None

    def surface(self, t: Array, x: Scalar, y: Scalar) -> Scalar:
        """World height of the surface [m] above points (x, y)."""
        return self.level + jnp.zeros_like(x) if self.waves is None else self.level + self.waves.elevation(t, x, y)

    def tangent(self, t: Array, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """World height of the surface [m] above points, and its slopes along x and y."""
        if self.waves is None:
            flat = jnp.zeros_like(x)
            return self.level + flat, flat, flat
        zeta, slope_x, slope_y = self.waves.tangent(t, x, y)
        return self.level + zeta, slope_x, slope_y

    def motion(self, t: Array, p_W: Vec3) -> WaterMotion:
        """Surface above, and water at, points p_W [m]; points above the surface see the water at the surface."""
        zero = jnp.zeros_like(p_W.x)
        z = p_W.z - self.level
        if self.waves is None:
            level, velocity, acceleration = self.level + zero, Vec3(zero, zero, zero), Vec3(zero, zero, zero)
        else:
            zeta, velocity, acceleration = self.waves.motion(t, p_W.x, p_W.y, z)
            level = self.level + zeta
        if self.current is not None:
            velocity = velocity + self.current.velocity_W(jnp.minimum(z, 0.0))
        return WaterMotion(level, velocity, acceleration)
