"""What a rotor layout can do: which axes are controlled, how well apart they are, and whether every direction of wrench can be
reached.

With rotors that push one way only, every direction of force and moment is reachable if and only if the effectiveness matrix has
full row rank and some strictly positive thrusts cancel exactly (a positive null vector; Davis, "Theory of positive linear
dependence", Am. J. Math. 76, 1954), which takes
one rotor more than there are axes: seven for all six.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skycrane.control.allocation import AUTHORITY, AXES, Allocation


@dataclass(frozen=True)
class Reach:
    """Analysis of one vehicle.

    Attributes:
        kept: names of the axes that are controlled.
        dropped: name and reason of the others.
        singular_values: of the controlled rows, each scaled to unit length, rotors by their largest thrust; descending.
        omnidirectional: whether every direction of force and moment is reachable.
        positive_margin: the largest c such that thrusts that are all between c and 1 times their maximum cancel; 0 or less where
            none do.
        lateral_force: the force [N] in the worst direction of the body's xy plane that goes with ``vertical_force`` and no
            moment.
        vertical_force: N, along body z.
    """

    kept: tuple[str, ...]
    dropped: dict[str, str]
    singular_values: np.ndarray
    omnidirectional: bool
    positive_margin: float
    lateral_force: float
    vertical_force: float

    @property
    def condition(self) -> float:
        """Ratio of the largest to the smallest singular value."""
        return float(self.singular_values[0] / self.singular_values[-1])


def analyse(allocation: Allocation, vehicle: int = 0, vertical_force: float = 0.0) -> Reach:
    """Analyse one vehicle of an allocation (concrete numbers only).

    Args:
        vertical_force: at which to ask for the sideways force, N; usually the weight.
    """
    thrust_max = np.asarray(allocation.thrust_max, float)[vehicle]
    rows = np.asarray(allocation.effectiveness, float)[vehicle] * thrust_max
    weight = np.asarray(allocation.weight, float)[vehicle]
    size: np.ndarray = np.linalg.norm(rows, axis=1)
    unit = rows / np.where(size > 0, size, 1.0)[:, None]
    kept = [j for j in np.argsort(-weight, kind="stable") if weight[j] > 0]
    dropped = {AXES[j]: _reason(j, rows, unit, size, kept) for j in range(6) if not weight[j] > 0}
    singular = np.linalg.svd(unit[kept], compute_uv=False) if kept else np.zeros(0)
    margin = positive_margin(rows)
    omnidirectional = len(kept) == 6 and margin > 0
    lateral = lateral_force(allocation, vertical_force, vehicle)
    return Reach(tuple(AXES[j] for j in sorted(kept)), dropped, singular, omnidirectional, margin, lateral, vertical_force)


def _reason(axis: int, rows: np.ndarray, unit: np.ndarray, size: np.ndarray, kept: list[int]) -> str:
    force, moment = float(np.linalg.norm(rows[:3])), float(np.linalg.norm(rows[3:]))
    if size[axis] <= AUTHORITY * (force if axis < 3 else moment):
        return "no authority"
    if not kept:
        return "not wanted"
    inside = np.linalg.lstsq(unit[kept].T, unit[axis], rcond=None)[0]
    angle = np.degrees(np.arcsin(min(1.0, float(np.linalg.norm(unit[axis] - unit[kept].T @ inside)))))
    most = [AXES[j] for j, part in zip(kept, inside, strict=True) if abs(part) > 0.3]
    return f"within {angle:.2f} deg of {' and '.join(most) or 'the other axes'}"


def positive_margin(rows: np.ndarray) -> float:
    """The largest c with ``rows u = 0``, ``c <= u_i <= 1``."""
    from scipy.optimize import linprog

    size = np.linalg.norm(rows, axis=1)
    rows = rows[size > 1e-12 * max(size.max(), 1e-300)]
    rows = rows / np.linalg.norm(rows, axis=1)[:, None]
    m, n = rows.shape
    # Unknowns u (n) and c: maximise c.
    found = linprog(
        np.r_[np.zeros(n), -1.0],
        A_ub=np.hstack([-np.eye(n), np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.hstack([rows, np.zeros((m, 1))]),
        b_eq=np.zeros(m),
        bounds=[(0.0, 1.0)] * n + [(None, None)],
    )
    return float(found.x[-1]) if found.status == 0 and found.x[-1] > 1e-9 else 0.0


def positive_null(rows: np.ndarray) -> np.ndarray | None:
    """Thrusts (n,) with mean 1 that cancel, ``rows`` (6, n) @ thrusts = 0, the least of them as large as can be; None where none are
    positive."""
    from scipy.optimize import linprog

    n = rows.shape[1]
    # Unknowns thrusts (n) and the least of them: maximise that.
    found = linprog(
        np.r_[np.zeros(n), -1.0],
        A_ub=np.hstack([-np.eye(n), np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.vstack([np.hstack([rows, np.zeros((len(rows), 1))]), np.r_[np.ones(n), 0.0]]),
        b_eq=np.r_[np.zeros(len(rows)), float(n)],
        bounds=[(0.0, None)] * (n + 1),
    )
    return found.x[:n] if found.status == 0 and found.x[-1] > 1e-9 else None


def carries_any_way(allocation: Allocation, force: float, vehicle: int = 0) -> bool:
    """Whether ``force`` [N] can be had in each of 26 directions in body axes, without moment."""
    from scipy.optimize import linprog

    if not np.all(np.asarray(allocation.weight)[vehicle] > 0):
        return False
    B = np.asarray(allocation.effectiveness, float)[vehicle]
    bounds = list(zip(np.asarray(allocation.thrust_min)[vehicle], np.asarray(allocation.thrust_max)[vehicle], strict=True))
    grid = [np.array([x, y, z], float) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z]
    wanted = [np.r_[force * d / np.linalg.norm(d), 0.0, 0.0, 0.0] for d in grid]
    return all(linprog(np.zeros(B.shape[1]), A_eq=B, b_eq=w, bounds=bounds).status == 0 for w in wanted)


def lateral_force(allocation: Allocation, vertical_force: float, vehicle: int = 0, directions: int = 24) -> float:
    """Sideways force [N] that can be had in every direction of the body's xy plane together with ``vertical_force`` [N] along z
    and no moment.

    The smallest of linear programmes in ``directions`` evenly spread directions, corrected to what the polygon they span
    contains; 0 where the vertical force itself cannot be had, or where force in the plane is not controlled.
    """
    from scipy.optimize import linprog

    if not np.all(np.asarray(allocation.weight)[vehicle, :2] > 0):
        return 0.0
    B = np.asarray(allocation.effectiveness, float)[vehicle]
    low, high = np.asarray(allocation.thrust_min, float)[vehicle], np.asarray(allocation.thrust_max, float)[vehicle]
    scale = np.linalg.norm(B, axis=1)
    least = np.inf
    for angle in 2 * np.pi * np.arange(directions) / directions:
        # Unknowns thrusts (n) and the length of the force along this direction.
        along = np.array([np.cos(angle), np.sin(angle), 0.0, 0.0, 0.0, 0.0])
        equal = np.hstack([B, -along[:, None]]) / scale[:, None]
        wanted = np.array([0.0, 0.0, vertical_force, 0.0, 0.0, 0.0]) / scale
        bounds = [*zip(low, high, strict=True), (0.0, None)]
        found = linprog(np.r_[np.zeros(len(low)), -1.0], A_eq=equal, b_eq=wanted, bounds=bounds)
        least = min(least, found.x[-1] if found.status == 0 else 0.0)
    return float(least * np.cos(np.pi / directions))
