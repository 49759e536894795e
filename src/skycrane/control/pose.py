"""Position and attitude control: geometric control of vehicles that push along body z, and full-pose control of those that push
every way.

Position, of the centre of mass (wanted where it lies when the vehicle has the wanted attitude):

    A = a_d - k_p e_p - k_v e_v - k_i int(e_p) + g e_z          wanted specific force [m/s^2]
    A' = a_d' - k_p e_v - k_v e_a                               its rate, with the acceleration e_a that the vehicle has when it
    pushes as wanted

Geometric control (Lee, Leok and McClamroch, CDC 2010): the thrust is m A . R e_z, the wanted attitude has z along A and the
    heading of the target, and
its angular velocity w_d follows from A' and the turning heading; a_d' is the derivative of the reference by ``t``.

Full-pose control (Franchi et al., "Full-pose tracking control for aerial robotic systems with laterally bounded input force",
IEEE T-RO 34, 2018): the force is m R^T A, and the wanted attitude that of the target, turned towards A by the smallest angle
that keeps the sideways force within what the rotors can give.  Position therefore comes before attitude.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from skycrane.control.attitude import attitude_along, attitude_error, geometric_acceleration, limit_tilt, turn_towards
from skycrane.control.model import Gains, VehicleModel, VehicleState, default_gains
from skycrane.control.reach import carries_any_way, lateral_force
from skycrane.core.controller import AbstractController, Measurement, Target
from skycrane.environment.environment import GRAVITY
from skycrane.math.components import Mat3, Quat, Vec3, safe_sqrt
from skycrane.vehicles.multirotor import Multirotor


class PoseMemory(eqx.Module):
    """Last time, integrals of position [m s] and attitude error [s] (k, 3), or None; and what the slower position loop holds."""

    time: Array | None
    position_integral: Array | None
    attitude_integral: Array | None
    tick: Array | None
    held: tuple[Vec3, Vec3] | None


class Wanted(eqx.Module):
    """The target in components (k,), with the rates of acceleration and angular velocity."""

    p_W: Vec3
    v_W: Vec3
    a_W: Vec3
    jerk_W: Vec3
    R_WD: Mat3
    w_D: Vec3
    alpha_D: Vec3


def follow(reference: Any, t: Array) -> Wanted:
    """The target at ``t`` with the time derivatives that it does not name, by differentiating the reference."""
    target: Target
    target, rate = jax.jvp(reference, (t,), (jnp.ones_like(t),))
    return Wanted(
        Vec3.of(target.p_W), Vec3.of(target.v_W), Vec3.of(target.a_W), Vec3.of(rate.a_W), Quat.of(target.q_WB).matrix(),
        Vec3.of(target.w_B), Vec3.of(rate.w_B),
    )  # fmt: skip


def heading_rate(wanted: Wanted) -> Vec3:
    """Time derivative of the target's x axis in world axes: R (w x e_x)."""
    w = wanted.w_D
    return wanted.R_WD @ Vec3(0.0 * w.x, w.z, -w.y)


