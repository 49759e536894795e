"""Why a run stopped: the time, the body and the term behind the first bad number.

A run keeps samples, not every step.  The diagnosis flies the same run again up to the last good sample, then tick by tick and step by
step to the last state that is still good, and evaluates the equations of motion there and at the Runge-Kutta stages of the next step.  The
term is the first of: the controller (a command that is not finite), an element whose wrench or memory rate is not finite, a constraint, or,
where every number is still finite, the element that causes the largest acceleration of the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from skycrane.core.bodies import Prepared, State
from skycrane.core.constraint import assemble
from skycrane.core.controller import AbstractController, AbstractSensors
from skycrane.core.events import Timeline
from skycrane.core.system import System
from skycrane.simulation.integrators import RK4, AbstractIntegrator, axpy
from skycrane.simulation.quick import quick_jit
from skycrane.simulation.rollout import FINISHED, Checkpoint, Limits, Run, simulate


@dataclass(frozen=True)
class Diagnosis:
    """What went wrong first.

    ``status`` ``"diverged"`` or ``"limit"``, whichever came first; ``time`` [s] of the first bad state; ``body`` its body, or None where an
    element's memory went bad first; ``term``: name of an element or constraint, or ``"controller"``, ``"gyroscopic"``; ``reason``: a few
    words about the term.
    """

    status: str
    time: float
    body: str | None
    term: str
    reason: str

    @property
    def message(self) -> str:
        """One line."""
        where = f" in body {self.body!r}" if self.body else ""
        return f"{self.status} at t = {self.time:.6g} s{where}: {self.term!r} {self.reason}"


def diagnose(
    run: Run,
    system: System,
    controller: AbstractController,
    reference: Any,
    initial: State | Checkpoint,
    *,
    step: float,
    control_period: float | None = None,
    integrator: AbstractIntegrator | None = None,
    sensors: AbstractSensors | None = None,
    events: Timeline | None = None,
    limits: Limits | None = None,
    soon: bool = False,
) -> Diagnosis | None:
    """Find the first bad number of a run that diverged or reached a limit; None for one that finished.

    The arguments are those of ``simulate`` that made the run.
    """
    if int(run.status) == FINISHED:
        return None
    period = step if control_period is None else control_period
    options: dict = {
        "step": step,
        "control_period": period,
        "integrator": integrator,
        "sensors": sensors,
        "events": events,
        "limits": limits,
        "soon": soon,
    }
    sample_ticks = np.round((np.asarray(run.time) - float(run.time[0])) / period).astype(int)
    last_good = max(0, int(np.sum(np.asarray(run.good))) - 1)
    checkpoint: State | Checkpoint = initial
    if last_good:
        checkpoint = simulate(system, controller, reference, initial, duration=sample_ticks[last_good] * period, **options).final
    ticks = sample_ticks[min(last_good + 1, len(sample_ticks) - 1)] - sample_ticks[last_good]
    # One tick more than to the next sample: the command of the last sample of a run is the one before.
    fine = simulate(system, controller, reference, checkpoint, duration=(ticks + 1) * period, **options)
    if not bool(fine.good[0]):
        time, (state, command) = float(fine.time[0]), jax.tree.map(lambda x: x[0], (fine.state, fine.command))
        at_tick = _parts_at(system, events, round(time / period), period)
        return _describe(time, at_tick, at_tick.prepare(), state, state, command, limits, 0.0)
    last = int(np.sum(np.asarray(fine.good))) - 1
    ahead_state, ahead_command = jax.tree.map(lambda x: x[last + 1], (fine.state, fine.command))
    if not _finite(ahead_command) and _finite(ahead_state):
        return Diagnosis("diverged", float(fine.time[last + 1]), None, "controller", _bad_command(ahead_command))
    substeps = round(period / step)
    now = float(fine.time[last])
    state = jax.tree.map(lambda x: x[last], fine.state)
    command = jax.tree.map(lambda x: x[last], fine.command)
    at_tick = _parts_at(system, events, round(now / period), period)
    prepared = at_tick.prepare()
    if events is not None and events.impulses:
        kin = at_tick.kinematics(state, prepared)
        impulse = events.impulse_at(jnp.asarray(round(now / period)), period, kin, system.bodies.count)
        assert impulse is not None
        state = at_tick.apply_impulse(state, prepared, *impulse)
    advance = quick_jit(_advance)
    for i in range(substeps):
        t = now + i * step
        new = advance(at_tick, integrator or RK4(), jnp.asarray(t), state, command, prepared, step)
        if _is_bad(new, limits) or i == substeps - 1:
            return _describe(t, at_tick, prepared, state, new, command, limits, step)
        state = new
    raise AssertionError("a control period has at least one step")


def _advance(system: System, integrator: AbstractIntegrator, t, state: State, command: dict, prepared: Prepared, h: float) -> State:
    return system.post_step(t + h, integrator.step(system, t, state, command, prepared, h), prepared)


def _parts_at(system: System, events: Timeline | None, tick: int, period: float) -> System:
    own = Timeline(tuple(e for e in (events.events if events else ()) if e.path.startswith("system.")))
    return own.apply(jnp.asarray(tick), period, {"system": system})["system"]


def _is_bad(state: State, limits: Limits | None) -> bool:
    return not _finite(state) or (limits is not None and bool(limits.reached(state)))


def _finite(tree: Any) -> bool:
    return all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(x), jnp.inexact))


def _describe(t, system, prepared, state, new, command, limits, h) -> Diagnosis:
    """The diagnosis of a step of length h from ``state`` at t to the bad state ``new``."""
    body = _bad_body(new, limits)
    name = system.bodies.names[body] if body is not None else None
    term, reason = _term(t, h, system, prepared, state, command, body if body is not None else 0)
    if not _finite(new):
        return Diagnosis("diverged", float(t + h), name, term, reason)
    distance, speed = np.linalg.norm(new.bodies.p_WB[body]), np.linalg.norm(new.bodies.v_W[body])
    return Diagnosis("limit", float(t + h), name, term, f"{reason} ({distance:.4g} m from the origin at {speed:.4g} m/s)")


def _bad_body(state: State, limits: Limits | None) -> int | None:
    """The first body with a number that is not finite, else the first beyond a limit, else None."""
    b = state.bodies
    finite = np.all(np.isfinite(np.concatenate([b.p_WB, b.q_WB, b.v_W, b.w_B], axis=1)), axis=1)
    if not finite.all():
        return int(np.argmin(finite))
    if limits is None:
        return None
    beyond = (np.linalg.norm(b.p_WB, axis=1) > limits.distance) | (np.linalg.norm(b.v_W, axis=1) > limits.speed)
    return int(np.argmax(beyond)) if beyond.any() else None


class _Report(NamedTuple):
    """What :func:`_inspect` finds, by element or constraint: over the four Runge-Kutta stages, and for each body."""

    wrench_finite: dict[str, Array]
    memory_finite: dict[str, Array]
    tension_finite: dict[str, Array]
    linear: dict[str, Array]
    angular: dict[str, Array]


@eqx.filter_jit
def _inspect(t, h, system: System, prepared: Prepared, state: State, command: dict) -> _Report:
    """Evaluate every term at the stages of a Runge-Kutta step, and the acceleration that each causes at its start."""

    def stage(rate, fraction):
        now, here = t + fraction * h, axpy(fraction * h, rate, state)
        kin = system.kinematics(here, prepared)
        pushed = {n: e.wrench(now, kin, here.memory[n], command.get(n)) for n, e in system.elements.items()}
        tensions = system.tensions(now, here, command, prepared) if system.constraints else {}
        flags = [{n: _all_finite(x) for n, x in part.items()} for part in (
            {n: p[0] for n, p in pushed.items()}, {n: p[1] for n, p in pushed.items()}, tensions)]  # fmt: skip
        return system.dynamics(now, here, command, prepared), flags

    # Where these stages stay finite, so do those of any method of the same step.
    _, flags = lax.scan(stage, jax.tree.map(jnp.zeros_like, state), jnp.array([0.0, 0.5, 0.5, 1.0], jnp.result_type(t)))
    kin = system.kinematics(state, prepared)
    accelerations = {
        n: prepared.solve(kin.R_WB, *assemble(w, system.bodies.count)) for n, w in system.wrenches(t, state, command, prepared).items()
    }
    bias_force_W, bias_moment_B = prepared.bias(kin.R_WB, kin.v_B, kin.w_B)
    accelerations["gyroscopic"] = prepared.solve(kin.R_WB, 0.0 * bias_moment_B if bias_force_W is None else bias_force_W, bias_moment_B)
    return _Report(
        flags[0],
        flags[1],
        flags[2],
        {n: a.norm() for n, (a, _) in accelerations.items()},
        {n: w.norm() for n, (_, w) in accelerations.items()},
    )


def _all_finite(tree: Any) -> Array:
    leaves = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(x), jnp.inexact)]
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in leaves])) if leaves else jnp.array(True)


def _term(t, h, system: System, prepared: Prepared, state: State, command: dict, body: int) -> tuple[str, str]:
    """Name and fault of the term that spoilt the step from ``state``."""
    if not _finite(command):
        return "controller", _bad_command(command)
    found: _Report = jax.tree.map(np.asarray, _inspect(jnp.asarray(t), jnp.asarray(h), system, prepared, state, command))
    for k in range(4):
        for flags, fault in (
            (found.wrench_finite, "pushed with a force or moment that is not finite"),
            (found.memory_finite, "had a memory rate that is not finite"),
            (found.tension_finite, "had a multiplier that is not finite"),
        ):
            for name in sorted(flags):
                if not flags[name][k]:
                    return name, fault
    # Radius of gyration: makes angular accelerations comparable with linear ones.
    m = prepared.moments
    gyration = float(jnp.sqrt((m.x + m.y + m.z)[body] / (3 * prepared.mass[body])))
    linear, angular = ({n: float(x[body]) for n, x in part.items()} for part in (found.linear, found.angular))
    name = max(linear, key=lambda n: max(linear[n], gyration * angular[n]))
    return name, f"pushed hardest: {linear[name]:.4g} m/s^2, {angular[name]:.4g} rad/s^2"


def _bad_command(command: dict) -> str:
    return f"gave a command that is not finite to {', '.join(n for n, c in command.items() if not _finite(c))}"
