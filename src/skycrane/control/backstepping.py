"""Adaptive backstepping on the pose of an end-effector, for k vehicles that push every way.

The end-effector sits at r_e from B; p_e = p + R r_e.  With pose errors e_p = p_e - p_d and e_R, and c the coupling of errors to motion,

    SO(3):  e_R = 1/2 (R_d^T R - R^T R_d)^vee,  c = e_R,            V_1 = 1/2 |e_p|^2 + 1/2 tr(I - R_d^T R)
    Euler:  e_R = Theta - Theta_d,              c = J_r^T e_R,      V_1 = 1/2 |e_p|^2 + 1/2 |e_R|^2

(z-y-x angles; the paper's form, for comparison: it breaks down at a pitch of 90 degrees), the wanted velocity alpha = (alpha_v,
alpha_w) at B in body axes makes V_1 fall:

    alpha_w = R^T R_d w_d - K_R e_R   (Euler: J_r^-1 (Theta_d' - K_R e_R)),      alpha_v = R^T (p_d' - K_p e_p) - alpha_w x r_e

With z = nu - alpha, estimates th of the inertial parameters (:mod:`skycrane.control.rigid_regressor`) and w_e of the wrench that the
surroundings exert on the end-effector (world axes), G_e w_e its wrench about B, the rotors are asked for

    W = Y(nu, alpha, alpha') th - J^T z_1 - K z - G_e w_e,      J^T z_1 = (R^T e_p, r_e x R^T e_p + c)
    th' = -Gamma Y^T z,     w_e' = Gamma_w G_e^T z

so that with V = V_1 + 1/2 z^T M z + 1/2 |th - theta|^2 + 1/2 |w_e - w|^2 (norms of Gamma^-1, Gamma_w^-1)

    V' = -e_p^T K_p e_p - e_R^T K_R e_R - z^T K z

where thrusts follow at once and no limit is met.  alpha' is exact, by differentiating alpha along the motion.  The abstract of A. Nikou,
G. Gavridis and K. Kyriakopoulos ("Mechanical design, modelling and control of a novel aerial manipulator", ICRA 2015) names an adaptive
backstepping law; the law itself is worked out here, after M. Krstic, I. Kanellakopoulos and P. Kokotovic, "Nonlinear and Adaptive Control
Design", 1995, ch. 4.

A force task (:class:`ForceTask`) moves the target into a surface until the wanted force is felt.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from skycrane.control.euler import angles_of, body_rates_of, rates_of
from skycrane.control.model import VehicleModel, VehicleState
from skycrane.control.pose import follow
from skycrane.control.redistribution import Shift
from skycrane.control.rigid_regressor import Inertial, Motion
from skycrane.core.controller import AbstractController, Measurement
from skycrane.math.components import Mat3, Vec3


class BacksteppingGains(eqx.Module):
    """Gains (k, 3) or (3,): ``position`` K_p 1/s (world axes), ``attitude`` K_R 1/s, ``velocity`` N s/m and ``rate`` N m s of K
    (body axes); adaptation Gamma of ``mass``, ``moment``, ``inertia`` and Gamma_w of ``force`` and ``torque`` (scalars, 0 for none)."""

    position: Array
    attitude: Array
    velocity: Array
    rate: Array
    mass: Array | float = 0.5
    moment: Array | float = 0.05
    inertia: Array | float = 0.01
    force: Array | float = 8.0
    torque: Array | float = 0.8


class ForceTask(eqx.Module):
    """Press against a surface: from ``start`` (k,) s on the target moves by s along minus ``normal_W`` (k, 3), which points from the
    surface to the tool, with s' = ``gain`` (k,) m/(N s) times (``force`` (k,) N - felt force), 0 <= s <= ``depth`` (k,) m.

    ``element`` (static) is the contact that feels the force, ``points`` (static) its points that belong to the vehicles.
    """

    normal_W: Array
    force: Array
    start: Array
    gain: Array
    depth: Array
    element: str = eqx.field(static=True)
    points: tuple[int, ...] = eqx.field(static=True)

    def felt(self, measurement: Measurement) -> Vec3:
        """Force on the tools in world axes, components (k,) N, by the contact's force sensor."""
        return Vec3.of(jnp.stack([measurement.memory[self.element][i] for i in self.points]))

    def rate(self, t: Array, felt: Vec3, shift: Array) -> Array:
        """s' (k,), 0 where s is at one of its ends and would leave it."""
        wanted = jnp.where(t >= self.start, self.gain * (self.force - felt.dot(Vec3.of(self.normal_W))), 0.0)
        held = ((shift <= 0.0) & (wanted < 0)) | ((shift >= self.depth) & (wanted > 0))
        return jnp.where(held, 0.0, wanted)


