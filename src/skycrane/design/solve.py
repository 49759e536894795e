"""One local optimisation: sequential quadratic programming (SLSQP of SciPy) with exact derivatives."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np

from skycrane.design.clearance import Wake, distance
from skycrane.design.problem import Problem
from skycrane.design.rows import ROUGH, SHARP, Evaluator

FEASIBLE = 2e-5  # largest violation of a row that a first optimisation may leave
POLISHED, GOOD = 2e-7, 9e-7  # after polishing: what ends it, and what is within the tolerance of the check
SPARE = 5e-6  # m, asked of clearances beyond the limit
MOST, MOST_POLISH = 400, 250  # evaluations
EASE = 1e3  # N
ROUNDS = 3  # of polishing: each corrects the clearances by what the certified distances say


@dataclass(frozen=True)
class Solution:
    """End of a local optimisation. ``x`` the unknowns; ``objective`` as it was made small; ``violation`` the largest of any row, ``worst``
    its name."""

    x: np.ndarray
    objective: float
    violation: float
    worst: str
    evaluations: int
    wall_s: float

    @property
    def feasible(self) -> bool:
        return self.violation <= FEASIBLE


class OutOfTime(Exception):
    """The time of an optimisation is used up."""


class Solver:
    """Local optimisations of one problem; keeps what was compiled."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.rows = Evaluator(problem)

    def run(
        self,
        x: np.ndarray,
        iterations: int = 150,
        tolerance: float = 1e-5,
        deadline: float = np.inf,
        most: int = MOST,
    ) -> Solution:
        """From ``x`` to a local optimum; stops at ``deadline`` [s, of ``time.monotonic``] with the best point seen."""
        evaluations, wall = 0, 0.0
        if any(group.name != "attainable set" for group in self.rows.groups):
            # First without demands on wrenches: they pull a random layout apart before its wakes have found their places.
            self.rows.change(0.0, self.problem.condition_max, ROUGH, EASE)
            first = self._descend(x, iterations, 1e-3, deadline, most // 2)
            x, evaluations, wall = first.x, first.evaluations, first.wall_s
        self.rows.change(0.0, self.problem.condition_max, ROUGH)
        found = self._descend(x, iterations, tolerance, deadline, most + evaluations)
        return replace(found, evaluations=found.evaluations + evaluations, wall_s=found.wall_s + wall)

    def _descend(self, x: np.ndarray, iterations: int, tolerance: float, deadline: float, most: int) -> Solution:
        from scipy.optimize import minimize

        rows = self.rows
        began, before = time.monotonic(), rows.evaluations
        best: list[tuple[float, np.ndarray]] = []
        at = self.problem.layout

        def objective(x: np.ndarray) -> float:
            if time.monotonic() > deadline or rows.evaluations - before > most:
                raise OutOfTime
            value = rows(x).objective
            merit = value + 10 * max(np.abs(rows(x).equal).max(initial=0.0), -rows(x).least.min(initial=0.0))
            if not best or merit < best[0][0]:
                best[:] = [(merit, x.copy())]
            return value

        constraints = [
            {"type": "eq", "fun": lambda x: rows(x).equal, "jac": lambda x: rows(x).equal_jacobian},
            {"type": "ineq", "fun": lambda x: rows(x).least, "jac": lambda x: rows(x).least_jacobian},
        ]
        bounds = [(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(at.low, at.high, strict=True)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # SciPy reports a step out of bounds that it has put right
                found = minimize(
                    objective, np.clip(x, at.low, at.high), jac=lambda x: rows(x).gradient, method="SLSQP", bounds=bounds,
                    constraints=constraints, options={"maxiter": iterations, "ftol": tolerance},
                ).x  # fmt: skip
        except OutOfTime:
            found = best[0][1] if best else x
        return self._solution(rows, found, rows.evaluations - before, time.monotonic() - began)

    def _solution(self, rows: Evaluator, x: np.ndarray, evaluations: int, wall: float) -> Solution:
        violation = rows.violation(x)
        worst = max(violation, key=lambda name: violation[name])
        return Solution(x, rows(x).objective, violation[worst], worst, evaluations, wall)

    def polish(self, x: np.ndarray, deadline: float = np.inf, condition_max: float | None = None) -> Solution:
        """A sharper optimum near ``x``, whose clearances hold by their certified values.

        Where a certified distance of two wakes is smaller than what the rows say, the rows ask for so much more, and the optimisation is
        repeated.
        """
        rows = self.rows
        rows.change(SPARE, condition_max or self.problem.condition_max, SHARP)
        ends: list[tuple[float, Solution]] = []
        evaluations, wall = 0, 0.0
        for _ in range(ROUNDS):
            found = self._descend(x, 60, 1e-7, deadline, MOST_POLISH)
            x, evaluations, wall = found.x, evaluations + found.evaluations, wall + found.wall_s
            short = self._short(rows, x)
            ends.append((max(found.violation, short.max(initial=0.0)), found))
            if ends[-1][0] <= POLISHED or time.monotonic() > deadline:
                break
            rows.change(rows.margin + np.where(short > 0, short + SPARE, 0.0), rows.condition_max, SHARP)
        good = [s for missed, s in ends if missed <= GOOD]
        end = min(good, key=lambda s: s.objective) if good else min(ends, key=lambda pair: pair[0])[1]
        return Solution(end.x, end.objective, end.violation, end.worst, evaluations, wall)

    def _short(self, rows: Evaluator, x: np.ndarray) -> np.ndarray:
        """By how much [m] the certified distance of each pair of halves falls short of the clearance: that of its pair of wakes."""
        problem = self.problem
        r, F, _ = problem.layout.layout_of(x)
        wakes = [Wake(a, b, problem.profile) for a, b in zip(r, F, strict=True)]
        i, j, _, _ = rows.pairs
        lower = {
            pair: distance(wakes[pair[0]], wakes[pair[1]], enough=problem.clearance).lower
            for pair in set(zip(i.tolist(), j.tolist(), strict=True))
        }
        return np.array([max(problem.clearance - lower[pair], 0.0) for pair in zip(i.tolist(), j.tolist(), strict=True)])
