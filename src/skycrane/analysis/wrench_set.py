"""What rotors that push one way can do: the set of all wrenches within their limits, exactly.

Rotor i with thrust axis a, hub r from the centre of mass, spin s and drag-to-thrust ratio k gives, for each newton of thrust, the column
``(a, r x a - s k a)`` of the 6 x n matrix M, and the attainable wrenches are the zonotope ``{M T : T_min <= T <= T_max}``
(:mod:`skycrane.analysis.zonotope`).  Thrusts are those of still air.

Every direction of force and moment can be reached with rotors of one direction if and only if M has rank 6 and a strictly positive null
vector (Davis, "Theory of positive linear dependence", Am. J. Math. 76, 1954), so with seven rotors at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from skycrane.analysis.precision import double_precision, to_double
from skycrane.analysis.trim_problem import quasi_static, rotor_elements
from skycrane.analysis.zonotope import Section, Zonotope
from skycrane.core.system import System

FORCE, MOMENT = [0, 1, 2], [3, 4, 5]
UP = (0.0, 0.0, 1.0)
CONTROLLED = 1e-3  # of weight times arm: the moment in the worst direction that counts as control


@dataclass(frozen=True)
class Reachability:
    """Whether every direction of force and moment can be reached.

    ``rank`` of the matrix; ``margin``: the largest c such that thrusts in proportion ``null_vector`` (n,), of mean one and none below
    c, cancel; positive if there is a strictly positive null vector.  ``every_direction``: both conditions hold.
    """

    rank: int
    margin: float
    null_vector: np.ndarray | None
    every_direction: bool


@dataclass(frozen=True)
class Failure:
    """What is left with some rotors stopped.

    ``stopped``: their labels; ``up`` (3,): the body direction along which the weight is carried; ``hovers``: whether it can be carried
    along it without any moment or other force; ``moment_radius`` [N m] that can then be had in the worst direction, whatever the force
    across ``up``, and ``tilt_radius`` [N m] in the worst direction across ``up`` when the yaw moment is given up too.

    ``kind``: ``"full"`` attitude control; ``"yaw given up"``: tilt can be controlled while the vehicle turns as it must; ``"balance
    only"``: the weight is balanced, but some small moment cannot be had; ``"none"``.
    """

    stopped: tuple[str, ...]
    up: np.ndarray
    hovers: bool
    moment_radius: float
    tilt_radius: float
    kind: str


@dataclass(frozen=True)
class WrenchSet:
    """Wrenches about the centre of mass, body axes, of one body.

    ``matrix`` (6, n) force [N] over moment [N m] for each newton of thrust; ``lower``, ``upper`` (n,) N; ``weight`` [N] to carry;
    ``labels`` of the rotors; ``arm`` [m], the length by which moments compare with forces.
    """

    matrix: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    weight: float
    labels: tuple[str, ...]
    arm: float

    @classmethod
    def create(
        cls,
        position: np.ndarray,
        axis: np.ndarray,
        spin: np.ndarray,
        ratio: np.ndarray | float,
        lower: np.ndarray | float,
        upper: np.ndarray | float,
        weight: float = 0.0,
    ) -> WrenchSet:
        """From hubs (n, 3) m about the centre of mass, thrust directions (n, 3), spins (n,), torque over thrust [m], thrust limits [N]."""
        position, axis = np.asarray(position, float), np.asarray(axis, float)
        axis = axis / np.linalg.norm(axis, axis=1, keepdims=True)
        n = len(position)
        spin, ratio, lower, upper = (np.broadcast_to(np.asarray(x, float), (n,)).copy() for x in (spin, ratio, lower, upper))
        moment = np.cross(position, axis) - (spin * ratio)[:, None] * axis
        arm = max(float(np.linalg.norm(position, axis=1).mean()), 1e-6)
        return cls(np.concatenate([axis, moment], axis=1).T, lower, upper, float(weight), tuple(str(i + 1) for i in range(n)), arm)

    @classmethod
    def of(cls, system: System, body: str | None = None, t: float = 0.0) -> WrenchSet:
        """Of one body of a system, by default the first with rotors; failures and limits count.

        Raises:
            ValueError: for a body without rotors, or rotors without a largest speed.
        """
        with double_precision():
            system = to_double(system)
            rotors = rotor_elements(system)
            carried = sorted({b for e in rotors.values() for b in e.bodies})
            if not carried:
                raise ValueError("the system has no rotors")
            index = carried[0] if body is None else system.bodies.index(body)
            if index not in carried:
                raise ValueError(f"body {body!r} has no rotors")
            still, state = rotor_elements(quasi_static(system)), system.initial_state()
            kin = system.kinematics(state, system.prepare())
            parts = []
            for name, e in rotors.items():
                for k in (k for k, b in enumerate(e.bodies) if b == index):
                    if not np.isfinite(np.asarray(e.speed_max[k])).all():
                        raise ValueError(f"rotors {name!r} have no largest speed: the set of their wrenches has no end")
                    speeds = (e.speed_fraction * e.speed_min, e.speed_fraction * e.speed_max, 0.7 * e.speed_max)
                    at = [still[name].loads(jnp.asarray(t), kin, w) for w in speeds]
                    low, high, middle = ((np.asarray(x.thrust)[k], np.asarray(x.torque)[k]) for x in at)
                    ratio = np.where(middle[0] > 0, middle[1] / np.where(middle[0] > 0, middle[0], 1.0), 0.0)
                    hub = np.asarray(e.position_B[k]) - np.asarray(system.bodies.com_B[index])
                    parts.append((hub, np.asarray(e.axis_B[k]), np.asarray(e.spin[k]), ratio, low[0], high[0]))
            weight = float(system.bodies.mass[index]) * float(system.environment.gravity)
        hubs, axes, spins, ratios, lows, highs = (np.concatenate(x) for x in zip(*parts, strict=True))
        out = cls.create(hubs, axes, spins, ratios, lows, highs, weight)
        name = system.bodies.names[index]
        return cls(out.matrix, out.lower, out.upper, weight, tuple(f"{name}/{i}" for i in out.labels), out.arm)

    @cached_property
    def zonotope(self) -> Zonotope:
        """The set itself, six-dimensional."""
        scale = np.repeat([1.0, self.arm], 3) * max(float(self.upper.max(initial=0.0)), 1e-9)
        return Zonotope(self.matrix, self.lower, self.upper, scale)

    def support(self, direction: np.ndarray) -> np.ndarray:
        """Largest value of ``direction . wrench``, direction (..., 6)."""
        return self.zonotope.support(direction)

    def hover_wrench(self, up: ArrayLike = UP) -> np.ndarray:
        """The wrench (6,) that carries the weight, ``up`` being the vertical in body axes."""
        along = np.asarray(up, float)
        return np.concatenate([self.weight * along / np.linalg.norm(along), np.zeros(3)])

    def force_set(self) -> Section:
        """All forces, whatever the moment."""
        return self.zonotope.project(FORCE).section(np.zeros(3), FORCE)

    def forces(self, at: np.ndarray | None = None) -> Section:
        """Extra forces at the moment of ``at`` (6,), from its force; by default at level hover."""
        return self.zonotope.section(self.hover_wrench() if at is None else at, FORCE)

    def moments(self, at: np.ndarray | None = None) -> Section:
        """Extra moments at the force of ``at`` (6,), from its moment; by default at level hover."""
        return self.zonotope.section(self.hover_wrench() if at is None else at, MOMENT)

    def attitude_moments(self, up: ArrayLike = UP, yaw: bool = True) -> Section:
        """Moments while the force along ``up`` carries the weight and the force across it is whatever it is: what an attitude
        controller of a vehicle that tilts to move can use.  Without ``yaw``, the two components across ``up``, the moment about it
        being whatever it is."""
        along = np.asarray(up, float) / np.linalg.norm(np.asarray(up, float))
        axes = np.eye(3) if yaw else np.linalg.svd(along[None])[2][1:]
        keep = np.zeros((1 + len(axes), 6))
        keep[0, :3], keep[1:, 3:] = along, axes
        set_ = Zonotope(keep @ self.matrix, self.lower, self.upper, self.zonotope.scale[[0, *range(3, 3 + len(axes))]])
        return set_.section(np.r_[self.weight, np.zeros(len(axes))], list(range(1, 1 + len(axes))))

    def hover_margin(self, up: ArrayLike = UP) -> float:
        """Largest force along ``up`` without any other force or moment, over the weight; minus infinity where there is none at all."""
        direction = np.concatenate([self.hover_wrench(up)[:3], np.zeros(3)])
        return self.zonotope.section(np.zeros(6), direction[:, None]).reach(np.ones(1))[1]

    def best_up(self, directions: int = 200) -> np.ndarray:
        """The body direction (3,) along which to carry the weight so that the attitude moment in the worst direction is largest.

        Only directions are tried along which the weight can be carried without moment; level where none is better, or none there is.
        Sampled and refined, since the directions form a sphere, which is not convex.
        """
        from scipy.optimize import minimize

        balanced = self.zonotope.section(np.zeros(6), FORCE)
        span = balanced.span
        if balanced.unreachable or not span.shape[1]:
            return np.array(UP)
        k = np.arange(directions) + 0.5
        z, angle = 1 - 2 * k / directions, np.pi * (1 + 5**0.5) * k
        sphere = np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], 1)
        if span.shape[1] < 3:
            sphere = np.stack([np.cos(2 * np.pi * k / directions), np.sin(2 * np.pi * k / directions)], 1)[:, : span.shape[1]]

        def worth(x):
            # Carrying the weight counts first; within that, the moment.
            up = span @ (x / np.linalg.norm(x))
            short = max(self.weight - balanced.reach(up)[1], 0.0)
            if short > 1e-9 * self.weight:
                return -short * self.arm
            # Where no attitude gives all three moments, the two that tilt the vehicle decide.
            return self.attitude_moments(up).radius + 1e-3 * self.attitude_moments(up, yaw=False).radius

        starts = [x for x in (span.T @ np.array(UP), *sphere) if np.linalg.norm(x) > 0.5]
        best = max(starts, key=worth)
        found = minimize(lambda x: -worth(x), best, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9 * self.weight * self.arm})
        best = max((best, found.x), key=worth)
        level = span.T @ np.array(UP)
        level_is_as_good = np.linalg.norm(level) > 1 - 1e-9 and worth(level) >= worth(best) - 1e-6 * self.weight * self.arm
        return np.array(UP) if level_is_as_good else span @ (best / np.linalg.norm(best))

    # -- failures ---------------------------------------------------------------------------------------------------------------------

    def without(self, rotors: Sequence[int]) -> WrenchSet:
        """The set with some rotors (by index from 0) stopped."""
        stopped = np.isin(np.arange(len(self.lower)), rotors)
        lower, upper = np.where(stopped, 0.0, self.lower), np.where(stopped, 0.0, self.upper)
        return WrenchSet(self.matrix, lower, upper, self.weight, self.labels, self.arm)

    def after(self, rotors: Sequence[int], up: ArrayLike | None = UP) -> Failure:
        """What is left with some rotors stopped, carrying the weight along ``up`` (body axes), or along the best direction if None."""
        left = self.without(rotors)
        along = left.best_up() if up is None else np.asarray(up, float)
        moments, tilts = left.attitude_moments(along), left.attitude_moments(along, yaw=False)
        enough = CONTROLLED * self.weight * self.arm
        hovers = left.zonotope.contains(left.hover_wrench(along))
        if hovers and moments.radius > enough:
            kind = "full"
        elif tilts.radius > enough:
            kind = "yaw given up"
        elif hovers:
            kind = "balance only"
        else:
            kind = "none"
        radii = (max(moments.radius, 0.0), max(tilts.radius, 0.0))
        return Failure(tuple(self.labels[k] for k in rotors), along, hovers, *radii, kind)

    def failures(self, most: int = 1, up: ArrayLike | None = UP) -> Iterator[Failure]:
        """:meth:`after` for every set of up to ``most`` rotors."""
        for count in range(1, most + 1):
            for rotors in combinations(range(len(self.lower)), count):
                yield self.after(rotors, up)

    # -- every direction --------------------------------------------------------------------------------------------------------------

    def reachability(self) -> Reachability:
        """Whether rotors without upper limit reach every direction of force and moment."""
        from scipy.optimize import linprog

        n = self.matrix.shape[1]
        M = self.matrix / np.repeat([1.0, self.arm], 3)[:, None]
        sizes = np.linalg.svd(M, compute_uv=False)
        rank = int((sizes > 1e-9 * sizes[0]).sum())
        # Unknowns thrusts (n) and c: the largest c with M T = 0, mean T = 1, T >= c.
        found = linprog(
            np.r_[np.zeros(n), -1.0], A_eq=np.vstack([np.hstack([M, np.zeros((6, 1))]), np.r_[np.ones(n), 0.0]]),
            b_eq=np.r_[np.zeros(6), n], A_ub=np.hstack([-np.eye(n), np.ones((n, 1))]), b_ub=np.zeros(n),
            bounds=[(None, None)] * (n + 1),
        )  # fmt: skip
        if found.status == 0:
            margin, vector = float(found.x[-1]), found.x[:n]
        else:
            margin, vector = -np.inf, None
        return Reachability(rank, margin, vector, rank == 6 and margin > 1e-9)
