"""The linear system of linearly implicit methods, solved along the chains: cost linear in the number of segments.

``(I - gamma h A) k = r``, with A the springs and dampers of the chains (:class:`~skycrane.core.chain.Chains`) and how their ends move with
the bodies.  With k = (k_q, k_v) for positions and velocities, k_q = r_q + gamma h k_v, the second row becomes

    (M + S) d = g,   k_v = r_v + d,   S = gamma h C + (gamma h)^2 K,    g = -(gamma h K r_q + S r_v)

with M the masses of nodes and bodies: symmetric and positive definite.  Nodes are eliminated along each chain (3x3 blocks, all chains at
once), from a body on that hangs on one cable (by the mobility of its point), last the bodies where cables meet (6 unknowns each).

The derivative is that of the equation, not of the elimination: ``dk = (I - gamma h A)^-1 (dr + gamma h dA k)``, with the same factors.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from skycrane.core.bodies import BodyState, Prepared, SecondOrder, State
from skycrane.core.chain import WORLD, Chains
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Mat3, Quat, Vec3, put, take, unstack
from skycrane.math.linalg import invert_spd


class _Side(NamedTuple):
    """One end of k chains: their bodies, and the matrix G (3, 6, k) by which a body's twist (linear in world axes, angular in body axes)
    moves the point."""

    bodies: tuple[int, ...]
    R_WB: Mat3
    G: Array

    @classmethod
    def of(cls, bodies: tuple[int, ...], offset_B: Vec3, kin: Kinematics) -> _Side:
        on = tuple(max(b, 0) for b in bodies)
        R_WB = take(kin.R_WB, on)
        turning = _block(-(R_WB @ Mat3.skew(offset_B)))
        held = np.where(np.array(bodies) == WORLD, 0.0, 1.0).astype(turning.dtype)
        return cls(on, R_WB, jnp.concatenate([jnp.broadcast_to(_identity(turning), turning.shape), turning], 1) * held)

    def velocity(self, twist: Array) -> Array:
        """Velocity of the points (3, k) for twists (6, nb) of all bodies."""
        return _dot(self.G.swapaxes(0, 1), take(twist, self.bodies))

    def moment(self, force_W: Array) -> Array:
        """Force and moment (6, k) of forces (3, k) at the points."""
        return _dot(self.G, force_W)

    def response(self, force_W: Array, prepared: Prepared) -> Array:
        """Twists (6, ..., k) of the bodies that forces (3, ..., k) at the points cause."""
        G = self.G.reshape(3, 6, *(1,) * (force_W.ndim - 2), -1)
        w = unstack(_dot(G, force_W), 0)
        linear, angular = take(prepared, self.bodies).solve(self.R_WB, Vec3(*w[:3]), Vec3(*w[3:]))
        return jnp.stack(jnp.broadcast_arrays(*linear.components(), *angular.components()))

    def mobility(self, prepared: Prepared) -> Array:
        """Acceleration of the points for forces on them (3, 3, k)."""
        twists = self.response(_identity(self.G), prepared)
        return _dot(self.G.swapaxes(0, 1)[:, :, None], twists)


class _Chain(NamedTuple):
    """Eliminated chains; leading axis m of segments or m-1 of nodes, then axes of vectors and matrices, last the k chains.

    S of a segment is ``along e e^T + across I``.  ``inverse``: pivots of the nodes.  A chain whose upper bodies hang on nothing else
    starts with them: ``first`` is their pivot.  Otherwise ``to_top`` couples each node with the upper end, ``cross`` the lower end with it.
    """

    c: Chains
    e: Array
    along: Array
    across: Array
    inverse: Array
    bottom: Array
    upper: _Side
    lower: _Side
    first: Array | None
    to_top: Array | None
    top: Array | None
    cross: Array | None

    @property
    def segments(self) -> tuple[Array, Array, Array]:
        return self.e, self.along, self.across


class Factors(NamedTuple):
    """Everything that both solves of a step share."""

    chains: dict[str, _Chain]
    hubs: tuple[int, ...]
    hub_inverse: Array | None
    prepared: Prepared

    @classmethod
    def of(cls, chains: dict[str, Chains], kin: Kinematics, gh: float) -> Factors:
        # The solution's derivative needs none of the factors.
        chains, kin = (eqx.combine(lax.stop_gradient(a), b) for a, b in (eqx.partition(x, eqx.is_array) for x in (chains, kin)))
        ends = [b for c in chains.values() for b in (*c.upper, *c.lower)]
        lower = {b for c in chains.values() for b in c.lower}
        single = {b for b in ends if ends.count(b) == 1 and b not in lower} | {WORLD}
        made = {n: _eliminate(c, kin, gh, set(c.upper) <= single) for n, c in chains.items()}
        hubs = tuple(sorted({b for c in made.values() for b in (*c.c.lower, *(c.c.upper if c.first is None else ())) if b != WORLD}))
        return cls(made, hubs, _hub_inverse(made, hubs, kin), kin.prepared)


def _eliminate(c: Chains, kin: Kinematics, gh: float, hangs: bool) -> _Chain:
    e = _lanes(c.direction.array())
    along, across = c.damping * gh + (c.stiffness - c.swing) * gh**2, c.swing * gh**2
    upper, lower = _Side.of(c.upper, c.upper_B, kin), _Side.of(c.lower, c.lower_B, kin)
    segments = (e, along, across)
    head, rest = jax.tree.map(lambda a: a[0], segments), jax.tree.map(lambda a: a[1:], segments)
    own = _matrix(head)
    first = to_top = top = cross = None
    if hangs:
        W = upper.mobility(kin.prepared)
        # (W^-1 + S)^-1, also for an end that nothing moves.
        first = _symmetric(_times(_inverse(_identity(W) + _times(W, own)), W))
        own = _passed_on(head, first)

    def node(carry, row):
        above, to_top, top = carry
        mass, below = row
        inverse = _inverse(_identity(above) * mass + above + _matrix(below))
        if hangs:
            return (_passed_on(below, inverse), None, None), (inverse, None)
        response = _times(inverse, to_top)
        e, along, across = below
        down = (e[:, None] * _dot(e, response)) * along + response * across
        return (_passed_on(below, inverse), down, top - _times(to_top.swapaxes(0, 1), response)), (inverse, to_top)

    carry = (own, None, None) if hangs else (own, own, own)
    (bottom, cross, top), (inverse, to_top) = lax.scan(node, carry, (c.node_mass, rest))
    return _Chain(c, *segments, inverse, bottom, upper, lower, first, to_top, top, cross)


def _dot(a: Array, b: Array) -> Array:
    """Sum of ``a[i] * b[i]``, written out."""
    return functools.reduce(operator.add, map(operator.mul, unstack(a, 0), unstack(b, 0)))


def _lanes(vectors: Array) -> Array:
    """(..., k, 3) to (..., 3, k)."""
    return vectors.swapaxes(-1, -2)


def _block(M: Mat3) -> Array:
    """(3, 3, k) of a matrix by components."""
    return jnp.stack([jnp.stack(jnp.broadcast_arrays(*row.components())) for row in M.components()])


def _identity(like: Array) -> Array:
    return jnp.eye(3, dtype=like.dtype)[..., None]


def _times(A: Array, B: Array) -> Array:
    """Matrix product (3, n, k)."""
    return _dot(A.swapaxes(0, 1)[:, :, None], B[:, None])


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.swapaxes(0, 1))


def _inverse(A: Array) -> Array:
    """Inverse (3, 3, k) by cofactors."""
    turned = lambda i, j: jnp.roll(A, (-i, -j), (0, 1))  # noqa: E731
    cofactors = turned(1, 1) * turned(2, 2) - turned(1, 2) * turned(2, 1)
    return (cofactors / (A[0] * cofactors[0]).sum(0)).swapaxes(0, 1)


def _along_segment(segment: tuple[Array, Array, Array], v: Array) -> Array:
    """S v for vectors (3, k)."""
    e, along, across = segment
    return e * (along * (e * v).sum(-2, keepdims=True)) + across * v


def _matrix(segment: tuple[Array, Array, Array]) -> Array:
    """S (3, 3, k)."""
    e, along, across = segment
    return e[:, None] * e[None] * along + _identity(e) * across


def _passed_on(segment: tuple[Array, Array, Array], inverse: Array) -> Array:
    """``S - S N S``: the stiffness that is left below a node (or body) with pivot N that hangs above the segment."""
    e, along, across = segment
    bent = _dot(inverse, e)
    mixed = e * (0.5 * along * (1.0 - along * (e * bent).sum(0))) - bent * (along * across)
    outer = e[:, None] * mixed[None]
    return outer + outer.swapaxes(0, 1) + _identity(e) * across - inverse * across**2


def _hub_inverse(chains: dict[str, _Chain], hubs: tuple[int, ...], kin: Kinematics) -> Array | None:
    """Inverse of the matrix of the bodies where chains meet, (6 hubs, 6 hubs), or (hubs, 6, 6) where no chain joins two of them."""
    if not hubs:
        return None
    count = kin.prepared.mass.shape[-1]
    (A, B), (C, D) = take(kin.prepared, hubs).spatial(take(kin.R_WB, hubs))
    own = jnp.concatenate([jnp.concatenate([_block(x) + jnp.zeros(len(hubs)) for x in row], 1) for row in ((A, B), (C, D))], 0)
    for chain in chains.values():
        for side, Q in ((chain.lower, chain.bottom), *(((chain.upper, chain.top),) if chain.first is None else ())):
            stiffness = _times(side.G.swapaxes(0, 1), _times(Q, side.G))
            own = own + take(put(stiffness, side.bodies, count), hubs)
    own = jnp.moveaxis(own, -1, 0)
    joined = [
        (chain, lane, hubs.index(low), hubs.index(up))
        for chain in chains.values()
        if chain.first is None
        for lane, (up, low) in enumerate(zip(chain.c.upper, chain.c.lower, strict=True))
        if WORLD not in (up, low)
    ]
    if not joined:
        return invert_spd(own)
    whole = [[own[i] if i == j else jnp.zeros((6, 6), own.dtype) for j in range(len(hubs))] for i in range(len(hubs))]
    for chain, lane, i, j in joined:
        assert chain.cross is not None
        block = -(chain.lower.G[..., lane].T @ (chain.cross[..., lane] @ chain.upper.G[..., lane]))
        whole[i][j], whole[j][i] = whole[i][j] + block, whole[j][i] + block.T
    return invert_spd(jnp.block(whole))


@eqx.filter_custom_jvp
def solved(rate: State, chains: dict[str, Chains], kin: Kinematics, factors: Factors, gh: float) -> State:
    """The solution k of ``(I - gamma h A) k = rate``; ``factors`` of the same chains."""
    return _by_factors(rate, factors, kin, gh)


@solved.def_jvp
def _solved_jvp(primals, tangents):
    rate, chains, kin, factors, gh = primals
    d_rate, d_chains, d_kin, _, d_gh = tangents
    k = solved(*primals)
    _, moved = eqx.filter_jvp(lambda *on: stiff_rate(k, *on), (chains, kin, gh), (d_chains, d_kin, d_gh))
    d_rate = jax.tree.map(lambda x, d: jnp.zeros_like(x) if d is None else d, rate, d_rate, is_leaf=lambda x: x is None)
    right = jax.tree.map(lambda d, m: d if m is None else d + m, d_rate, moved, is_leaf=lambda x: x is None)
    return k, _by_factors(right, factors, kin, gh)


def stiff_rate(k: State, chains: dict[str, Chains], kin: Kinematics, gh: float) -> State:
    """``gamma h A k``: how the rates change with a change k of the state, as far as A knows."""
    b = k.bodies
    count = kin.prepared.mass.shape[-1]
    moved, accelerated = _twists(k, kin)
    push, memory = jnp.zeros((6, count), b.p_WB.dtype), jax.tree.map(jnp.zeros_like, k.memory)
    for name, c in chains.items():
        upper, lower = _Side.of(c.upper, c.upper_B, kin), _Side.of(c.lower, c.lower_B, kin)
        pull = _change(c, _lanes(c.direction.array()), upper, lower, k.memory[name], moved, accelerated)
        push = push + put(upper.moment(pull[0]), upper.bodies, count) - put(lower.moment(pull[-1]), lower.bodies, count)
        acceleration = _lanes((pull[1:] - pull[:-1]) / c.node_mass[:, None])
        memory[name] = c.replaced(memory[name], SecondOrder(gh * c.nodes(k.memory[name]).velocity, gh * acceleration))
    pushes = unstack(push, 0)
    linear, angular = kin.prepared.solve(kin.R_WB, Vec3(*pushes[:3]), Vec3(*pushes[3:]))
    turning = kin.q_WB.rate(Vec3.of(b.w_B)).array()
    return State(BodyState(gh * b.v_W, gh * turning, gh * linear.array(), gh * angular.array()), memory)


def _change(c: Chains, e: Array, upper: _Side, lower: _Side, k: Any, moved: Array, accelerated: Array, sweep: float = 0.0) -> Array:
    """Change of each segment's force (m, 3, k) with a change k of the memory and of the bodies' twists, after moving on for ``sweep`` s."""
    nodes = c.nodes(k)
    parting = _differences(upper, lower, accelerated, nodes.velocity)
    apart = _differences(upper, lower, moved, nodes.position) + sweep * parting
    if c.rest_rate is not None:  # a segment that is reeled in is stretched like one whose ends move apart
        apart = apart - e * c.rest_rate(k)[:, None]
    stiff, swing, damping = (c.stiffness - c.swing)[:, None], c.swing[:, None], c.damping[:, None]
    return e * (e * (stiff * apart + damping * parting)).sum(-2, keepdims=True) + swing * apart


def _differences(upper: _Side, lower: _Side, twist: Array, inner: Array) -> Array:
    """From each point of the chains to the next one down (m, 3, k)."""
    return jnp.diff(jnp.concatenate([upper.velocity(twist)[None], _lanes(inner), lower.velocity(twist)[None]]), axis=0)


def _twists(k: State, kin: Kinematics) -> tuple[Array, Array]:
    """The bodies' position rates as twists (what a quaternion rate turns, about the present attitude), and their velocity rates."""
    b = k.bodies
    moved = jnp.concatenate([b.p_WB.T, _turned(kin.q_WB, Quat.of(b.q_WB)).array().T])
    return moved, jnp.concatenate([b.v_W.T, b.w_B.T])


