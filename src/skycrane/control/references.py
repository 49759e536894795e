"""Wanted motions: hover, circle, figure of eight.  Waypoints and sampled paths are in :mod:`skycrane.control.splines`.

Each is written as a position and a yaw angle as functions of time; velocity, acceleration and yaw rate are their exact
derivatives, taken by differentiating the function itself, so a target is always consistent.  The attitude is level: ``q_WB``
holds the yaw, ``w_B = (0, 0, yaw')``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from skycrane.core.controller import AbstractReference, Target
from skycrane.math.components import Vec3


def derivative(function: Callable[[Array], Any], t: Array) -> tuple[Any, Any]:
    """Value and derivative of a function of time."""
    return jax.jvp(function, (t,), (jnp.ones_like(t),))


def level_target(position: Callable[[Array], Vec3], yaw: Callable[[Array], Array], t: Array) -> Target:
    """The target of a position (components (k,)) and a yaw angle (k,) [rad] given as functions of time."""
    (p, v), (_, a) = derivative(lambda s: derivative(position, s), t)
    angle, rate = derivative(yaw, t)
    zero = jnp.zeros_like(angle)
    half = 0.5 * angle
    q_WB = jnp.stack([jnp.cos(half), zero, zero, jnp.sin(half)], -1)
    return Target(p.array(), v.array(), a.array(), q_WB, jnp.stack([zero, zero, rate], -1))


class Hover(AbstractReference):
    """Stay at ``position_W`` (k, 3) m with ``yaw`` (k,) rad."""

    position_W: Array
    yaw: Array

    @classmethod
    def create(cls, position_W: ArrayLike, yaw: ArrayLike = 0.0) -> Hover:
        """From (k, 3) or (3,), and a yaw (k,) or scalar."""
        position_W = jnp.atleast_2d(jnp.asarray(position_W, jnp.result_type(float)))
        return cls(position_W, jnp.broadcast_to(jnp.asarray(yaw, position_W.dtype), position_W.shape[:1]))

    def __call__(self, t: Array) -> Target:
        zero = jnp.zeros_like(self.position_W)
        half = 0.5 * self.yaw
        flat = jnp.zeros_like(half)
        return Target(self.position_W, zero, zero, jnp.stack([jnp.cos(half), flat, flat, jnp.sin(half)], -1), zero)


class AbstractRound(AbstractReference):
    """A closed path gone round for ever.

    ``center_W`` (k, 3) m; ``period`` (k,) s of one round, negative to go backwards; ``phase`` (k,) rad at the start; ``ramp``
    (k,) s in which the speed rises smoothly from rest (0: at full speed from the start); ``yaw`` (k,) rad, of a fixed heading or
    added to that of the path; ``heading`` (static) ``"fixed"``, ``"forward"`` along the path or ``"inward"`` to the center.
    """

    center_W: Array
    period: Array
    phase: Array
    ramp: Array
    yaw: Array
    heading: str = eqx.field(static=True)

    @abc.abstractmethod
    def offset(self, phase: Array) -> tuple[Array, Array]:
        """x and y [m] from the center at a phase (k,) [rad]."""

    @abc.abstractmethod
    def course(self, phase: Array) -> Array:
        """Direction of the path [rad], (k,), continuous in the phase, seen in the direction of growing phase."""

    def turned(self, t: Array) -> Array:
        """Phase (k,) [rad] at time t."""
        # The speed rises by the smooth step 10 s^3 - 15 s^4 + 6 s^5, of which this is the integral; the jerk stays continuous.
        some = self.ramp > 0
        ramp = jnp.where(some, self.ramp, 1.0)
        s = jnp.clip(t / ramp, 0.0, 1.0)
        begun = ramp * s**4 * (2.5 + s * (s - 3.0)) + jnp.maximum(t - ramp, 0.0)
        return self.phase + (2 * jnp.pi / self.period) * jnp.where(some, begun, t)

    def _position(self, t: Array) -> Vec3:
        x, y = self.offset(self.turned(t))
        return Vec3(self.center_W[:, 0] + x, self.center_W[:, 1] + y, self.center_W[:, 2])

    def _yaw(self, t: Array) -> Array:
        if self.heading == "fixed":
            return self.yaw
        phase = self.turned(t)
        if self.heading == "inward":
            x, y = self.offset(phase)
            return self.yaw + jnp.arctan2(-y, -x)
        return self.yaw + self.course(phase) + jnp.where(self.period < 0, jnp.pi, 0.0)

    def __call__(self, t: Array) -> Target:
        return level_target(self._position, self._yaw, t)


def _round_fields(center_W: ArrayLike, period: ArrayLike, phase: ArrayLike, ramp: ArrayLike, yaw: ArrayLike, heading: str) -> dict:
    if heading not in ("fixed", "forward", "inward"):
        raise ValueError(f"heading {heading!r}: expected 'fixed', 'forward' or 'inward'")
    center = jnp.atleast_2d(jnp.asarray(center_W, jnp.result_type(float)))
    rest = {"period": period, "phase": phase, "ramp": ramp, "yaw": yaw}
    each = {name: jnp.broadcast_to(jnp.asarray(x, center.dtype), center.shape[:1]) for name, x in rest.items()}
    return {"center_W": center, **each, "heading": heading}


class Circle(AbstractRound):
    """A horizontal circle of ``radius`` (k,) m, from ``center + radius (cos phase, sin phase)`` on, counter-clockwise for a
    positive period."""

    radius: Array

    @classmethod
    def create(
        cls,
        center_W: ArrayLike,
        radius: ArrayLike,
        period: ArrayLike,
        *,
        phase: ArrayLike = 0.0,
        ramp: ArrayLike = 0.0,
        yaw: ArrayLike = 0.0,
        heading: str = "fixed",
    ) -> Circle:
        """Broadcast to the vehicles of ``center_W`` (k, 3) or (3,); see :class:`AbstractRound`.  ValueError for an unknown
        heading."""
        fields = _round_fields(center_W, period, phase, ramp, yaw, heading)
        return cls(**fields, radius=jnp.broadcast_to(jnp.asarray(radius, fields["period"].dtype), fields["period"].shape))

    def offset(self, phase: Array) -> tuple[Array, Array]:
        return self.radius * jnp.cos(phase), self.radius * jnp.sin(phase)

    def course(self, phase: Array) -> Array:
        return phase + 0.5 * jnp.pi

    def _yaw(self, t: Array) -> Array:
        # Without arctan2 the yaw needs no derivative of one, and goes on growing round after round.
        return self.yaw + self.turned(t) + jnp.pi if self.heading == "inward" else super()._yaw(t)


class FigureEight(AbstractRound):
    """A lying figure of eight, the lemniscate of Gerono: ``x = length/2 sin(phase)``, ``y = width/2 sin(2 phase)``; ``length``,
    ``width`` (k,) m.

    ``"inward"`` is meaningless at the crossing and is refused.
    """

    length: Array
    width: Array

    @classmethod
    def create(
        cls,
        center_W: ArrayLike,
        length: ArrayLike,
        width: ArrayLike,
        period: ArrayLike,
        *,
        phase: ArrayLike = 0.0,
        ramp: ArrayLike = 0.0,
        yaw: ArrayLike = 0.0,
        heading: str = "fixed",
    ) -> FigureEight:
        """Broadcast to the vehicles of ``center_W`` (k, 3) or (3,); see :class:`AbstractRound`.  ValueError for an unknown
        heading."""
        if heading == "inward":
            raise ValueError("heading 'inward' is undefined at the crossing of a figure of eight; use 'forward' or 'fixed'")
        fields = _round_fields(center_W, period, phase, ramp, yaw, heading)
        shape, dtype = fields["period"].shape, fields["period"].dtype
        length, width = (jnp.broadcast_to(jnp.asarray(x, dtype), shape) for x in (length, width))
        return cls(**fields, length=length, width=width)

    def offset(self, phase: Array) -> tuple[Array, Array]:
        return 0.5 * self.length * jnp.sin(phase), 0.5 * self.width * jnp.sin(2 * phase)

    def course(self, phase: Array) -> Array:
        return jnp.arctan2(self.width * jnp.cos(2 * phase), 0.5 * self.length * jnp.cos(phase))
