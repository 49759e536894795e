"""One local optimisation: sequential quadratic programming (SLSQP of SciPy, by default) with exact derivatives, brought back to where every
constraint holds with something to spare (:mod:`skycrane.design.restore`).

Where demands on wrenches are constraints, optima lie at kinks (several facets of the attainable set limit at once), where SLSQP stalls
with small violations.  :meth:`Solver.settle` removes them; :meth:`Solver.slide` then goes on downhill among points that all meet the
constraints: the step nearest to ``-t`` times the objective's gradient that the linearised constraints allow, settled, kept if it is better.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from skycrane.design.clearance import Wake, distance
from skycrane.design.cma import minimize
from skycrane.design.nlp import Stopped, descend
from skycrane.design.problem import Problem
from skycrane.design.restore import least_change, least_miss
from skycrane.design.rows import ROUGH, SHARP, Evaluator, Rows

FEASIBLE = 2e-5  # largest violation of a row that a first optimisation may leave
POLISHED, GOOD = 2e-7, 9e-7  # after polishing: what ends it, and what is within the tolerance of the check
SPARE = 5e-6  # m, asked of clearances beyond the limit
BUFFER = 2e-5  # of a row, asked for beyond its limit when a point is settled
SETTLED = 1e-9  # of an equation
STEPS, LARGEST_STEP = 12, 0.05  # of settling
SLIDES, SLIDE, LEAST_SLIDE = 30, 0.05, 2e-5  # of sliding: steps, the first t and the last
MOST, MOST_POLISH = 300, 200  # evaluations
EXPLORE, EXPLORE_STEP = 1500, 0.15  # evaluations and first step of the search without derivatives
EASE = 1e3  # N
ROUNDS = 6  # of polishing: each corrects the clearances by what the certified distances say


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


class Solver:
    """Local optimisations of one problem; keeps what was compiled. ``method`` is one of :data:`skycrane.design.nlp.PACKAGES`,
    ``most`` the evaluations of one descent."""

    def __init__(self, problem: Problem, method: str = "slsqp", most: int = MOST):
        self.problem, self.method, self.most = problem, method, most
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
        found = self._better(self._descend(x, iterations, tolerance, deadline, most))
        return replace(found, evaluations=found.evaluations + evaluations, wall_s=found.wall_s + wall)

    def _better(self, found: Solution) -> Solution:
        """The same, settled, if that is nearer to what is asked for."""
        began, before = time.monotonic(), self.rows.evaluations
        settled = self._solution(self.rows, self.settle(found.x), 0, 0.0)
        better = settled if settled.violation < found.violation else found
        used = self.rows.evaluations - before
        return replace(better, evaluations=found.evaluations + used, wall_s=found.wall_s + time.monotonic() - began)

    def settle(self, x: np.ndarray, steps: int = STEPS) -> np.ndarray:
        """A point near ``x`` that meets every row with some of ``BUFFER`` to spare, if there is one, else where the worst misses least."""
        rows = self.rows
        low, high = self._limits(BUFFER)
        x = np.clip(x, low, high)
        best, reach = (np.inf, x), LARGEST_STEP
        for _ in range(steps):
            here = rows(x)
            off, spare = np.abs(here.equal).max(initial=0.0), here.least.min(initial=np.inf)
            if off < SETTLED and spare > 0.2 * BUFFER:
                return x
            missed = max(off, BUFFER - spare)
            if missed < best[0]:
                best = (missed, x)
            else:  # too far for what is linear: from the best point again
                x, reach = best[1], 0.3 * reach
                here = rows(x)
            linear = here.equal, here.equal_jacobian, here.least - BUFFER, here.least_jacobian, low - x, high - x
            step = least_change(*linear)
            if step is None:
                step = least_miss(*linear, reach)
            if step is None:
                break
            x = np.clip(x + step * min(1.0, reach / max(np.abs(step).max(), 1e-12)), low, high)
        return best[1]

    def slide(self, x: np.ndarray, deadline: float = np.inf, steps: int = SLIDES) -> np.ndarray:
        """Downhill from a settled point among settled points."""
        rows, size = self.rows, SLIDE
        low, high = self._limits(BUFFER)
        for _ in range(steps):
            if size < LEAST_SLIDE or time.monotonic() > deadline:
                break
            here = rows(x)
            step = least_change(
                here.equal, here.equal_jacobian, here.least - BUFFER, here.least_jacobian, low - x, high - x, -size * here.gradient
            )  # fmt: skip
            if step is not None:
                trial = self.settle(x + step * min(1.0, 2 * LARGEST_STEP / max(np.abs(step).max(), 1e-12)), STEPS // 2)
                if rows(trial).objective < here.objective - 1e-7 and max(rows.violation(trial).values()) < POLISHED:
                    x, size = trial, 2 * size
                    continue
            size *= 0.35
        return x

    def _limits(self, buffer: float) -> tuple[np.ndarray, np.ndarray]:
        """Limits of the unknowns; the check sees those of the weights as a constraint."""
        low, high = self.problem.layout.low.copy(), self.problem.layout.high.copy()
        weights = self.problem.layout.weights
        low[weights] += buffer
        high[weights] -= buffer
        return low, high

    def _descend(self, x: np.ndarray, iterations: int, tolerance: float, deadline: float, most: int) -> Solution:
        rows = self.rows
        began, before = time.monotonic(), rows.evaluations
        best: list[tuple[float, np.ndarray]] = []
        at = self.problem.layout

        def watched(x: np.ndarray) -> Rows:
            if time.monotonic() > deadline or rows.evaluations - before >= min(most, self.most):
                raise Stopped
            here = rows(x)
            merit = here.objective + 10 * max(np.abs(here.equal).max(initial=0.0), -here.least.min(initial=0.0))
            if not best or merit < best[0][0]:
                best[:] = [(merit, x.copy())]
            return here

        try:
            found = descend(self.method, watched, x, at.low, at.high, iterations, tolerance)
        except Stopped:
            found = best[0][1] if best else x
        return self._solution(rows, found, rows.evaluations - before, time.monotonic() - began)

    def _solution(self, rows: Evaluator, x: np.ndarray, evaluations: int, wall: float) -> Solution:
        violation = rows.violation(x)
        worst = max(violation, key=lambda name: violation[name])
        return Solution(x, rows(x).objective, violation[worst], worst, evaluations, wall)

    def explore(self, x: np.ndarray, seed: int, deadline: float = np.inf) -> Solution:
        """A search without derivatives (CMA-ES), then the same as :meth:`run`."""
        rows, at = self.rows, self.problem.layout
        rows.change(0.0, self.problem.condition_max, ROUGH)
        before, began = rows.evaluations, time.monotonic()

        def merit(x: np.ndarray) -> float:
            return np.inf if time.monotonic() > deadline else rows.merit(np.clip(x, at.low, at.high))

        x = np.clip(minimize(merit, x, EXPLORE_STEP, EXPLORE, seed), at.low, at.high)
        evaluations, wall = rows.evaluations - before, time.monotonic() - began
        found = self.run(x, deadline=deadline)
        return replace(found, evaluations=found.evaluations + evaluations, wall_s=found.wall_s + wall)

    def polish(self, x: np.ndarray, deadline: float = np.inf, condition_max: float | None = None) -> Solution:
        """A sharper optimum near ``x``, whose clearances hold by their certified values.

        Of ``x`` and where SLSQP goes from there, both settled, the better slides down.  Where a certified distance of two wakes is smaller
        than what the rows say, the rows ask for so much more, and the point is settled again.
        """
        rows = self.rows
        rows.change(SPARE, condition_max or self.problem.condition_max, SHARP)
        began, before = time.monotonic(), rows.evaluations
        first = self._better(self._solution(rows, x, 0, 0.0))
        second = self._better(self._descend(x, 60, 1e-7, deadline, MOST_POLISH))
        found = min(first, second, key=lambda s: (max(s.violation, POLISHED), s.objective))
        if found.violation <= POLISHED:
            found = self._solution(rows, self.slide(found.x, deadline), 0, 0.0)
        ends: list[tuple[float, Solution]] = []
        for _ in range(ROUNDS):
            short = self._short(rows, found.x)
            ends.append((max(found.violation, short.max(initial=0.0)), found))
            if ends[-1][0] <= POLISHED or time.monotonic() > deadline:
                break
            rows.change(rows.margin + np.where(short > 0, short + SPARE, 0.0), rows.condition_max, SHARP)
            found = self._solution(rows, self.settle(found.x), 0, 0.0)
        missed, end = min(ends, key=lambda pair: (max(pair[0], GOOD), pair[1].objective))
        return replace(
            end, violation=max(end.violation, missed), worst=end.worst if end.violation >= missed else "wake clearance",
            evaluations=rows.evaluations - before, wall_s=time.monotonic() - began,
        )  # fmt: skip

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