def _by_factors(rate: State, factors: Factors, kin: Kinematics, gh: float) -> State:
    """The solution by the factors; linear in ``rate``."""
    b, prepared = rate.bodies, factors.prepared
    count = prepared.mass.shape[-1]
    moved, accelerated = _twists(rate, kin)
    push, swept = jnp.zeros((6, count), b.p_WB.dtype), {}
    for name, chain in factors.chains.items():
        swept[name] = _forward(chain, rate.memory[name], moved, accelerated, gh)
        _, _, at_top, at_bottom = swept[name]
        for side, at in ((chain.lower, at_bottom), *(((chain.upper, at_top),) if chain.first is None else ())):
            push = push + put(side.moment(at), side.bodies, count)
    d = jnp.zeros_like(push)
    if factors.hub_inverse is not None:
        rows = take(push, factors.hubs).T
        rows = rows.reshape(-1) if factors.hub_inverse.ndim == 2 else rows[:, None, :]
        d = put((factors.hub_inverse * rows).sum(-1).reshape(-1, 6).T, factors.hubs, count)
    memory, found = dict(rate.memory), d
    for name, chain in factors.chains.items():
        g_top, response, at_top, _ = swept[name]
        d_nodes, pull = _backward(chain, response, (g_top, at_top), chain.upper.velocity(d), chain.lower.velocity(d))
        if chain.first is not None:
            found = found + put(chain.upper.response(pull, prepared), chain.upper.bodies, count)
        old = chain.c.nodes(rate.memory[name])
        velocity = old.velocity + _lanes(d_nodes)
        memory[name] = chain.c.replaced(memory[name], SecondOrder(old.position + gh * velocity, velocity))
    v_W, w_B = b.v_W + found[:3].T, b.w_B + found[3:].T
    q_WB = b.q_WB + gh * kin.q_WB.rate(Vec3.of(w_B)).array()
    return State(BodyState(b.p_WB + gh * v_W, q_WB, v_W, w_B), memory)


