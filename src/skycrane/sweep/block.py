"""Flying a block: build its points, put those of one structure side by side, fly them as one batch, and take the metrics of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

FINISHED, INVALID, ERROR = "finished", "invalid", "error"  # besides the statuses of a run: diverged, limit


class Entry(NamedTuple):
    """A point as a worker gets it: its scenario's complete tables, or why there is none."""

    number: int
    key: str
    values: dict[str, Any]
    tables: dict[str, Any] | None
    reason: str


@dataclass(frozen=True)
class Task:
    """A block as a worker gets it; made of plain Python objects, so that it travels to any process or machine."""

    block: str
    precision: str
    width: int
    entries: tuple[Entry, ...]
    corners: tuple[dict[str, Any], ...]


def failure(entry: Entry, status: str, reason: str) -> dict[str, Any]:
    """The record of a point that was not flown."""
    return {"index": entry.number, "key": entry.key, "values": entry.values, "status": status, "reason": reason, "metrics": {}}


def run_block(task: Task) -> list[dict[str, Any]]:
    """Records of all points, in their order; a point that cannot be flown has a reason and never stops the others."""
    from skycrane.runtime import configure

    configure(task.precision)
    from skycrane.simulation.batch import lane_structure

    records: dict[int, dict[str, Any]] = {}
    groups: dict[Any, list[tuple[Entry, Any]]] = {}
    for entry in task.entries:
        if entry.tables is None:
            records[entry.number] = failure(entry, INVALID, entry.reason)
            continue
        try:
            built = _built(entry.tables)
            reason = _too_long(built)
        except Exception as error:  # whatever it is, it is this point's own
            records[entry.number] = failure(entry, ERROR, _said(error))
            continue
        if reason:
            records[entry.number] = failure(entry, INVALID, reason)
        else:
            groups.setdefault((lane_structure(_bundle(built)), _settings(built)), []).append((entry, built))
    for (structure, settings), members in groups.items():
        varied = _varied(task.corners, structure, settings, members[0][1]) if len(members) > 1 else ()
        for entry, record in _fly(members, settings, varied, task.width):
            records[entry.number] = record
    return [records[entry.number] for entry in task.entries]


class _Settings(NamedTuple):
    duration: float
    step: float
    tick: float
    save_every: int


def _built(tables: dict[str, Any]) -> Any:
    from skycrane.scenario.build import build
    from skycrane.scenario.loader import validate

    return build(validate(tables, "point"))


def _bundle(built: Any) -> tuple:
    """All that a batch may vary."""
    return (
        built.system, built.controller, built.reference, built.initial, built.timeline, built.integrator, built.limits, built.sensors,
    )  # fmt: skip


def _settings(built: Any) -> _Settings:
    run = built.scenario.run
    samples = math.ceil(run.ticks / run.ticks_per_sample)
    return _Settings(samples * run.ticks_per_sample * run.tick, run.step, run.tick, run.ticks_per_sample)


def _too_long(built: Any) -> str:
    """The reason to refuse a step by the rule of `skycrane run`; empty where there is none."""
    from skycrane.scenario.record import largest_step, warnings_before

    limit, name = largest_step(built)
    return warnings_before(built)[0] if limit is not None and built.scenario.run.step > 2 * limit and name != "contact" else ""


def _varied(corners: Sequence[dict[str, Any]], structure: Any, settings: _Settings, like: Any) -> tuple[str, ...]:
    """Paths of all numbers that the ranges change, so that every block of the sweep compiles to the same program."""
    from skycrane.simulation.batch import differing, lane_structure

    paths: set[str] = set()
    for tables in corners:
        try:
            built = _built(tables)
        except Exception:  # a corner that cannot be built says nothing
            continue
        if lane_structure(_bundle(built)) == structure and _settings(built) == settings:
            paths |= differing(_bundle(like), _bundle(built))
    return tuple(sorted(paths))


