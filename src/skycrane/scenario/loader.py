"""From a name or a file to a checked scenario.

A vehicle's `model` is put in before the check: the named catalogue entry or file is read, checked by itself, and the
keys of the scenario replace its keys. Then the changes of `--set` are made, then everything is validated.
"""

from __future__ import annotations

import copy
import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .base import Problem
from .bundled import catalogue
from .errors import ScenarioError, problems_of
from .overrides import PathKey, apply_override, parse_override
from .records import put_records_in
from .scenario import Scenario, nearest

MAX_FILE_BYTES = 5_000_000
MAX_MODEL_DEPTH = 8


@dataclass(frozen=True)
class LoadedScenario:
    """A checked scenario with where it came from and its complete tables, model and changes put in."""

    scenario: Scenario
    source: str
    tables: dict[str, Any]

    def toml(self) -> str:
        """The complete scenario as one TOML file, which loads to the same scenario."""
        import tomlkit

        return tomlkit.dumps(self.tables)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines the run; comments, order and titles do not count."""
        content = self.scenario.model_dump(mode="json", exclude={"name", "title", "description"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def load(name_or_file: str | Path, overrides: Iterable[str] = ()) -> LoadedScenario:
    """Load a bundled scenario or catalogue vehicle by name, or a file by path, and check it.

    Raises ScenarioError, whose text says what is wrong and where.
    """
    path = find(name_or_file)
    return load_tables(read_toml(path), source=_shown(path), folder=path.parent, overrides=overrides)


def loads(text: str, source: str = "<text>", overrides: Iterable[str] = (), folder: Path | None = None) -> LoadedScenario:
    """Load and check a scenario from TOML text; relative models are looked for in `folder`."""
    return load_tables(parse_toml(text, source), source, folder or Path.cwd(), overrides)


def load_tables(tables: dict[str, Any], source: str, folder: Path | None = None, overrides: Iterable[str] = ()) -> LoadedScenario:
    """Check a scenario that is given as tables (dictionaries, lists, numbers and texts), as TOML would hold them."""
    tables = copy.deepcopy(tables)
    changes: list[tuple[str, PathKey, Any]] = [(f"--set {text}", *parse_override(text)) for text in overrides]
    # A change of the model comes before the model is put in, any other change after it.
    early = [change for change in changes if _names_model(*change[1:])]
    for text, path, value in early:
        apply_override(tables, path, value, text)
    _put_models_in(tables, source, folder or Path.cwd())
    for text, path, value in changes:
        if not _names_model(path, value):
            apply_override(tables, path, value, text)
    _put_likes_in(tables, source)
    put_records_in(tables, source, folder or Path.cwd())
    return LoadedScenario(validate(tables, source), source, tables)


def _names_model(path: PathKey, value: Any) -> bool:
    return path[-1] == "model" or (isinstance(value, dict) and "model" in value)


def validate(tables: dict[str, Any], source: str) -> Scenario:
    """The scenario of complete tables, or ScenarioError."""
    try:
        return Scenario.model_validate(tables)
    except ValidationError as error:
        raise ScenarioError(source, problems_of(error, Scenario, tables)) from None


def find(name_or_file: str | Path) -> Path:
    """The file behind a name: a path to a TOML file, a bundled scenario, or a catalogue vehicle."""
    text = str(name_or_file)
    path = Path(text)
    bundled = catalogue("vehicle") | catalogue("scenario")
    if text in bundled:
        return bundled[text]
    if path.suffix == ".toml" or len(path.parts) > 1:
        if path.is_dir():
            raise ScenarioError(text, [Problem((), "is a directory; expected a TOML file")])
        if path.is_file():
            return path
        raise ScenarioError(text, [Problem((), "there is no such file")])
    hint = nearest(text, bundled)
    if path.with_name(path.name + ".toml").is_file():
        hint = f"; did you mean the file {path.name}.toml?"
    raise ScenarioError(text, [Problem((), f"there is no bundled scenario or vehicle of this name{hint}")])


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    source = _shown(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ScenarioError(source, [Problem((), f"cannot be read: {error.strerror or error}")]) from None
    if len(raw) > MAX_FILE_BYTES:
        raise ScenarioError(source, [Problem((), f"is larger than the allowed {MAX_FILE_BYTES / 1e6:g} MB")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ScenarioError(source, [Problem((), f"is not UTF-8 text (line {line})")]) from None
    return parse_toml(text, source)


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The tables of TOML text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(source, [Problem((), f"is not valid TOML: {error}")]) from None
    except (ValueError, RecursionError) as error:
        # Beyond the parser itself: integers of thousands of digits, impossible dates, thousands of nested brackets.
        reason = "too deeply nested" if isinstance(error, RecursionError) else str(error)
        raise ScenarioError(source, [Problem((), f"is not valid TOML: {reason}")]) from None


def _shown(path: Path) -> str:
    """How a file is called in messages: bundled ones by their name alone."""
    return path.name if path in (*catalogue("scenario").values(), *catalogue("vehicle").values()) else str(path)


def _vehicle_tables(tables: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Every place where a vehicle's table is, as (containing table, key)."""
    places = []
    if isinstance(tables.get("vehicle"), dict):
        places.append((tables, "vehicle"))
    fleet = tables.get("vehicles")
    if isinstance(fleet, dict):
        places += [(fleet, name) for name, table in fleet.items() if isinstance(table, dict)]
    return places


