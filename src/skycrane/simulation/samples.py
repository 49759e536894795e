"""What a finished run means: element outputs, energy, work and targets at every saved sample, evaluated once after the flight.

Energy account: with E the energy of all bodies and elements and W the integral of all non-conservative power (the system's ledger),
``E(t) - W(t)`` is constant.  An event that changes a parameter also changes E, at an instant and with the state held; that jump,

    J = E(state; parameters after) - E(state; parameters before),

is work done from outside too and is counted in ``work``.  It is exact where the event's tick is a saved sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from skycrane.core.bodies import State
from skycrane.core.controller import Target
from skycrane.core.events import Timeline
from skycrane.core.system import LEDGER, System
from skycrane.simulation.quick import quick_jit
from skycrane.simulation.rollout import Run

Tracked = Sequence[str] | Mapping[str, Sequence[str]] | None
BLOCK = 1024  # samples evaluated at once: bounds the memory that a long run of a large system needs


class Samples(NamedTuple):
    """The good samples of a run, n of them, as NumPy arrays with leading axis n.

    ``time`` (n,) s; ``state``, ``command`` as in :class:`Run`; ``outputs`` by element and name; ``energy`` (n,) J; ``work`` and
    ``throughput`` (n,) J, or None without a ledger; ``tracked``: names of the k tracked bodies; ``target``: a :class:`Target` with arrays
    (n, k, ...), or None without a reference.
    """

    time: np.ndarray
    state: State
    command: dict
    outputs: dict[str, dict[str, np.ndarray]]
    energy: np.ndarray
    work: np.ndarray | None
    throughput: np.ndarray | None
    tracked: tuple[str, ...]
    target: Target | None


def sample(
    run: Run,
    system: System,
    reference: Any = None,
    *,
    tracked: Tracked = None,
    events: Timeline | None = None,
    control_period: float | None = None,
    evaluated: Any = None,
) -> Samples:
    """Evaluate a run.

    Args:
        run: one run (not a batch).  Samples that are not ``good`` are left out; the first is always kept.
        system, reference: as given to ``simulate``.  The reference may be None, or anything that is not made of :class:`AbstractReference`
            calls returning :class:`Target`; then there are no targets.
        tracked: names of the bodies that the target's rows belong to; by default the first k bodies.  For a reference that is a dictionary
            (a team): a dictionary of such lists by member, by default a member's own name where it is that of a body.
        events: the run's timeline, so that outputs, energy and targets follow its changes.
        control_period: [s], needed with ``events``.
        evaluated: what :func:`evaluate` returned for all samples of this run (a lane of a batch), to save evaluating it here.

    Raises:
        ValueError: for names in ``tracked`` that are no bodies or do not fit the target, or events without the control period.
    """
    if events is not None and events.events and control_period is None:
        raise ValueError("events change at control ticks: give control_period too")
    names, rows = _tracked_bodies(reference, system, tracked)
    count = max(1, int(np.sum(np.asarray(run.good))))
    state, command = jax.tree.map(lambda x: x[:count], (run.state, run.command))
    if evaluated is None:
        seen = reference if rows else None
        evaluated = _evaluate(run.time[:count], state, command, system, seen, _seen(events), control_period or 1.0)
    outputs, energy, jump, targets = jax.tree.map(lambda x: np.asarray(x)[:count], evaluated)
    state, command = jax.tree.map(np.asarray, (state, command))
    work = throughput = None
    if LEDGER in state.memory:
        account = state.memory[LEDGER]
        work, throughput = account.work + np.cumsum(jump), account.throughput + np.cumsum(abs(jump))
    target = _gather(targets, rows) if rows else None
    return Samples(np.asarray(run.time[:count]), state, command, outputs, energy, work, throughput, names, target)


def evaluate(run: Run, system: System, reference: Any = None, *, events: Timeline | None = None, control_period: float = 1.0) -> tuple:
    """Outputs, energy, energy jumps by events and targets at every sample of a run, for :func:`sample`; inside ``jit`` and ``vmap``."""
    rows = _tracked_bodies(reference, system, None)[1]
    return _at_samples(run.time, run.state, run.command, system, reference if rows else None, _seen(events), control_period)


def _seen(events: Timeline | None) -> Timeline:
    """The events that change what a log shows."""
    return Timeline(tuple(e for e in (events.events if events else ()) if e.path.split(".")[0] in ("system", "reference")))


def _at_samples(time: Array, state: State, command: dict, system: System, reference: Any, events: Timeline, period: float) -> tuple:
    whole = {"system": system, "reference": reference}

    def parts_at(t):
        return events.apply(jnp.round(t / period), period, whole) if events.events else whole

    def energy_of(system, t, state):
        return jnp.asarray(system.energy(t, state, system.prepare()), time.dtype)

    def one(x):
        t, before, state, command = x
        parts = parts_at(t)
        system = parts["system"]
        outputs = system.outputs(t, state, command, system.prepare())
        energy = energy_of(system, t, state)
        jump = energy - energy_of(parts_at(before)["system"], t, state) if events.events else jnp.zeros_like(energy)
        return outputs, energy, jump, _call(parts["reference"], t)

    # Equal blocks, the last sample repeated to fill them: what is left over would be traced and compiled a second time.
    count = time.shape[0]
    blocks = -(-count // BLOCK)
    size = -(-count // blocks)
    before = jnp.concatenate([time[:1], time[:-1]])
    given = jax.tree.map(
        lambda x: jnp.concatenate([x, jnp.repeat(x[-1:], blocks * size - count, axis=0)]) if blocks * size > count else x,
        (time, before, state, command),
    )
    return jax.tree.map(lambda x: x[:count], lax.map(one, given, batch_size=size))


_evaluate = quick_jit(_at_samples)


def _call(reference: Any, t: Array) -> dict[str, Target]:
    """Targets by member of a team; one nameless member for a single reference."""
    if reference is None:
        return {}
    if isinstance(reference, Mapping):
        return {name: part(t) for name, part in reference.items()}
    return {"": reference(t)}


def _tracked_bodies(reference: Any, system: System, tracked: Tracked) -> tuple[tuple[str, ...], list[tuple[str, int]]]:
    """Names of the tracked bodies, and for each the member and the row of its target."""
    members = reference if isinstance(reference, Mapping) else {"": reference}
    if not members or not all(callable(part) for part in members.values()):
        return (), []
    shapes = jax.eval_shape(lambda t: _call(reference, t), jnp.zeros(()))
    if not all(isinstance(target, Target) for target in shapes.values()):
        return (), []
    names: list[str] = []
    rows: list[tuple[str, int]] = []
    for member, target in shapes.items():
        count = target.p_W.shape[0]
        if isinstance(tracked, Mapping):
            own = tuple(tracked.get(member, ()))
        elif tracked is not None and len(shapes) == 1:
            own = tuple(tracked)
        else:
            own = (member,) if member in system.bodies.names and count == 1 else system.bodies.names[:count]
        if len(own) != count:
            raise ValueError(f"tracked bodies {own}: the reference {member!r} has {count} rows")
        for row, name in enumerate(own):
            system.bodies.index(name)
            names.append(name)
            rows.append((member, row))
    return tuple(names), rows


def _gather(targets: dict[str, Any], rows: list[tuple[str, int]]) -> Target:
    """One target with a row for each tracked body, from arrays (n, k, ...) by member."""
    return jax.tree.map(lambda *columns: np.stack(columns, axis=1), *(jax.tree.map(lambda x, r=r: x[:, r], targets[m]) for m, r in rows))
