"""Steady motion of one vehicle of a scenario: the condition of a trim, the loop that holds it, and what can be said of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.analysis.closed_loop import ClosedLoop, Margins, closed_loop
from skycrane.analysis.linear_model import LinearModel
from skycrane.analysis.linearize import linearize
from skycrane.analysis.trim import NoTrim, Trim, trim
from skycrane.control.allocation import AXES
from skycrane.control.references import level_target
from skycrane.core.controller import AbstractReference, Target
from skycrane.core.system import System
from skycrane.elements.rotors import AbstractRotors
from skycrane.math.components import Vec3
from skycrane.simulation.integrators import RK4, Adaptive

from .build import Built, build
from .pilots import model_of
from .scenario import SINGLE, Scenario


@dataclass(frozen=True)
class Condition:
    """A steady motion: ``speed`` [m/s] towards ``course`` [rad from east to north], ``climb`` [m/s], ``turn_rate`` [rad/s]; ``failed``
    rotors by number from 1, and whether the vehicle may spin (``spin``)."""

    speed: float = 0.0
    climb: float = 0.0
    turn_rate: float = 0.0
    course: float = 0.0
    heading: float | None = None
    failed: tuple[int, ...] = ()
    spin: bool = False


class SteadyPath(AbstractReference):
    """A line, a circle or a helix from ``origin_W`` (3,) m on, as a trim flies it; rates and angles in rad and rad/s."""

    origin_W: Array
    speed: Array
    course: Array
    climb: Array
    heading: Array
    turn_rate: float = eqx.field(static=True)

    def _position(self, t: Array) -> Vec3:
        if self.turn_rate:
            angle = self.turn_rate * t
            along, across = jnp.sin(angle) / self.turn_rate, (1.0 - jnp.cos(angle)) / self.turn_rate
        else:
            along, across = t, jnp.zeros_like(t)
        cos, sin = jnp.cos(self.course), jnp.sin(self.course)
        x = self.speed * (cos * along - sin * across)
        y = self.speed * (sin * along + cos * across)
        return Vec3.of(self.origin_W[None] + jnp.stack([x, y, self.climb * t])[None])

    def _yaw(self, t: Array) -> Array:
        return jnp.atleast_1d(self.heading + self.turn_rate * t)

    def __call__(self, t: Array) -> Target:
        """The target at ``t``."""
        return level_target(self._position, self._yaw, t)


KEPT = ("schema_version", "name", "title", "description", "run", "environment", "vehicle", "control", "reference")
"""Keys of a scenario that count for one vehicle alone."""


def alone(scenario: Scenario, vehicle: str | None = None) -> Scenario:
    """One vehicle of a scenario, without events, pushes and sensors: what stays the same for ever.

    Raises:
        ValueError: for a name that no vehicle has.
    """
    name = vehicle or next(iter(scenario.fleet))
    if name not in scenario.fleet:
        raise ValueError(f"there is no vehicle {name!r}; known: {', '.join(scenario.fleet)}")
    chosen = scenario.fleet[name]
    # What it stands above or hangs on is left out with everything else.
    free = chosen.spec.model_copy(update={"initial": chosen.spec.initial.model_copy(update={"over": None})})
    rest = {key: field.get_default() for key, field in Scenario.model_fields.items() if key not in KEPT}
    return scenario.model_copy(update={**rest, "vehicle": free, "control": chosen.control, "reference": chosen.reference})


def with_failures(system: System, failed: Sequence[int]) -> System:
    """The system with some rotors (counted from 1) stopped.

    Raises:
        ValueError: for a rotor that there is not.
    """
    rotors = system.elements["rotors"]
    assert isinstance(rotors, AbstractRotors)
    for number in failed:
        if not 1 <= number <= rotors.count:
            raise ValueError(f"there is no rotor {number}; the rotors are 1 to {rotors.count}")
    fraction = np.asarray(rotors.speed_fraction).copy()
    fraction[0, [number - 1 for number in failed]] = 0.0
    return eqx.tree_at(lambda s: s.elements["rotors"].speed_fraction, system, jnp.asarray(fraction))


def find_trim(scenario: Scenario, condition: Condition) -> tuple[Built, Trim | NoTrim]:
    """The trim of a scenario of one vehicle, in its wind at the beginning; with it what was built, failures put in."""
    built = build(scenario)
    system = with_failures(built.system, condition.failed)
    built = Built(**{**vars(built), "system": system})
    yaw = math.radians(built.scenario.fleet[SINGLE].spec.initial.attitude_deg[2])
    heading = condition.heading if condition.heading is not None else (None if condition.speed else yaw)
    found = trim(
        system,
        speed=condition.speed,
        course=condition.course,
        climb=condition.climb,
        turn_rate=condition.turn_rate,
        heading=heading,
        allow=("spin",) if condition.spin else (),
    )
    return built, found


def open_loop(built: Built, at: Trim | NoTrim) -> LinearModel:
    """Body and motors about a trim."""
    return linearize(built.system, at.state, at.command, turn_rate=at.turn_rate)


def loop_at(built: Built, at: Trim | NoTrim, condition: Condition, settle: float = 0.0) -> ClosedLoop:
    """The scenario's own controller holding a trim: ``settle`` [s] flies it first, so that integrals find their place."""
    p_WB = np.asarray(at.state.bodies.p_WB[0])
    path = SteadyPath(
        jnp.asarray(p_WB), jnp.asarray(condition.speed), jnp.asarray(condition.course), jnp.asarray(condition.climb),
        jnp.asarray(at.yaw), float(condition.turn_rate),
    )  # fmt: skip
    run = built.scenario.run
    integrator = RK4() if isinstance(built.integrator, Adaptive) else built.integrator
    return closed_loop(
        built.system, built.controller, path, at.state, step=run.step, control_period=run.tick, integrator=integrator, settle=settle,
        turn_rate=at.turn_rate,
    )  # fmt: skip


