"""Elastic, flexible cables: chains of nodes between points of bodies or of the world.

Segment j of m joins node j-1 to node j (0 and m are the ends on the bodies); with d the vector from one to the other, l = |d| and e = d/l,

    T_j = max(0, k (l - L) + c (l' - L'))   where l > L, else 0          (spring and damper side by side; a cable never pushes)
    m_j a_j = P_(j+1) - P_j + weight + drag + ground,     P_j = T_j e_j + bending

This is the model of arXiv 2305.09175 (eqs. 1-12) in Cartesian nodes, whose mass matrix is diagonal, so that a call costs a
number of operations proportional to the number of nodes.  Bending (optional) is the energy B/L (1 - e_j . e_(j+1)) of each inner node, B
= E I, that is p_j = -dV/de_j / l; drag acts on each segment, across and along it apart, half on either end (Morison's form without added
mass), in air and in water, which also carries it.

A segment that tightens again meets its damper at once, so that the force jumps: derivatives through that moment are those of the steps
taken, without the shift of the moment itself; through slackening, where the force fades to zero, they are exact.

The mass of a cable that its ends carry belongs to the bodies there: see :func:`skycrane.loads.rope.with_end_lumps`.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.core.bodies import SecondOrder
from skycrane.core.chain import WORLD, Chains, end_points
from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics, Points
from skycrane.elements.cable_rates import fastest_rate, other_rate
from skycrane.math.components import Vec3, safe_sqrt, take
from skycrane.math.outline import settled

LYING = 0.05  # of its length: the height over which a segment that lies in the water's surface gets wet


class CableDrag(eqx.Module):
    """Drag of a cable: ``normal`` and ``tangential`` (k,) m, coefficient times diameter, so that force per length is 1/2 rho |v| v times
    it.  ``section`` (k,) m^2, or None without buoyancy: area of the cross-section, which displaces ``environment.water``."""

    normal: Array
    tangential: Array
    section: Array | None = None

    def force(self, e: Vec3, length: Array, density: Array | float, v: Vec3) -> Vec3:
        """Force [N] on segments with directions ``e`` that move at ``v`` [m/s] through a fluid."""
        along = e * v.dot(e)
        across = v - along
        half = -0.5 * density * length
        return across * (half * self.normal * across.norm()) + along * (half * self.tangential * along.norm())


class CableGround(eqx.Module):
    """Nodes on ``environment.ground``: a bed that gives way at ``rate`` [1/s] (stiffness m rate^2 for each node), and friction."""

    rate: Array | float = 150.0
    dissipation: Array | float = 1.0
    friction: Array | float = 0.6
    slip_speed: Array | float = 0.1


class Winch(eqx.Module):
    """Rest length that follows a target: ``L' = clip((target - L) / time, -speed_max, speed_max)``; arrays (k,), s, m/s and m.

    The element's command, where there is one, replaces ``target``.
    """

    time: Array
    speed_max: Array
    target: Array


class Segments(NamedTuple):
    """Geometry of all segments (m, k): vector d, unit e, length l, its rate, rest length L, its rate, stiffness; and the end points."""

    upper: Points
    lower: Points
    velocity: Vec3
    d: Vec3
    e: Vec3
    length: Array
    rate: Array
    rest: Array
    rest_rate: Array
    stiffness: Array

    @property
    def stretch(self) -> Array:
        """Stretch l - L of taut segments [m], 0 of slack ones."""
        return jnp.maximum(self.length - self.rest, 0.0)


class Cables(AbstractElement):
    """k cables of m segments each, from points of ``upper`` bodies to points of ``lower`` bodies.

    Attributes:
        upper, lower: static, k body indices each; :data:`~skycrane.core.chain.WORLD` for a point fixed in the world.
        upper_B, lower_B: (k, 3) m, the points from B in body axes (in world axes for ``WORLD``).
        stiffness, damping, length: (m, k), N/m, N s/m and m (unstretched) of each segment.
        node_mass: (m-1, k) kg, of the inner nodes.
        nodes: their places at the start, world axes, (m-1, k, 3) m.
        intact: (m, k), 1; an event that puts 0 cuts the segment.
        bending: (k,) N m^2, stiffness E I, or None.
        names: static, of the cables, for logs.
        drag, ground, winch: optional; the winch's command is the wanted unstretched length (k,) m of each cable.
    """

    upper: tuple[int, ...] = eqx.field(static=True)
    lower: tuple[int, ...] = eqx.field(static=True)
    upper_B: Array
    lower_B: Array
    stiffness: Array
    damping: Array
    length: Array
    node_mass: Array
    nodes: Array
    intact: Array
    bending: Array | None = None
    drag: CableDrag | None = None
    ground: CableGround | None = None
    winch: Winch | None = None
    names: tuple[str, ...] = eqx.field(static=True, default=())

    outputs_info: ClassVar[dict[str, Output]] = {
        "tension": Output("N", ("cable", "segment"), "tension of each segment, from the upper end down"),
        "stretched_length": Output("m", ("cable",), "sum of the segments' lengths"),
        "node_position": Output("m", ("cable", "node", "axis"), "places of the nodes and both ends, world axes"),
    }

    def __check_init__(self):
        k, m = len(self.upper), self.length.shape[-2]
        shapes = {
            "upper_B": (k, 3), "lower_B": (k, 3), "stiffness": (m, k), "damping": (m, k), "length": (m, k), "intact": (m, k),
            "node_mass": (m - 1, k), "nodes": (m - 1, k, 3), "bending": (k,),
        }  # fmt: skip
        if len(self.lower) != k:
            raise ValueError(f"{k} cables have an upper body, but {len(self.lower)} a lower one")
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is not None and jnp.shape(value)[-len(shape) :] != shape:
                raise ValueError(f"{k} cables of {m} segments: {name} has shape {jnp.shape(value)}, expected {shape}")
        for body, other in zip(self.upper, self.lower, strict=True):
            if body == other:
                raise ValueError("a cable has both ends on the same body" if body != WORLD else "a cable has both ends in the world")

    def init(self) -> dict[str, Any]:
        memory: dict[str, Any] = {"nodes": SecondOrder(self.nodes, jnp.zeros_like(self.nodes))}
        if self.winch is not None:
            memory["paid_out"] = self.length.sum(-2)
        return memory

    # -- geometry and forces ----------------------------------------------------------------------------------------------------------

    def _segments(self, kin: Kinematics, memory, command=None) -> Segments:
        upper = end_points(kin, self.upper, Vec3.of(self.upper_B))
        lower = end_points(kin, self.lower, Vec3.of(self.lower_B))
        nodes = memory["nodes"]
        v = _along(upper.v_W, Vec3.of(nodes.velocity), lower.v_W, _joined)
        d, dv = (
            _along(top, inner, bottom, _differences)
            for top, inner, bottom in ((upper.p_W, Vec3.of(nodes.position), lower.p_W), (upper.v_W, Vec3.of(nodes.velocity), lower.v_W))
        )
        square = d.dot(d)
        apart = square > 0
        inverse = jnp.where(apart, 1.0 / jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0)
        length, e = square * inverse, d * inverse
        length, e = settled((length, e))
        rest, rest_rate, stiffness = self.length, jnp.zeros_like(self.length), self.stiffness
        if self.winch is not None:
            whole = self.length.sum(0)
            share = self.length / whole
            rest = share * memory["paid_out"]
            rest_rate = share * self._reel(memory, command, self.winch)
            stiffness = stiffness * whole / memory["paid_out"]  # E A stays
        return Segments(upper, lower, v, d, e, length, e.dot(dv), rest, rest_rate, stiffness)

    def _reel(self, memory, command, winch: Winch) -> Array:
        """Rate of the unstretched length of each cable [m/s]."""
        wanted = winch.target if command is None else command
        return jnp.clip((wanted - memory["paid_out"]) / winch.time, -winch.speed_max, winch.speed_max)

    def _tension(self, s: Segments) -> Array:
        pull = s.stiffness * s.stretch + self.damping * (s.rate - s.rest_rate)
        return self.intact * jnp.where(s.length > s.rest, jnp.maximum(pull, 0.0), 0.0)

    def _bending(self, s: Segments, stiffness: Array) -> Vec3:
        """Force p_j of bending that segment j passes on like its tension: -dV/dd_j."""
        B = stiffness * (self.intact[1:] * self.intact[:-1]) * 2.0 / (s.rest[1:] + s.rest[:-1])
        up, down = s.e.map(lambda a: a[:-1]), s.e.map(lambda a: a[1:])
        cosine = up.dot(down)
        first, second = (down - up * cosine) * B, (up - down * cosine) * B
        pad = lambda a, before: jnp.concatenate([jnp.zeros_like(a[:1]), a] if before else [a, jnp.zeros_like(a[:1])])  # noqa: E731
        both = first.map(lambda a: pad(a, False)) + second.map(lambda a: pad(a, True))
        return -(both / jnp.where(s.length > 0, s.length, 1.0))

    def _drag_force(self, t, kin: Kinematics, s: Segments, drag: CableDrag) -> Vec3:
        """Drag and buoyancy of each segment [N], by the surroundings of its middle; one that crosses the surface is wet in part."""
        p_W = _from_top(s).map(lambda a: 0.5 * (a[1:] + a[:-1]))
        v = s.velocity.map(lambda a: 0.5 * (a[1:] + a[:-1]))
        air, water = kin.environment.air, kin.environment.water
        in_air = drag.force(s.e, s.length, air.density_at(p_W), v - air.velocity_W(t, p_W))
        if water is None:
            return in_air
        motion = water.motion(t, p_W)
        extent = safe_sqrt(s.d.z**2 + (LYING * s.length) ** 2)
        wet = jnp.clip(0.5 + (motion.level - p_W.z) / jnp.where(extent > 0, extent, 1.0), 0.0, 1.0)
        in_water = drag.force(s.e, s.length, water.density, v - motion.velocity_W)
        if drag.section is not None:
            lift = water.density * kin.environment.gravity * drag.section * s.length
            in_water = Vec3(in_water.x, in_water.y, in_water.z + lift)
        return in_air * (1.0 - wet) + in_water * wet

    def _ground(self, kin: Kinematics, memory, g: CableGround) -> tuple[Array, Array, Vec3]:
        """Depth of the nodes in the ground [m], what the bed pushes elastically, and its whole force [N]."""
        if kin.environment.ground is None:
            raise ValueError("cables that lie on the ground need environment.ground")
        nodes = memory["nodes"]
        v = Vec3.of(nodes.velocity)
        depth = jnp.maximum(kin.environment.ground.height - nodes.position[..., 2], 0.0)
        elastic = self.node_mass * g.rate**2 * depth
        normal = elastic * jnp.maximum(1.0 - g.dissipation * v.z, 0.0)
        hold = g.friction * normal / jnp.sqrt(v.x * v.x + v.y * v.y + g.slip_speed**2)
        return depth, elastic, Vec3(-hold * v.x, -hold * v.y, normal)

    # -- the contract -----------------------------------------------------------------------------------------------------------------

    def wrench(self, t, kin: Kinematics, memory, command):
        s = self._segments(kin, memory, command)
        pull = settled(s.e * self._tension(s))
        if self.bending is not None and self.length.shape[0] > 1:
            pull = pull + self._bending(s, self.bending)
        force = pull.map(lambda a: a[1:] - a[:-1])
        top, bottom = pull.map(lambda a: a[0]), pull.map(lambda a: -a[-1])
        if self.drag is not None:
            half = self._drag_force(t, kin, s, self.drag) * 0.5
            force = force + half.map(lambda a: a[1:] + a[:-1])
            top, bottom = top + half.map(lambda a: a[0]), bottom + half.map(lambda a: a[-1])
        if self.ground is not None:
            force = force + self._ground(kin, memory, self.ground)[2]
        a_W = force / self.node_mass
        a_W = Vec3(a_W.x, a_W.y, a_W.z - kin.environment.gravity)
        rate: dict[str, Any] = {"nodes": SecondOrder(memory["nodes"].velocity, a_W.array())}
        if self.winch is not None:
            rate["paid_out"] = self._reel(memory, command, self.winch)
        ends = (self.upper, self.upper_B, s.upper, top), (self.lower, self.lower_B, s.lower, bottom)
        return tuple(w for end in ends for w in _on_bodies(*end)), rate

    def energy(self, t, kin: Kinematics, memory):
        s, nodes = self._segments(kin, memory), memory["nodes"]
        v = Vec3.of(nodes.velocity)
        total = (self.node_mass * (0.5 * v.dot(v) + kin.environment.gravity * nodes.position[..., 2])).sum()
        total = total + (0.5 * self.intact * s.stiffness * s.stretch**2).sum()
        if self.bending is not None:
            B = self.bending * (self.intact[1:] * self.intact[:-1]) * 2.0 / (s.rest[1:] + s.rest[:-1])
            total = total + (B * (1.0 - s.e.map(lambda a: a[:-1]).dot(s.e.map(lambda a: a[1:])))).sum()
        if self.ground is not None:
            depth, elastic, _ = self._ground(kin, memory, self.ground)
            total = total + (0.5 * elastic * depth).sum()
        return total

    def power(self, t, kin: Kinematics, memory, command, wrenches):
        s = self._segments(kin, memory, command)
        elastic = self.intact * s.stiffness * s.stretch
        total = ((elastic - self._tension(s)) * s.rate).sum()
        if self.winch is not None:
            total = total - ((elastic + 0.5 * elastic * s.stretch / s.rest) * s.rest_rate).sum()
            if self.bending is not None:
                B = self.bending * (self.intact[1:] * self.intact[:-1]) * 2.0 / (s.rest[1:] + s.rest[:-1]) ** 2
                bent = B * (1.0 - s.e.map(lambda a: a[:-1]).dot(s.e.map(lambda a: a[1:])))
                total = total - (bent * (s.rest_rate[1:] + s.rest_rate[:-1])).sum()
        if self.drag is not None:
            half = self._drag_force(t, kin, s, self.drag) * 0.5
            total = total + half.dot(s.velocity.map(lambda a: a[1:] + a[:-1])).sum()
        if self.ground is not None:
            _, bed, force = self._ground(kin, memory, self.ground)
            v = Vec3.of(memory["nodes"].velocity)
            total = total + (force.dot(v) - bed * v.z).sum()
        return total

    def outputs(self, t, kin: Kinematics, memory, command):
        s = self._segments(kin, memory, command)
        return {
            "tension": self._tension(s).T,
            "stretched_length": s.length.sum(0),
            "node_position": jnp.swapaxes(_from_top(s).array(), 0, 1),
        }

    def chains(self, t, kin: Kinematics, memory, horizon) -> Chains:
        s = self._segments(kin, memory)
        # A spring that closes within a step must meet its nodes with the right inertia, or it throws them away: all segments of a chain
        # count as taut if one is, now or at the end of the step as far as the nodes' accelerations tell.
        pull = s.e * self._tension(s)
        a = (pull.map(lambda x: x[1:] - x[:-1]) / self.node_mass).map(lambda x: jnp.pad(x, ((1, 1), (0, 0))))
        ahead = s.d + ((s.velocity + a * horizon) * horizon).map(lambda x: x[1:] - x[:-1])
        reeled_in = jnp.maximum(-s.rest_rate, 0.0) * horizon
        closed = self.intact * jnp.where(jnp.maximum(s.length, ahead.norm()) > s.rest - reeled_in, 1.0, 0.0)
        taut = self.intact * closed.max(0)
        swing = self.intact * s.stiffness * s.stretch / jnp.where(s.length > 0, s.length, 1.0)
        share = self.length / self.length.sum(0)
        rest_rate = None if self.winch is None else lambda rate: share * rate["paid_out"]
        return Chains(
            self.upper, self.lower, Vec3.of(self.upper_B), Vec3.of(self.lower_B), self.node_mass,
            s.e, taut * s.stiffness, swing, taut * self.damping, _nodes, _with_nodes, rest_rate,
        )  # fmt: skip

    def rate_bound(self, prepared) -> float:
        return max(fastest_rate(self, prepared), other_rate(self))

    def rate_bound_without_chains(self, prepared) -> float:
        return other_rate(self)


def _along(top: Vec3, inner: Vec3, bottom: Vec3, how) -> Vec3:
    return Vec3(*(how(a[None], x, b[None]) for a, x, b in zip(*(c.components() for c in (top, inner, bottom)), strict=True)))


def _joined(top: Array, inner: Array, bottom: Array) -> Array:
    return jnp.concatenate([top, inner, bottom])


def _differences(top: Array, inner: Array, bottom: Array) -> Array:
    """From each point to the next one down; of the joined points they would be computed twice."""
    if inner.shape[0] == 0:
        return bottom - top
    return jnp.concatenate([inner[:1] - top, inner[1:] - inner[:-1], bottom - inner[-1:]])


def _nodes(memory) -> SecondOrder:
    return memory["nodes"]


def _with_nodes(memory, nodes: SecondOrder):
    return {**memory, "nodes": nodes}


def _from_top(s: Segments) -> Vec3:
    """Places of both ends and all nodes (m+1, k), world axes."""
    return Vec3(
        *(
            jnp.concatenate([top[None], top[None] + jnp.cumsum(step, 0)])
            for top, step in zip(s.upper.p_W.components(), s.d.components(), strict=True)
        )
    )


def _on_bodies(bodies: tuple[int, ...], offset_B: Array, at: Points, force_W: Vec3) -> tuple[Wrench, ...]:
    """The wrench of the forces at those ends that are on bodies."""
    kept = tuple(i for i, b in enumerate(bodies) if b != WORLD)
    if not kept:
        return ()
    offset, R_WB, force = take((Vec3.of(offset_B), at.R_WB, force_W), kept)
    return (Wrench.at(tuple(bodies[i] for i in kept), offset, R_WB, force),)