class _PoseControl(AbstractController):
    """What both controllers share: the position loop, integrals, and its lower rate.

    Attributes:
        model: what the controller believes about its vehicles.
        gains: see :class:`skycrane.control.model.Gains`.
        tilt_max: rad, largest angle of the wanted force from the vertical.
        rise_least: m/s^2, smallest upward part of the wanted specific force.
        integral_max: m/s^2 and rad/s^2, bound of what an integral term may ask for.
        outer_every: static; the position loop runs at every so many control ticks.
    """

    model: VehicleModel
    gains: Gains
    tilt_max: Array | float = 1.05
    rise_least: Array | float = 2.0
    integral_max: Array | float = 3.0
    outer_every: int = eqx.field(static=True, default=1)

    def init(self) -> PoseMemory:
        k, dtype = len(self.model.bodies), self.model.mass.dtype
        zeros = jnp.zeros((k, 3), dtype)
        position = None if self.gains.position_integral is None else zeros
        attitude = None if self.gains.attitude_integral is None else zeros
        time = None if position is None and attitude is None else jnp.asarray(-jnp.inf, dtype)
        slow = self.outer_every > 1
        return PoseMemory(
            time, position, attitude, jnp.zeros((), jnp.int32) if slow else None, (Vec3.of(zeros), Vec3.of(zeros)) if slow else None
        )

    def _specific_force(self, wanted: Wanted, state: VehicleState, memory: PoseMemory) -> tuple[Vec3, Vec3]:
        """A and A' of the module, before the tilt limit is applied to A."""
        g = self.gains
        offset = Vec3(0.0, 0.0, self.model.gravity)
        push = wanted.a_W + offset
        if g.position_integral is not None and memory.position_integral is not None:
            push = push - Vec3.of(g.position_integral).times(Vec3.of(memory.position_integral))
        k_p, k_v = Vec3.of(g.position), Vec3.of(g.velocity)
        e_p, e_v = state.p_WB - wanted.p_W, state.v_W - wanted.v_W
        if self.model.com_B is not None:
            com_B = Vec3.of(self.model.com_B)
            first = self._limited(push - k_p.times(e_p) - k_v.times(e_v))
            R_WD = self._attitude(wanted, first)
            e_p = e_p + state.R_WB @ com_B - R_WD @ com_B
            e_v = e_v + state.R_WB @ state.w_B.cross(com_B) - R_WD @ wanted.w_D.cross(com_B)
        A = push - k_p.times(e_p) - k_v.times(e_v)
        e_a = self._achieved(self._limited(A), state) - offset - wanted.a_W
        return A, wanted.jerk_W - k_p.times(e_v) - k_v.times(e_a)

    def _limited(self, A: Vec3) -> Vec3:
        return limit_tilt(A, self.tilt_max, self.rise_least)

    @abc.abstractmethod
    def _achieved(self, A: Vec3, state: VehicleState) -> Vec3:
        """The specific force that the vehicle exerts now when it is told A."""

    @abc.abstractmethod
    def _attitude(self, wanted: Wanted, A: Vec3) -> Mat3:
        """The wanted attitude for the specific force A."""

    def _outer(self, wanted: Wanted, state: VehicleState, memory: PoseMemory) -> tuple[Vec3, Vec3, PoseMemory]:
        """A and A' at this tick: new, or held since the last tick of the position loop."""
        A, rate = self._specific_force(wanted, state, memory)
        A, rate = jax.jvp(self._limited, (A,), (rate,))
        if memory.tick is None:
            return A, rate, memory
        due = memory.tick % self.outer_every == 0
        A, rate = jax.tree.map(lambda new, old: jnp.where(due, new, old), (A, rate), memory.held)
        return A, rate, eqx.tree_at(lambda m: (m.tick, m.held), memory, (memory.tick + 1, (A, rate)))

    def _integrate(self, t, memory: PoseMemory, e_p: Vec3, e_R: Vec3, unmet_force: Vec3, unmet_moment: Vec3) -> PoseMemory:
        """Integrals a tick later.  They stand still while the rotors cannot give what is asked, and are bounded."""
        if memory.time is None:
            return memory
        dt = jnp.where(memory.time >= 0, t - memory.time, 0.0)

        def advance(integral: Array | None, gain: Array | None, error: Vec3, unmet: Vec3, size) -> Array | None:
            if integral is None or gain is None:
                return None
            met = unmet.norm() <= 1e-3 * size
            bound = self.integral_max / jnp.maximum(gain, 1e-9)
            return jnp.clip(integral + jnp.where(met, dt, 0.0)[:, None] * error.array(), -bound, bound)

        weight = self.model.mass * self.model.gravity
        arm = jnp.abs(self.model.allocation.effectiveness[:, 3:5]).max((-2, -1))
        g = self.gains
        return PoseMemory(
            jnp.asarray(t, memory.time.dtype),
            advance(memory.position_integral, g.position_integral, e_p, unmet_force, weight),
            advance(memory.attitude_integral, g.attitude_integral, e_R, unmet_moment, weight * arm),
            memory.tick, memory.held,
        )  # fmt: skip

    def _angular(self, state: VehicleState, R_WD: Mat3, w_D: Vec3, alpha_D: Vec3 | None, memory: PoseMemory) -> Vec3:
        g = self.gains
        alpha = geometric_acceleration(state.R_WB, state.w_B, R_WD, w_D, Vec3.of(g.attitude), Vec3.of(g.rate), alpha_D)
        if g.attitude_integral is not None and memory.attitude_integral is not None:
            alpha = alpha - Vec3.of(g.attitude_integral).times(Vec3.of(memory.attitude_integral))
        return self.model.moment(state.w_B, alpha)


