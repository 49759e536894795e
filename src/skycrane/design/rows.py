"""Objective and constraints of a design problem as rows with exact derivatives.

Every evaluation has two compiled parts: the search for nearest points (no derivatives), then all rows and their Jacobian with these points
held in their bodies (:mod:`skycrane.design.nearest`).

Condition number and smallest singular value are not differentiable where singular values coincide, which is where optima lie.  The rows use

    log kappa_p = (log tr G^p + log tr G^-p) / (2 p),      G = D D^T,   p = 2^k by repeated squaring,

smooth, and above the true one by no more than log(6)/p, so what satisfies it satisfies the constraint; p grows from 32 to 512.

A wrench w can be had if ``h(a) - a . w >= 0`` for the normals a of all facets of the set of attainable wrenches, h its support
function; each facet is spanned by five rotors (:mod:`skycrane.analysis.zonotope`), and the smallest of these with a normalised in the free
components is also what can be had besides in the worst direction.  The facets that limit most are found at every evaluation, and their
normals move with the rotors that span them: with G the columns of these five and a_0 their normal now, ``a = a_0 - pinv(G_0^T) G^T a_0``
to first order.  Task wrenches, hover without a rotor, hover in any attitude and the force or torque in the worst direction are such rows,
each a :class:`Group`.

Hover power is that of ideal rotors (momentum theory), ``sum T^1.5 / sqrt(2 rho A)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.design.clearance import Wake
from skycrane.design.machine import effectiveness, masses, plain_map
from skycrane.design.nearest import Foot, Nearest, cylindrical, foot_of, halves, nearest, point_of, search
from skycrane.design.outside import bar, outside
from skycrane.design.problem import FACETS, Problem
from skycrane.design.profile import Profile
from skycrane.environment.environment import GRAVITY
from skycrane.math.linalg import invert_spd

PENALTY = 10.0
FAR = 0.3  # m, beyond which a distance is not a constraint that matters
ROUGH, SHARP = 5, 9  # powers of two of the exponent p
DENSITY = 1.225  # kg/m^3
LENGTH = 0.3  # m, makes moments comparable to forces
SCALE = np.array([1.0, 1.0, 1.0, LENGTH, LENGTH, LENGTH])


@dataclass(frozen=True)
class Block:
    """Rows of one kind: ``name``, and whether they must be 0 (``equal``) or at least 0."""

    name: str
    equal: bool
    count: int


@dataclass(frozen=True)
class Group:
    """Facets that keep one demand: of the rotors ``used`` (n,), 1 or 0; ``extra`` (6,) besides the weight, or None for no weight; ``unit``
    (6,) weights of the components in which normals have unit length; ``ball``: whether the weight in any direction is asked for;
    ``spare`` N that is asked for in every direction besides."""

    name: str
    used: np.ndarray
    extra: np.ndarray | None
    unit: np.ndarray
    ball: bool = False
    spare: float = 0.0


class Facets(NamedTuple):
    """Facets of each group: the five rotors that span them (groups, f, 5), normals (groups, f, 6), and how these turn (groups, f, 6, 5)."""

    rotors: Any
    normal: Any
    turn: Any


@dataclass(frozen=True)
class Rows:
    """Values of all rows at a point and their derivatives: the objective (to be made small), then the blocks."""

    objective: float
    gradient: np.ndarray
    equal: np.ndarray
    equal_jacobian: np.ndarray
    least: np.ndarray
    least_jacobian: np.ndarray


class Evaluator:
    """Rows of a problem; ``sharpness`` is the power of two of p.

    ``margin`` [m] (one for each pair of halves of wakes) is added to the clearance that is asked for, to make up for small errors of the
    search.  Both, and ``condition_max``, may be changed: they are arguments of what is compiled.
    """

    def __init__(self, problem: Problem):
        self.problem, self.sharpness, self.ease = problem, ROUGH, 0.0
        n = problem.rotors
        pairs = [(i, j, a, b) for i in range(n) for j in range(i) for a in (0, 1) for b in (0, 1)]
        self.pairs = tuple(np.array(column) for column in zip(*pairs, strict=True))
        self.single = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
        line, outline = halves(problem.profile)
        self.line, self.outline = jnp.asarray(line), jnp.asarray(outline)
        self.groups = tuple(_groups(problem))
        self._subsets = np.array(list(combinations(range(n), 5)), int)
        shape = (len(self.groups), FACETS)
        self._no_facets = Facets(np.zeros((*shape, 5), int), np.ones((*shape, 6)), np.zeros((*shape, 6, 5)))
        self.evaluations = 0
        self.margin = np.zeros(len(pairs))
        self.condition_max = problem.condition_max
        self._witness = jax.jit(self._find)
        self._rows = jax.jit(self._differentiated)
        self._last: tuple[np.ndarray, Rows] | None = None
        with jax.enable_x64(True):
            self.blocks = self._describe()

    # -- the search -------------------------------------------------------------------------------------------------------------------
    def _unpack(self, x: Array) -> tuple[Array, Array, Array, Array]:
        at, n = self.problem.layout, self.problem.rotors
        f = x[at.f].reshape(n, 3)
        return x[at.r].reshape(n, 3), f / jnp.sqrt((f * f).sum(-1, keepdims=True)), x[at.e], f

    def _find(self, x: Array) -> dict[str, Any]:
        problem = self.problem
        r, F, e, _ = self._unpack(x)
        i, j, a, b = self.pairs
        k, half = self.single
        found: dict[str, Any] = {"wakes": nearest(r[i], F[i], r[j], F[j], self.line[a], self.line[b], self.outline[b])}
        found["end_effector"] = foot_of(jnp.broadcast_to(e, (len(k), 3)), r[k], F[k], self.line[half])
        for number, body in enumerate(problem.bodies):
            found[f"body {number + 1}"] = search(r[k], F[k], self.line[half], outside(body))
        if problem.boom_radius is not None:
            found["boom"] = search(r[k], F[k], self.line[half], self._boom(e))
        if problem.disk_clearance is not None:
            line, outline = (jnp.asarray(v) for v in halves(Profile.disk(problem.disk_radius)))
            found["disks"] = nearest(r[i], F[i], r[j], F[j], line[a], line[b], outline[b])
        return found

    def _boom(self, e: Array) -> Callable[[Array], Array]:
        size = jnp.sqrt((e * e).sum() + 1e-12)
        assert self.problem.boom_radius is not None
        return bar(self.problem.boom_start / size * e, e, self.problem.boom_radius)

    # -- the rows ---------------------------------------------------------------------------------------------------------------------
    def _all(
        self, x: Array, found: dict[str, Any], facets: Facets, margin: Array, log_condition: Array, sharpness: Array, ease: Array
    ) -> tuple[Array, dict[str, Array], dict[str, Array]]:
        problem, at = self.problem, self.problem.layout
        n = problem.rotors
        r, F, e, f = self._unpack(x)
        equal: dict[str, Array] = {"unit directions": (f * f).sum(-1) - 1}
        least: dict[str, Array] = {}
        spin = jnp.asarray(problem.spin)
        B = effectiveness(r, F, spin, problem.moment_ratio, xp=jnp)
        scale = jnp.asarray(SCALE)
        w = x[at.weights] if problem.weighted else jnp.ones(n)
        # With one handedness the reaction torques cancel with the forces: the paper's (11).
        balance = (B if problem.mixed else plain_map(r, F, jnp)) @ w / scale
        equal["balance"] = balance
        kappa, sigma = self._conditioning(r, F, sharpness)
        if problem.condition_max is not None:
            least["condition number"] = (log_condition - kappa)[None]
        if problem.sigma_min > 0:
            least["smallest singular value"] = (sigma - np.log(problem.sigma_min))[None]
        spare = margin.min()
        least["wake clearance"] = self._apart(found["wakes"], r, F) - problem.clearance - margin
        if problem.disk_clearance is not None:
            least["disk clearance"] = self._apart(found["disks"], r, F) - problem.disk_clearance - spare
        k, _ = self.single
        foot, normal, distance = found["end_effector"]
        moved = ((e - point_of(foot, r[k], F[k])) * normal).sum(-1)
        least["end-effector clearance"] = (
            jnp.minimum(distance + moved - jax.lax.stop_gradient(moved), FAR) - problem.end_effector_clearance - spare
        )
        for number, body in enumerate(problem.bodies):
            p = point_of(found[f"body {number + 1}"], r[k], F[k])[:, None]
            least[f"clearance of body {number + 1}"] = jnp.minimum(outside(body)(p)[:, 0], FAR) - problem.body_clearance - spare
        if problem.boom_radius is not None:
            p = point_of(found["boom"], r[k], F[k])[:, None]
            least["boom clearance"] = jnp.minimum(self._boom(e)(p)[:, 0], FAR) - problem.body_clearance - spare
        reach = jnp.sqrt((e * e).sum() + 1e-12)
        least["end-effector reach"] = jnp.stack([reach - problem.reach[0], problem.reach[1] - reach])
        size = jnp.sqrt((r * r).sum())
        if problem.limit is not None:
            least["size"] = (problem.limit - size)[None]
        for i, j, axis in problem.mirrored:
            mirror = jnp.ones(3).at[axis].set(-1.0)
            equal[f"rotor {j + 1} mirrors {i + 1}"] = jnp.concatenate([r[j] - mirror * r[i], f[j] - mirror * f[i]])
        objective = self._wrenches(x, r, B, scale, facets, equal, least, ease)
        if objective is None:
            objective = {"size": size, "condition": kappa, "sigma": -sigma}[problem.objective]
        # A little of everything that the objective leaves free, so that it has one optimum.
        return objective + 1e-4 * (e * e).sum() + 1e-5 * (x * x).sum(), equal, least

    def _wrenches(self, x, r, B, scale, facets, equal, least, ease) -> Array | None:
        """Rows of hover and tasks; the objective where it is one of theirs."""
        problem, at = self.problem, self.problem.layout
        n = problem.rotors
        m = masses(problem.parts, r, jnp)
        weight = m.mass * GRAVITY
        up = jnp.array([0.0, 0.0, 1.0])
        hover = jnp.concatenate([weight * up, weight * jnp.cross(m.com, up)])
        most = problem.thrust_max

        def gives(thrust: Array, wrench: Array) -> Array:
            return (most * (B @ thrust) - wrench) / scale / 10.0

        columns = jnp.concatenate([B[:3], B[3:] - jnp.cross(m.com, B[:3].T).T]) / scale[:, None]
        objective = None
        for k, group in enumerate(self.groups):
            spanning = columns[:, facets.rotors[k]]  # (6, facets, 5)
            off = jnp.einsum("dfj,fd->fj", spanning, facets.normal[k])
            normal = facets.normal[k] - jnp.einsum("fdj,fj->fd", facets.turn[k], off)
            normal = normal / jnp.sqrt(((normal * group.unit) ** 2).sum(-1, keepdims=True))
            slack = jnp.maximum(most * (normal @ (columns * group.used)), 0.0).sum(-1)
            if group.extra is not None:
                slack = slack - weight * normal[:, 2] - normal @ (jnp.asarray(group.extra) / scale)
            if group.ball:
                slack = slack - weight
            if group.name == "attainable set":
                objective = -x[at.level][0]
                slack = slack + 10.0 * objective
            else:
                slack = slack + ease - group.spare
            least[group.name] = slack / 10.0
        if objective is not None:
            return objective
        if problem.objective == "power":
            thrust = x[at.hover]
            equal["hover"] = gives(thrust, hover)
            area = np.pi * problem.disk_radius**2
            return (most * jnp.maximum(thrust, 1e-9)) ** 1.5 @ jnp.ones(n) / np.sqrt(2 * DENSITY * area) / 100.0
        return m.mass if problem.objective == "mass" else None

    def _conditioning(self, r: Array, F: Array, sharpness: Array) -> tuple[Array, Array]:
        """Smooth bounds: log of the condition number (from above), log of the smallest singular value (from below)."""
        D = plain_map(r, F, jnp)
        D = D[:, :6] if self.problem.of_six else D
        G = D @ D.T + 1e-12 * jnp.eye(6)
        most, least = _power_trace(G, sharpness), _power_trace(invert_spd(G), sharpness)
        return 0.5 * (most + least), -0.5 * least

    def _apart(self, found: Nearest, r: Array, F: Array) -> Array:
        i, j, _, _ = self.pairs
        between = ((point_of(found.first, r[i], F[i]) - point_of(found.second, r[j], F[j])) * found.normal).sum(-1)
        return jnp.minimum(found.distance + between - jax.lax.stop_gradient(between), FAR)

    def _differentiated(self, x: Array, found: Any, facets: Facets, margin: Array, log_condition: Array, sharpness: Array, ease: Array):
        def flat(x: Array):
            objective, equal, least = self._all(x, found, facets, margin, log_condition, sharpness, ease)
            rows = jnp.concatenate([objective[None], *equal.values(), *least.values()])
            return rows, rows

        jacobian, rows = jax.jacfwd(flat, has_aux=True)(x)
        return rows, jacobian

    def _describe(self) -> tuple[Block, ...]:
        blocks: list[Block] = []

        def look(x: Array) -> Array:
            objective, equal, least = self._all(
                x,
                self._find(x),
                jax.tree.map(jnp.asarray, self._no_facets),
                jnp.zeros(len(self.margin)),
                jnp.zeros(()),
                jnp.asarray(ROUGH),
                jnp.zeros(()),
            )
            blocks.extend(Block(name, True, len(rows)) for name, rows in equal.items())
            blocks.extend(Block(name, False, len(rows)) for name, rows in least.items())
            return objective

        jax.eval_shape(look, jnp.full(self.problem.layout.size, 0.1))
        return tuple(blocks)

    def _facets(self, x: np.ndarray) -> Facets:
        """The facets, about the centre of mass and in scaled components, that limit each group most."""
        problem, count = self.problem, len(self.groups)
        if not count:
            return self._no_facets
        r, F, _ = problem.layout.layout_of(x)
        m = masses(problem.parts, r)
        columns = effectiveness(r, F, problem.spin, problem.moment_ratio, m.com) / SCALE[:, None]
        subsets = self._subsets
        spanning = columns.T[subsets]  # (subsets, 5, 6)
        left, sizes, right = np.linalg.svd(spanning)
        normals = right[:, -1]
        turns = np.swapaxes(right[:, :5], 1, 2) @ (np.swapaxes(left, 1, 2) / np.maximum(sizes, 1e-9)[:, :, None])
        hover = np.array([0.0, 0.0, m.mass * GRAVITY, 0.0, 0.0, 0.0])
        out = Facets(np.zeros((count, FACETS, 5), int), np.zeros((count, FACETS, 6)), np.zeros((count, FACETS, 6, 5)))
        for k, group in enumerate(self.groups):
            length = np.linalg.norm(normals * group.unit, axis=1)
            good = np.flatnonzero((length > 1e-6) & (sizes[:, -1] > 1e-6) & (group.used[subsets] > 0).all(1))
            both = np.concatenate([normals[good], -normals[good]]) / np.tile(length[good], 2)[:, None]
            slack = np.maximum(problem.thrust_max * (both @ (columns * group.used)), 0.0).sum(1)
            if group.extra is not None:
                slack = slack - both @ ((hover + group.extra) / SCALE)
            worst = np.resize(np.argsort(slack)[:FACETS], FACETS)
            chosen = good[worst % len(good)]
            out.rotors[k], out.normal[k], out.turn[k] = subsets[chosen], both[worst], turns[chosen]
        return out

    def __call__(self, x: np.ndarray) -> Rows:
        """All rows at x; the last point is remembered."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1]
        self.evaluations += 1
        with jax.enable_x64(True):
            point = jnp.asarray(x, jnp.float64)
            log_condition = jnp.asarray(np.log(self.condition_max or np.inf))
            values, jacobian = self._rows(
                point,
                self._witness(point),
                jax.tree.map(jnp.asarray, self._facets(x)),
                jnp.asarray(self.margin),
                log_condition,
                jnp.asarray(self.sharpness),
                jnp.asarray(self.ease),
            )
            v, J = np.array(values), np.array(jacobian)
        split = 1 + sum(block.count for block in self.blocks if block.equal)
        rows = Rows(float(v[0]), J[0], v[1:split], J[1:split], v[split:], J[split:])
        self._last = (x.copy(), rows)
        return rows

    def change(self, margin: np.ndarray | float, condition_max: float | None, sharpness: int, ease: float = 0.0) -> None:
        """Other margins of the clearances, another limit of the condition number, another sharpness; demands on wrenches
        eased by ``ease`` [N]."""
        self.margin = np.broadcast_to(np.asarray(margin, float), self.margin.shape).copy()
        self.condition_max, self.sharpness, self.ease = condition_max, sharpness, ease
        self._last = None

    def merit(self, x: np.ndarray) -> float:
        """Objective and penalised violations in one number, for searches that keep no constraint."""
        found = self(x)
        return found.objective + PENALTY * float(np.abs(found.equal).sum() + np.maximum(-found.least, 0.0).sum())

    def violation(self, x: np.ndarray) -> dict[str, float]:
        """The largest violation of each block, 0 where it is satisfied."""
        rows = self(x)
        out, at = {}, {True: 0, False: 0}
        for block in self.blocks:
            values = (rows.equal if block.equal else rows.least)[at[block.equal] : at[block.equal] + block.count]
            at[block.equal] += block.count
            out[block.name] = float(np.abs(values).max() if block.equal else np.maximum(-values, 0.0).max())
        return out


