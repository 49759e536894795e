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

import difflib
import math
import re
import tomllib
from dataclasses import MISSING, fields
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
    except FileNotFoundError:
        raise DesignError(_missing(path)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DesignError(f"{path}: {error}") from None
    known = sorted(field.name for field in fields(Problem))
    for key in tables:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(known)}"
            raise DesignError(f"{path}: unknown key {key!r}; {hint}")
    return {key: _read(path, key, value) for key, value in tables.items()}


def _read(path: Path, key: str, value: Any) -> Any:
    """One key of a file, refused with its name where it makes no sense."""
    try:
        return _value(key, _checked(key, value))
    except DesignError as error:
        where = f"{path}: {key}: " if key in TABLES else f"{path}: "
        raise DesignError(f"{where}{error}") from None
    except KeyError as error:
        raise DesignError(f"{path}: {key}: {error} is missing in a row") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise DesignError(f"{path}: {key} = {value!r}: {error}") from None


def _missing(path: Path) -> str:
    near = sorted(p.name for p in path.parent.glob("*.toml")) if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, near, n=1)
    return f"{path}: there is no such file" + (f"; did you mean {close[0]!r}?" if close else "")


WHOLE, NUMBER, TEXT, FLAG = "a whole number", "a number", "a text", "true or false"
KINDS: dict[str, tuple[str, int | None]] = {  # what a key holds, and how many of it where it is a list (0: any number)
    "rotors": (WHOLE, None), "objective": (TEXT, None), "condition_of": (TEXT, None), "reach": (NUMBER, 2), "box": (NUMBER, 3),
    "spins": (WHOLE, 0), "mirrored": (TEXT, 0), "one_failed": (FLAG, None), "any_attitude": (FLAG, None),
}  # fmt: skip
TABLES = {"profile", "bodies", "fixed", "tasks", "components"}  # their readers say what is wrong with them


def _checked(key: str, value: Any) -> Any:
    """A value of a known key, refused where it is of another kind."""
    if key in TABLES:
        wanted: type = dict if key == "components" else list
        if not isinstance(value, wanted):
            raise DesignError(f"{value!r}: expected {'a table' if wanted is dict else 'a list of rows'}")
        return value
    kind, count = KINDS.get(key, (NUMBER, None))
    values = value if count is not None and isinstance(value, list) else [value]
    fits = all(_is(kind, v) for v in values) and isinstance(value, list) == (count is not None)
    if not fits or (count and len(values) != count):
        many = "" if count is None else "list of " if not count else f"list of {count}, each "
        raise DesignError(f"{key} = {value!r}: expected {'a ' + many if many else ''}{kind}")
    return value


def _is(kind: str, value: Any) -> bool:
    if kind in (TEXT, FLAG):
        return isinstance(value, str if kind == TEXT else bool)
    if isinstance(value, bool):
        return False
    return isinstance(value, int) if kind == WHOLE else isinstance(value, (int, float)) and math.isfinite(value)


def _amount(name: str, value: Any) -> float:
    if not _is(NUMBER, value) or value < 0:
        raise DesignError(f"{name} = {value!r}: expected a number, 0 or more")
    return float(value)


def _value(key: str, value: Any) -> Any:
    if key == "profile":
        return Profile.table(value)
    if key == "bodies":
        return tuple(_solid(body) for body in value)
    if key == "fixed":
        return {_rotor(row["rotor"]) - 1: (_three(row["position"]), _three(row["direction"])) for row in value}
    if key == "mirrored":
        return tuple(mirror(text) for text in value)
    if key == "components":
        for name in value.keys() - {field.name for field in fields(Components)}:
            raise DesignError(f"unknown key {name!r}; the keys are {', '.join(field.name for field in fields(Components))}")
        return Components(**{name: _amount(name, v) for name, v in value.items()})
    if key == "tasks":
        if not all(isinstance(row, list) and len(row) == 6 and all(_is(NUMBER, v) for v in row) for row in value):
            raise DesignError(f"{value!r}: expected rows of three forces in N and three moments in N m")
        return tuple(tuple(float(v) for v in row) for row in value)
    return tuple(value) if isinstance(value, list) else value


def _solid(body: dict[str, Any]) -> Solid:
    if not isinstance(body, dict):
        raise DesignError(f"{body!r}: expected a table with kind")
    values = dict(body)
    kind = values.pop("kind", None)
    if kind not in SOLIDS:
        raise DesignError(f"a body of kind {kind!r}: expected one of {', '.join(SOLIDS)}")
    keys = {field.name for field in fields(SOLIDS[kind])}
    least = {field.name for field in fields(SOLIDS[kind]) if field.default is MISSING}
    if not least <= set(values) <= keys:
        raise DesignError(
            f"a {kind} with {', '.join(values) or 'nothing'}: expected {', '.join(sorted(least))}, "
            f"and perhaps {', '.join(sorted(keys - least))}"
        )
    return SOLIDS[kind](**{key: _amount(key, v) if key == "radius" else v if key == "rotation" else _three(v) for key, v in values.items()})


def _three(value: Any) -> tuple[float, float, float]:
    if not isinstance(value, list) or len(value) != 3 or not all(_is(NUMBER, v) for v in value):
        raise DesignError(f"{value!r}: expected three numbers")
    return float(value[0]), float(value[1]), float(value[2])


def _rotor(value: Any) -> int:
    if not _is(WHOLE, value) or value < 1:
        raise DesignError(f"rotor = {value!r}: expected a rotor's number, from 1")
    return int(value)


def mirror(text: str) -> tuple[int, int, int]:
    """Two rotors and an axis from `1-2:y`.

    Raises:
        DesignError: for another form.
    """
    match = re.fullmatch(r"(\d+)-(\d+):([xyz])", text)
    if match is None:
        raise DesignError(f"mirror {text!r}: expected two rotors and an axis, such as 1-2:y")
    if 0 in (int(match[1]), int(match[2])):
        raise DesignError(f"mirror {text!r}: rotors are numbered from 1")
    return int(match[1]) - 1, int(match[2]) - 1, "xyz".index(match[3])