class GeometricControl(_PoseControl):
    """Geometric tracking control on SE(3) for k vehicles whose rotors push along body z."""

    @classmethod
    def of(
        cls,
        vehicles: Multirotor | Sequence[Multirotor],
        bodies: Sequence[int] | None = None,
        rotors: str = "rotors",
        gravity: Array | float = GRAVITY,
        gains: Gains | None = None,
        **options: Any,
    ) -> GeometricControl:
        """For vehicles as they are believed to be; default gains; ``options`` are the other fields."""
        model = VehicleModel.of(vehicles, bodies, rotors, gravity)
        return cls(model, default_gains(vehicles, gravity) if gains is None else gains, **options)

    def _achieved(self, A: Vec3, state: VehicleState) -> Vec3:
        b3 = state.R_WB.T.z
        return jnp.maximum(A.dot(b3), 0.0) * b3

    def _attitude(self, wanted: Wanted, A: Vec3) -> Mat3:
        return attitude_along(A, wanted.R_WD.T.x)

    def __call__(self, t: Array, measurement: Measurement, reference: Any, memory: PoseMemory):
        """Rotor speeds that follow ``reference(t)``."""
        state, wanted = self.model.read(measurement), follow(reference, t)
        A, A_rate, memory = self._outer(wanted, state, memory)
        R_WD, R_rate = jax.jvp(attitude_along, (A, wanted.R_WD.T.x), (A_rate, heading_rate(wanted)))
        w_D = (R_WD.T @ R_rate).vee()
        moment_B = self._angular(state, R_WD, w_D, None, memory)
        zero = jnp.zeros_like(A.x)
        thrust = self.model.mass * A.dot(state.R_WB.T.z)
        allocated = self.model.allocation(Vec3(zero, zero, thrust), moment_B)
        memory = self._integrate(
            t, memory, state.p_WB - wanted.p_W, attitude_error(state.R_WB, R_WD), allocated.unmet_force_B, allocated.unmet_moment_B
        )
        return self.model.command(allocated), memory


class FullPoseControl(_PoseControl):
    """Position and attitude apart, for k vehicles that push every way.

    ``lateral_force`` (k,): sideways force [N] in body axes up to which the wanted attitude is kept; None where no direction is
    out of reach, so that the attitude is always that of the target.
    """

    lateral_force: Array | None = None

    @classmethod
    def of(
        cls,
        vehicles: Multirotor | Sequence[Multirotor],
        bodies: Sequence[int] | None = None,
        rotors: str = "rotors",
        gravity: Array | float = GRAVITY,
        gains: Gains | None = None,
        margin: float = 0.8,
        **options: Any,
    ) -> FullPoseControl:
        """For vehicles as they are believed to be (concrete numbers); default gains; ``options`` are the other fields.

        ``lateral_force`` is found from the rotors: ``margin`` times what they can give in the worst direction while they carry
        the weight.
        """
        model = VehicleModel.of(vehicles, bodies, rotors, gravity)
        if "lateral_force" not in options:
            weight = [float(m) * float(gravity) for m in model.mass]
            force = [margin * lateral_force(model.allocation, w, i) for i, w in enumerate(weight)]
            lifts = all(f >= w and carries_any_way(model.allocation, w, i) for i, (f, w) in enumerate(zip(force, weight, strict=True)))
            options["lateral_force"] = None if lifts else jnp.array(force)
        return cls(model, default_gains(vehicles, gravity) if gains is None else gains, **options)

    def _achieved(self, A: Vec3, state: VehicleState) -> Vec3:
        if self.lateral_force is None:
            return A
        A_B = state.R_WB.T @ A
        sideways = safe_sqrt(A_B.x * A_B.x + A_B.y * A_B.y)
        most = self.lateral_force / self.model.mass
        over = sideways > most
        factor = jnp.where(over, most / jnp.where(over, sideways, 1.0), 1.0)
        return state.R_WB @ Vec3(factor * A_B.x, factor * A_B.y, jnp.maximum(A_B.z, 0.0))

    def _attitude(self, wanted: Wanted, A: Vec3) -> Mat3:
        return self._turned(wanted.R_WD, A)

    def _turned(self, R_WD: Mat3, A: Vec3) -> Mat3:
        if self.lateral_force is None:
            return R_WD
        ratio = jnp.minimum(self.lateral_force / (self.model.mass * A.norm()), 1.0)
        return turn_towards(R_WD, A, jnp.arcsin(jnp.minimum(ratio, 1.0 - 1e-6)))

    def __call__(self, t: Array, measurement: Measurement, reference: Any, memory: PoseMemory):
        """Rotor speeds that follow ``reference(t)``."""
        state, wanted = self.model.read(measurement), follow(reference, t)
        A, A_rate, memory = self._outer(wanted, state, memory)
        turning = wanted.R_WD @ Mat3.skew(wanted.w_D)
        R_WD, R_rate = jax.jvp(self._turned, (wanted.R_WD, A), (turning, A_rate))
        w_D = (R_WD.T @ R_rate).vee()
        moment_B = self._angular(state, R_WD, w_D, wanted.alpha_D, memory)
        allocated = self.model.allocation(self.model.mass * (state.R_WB.T @ A), moment_B)
        memory = self._integrate(
            t, memory, state.p_WB - wanted.p_W, attitude_error(state.R_WB, R_WD), allocated.unmet_force_B, allocated.unmet_moment_B
        )
        return self.model.command(allocated), memory


__all__ = ["FullPoseControl", "GeometricControl", "PoseMemory", "Wanted", "follow"]