def _turned(q: Quat, rate: Quat) -> Vec3:
    """The angular velocity (body axes) of a quaternion's rate: 2 Im(q* rate) / |q|^2."""
    return (2.0 / q.norm2()) * Vec3(
        q.w * rate.x - q.x * rate.w - q.y * rate.z + q.z * rate.y,
        q.w * rate.y - q.y * rate.w - q.z * rate.x + q.x * rate.z,
        q.w * rate.z - q.z * rate.w - q.x * rate.y + q.y * rate.x,
    )


def _forward(chain: _Chain, rate: Any, moved: Array, accelerated: Array, gh: float):
    """Force of the topmost segment, responses of the nodes, and the forces that are left at both ends (the upper end's, or response)."""
    g = -gh * _change(chain.c, chain.e, chain.upper, chain.lower, rate, moved, accelerated, gh)
    head, rest = jax.tree.map(lambda a: a[0], chain.segments), jax.tree.map(lambda a: a[1:], chain.segments)
    passed, top = g[0], -g[0]
    if chain.first is not None:
        top = _dot(chain.first, top)
        passed = passed + _along_segment(head, top)

    def node(carry, row):
        passed, top = carry
        inverse, to_top, below, g_below = row
        response = _dot(inverse, passed - g_below)
        if to_top is not None:
            top = top + _dot(to_top, response)
        return (g_below + _along_segment(below, response), top), response

    (at_bottom, at_top), response = lax.scan(node, (passed, top), (chain.inverse, chain.to_top, rest, g[1:]))
    return g[0], response, at_top, at_bottom


def _backward(chain: _Chain, response: Array, free: tuple[Array, Array], d_upper: Array, d_lower: Array) -> tuple[Array, Array]:
    """Corrections of the nodes' velocities (m-1, 3, k), and the force on upper bodies that hang on the chain alone."""
    head, rest = jax.tree.map(lambda a: a[0], chain.segments), jax.tree.map(lambda a: a[1:], chain.segments)

    def node(below, row):
        response, inverse, to_top, segment = row
        pull = _along_segment(segment, below)
        if to_top is not None:
            pull = pull + _dot(to_top.swapaxes(0, 1), d_upper)
        d = response + _dot(inverse, pull)
        return d, d

    below, d_nodes = lax.scan(node, d_lower, (response, chain.inverse, chain.to_top, rest), reverse=True)
    if chain.first is None:
        return d_nodes, d_upper
    g_top, at_first = free
    d_first = at_first + _dot(chain.first, _along_segment(head, below))
    return d_nodes, _along_segment(head, below - d_first) - g_top