LOOPS = {"force z": "thrust", "moment x (roll)": "roll", "moment y (pitch)": "pitch", "moment z (yaw)": "yaw",
         "force x": "push ahead", "force y": "push left"}  # fmt: skip


def loop_margins(built: Built, loop: ClosedLoop, at: Trim | NoTrim) -> dict[str, Margins]:
    """Margins of each controlled axis: its loop is cut where force or moment enters the body, all others stay closed."""
    allocation = model_of(built.controller).allocation
    controlled = np.asarray(allocation.weight)[0] > 0
    effect = np.asarray(allocation.effectiveness)[0]
    rotors = built.system.elements["rotors"]
    assert isinstance(rotors, AbstractRotors)
    speed = np.asarray(at.command["rotors"], float)[0]
    slope = 2.0 * np.asarray(allocation.thrust_coefficient)[0] * speed
    if rotors.throttle is not None:
        step = 1e-4
        wanted = rotors.throttle.speed_of(jnp.asarray(speed))
        slope = 2.0 * np.asarray(allocation.thrust_coefficient)[0] * np.asarray(wanted)
        slope = slope * np.asarray((rotors.throttle.speed_of(jnp.asarray(speed + step)) - wanted) / step)
    slope = slope * (np.asarray(rotors.speed_fraction)[0] > 0)
    # Each newton (metre) of the axis for each unit of command, and the command that gives one of it and nothing of the others.
    rows = (effect * slope)[controlled]
    columns = np.linalg.pinv(rows)
    names = [LOOPS[axis] for axis, kept in zip(AXES, controlled, strict=True) if kept]
    out = {}
    for j, name in enumerate(names):
        if abs(rows[j] @ columns[:, j] - 1.0) < 1e-6:
            out[name] = loop.margins(rows[j], columns[:, j])
    return out


def facts_of(found: Trim | NoTrim) -> dict[str, Any]:
    """A trim as JSON can hold it."""
    names = ("x", "y", "z")
    memory = found.state.memory["rotors"]
    speeds = getattr(memory, "speed", memory) if not isinstance(memory, tuple) else found.command["rotors"]
    facts = {
        "found": found.converged,
        "sentence": found.sentence,
        "roll_deg": math.degrees(found.roll),
        "pitch_deg": math.degrees(found.pitch),
        "yaw_deg": math.degrees(found.yaw),
        "velocity_m_s": dict(zip(names, np.asarray(found.velocity_W).tolist(), strict=True)),
        "turn_rate_rad_s": found.turn_rate,
        "rotor_speed_rad_s": np.asarray(speeds)[0].tolist(),
        "rotor_command": np.asarray(found.command["rotors"])[0].tolist(),
        "residual_force_n": found.residual_n,
        "residual_moment_nm": found.residual_nm,
        "limits": list(found.limits),
    }
    if isinstance(found, Trim):
        facts["shaft_power_w"] = found.shaft_power if math.isfinite(found.shaft_power) else None
    else:
        facts.update(unbalanced_axis=found.axis, unbalanced=found.missing)
    return facts