def _fly(members: list[tuple[Entry, Any]], settings: _Settings, varied: tuple[str, ...], width: int) -> list[tuple[Entry, dict]]:
    """Fly points of one structure together; one by one where that fails."""
    try:
        return _fly_together(members, settings, varied, width)
    except Exception as error:
        if len(members) == 1:
            return [(members[0][0], failure(members[0][0], ERROR, _said(error)))]
        return [pair for member in members for pair in _fly([member], settings, (), width)]


def _fly_together(members: list[tuple[Entry, Any]], settings: _Settings, varied: tuple[str, ...], width: int) -> list[tuple[Entry, dict]]:
    import jax
    import numpy as np

    from skycrane.simulation.batch import stack_lanes

    bundles = [_bundle(built) for _, built in members]
    # Filled up with copies to the width of the sweep, so that a block that is not full needs no program of its own.
    bundles += [bundles[-1]] * (width - len(bundles) if len(bundles) > 1 else 0)
    stacked, shared = stack_lanes(bundles, varied)
    if len(members) == 1:
        stacked, shared = None, jax.tree.map(lambda a, b: b if a is None else a[0], stacked, shared, is_leaf=lambda x: x is None)
    out = jax.tree.map(np.asarray, _program()(stacked, shared, settings, len(bundles)))
    return [(entry, _record(entry, built, jax.tree.map(lambda x, k=k: x[k], out))) for k, (entry, built) in enumerate(members)]


def _program() -> Any:
    """The compiled flight of a batch, made once in a process."""
    global _compiled
    if _compiled is None:
        import equinox as eqx

        _compiled = eqx.filter_jit(_flight)
    return _compiled


_compiled: Any = None


def _flight(stacked: Any, shared: Any, settings: _Settings, lanes: int) -> Any:
    import equinox as eqx
    import jax

    from skycrane.simulation.batch import map_lanes
    from skycrane.simulation.rollout import simulate
    from skycrane.simulation.samples import evaluate

    def one(lane: Any) -> Any:
        system, controller, reference, initial, timeline, integrator, limits, sensors = eqx.combine(lane, shared)
        run = simulate(
            system, controller, reference, initial, duration=settings.duration, step=settings.step, control_period=settings.tick,
            integrator=integrator, sensors=sensors, events=timeline, limits=limits, save_every=settings.save_every,
        )  # fmt: skip
        seen = evaluate(run, system, followed(reference), events=timeline, control_period=settings.tick)
        return run.time, run.state, run.command, run.good, run.status, seen

    if stacked is None:
        return jax.tree.map(lambda x: x[None], one(None))
    return map_lanes(one, stacked, block=lanes)


def followed(reference: Any) -> Any:
    """As :attr:`Built.followed`."""
    if not isinstance(reference, dict):
        return reference
    return {name: member for name, member in reference.items() if member is not None}


def _record(entry: Entry, built: Any, lane: tuple) -> dict[str, Any]:
    import numpy as np

    from skycrane.scenario.record import metrics_of
    from skycrane.simulation.rollout import STATUS_NAMES, Run
    from skycrane.simulation.samples import sample

    time, state, command, good, status, seen = lane
    run = Run(time, state, command, good, status, None)  # type: ignore[arg-type]
    targets = built.followed
    samples = sample(run, built.system, targets, events=built.timeline, control_period=built.scenario.run.tick, evaluated=seen)
    name, reason = STATUS_NAMES[int(status)], ""
    if name != FINISHED:
        last = float(time[max(int(np.sum(good)) - 1, 0)])
        what = "a number is not finite" if name == "diverged" else "run.max_speed or run.max_distance was reached"
        reason = f"{what} after t = {last:g} s; `skycrane run` with the same values says which"
    record = failure(entry, name, reason)
    record["metrics"] = metrics_of(run, built, targets, samples)
    return record


def _said(error: Exception) -> str:
    """An error in one line."""
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text[:400]}"
