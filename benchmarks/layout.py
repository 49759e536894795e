"""Optimising a layout of seven rotors: one evaluation of all rows, 28 distances between wakes among them, with their exact derivatives,
against the same derivatives by differences."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import Record, compare
from skycrane.design.problem import Problem, latin_hypercube, start_of
from skycrane.design.rows import Evaluator

POINTS = 20


def run() -> list[Record]:
    problem = Problem()
    rows = Evaluator(problem)
    points = [start_of(problem, sample) for sample in latin_hypercube(POINTS, 5 * problem.rotors + 3, 0)]
    began = time.perf_counter()
    rows(points[0])
    compile_s = time.perf_counter() - began
    shifts = 1e-6 * np.eye(problem.layout.size)
    offset = [0]  # points that no call has seen: the evaluator remembers its last one

    def exact():
        offset[0] += 1
        for x in points:
            rows(x + 1e-9 * offset[0])

    def differences():
        offset[0] += 1
        x = points[0] + 1e-9 * offset[0]
        rows.merit(x)
        for shift in shifts:
            rows.merit(x + shift)

    return [
        compare(
            "layout_evaluation", "all rows with exact derivatives (evaluations)", f"forward differences by {len(shifts)} numbers", exact,
            differences, units=POINTS, peer_units=1, step_s=0.0, compile_s=compile_s, rounds=7,
        )
    ]  # fmt: skip
