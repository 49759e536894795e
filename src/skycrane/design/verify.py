"""Independent check of a finished layout: none of the optimiser's arithmetic, no samples.

Singular values by LAPACK, distances certified by separating planes (:mod:`skycrane.design.clearance`), hover and tasks by linear
programmes, the attainable set by its facets (:mod:`skycrane.analysis.zonotope`), the positive null vector by a linear programme.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skycrane.analysis.zonotope import Zonotope
from skycrane.control.reach import positive_margin
from skycrane.design.clearance import Boom, Solid, Sphere, Wake, distance
from skycrane.design.convex import Gap
from skycrane.design.machine import effectiveness, masses, plain_map
from skycrane.design.problem import Problem
from skycrane.design.profile import Profile
from skycrane.environment.environment import GRAVITY

ARM = 0.3  # m, makes moments comparable to forces
TOLERANCE = 1e-6  # by which a constraint may be missed: rounding of the optimiser and of the file


@dataclass(frozen=True)
class Check:
    """One constraint: its value, what is asked of it, and the margin in the same unit, negative where it is violated."""

    name: str
    value: float
    limit: float
    margin: float
    unit: str
    note: str = ""

    @property
    def satisfied(self) -> bool:
        return bool(self.margin >= -TOLERANCE)


@dataclass(frozen=True)
class Verified:
    """Figures of a layout, and every constraint with its margin."""

    size: float
    end_effector_distance: float
    condition: float
    condition_full: float
    condition_limited: float
    sigma_min: float
    clearance_min: float
    end_effector_clearance_min: float
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    battery: np.ndarray
    force_radius: float
    torque_radius: float
    hover_thrust: np.ndarray
    null_vector: np.ndarray
    positive_margin: float
    checks: tuple[Check, ...]

    @property
    def satisfied(self) -> bool:
        return all(check.satisfied for check in self.checks)


def verify(problem: Problem, position: np.ndarray, direction: np.ndarray, end_effector: np.ndarray, distances: bool = True) -> Verified:
    """Check a layout against a problem: places (n, 3), directions (n, 3), end-effector (3,); without ``distances`` all but these."""
    length = np.linalg.norm(direction, axis=1)
    F = direction / length[:, None]
    D = plain_map(position, F)
    six = np.linalg.svd(D[:, :6], compute_uv=False)
    limited = six if problem.of_six else np.linalg.svd(D, compute_uv=False)
    B = effectiveness(position, F, problem.spin, problem.moment_ratio)
    full = np.linalg.svd(B, compute_uv=False)
    m = masses(problem.parts, position)
    about_com = effectiveness(position, F, problem.spin, problem.moment_ratio, m.com)
    weight = np.array([0.0, 0.0, float(m.mass) * GRAVITY, 0.0, 0.0, 0.0])
    most = np.full(problem.rotors, problem.thrust_max)
    attainable = Zonotope(about_com, np.zeros(problem.rotors), most, np.array([1.0] * 3 + [ARM] * 3))
    hover = smallest_peak(about_com, weight, most)
    wakes = [Wake(r, f, problem.profile) for r, f in zip(position, F, strict=True)]
    apart: dict[tuple[int, int], Gap] = {}
    to_tip: dict[int, Gap] = {}
    if distances:
        apart = {(i, j): distance(wakes[i], wakes[j]) for i in range(len(wakes)) for j in range(i)}
        to_tip = {i: distance(w, Sphere(end_effector)) for i, w in enumerate(wakes)}
    checks: list[Check] = [Check("unit directions", float(length.min()), 1.0, float(-np.abs(length - 1).max()), "-")]
    if problem.weighted:
        rest = positive_margin(B)
        checks.append(Check("positive null vector", rest, problem.weight_min, rest - problem.weight_min, "-"))
    else:
        checks.append(_near("balance of forces", float(np.linalg.norm(F.sum(0))), "N/N"))
        checks.append(_near("balance of moments", float(np.linalg.norm(np.cross(position, F).sum(0))), "m"))
    kappa = float(limited[0] / limited[-1])
    if problem.condition_max is not None:
        which = "first six rotors" if problem.of_six else "all rotors"
        checks.append(_most("condition number", kappa, problem.condition_max, "-", which))
    checks.append(_least("smallest singular value", float(limited[-1]), problem.sigma_min, "-"))
    checks += [_gap(f"wakes {j + 1} and {i + 1}", g, problem.clearance) for (i, j), g in apart.items()]
    checks += [_gap(f"wake {i + 1} to end-effector", g, problem.end_effector_clearance) for i, g in to_tip.items()]
    if distances:
        checks += _bodies(problem, wakes, end_effector)
    checks += _geometry(problem, position, F, end_effector)
    checks += _hovers(problem, about_com, weight, most, attainable)
    _, _, vh = np.linalg.svd(B)
    null = vh[-1] / vh[-1].mean() if abs(vh[-1].mean()) > 1e-12 else vh[-1]
    return Verified(
        float(np.linalg.norm(position)), float(np.linalg.norm(end_effector)), float(six[0] / six[-1]), float(full[0] / full[-1]), kappa,
        float(limited[-1]), _nearest(apart), _nearest(to_tip), float(m.mass), np.asarray(m.com),
        np.asarray(m.inertia), np.asarray(m.battery), attainable.section(weight, [0, 1, 2]).radius,
        attainable.section(weight, [3, 4, 5]).radius, hover, null, positive_margin(B), tuple(checks),
    )  # fmt: skip


def _nearest(gaps: dict) -> float:
    return min((g.lower for g in gaps.values()), default=float("nan"))


def smallest_peak(B: np.ndarray, wrench: np.ndarray, most: np.ndarray, idle: tuple[int, ...] = ()) -> np.ndarray:
    """Thrusts (n,) N, none negative, that give a wrench with the smallest largest part of their limits; NaN where there are none within
    them. ``idle`` rotors give nothing."""
    from scipy.optimize import linprog

    n = B.shape[1]
    bounds = [(0.0, 0.0 if k in idle else None) for k in range(n)]
    found = linprog(
        np.r_[np.zeros(n), 1.0], A_ub=np.hstack([np.diag(1 / most), -np.ones((n, 1))]), b_ub=np.zeros(n),
        A_eq=np.hstack([B, np.zeros((6, 1))]), b_eq=wrench, bounds=[*bounds, (0.0, None)],
    )  # fmt: skip
    return found.x[:n] if found.status == 0 else np.full(n, np.nan)


def smallest_miss(B: np.ndarray, wrench: np.ndarray, idle: tuple[int, ...] = ()) -> float:
    """By how much [N; N m over 0.3 m] the worst component of a wrench is missed at least by thrusts of which none is negative."""
    from scipy.optimize import linprog

    scale = np.array([1.0, 1.0, 1.0, ARM, ARM, ARM])
    A, b, one = B / scale[:, None], wrench / scale, np.ones((6, 1))
    found = linprog(
        np.r_[np.zeros(B.shape[1]), 1.0], A_ub=np.vstack([np.hstack([A, -one]), np.hstack([-A, -one])]), b_ub=np.r_[b, -b],
        bounds=[*((0.0, 0.0 if k in idle else None) for k in range(B.shape[1])), (0.0, None)],
    )  # fmt: skip
    return float(found.x[-1])


def left_over(B: np.ndarray, wrench: np.ndarray, most: np.ndarray) -> float:
    """The wrench [N; N m over 0.3 m] that can be had besides in the worst direction; negative where not even ``wrench`` can."""
    scale = np.array([1.0, 1.0, 1.0, ARM, ARM, ARM])
    normals, offsets = Zonotope(B / scale[:, None], np.zeros(len(most)), most).half_spaces
    return float(((offsets - normals @ (wrench / scale)) / np.linalg.norm(normals, axis=1)).min())


def _hovers(problem: Problem, B: np.ndarray, weight: np.ndarray, most: np.ndarray, attainable: Zonotope) -> Iterator[Check]:
    def check(name: str, wrench: np.ndarray, idle: tuple[int, ...] = ()) -> Check:
        peak = float((smallest_peak(B, wrench, most, idle) / most).max()) * problem.thrust_max
        if np.isfinite(peak):
            return _most(name, peak, problem.thrust_max, "N", "largest thrust")
        missed = smallest_miss(B, wrench, idle)
        return Check(name, float("inf"), problem.thrust_max, -missed, "N", "off by so much at least, moments counted at 0.3 m")

    yield check("level hover", weight)
    for k, task in enumerate(problem.tasks):
        yield check(f"task {k + 1}", weight + np.asarray(task, float))
    for k in range(problem.rotors if problem.one_failed else 0):
        yield check(f"level hover without rotor {k + 1}", weight, (k,))
        if problem.failed_margin > 0:
            left = left_over(np.delete(B, k, 1), weight, np.delete(most, k))
            yield _least(f"left over without rotor {k + 1}", left, problem.failed_margin, "N", "in the worst direction")
    if problem.any_attitude:
        yield _least("hover in any attitude", attainable.section(np.zeros(6), [0, 1, 2]).radius, float(weight[2]), "N")


def _bodies(problem: Problem, wakes: list[Wake], end_effector: np.ndarray) -> Iterator[Check]:
    solids: dict[str, Solid] = {f"body {k + 1}": body for k, body in enumerate(problem.bodies)}
    if problem.boom_radius is not None:
        start = problem.boom_start * end_effector / np.linalg.norm(end_effector)
        solids["boom"] = Boom(start, end_effector, problem.boom_radius)
    for name, solid in solids.items():
        for i, wake in enumerate(wakes):
            yield _gap(f"wake {i + 1} to {name}", distance(wake, solid), problem.body_clearance)
    if problem.disk_clearance is not None:
        disks = [Wake(w.position, w.direction, Profile.disk(problem.disk_radius)) for w in wakes]
        for i in range(len(disks)):
            for j in range(i):
                yield _gap(f"disks {j + 1} and {i + 1}", distance(disks[i], disks[j]), problem.disk_clearance)


def _geometry(problem: Problem, position: np.ndarray, F: np.ndarray, end_effector: np.ndarray) -> Iterator[Check]:
    reach = float(np.linalg.norm(end_effector))
    yield _least("end-effector reach", reach, problem.reach[0], "m")
    yield _most("end-effector distance", reach, problem.reach[1], "m")
    if problem.limit is not None:
        yield _most("size", float(np.linalg.norm(position)), problem.limit, "m")
    if problem.box is not None:
        over = np.abs(position) - np.asarray(problem.box)
        yield Check("bounding box", float(np.abs(position).max()), max(problem.box), float(-over.max()), "m")
    for i, j, axis in problem.mirrored:
        mirror = np.ones(3)
        mirror[axis] = -1
        off = max(np.abs(position[j] - mirror * position[i]).max(), np.abs(F[j] - mirror * F[i]).max())
        yield _near(f"rotor {j + 1} mirrors {i + 1}", float(off), "m")
    for k, (place, way) in problem.fixed.items():
        unit = np.asarray(way, float) / np.linalg.norm(way)
        off = max(np.abs(position[k] - np.asarray(place)).max(), np.abs(F[k] - unit).max())
        yield _near(f"rotor {k + 1} as given", float(off), "m")


def _gap(name: str, g: Gap, limit: float) -> Check:
    return Check(name, g.lower, limit, g.lower - limit, "m", f"certified between {g.lower:.7f} and {g.upper:.7f}")


def _most(name: str, value: float, limit: float, unit: str, note: str = "") -> Check:
    return Check(name, value, limit, limit - value, unit, note)


def _least(name: str, value: float, limit: float, unit: str, note: str = "") -> Check:
    return Check(name, value, limit, value - limit, unit, note)


def _near(name: str, value: float, unit: str) -> Check:
    return Check(name, value, 0.0, -value, unit)
