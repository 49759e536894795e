"""A linearly implicit method for stiff cables, whose cost is linear in the number of segments.

ROS2 of Verwer, Spee, Blom and Hundsdorfer (SIAM J. Sci. Comput. 20, 1999, eq. 2.1), second order for every matrix A (a W-method) and
L-stable where A is the Jacobian, with gamma = 1 - 1/sqrt(2):

    (I - gamma h A) k1 = f(y)
    (I - gamma h A) k2 = f(y + h k1) - 2 k1,      y+ = y + 3/2 h k1 + 1/2 h k2

A holds what is stiff and no more: the springs and dampers of the chains that the elements give (:class:`~skycrane.core.chain.Chains`),
and how their ends move with the bodies.  With k = (k_q, k_v) for positions and velocities, k_q = r_q + gamma h k_v, the second row becomes

    (M + S) d = g,   k_v = r_v + d,   S = gamma h C + (gamma h)^2 K,    g = -(gamma h K r_q + S r_v)

with M the masses of nodes and bodies: symmetric and positive definite.  Nodes are eliminated along each chain (3x3 blocks, all chains at
once), then a body that hangs on one cable by the mobility of its point, last the bodies where cables meet (6 unknowns each).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from skycrane.core.bodies import BodyState, Prepared, SecondOrder, State
from skycrane.core.chain import WORLD, Chains
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Mat3, Quat, Vec3, put, take
from skycrane.math.linalg import invert_spd
from skycrane.simulation.integrators import AbstractIntegrator, axpy

GAMMA = 1.0 - math.sqrt(0.5)

Twist = tuple[Vec3, Vec3]  # of all bodies: linear in world axes, angular in body axes


class LinearlyImplicit(AbstractIntegrator):
    """ROS2 with the chains of the system implicit and everything else explicit; order 2."""

    order: ClassVar[int] = 2
    stability_radius: ClassVar[float] = 2.0  # of what stays explicit
    implicit_chains: ClassVar[bool] = True

    def step(self, system, t, state, command, prepared, h):
        gh = GAMMA * h
        kin = system.kinematics(state, prepared)
        chains = {n: e.chains(t, kin, state.memory[n], h) for n, e in sorted(system.elements.items())}
        factors = _Factors.of({n: c for n, c in chains.items() if c is not None}, kin, gh)

        c, a, b = (jnp.array(x, jnp.result_type(t)) for x in ((0.0, h), (0.0, -2.0), (1.5 * h, 0.5 * h)))

        def stage(carry, weights):
            k, total = carry
            ci, ai, bi = weights
            rate = axpy(ai, k, system.dynamics(t + ci, axpy(ci, k, state), command, prepared))
            k = _solved(rate, factors, kin, gh)
            return (k, axpy(bi, k, total)), None

        (_, total), _ = lax.scan(stage, (jax.tree.map(jnp.zeros_like, state), state), (c, a, b))
        return total


class _Side(NamedTuple):
    """One end of k chains: bodies, points, and the matrix X by which a body's rate (body axes) moves the point, v + X w."""

    bodies: tuple[int, ...]
    offset_B: Vec3
    R_WB: Mat3
    X: Mat3
    held: Any  # 0 where the end is fixed in the world, else 1

    @classmethod
    def of(cls, bodies: tuple[int, ...], offset_B: Vec3, kin: Kinematics) -> _Side:
        on = tuple(max(b, 0) for b in bodies)
        R_WB = take(kin.R_WB, on)
        return cls(on, offset_B, R_WB, -(R_WB @ Mat3.skew(offset_B)), np.where(np.array(bodies) == WORLD, 0.0, 1.0))

    def velocity(self, twist: Twist) -> Vec3:
        linear, angular = take(twist, self.bodies)
        return (linear + self.X @ angular) * self.held

    def spread(self, force_W: Vec3, count: int) -> Twist:
        """The force and moment on all bodies of forces at the points."""
        force_W = force_W * self.held
        return put((force_W, self.X.T @ force_W), self.bodies, count)


