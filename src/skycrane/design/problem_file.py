"""A design problem from a TOML file: the keys of :class:`skycrane.design.problem.Problem`, with tables for bodies, profile and masses.

rotors = 8
condition_max = 4.0
profile = [[-0.05, 0.1], [0.0, 0.1], [0.8, 0.3]]             # x and radius, m
bodies = [{ kind = "sphere", center = [0, 0, 0], radius = 0.1 }, { kind = "box", center = [0, 0, 0.2], size = [0.2, 0.1, 0.1] },
          { kind = "boom", start = [0, 0, 0], end = [0, 0, 0.6], radius = 0.01 }]
fixed = [{ rotor = 1, position = [0.2, 0, 0], direction = [0, 0, 1] }]
mirrored = ["2-3:y"]                                          # rotor 3 mirrors rotor 2 across the plane perpendicular to y
tasks = [[5, 0, 0, 0, 0, 0.5]]                                # N and N m, besides the weight
components = { rotor = 0.12, structure = 0.66, battery = 0.4 }
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from skycrane.design.clearance import Boom, Box, Solid, Sphere
from skycrane.design.machine import Components
from skycrane.design.problem import DesignError, Problem
from skycrane.design.profile import Profile

SOLIDS = {"sphere": Sphere, "boom": Boom, "box": Box}


def read(path: Path) -> dict[str, Any]:
    """Arguments of a Problem from a file.

    Raises:
        DesignError: for a file that cannot be read, or keys and values that make no sense.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DesignError(f"{path}: {error}") from None
    known = {field.name for field in fields(Problem)}
    for key in tables:
        if key not in known:
            raise DesignError(f"{path}: unknown key {key!r}; the keys are {', '.join(sorted(known))}")
    try:
        return {key: _value(key, value) for key, value in tables.items()}
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DesignError(f"{path}: {error if not isinstance(error, KeyError) else f'missing {error}'}") from None


def _value(key: str, value: Any) -> Any:
    if key == "profile":
        return Profile.table(value)
    if key == "bodies":
        return tuple(_solid(body) for body in value)
    if key == "fixed":
        return {int(row["rotor"]) - 1: (tuple(row["position"]), tuple(row["direction"])) for row in value}
    if key == "mirrored":
        return tuple(mirror(text) for text in value)
    if key == "components":
        return Components(**value)
    if key == "tasks":
        return tuple(tuple(float(v) for v in row) for row in value)
    return tuple(value) if isinstance(value, list) else value


def _solid(body: dict[str, Any]) -> Solid:
    values = dict(body)
    kind = values.pop("kind", None)
    if kind not in SOLIDS:
        raise DesignError(f"a body of kind {kind!r}: expected one of {', '.join(SOLIDS)}")
    return SOLIDS[kind](**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})


def mirror(text: str) -> tuple[int, int, int]:
    """Two rotors and an axis from `1-2:y`.

    Raises:
        DesignError: for another form.
    """
    match = re.fullmatch(r"(\d+)-(\d+):([xyz])", text)
    if match is None:
        raise DesignError(f"mirror {text!r}: expected two rotors and an axis, such as 1-2:y")
    return int(match[1]) - 1, int(match[2]) - 1, "xyz".index(match[3])