class Schedule(eqx.Module):
    """Wrenches (m, 6) in world axes on the end-effector that the controller knows beforehand, each from ``start`` to ``end`` (m,) s."""

    start: Array
    end: Array
    wrench: Array

    def at(self, t: Array) -> tuple[Vec3, Vec3]:
        """Force and torque now, components of shape (1,)."""
        now = jnp.where(((t >= self.start) & (t < self.end))[:, None], self.wrench, 0.0).sum(0, keepdims=True)
        return Vec3.of(now[:, :3]), Vec3.of(now[:, 3:])


class Estimates(eqx.Module):
    """Memory: last time [s], inertial parameters, wrench on the end-effector (k, 6), shift of the force task (k,)."""

    time: Array
    theta: Inertial
    wrench: Array
    shift: Array


class Errors(NamedTuple):
    """e_p, e_R, coupling c, z_v, z_w and alpha_v, alpha_w of the module."""

    position: Vec3
    attitude: Vec3
    coupling: Vec3
    z_v: Vec3
    z_w: Vec3
    alpha_v: Vec3
    alpha_w: Vec3


class Backstepping(AbstractController):
    """The law of the module.

    Attributes:
        model: vehicles as they are believed to be at first; B is its point of reference.
        gains: see :class:`BacksteppingGains`.
        tip_B: (k, 3) m, r_e.
        start: estimates at the beginning.
        shift_allocation: redistribution of thrust about the centre of mass, or None for the bounded optimum of ``model.allocation``.
        schedule: wrenches known beforehand, or None. ``task``: a force task, or None.
        least_mass: kg, below which the estimate does not fall.
        euler: static; attitude errors as Euler angles. ``felt``: static; the wrench is taken from the force task's sensor too.
    """

    model: VehicleModel
    gains: BacksteppingGains
    tip_B: Array
    start: Inertial
    shift_allocation: Shift | None = None
    schedule: Schedule | None = None
    task: ForceTask | None = None
    least_mass: Array | float = 0.1
    euler: bool = eqx.field(static=True, default=False)
    felt: bool = eqx.field(static=True, default=False)

    def init(self) -> Estimates:
        k, dtype = len(self.model.bodies), self.model.mass.dtype
        return Estimates(jnp.asarray(-jnp.inf, dtype), self.start, jnp.zeros((k, 6), dtype), jnp.zeros(k, dtype))

    # -- the law ----------------------------------------------------------------------------------------------------------------------
    def _wanted_velocity(self, R: Mat3, p_e: Vec3, R_d: Mat3, w_d: Vec3, p_d: Vec3, v_d: Vec3) -> tuple[Vec3, Vec3, Vec3, Vec3, Vec3]:
        """alpha_v, alpha_w, e_p, e_R and c."""
        g = self.gains
        e_p = p_e - p_d
        if self.euler:
            angles, wanted = angles_of(R), angles_of(R_d)
            difference = angles - wanted
            e_R = difference.map(lambda a: jnp.arctan2(jnp.sin(a), jnp.cos(a)))
            J_r = rates_of(angles)
            alpha_w = body_rates_of(angles) @ (rates_of(wanted) @ w_d - Vec3.of(g.attitude).times(e_R))
            c = J_r.T @ e_R
        else:
            Q = R_d.T @ R
            e_R = Q.vee()
            alpha_w = Q.T @ w_d - Vec3.of(g.attitude).times(e_R)
            c = e_R
        alpha_v = R.T @ (v_d - Vec3.of(g.position).times(e_p)) - alpha_w.cross(Vec3.of(self.tip_B))
        return alpha_v, alpha_w, e_p, e_R, c

    def _moving(self, t: Array, state: VehicleState, reference: Any, shift: Array, shift_rate: Array):
        """Arguments of :meth:`_wanted_velocity` and their time derivatives."""
        wanted, r_e = follow(reference, t), Vec3.of(self.tip_B)
        R_d, w_d = wanted.R_WD, wanted.w_D
        turn_d = w_d.cross(r_e)
        p_d = wanted.p_W + R_d @ r_e
        v_d = wanted.v_W + R_d @ turn_d
        a_d = wanted.a_W + R_d @ (wanted.alpha_D.cross(r_e) + w_d.cross(turn_d))
        if self.task is not None:
            normal = Vec3.of(self.task.normal_W)
            p_d, v_d = p_d - shift * normal, v_d - shift_rate * normal
        R, w = state.R_WB, state.w_B
        p_e, v_e = state.p_WB + R @ r_e, state.v_W + R @ w.cross(r_e)
        values = (R, p_e, R_d, w_d, p_d, v_d)
        return values, (R @ Mat3.skew(w), v_e, R_d @ Mat3.skew(w_d), wanted.alpha_D, v_d, a_d)

    def errors(self, t: Array, state: VehicleState, reference: Any, memory: Estimates, shift_rate: Array | float = 0.0) -> Errors:
        """All errors at a state."""
        values, _ = self._moving(t, state, reference, memory.shift, shift_rate * jnp.ones_like(memory.shift))
        alpha_v, alpha_w, e_p, e_R, c = self._wanted_velocity(*values)
        return Errors(e_p, e_R, c, state.R_WB.T @ state.v_W - alpha_v, state.w_B - alpha_w, alpha_v, alpha_w)

    def law(self, t: Array, state: VehicleState, reference: Any, memory: Estimates, known: tuple[Vec3, Vec3], shift_rate: Array):
        """Wanted force and moment about B, body axes, and the rates of the estimates (theta, wrench)."""
        g, r_e, R, w = self.gains, Vec3.of(self.tip_B), state.R_WB, state.w_B
        values, rates = self._moving(t, state, reference, memory.shift, shift_rate)
        (alpha_v, alpha_w, e_p, _, c), (b_v, b_w, *_) = jax.jvp(self._wanted_velocity, values, rates)
        z_v, z_w = R.T @ state.v_W - alpha_v, w - alpha_w
        up = R.z * self.model.gravity
        motion = Motion.of(w, alpha_v, alpha_w, b_v, b_w, up)
        force, moment = motion.times(memory.theta)
        pull = R.T @ e_p
        outside_f = R.T @ (known[0] + Vec3.of(memory.wrench[:, :3]))
        outside_m = R.T @ (known[1] + Vec3.of(memory.wrench[:, 3:]))
        force = force - pull - Vec3.of(g.velocity).times(z_v) - outside_f
        moment = moment - r_e.cross(pull) - c - Vec3.of(g.rate).times(z_w) - r_e.cross(outside_f) - outside_m
        slope = motion.transposed(z_v, z_w)
        theta_rate = Inertial(-g.mass * slope.mass, -g.moment * slope.moment, -g.inertia * slope.inertia)
        felt_f, felt_m = g.force * (R @ (z_v + z_w.cross(r_e))), g.torque * (R @ z_w)
        return force, moment, theta_rate, jnp.concatenate([felt_f.array(), felt_m.array()], -1)

    def __call__(self, t: Array, measurement: Measurement, reference: Any, memory: Estimates):
        """Rotor speeds that bring the end-effector to where ``reference(t)``, a target of B, has it."""
        state = self.model.read(measurement)
        shift_rate, known = jnp.zeros_like(memory.shift), (Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))
        if self.schedule is not None:
            known = self.schedule.at(t)
        if self.task is not None:
            touch = self.task.felt(measurement)
            shift_rate = self.task.rate(t, touch, memory.shift)
            if self.felt:
                known = known[0] + touch, known[1]
        force, moment, theta_rate, wrench_rate = self.law(t, state, reference, memory, known, shift_rate)
        com = self.model.com_B
        about_com = moment if com is None else moment - Vec3.of(com).cross(force)
        if self.shift_allocation is None:
            allocated = self.model.allocation(force, about_com)
            command = self.model.command(allocated)
            blocked = allocated.unmet_force_B.norm() > 1e-3 * self.model.mass * self.model.gravity
        else:
            speed, blocked = self.shift_allocation(force, about_com)
            command = {self.model.rotors: speed}
        dt = jnp.where(memory.time >= 0, t - memory.time, 0.0)
        learn = jnp.where(blocked, 0.0, dt)  # what the rotors cannot give says nothing about the vehicle

        def step(value: Array, rate: Array) -> Array:
            return value + (learn if value.ndim == 1 else learn[:, None]) * rate

        theta = jax.tree.map(step, memory.theta, theta_rate)
        theta = eqx.tree_at(lambda x: x.mass, theta, jnp.maximum(theta.mass, self.least_mass))
        shift = memory.shift + dt * shift_rate
        if self.task is not None:
            shift = jnp.clip(shift, 0.0, self.task.depth)
        return command, Estimates(jnp.asarray(t, memory.time.dtype), theta, step(memory.wrench, wrench_rate), shift)


__all__ = ["Backstepping", "BacksteppingGains", "Errors", "Estimates", "ForceTask", "Schedule"]
