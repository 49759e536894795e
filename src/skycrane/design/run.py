"""A whole design run: search, independent check, baseline, comparison of redistribution rules, and the files."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from skycrane.design.cases import allocation_cases
from skycrane.design.level import levelled
from skycrane.design.machine import effectiveness
from skycrane.design.multistart import Outcome, Progress, search
from skycrane.design.pattern import pattern_search
from skycrane.design.pictures import layout_picture, pareto_picture
from skycrane.design.problem import Problem
from skycrane.design.redistribution import compare
from skycrane.design.report import Candidate, candidate, figures, page, report
from skycrane.design.solve import Solution
from skycrane.design.vehicle_file import vehicle_toml
from skycrane.design.verify import Verified, verify
from skycrane.environment.environment import GRAVITY

BASELINE_SHARE = 0.15
REPORT, PAGE, VEHICLE, LAYOUT, PARETO = "report.json", "report.html", "vehicle.toml", "layout.png", "pareto.png"
MOST_POINTS = 40


class NoDesign(Exception):
    """No start came to an end at all."""


def check(problem: Problem, found: Solution) -> Verified:
    """The independent check of a solution."""
    return verify(problem, *problem.layout.layout_of(found.x))


def run(
    problem: Problem,
    directory: Path,
    *,
    starts: int = 64,
    budget: float = 300.0,
    seed: int = 0,
    workers: int | None = None,
    baseline: bool = True,
    progress: Progress | None = None,
    evaluations: int = 10**12,
    explore: bool = False,
    solver: str = "slsqp",
) -> dict[str, Any]:
    """Search within ``budget`` [s], check, compare, and write everything into ``directory``; returns the report.

    ``starts``, ``seed``, ``workers``, ``evaluations``, ``explore`` and ``solver`` are those of :func:`skycrane.design.multistart.search`.

    Raises:
        DesignError: see :func:`skycrane.design.multistart.search`.
        NoDesign: where the time did not suffice for a single start.
    """
    began = time.monotonic()
    share = 1 - BASELINE_SHARE if baseline else 1.0
    outcome = search(
        problem,
        starts=starts,
        budget=share * budget,
        seed=seed,
        workers=workers,
        directory=directory,
        progress=progress,
        evaluations=evaluations,
        explore=explore,
        solver=solver,
    )
    chosen = outcome.best or outcome.nearest
    if chosen is None:
        raise NoDesign(f"not one start was finished within {budget:g} s: give a larger budget")
    best = _first_sound(problem, outcome, chosen)
    base = None
    if baseline:
        if progress is not None:
            progress("pattern search for comparison", 0, 1, None, time.monotonic() - began)
        found = pattern_search(problem, budget=BASELINE_SHARE * budget, seed=seed)
        base = candidate(problem, found, check(problem, found), found.evaluations, found.wall_s)
    if progress is not None:
        progress("checks and pictures", 0, 1, None, time.monotonic() - began)
    comparison = compare(
        effectiveness(best.position, best.direction, problem.spin, problem.moment_ratio, best.facts.com), best.facts.mass * GRAVITY
    )
    points = _points(problem, outcome)
    cases = allocation_cases(problem, best.position, best.direction, best.facts)
    begun = sum(kind in ("start", "explore") for kind, _ in outcome.results)
    facts = report(
        problem, best, base, comparison, cases, pareto=points, starts=begun, seed=seed, total_wall_s=time.monotonic() - began
    )  # fmt: skip
    write(problem, best, facts, points, directory)
    return facts


def _first_sound(problem: Problem, outcome: Outcome, chosen: Solution) -> Candidate:
    """The best solution that passes the check; the best one with its violations where none does."""
    first = None
    for end in [chosen, *outcome.of("polish")]:
        found = replace(end, x=levelled(problem, end.x))
        made = candidate(problem, found, check(problem, found), outcome.evaluations, outcome.wall_s)
        first = first or made
        if made.facts.satisfied:
            return made
    assert first is not None
    return first


def _points(problem: Problem, outcome: Outcome) -> list[dict[str, float]]:
    """Figures of the local optima, for the Pareto plot: their clearances are those of the optimiser."""
    found = [*outcome.of("polish", "front"), *outcome.of("start", "explore", "shaken")][:MOST_POINTS]
    keys = ("size_norm_m", "condition_number_limited", "sigma_min", "force_radius_n", "torque_radius_n_m")
    free = replace(problem, condition_max=None)
    out = []
    for s in found:
        r, F, tip = problem.layout.layout_of(levelled(problem, s.x))
        facts = figures(Candidate(r, F, tip, verify(free, r, F, tip, distances=False), 0, 0.0))
        out.append({key: facts[key] for key in keys})
    return out


def write(problem: Problem, best: Candidate, facts: dict[str, Any], points: list[dict[str, float]], directory: Path) -> None:
    """All files of a design."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / REPORT).write_text(json.dumps(facts, indent=2))
    name = f"manipulator-{problem.rotors}"
    if np.isfinite(best.facts.hover_thrust).all():
        toml = vehicle_toml(problem, best.position, best.direction, best.end_effector, best.facts, name)
        (directory / VEHICLE).write_text(toml)
    layout_picture(problem, best.position, best.direction, best.end_effector, directory / LAYOUT)
    pictures = [LAYOUT]
    if len(points) > 1:
        pareto_picture(points, facts, directory / PARETO)
        pictures.append(PARETO)
    (directory / PAGE).write_text(page(facts, pictures))
