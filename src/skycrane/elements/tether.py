"""An inextensible tether between two bodies: slack below its length, taut at it, and never longer.

With A and B the ends, r = p_B - p_A, e = r/|r| and v = r', the gap L - |r| has

    gap' = -e . v,       gap'' = -(e . r'' + (|v|^2 - (e . v)^2)/|r|)

and r'' holds the centripetal terms w x (w x offset) of both bodies.  Unit tension pulls A along e and B along -e.  The tension follows from
the accelerations and is exact: no stiffness, no small step.  Taut it is wherever the gap is closed and the tension that holds it
is positive, so slack and taut need no memory; a re-tensioning jerk is plastic (:mod:`skycrane.core.constraint`).

With ``breaking_tension`` the tether is gone from the end of the step in which its tension was greater.  A jerk has no finite
tension here, so it does not break by itself; where jerks matter, take an elastic cable.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.core.constraint import AbstractConstraint, Row
from skycrane.core.element import Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3, take

CLOSED = 1e-6  # m, gap up to which a tether counts as taut


class Tether(AbstractConstraint):
    """A tether from body A to body B (``bodies``, static).

    Attributes:
        length: m.
        offset_A, offset_B: (3,) m, its ends from the bodies' reference points in body axes, or None where they are these points.
        breaking_tension: N, or None for one that never breaks.
        intact: 1; an event that puts 0 cuts it.
        stabilisation: 1/s, rate at which rounding errors that would make it slack fade.
    """

    bodies: tuple[int, int] = eqx.field(static=True)
    length: Array | float
    offset_A: Array | None = None
    offset_B: Array | None = None
    breaking_tension: Array | float | None = None
    intact: Array | float = 1.0
    stabilisation: Array | float = 50.0

    def __check_init__(self):
        if self.bodies[0] == self.bodies[1]:
            raise ValueError(f"tether from body {self.bodies[0]} to itself: expected two bodies")
        for name, value in (("offset_A", self.offset_A), ("offset_B", self.offset_B)):
            if value is not None and jnp.shape(value)[-1:] != (3,):
                raise ValueError(f"tether: {name} has shape {jnp.shape(value)}, expected (3,)")

    def init(self):
        """How far the tension went beyond the breaking tension, integrated over time [N s]; above 0 the tether is broken."""
        return None if self.breaking_tension is None else jnp.zeros(())

    def rate(self, memory, multipliers):
        return jnp.maximum(multipliers[0] - self.breaking_tension, 0.0).astype(memory.dtype)

    def _end(self, kin: Kinematics, body: int, offset: Array | None) -> tuple[Vec3, Vec3, Vec3 | None]:
        """Position, velocity and centripetal acceleration of an end, world axes."""
        if offset is None:
            p_W, v_W = take((kin.p_WB, kin.v_W), (body,))
            return p_W, v_W, None
        at = Vec3.of(jnp.asarray(offset)[None])
        point, w_B = kin.points((body,), at), take(kin.w_B, (body,))
        return point.p_W, point.v_W, point.R_WB @ w_B.cross(w_B.cross(at))

    def _pull(self, kin: Kinematics, body: int, offset: Array | None, force_W: Vec3) -> Wrench:
        if offset is None:
            return Wrench((body,), force_W, None)
        return Wrench.at((body,), Vec3.of(jnp.asarray(offset)[None]), take(kin.R_WB, (body,)), force_W)

    def direction(self, kin: Kinematics) -> Vec3:
        """Unit vector from end A to end B, world axes."""
        a, b = self.bodies
        return (self._end(kin, b, self.offset_B)[0] - self._end(kin, a, self.offset_A)[0]).unit()

    def rows(self, t, kin: Kinematics, memory):
        a, b = self.bodies
        p_A, v_A, turn_A = self._end(kin, a, self.offset_A)
        p_B, v_B, turn_B = self._end(kin, b, self.offset_B)
        d, v = p_B - p_A, v_B - v_A
        r, e = d.norm(), d.unit()
        rate = e.dot(v)
        stretch = (v.dot(v) - rate * rate) / jnp.where(r > 0, r, 1.0)
        for turn, sign in ((turn_A, -1.0), (turn_B, 1.0)):
            if turn is not None:
                stretch = stretch + sign * e.dot(turn)
        gap = self.length - r
        whole = self.intact > 0
        if self.breaking_tension is not None:
            whole = whole & (memory <= 0)
        active = (gap <= CLOSED) & whole
        n = self.stabilisation
        # Only against slack: a gap that a step overshot is closed by core.constraint without work, not pulled in.
        target = -(n * n) * jnp.maximum(gap, 0.0) + 2.0 * n * jnp.minimum(rate, 0.0)
        wrenches = (self._pull(kin, a, self.offset_A, e), self._pull(kin, b, self.offset_B, -e))
        return (Row(wrenches, gap[0], -rate[0], -stretch[0], target[0], active[0]),)


class LeverTether(AbstractConstraint):
    """A tether that pulls at the centres of two bodies but turns body A as if it were hooked on a lever: the model of Kourani and Daher.

    ``tether`` has no offsets.  ``lever`` m: the hook lies so far ahead of body A's centre and turns it in yaw alone.  ``coupling`` m: a
    yaw moment for each newton of upward pull, which only the source's own program has (its inertia is not a matrix).
    """

    tether: Tether
    lever: Array | float
    coupling: Array | float = 0.0

    def init(self):
        return self.tether.init()

    def rate(self, memory, multipliers):
        return self.tether.rate(memory, multipliers)

    def rows(self, t, kin: Kinematics, memory):
        (row,) = self.tether.rows(t, kin, memory)
        body = self.tether.bodies[0]
        e_B = take(kin.R_WB, (body,)).T @ self.tether.direction(kin)
        yaw = self.lever * e_B.y + self.coupling * e_B.z
        return (row._replace(extra=(Wrench((body,), None, Vec3(0.0 * yaw, 0.0 * yaw, yaw)),)),)
