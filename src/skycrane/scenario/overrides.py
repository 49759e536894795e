"""`--set vehicle.mass=2.2`: changes to a scenario from the command line, made before it is checked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from .base import Problem
from .errors import ScenarioError

PathKey = tuple[str | int, ...]

_PART = re.compile(r"([A-Za-z0-9_-]+)((?:\[\d{1,9}\])*)")
_BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def parse_override(text: str) -> tuple[PathKey, Any]:
    """`vehicle.rotors[1].spin=cw` as key path and value. The value is TOML; a bare word is a string."""
    source = f"--set {text}"
    key, equals, value = text.partition("=")
    if not equals:
        raise ScenarioError(source, [Problem((), "expected key=value, such as vehicle.mass=2.2")])
    path: list[str | int] = []
    for part in key.strip().split("."):
        match = _PART.fullmatch(part)
        if match is None:
            raise ScenarioError(source, [Problem((), f"{key.strip()!r} is no key path such as vehicle.rotors[1].spin")])
        path.append(match[1])
        path += [int(index) for index in re.findall(r"\d+", match[2])]
    return tuple(path), _parse_value(source, value.strip())


def _parse_value(source: str, text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        table = {}
    if set(table) == {"value"}:
        return table["value"]
    # A shell takes the quotes away from spin="cw".
    if _BARE_WORD.fullmatch(text):
        return text
    raise ScenarioError(source, [Problem((), f"{text!r} is no TOML value: a number, a word, true, false or [a list]")])


def apply_override(data: dict[str, Any], path: PathKey, value: Any, source: str) -> None:
    """Set one value in the tables of a scenario, in place. Missing tables are made; the check refuses unknown ones."""
    node: Any = data
    for depth, key in enumerate(path[:-1]):
        following = path[depth + 1]
        if isinstance(key, str) and isinstance(node, dict):
            node = node.setdefault(key, {}) if isinstance(following, str) else node.get(key)
        elif isinstance(key, int) and isinstance(node, list) and key < len(node):
            node = node[key]
        else:
            _refuse(path, depth, node, source)
    last = path[-1]
    fits = isinstance(node, dict) if isinstance(last, str) else isinstance(node, list) and last < len(node)
    if fits:
        node[last] = value
    else:
        _refuse(path, len(path) - 1, node, source)


def _refuse(path: PathKey, depth: int, node: Any, source: str) -> None:
    parent = path[:depth]
    if isinstance(path[depth], int):
        reason = f"has {len(node)} entries, counted from 0" if isinstance(node, list) else "is not a list in this scenario"
    else:
        reason = "is a value, not a table" if not isinstance(node, Mapping) else "has no such key"
    raise ScenarioError(source, [Problem(parent, f"{reason}; cannot set {path[depth]!r} in it")])
