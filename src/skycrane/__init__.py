"""Skycrane: multirotors that push, lift, carry and tow; simulation, analysis and design, differentiable and in batches."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from skycrane.runtime import fast_loops

__version__ = version("skycrane")

# Public names and the module each comes from.  They load on first use, so that the command line can answer before JAX is imported.
_PUBLIC = {
    "Bodies": "skycrane.core.bodies",
    "BodyState": "skycrane.core.bodies",
    "State": "skycrane.core.bodies",
    "System": "skycrane.core.system",
    "Constant": "skycrane.core.controller",
    "Team": "skycrane.core.controller",
    "Multirotor": "skycrane.vehicles.multirotor",
    "system_for": "skycrane.vehicles.multirotor",
    "ring": "skycrane.vehicles.layout",
    "coaxial": "skycrane.vehicles.layout",
    "Environment": "skycrane.environment.environment",
    "Event": "skycrane.core.events",
    "Impulse": "skycrane.core.events",
    "Timeline": "skycrane.core.events",
    "Limits": "skycrane.simulation.rollout",
    "simulate": "skycrane.simulation.rollout",
    "map_lanes": "skycrane.simulation.batch",
    "Stepper": "skycrane.simulation.stepper",
    "RK4": "skycrane.simulation.integrators",
    "SemiImplicitEuler": "skycrane.simulation.integrators",
    "Adaptive": "skycrane.simulation.integrators",
}

if TYPE_CHECKING:
    from skycrane.core.bodies import Bodies, BodyState, State
    from skycrane.core.controller import Constant, Team
    from skycrane.core.events import Event, Impulse, Timeline
    from skycrane.core.system import System
    from skycrane.environment.environment import Environment
    from skycrane.simulation.batch import map_lanes
    from skycrane.simulation.integrators import RK4, Adaptive, SemiImplicitEuler
    from skycrane.simulation.rollout import Limits, simulate
    from skycrane.simulation.stepper import Stepper
    from skycrane.vehicles.layout import coaxial, ring
    from skycrane.vehicles.multirotor import Multirotor, system_for

__all__ = [
    "RK4",
    "Adaptive",
    "Bodies",
    "BodyState",
    "Constant",
    "Environment",
    "Event",
    "Impulse",
    "Limits",
    "Multirotor",
    "SemiImplicitEuler",
    "State",
    "Stepper",
    "System",
    "Team",
    "Timeline",
    "__version__",
    "coaxial",
    "fast_loops",
    "map_lanes",
    "ring",
    "simulate",
    "system_for",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'skycrane' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
