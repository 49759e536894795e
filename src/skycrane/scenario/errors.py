"""Error messages of scenario files: file, key path, value, and what was expected there.

pydantic says where a value is wrong and which rule it breaks. This module turns that into the path as it is written in
the file, and adds what the user needs to mend it: the nearest valid key, the whole allowed range, the unit.
"""

from __future__ import annotations

import datetime
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import annotated_types
from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from .base import PROBLEMS, Problem, Unit
from .scenario import nearest

_NAME_RULE = "a lower-case letter, then lower-case letters, digits, '-' or '_', at most 48 in all"
MAX_SHOWN = 40
"""Problems listed in one message; a hostile file can have thousands."""


class ScenarioError(ValueError):
    """A scenario that cannot be used, with everything that is wrong with it."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        lines = [format_problem(problem) for problem in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            lines.append(f"... and {len(self.problems) - MAX_SHOWN} more")
        if len(lines) > 1:
            lines.insert(0, f"{len(self.problems)} problems")
        super().__init__(f"{source}: " + "\n  ".join(lines))


def format_problem(problem: Problem) -> str:
    """`vehicle.rotors[2].position = [0, 1]: expected 3 numbers`."""
    path = format_path(problem.path)
    shown = "" if problem.value is None else f" = {format_value(problem.value)}"
    return f"{path}{shown}: {problem.message}" if path else problem.message


def format_path(path: Sequence[str | int]) -> str:
    """Keys joined by dots, list positions in brackets counted from 0."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def format_value(value: Any, limit: int = 60) -> str:
    """A value as TOML would write it, cut to a readable length."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, float):
        text = f"{value:.10g}"
    elif isinstance(value, str):
        text = '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in value[: 2 * limit]) + '"'
    elif isinstance(value, (list, tuple)):
        text = "[" + ", ".join(format_value(v, limit) for v in value[:limit]) + "]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(map(str, list(value)[:limit])) + "}"
    elif isinstance(value, (datetime.date, datetime.time)):
        text = value.isoformat()
    elif isinstance(value, int) and abs(value) > 10**30:
        text = "a very large integer"
    else:
        text = str(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def problems_of(error: ValidationError, root: type[BaseModel], tables: Any) -> list[Problem]:
    """What pydantic found in the tables of a file, as problems with the paths of that file."""
    problems: list[Problem] = []
    for detail in error.errors(include_url=False):
        for problem in _translate(detail, root, tables):
            problems.append(replace(problem, path=_within(problem.path, tables)))
    # The same list of three numbers can miss its second and its third: one line is enough.
    unique: dict[tuple[Any, ...], Problem] = {}
    for problem in problems:
        unique.setdefault((problem.path, problem.message), problem)
    return list(unique.values())


def _within(path: tuple[str | int, ...], tables: Any) -> tuple[str | int, ...]:
    """The path as far as the file has tables and lists: a diagonal inertia is a list there, a matrix after reading."""
    node = tables
    for depth, key in enumerate(path):
        if not isinstance(node, (dict, list)):
            return path[:depth]
        try:
            node = node[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return path
    return path


def _at(path: tuple[str | int, ...], tables: Any) -> Any:
    """The table or list at a path that the file has."""
    for key in path:
        tables = tables[key]
    return tables


def _translate(detail: ErrorDetails, root: type[BaseModel], tables: Any) -> Iterator[Problem]:
    kind, value = detail["type"], detail["input"]
    context: dict[str, Any] = detail.get("ctx", {})
    place = Place.find(root, detail["loc"])
    if kind == PROBLEMS:
        for problem in context["problems"]:
            yield Problem((*place.path, *problem.path), problem.message, problem.value)
    elif kind == "extra_forbidden":
        key = str(detail["loc"][-1])
        # Rather a key that is not there yet: `rotosr` beside `rotor` was to be `rotors`.
        used = _at(place.path[:-1], tables)
        free = nearest(key, [name for name in place.siblings if name not in used])
        hint = free if "did you mean" in free else nearest(key, place.siblings)
        yield Problem(place.path, f"unknown key{hint}", value)
    elif kind == "missing" and isinstance(detail["loc"][-1], int):
        yield Problem(place.path[:-1], f"expected {place.length} numbers", value)
    elif kind == "missing":
        yield Problem(place.path, f"missing; expected {place.expectation}")
    elif detail["loc"][-1:] == ("[key]",):
        yield Problem(place.path[:-1], f"is no name: expected {_NAME_RULE}")
    elif kind == "union_tag_invalid":
        tags = [tag.strip("' ") for tag in context["expected_tags"].split(",")]
        hint = nearest(str(context["tag"]), tags)
        hint = hint if hint.startswith("; known") else f"{hint[:-1]} (known: {', '.join(tags)})?"
        yield Problem((*place.path, "kind"), f"unknown kind{hint}", context["tag"])
    elif kind == "union_tag_not_found":
        yield Problem((*place.path, "kind"), f"missing; expected one of {', '.join(place.members)}")
    elif kind == "inertia_shape":
        yield Problem(place.path, detail["msg"], value)
    elif kind in ("too_long", "too_short") and place.length is not None:
        yield Problem(place.path, f"expected {place.length} numbers", value)
    elif kind == "too_long":
        yield Problem(place.path, f"expected at most {context['max_length']} entries, found {context['actual_length']}")
    elif kind == "string_pattern_mismatch":
        yield Problem(place.path, f"expected {_NAME_RULE}", value)
    elif kind == "string_too_long":
        yield Problem(place.path, f"expected at most {context['max_length']} characters")
    else:
        yield Problem(place.path, f"expected {place.expectation}", value)


class Place:
    """A place in the tree of spec classes, found by walking along the location of an error."""

    def __init__(self) -> None:
        self.path: tuple[str | int, ...] = ()
        self.annotation: Any = None
        self.metadata: list[Any] = []
        self.siblings: tuple[str, ...] = ()
        self.length: int | None = None
        self.members: dict[str, Any] = {}
        self.alternatives: tuple[str, ...] = ()

    @classmethod
    def find(cls, root: type[BaseModel], loc: Sequence[str | int]) -> Place:
        place = cls()
        place._enter(root, [])
        for item in loc:
            place._step(item)
        return place

    @classmethod
    def of(cls, annotation: Any) -> Place:
        """The place of one annotation or field by itself."""
        place = cls()
        if isinstance(annotation, FieldInfo):
            place._enter(annotation.annotation, annotation.metadata)
        else:
            place._enter(annotation, [])
        return place

    def _enter(self, annotation: Any, metadata: Sequence[Any]) -> None:
        """Settle on an annotation: take Annotated, FieldInfo and None apart, and note what is known about it."""
        self.metadata = list(metadata)
        while True:
            origin = typing.get_origin(annotation)
            if origin is Annotated:
                annotation, *extra = typing.get_args(annotation)
                for item in extra:
                    self.metadata += item.metadata if isinstance(item, FieldInfo) else [item]
            elif _is_union(annotation) and type(None) in typing.get_args(annotation):
                rest = tuple(a for a in typing.get_args(annotation) if a is not type(None))
                annotation = rest[0] if len(rest) == 1 else typing.Union[rest]  # noqa: UP007 - built at run time
            else:
                break
        self.annotation = annotation
        arguments = typing.get_args(annotation)
        fixed = typing.get_origin(annotation) is tuple and Ellipsis not in arguments
        self.length = len(arguments) if fixed else None
        self.members = {_tag_of(member): member for member in arguments} if _is_union(annotation) else {}

    def _step(self, item: str | int) -> None:
        """One item of pydantic's location; the tag of a union is not part of the path in the file."""
        annotation, length = self.annotation, self.length
        if item in self.members:
            self.alternatives = tuple(self.members)
            self._enter(self.members[str(item)], [])
            return
        self.alternatives = ()
        self.path = (*self.path, item)
        if _is_spec(annotation):
            fields = annotation.model_fields
            self.siblings = tuple(fields)
            field = fields.get(str(item))
            self._enter(field.annotation, field.metadata) if field else self._enter(None, [])
        elif typing.get_origin(annotation) is dict:
            self.siblings = ()
            self._enter(typing.get_args(annotation)[1], [])
        elif typing.get_origin(annotation) is tuple:
            arguments = typing.get_args(annotation)
            index = item if isinstance(item, int) and length is not None and item < length else 0
            self._enter(arguments[index], [])
            self.length = length if isinstance(item, int) else None
        else:
            self._enter(None, [])

    @property
    def expectation(self) -> str:
        """What belongs here, in words: type, range, unit."""
        annotation = self.annotation
        if self.alternatives and not _is_spec(annotation):
            return " or ".join(self.alternatives)
        if _is_spec(annotation) or self.members or typing.get_origin(annotation) is dict:
            return "a table"
        if typing.get_origin(annotation) is typing.Literal:
            return " or ".join(map(repr, typing.get_args(annotation)))
        if typing.get_origin(annotation) is tuple:
            if typing.get_origin(typing.get_args(annotation)[0]) is tuple and self.length:
                return "[ixx, iyy, izz] or a 3x3 matrix, in kg m^2"
            return f"a list of {self.length} numbers" if self.length else "a list"
        if annotation is bool:
            return "true or false"
        if annotation is str:
            return "a text"
        noun = "an integer" if annotation is int else "a finite number"
        return f"{noun}{_range(self.metadata)}{_unit(self.metadata)}"


