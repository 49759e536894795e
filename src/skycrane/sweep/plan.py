"""From the design to blocks: points of one structure side by side, so that they fly as one batch.

The plan depends on the arguments of the sweep alone, never on what has been done already: a block has the same points, in the same
lanes, however often the sweep was killed, so it gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from skycrane.scenario.errors import format_value

from .space import Dimension, Range
from .store import content_key

WIDEST = 64


@dataclass(frozen=True)
class Point:
    """One point: its place in the design, and the changes that make its scenario."""

    index: int
    values: dict[str, Any]

    @property
    def changes(self) -> list[str]:
        """As for `--set`."""
        return [f"{key}={exact(value)}" for key, value in self.values.items()]


@dataclass(frozen=True)
class Block:
    """Points that fly together; ``key`` is the content key of the block, ``corners`` the points that show what a range changes."""

    key: str
    points: tuple[Point, ...]
    corners: tuple[Point, ...] = field(compare=False)


def exact(value: Any) -> str:
    """A value as TOML, every bit of it."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(exact, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {exact(item)}" for key, item in value.items()) + "}"
    return format_value(value, 10_000)


def usual_width(count: int) -> int:
    """Lanes in a block: few for small sweeps, so that all cores have work."""
    return 1 if count < 4 else 8 if count < 64 else 32 if count < 512 else WIDEST


def plan(dimensions: Sequence[Dimension], design: Sequence[tuple[Any, ...]], width: int, sweep: str) -> list[Block]:
    """Blocks of at most ``width`` points; ``sweep`` is a key of all else that the results depend on."""
    keys = [dimension.key for dimension in dimensions]
    ranges = {dimension.key: dimension for dimension in dimensions if isinstance(dimension, Range)}
    kinds: dict[str, list[Point]] = {}
    for index, row in enumerate(design):
        values = dict(zip(keys, row, strict=True))
        # Ranges change numbers; choices may change anything, so points of different choices are not put together.
        kind = exact([v for key, v in values.items() if key not in ranges])
        kinds.setdefault(kind, []).append(Point(index, values))
    blocks = []
    for points in kinds.values():
        first = points[0].values
        corners = [Point(-1, first | {key: end}) for key, r in ranges.items() for end in (r.low, r.high)]
        for start in range(0, len(points), width):
            part = tuple(points[start : start + width])
            key = content_key([sweep, width, [p.changes for p in part]])
            blocks.append(Block(f"{part[0].index:07d}-{key[:16]}", part, tuple(corners)))
    return blocks
