"""The equations of steady motion of any system, as residuals of bounded unknowns.

Steady motion: all bodies, and nodes of cables, move like one rigid body with the velocity V of the main body's point p0 and the turn rate W
about the vertical.  Then velocities follow from places (``v = V + W e_z x (p - p0)``, ``w_B = W R^T e_z``) and what must vanish is

    M [R^T (a - W e_z x v); w_B']   of every body [N, N m]
    a - W e_z x v                   of every node
    m'                              of any other memory
    T + g - sqrt(T^2 + g^2)         of every constraint row

(the last is the Fischer-Burmeister form of multiplier T >= 0, gap g >= 0, T g = 0, both made dimensionless).

Unknowns: roll and pitch of every body with rotors, its heading and the place of all such bodies relative to each other being given;
place and attitude of every passive body; (speed / reference)^2 of every rotor, in which the wrench is linear and smooth at a stopped
rotor, within its limits; memory of other elements; multipliers; with a free spin, W and the horizontal part of V.  Motor lag, throttle
curve and battery play no part in steady flight except through the limits: rotors turn at the speed that is asked for.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from skycrane.analysis.coordinates import Steady
from skycrane.core.bodies import BodyState, State
from skycrane.core.constraint import assemble, rows_of
from skycrane.core.system import System
from skycrane.elements.motors import PoweredMemory
from skycrane.elements.rotors import AbstractRotors
from skycrane.math.rotation import exp, from_euler, multiply, to_euler, to_matrix
from skycrane.simulation.integrators import SecondOrder

MOST_PITCH = np.radians(89.0)  # Euler angles are singular at 90 degrees
MOST_SPIN = 200.0  # rad/s


class Layout(NamedTuple):
    """Which unknowns there are and where (static)."""

    rotor_bodies: tuple[int, ...]  # the main body first
    passive_bodies: tuple[int, ...]
    rotors: tuple[str, ...]  # elements
    spin: bool
    free_speed: bool
    memory_size: int
    rows: int


class Problem(eqx.Module):
    """Steady motion of one system.

    ``system``: with quasi-static rotors without limits; ``constraints`` apart from it; ``guess``: places, attitudes and memory to start
    from; ``command``: of elements other than rotors; ``velocity_W`` (3,) and ``turn_rate`` of the main body; ``angles`` (nb, 3) roll,
    pitch, yaw, of which the yaw is used; ``speed_scale``: reference speeds by element; ``weights`` (r,) of the residuals.
    """

    layout: Layout = eqx.field(static=True)
    system: System
    constraints: dict
    guess: State
    command: dict
    velocity_W: Array
    turn_rate: Array
    angles: Array
    speed_scale: dict
    force_scale: Array
    length_scale: Array
    weights: Array
    t: Array

    def unpack(self, z: Array) -> tuple[State, dict, Steady, Array, Array]:
        """State, command, steady motion, multipliers and speed factor at the unknowns z."""
        take = _Reader(z)
        L = self.layout
        b = self.guess.bodies
        factor = take(1)[0] if L.free_speed else jnp.ones(())
        velocity = self.velocity_W * factor
        turn_rate = self.turn_rate
        if L.spin:
            extra = take(3)
            turn_rate = extra[0]
            velocity = velocity + jnp.concatenate([extra[1:], jnp.zeros(1)])
        order = (*L.rotor_bodies, *L.passive_bodies)
        tilt = take(2 * len(L.rotor_bodies)).reshape(-1, 2)
        yaw = self.angles[np.array(L.rotor_bodies), 2]
        q = from_euler("zyx", jnp.stack([yaw, tilt[:, 1], tilt[:, 0]], -1))
        p = b.p_WB
        if L.passive_bodies:
            passive = np.array(L.passive_bodies)
            moved = take(6 * len(passive)).reshape(-1, 2, 3)
            q = jnp.concatenate([q, multiply(b.q_WB[passive], exp(moved[:, 1]))])[np.argsort(order)]
            p = jnp.concatenate([p[np.array(L.rotor_bodies)], p[passive] + self.length_scale[passive, None] * moved[:, 0]])[
                np.argsort(order)
            ]
        elif order != tuple(range(len(order))):
            q = q[np.argsort(order)]
        command = dict(self.command)
        for name in L.rotors:
            scale = self.speed_scale[name]
            # The hair above zero keeps the derivative of the root finite where a rotor stands still.
            command[name] = scale * jnp.sqrt(take(scale.size).reshape(scale.shape) + 1e-16)
        steady = Steady(velocity, p[L.rotor_bodies[0]], turn_rate)
        R = to_matrix(q)
        bodies = BodyState(p, q, steady.velocities(p), turn_rate * R[:, 2, :])
        memory = self._memory(take(L.memory_size), steady)
        return State(bodies, memory), command, steady, self.force_scale.sum() * take(L.rows), factor

    def _memory(self, values: Array, steady: Steady) -> dict:
        moving, fixed = eqx.partition(self._unknown_memory(), eqx.is_inexact_array)
        flat, unravel = ravel_pytree(moving)
        free = eqx.combine(unravel(flat + values), fixed)
        complete = lambda x: SecondOrder(x, steady.velocities(x))  # noqa: E731
        return jax.tree.map(
            lambda old, new: complete(new) if _is_nodes(old) else new, self.guess.memory, free, is_leaf=_is_nodes
        )  # fmt: skip

    def _unknown_memory(self) -> dict:
        """Memory whose values are unknown: of nodes the positions only, their velocities follow from the steady motion."""
        return jax.tree.map(lambda x: x.position if _is_nodes(x) else x, self.guess.memory, is_leaf=_is_nodes)

    def residual(self, z: Array) -> Array:
        """Dimensionless residuals (r,), weighted."""
        state, command, steady, T, _ = self.unpack(z)
        force, moment, left, gaps = self.imbalance(state, command, steady, T)
        left = jax.tree.map(lambda x: x.velocity / 9.81 if _is_nodes(x) else x, left, is_leaf=_is_nodes)
        memory = ravel_pytree(eqx.filter(left, eqx.is_inexact_array))[0]
        scale = self.force_scale[:, None]
        c, s = jnp.cos(self.angles[self.layout.rotor_bodies[0], 2]), jnp.sin(self.angles[self.layout.rotor_bodies[0], 2])
        # Along and across the heading, so that a row has a meaning for the pilot.
        force = jnp.stack([c * force[:, 0] + s * force[:, 1], c * force[:, 1] - s * force[:, 0], force[:, 2]], -1)
        parts = [(force / scale).ravel(), (moment / (scale * self.length_scale[:, None])).ravel(), memory]
        T = T / self.force_scale.sum()
        # Smooth near T = gap = 0 to within 1e-12.
        parts.append(T + gaps - jnp.sqrt(T * T + gaps * gaps + 1e-24))
        return self.weights * jnp.concatenate(parts)

    def imbalance(self, state: State, command: dict, steady: Steady, T: Array) -> tuple[Array, Array, dict, Array]:
        """Surplus force (nb, 3) [N, world axes] and moment (nb, 3) [N m, body axes, about B], rates of memory, scaled gaps."""
        prepared = self.system.prepare()
        rates = self.system.dynamics(self.t, state, command, prepared)
        expected = steady.rates(state)
        a, alpha = rates.bodies.v_W - expected.bodies.v_W, rates.bodies.w_B
        kin = self.system.kinematics(state, prepared)
        rows = rows_of(self.constraints, self.t, kin, state.memory)
        for k, row in enumerate(rows):
            dv, dw = prepared.solve(kin.R_WB, *assemble(row.wrenches, self.system.bodies.count))
            a, alpha = a + T[k] * dv.array(), alpha + T[k] * dw.array()
        R = to_matrix(state.bodies.q_WB)
        motion = jnp.concatenate([jnp.einsum("bji,bj->bi", R, a), alpha], -1)
        wrench = jnp.einsum("bij,bj->bi", self.system.bodies.matrix(), motion)
        force = jnp.einsum("bij,bj->bi", R, wrench[:, :3])
        left = jax.tree.map(lambda x, y: x - y, rates.memory, expected.memory)
        gaps = jnp.array([r.gap for r in rows]) / self.length_scale.max() if rows else jnp.zeros(0)
        return force, wrench[:, 3:], left, gaps

    def cost(self, z: Array) -> Array:
        """What to choose by among many trims: shaft power of all rotors, made dimensionless; with a free speed minus the speed factor."""
        state, command, _, _, factor = self.unpack(z)
        if self.layout.free_speed:
            return -factor
        kin = self.system.kinematics(state, self.system.prepare())
        speeds = {name: e.speed_fraction * command[name] for name, e in rotor_elements(self.system).items()}
        power = [jnp.sum(e.loads(self.t, kin, speeds[n]).torque * speeds[n]) for n, e in rotor_elements(self.system).items()]
        return jnp.stack(power).sum() / (self.force_scale.sum() * jnp.sqrt(9.81 * self.length_scale.max()))


class Finished(NamedTuple):
    """A candidate for a trim of the system as it is: ``state`` with the memory of the motors, ``command``, ``steady``; surplus
    ``force_W`` and ``moment_B`` (nb, 3) and ``rates`` of memory; ``angles`` (nb, 3) roll, pitch, yaw; ``power`` [W] at the shafts;
    ``supply`` (k,) voltage over nominal by rotor element with a battery."""

    state: State
    command: dict
    steady: Steady
    force_W: Array
    moment_B: Array
    rates: dict
    angles: Array
    power: Array
    supply: dict


@eqx.filter_jit
def finish(problem: Problem, system: System, memory: dict, z: Array) -> Finished:
    """Evaluate the unknowns z with the system itself: its limits, lag, batteries and constraints.

    ``memory`` of the guess: batteries keep their charge.
    """
    state, command, steady, _, _ = problem.unpack(z)
    prepared = system.prepare()
    kin = system.kinematics(state, prepared)
    own = dict(state.memory)
    power, supply = jnp.zeros(()), {}
    for name, e in rotor_elements(system).items():
        speed = e.speed_fraction * command[name]
        shaft = (rotor_elements(problem.system)[name].loads(problem.t, kin, speed).torque * speed).sum(-1)
        power = power + shaft.sum()
        share = jnp.ones_like(shaft)
        if e.battery is not None:
            voltage, _ = e.battery.voltage_and_current(memory[name].charge, jnp.maximum(shaft, 0.0))
            share = supply[name] = voltage / e.battery.nominal
            own[name] = PoweredMemory(speed, memory[name].charge)
        elif e.time_up is not None:
            own[name] = speed
        if e.throttle is not None:
            command[name] = e.throttle.command_for(command[name] / share[:, None])
    state = State(state.bodies, own)
    as_it_is = eqx.tree_at(lambda p: (p.system, p.constraints), problem, (system, {}))
    force, moment, rates, _ = as_it_is.imbalance(state, command, steady, jnp.zeros(0))
    angles = to_euler("zyx", state.bodies.q_WB)[:, ::-1]
    return Finished(state, command, steady, force, moment, rates, angles, power, supply)


@eqx.filter_jit
def evaluate(problem: Problem, z: Array) -> tuple[Array, Array]:
    """Residuals and their Jacobian."""

    def twice(z):
        r = problem.residual(z)
        return r, r

    J, r = jax.jacfwd(twice, has_aux=True)(z)
    return r, J


@eqx.filter_jit
def evaluate_cost(problem: Problem, z: Array) -> tuple[Array, Array]:
    """Cost and its gradient."""
    return jax.value_and_grad(problem.cost)(z)


class _Reader:
    """Takes unknowns off the front of a vector."""

    def __init__(self, z: Array):
        self.z, self.at = z, 0

    def __call__(self, count: int) -> Array:
        self.at += count
        return self.z[self.at - count : self.at]


def _is_nodes(x: Any) -> bool:
    return isinstance(x, SecondOrder) and x.position.ndim > 0 and x.position.shape[-1] == 3


def rotor_elements(system: System) -> dict[str, AbstractRotors]:
    """The rotors of a system by element name."""
    return {name: e for name, e in sorted(system.elements.items()) if isinstance(e, AbstractRotors)}


def quasi_static(system: System) -> System:
    """The system with rotors that turn at once, without limit, at the speed in rad/s that is asked for."""
    elements = dict(system.elements)
    for name, e in rotor_elements(system).items():
        unlimited = jnp.asarray(np.full(e.speed_max.shape, np.inf))
        elements[name] = dataclasses.replace(
            e,
            time_up=None,
            time_down=None,
            throttle=None,
            battery=None,
            speed_min=jnp.asarray(np.zeros(e.speed_max.shape)),
            speed_max=unlimited,
        )
    return System(system.bodies, elements, {}, system.environment)


def length_scales(system: System) -> np.ndarray:
    """A length (nb,) [m] of every body by which moments are compared with forces: the rotors' mean arm, or the radius of gyration."""
    inertia = np.asarray(system.bodies.inertia_B)
    size = np.sqrt(np.trace(inertia, axis1=1, axis2=2) / (3 * np.asarray(system.bodies.mass)))
    for e in rotor_elements(system).values():
        arms = np.linalg.norm(np.asarray(e.position_B), axis=-1).mean(-1)
        for k, body in enumerate(e.bodies):
            size[body] = max(size[body], arms[k])
    return size