class _Chain(NamedTuple):
    """Eliminated chains: pivots and couplings of the nodes (leading axis m-1), what remains at both ends, and the ends."""

    c: Chains
    S: Mat3
    inverse: Mat3
    to_top: Mat3
    to_next: Mat3
    top: Mat3
    cross: Mat3
    bottom: Mat3
    upper: _Side
    lower: _Side
    hangs: bool  # the upper bodies are on one chain only, and are eliminated
    N: Mat3 | None  # their response to a force, the chain's own stiffness included


class _Factors(NamedTuple):
    """Everything that both solves of a step share."""

    chains: dict[str, _Chain]
    hubs: tuple[int, ...]
    hub_inverse: Array | None
    prepared: Prepared

    @classmethod
    def of(cls, chains: dict[str, Chains], kin: Kinematics, gh: float) -> _Factors:
        ends = [b for c in chains.values() for b in (*c.upper, *c.lower)]
        lower = {b for c in chains.values() for b in c.lower}
        single = {b for b in ends if ends.count(b) == 1 and b not in lower} | {WORLD}
        made = {n: _eliminate(c, kin, gh, set(c.upper) <= single) for n, c in chains.items()}
        hubs = tuple(sorted({b for c in made.values() for b in (*c.c.lower, *(() if c.hangs else c.c.upper)) if b != WORLD}))
        return cls(made, hubs, _hub_inverse(made, hubs, kin), kin.prepared)


def _eliminate(c: Chains, kin: Kinematics, gh: float, hangs: bool) -> _Chain:
    S = c.damping * gh + c.stiffness * gh**2
    upper, lower = _Side.of(c.upper, c.upper_B, kin), _Side.of(c.lower, c.lower_B, kin)
    first, after = jax.tree.map(lambda a: a[0], S), jax.tree.map(lambda a: a[1:], S)
    identity = Mat3.diagonal(Vec3(1.0, 1.0, 1.0))

    def node(carry, row):
        above, L, top = carry  # stiffness towards the node above with that eliminated, coupling to the top end, and the top end's own
        mass, below = row
        inverse = (identity * mass + above + below).inverse()
        U = below @ inverse
        kept = (below - U @ below, U @ L, top - L.T @ (inverse @ L))
        return kept, (inverse, L, U)

    m = c.node_mass.shape[0]
    (bottom, cross, top), (inverse, to_top, to_next) = _scan(node, (first, first, first), (c.node_mass, after), m)
    N = None
    if hangs:
        W = _mobility(upper, kin)
        N = (identity + W @ top).inverse() @ W
        lower_own = bottom - cross @ (N @ cross.T)
        bottom = (lower_own + lower_own.T) * 0.5
    return _Chain(c, S, inverse, to_top, to_next, top, cross, bottom, upper, lower, hangs, N)


def _scan(step, carry, rows, length: int, reverse: bool = False):
    return lax.scan(step, carry, rows, length=length, reverse=reverse)


def _mobility(side: _Side, kin: Kinematics) -> Mat3:
    """Acceleration of the end points for forces on them (3x3)."""
    prepared = take(kin.prepared, side.bodies)
    columns = []
    one, zero = jnp.ones_like(side.R_WB.x.x), jnp.zeros_like(side.R_WB.x.x)
    for axis in (Vec3(one, zero, zero), Vec3(zero, one, zero), Vec3(zero, zero, one)):
        linear, angular = prepared.solve(side.R_WB, axis, side.X.T @ axis)
        columns.append((linear + side.X @ angular) * side.held)
    return Mat3(*columns).T


