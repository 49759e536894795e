"""Cascaded PID control as flight controllers use it, in four loops, each giving the next its set point:

    position   v_s = v_d + P_p (p_d - p)                                  limited to a speed
    velocity   a_s = a_d + P_v (v_s - v) + I_v int(v_s - v) - D_v v'         with limited tilt
    attitude   w_s = P_a e_q + R^T Rd w_d        limited to a rate; e_q the quaternion error, w_d from jerk and yaw rate of the
    target rate       alpha = P_w (w_s - w) + I_w int(w_s - w) - D_w w'

Derivatives act on the measurement, through a first-order low-pass filter.  Anti-windup: an integral stands still while the
allocation cannot meet the demand that it feeds, or while a limit of its own loop is active, and is bounded.  Structure: L. Meier
et al., "PX4: a node-based multithreaded open source robotics framework", ICRA 2015; quaternion attitude loop: D. Brescianini, M.
Hehn, R. D'Andrea, "Nonlinear quadrocopter attitude control", ETH Zurich 2013.  The rate loop works on angular accelerations; the
model turns them into moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from skycrane.control.attitude import attitude_along, limit_tilt, quaternion_error
from skycrane.control.model import VehicleModel, default_gains
from skycrane.control.pose import follow, heading_rate
from skycrane.core.controller import AbstractController, Measurement
from skycrane.environment.environment import GRAVITY
from skycrane.math.components import Mat3, Vec3
from skycrane.vehicles.multirotor import Multirotor


class PidGains(eqx.Module):
    """Gains (k, 3) or (3,): position and velocity along world axes, attitude and rate about body axes.

    ``position`` P_p 1/s; ``velocity`` P_v 1/s, ``velocity_integral`` I_v 1/s^2, ``velocity_derivative`` D_v (no unit);
    ``attitude`` P_a 1/s; ``rate`` P_w 1/s, ``rate_integral`` I_w 1/s^2, ``rate_derivative`` D_w (no unit).
    """

    position: Array
    velocity: Array
    velocity_integral: Array
    velocity_derivative: Array
    attitude: Array
    rate: Array
    rate_integral: Array
    rate_derivative: Array


class PidMemory(eqx.Module):
    """Last time [s]; integrals [m, rad], filtered velocity and rate and their derivatives, (k, 3); count of ticks; held set
    point."""

    time: Array
    velocity_integral: Array
    rate_integral: Array
    velocity: Array
    rate: Array
    tick: Array
    specific_force: Array


def default_pid_gains(vehicles: Multirotor | Sequence[Multirotor], gravity: Array | float = GRAVITY) -> PidGains:
    """Gains (k, 3) from :func:`skycrane.control.model.default_gains`: the same attitude loop; outer loops at half the frequency,
    since here the attitude's set point comes without the rate of its feedback part; gentle integrals, no derivative terms."""
    g = default_gains(vehicles, gravity)
    position, attitude = 0.5 * g.position / g.velocity, g.attitude / g.rate
    velocity, nothing = 0.5 * g.velocity, jnp.zeros_like(position)
    return PidGains(position, velocity, 0.1 * position * velocity, nothing, attitude, g.rate, 0.1 * attitude * g.rate, nothing)


