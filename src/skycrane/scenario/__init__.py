"""Scenario files: their format, their check, and what they build.

`load` takes the name of a bundled scenario or a TOML file and returns it checked; `build.build` turns it into a system, a
controller and a reference, `fly.fly` flies it. The names here load on first use, and none of them loads JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "LoadedScenario": "loader",
    "Scenario": "scenario",
    "ScenarioError": "errors",
    "catalogue": "bundled",
    "load": "loader",
    "load_tables": "loader",
    "loads": "loader",
}

if TYPE_CHECKING:
    from .bundled import catalogue
    from .errors import ScenarioError
    from .loader import LoadedScenario, load, load_tables, loads
    from .scenario import Scenario

__all__ = ["LoadedScenario", "Scenario", "ScenarioError", "catalogue", "load", "load_tables", "loads"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