def _put_models_in(tables: dict[str, Any], source: str, folder: Path, depth: int = 0) -> None:
    """Replace every vehicle's `model` by the keys of the model, in place."""
    for parent, key in _vehicle_tables(tables):
        table = parent[key]
        model = table.get("model")
        if not isinstance(model, str):
            continue
        if depth == MAX_MODEL_DEPTH:
            raise ScenarioError(source, [Problem(("vehicle", "model"), "models refer to one another in a circle", model)])
        path = _find_model(model, source, folder)
        base = read_toml(path)
        _put_models_in(base, _shown(path), path.parent, depth + 1)
        put_records_in(base, _shown(path), path.parent)
        # Checked by itself, so that a mistake in it is reported in its own file.
        if validate(base, _shown(path)).vehicle is None:
            raise ScenarioError(_shown(path), [Problem(("vehicle",), "missing: a model is a file with one [vehicle]")])
        below = base["vehicle"]
        for given, other in (("rotors", "layout"), ("layout", "rotors")):
            if given in table:
                below.pop(other, None)
        # Where the model stands in a file of its own says nothing about a place above a cable.
        if isinstance(table.get("initial"), dict) and "over" in table["initial"] and isinstance(below.get("initial"), dict):
            below["initial"].pop("position", None)
        merged = _merge(below, table)
        del merged["model"]
        parent[key] = merged


def _put_likes_in(tables: dict[str, Any], source: str) -> None:
    """Give every cable with `like` the keys of the cable that it names, in place."""
    cables = tables.get("cables")
    if not isinstance(cables, dict):
        return

    def resolved(name: str, above: tuple[str, ...]) -> dict[str, Any]:
        table = cables[name]
        like = table.get("like")
        if not isinstance(like, str):
            return table
        at = ("cables", name, "like")
        if like not in cables or not isinstance(cables[like], dict):
            raise ScenarioError(source, [Problem(at, f"there is no cable of this name{nearest(like, cables)}", like)])
        if like in (*above, name):
            raise ScenarioError(source, [Problem(at, "cables refer to one another in a circle", like)])
        merged = _merge(resolved(like, (*above, name)), table)
        del merged["like"]
        return merged

    tables["cables"] = {name: resolved(name, ()) if isinstance(table, dict) else table for name, table in cables.items()}


def _find_model(model: str, source: str, folder: Path) -> Path:
    known = catalogue("vehicle")
    if model in known:
        return known[model]
    at = ("vehicle", "model")
    if not model.endswith(".toml"):
        raise ScenarioError(source, [Problem(at, f"there is no catalogue vehicle of this name{nearest(model, known)}", model)])
    relative = Path(model)
    # A scenario may come from anywhere: it reads nothing outside its own directory.
    if relative.is_absolute() or ".." in relative.parts:
        raise ScenarioError(source, [Problem(at, "expected a file in the scenario's own directory or below it", model)])
    path = folder / relative
    if not path.is_file():
        raise ScenarioError(source, [Problem(at, f"there is no such file in {folder}", model)])
    return path


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Tables merged key by key; a value or a list replaces, and so does a table of another kind."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and value.get("kind", old.get("kind")) == old.get("kind"):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged
