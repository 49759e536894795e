"""The design problem P2 of A. Nikou, G. Gavridis and K. Kyriakopoulos ("Mechanical design, modelling and control of a novel aerial
manipulator", ICRA 2015), generalised.

Unknown are the places r_i and unit directions F_i of n rotors that push one way, and the place r_e of the end-effector, from a point B.
With t_i = (F_i, r_i x F_i) the paper asks for

    min |(r_1 .. r_n)|   subject to   sum t_i = 0,   kappa(D) <= 5,   sigma_min(D) >= 1e-3,   all distances between wakes, and from wakes
                                      to the end-effector, at least 0.01 m,                                                          (P2)

D = [t_1 .. t_6].  ``sum t_i = 0`` is its eq. (11), the seventh rotor that balances six: with it equal thrusts cancel, so that every wrench
can be had with positive thrusts.  Where rotors turn different ways the reaction torques
belong to the balance, t_i = (F_i, r_i x F_i - s_i mu F_i).  With them, and with more than seven rotors, it is ``sum w_i t_i = 0`` with
weights ``weight_min`` <= w_i <= 1 to be found.

"Hover with rotor k stopped", "this task wrench" and "hover in any attitude" are statements about the set of attainable wrenches, kept by
its facets (:mod:`skycrane.design.rows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from skycrane.design.clearance import Solid
from skycrane.design.machine import Components
from skycrane.design.profile import WAKE, Profile

OBJECTIVES = {
    "size": "root of the sum of the squared rotor distances from the origin, m",
    "condition": "condition number of the map from thrusts to force and moment",
    "sigma": "smallest singular value of that map (largest is best)",
    "force": "force in the worst direction during level hover, N (largest is best)",
    "torque": "torque in the worst direction during level hover, N m (largest is best)",
    "power": "ideal power of level hover, W",
    "mass": "mass with arms, kg",
}
LARGEST = frozenset({"sigma", "force", "torque"})
DEFAULT_SIZE_MAX = 1.0  # m, where something else than the size is optimised
DEFAULT_ARM_DENSITY = 0.06  # kg/m of carbon tube, assumed, where the mass is optimised
FACETS = 4  # facets of the attainable set that are constraints at a time


class DesignError(ValueError):
    """A design problem that makes no sense; the text says what to mend."""


@dataclass(frozen=True)
class Problem:
    """What is wanted; the defaults are the paper's.

    Attributes:
        rotors: how many, 7 or more (fewer cannot push every way).
        objective: one of :data:`OBJECTIVES`.
        condition_max, sigma_min: of the first six rotors' map in metres for seven rotors (``condition_of = "six"``), of all rotors' map
            (``"all"``) otherwise; no reaction torque. ``condition_max`` None for no limit.
        clearance, end_effector_clearance: m, between wakes, and from wakes to the end-effector.
        profile: outline of every wake.
        body_clearance: m, from wakes to ``bodies``, which are fixed; and to the boom, where ``boom_radius`` [m] is given: a straight bar
            from ``boom_start`` [m] from the origin on to the end-effector.
        disk_clearance: m between rotor disks of ``disk_radius`` [m], or None.
        reach: m, smallest and largest distance of the end-effector from the origin.
        box: half edges (3,) m of a box around the origin for the rotor places, or None.
        size_max: m, limit of the size, or None.
        spins: +1 or -1 for each rotor; None for all clockwise, whose reaction torques cancel with their thrusts.
        weight_min: smallest weight of the balance, where these are unknown.
        moment_ratio: m, mu.
        thrust_max: N.
        fixed: places and directions that are given, by rotor number (from 0): (position, direction).
        mirrored: (i, j, axis): rotor j mirrors rotor i in the plane perpendicular to body axis 0, 1 or 2.
        tasks: wrenches (6,) N, N m that the rotors must give, besides carrying the weight, in level hover; body axes, about the centre of
            mass.
        one_failed: hover level with any single rotor stopped.
        failed_margin: N, what can be had then besides, in any direction of force, or of moment over 0.3 m.
        any_attitude: hover in any attitude.
        components: the mass model.
    """

    rotors: int = 7
    objective: str = "size"
    condition_max: float | None = 5.0
    condition_of: str = ""
    sigma_min: float = 1e-3
    clearance: float = 0.01
    end_effector_clearance: float = 0.01
    profile: Profile = WAKE
    bodies: tuple[Solid, ...] = ()
    body_clearance: float = 0.01
    boom_radius: float | None = None
    boom_start: float = 0.15
    disk_clearance: float | None = None
    disk_radius: float = 0.1016
    reach: tuple[float, float] = (0.3, 0.7)
    box: tuple[float, float, float] | None = None
    size_max: float | None = None
    spins: tuple[int, ...] | None = None
    weight_min: float = 0.2
    moment_ratio: float = 0.0147
    thrust_max: float = 28.0
    fixed: Mapping[int, tuple[Any, Any]] = field(default_factory=dict)
    mirrored: tuple[tuple[int, int, int], ...] = ()
    tasks: tuple[tuple[float, ...], ...] = ()
    one_failed: bool = False
    failed_margin: float = 0.0
    any_attitude: bool = False
    components: Components = field(default_factory=Components)

    def __post_init__(self):
        if not 7 <= self.rotors <= 16:
            raise DesignError(f"{self.rotors} rotors: expected 7 to 16; fewer that push one way cannot push in every direction")
        if self.objective not in OBJECTIVES:
            raise DesignError(f"objective {self.objective!r}: expected one of {', '.join(OBJECTIVES)}")
        if self.condition_of not in ("", "six", "all"):
            raise DesignError(f"condition_of {self.condition_of!r}: expected 'six' or 'all'")
        if self.condition_max is not None and not self.condition_max > 1:
            raise DesignError(f"condition_max is {self.condition_max:g}: expected more than 1")
        if self.one_failed and self.rotors < 8:
            raise DesignError("seven rotors cannot hold an attitude when one of them fails: give 8 or more for one_failed")
        if self.failed_margin > 0 and not self.one_failed:
            raise DesignError("failed_margin says what is left when a rotor fails: ask for one_failed too")
        for name in ("failed_margin", "clearance", "end_effector_clearance", "body_clearance", "sigma_min"):
            if not 0 <= getattr(self, name) < np.inf:
                raise DesignError(f"{name} is {getattr(self, name):g}: expected 0 or more")
        for name in ("thrust_max", "weight_min", "moment_ratio", "disk_radius", "boom_radius", "size_max"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and np.isfinite(value)):
                raise DesignError(f"{name} is {value:g}: expected more than 0")
        if not 0 <= self.reach[0] <= self.reach[1] or not self.reach[1] > 0:
            raise DesignError(f"reach is {self.reach}: expected two distances in m, the smaller one first")
        if self.box is not None and not all(edge > 0 for edge in self.box):
            raise DesignError(f"box is {tuple(self.box)}: expected three half edges in m, each more than 0")
        if self.spins is not None and (len(self.spins) != self.rotors or any(s not in (1, -1) for s in self.spins)):
            raise DesignError(f"spins {self.spins}: expected {self.rotors} numbers, each 1 or -1")
        rotors = [*self.fixed, *(k for i, j, _ in self.mirrored for k in (i, j))]
        for k in rotors:
            if not 0 <= k < self.rotors:
                raise DesignError(f"there is no rotor {k + 1}: they are numbered 1 to {self.rotors} in mirrors (such as 1-2:y) and places")
        for k, (_, direction) in self.fixed.items():
            if not np.linalg.norm(direction) > 0:
                raise DesignError(f"rotor {k + 1} is given the direction {tuple(direction)}: expected a vector that is not zero")
        if any(axis not in (0, 1, 2) for *_, axis in self.mirrored):
            raise DesignError("the axis of a mirror is x, y or z, such as 1-2:y")
        if any(len(task) != 6 for task in self.tasks):
            raise DesignError("a task is a wrench: three forces and three moments")

    @property
    def of_six(self) -> bool:
        """Whether the condition number is that of the first six rotors."""
        return self.condition_of == "six" or (not self.condition_of and self.rotors == 7)

    @property
    def spin(self) -> np.ndarray:
        """Spins (n,)."""
        return -np.ones(self.rotors) if self.spins is None else np.asarray(self.spins, float)

    @property
    def mixed(self) -> bool:
        """Whether rotors turn different ways, so that reaction torques belong to the balance."""
        return len(set(self.spin)) > 1

    @property
    def weighted(self) -> bool:
        """Whether the weights of the balance are unknown; for seven rotors of one handedness they are 1, as in the paper."""
        return self.mixed or self.rotors > 7

    @property
    def limit(self) -> float | None:
        """The size limit that is in force, m."""
        return DEFAULT_SIZE_MAX if self.size_max is None and self.objective not in ("size", "mass") else self.size_max

    @property
    def parts(self) -> Components:
        """The mass model, with arms where the mass is the objective."""
        if self.objective == "mass" and self.components.arm_density == 0:
            from dataclasses import replace

            return replace(self.components, arm_density=DEFAULT_ARM_DENSITY)
        return self.components

    @cached_property
    def layout(self) -> Layout:
        """Where the unknowns lie."""
        return Layout(self)


class Layout:
    """Slices of the vector of unknowns, and limits of each."""

    def __init__(self, problem: Problem):
        n = problem.rotors
        self.n, at = n, 0

        def take(count: int) -> slice:
            nonlocal at
            at += count
            return slice(at - count, at)

        self.r, self.f, self.e = take(3 * n), take(3 * n), take(3)
        self.weights = take(n if problem.weighted else 0)
        self.hover = take(n if problem.objective == "power" else 0)
        self.level = take(1 if problem.objective in ("force", "torque") else 0)
        self.size = at
        low, high = np.full(at, -np.inf), np.full(at, np.inf)
        low[self.r], high[self.r] = -2.0, 2.0
        if problem.box is not None:
            low[self.r], high[self.r] = np.tile(-np.asarray(problem.box), n), np.tile(problem.box, n)
        low[self.f], high[self.f] = -1.5, 1.5
        low[self.e], high[self.e] = -problem.reach[1], problem.reach[1]
        for k, (position, direction) in problem.fixed.items():
            F = np.asarray(direction, float) / np.linalg.norm(direction)
            at_r, at_f = slice(3 * k, 3 * k + 3), slice(3 * (n + k), 3 * (n + k) + 3)
            low[at_r] = high[at_r] = np.asarray(position, float)
            low[at_f] = high[at_f] = F
        low[self.weights], high[self.weights] = problem.weight_min, 1.0
        low[self.hover], high[self.hover] = 0.0, 1.0  # of the largest thrust
        self.low, self.high = low, high

    def layout_of(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places and unit directions (n, 3) and the end-effector (3,) of a vector of unknowns."""
        f = x[self.f].reshape(self.n, 3)
        return x[self.r].reshape(self.n, 3), f / np.linalg.norm(f, axis=1, keepdims=True), x[self.e]


def latin_hypercube(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Points (count, dimensions) in the unit cube, one in each of ``count`` slices along every axis (McKay, Beckman and Conover, 1979)."""
    from scipy.stats import qmc

    return qmc.LatinHypercube(dimensions, rng=np.random.default_rng(seed)).random(count)


def start_of(problem: Problem, sample: np.ndarray) -> np.ndarray:
    """Unknowns from a point of the unit cube of ``5 n + 3`` dimensions: places in a cube, directions and end-effector on a sphere."""
    n, at = problem.rotors, problem.layout
    x = np.zeros(at.size)
    edge = 0.4 if problem.box is None else np.minimum(problem.box, 0.4)
    x[at.r] = ((2 * sample[: 3 * n].reshape(n, 3) - 1) * edge).ravel()
    x[at.f] = _on_sphere(sample[3 * n : 5 * n].reshape(n, 2)).ravel()
    x[at.e] = _on_sphere(sample[5 * n : 5 * n + 2][None])[0] * (problem.reach[0] + sample[-1] * (problem.reach[1] - problem.reach[0]))
    x[at.weights] = 1.0
    x[at.hover] = 0.25
    low = np.where(np.isfinite(at.low), at.low, x)
    return np.clip(x, low, np.where(np.isfinite(at.high), at.high, x))


def _on_sphere(sample: np.ndarray) -> np.ndarray:
    z, angle = 2 * sample[:, 0] - 1, 2 * np.pi * sample[:, 1]
    ring = np.sqrt(1 - z**2)
    return np.stack([ring * np.cos(angle), ring * np.sin(angle), z], -1)