def _hub_inverse(chains: dict[str, _Chain], hubs: tuple[int, ...], kin: Kinematics) -> Array | None:
    """Inverse of the matrix of the bodies where chains meet, (6 hubs, 6 hubs), or (hubs, 6, 6) where no chain joins two of them."""
    if not hubs:
        return None
    count = kin.prepared.mass.shape[-1]
    (A, B), (C, D) = kin.prepared.spatial(kin.R_WB)
    for chain in chains.values():
        for side, Q in ((chain.lower, chain.bottom), *(() if chain.hangs else ((chain.upper, chain.top),))):
            Q = Q * side.held
            QX = Q @ side.X
            A, B, C, D = (a + put(b, side.bodies, count) for a, b in ((A, Q), (B, QX), (C, QX.T), (D, side.X.T @ QX)))
    blocks = jnp.concatenate([jnp.concatenate([_array(A), _array(B)], -1), jnp.concatenate([_array(C), _array(D)], -1)], -2)
    own = jnp.stack([blocks[h] for h in hubs])
    joined = _joints(chains, hubs)
    if not joined:
        return invert_spd(own)
    whole = [[own[i] if i == j else jnp.zeros((6, 6), own.dtype) for j in range(len(hubs))] for i in range(len(hubs))]
    for chain, lane, i, j in joined:
        Q, Xu, Xl = jax.tree.map(lambda a, lane=lane: a[..., lane], (chain.cross, chain.upper.X, chain.lower.X))
        eye = jnp.eye(3, dtype=own.dtype)
        G = [jnp.concatenate([eye, X.array()], -1) for X in (Xl, Xu)]
        block = -(G[0].T @ (Q.array() @ G[1]))
        whole[i][j], whole[j][i] = whole[i][j] + block, whole[j][i] + block.T
    return invert_spd(jnp.block(whole))


def _joints(chains: dict[str, _Chain], hubs: tuple[int, ...]) -> list[tuple[_Chain, int, int, int]]:
    """Chains between two hubs: chain, its lane, and the hubs' places (lower, upper)."""
    return [
        (chain, lane, hubs.index(low), hubs.index(up))
        for chain in chains.values()
        if not chain.hangs
        for lane, (up, low) in enumerate(zip(chain.c.upper, chain.c.lower, strict=True))
        if WORLD not in (up, low)
    ]


def _array(M: Mat3) -> Array:
    return M.array()


def _solved(rate: State, factors: _Factors, kin: Kinematics, gh: float) -> State:
    """The solution k of ``(I - gamma h A) k = rate``."""
    b = rate.bodies
    count = kin.prepared.mass.shape[-1]
    q = kin.q_WB
    # The bodies' position rates as twists: what a quaternion rate turns, about the present attitude.
    moved: Twist = (Vec3.of(b.p_WB), _turned(q, Quat.of(b.q_WB)))
    accelerated: Twist = (Vec3.of(b.v_W), Vec3.of(b.w_B))
    d_linear = d_angular = Vec3(*(jnp.zeros(count, b.p_WB.dtype) for _ in range(3)))
    force_W, moment_B = d_linear, d_angular
    swept = {}
    for name, chain in factors.chains.items():
        swept[name] = _forward(chain, chain.c.nodes(rate.memory[name]), moved, accelerated, gh)
        _, _, at_top, at_bottom = swept[name]
        if chain.hangs:
            at_bottom = at_bottom + chain.cross @ (chain.N @ at_top)
        for side, at in ((chain.lower, at_bottom), *(() if chain.hangs else ((chain.upper, at_top),))):
            force, moment = side.spread(at, count)
            force_W, moment_B = force_W + force, moment_B + moment
    if factors.hubs:
        d_linear, d_angular = _hub_response(factors, force_W, moment_B, count)
    memory = dict(rate.memory)
    hanging: list[Twist] = []
    for name, chain in factors.chains.items():
        d_lower = chain.lower.velocity((d_linear, d_angular))
        _, b_nodes, at_top, _ = swept[name]
        if chain.hangs:
            d_upper = chain.N @ (at_top + chain.cross.T @ d_lower)
            pull = (at_top + chain.cross.T @ d_lower - chain.top @ d_upper) * chain.upper.held
            prepared = take(kin.prepared, chain.upper.bodies)
            response = prepared.solve(chain.upper.R_WB, pull, chain.upper.X.T @ pull)
            hanging.append(put(response, chain.upper.bodies, count))
        else:
            d_upper = chain.upper.velocity((d_linear, d_angular))
        d_nodes = _backward(chain, b_nodes, d_upper, d_lower)
        old = chain.c.nodes(rate.memory[name])
        velocity = old.velocity + d_nodes.array()
        memory[name] = chain.c.replaced(memory[name], SecondOrder(old.position + gh * velocity, velocity))
    for linear, angular in hanging:
        d_linear, d_angular = d_linear + linear, d_angular + angular
    v_W, w_B = b.v_W + d_linear.array(), b.w_B + d_angular.array()
    q_WB = b.q_WB + gh * q.rate(Vec3.of(w_B)).array()
    return State(BodyState(b.p_WB + gh * v_W, q_WB, v_W, w_B), memory)


