"""What is kept of a flight: the data set of `result.nc` and the object of `summary.json`."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.analysis.metrics import metrics
from skycrane.core.bodies import Bodies
from skycrane.core.events import Timeline
from skycrane.elements.rotor_aero import BladeElementRotors
from skycrane.elements.rotor_validity import validity_warnings
from skycrane.elements.rotors import AbstractRotors
from skycrane.math.components import Vec3
from skycrane.simulation.dataset import Table, table_of
from skycrane.simulation.diagnose import diagnose
from skycrane.simulation.quick import quick_jit
from skycrane.simulation.rollout import Run
from skycrane.simulation.samples import Samples, sample

from .build import Built
from .environment import NoWind as NoWindSpec
from .events import CutEvent, GustEvent, ImpulseEvent, PushEvent, RotorFailureEvent, TargetEvent, WinchEvent
from .fly import Flight, options
from .lift_report import download_warnings, lift_metrics, stretched_at_start
from .loader import LoadedScenario
from .places import rotor_groups
from .scenario import Scenario
from .scene import scene
from .sea import add_sea, tow_metrics
from .tool_build import tool_metrics

if TYPE_CHECKING:
    import xarray as xr

PACKAGES = ("skycrane", "jax", "jaxlib", "equinox", "numpy")


@dataclass(frozen=True)
class Record:
    """``table``: the parts of the data set in the result format; ``summary``, which JSON can hold."""

    table: Table
    summary: dict[str, Any]

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The data set in the result format."""
        import xarray as xr

        return xr.Dataset(*self.table)


def record(loaded: LoadedScenario, built: Built, flight: Flight, import_s: float) -> Record:
    """Evaluate a flight. ``import_s`` [s] is what loading the libraries took; the other timings are in the flight."""
    run, scenario = flight.run, built.scenario
    targets = built.followed
    samples = sample(run, built.system, targets, events=built.timeline, control_period=scenario.run.tick)
    table = table_of(run, built.system, samples, _attributes(loaded, built))
    _add_air(table, samples, built)
    add_sea(table, samples, scenario)
    wrong = diagnose(run, built.system, built.controller, built.reference, built.initial, soon=True, **options(built))
    flown = float(samples.time[-1])
    timings = {
        "import_s": import_s,
        "compile_s": flight.compile_s,
        "run_s": flight.run_s,
        "real_time_factor": flown / max(flight.run_s, 1e-9),
    }
    found = metrics_of(run, built, targets, samples)
    summary = {
        "status": run.status_name,
        "diagnosis": None if wrong is None else wrong.message,
        "metrics": found,
        "warnings": [*warnings_before(built), *_warnings(built, samples, found)],
        "timings": {name: float(f"{value:.4g}") for name, value in timings.items()},
        "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "seed": scenario.run.seed,
        "scenario": scenario.name,
        "scenario_hash": loaded.digest,
    }
    return Record(table, summary)


prepared = quick_jit(Bodies.prepare)
"""Mass matrices and inverses as one program, where each operation would be compiled by itself."""

DRIFT = 0.01
"""Relative drift of the energy account above which a run is warned about."""


def warnings_before(built: Built) -> list[str]:
    """What can be said against a run before it is flown: first a step that its fastest part does not stand, then stretched cables."""
    stretched = stretched_at_start(built.scenario)
    step, (limit, name) = built.scenario.run.step, largest_step(built)
    if limit is None or step <= limit:
        return stretched
    when = " while it touches the ground" if name == "contact" else ""
    return [f"run.step = {step:g} s is longer than {limit:.3g} s, the largest with which {name!r} is stable{when}", *stretched]


def largest_step(built: Built) -> tuple[float | None, str]:
    """The longest step [s] with which the integrator is stable for every element, None where none is stiff; and the element that sets
    it."""
    mass = prepared(built.system.bodies)
    implicit = built.integrator.implicit_chains
    rates = {
        name: element.rate_bound_without_chains(mass) if implicit else element.rate_bound(mass)
        for name, element in built.system.elements.items()
    }
    name = max(rates, key=lambda key: rates[key])
    radius = float(built.integrator.stability_radius)
    return (radius / rates[name] if rates[name] > 0 and radius != float("inf") else None), name


def _warnings(built: Built, samples: Samples, found: dict[str, float]) -> list[str]:
    """Where the rotors left what their model describes, what presses loads down, and an energy account that is not closed; sentences."""
    sentences = download_warnings(built, samples)
    drift = found.get("energy_drift_rel", 0.0)
    if drift > DRIFT:
        sentences.append(f"energy drifts by {100 * drift:.3g} % of what was there or flowed: give a smaller run.step")
    for element, names in rotor_groups(built.scenario).items():
        labels = [f"{name}/{i + 1}" for name in names for i in range(built.crafts[name].count)]
        sentences += validity_warnings(samples.time, samples.outputs[element], labels)
    return [f"{sentence[0].upper()}{sentence[1:].rstrip(',;')}." for sentence in sentences]


def metrics_of(run: Run, built: Built, targets: Any, samples: Samples) -> dict[str, float]:
    """The metrics, of commands as speeds and of rotors by their coefficients, whatever the vehicle takes and has."""
    system, command = built.system, dict(samples.command)
    for element in rotor_groups(built.scenario):
        rotors = system.elements[element]
        assert isinstance(rotors, AbstractRotors)
        if rotors.throttle is not None:
            command[element] = samples.outputs[element]["speed_command"]
        if isinstance(rotors, BladeElementRotors):
            elements = {**system.elements, element: rotors.quadratic(float(system.environment.air.density))}
            system = eqx.tree_at(lambda s: s.elements, system, elements)
    out = metrics(run, system, targets, samples=samples._replace(command=command)) | lift_metrics(built, samples)
    out |= tool_metrics(built, samples) | tow_metrics(built.scenario, samples)
    lowest = [float(log["state_of_charge"].min()) for log in samples.outputs.values() if "state_of_charge" in log]
    return out | ({"charge_min_fraction": min(lowest)} if lowest else {})


def _add_air(table: Table, samples: Samples, built: Built) -> None:
    """The wind at every body, where there is one."""
    if all(isinstance(wind, NoWindSpec) for wind in built.scenario.environment.winds) and not any(
        isinstance(event, GustEvent) for event in built.scenario.events
    ):
        return
    changes = Timeline(tuple(e for e in built.timeline.events if e.path.startswith("system.environment")))
    period = built.scenario.run.tick

    def wind(t: Array, p_WB: Array) -> Array:
        parts = {"system": built.system}
        air = changes.apply(jnp.round(t / period), period, parts)["system"].environment.air
        p_W = Vec3.of(p_WB)
        return jnp.stack([jnp.broadcast_to(v, p_W.x.shape) for v in air.velocity_W(t, p_W).components()], -1)

    values = quick_jit(jax.vmap(wind))(samples.time, samples.state.bodies.p_WB)
    meaning = {"units": "m/s", "long_name": "velocity of the air at the body, world axes"}
    table.variables["wind"] = (("time", "body", "axis"), np.asarray(values), meaning)


def _attributes(loaded: LoadedScenario, built: Built) -> dict[str, Any]:
    """What the result says about the scenario."""
    scenario = built.scenario
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "scenario_toml": loaded.toml(),
        "scenario_hash": loaded.digest,
        "seed": scenario.run.seed,
        "scene": json.dumps(scene(scenario)),
        "events": json.dumps(event_labels(scenario)),
    }


def event_labels(scenario: Scenario) -> list[dict[str, Any]]:
    """What happens when, in a few words, for plots and the viewer."""
    labels: list[dict[str, Any]] = []
    for event in scenario.events:
        if isinstance(event, RotorFailureEvent):
            rotor = f"{event.vehicle or scenario.bodies[0]}/{event.rotor}"
            text = f"rotor {rotor} fails" if event.remaining == 0 else f"rotor {rotor} at {100 * event.remaining:g} %"
            if event.detected_after:
                labels.append({"time": event.time + event.detected_after, "label": "controller knows"})
        elif isinstance(event, ImpulseEvent):
            text = f"blow of {np.linalg.norm(event.linear):.3g} N s"
        elif isinstance(event, PushEvent):
            text = f"push of {np.linalg.norm(event.force):.3g} N"
            labels.append({"time": event.time + event.duration, "label": "push ends"})
        elif isinstance(event, GustEvent):
            text = f"gust of {np.linalg.norm(event.velocity):.3g} m/s"
        elif isinstance(event, TargetEvent):
            text = "new target"
        elif isinstance(event, CutEvent):
            text = f"{event.cable} cut"
        elif isinstance(event, WinchEvent):
            text = f"{event.cable} to {event.length:g} m"
        else:
            text = f"wind of {np.linalg.norm(event.velocity):.3g} m/s"
        labels.append({"time": event.time, "label": text})
    return sorted(labels, key=lambda label: float(label["time"]))
