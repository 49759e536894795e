"""The only closed loop: a controller at its ticks outside, integrator steps inside.

Time is the integer tick times the control period, counted from the start of the whole run, so a run that is split anywhere and restarted
from its checkpoint goes through the same numbers bit for bit.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from skycrane.core.bodies import State
from skycrane.core.controller import AbstractController, AbstractSensors, TrueState
from skycrane.core.events import Timeline
from skycrane.core.system import System
from skycrane.simulation.integrators import RK4, AbstractIntegrator
from skycrane.simulation.quick import SOON, quick_jit
from skycrane.simulation.rows import by_numbers

FINISHED, DIVERGED, LIMIT = 0, 1, 2
STATUS_NAMES = {FINISHED: "finished", DIVERGED: "diverged", LIMIT: "limit"}


class Limits(eqx.Module):
    """Where a run counts as over: ``distance`` [m] from the world's origin and ``speed`` [m/s] of any body give status ``limit``.

    Numbers that are not finite give status ``diverged``, with or without limits.
    """

    distance: Array | float = jnp.inf
    speed: Array | float = jnp.inf

    def reached(self, state: State) -> Array:
        b = state.bodies
        far = jnp.sum(b.p_WB**2, -1) > jnp.square(self.distance)
        return jnp.any(far | (jnp.sum(b.v_W**2, -1) > jnp.square(self.speed)))


class Checkpoint(eqx.Module):
    """All that a run needs to go on: tick, state, memories, the last command, and the first tick at which a limit was reached (or -1)."""

    tick: Array
    state: State
    controller_memory: Any
    sensor_memory: Any
    command: dict
    limit_tick: Array


class Run(eqx.Module):
    """A finished rollout.

    ``time`` (n,) s; ``state`` and ``command`` with leading axis n: the state at that time (before an impulse that falls on it) and the
    command given from it on (at the last sample, the command that was held); ``good`` (n,) bool, False from the first sample on that is
    not finite or beyond a limit; ``status`` (0 finished, 1 diverged, 2 limit) and ``final``, from which another run goes on.
    """

    time: Array
    state: State
    command: dict
    good: Array
    status: Array
    final: Checkpoint

    @property
    def status_name(self) -> str:
        return STATUS_NAMES[int(self.status)]


def start(
    system: System, controller: AbstractController, reference: Any, state: State, sensors: AbstractSensors | None = None, tick: int = 0
) -> Checkpoint:
    """The checkpoint from which a run begins, at ``tick`` control periods."""
    sensors = TrueState() if sensors is None else sensors
    dtype = state.bodies.p_WB.dtype
    controller_memory, sensor_memory = jax.tree.map(jnp.asarray, (controller.init(), sensors.init(state)))

    def first_command():
        measurement = TrueState()(0, None, system, state, {}, None, ())[0]
        return controller(jnp.zeros((), dtype), measurement, reference, controller_memory)[0]

    command = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(first_command))
    at = Checkpoint(jnp.asarray(tick), state, controller_memory, sensor_memory, command, jnp.asarray(-1))
    return jax.tree.map(_strong, at)


def _strong(value: Array) -> Array:
    """Without JAX's weak type, which a run's end does not have: going on from there would compile the whole rollout a second time."""
    return jnp.asarray(value, value.dtype) if getattr(value, "weak_type", False) else value


def simulate(
    system: System,
    controller: AbstractController,
    reference: Any,
    initial: State | Checkpoint,
    *,
    duration: float,
    step: float,
    control_period: float | None = None,
    integrator: AbstractIntegrator | None = None,
    sensors: AbstractSensors | None = None,
    events: Timeline | None = None,
    limits: Limits | None = None,
    save_every: int = 1,
    bounded_memory: bool = False,
    soon: bool = False,
) -> Run:
    """Fly.

    Args:
        initial: a state (:meth:`System.initial_state`), or the ``final`` checkpoint of an earlier run to go on from.
        duration: simulated time [s] of this call, a whole number of control periods.
        step: integration step [s].
        control_period: time between control ticks [s], a whole number of steps; the step itself by default.
        integrator: :class:`RK4` by default.
        sensors: what the controller sees; the true state by default.
        events: failures, gusts, impulses and mode changes.
        limits: where to stop early.
        save_every: control ticks between saved samples; the end is always saved.
        bounded_memory: for reverse-mode derivatives (``jax.grad``): keep the state at the saved samples only and fly from each of them
            again on the way back, instead of keeping what every step computed.  ``save_every`` near the square root of the number of
            ticks needs the least memory.  The flight itself is the same.
        soon: compile in two thirds of the time a program that is up to a third slower: for a system that is flown once.  Not inside
            ``jit``.

    Returns:
        A :class:`Run`.  Check its ``status``.

    Raises:
        ValueError: for times that are not whole multiples, or events that lead nowhere.
    """
    period = step if control_period is None else control_period
    substeps = whole(period, step, "control_period", "step")
    ticks = whole(duration, period, "duration", "the control period")
    if save_every < 1:
        raise ValueError(f"save_every is {save_every}, expected at least 1")
    sensors = TrueState() if sensors is None else sensors
    events = Timeline() if events is None else events
    events.check({"system": system, "controller": controller, "reference": reference})
    loop = _Loop(substeps, ticks, save_every, step, period, bounded_memory)
    rollout = _rollout_soon if soon else _rollout
    return rollout(loop, system, controller, reference, sensors, events, limits, integrator or RK4(), initial)


def whole(total: float, part: float, total_name: str, part_name: str) -> int:
    """How many parts make the total.  Raises ValueError if that is not a whole positive number."""
    if not (part > 0 and total > 0):
        raise ValueError(f"{total_name} is {total} and {part_name} is {part}; both must be positive")
    count = round(total / part)
    if count < 1 or abs(count * part - total) > 1e-6 * part * max(1, count) ** 0.5 + 1e-9 * total:
        raise ValueError(f"{total_name} = {total} s is not a whole multiple of {part_name} = {part} s")
    return count


class _Loop(eqx.Module):
    substeps: int = eqx.field(static=True)
    ticks: int = eqx.field(static=True)
    save_every: int = eqx.field(static=True)
    step: float = eqx.field(static=True)
    period: float = eqx.field(static=True)
    bounded_memory: bool = eqx.field(static=True)


def _flown(loop: _Loop, *parts) -> Run:
    arrays, rest = eqx.partition(parts, eqx.is_array)
    return by_numbers(lambda arrays: _fly(loop, *eqx.combine(arrays, rest)), arrays)


_rollout, _rollout_soon = eqx.filter_jit(_flown), quick_jit(_flown, SOON)


def _fly(loop: _Loop, system, controller, reference, sensors, events, limits, integrator, initial) -> Run:
    if not isinstance(initial, Checkpoint):
        initial = start(system, controller, reference, initial, sensors)
    dtype = initial.state.bodies.p_WB.dtype
    prepared_once = system.prepare()
    whole_parts = {"system": system, "controller": controller, "reference": reference}
    changes_bodies = any(e.path.startswith("system.bodies") for e in events.events)

    def tick(checkpoint: Checkpoint, _):
        k = checkpoint.tick
        t = k.astype(dtype) * loop.period
        parts = events.apply(k, loop.period, whole_parts)
        system, controller, reference = parts["system"], parts["controller"], parts["reference"]
        prepared = system.prepare() if changes_bodies else prepared_once
        state = checkpoint.state
        impulse = events.impulse_at(k, loop.period, system.kinematics(state, prepared), system.bodies.count) if events.impulses else None
        if impulse is not None:
            state = system.apply_impulse(state, prepared, *impulse)
        measurement, sensor_memory = sensors(k, t, system, state, checkpoint.command, prepared, checkpoint.sensor_memory)
        command, controller_memory = controller(t, measurement, reference, checkpoint.controller_memory)

        def substep(state, i):
            now = t + i * loop.step
            new = integrator.step(system, now, state, command, prepared, loop.step)
            return system.post_step(now + loop.step, new, prepared), None

        if loop.substeps == 1:
            new_state, _ = substep(state, jnp.zeros((), dtype))
        else:
            new_state, _ = lax.scan(substep, state, jnp.arange(loop.substeps, dtype=dtype))
        limit_tick = checkpoint.limit_tick
        if limits is not None:
            limit_tick = jnp.where((limit_tick < 0) & limits.reached(new_state), k + 1, limit_tick)
        return Checkpoint(k + 1, new_state, controller_memory, sensor_memory, command, limit_tick), command

    def block(checkpoint, _):
        # One traced tick serves both the sample and the ticks between samples.
        if loop.save_every == 1:
            new, command = tick(checkpoint, None)
        else:
            new, commands = lax.scan(tick, checkpoint, None, length=loop.save_every)
            command = jax.tree.map(lambda c: c[0], commands)
        return new, (checkpoint.state, command)

    if loop.bounded_memory:
        block = jax.checkpoint(block)
    blocks, rest = divmod(loop.ticks, loop.save_every)
    first = initial.tick
    final, saved = lax.scan(block, initial, None, length=blocks)
    sample_ticks = first + loop.save_every * jnp.arange(blocks)
    if rest:
        rest_tick = first + blocks * loop.save_every
        before = final.state
        final, rest_commands = lax.scan(tick, final, None, length=rest)
        sample = (before, jax.tree.map(lambda c: c[0], rest_commands))
        saved = jax.tree.map(lambda s, x: jnp.concatenate([s, x[None]]), saved, sample)
        sample_ticks = jnp.append(sample_ticks, rest_tick)
    states, commands = jax.tree.map(lambda s, x: jnp.concatenate([s, x[None]]), saved, (final.state, final.command))
    sample_ticks = jnp.append(sample_ticks, first + loop.ticks)
    # A number that is not finite stays so (every state is its old value plus something): no check is needed inside the loop, and none
    # of the samples where the end is sound.
    sound = jnp.stack([jnp.all(jnp.isfinite(x)) for x in _numbers((final.state, final.command))]).all()
    finite = lax.cond(sound, lambda tree: jnp.ones(sample_ticks.shape, bool), _finite, (states, commands))
    within = (final.limit_tick < 0) | (sample_ticks < final.limit_tick)
    status = jnp.where(finite[-1], jnp.where(final.limit_tick < 0, FINISHED, LIMIT), DIVERGED)
    return Run(sample_ticks.astype(dtype) * loop.period, states, commands, finite & within, status, final)


def _numbers(tree: Any) -> list[Array]:
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]


def _finite(tree: Any) -> Array:
    """For each entry of the leading axis: is every number finite, there and before?"""
    each = [jnp.all(jnp.isfinite(x.reshape(x.shape[0], -1)), -1) for x in _numbers(tree)]
    return jnp.cumprod(jnp.stack(each).all(0)).astype(bool)
