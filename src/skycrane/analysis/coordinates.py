"""Minimal coordinates of the state of any system around one state.

Every body has twelve, deviations from the state ``about``: position, attitude, velocity, angular velocity.  Attitude is

* ``rotation_vector``: e in body axes with ``R_WB = R_about Exp(e)`` (no singularity), or
* ``euler``: changes of roll, pitch and yaw (the flight-dynamics convention; singular at a pitch of 90 degrees),

never the four quaternion components, of which one is redundant and would add a zero eigenvalue.  Velocity is in body axes ``R^T v_W`` or in
world axes.  The memory of the elements follows, number by number.

Steady motion.  Where nothing depends on place and heading, a motion that turns at a steady rate W about the vertical through a centre is at
rest in axes that move along; for a state with the velocity V at the place p0 the world rates of that motion are

    p' = V + W e_z x (p - p0),   q' = 1/2 (0, W e_z) q,   v' = W e_z x v,   w_B' = 0

for the bodies and the same for nodes of cables (memory of type ``SecondOrder`` with three components is a position and a velocity in world
axes).  Subtracting these rates (:class:`Steady`) makes a steady turn an equilibrium.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.bodies import BodyState, State
from skycrane.core.system import System
from skycrane.math.rotation import conjugate, exp, from_euler, log, multiply, to_euler, to_matrix
from skycrane.simulation.integrators import SecondOrder

ATTITUDES = {"rotation_vector": ("rx", "ry", "rz"), "euler": ("roll", "pitch", "yaw")}
VELOCITIES = {"body": ("vx", "vy", "vz"), "world": ("vx_W", "vy_W", "vz_W")}
PER_BODY = 12


class Chart(eqx.Module):
    """Coordinates around the state ``about``: :meth:`local` of it is zero.

    ``attitude`` and ``velocity`` (static) are keys of ``ATTITUDES`` and ``VELOCITIES``; ``yaw`` [rad] turns the horizontal axes in which
    positions and world velocities are counted.
    """

    about: State
    attitude: str = eqx.field(static=True, default="rotation_vector")
    velocity: str = eqx.field(static=True, default="body")
    yaw: Array | float = 0.0

    def __check_init__(self):
        for value, allowed in ((self.attitude, ATTITUDES), (self.velocity, VELOCITIES)):
            if value not in allowed:
                raise ValueError(f"{value!r}: expected one of {', '.join(allowed)}")

    def _turned(self, v: Array, sign: float) -> Array:
        """Rotate horizontal components by ``sign * yaw`` about z, array (..., 3)."""
        c, s = jnp.cos(self.yaw), sign * jnp.sin(self.yaw)
        x, y, z = v[..., 0], v[..., 1], v[..., 2]
        return jnp.stack([c * x - s * y, s * x + c * y, z], -1)

    def state(self, x: Array) -> State:
        """The state at coordinates x (n,)."""
        b = self.about.bodies
        nb = b.p_WB.shape[0]
        d = x[: PER_BODY * nb].reshape(nb, 4, 3)
        # from_euler counts yaw first
        euler = self.attitude == "euler"
        q = from_euler("zyx", to_euler("zyx", b.q_WB) + d[:, 1, ::-1]) if euler else multiply(b.q_WB, exp(d[:, 1]))
        if self.velocity == "body":
            v = _apply(to_matrix(q), _apply(_transpose(to_matrix(b.q_WB)), b.v_W) + d[:, 2])
        else:
            v = b.v_W + self._turned(d[:, 2], 1.0)
        bodies = BodyState(b.p_WB + self._turned(d[:, 0], 1.0), q, v, b.w_B + d[:, 3])
        return State(bodies, self._memory_at(x[PER_BODY * nb :]))

    def _memory_at(self, m: Array) -> dict:
        leaves, structure = jax.tree.flatten(self.about.memory, is_leaf=_is_nodes)
        out, start = [], 0

        def take(like, turn=False):
            nonlocal start
            part = m[start : start + like.size].reshape(like.shape)
            start += like.size
            return like + (self._turned(part, 1.0) if turn else part)

        for leaf in leaves:
            if _is_nodes(leaf):
                out.append(SecondOrder(take(leaf.position, True), take(leaf.velocity, True)))
            else:
                out.append(take(leaf) if _is_float(leaf) else leaf)
        return jax.tree.unflatten(structure, out)

    def local(self, state: State) -> Array:
        """The coordinates (n,) of a state."""
        a, b = self.about.bodies, state.bodies
        if self.attitude == "euler":
            d = (to_euler("zyx", b.q_WB) - to_euler("zyx", a.q_WB))[:, ::-1]
            attitude = jnp.mod(d + jnp.pi, 2 * jnp.pi) - jnp.pi
        else:
            attitude = log(multiply(conjugate(a.q_WB), b.q_WB) / jnp.linalg.norm(b.q_WB, axis=-1, keepdims=True))
        if self.velocity == "body":
            v = _apply(_transpose(to_matrix(b.q_WB)), b.v_W) - _apply(_transpose(to_matrix(a.q_WB)), a.v_W)
        else:
            v = self._turned(b.v_W - a.v_W, -1.0)
        parts = [jnp.stack([self._turned(b.p_WB - a.p_WB, -1.0), attitude, v, b.w_B - a.w_B], 1).ravel()]
        pairs = zip(*(jax.tree.leaves(s.memory, is_leaf=_is_nodes) for s in (state, self.about)), strict=True)
        for new, old in pairs:
            if _is_nodes(old):
                parts += [self._turned(new.position - old.position, -1.0).ravel(), self._turned(new.velocity - old.velocity, -1.0).ravel()]
            elif _is_float(old):
                parts.append((new - old).ravel())
        return jnp.concatenate(parts)

    def rate(self, state: State, rates: State) -> Array:
        """Time derivative (n,) of the coordinates, from the world rates of a state.

        Written out rather than as a derivative of :meth:`local`, which would take XLA twice as long to compile:
        ``e' = J(e)^-1 w`` (inverse right Jacobian of SO(3)) or the Euler-angle rates of w, ``v_B' = R^T v' - w x v_B``.
        """
        b, r = state.bodies, rates.bodies
        w = 2.0 * multiply(conjugate(b.q_WB), r.q_WB)[:, 1:] / jnp.sum(b.q_WB * b.q_WB, -1, keepdims=True)
        R_BW = _transpose(to_matrix(b.q_WB))
        if self.attitude == "euler":
            attitude = _euler_rates(to_euler("zyx", b.q_WB), w)
        else:
            e = log(multiply(conjugate(self.about.bodies.q_WB), b.q_WB) / jnp.linalg.norm(b.q_WB, axis=-1, keepdims=True))
            attitude = _rotation_vector_rate(e, w)
        v_B = _apply(R_BW, r.v_W) - jnp.cross(w, _apply(R_BW, b.v_W))
        v = v_B if self.velocity == "body" else self._turned(r.v_W, -1.0)
        parts = [jnp.stack([self._turned(r.p_WB, -1.0), attitude, v, r.w_B], 1).ravel()]
        pairs = zip(*(jax.tree.leaves(s.memory, is_leaf=_is_nodes) for s in (rates, self.about)), strict=True)
        for new, old in pairs:
            if _is_nodes(old):
                parts += [self._turned(new.position, -1.0).ravel(), self._turned(new.velocity, -1.0).ravel()]
            elif _is_float(old):
                parts.append(jnp.broadcast_to(jnp.asarray(new, old.dtype), old.shape).ravel())
        return jnp.concatenate(parts)

    def names(self, system: System) -> tuple[str, ...]:
        """Names of the coordinates: ``uav/x``, ``uav/pitch``, ..., and ``rotors[uav/1]`` or ``cable/position[0,2,1]`` for memory."""
        own = ("x", "y", "z", *ATTITUDES[self.attitude], *VELOCITIES[self.velocity], "p", "q", "r")
        names = [f"{body}/{name}" for body in system.bodies.names for name in own]
        for element, memory in sorted(self.about.memory.items()):
            for path, leaf in jax.tree_util.tree_flatten_with_path(memory)[0]:
                if _is_float(leaf):
                    names += entry_names(system, element, "".join(f"/{_key(k)}" for k in path), np.shape(leaf))
        return tuple(names)


class Steady(eqx.Module):
    """A steady motion: ``velocity_W`` (3,) m/s of the point ``origin_W`` (3,) m, and ``turn_rate`` [rad/s] about the vertical."""

    velocity_W: Array
    origin_W: Array
    turn_rate: Array | float

    @classmethod
    def of(cls, state: State, turn_rate: Array | float = 0.0) -> Steady:
        """The one that the first body of a state takes part in."""
        return cls(state.bodies.v_W[0], state.bodies.p_WB[0], turn_rate)

    def _turn(self, v: Array) -> Array:
        return self.turn_rate * jnp.stack([-v[..., 1], v[..., 0], jnp.zeros_like(v[..., 0])], -1)

    def velocities(self, p_W: Array) -> Array:
        """Velocities (..., 3) that points (..., 3) at rest in the moving axes have, world axes."""
        return self.velocity_W + self._turn(p_W - self.origin_W)

    def rates(self, state: State) -> State:
        """World rates of a state that is at rest in the moving axes."""
        b = state.bodies
        spin = self.turn_rate * jnp.array([0.0, 0.0, 0.0, 0.5], b.q_WB.dtype)
        bodies = BodyState(self.velocities(b.p_WB), multiply(spin, b.q_WB), self._turn(b.v_W), jnp.zeros_like(b.w_B))

        def memory_rate(x):
            if _is_nodes(x):
                return SecondOrder(self.velocities(x.position), self._turn(x.velocity))
            return jnp.zeros_like(x)

        return State(bodies, jax.tree.map(memory_rate, state.memory, is_leaf=_is_nodes))


def entry_names(system: System, element: str, path: str, shape: tuple[int, ...]) -> list[str]:
    """A name for every entry of an array that belongs to an element, rotors numbered from 1 on their body: ``rotors[uav/1]``."""
    acted_on = getattr(system.elements.get(element), "bodies", ())
    out = []
    for index in np.ndindex(*shape):
        if len(shape) == 2 and shape[0] == len(acted_on):
            label = f"[{system.bodies.names[acted_on[index[0]]]}/{index[1] + 1}]"
        else:
            label = f"[{','.join(map(str, index))}]" if shape else ""
        # python-control allows no dots in signal names
        out.append(f"{element}{path}{label}".replace(".", "/"))
    return out


def without_account(system: System, state: State) -> tuple[System, State]:
    """The system and state without the energy ledger, which is no part of the dynamics."""
    plain = System(system.bodies, system.elements, system.constraints, system.environment)
    return plain, State(state.bodies, {n: m for n, m in state.memory.items() if n in system.elements})


def _rotation_vector_rate(e: Array, w: Array) -> Array:
    """Rate of a rotation vector e (..., 3) at the angular velocity w in the turned axes."""
    square = jnp.sum(e * e, -1, keepdims=True)
    small = square < 1e-6
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    factor = jnp.where(small, 1.0 / 12.0 + square / 720.0, (1.0 - 0.5 * angle / jnp.tan(0.5 * angle)) / jnp.where(small, 1.0, square))
    return w + 0.5 * jnp.cross(e, w) + factor * jnp.cross(e, jnp.cross(e, w))


def _euler_rates(zyx: Array, w: Array) -> Array:
    """Rates of roll, pitch and yaw (..., 3) from angles in the order yaw, pitch, roll and the angular velocity in body axes."""
    pitch, roll = zyx[..., 1], zyx[..., 2]
    p, q, r = w[..., 0], w[..., 1], w[..., 2]
    turning = jnp.sin(roll) * q + jnp.cos(roll) * r
    return jnp.stack([p + jnp.tan(pitch) * turning, jnp.cos(roll) * q - jnp.sin(roll) * r, turning / jnp.cos(pitch)], -1)


def _is_nodes(x: Any) -> bool:
    return isinstance(x, SecondOrder) and x.position.ndim > 0 and x.position.shape[-1] == 3


def _is_float(x: Any) -> bool:
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)


def _key(entry: Any) -> str:
    return str(getattr(entry, "key", getattr(entry, "name", getattr(entry, "idx", entry))))


def _transpose(R: Array) -> Array:
    return jnp.swapaxes(R, -1, -2)


def _apply(R: Array, v: Array) -> Array:
    return jnp.einsum("...ij,...j->...i", R, v)
