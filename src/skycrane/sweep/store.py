"""The directory of a sweep: a manifest, and one file of records for every finished block, each written in one piece.

    DIR/manifest.json          what is swept, and with which versions
    DIR/parts/<block>.json     records of a finished block; its name is the content key of the block
    DIR/table.parquet, .csv    all records, written at the end
    DIR/summary.json           statistics and sensitivities

A file is written beside its place, flushed to the disk and renamed, so after a kill at any moment a block is either there or not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skycrane.scenario.base import Problem
from skycrane.scenario.errors import ScenarioError

MANIFEST, PARTS, LOCK = "manifest.json", "parts", ".lock"
FORMAT = 1


def content_key(content: Any) -> str:
    """SHA-256 of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=True).encode()).hexdigest()


class Store:
    """Records of one sweep.  Open it with :meth:`open`, which keeps others out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.discarded: list[str] = []

    @classmethod
    @contextmanager
    def open(cls, folder: Path, manifest: dict[str, Any]) -> Iterator[Store]:
        """Begin a sweep in an empty directory, or go on with the same one.

        Raises:
            ScenarioError: if the directory holds something else, or another process is at work in it.
        """
        store = cls(folder)
        known = folder / MANIFEST
        if folder.is_file() or (folder.is_dir() and not known.exists() and any(p.name not in (LOCK, PARTS) for p in folder.iterdir())):
            _refuse(folder, "holds something other than a sweep; give another directory with --out")
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            for leftover in [*folder.glob("*.tmp"), *(folder / PARTS).glob("*.tmp")]:
                leftover.unlink()
            manifest = {"format": FORMAT, **manifest}
            if known.exists():
                _same_or_refuse(folder, json.loads(known.read_text(encoding="utf-8")), json.loads(json.dumps(manifest)))
            else:
                write_whole(known, json.dumps(manifest, indent=1) + "\n")
            yield store

    def path(self, block: str) -> Path:
        return self.folder / PARTS / f"{block}.json"

    def put(self, block: str, records: list[dict[str, Any]]) -> None:
        """Keep the records of a finished block."""
        write_whole(self.path(block), json.dumps({"block": block, "records": records}) + "\n")

    def get(self, block: str) -> list[dict[str, Any]] | None:
        """Records of a block, or None if it is not finished.  A damaged file counts as not there and is listed in ``discarded``."""
        path = self.path(block)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["block"] == block:
                return content["records"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            pass
        path.unlink()
        self.discarded.append(path.name)
        return None


def write_whole(path: Path, text: str | bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    beside = path.with_name(path.name + ".tmp")
    with beside.open("wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """A lock that the system releases when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows: no such lock; two sweeps in one directory are the user's to avoid
        yield
        return
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            _refuse(folder, "another sweep is at work in it; wait for it, or give another directory with --out")
        yield


def _same_or_refuse(folder: Path, there: dict[str, Any], wanted: dict[str, Any]) -> None:
    different = sorted(key for key in {*there, *wanted} if there.get(key) != wanted.get(key))
    if not different:
        return
    shown = "; ".join(f"{key}: {_short(there.get(key))} there, {_short(wanted.get(key))} now" for key in different)
    _refuse(folder, f"holds another sweep ({shown}); give another directory with --out, or the same arguments to go on with it")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _refuse(folder: Path, message: str):
    raise ScenarioError(str(folder), [Problem((), message)])
