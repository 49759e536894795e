"""What is varied: `--vary vehicle.mass=1:3` and its kin, as dimensions that map numbers in [0, 1) to values of a key.

| text                  | values                                                     | in a grid            |
|-----------------------|------------------------------------------------------------|----------------------|
| `key=1:3`             | anything from 1 to 3                                       | 5 evenly spaced      |
| `key=1:3:7`           | anything from 1 to 3                                       | 7 evenly spaced      |
| `key=0.01:1:log`      | anything from 0.01 to 1, evenly in the logarithm           | 5 in equal ratios    |
| `key=0.01:1:4:log`    | the same                                                   | 4 in equal ratios    |
| `key=int:2:8`         | whole numbers from 2 to 8                                  | all of them          |
| `key=[4, 6, 8]`, `key=a,b,c` | the values listed, which need not be numbers        | all of them          |
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from skycrane.scenario.base import Problem
from skycrane.scenario.errors import ScenarioError, format_path
from skycrane.scenario.overrides import parse_override

GRID_COUNT = 5
MAX_GRID = 1_000_000
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Range:
    """Every number from ``low`` to ``high``; ``count`` of them in a grid."""

    key: str
    low: float
    high: float
    count: int = GRID_COUNT
    log: bool = False

    def at(self, unit: float) -> float:
        """The value at a number from 0 to 1."""
        if unit >= 1.0:
            return self.high
        if self.log:
            return self.low * math.exp(unit * math.log(self.high / self.low))
        return self.low + unit * (self.high - self.low)

    def grid(self) -> list[float]:
        return [self.at(k / (self.count - 1)) for k in range(self.count)]


@dataclass(frozen=True)
class Choice:
    """One of ``values``, each as likely."""

    key: str
    values: tuple[Any, ...]

    def at(self, unit: float) -> Any:
        return self.values[min(int(unit * len(self.values)), len(self.values) - 1)]

    def grid(self) -> list[Any]:
        return list(self.values)


Dimension = Range | Choice


def parse_vary(text: str) -> Dimension:
    """One `--vary`.

    Raises:
        ScenarioError: with what is wrong in it.
    """
    source = f"--vary {text}"

    def refuse(message: str):
        raise ScenarioError(source, [Problem((), message)])

    key, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not values:
        refuse("expected key=LOW:HIGH or key=[a, b, c], such as vehicle.mass=1:3")
    # The key is read as `--set` reads it, so that both refuse the same mistakes.
    path, listed = parse_override(f"{key}=0")[0], None
    key = format_path(path)
    if values.startswith("["):
        listed = parse_override(f"{key}={values}")[1]
    elif "," in values:
        listed = [parse_override(f"{key}={value.strip()}")[1] for value in values.split(",")]
    if listed is not None:
        if len(listed) < 2 or any(a == b and type(a) is type(b) for k, a in enumerate(listed) for b in listed[:k]):
            refuse(f"{values} must list at least two different values")
        return Choice(key, tuple(listed))
    whole = values.startswith("int:")
    low, high, *rest = values.removeprefix("int:").split(":") if ":" in values else (values, "")
    log = "log" in rest
    rest = [part for part in rest if part != "log"]
    if not (_NUMBER.fullmatch(low) and _NUMBER.fullmatch(high)) or len(rest) > 1 or (rest and not rest[0].isdigit()):
        refuse(f"{values!r} is neither LOW:HIGH, LOW:HIGH:COUNT, LOW:HIGH:log, int:LOW:HIGH nor a list of values")
    a, b = float(low), float(high)
    if not (math.isfinite(a) and math.isfinite(b) and a < b):
        refuse(f"{low} to {high}: the low end must be below the high end, both finite")
    if whole:
        if rest or log or a != int(a) or b != int(b) or b - a > MAX_GRID:
            refuse(f"{values!r}: int:LOW:HIGH takes two whole numbers and nothing else")
        return Choice(key, tuple(range(int(a), int(b) + 1)))
    if log and a <= 0:
        refuse(f"{low} to {high}: a logarithmic range must be above zero")
    count = int(rest[0]) if rest else GRID_COUNT
    if not 2 <= count <= MAX_GRID:
        refuse(f"{count} grid values; expected 2 to {MAX_GRID}")
    return Range(key, a, b, count, log)


def parse_all(texts: tuple[str, ...] | list[str]) -> tuple[Dimension, ...]:
    """All dimensions of a sweep; a key may be varied once."""
    if not texts:
        raise ScenarioError("sweep", [Problem((), "nothing to vary: give at least one --vary key=LOW:HIGH or key=[a, b, c]")])
    dimensions = tuple(parse_vary(text) for text in texts)
    keys = [dimension.key for dimension in dimensions]
    for key in keys:
        if keys.count(key) > 1:
            raise ScenarioError("sweep", [Problem((), f"{key} is varied {keys.count(key)} times; once is enough")])
    return dimensions
