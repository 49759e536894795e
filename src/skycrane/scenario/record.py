"""What is kept of a flight: the data set of `result.nc` and the object of `summary.json`."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skycrane.analysis.metrics import metrics
from skycrane.simulation.dataset import to_dataset
from skycrane.simulation.diagnose import diagnose
from skycrane.simulation.samples import sample

from .build import Built
from .events import ImpulseEvent, PushEvent, RotorFailureEvent
from .fly import Flight, options
from .loader import LoadedScenario
from .scenario import Scenario
from .scene import scene

if TYPE_CHECKING:
    import xarray as xr

PACKAGES = ("skycrane", "jax", "jaxlib", "equinox", "numpy")


class Record(NamedTuple):
    """``dataset`` in the result format, and ``summary``, which JSON can hold."""

    dataset: xr.Dataset
    summary: dict[str, Any]


def record(loaded: LoadedScenario, built: Built, flight: Flight, import_s: float) -> Record:
    """Evaluate a flight. ``import_s`` [s] is what loading the libraries took; the other timings are in the flight."""
    run, scenario = flight.run, built.scenario
    targets = built.followed
    samples = sample(run, built.system, targets, events=built.timeline, control_period=scenario.run.tick)
    dataset = to_dataset(run, built.system, targets, samples=samples, attributes=_attributes(loaded, built))
    wrong = diagnose(run, built.system, built.controller, built.reference, built.initial, **options(built))
    flown = float(samples.time[-1])
    timings = {
        "import_s": import_s,
        "compile_s": flight.compile_s,
        "run_s": flight.run_s,
        "real_time_factor": flown / max(flight.run_s, 1e-9),
    }
    summary = {
        "status": run.status_name,
        "diagnosis": None if wrong is None else wrong.message,
        "metrics": metrics(run, built.system, targets, samples=samples),
        "timings": {name: float(f"{value:.4g}") for name, value in timings.items()},
        "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "seed": scenario.run.seed,
        "scenario": scenario.name,
        "scenario_hash": loaded.digest,
    }
    return Record(dataset, summary)


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
        elif isinstance(event, ImpulseEvent):
            text = f"blow of {np.linalg.norm(event.linear):.3g} N s"
        elif isinstance(event, PushEvent):
            text = f"push of {np.linalg.norm(event.force):.3g} N"
            labels.append({"time": event.time + event.duration, "label": "push ends"})
        else:
            text = f"wind of {np.linalg.norm(event.velocity):.3g} m/s"
        labels.append({"time": event.time, "label": text})
    return sorted(labels, key=lambda label: float(label["time"]))
