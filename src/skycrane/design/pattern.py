"""The method of the paper on the same problem: Latin hypercube samples, then a generalised pattern search.

A. Nikou, G. Gavridis and K. Kyriakopoulos (ICRA 2015) solved P2 so; the search is that of C. Audet and J. E. Dennis, "Analysis of
generalized pattern searches", SIAM J. Optim. 13, 2003: poll both ways along every unknown on a mesh, go to the first better point and widen
the mesh, narrow it where there is none.  Constraints are penalised by their sum, since a pattern search keeps no equation.
"""

from __future__ import annotations

import time

import numpy as np

from skycrane.design.problem import Problem, latin_hypercube, start_of
from skycrane.design.rows import SHARP, Evaluator
from skycrane.design.solve import Solution

SAMPLES = 60
FIRST_MESH, LAST_MESH = 0.1, 1e-4


def pattern_search(
    problem: Problem, *, budget: float = 60.0, seed: int = 0, evaluations: int = 1_000_000, rows: Evaluator | None = None
) -> Solution:
    """The best point found in ``budget`` [s] or ``evaluations``; ``rows`` of the problem, if they are compiled already."""
    rows = Evaluator(problem) if rows is None else rows
    rows.change(0.0, problem.condition_max, SHARP)
    began, at, before = time.monotonic(), problem.layout, rows.evaluations
    rng = np.random.default_rng([seed, 2])

    def over() -> bool:
        return time.monotonic() - began > budget or rows.evaluations - before >= evaluations

    merit = rows.merit
    samples = []
    for sample in latin_hypercube(SAMPLES, 5 * problem.rotors + 3, seed):
        x = start_of(problem, sample)
        samples.append((merit(x), x))
        if over():
            break
    samples.sort(key=lambda pair: pair[0])
    best = samples[0]
    for value, x in samples:
        mesh = FIRST_MESH
        while mesh > LAST_MESH and not over():
            better = False
            for k in rng.permutation(2 * at.size):
                trial = x.copy()
                trial[k // 2] += mesh if k % 2 else -mesh
                trial = np.clip(trial, at.low, at.high)
                new = merit(trial)
                if new < value - 1e-12:
                    value, x, better = new, trial, True
                    break
                if over():
                    break
            mesh = min(2 * mesh, FIRST_MESH) if better else 0.5 * mesh
        if value < best[0]:
            best = (value, x)
        if over():
            break
    x = best[1]
    violation = rows.violation(x)
    worst = max(violation, key=lambda name: violation[name])
    return Solution(x, rows(x).objective, violation[worst], worst, rows.evaluations - before, time.monotonic() - began)