def _hub_response(factors: _Factors, force_W: Vec3, moment_B: Vec3, count: int) -> Twist:
    """Corrections of the hubs' velocities for forces and moments on all bodies, as twists of all bodies."""
    hubs = factors.hubs
    rows = jnp.concatenate([take(force_W, hubs).array(), take(moment_B, hubs).array()], -1)
    inverse = factors.hub_inverse
    assert inverse is not None
    joined = inverse.ndim == 2
    d = (inverse * (rows.reshape(-1) if joined else rows[:, None, :])).sum(-1).reshape(len(hubs), 6)
    spread = put(tuple(d[:, i] for i in range(6)), hubs, count)
    return Vec3(*spread[:3]), Vec3(*spread[3:])


def _turned(q: Quat, rate: Quat) -> Vec3:
    """The angular velocity (body axes) of a quaternion's rate: 2 Im(q* rate)."""
    return 2.0 * Vec3(
        q.w * rate.x - q.x * rate.w - q.y * rate.z + q.z * rate.y,
        q.w * rate.y - q.y * rate.w - q.z * rate.x + q.x * rate.z,
        q.w * rate.z - q.z * rate.w - q.x * rate.y + q.y * rate.x,
    )


def _forward(chain: _Chain, nodes: SecondOrder, moved: Twist, accelerated: Twist, gh: float):
    """Segment forces g, node right-hand sides as they are eliminated, and the forces that are left at both ends."""

    def differences(twist: Twist, inner: Array) -> Vec3:
        top, bottom = chain.upper.velocity(twist), chain.lower.velocity(twist)
        return Vec3(
            *(
                jnp.diff(jnp.concatenate([jnp.broadcast_to(a, b.shape[1:])[None], b, jnp.broadcast_to(c, b.shape[1:])[None]]), axis=0)
                for a, b, c in zip(top.components(), Vec3.of(inner).components(), bottom.components(), strict=True)
            )
        )

    g = -((chain.c.stiffness @ differences(moved, nodes.position)) * gh + chain.S @ differences(accelerated, nodes.velocity))
    g_top, g_next = g.map(lambda a: a[0]), g.map(lambda a: a[1:])

    def node(carry, row):
        passed, top = carry  # force from above, with the nodes above eliminated; force left at the top end
        inverse, to_top, to_next, g_below = row
        b = passed - g_below
        response = inverse @ b
        return (g_below + to_next @ b, top + to_top.T @ response), response

    m = chain.c.node_mass.shape[0]
    rows = (chain.inverse, chain.to_top, chain.to_next, g_next)
    (at_bottom, at_top), response = _scan(node, (g_top, -g_top), rows, m)
    return g, response, at_top, at_bottom


def _backward(chain: _Chain, response: Vec3, d_upper: Vec3, d_lower: Vec3) -> Vec3:
    """Corrections of the nodes' velocities (m-1, k)."""

    def node(below, row):
        free, inverse, to_top, to_next = row
        d = free + inverse @ (to_top @ d_upper) + to_next.T @ below
        return d, d

    m = chain.c.node_mass.shape[0]
    start = Vec3(*(jnp.broadcast_to(a, jnp.shape(b)) for a, b in zip(d_lower.components(), d_upper.components(), strict=True)))
    return _scan(node, start, (response, chain.inverse, chain.to_top, chain.to_next), m, reverse=True)[1]
