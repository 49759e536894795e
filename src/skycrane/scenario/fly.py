"""Flying a built scenario: in pieces, so that progress shows and a run that ended early stops early."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from skycrane.simulation.rollout import STATUS_NAMES, Checkpoint, Run, simulate, start

from .build import Built

PIECES = 32
FINISHED = next(code for code, name in STATUS_NAMES.items() if name == "finished")


@dataclass(frozen=True)
class Flight:
    """A run with the wall times [s] that its compilation and its steps took."""

    run: Run
    compile_s: float
    run_s: float


def fly(built: Built, progress: Callable[[float, float], None] | None = None) -> Flight:
    """Run a scenario to its end, or until it diverges or reaches a limit.

    ``progress(simulated seconds, wall seconds)`` is called after each piece; the first piece's wall time is mostly compilation.
    """
    settings = built.scenario.run
    samples = math.ceil(settings.ticks / settings.ticks_per_sample)
    length = _piece(samples)
    sample_period = settings.tick * settings.ticks_per_sample
    pieces: list[Run] = []
    walls: list[float] = []
    # A checkpoint for the first piece too: starting from a state would be compiled as another program.
    first = at = start(built.system, built.controller, built.reference, built.initial, built.sensors)
    for number in range(math.ceil(samples / length)):
        piece, wall = _timed(built, at, length)
        pieces.append(piece)
        walls.append(wall)
        at = piece.final
        if progress is not None:
            progress(min((number + 1) * length, samples) * sample_period, wall)
        if piece.status_name != "finished":
            break
    # What the first piece took longer than the others is compilation; a single piece is flown again to tell them apart.
    usual = float(np.median(walls[1:])) if len(walls) > 1 else _timed(built, first, length)[1]
    compile_s = max(walls[0] - usual, 0.0)
    return Flight(_joined(pieces, samples), compile_s, sum(walls) - compile_s)


def _timed(built: Built, at: Checkpoint, length: int) -> tuple[Run, float]:
    """Fly on for ``length`` samples: the run, and the wall time [s] that it took."""
    settings = built.scenario.run
    duration = length * settings.ticks_per_sample * settings.tick
    began = time.perf_counter()
    run = simulate(
        built.system,
        built.controller,
        built.reference,
        at,
        duration=duration,
        save_every=settings.ticks_per_sample,
        soon=True,
        **options(built),
    )
    jax.block_until_ready(run)
    return run, time.perf_counter() - began


def options(built: Built) -> dict[str, Any]:
    """The settings that `simulate` and `diagnose` both take."""
    settings = built.scenario.run
    return {
        "step": settings.step,
        "control_period": settings.tick,
        "integrator": built.integrator,
        "events": built.timeline,
        "limits": built.limits,
        "sensors": built.sensors,
    }


def _piece(samples: int) -> int:
    """Samples in each piece. All pieces are equally long, since each length is compiled by itself; the last one may fly a
    little beyond the end, which is cut off, so the count of pieces is the one near `PIECES` that wastes least."""
    counts = range(min(PIECES, samples), min(2 * PIECES, samples) + 1)
    return min((math.ceil(samples / count) for count in counts), key=lambda n: (math.ceil(samples / n) * n, -n))


def _joined(pieces: list[Run], samples: int) -> Run:
    """One run of all pieces. The last sample of a piece is the first of the next, but for the command: a piece ends with the
    command that it held, the next one begins with the command from then on."""

    def join(*parts: Any) -> np.ndarray:
        arrays = [np.asarray(part) for part in parts]
        return np.concatenate([*(array[:-1] for array in arrays[:-1]), arrays[-1]])[: samples + 1]

    times, states, commands, good = (
        jax.tree.map(join, *(getattr(piece, name) for piece in pieces)) for name in ("time", "state", "command", "good")
    )
    # What went wrong beyond the end does not count.
    status = pieces[-1].status if not good.all() else jnp.asarray(FINISHED)
    return Run(times, states, commands, good, status, pieces[-1].final)