def _groups(problem: Problem) -> Iterator[Group]:
    everyone, nothing = np.ones(problem.rotors), np.zeros(6)
    force, torque = np.repeat([1.0, 0.0], 3), np.repeat([0.0, 1 / LENGTH], 3)
    if problem.objective in ("force", "torque"):
        yield Group("attainable set", everyone, nothing, force if problem.objective == "force" else torque)
    for number, task in enumerate(problem.tasks):
        yield Group(f"task {number + 1}", everyone, np.asarray(task, float), np.ones(6))
    for k in range(problem.rotors if problem.one_failed else 0):
        used = everyone.copy()
        used[k] = 0.0
        yield Group(f"hover without rotor {k + 1}", used, nothing, np.ones(6), spare=problem.failed_margin)
    if problem.any_attitude:
        yield Group("hover in any attitude", everyone, None, force, ball=True)


def _power_trace(G: Array, sharpness: Array) -> Array:
    """(log tr G^p) / p with p = 2^sharpness."""

    def square(_, carry):
        G, log = carry
        size = jnp.trace(G)
        return (G / size) @ (G / size), 2 * (log + jnp.log(size))

    G, log = jax.lax.fori_loop(0, sharpness, square, (G, jnp.zeros((), G.dtype)))
    return (log + jnp.log(jnp.trace(G))) / 2.0**sharpness


__all__ = ["ROUGH", "SHARP", "Block", "Evaluator", "Foot", "Rows", "Wake", "cylindrical"]
