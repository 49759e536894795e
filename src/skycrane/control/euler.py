"""Roll, pitch and yaw (z-y-x) in components, for control laws written in them; singular at a pitch of 90 degrees.

R = Rz(psi) Ry(theta) Rx(phi),     Theta' = J_r(Theta) w,     w in body axes
"""

from __future__ import annotations

import jax.numpy as jnp

from skycrane.math.components import Mat3, Vec3


def angles_of(R: Mat3) -> Vec3:
    """Roll, pitch, yaw [rad] of an attitude."""
    pitch = -jnp.arcsin(jnp.clip(R.z.x, -1.0, 1.0))
    return Vec3(jnp.arctan2(R.z.y, R.z.z), pitch, jnp.arctan2(R.y.x, R.x.x))


def rates_of(angles: Vec3) -> Mat3:
    """J_r."""
    s, c = angles.map(jnp.sin), angles.map(jnp.cos)
    one, zero = jnp.ones_like(c.x), jnp.zeros_like(c.x)
    return Mat3(Vec3(one, s.x * s.y / c.y, c.x * s.y / c.y), Vec3(zero, c.x, -s.x), Vec3(zero, s.x / c.y, c.x / c.y))


def body_rates_of(angles: Vec3) -> Mat3:
    """The inverse of J_r: from rates of the angles to the angular velocity."""
    s, c = angles.map(jnp.sin), angles.map(jnp.cos)
    one, zero = jnp.ones_like(c.x), jnp.zeros_like(c.x)
    return Mat3(Vec3(one, zero, -s.y), Vec3(zero, c.x, s.x * c.y), Vec3(zero, -s.x, c.x * c.y))
