"""Wanted motions of an end-effector, and what they ask of the vehicle that carries it.

p = p_e - R r_e,    p' = p_e' - R (w x r_e),    p'' = p_e'' - R (w' x r_e + w x (w x r_e))
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from skycrane.control.references import derivative
from skycrane.control.tumble import body_rate, ramped
from skycrane.core.controller import AbstractReference, Target
from skycrane.math.components import Quat, Vec3
from skycrane.math.rotation import from_roll_pitch_yaw


class AtTip(AbstractReference):
    """The target of B under which the end-effector at ``tip_B`` (k, 3) m does what ``path`` says, with the attitude of ``path``."""

    path: AbstractReference
    tip_B: Array

    def __call__(self, t: Array) -> Target:
        target, rate = jax.jvp(self.path, (t,), (jnp.ones_like(t),))
        R, w, r = Quat.of(target.q_WB).matrix(), Vec3.of(target.w_B), Vec3.of(self.tip_B)
        turn = w.cross(r)
        p = Vec3.of(target.p_W) - R @ r
        v = Vec3.of(target.v_W) - R @ turn
        a = Vec3.of(target.a_W) - R @ (Vec3.of(rate.w_B).cross(r) + w.cross(turn))
        return Target(p.array(), v.array(), a.array(), target.q_WB, target.w_B)


class Sweep(AbstractReference):
    """Round a horizontal circle while roll, pitch and yaw swing.

    ``center_W`` (k, 3) m; ``radius`` (k,) m; ``circle_rate`` (k,) rad/s; ``swing`` (k, 3) rad, amplitudes of roll, pitch and yaw;
    ``swing_rate`` (k, 3) rad/s; the motion gets up to speed in ``ramp`` (k,) s and ends, as smoothly, at ``stop`` (k,) s.
    """

    center_W: Array
    radius: Array
    circle_rate: Array
    swing: Array
    swing_rate: Array
    ramp: Array
    stop: Array

    def _run(self, t: Array) -> Array:
        return ramped(t, jnp.zeros_like(self.ramp), self.ramp) - ramped(t, self.stop, self.ramp)

    def _position(self, t: Array) -> Array:
        angle = self.circle_rate * self._run(t)
        return self.center_W + self.radius[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle), jnp.zeros_like(angle)], -1)

    def _attitude(self, t: Array) -> Array:
        return from_roll_pitch_yaw(self.swing * jnp.sin(self.swing_rate * self._run(t)[:, None]))

    def __call__(self, t: Array) -> Target:
        (p, v), (_, a) = derivative(lambda s: derivative(self._position, s), t)
        q, q_rate = jax.jvp(self._attitude, (t,), (jnp.ones_like(t),))
        return Target(p, v, a, q, body_rate(Quat.of(q), Quat.of(q_rate)).array())
