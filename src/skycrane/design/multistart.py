"""Many local optimisations: from Latin hypercube samples, then from the best of them shaken, and a last sharp one of the best.

Seeded: what a job does depends on the seed and its number, and for shaken ones on the results of the whole generation before, so a run
with a given number of starts is repeatable however many processes share it (unless its time runs out).  Resumable: every result is a line
of ``starts.jsonl``; what is there is not computed again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skycrane.design.nlp import require
from skycrane.design.problem import DesignError, Problem, latin_hypercube, start_of
from skycrane.design.solve import MOST, Solution, Solver

STORE = "starts.jsonl"
GENERATION = 8  # shaken starts of a generation
PARENTS = 4
POLISH = 3
SHARES = (0.5, 0.75, 0.9)  # of the time: ends of the first starts, of the shaken ones, of polishing
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
FRONT = (0.9, 1.1, 0.8, 1.25, 0.7, 0.6, 0.5)  # limits of the condition number on the front, of that of the problem


@dataclass(frozen=True)
class Job:
    """``kind`` start, explore, shaken, polish or front; ``number``; ``x`` where it begins; another limit of the condition number."""

    kind: str
    number: int
    x: tuple[float, ...]
    condition_max: float | None = None


@dataclass(frozen=True)
class Outcome:
    """All results by job, the best polished one (None where nothing was found), the seconds used, and evaluations of the rows."""

    results: dict[tuple[str, int], Solution]
    best: Solution | None
    wall_s: float
    evaluations: int

    def of(self, *kinds: str) -> list[Solution]:
        """Feasible ends of jobs of some kinds, best first."""
        return sorted((s for (kind, _), s in self.results.items() if kind in kinds and s.feasible), key=lambda s: s.objective)

    @property
    def nearest(self) -> Solution | None:
        """The end with the smallest violation."""
        return min(self.results.values(), key=lambda s: s.violation, default=None)


Progress = Callable[[str, int, int, float | None, float], None]
"""Phase, jobs done, jobs planned, best objective so far, seconds used."""


def search(
    problem: Problem,
    *,
    starts: int = 64,
    budget: float = 300.0,
    seed: int = 0,
    workers: int | None = None,
    directory: Path | None = None,
    progress: Progress | None = None,
    front: bool = True,
    evaluations: int = 10**12,
    explore: bool = False,
    solver: str = "slsqp",
) -> Outcome:
    """Look for the best design.

    Args:
        starts: Latin hypercube starts; half as many shaken ones follow.
        budget: s of wall time; the last results may come a few seconds later.
        workers: processes; by default one for each processor; 1 computes in this process.
        explore: whether each start begins with a search without derivatives (CMA-ES).
        solver: what goes downhill, one of :data:`skycrane.design.nlp.PACKAGES`.
        evaluations: of the rows, after which no start is begun; the best ones are polished still. It is the most of one descent too.
        directory: where results are kept (and taken from, if they belong to the same problem and seed).

    Raises:
        DesignError: where the directory holds results of another problem, or the solver's package is missing.
    """
    require(solver)
    run = _Run(problem, starts, budget, seed, solver, directory, progress, evaluations)
    workers = max(1, min(workers or os.cpu_count() or 1, starts))
    with _pool(problem, workers, solver, min(evaluations, MOST)) as submit:
        samples = latin_hypercube(starts, 5 * problem.rotors + 3, seed)
        kind = "explore" if explore else "start"
        run.phase("starts", submit, [Job(kind, k, tuple(start_of(problem, s))) for k, s in enumerate(samples)], SHARES[0] * budget)
        number = 0
        while number < starts // 2 and run.left(SHARES[1] * budget) > 0 and run.results:
            jobs = [run.shaken(number + k) for k in range(min(GENERATION, starts // 2 - number))]
            run.phase("shaken", submit, jobs, SHARES[1] * budget, number)
            number += len(jobs)
        best = [Job("polish", k, tuple(s.x)) for k, s in enumerate(_distinct(run.hopeful(), POLISH))]
        run.phase("polish", submit, best, SHARES[2] * budget)
        if front and problem.condition_max is not None:
            parents = [s.x for s in _distinct(run.ranking(("polish",)) or run.ranking(), 2)]
            steps = [problem.condition_max * f for f in FRONT]
            jobs = [Job("front", k, tuple(x), c) for k, (c, x) in enumerate((c, x) for c in steps for x in parents)]
            run.phase("front", submit, jobs, budget)
    polished = [s for (kind, _), s in run.results.items() if kind == "polish" and s.feasible]
    chosen = min(polished or run.ranking(), key=lambda s: s.objective, default=None)
    return Outcome(run.results, chosen, run.used(), sum(s.evaluations for s in run.results.values()))


class _Run:
    def __init__(
        self,
        problem: Problem,
        starts: int,
        budget: float,
        seed: int,
        solver: str,
        directory: Path | None,
        progress: Progress | None,
        evaluations: int,
    ):
        self.problem, self.starts, self.budget, self.seed, self.progress = problem, starts, budget, seed, progress
        self.solver = solver
        self.evaluations = evaluations
        self.results: dict[tuple[str, int], Solution] = {}
        self.origin: dict[tuple[str, int], tuple[float, ...]] = {}
        self.began, self.before = time.monotonic(), 0.0
        self.file: Path | None = None
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            self.file = directory / STORE
            self._read()

    @property
    def mark(self) -> str:
        """What a stored result must have been computed for."""
        return hashlib.sha256(f"{self.problem!r} {self.seed} {self.starts} {self.solver}".encode()).hexdigest()[:16]

    def _read(self) -> None:
        assert self.file is not None
        if not self.file.exists():
            self.file.write_text(json.dumps({"problem": self.mark}) + "\n")
            return
        lines = self.file.read_text().splitlines()
        if not lines or json.loads(lines[0]).get("problem") != self.mark:
            raise DesignError(
                f"{self.file} holds results of another problem, seed, solver or number of starts: choose another directory, or delete it"
            )
        kept = [lines[0]]
        for line in lines[1:]:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                break  # cut off by the kill
            key = entry.pop("kind"), entry.pop("number")
            self.before = max(self.before, entry.pop("used"))
            self.origin[key] = tuple(entry.pop("origin"))
            self.results[key] = Solution(**{**entry, "x": np.array(entry["x"])})
            kept.append(line)
        self.file.write_text("\n".join(kept) + "\n")

    def used(self) -> float:
        return self.before + time.monotonic() - self.began

    def left(self, until: float, name: str = "") -> float:
        spent = sum(s.evaluations for s in self.results.values())
        return until - self.used() if spent < self.evaluations or name == "polish" else 0.0

    def ranking(self, kinds: tuple[str, ...] = ("start", "explore", "shaken")) -> list[Solution]:
        """Feasible ends of jobs of some kinds, best first."""
        found = [s for (kind, _), s in self.results.items() if kind in kinds and s.feasible]
        return sorted(found, key=lambda s: s.objective)

    def hopeful(self) -> list[Solution]:
        """The ranking; where nothing has met everything, those that miss least first, for they may yet."""
        return self.ranking() or sorted(self.results.values(), key=lambda s: s.violation)

    def shaken(self, number: int) -> Job:
        """One of the best, moved about at random."""
        rng = np.random.default_rng([self.seed, 1, number])
        parents = _distinct(self.hopeful(), PARENTS)
        base = parents[number % len(parents)].x
        at = self.problem.layout
        x = base.copy()
        size = rng.uniform(0.1, 0.5)
        some = rng.random(self.problem.rotors) < 0.6  # not all rotors at a time
        x[at.r] += (some[:, None] * rng.normal(0.0, 0.3 * size, (at.n, 3))).ravel()
        x[at.f] += (some[:, None] * rng.normal(0.0, size, (at.n, 3))).ravel()
        f = x[at.f].reshape(at.n, 3)
        x[at.f] = (f / np.linalg.norm(f, axis=1, keepdims=True)).ravel()
        return Job("shaken", number, tuple(np.clip(x, at.low, at.high)))

    def phase(self, name: str, submit: Any, jobs: list[Job], until: float, first: int = 0) -> None:
        """Run the jobs that have no result yet, until ``until`` [s of the budget]."""
        # A polishing whose start has changed since is another job of the same number.
        todo = [job for job in jobs if self.origin.get((job.kind, job.number)) != job.x][::-1]
        for job in todo:
            self.results.pop((job.kind, job.number), None)
        running: dict[Future, Job] = {}
        planned = len(jobs) if name != "shaken" else self.starts // 2
        while todo or running:
            while todo and len(running) < submit.width and self.left(until, name) > 0:
                job = todo.pop()
                running[submit(job, self.left(until, name))] = job
            if not running:
                break
            done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in done:
                job = running.pop(future)
                try:
                    self.keep(job, future.result())
                except BrokenProcessPool:
                    raise DesignError(
                        "a process of the search was killed (memory?): start again to go on, perhaps with fewer workers"
                    ) from None
            if self.progress is not None:
                finished = first + len(jobs) - len(todo) - len(running)
                best = self.ranking()
                self.progress(name, finished, planned, best[0].objective if best else None, self.used())

    def keep(self, job: Job, found: Solution) -> None:
        self.results[job.kind, job.number] = found
        self.origin[job.kind, job.number] = job.x
        if self.file is not None:
            entry = {"kind": job.kind, "number": job.number, "used": self.used(), **asdict(found), "x": found.x.tolist(), "origin": job.x}
            with self.file.open("a") as out:
                out.write(json.dumps(entry) + "\n")


def _distinct(ranked: list[Solution], count: int) -> list[Solution]:
    """The best with different objectives: equal ones are mirror images or rotations of each other."""
    chosen: list[Solution] = []
    for s in ranked:
        if all(abs(s.objective - other.objective) > 1e-3 * abs(other.objective) for other in chosen):
            chosen.append(s)
        if len(chosen) == count:
            break
    return chosen


_SOLVER: Solver | None = None


def _begin(problem: Problem, method: str, most: int) -> None:
    global _SOLVER
    # A worker whose parent was killed would wait for work for ever.
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    from skycrane.runtime import configure

    configure()
    _SOLVER = Solver(problem, method, most)


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _work(job: Job, seconds: float, solver: Solver | None = None) -> Solution:
    solver = solver or _SOLVER
    assert solver is not None
    deadline = time.monotonic() + seconds
    x = np.array(job.x)
    if job.kind in ("polish", "front"):
        return solver.polish(x, deadline, job.condition_max)
    if job.kind == "explore":
        return solver.explore(x, job.number, deadline)
    return solver.run(x, deadline=deadline)


class _pool:
    """A function that takes a job and the seconds it may use and returns its future; a context manager."""

    def __init__(self, problem: Problem, workers: int, *options: Any):
        self.problem, self.width, self.options = problem, workers, options
        self.executor: ProcessPoolExecutor | None = None
        self.solver: Solver | None = None

    def __enter__(self) -> _pool:
        # The matrices are small: threads of BLAS that wait for each other made a descent four times slower on two busy cores.
        self.before = {name: os.environ.get(name) for name in BLAS_THREADS}
        if self.width > 1:
            os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))  # workers read it when they start
            context = multiprocessing.get_context("spawn")  # a forked JAX does not work
            self.executor = ProcessPoolExecutor(self.width, context, _begin, (self.problem, *self.options))
        else:
            self.solver = Solver(self.problem, *self.options)
        return self

    def __call__(self, job: Job, seconds: float) -> Future:
        if self.executor is not None:
            return self.executor.submit(_work, job, seconds)
        future: Future = Future()
        future.set_result(_work(job, seconds, self.solver))
        return future

    def __exit__(self, *_: Any) -> None:
        if self.executor is not None:
            self.executor.shutdown(cancel_futures=True)
        for name, value in self.before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})