def _range(metadata: Sequence[Any]) -> str:
    """` > 0 and <= 1000`: the tightest bounds of each kind."""
    bounds = {}
    for kind, attribute, sign, pick in (
        (annotated_types.Gt, "gt", ">", max),
        (annotated_types.Ge, "ge", ">=", max),
        (annotated_types.Lt, "lt", "<", min),
        (annotated_types.Le, "le", "<=", min),
    ):
        values = [getattr(item, attribute) for item in metadata if isinstance(item, kind)]
        if values:
            bounds[sign] = pick(values)
    if set(bounds) == {">=", "<="} and bounds[">="] == -bounds["<="]:
        return f" within +-{bounds['<=']:g}"
    return " " + " and ".join(f"{sign} {bound:.10g}" for sign, bound in bounds.items()) if bounds else ""


def _unit(metadata: Sequence[Any]) -> str:
    symbols = [item.symbol for item in metadata if isinstance(item, Unit) and item.symbol != "-"]
    return f", in {symbols[-1]}" if symbols else ""


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _is_spec(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _tag_of(member: Any) -> str:
    """What tells a member of a union apart: the `kind` of a table, or the words of a `Tag`."""
    if _is_spec(member) and "kind" in member.model_fields:
        return str(typing.get_args(member.model_fields["kind"].annotation)[0])
    tags = [item.tag for item in typing.get_args(member) if isinstance(item, Tag)]
    return tags[0] if tags else ""