class CascadedPid(AbstractController):
    """Cascaded PID for k vehicles whose rotors push along body z.

    Attributes:
        model: what the controller believes about its vehicles.
        gains: see :class:`PidGains`.
        speed_max: m/s, of the velocity set point, sideways and up or down alike.
        tilt_max: rad; ``rise_least`` m/s^2, smallest upward part of the wanted specific force.
        rate_max: rad/s, of the rate set point about each axis.
        integral_max: m/s^2 and rad/s^2, bound of what an integral term may ask for.
        filter_time: s, of the low-pass filters of both derivatives.
        outer_every: static; position and velocity loops run at every so many control ticks.
    """

    model: VehicleModel
    gains: PidGains
    speed_max: Array | float = 10.0
    tilt_max: Array | float = 0.8
    rise_least: Array | float = 2.0
    rate_max: Array | float = 6.0
    integral_max: Array | float = 3.0
    filter_time: Array | float = 0.02
    outer_every: int = eqx.field(static=True, default=1)

    @classmethod
    def of(
        cls,
        vehicles: Multirotor | Sequence[Multirotor],
        bodies: Sequence[int] | None = None,
        rotors: str = "rotors",
        gravity: Array | float = GRAVITY,
        gains: PidGains | None = None,
        **options: Any,
    ) -> CascadedPid:
        """For vehicles as they are believed to be; default gains; ``options`` are the other fields."""
        model = VehicleModel.of(vehicles, bodies, rotors, gravity)
        return cls(model, default_pid_gains(vehicles, gravity) if gains is None else gains, **options)

    def init(self) -> PidMemory:
        dtype = self.model.mass.dtype
        zeros = jnp.zeros((len(self.model.bodies), 3), dtype)
        return PidMemory(jnp.asarray(-jnp.inf, dtype), zeros, zeros, zeros, zeros, jnp.zeros((), jnp.int32), zeros)

    def __call__(self, t: Array, measurement: Measurement, reference: Any, memory: PidMemory):
        """Rotor speeds that follow ``reference(t)``."""
        state, wanted, g = self.model.read(measurement), follow(reference, t), self.gains
        begun = memory.time >= 0
        dt = jnp.where(begun, t - memory.time, 0.0)
        v, w = state.v_W.array(), state.w_B.array()
        velocity, acceleration = self._filtered(begun, dt, v, memory.velocity)
        rate, spin_up = self._filtered(begun, dt, w, memory.rate)

        e_v = wanted.v_W.array() + g.position * (wanted.p_W - state.p_WB).array() - v
        e_v = self._within_speed(e_v + v) - v
        a_s = wanted.a_W.array() + g.velocity * e_v + g.velocity_integral * memory.velocity_integral - g.velocity_derivative * acceleration
        asked = Vec3.of(a_s) + Vec3(0.0, 0.0, self.model.gravity)
        new_A = limit_tilt(asked, self.tilt_max, self.rise_least)
        due = memory.tick % self.outer_every == 0
        held = jnp.where(due, new_A.array(), memory.specific_force)
        A = Vec3.of(held)

        # The rate of the attitude's set point comes from the target alone: its jerk tilts the axis, its yaw rate turns the
        # heading.
        R_WD, R_rate = jax.jvp(attitude_along, (A, wanted.R_WD.T.x), (wanted.jerk_W, heading_rate(wanted)))
        w_wanted = state.R_WB.T @ (R_WD @ (R_WD.T @ R_rate).vee())
        w_s = g.attitude * quaternion_error(state.R_WB, R_WD).array() + w_wanted.array()
        w_s = jnp.clip(w_s, -self.rate_max, self.rate_max)
        e_w = w_s - w
        alpha = g.rate * e_w + g.rate_integral * memory.rate_integral - g.rate_derivative * spin_up
        moment_B = self.model.moment(state.w_B, Vec3.of(alpha))
        zero = jnp.zeros_like(A.x)
        thrust = self.model.mass * A.dot(state.R_WB.T.z)
        allocated = self.model.allocation(Vec3(zero, zero, thrust), moment_B)

        weight = self.model.mass * self.model.gravity
        limited = ((asked - new_A).norm() > 1e-6) | (allocated.unmet_force_B.norm() > 1e-3 * weight)
        short = jnp.stack(jnp.broadcast_arrays(*allocated.unmet_moment_B.components()), -1)
        size = Mat3.of(self.model.inertia_B).array().max(-1) * self.rate_max
        memory = PidMemory(
            jnp.asarray(t, memory.time.dtype),
            self._advance(memory.velocity_integral, e_v, dt, g.velocity_integral, ~limited[:, None]),
            self._advance(memory.rate_integral, e_w, dt, g.rate_integral, jnp.abs(short) <= 1e-3 * size),
            velocity,
            rate,
            memory.tick + 1,
            held,
        )
        return self.model.command(allocated), memory

    def _within_speed(self, v: Array) -> Array:
        """A velocity (k, 3), scaled back to the largest speed."""
        square = (v * v).sum(-1, keepdims=True)
        fast = square > jnp.square(self.speed_max)
        return v * jnp.where(fast, self.speed_max / jnp.sqrt(jnp.where(fast, square, 1.0)), 1.0)

    def _filtered(self, begun: Array, dt: Array, value: Array, old: Array) -> tuple[Array, Array]:
        """Low-pass filtered value and its derivative; at the first tick the filter starts from the value."""
        share = dt / (dt + self.filter_time)
        new = jnp.where(begun, old + share * (value - old), value)
        return new, (value - new) / self.filter_time

    def _advance(self, integral: Array, error: Array, dt: Array, gain: Array, free: Array) -> Array:
        bound = self.integral_max / jnp.maximum(gain, 1e-9)
        return jnp.clip(integral + jnp.where(free, dt * error, 0.0), -bound, bound)


def with_gains(controller: CascadedPid, **changes: Array) -> CascadedPid:
    """The same controller with some gains replaced, by name."""
    names, values = zip(*changes.items(), strict=True)
    return eqx.tree_at(lambda c: [getattr(c.gains, n) for n in names], controller, [jnp.asarray(v) for v in values])


__all__ = ["CascadedPid", "PidGains", "PidMemory", "default_pid_gains", "with_gains"]
