"""The scenarios and vehicles that come with Skycrane. Reads files and nothing else, so that listing them is quick."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

DEFAULT_SCENARIO = "quadrotor-circle"
"""What `skycrane run` runs when nothing is named: the most impressive one."""

KINDS = {"scenario": "scenario", "vehicle": "vehicles"}
"""What there is, and the package whose directory `catalogue` holds it."""


def catalogue(kind: str) -> dict[str, Path]:
    """The bundled files by name; `kind` is "scenario" or "vehicle"."""
    # By the path of the top package, since importing skycrane.vehicles would load JAX.
    folder = Path(str(resources.files("skycrane"))) / KINDS[kind] / "catalogue"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def titles(kind: str) -> dict[str, str]:
    """One line about each bundled file."""
    return {name: str(tomllib.loads(path.read_text("utf-8")).get("title", "")) for name, path in catalogue(kind).items()}
