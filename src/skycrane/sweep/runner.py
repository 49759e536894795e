"""A sweep from its arguments to its table: plan, fly what is missing, collect."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from skycrane.scenario.base import Problem
from skycrane.scenario.errors import ScenarioError
from skycrane.scenario.loader import LoadedScenario, find, load_tables, read_toml

from .block import ERROR, Entry, Task
from .design import design
from .engines import run_dask, run_here, run_local
from .plan import Block, Point, plan, usual_width
from .space import Dimension, parse_all
from .statistics import summary
from .store import Store, content_key, write_whole

TABLE, TABLE_CSV, SUMMARY = "table.parquet", "table.csv", "summary.json"
BATCH_BYTES = 250_000_000  # what the samples of one block may take


@dataclass(frozen=True)
class Progress:
    """How far a sweep is: points ``done`` (with those of earlier calls) of ``total``, not finished ones among them, points per second
    of this call, and seconds that remain (infinite before the first block)."""

    done: int
    total: int
    failed: int
    rate: float
    remaining_s: float


@dataclass(frozen=True)
class SweepResult:
    """Records in the order of the design, statistics, and the files written."""

    records: list[dict[str, Any]]
    summary: dict[str, Any]
    dimensions: tuple[Dimension, ...]
    files: list[Path]
    flown: int
    discarded: list[str]


def sweep(
    target: str | Path,
    vary: Sequence[str],
    *,
    out: Path,
    method: str = "lhs",
    samples: int | None = None,
    seed: int = 0,
    indices: bool = False,
    changes: Sequence[str] = (),
    engine: Literal["local", "dask"] = "local",
    address: str | None = None,
    jobs: int | None = None,
    width: int | None = None,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SweepResult:
    """Fly a scenario many times with keys varied; begun again in the same directory it goes on where it was.

    Args:
        target: name of a scenario or file.
        vary: texts of :func:`skycrane.sweep.space.parse_vary`.
        out: directory.
        method, samples, seed, indices: see :func:`skycrane.sweep.design.design`.
        changes: as `--set`, to all points.
        engine, address: local processes, or the Dask cluster at the address.
        jobs: local processes; one for each processor by default.  A program that uses more than one needs the usual
            ``if __name__ == "__main__":``.
        width: points that are flown as one batch.
        retry: fly blocks again that have points with status ``error``.
        progress: called after every block.

    Raises:
        ScenarioError: for arguments that do not fit, or a directory that holds something else.
    """
    dimensions = parse_all(list(vary))
    rows = design(dimensions, method, samples, seed, indices)
    path = find(target)
    source = _Source(read_toml(path), str(target), path.parent, tuple(changes))
    first = _first_valid(source, dimensions, rows)
    if width is None:
        width = min(usual_width(len(rows)), _lanes_that_fit(first))
    if not 1 <= width <= 4096:
        raise ScenarioError("sweep", [Problem((), f"width is {width}; expected 1 to 4096")])
    manifest = {
        "scenario": str(target),
        "content": content_key([source.tables, source.changes]),
        "vary": list(vary),
        "method": method,
        "samples": samples,
        "seed": seed,
        "indices": indices,
        "width": width,
        "design": content_key([list(row) for row in rows]),
        "versions": {name: version(name) for name in ("skycrane", "jax", "jaxlib")},
    }
    blocks = plan(dimensions, rows, width, content_key(manifest))
    with Store.open(out, manifest) as store:
        done = {block.key: records for block in blocks if (records := store.get(block.key)) is not None}
        if retry:
            done = {key: records for key, records in done.items() if all(r["status"] != ERROR for r in records)}
        missing = [block for block in blocks if block.key not in done]
        meter = _Meter(len(rows), [r for records in done.values() for r in records], progress)

        def finished(task: Task, records: list[dict[str, Any]]) -> None:
            store.put(task.block, records)
            done[task.block] = records
            meter.add(records)

        _fly(_tasks(source, missing, width, first.scenario.run.precision), finished, engine, address, jobs, len(missing))
        records = sorted((r for part in done.values() for r in part), key=lambda r: r["index"])
        found = summary(records, dimensions, indices)
        return SweepResult(records, found, dimensions, _write(out, records, dimensions, found), meter.flown, store.discarded)


@dataclass(frozen=True)
class _Source:
    """The scenario as it was given; every point is made from it anew, so that a point may vary anything that `--set` can."""

    tables: dict[str, Any]
    name: str
    folder: Path
    changes: tuple[str, ...]

    def at(self, point: Point) -> LoadedScenario:
        return load_tables(self.tables, self.name, self.folder, [*self.changes, *point.changes])


def _first_valid(source: _Source, dimensions: Sequence[Dimension], rows: Sequence[tuple]) -> LoadedScenario:
    """The first point whose scenario is right; where the first hundred are wrong, the mistake is not in the values."""
    errors = []
    for row in rows[:100]:
        try:
            return source.at(Point(0, dict(zip((d.key for d in dimensions), row, strict=True))))
        except ScenarioError as error:
            errors.append(error)
    raise errors[0]


def _lanes_that_fit(loaded: LoadedScenario) -> int:
    """A power of two: lanes whose samples take no more than :data:`BATCH_BYTES`."""
    run, scenario = loaded.scenario.run, loaded.scenario
    samples = math.ceil(run.ticks / run.ticks_per_sample) + 1
    rotors = sum(v.spec.rotor_count for v in scenario.fleet.values())
    segments = sum(getattr(cable, "segments", 0) for cable in getattr(scenario, "cables", {}).values())
    numbers = 40 * len(scenario.bodies) + 12 * rotors + 20 * segments  # state, command and outputs at a sample, roughly
    return 2 ** max(0, math.floor(math.log2(max(1.0, BATCH_BYTES / (8.0 * samples * numbers)))))


def _tasks(source: _Source, blocks: Sequence[Block], width: int, precision: str) -> Iterator[Task]:
    for block in blocks:
        entries, corners = [], []
        for point in block.points:
            try:
                loaded = source.at(point)
                wrong = "" if loaded.scenario.run.precision == precision else "run.precision must be the same in all points"
            except ScenarioError as error:
                entries.append(Entry(point.index, content_key(point.changes), point.values, None, " ".join(str(error).split())))
                continue
            entries.append(Entry(point.index, loaded.digest, point.values, None if wrong else loaded.tables, wrong))
        for point in block.corners if len(block.points) > 1 else ():
            try:
                corners.append(source.at(point).tables)
            except ScenarioError:
                continue
        yield Task(block.key, precision, width, tuple(entries), tuple(corners))


def _fly(tasks: Iterator[Task], done: Callable, engine: str, address: str | None, jobs: int | None, count: int) -> None:
    if engine == "dask":
        if address is None:
            raise ScenarioError("sweep", [Problem((), "the engine dask needs the scheduler's --address, such as tcp://10.0.0.1:8786")])
        try:
            run_dask(tasks, done, address)
        except ImportError:
            raise ScenarioError("sweep", [Problem((), "the engine dask needs a package: pip install 'skycrane[sweep]'")]) from None
        except OSError as error:
            raise ScenarioError("sweep", [Problem((), f"no Dask scheduler answers at {address}: {error}")]) from None
        return
    if engine != "local":
        raise ScenarioError("sweep", [Problem((), f"engine {engine!r}; expected local or dask")])
    if jobs is not None and jobs < 1:
        raise ScenarioError("sweep", [Problem((), f"jobs is {jobs}; expected at least 1")])
    processes = min(os.cpu_count() or 1 if jobs is None else jobs, count)
    if processes <= 1:
        run_here(tasks, done)
    else:
        run_local(tasks, done, processes)


class _Meter:
    """Counts, and calls back."""

    def __init__(self, total: int, before: list[dict[str, Any]], callback: Callable[[Progress], None] | None) -> None:
        self.total, self.callback, self.began = total, callback, time.perf_counter()
        self.before, self.flown, self.failed = len(before), 0, sum(r["status"] != "finished" for r in before)
        self._call()

    def add(self, records: list[dict[str, Any]]) -> None:
        self.flown += len(records)
        self.failed += sum(r["status"] != "finished" for r in records)
        self._call()

    def _call(self) -> None:
        rate = self.flown / max(time.perf_counter() - self.began, 1e-9)
        done = self.before + self.flown
        if self.callback is not None:
            self.callback(Progress(done, self.total, self.failed, rate, (self.total - done) / rate if rate else math.inf))


def _write(out: Path, records: list[dict[str, Any]], dimensions: Sequence[Dimension], found: dict[str, Any]) -> list[Path]:
    """Table and statistics; without pyarrow only the CSV table."""
    columns = table(records, dimensions)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(["" if v is None else v for v in column] for column in columns.values()), strict=True))
    files = [out / TABLE_CSV, out / SUMMARY]
    write_whole(files[0], text.getvalue())
    write_whole(files[1], json.dumps(found, indent=1) + "\n")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return files
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    write_whole(out / TABLE, sink.getvalue().to_pybytes())
    return [out / TABLE, *files]


def table(records: Sequence[dict[str, Any]], dimensions: Sequence[Dimension]) -> dict[str, list[Any]]:
    """Columns by name: index, key, the varied keys, status, reason, the metrics (None where a point lacks one)."""
    out: dict[str, list[Any]] = {name: [r[name] for r in records] for name in ("index", "key")}
    for dimension in dimensions:
        column = [r["values"][dimension.key] for r in records]
        kinds = {type(value) for value in column}
        mixed = (kinds - {int, float} and len(kinds) > 1) or kinds & {list, dict}
        out[dimension.key] = [json.dumps(v) for v in column] if mixed else [float(v) for v in column] if float in kinds else column
    out |= {name: [r[name] for r in records] for name in ("status", "reason")}
    for name in sorted({name for r in records for name in r["metrics"]}):
        out[name] = [r["metrics"].get(name) for r in records]
    return out
