"""A wanted motion for vehicles that push every way: turning about all axes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from skycrane.control.references import derivative
from skycrane.core.controller import AbstractReference, Target
from skycrane.math.components import Quat, Vec3
from skycrane.math.rotation import from_roll_pitch_yaw


def ramped(t: Array, start: Array, ramp: Array) -> Array:
    """Time at full rate that a motion is worth which begins at ``start`` and is at full rate after ``ramp``: its rate rises with two
    continuous derivatives."""
    length = jnp.maximum(ramp, 1e-9)
    x = jnp.clip((t - start) / length, 0.0, 1.0)
    # Integral of the smooth step 10 x^3 - 15 x^4 + 6 x^5.
    return length * x**4 * (2.5 - 3.0 * x + x * x) + jnp.maximum(t - start - length, 0.0)


class Tumble(AbstractReference):
    """Roll, pitch and yaw that grow at ``rate`` (k, 3) rad/s each, R = Rz(yaw) Ry(pitch) Rx(roll), round ``center_W`` (k, 3) m.

    The turning begins at ``start`` (k,) s and is at full rate after ``ramp`` (k,) s; so does the motion round a horizontal circle of
    ``radius`` (k,) m at ``circle_rate`` (k,) rad/s. ``yaw`` (k,) rad is that before.
    """

    center_W: Array
    rate: Array
    yaw: Array
    start: Array
    ramp: Array
    radius: Array
    circle_rate: Array

    def run(self, t: Array) -> Array:
        """Time (k,) at full rate that the turning is worth: its rate rises with two continuous derivatives."""
        return ramped(t, self.start, self.ramp)

    def _position(self, t: Array) -> Array:
        angle = self.circle_rate * self.run(t)
        # The circle passes through the centre of the tumbling at rest, so that there is no jump.
        offset = self.radius[:, None] * jnp.stack([jnp.cos(angle) - 1.0, jnp.sin(angle), jnp.zeros_like(angle)], -1)
        return self.center_W + offset

    def _attitude(self, t: Array) -> Array:
        angles = self.rate * self.run(t)[:, None]
        return from_roll_pitch_yaw(jnp.stack([angles[:, 0], angles[:, 1], angles[:, 2] + self.yaw], -1))

    def __call__(self, t: Array) -> Target:
        """The target at ``t``, its velocities exact derivatives."""
        (p, v), (_, a) = derivative(lambda s: derivative(self._position, s), t)
        q, q_rate = jax.jvp(self._attitude, (t,), (jnp.ones_like(t),))
        # q' = q (0, w) / 2 with w in body axes.
        return Target(p, v, a, q, body_rate(Quat.of(q), Quat.of(q_rate)).array())


def body_rate(q: Quat, rate: Quat) -> Vec3:
    """Angular velocity in body axes of a unit quaternion with a time derivative: the vector part of 2 q* q'."""
    real, v = q.w, Vec3(q.x, q.y, q.z)
    turned = Vec3(rate.x, rate.y, rate.z)
    return 2.0 * (real * turned - rate.w * v - v.cross(turned))
