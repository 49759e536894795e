"""Records in CSV files: wind over time, and paths. They are put into the scenario, which then needs no other file."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from .base import Problem
from .environment import MAX_RECORD
from .errors import ScenarioError, format_path
from .scenario import nearest

MAX_BYTES = 5_000_000
WIND = ("time", "wind_x", "wind_y", "wind_z")
PATH = ("time", "x", "y", "z")
YAW = ("yaw_deg",)

Place = tuple[dict[str, Any], tuple[str | int, ...], tuple[str, ...], tuple[str, ...]]
"""A table with a `file`, its key path, and the columns that it must and may have."""


def put_records_in(tables: dict[str, Any], source: str, folder: Path) -> None:
    """Replace every `file` of a record by its `samples`, in place."""
    for table, path, needed, optional in _places(tables):
        name = table.get("file")
        if not isinstance(name, str):
            continue
        at = (*path, "file")
        if "samples" in table:
            raise ScenarioError(source, [Problem(at, "give file or samples, not both", name)])
        relative = Path(name)
        # A scenario may come from anywhere: it reads nothing outside its own directory.
        if relative.is_absolute() or ".." in relative.parts or "\0" in name:
            raise ScenarioError(source, [Problem(at, "expected a file in the scenario's own directory or below it", name)])
        file = folder / relative
        try:
            with file.open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
        except OSError as error:
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            raise ScenarioError(source, [Problem(at, f"{reason} in {folder}", name)]) from None
        if len(raw) > MAX_BYTES:
            raise ScenarioError(str(file), [Problem((), f"is larger than the allowed {MAX_BYTES / 1e6:g} MB")])
        del table["file"]
        table["samples"] = _samples(raw, str(file), needed, optional, format_path(at))


def _places(tables: dict[str, Any]) -> list[Place]:
    """Every table that may name a record's file, wherever the tables are as they should be."""
    places: list[Place] = []

    def add(table: Any, path: tuple[str | int, ...], kind: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        if isinstance(table, dict) and table.get("kind") == kind:
            places.append((table, path, needed, optional))

    def inside(table: Any, key: str) -> Any:
        return table.get(key) if isinstance(table, dict) else None

    wind = inside(tables.get("environment"), "wind")
    add(wind, ("environment", "wind"), "record", WIND)
    parts = inside(wind, "parts")
    for i, part in enumerate(parts if isinstance(parts, list) else ()):
        add(part, ("environment", "wind", "parts", i), "record", WIND)
    add(tables.get("reference"), ("reference",), "path", PATH, YAW)
    fleet = tables.get("vehicles")
    for name, vehicle in (fleet if isinstance(fleet, dict) else {}).items():
        add(inside(vehicle, "reference"), ("vehicles", name, "reference"), "path", PATH, YAW)
    return places


def _samples(raw: bytes, source: str, needed: tuple[str, ...], optional: tuple[str, ...], key: str) -> list[list[float]]:
    """The rows of a CSV file with a header; further columns are ignored."""

    def refuse(message: str) -> ScenarioError:
        return ScenarioError(source, [Problem((), f"{message} (named by {key})")])

    try:
        rows = [row for row in csv.reader(io.StringIO(raw.decode("utf-8-sig"))) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise refuse(f"is no CSV file: {error}") from None
    header = [name.strip().lstrip("# ") for name in rows[0]] if rows else []
    missing = [name for name in needed if name not in header]
    if missing:
        there = ", ".join(header[:12]) or "nothing"
        hint = nearest(missing[0], header) if header else ""
        hint = hint if "did you mean" in hint else ""
        raise refuse(f"has no column {', '.join(missing)}; its first line names {there}{hint}")
    if len(rows) - 1 > MAX_RECORD:
        raise refuse(f"has {len(rows) - 1} rows; at most {MAX_RECORD} are allowed")
    columns = [header.index(name) for name in (*needed, *(name for name in optional if name in header))]
    samples = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            samples.append([float(row[column]) for column in columns])
        except (ValueError, IndexError):
            raise refuse(f"row {number}: expected {len(columns)} numbers, found {', '.join(row)[:60]}") from None
    return samples
