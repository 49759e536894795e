"""Scenario files: their format, their check, and what they build.

`load` takes the name of a bundled scenario or a TOML file and returns it checked; `build` turns it into a system, a
controller and a reference for `simulate`. Importing this package loads no JAX.
"""

from .errors import ScenarioError
from .loader import LoadedScenario, catalogue, load, load_tables, loads
from .scenario import Scenario

__all__ = ["LoadedScenario", "Scenario", "ScenarioError", "catalogue", "load", "load_tables", "loads"]
