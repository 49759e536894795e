"""The reference of the scenario format as Markdown tables, written from the classes that check it."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from .errors import Place, format_value
from .scenario import FleetVehicleSpec, Scenario


def reference() -> str:
    """Every table of the format with its keys: type, allowed range, unit, default and meaning."""
    return "\n\n".join(_sections("", Scenario, {}))


def _sections(path: str, spec: type[BaseModel], seen: dict[type[BaseModel], str]) -> Iterator[str]:
    """The table of one class, then those of the tables within it; a class is written out once."""
    seen[spec] = path
    heading = f"`[{path}]`" if path else "Top level"
    if _kinds(spec) == 1:
        heading += f' with `kind = "{_kind(spec)}"`'
    lines = [f"### {heading}", "", (spec.__doc__ or "").split("\n\n")[0].strip(), ""]
    rows, inner = [], []
    for name, field in spec.model_fields.items():
        if name == "kind" and _kinds(spec) == 1:
            continue
        tables = list(_tables(field.annotation))
        rows.append(f"| `{name}` | {_type(field, bool(tables))} | {_default(field)} | {field.description or ''} |")
        inner += [(_join(path, name, field), table) for table in tables]
    if rows:
        lines += ["| key | value | default | meaning |", "|---|---|---|---|", *rows]
    yield "\n".join(lines)
    for inner_path, table in inner:
        if table is FleetVehicleSpec:
            yield f"### `[{inner_path}]`\n\nThe keys of `[vehicle]`, with tables `control` and `reference` of its own."
            seen[table] = inner_path
        elif table not in seen:
            yield from _sections(inner_path, table, seen)


def _join(path: str, name: str, field: FieldInfo) -> str:
    inner = f"{path.strip('[]')}.{name}" if path else name
    if typing.get_origin(field.annotation) is dict:
        return f"{inner}.NAME"
    return f"[{inner}]" if _is_list(field) else inner


def _is_list(field: FieldInfo) -> bool:
    return typing.get_origin(Place.of(field).annotation) is tuple


def _tables(annotation: Any) -> Iterator[type[BaseModel]]:
    """Classes of tables anywhere in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    else:
        for argument in typing.get_args(annotation):
            yield from _tables(argument)


def _type(field: FieldInfo, is_table: bool) -> str:
    if is_table:
        if typing.get_origin(field.annotation) is dict:
            return "tables by name"
        return "list of tables" if _is_list(field) else "table"
    place = Place.of(field)
    if place.members:
        text = " or ".join(place.members)
    elif place.length:
        text = place.expectation + _element(place)
    elif typing.get_origin(place.annotation) is tuple:
        text = f"a list{_element(place)}"
    else:
        text = place.expectation.replace("a finite number", "number")
    return text.replace("|", "\\|")


def _element(place: Place) -> str:
    """The range of the numbers in a list, where all have the same."""
    inner = Place.of(typing.get_args(place.annotation)[0])
    if typing.get_origin(inner.annotation) in (tuple, typing.Literal):
        return "" if place.length else f" of {inner.expectation.replace('a list', 'lists')}"
    if inner.annotation is str:
        return " of texts"
    return inner.expectation.removeprefix("a finite number").replace("a list", "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or isinstance(value, (BaseModel, dict)) or value in ((), ""):
        return ""
    return f"`{format_value(value)}`"


def _kinds(spec: type[BaseModel]) -> int:
    """How many values `kind` can have here; one where it tells this table from others, none where there is no such key."""
    field = spec.model_fields.get("kind")
    return 0 if field is None else len(typing.get_args(field.annotation))


def _kind(spec: type[BaseModel]) -> str:
    return str(typing.get_args(spec.model_fields["kind"].annotation)[0])
