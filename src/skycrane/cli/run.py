"""`skycrane run`: fly a scenario, show how it goes, and write everything down."""

from __future__ import annotations

import gc
import json
import re
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from skycrane.cli import UserError
from skycrane.cli.common import Changes, Target, console, load_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rich.console import Console

    from skycrane.scenario import LoadedScenario
    from skycrane.scenario.build import Built
    from skycrane.scenario.record import Record

SUMMARY = "summary.json"


def run(
    target: Target = None,
    *,
    out: Annotated[Path | None, Parameter(help="Directory for the results; `runs/<name>` by default.")] = None,
    changes: Changes = (),
    duration: Annotated[float | None, Parameter(help="Simulated time in s, instead of the scenario's.")] = None,
    seed: Annotated[int | None, Parameter(help="Seed, instead of the scenario's.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=(), help="Print the summary as JSON and nothing else.")] = False,
    quiet: Annotated[bool, Parameter(negative=(), help="Print nothing but errors.")] = False,
    force: Annotated[bool, Parameter(negative=(), help="Write into a directory that is not empty.")] = False,
) -> int:
    """Fly a scenario; writes result.nc, summary.json, plots and replay.html.

    Without a name it flies the most impressive bundled scenario.
    """
    given = [f"run.{key}={value}" for key, value in (("duration", duration), ("seed", seed)) if value is not None]
    loaded = load_target(target, [*changes, *given])
    folder = out or Path("runs") / safe_name(loaded.scenario.name)
    if folder.is_file():
        raise UserError(f"{folder} is a file; give another directory with --out")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise UserError(f"{folder} is not empty; --force writes over an earlier result, --out DIR goes elsewhere")
    screen = console(quiet or as_json)
    summary, files = fly_and_write(loaded, folder, screen)
    if as_json:
        print(json.dumps(summary, indent=2))
    _report(screen, summary, files)
    return 0 if summary["status"] == "finished" else 1


def safe_name(name: str) -> str:
    """A file name: nothing but letters, digits, `-` and `_`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "run"


def fly_and_write(loaded: LoadedScenario, folder: Path, screen: Console) -> tuple[dict[str, Any], list[Path]]:
    """Fly, and write all files. The summary, and the files."""
    with _uncollected(), Writers() as writers:
        return _fly_and_write(loaded, folder, screen, writers)


def _fly_and_write(loaded: LoadedScenario, folder: Path, screen: Console, writers: Writers) -> tuple[dict[str, Any], list[Path]]:
    from skycrane.runtime import configure

    scenario = loaded.scenario
    screen.print(f"[bold]{scenario.title or scenario.name}[/bold]", soft_wrap=True)
    with _busy(screen, "loading JAX"):
        began = time.perf_counter()
        configure(scenario.run.precision)
        from skycrane.scenario.build import build
        from skycrane.scenario.fly import fly
        from skycrane.scenario.record import record

        import_s = time.perf_counter() - began
        from skycrane.scenario.choose import with_integrator

        built, reason = with_integrator(build(scenario))
    if reason is not None:
        screen.print(f"integrator: {reason}", soft_wrap=True)
    refuse_unstable(built, screen)
    with _bar(screen, scenario.run.duration) as progress:
        flight = fly(built, progress)
    with _busy(screen, "writing results"):
        made = record(loaded, built, flight, import_s)
        folder.mkdir(parents=True, exist_ok=True)
        return made.summary, writers.write(made, folder)


def refuse_unstable(built: Built, screen: Console) -> None:
    """Say so before the run where the step is too long; refuse it where it is so by a factor of two."""
    from skycrane.scenario.record import largest_step, warnings_before

    limit, name = largest_step(built)
    for warning in warnings_before(built):
        # A vehicle that stays in the air does not care about the ground.
        if limit is not None and built.scenario.run.step > 2 * limit and name != "contact":
            raise UserError(f"{warning}: the run would diverge; give a shorter step")
        screen.print(f"[yellow]warning:[/yellow] {warning}", soft_wrap=True)


class Writers:
    """Writes the files of a run, with helpers that get ready while it is compiled and flown, where there is a processor for them."""

    def __init__(self) -> None:
        from skycrane.cli.helper import Helper, worthwhile

        self._helpers = {task: Helper(task) for task in ("plots", "replay")} if worthwhile() else {}

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._helpers.values():
            helper.close()

    def write(self, made: Record, folder: Path) -> list[Path]:
        """All files; their paths."""
        from skycrane.viz.files import TASKS

        for helper in self._helpers.values():
            helper.send(made.table, folder)
        summary = folder / SUMMARY
        summary.write_text(json.dumps(made.summary, indent=2) + "\n", encoding="utf-8")
        files = [summary]
        for task, (_, write) in TASKS.items():
            written = self._helpers[task].files() if task in self._helpers else None
            files += write(made.dataset, folder) if written is None else written
        return files


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection, which walks through all that JAX has made again and again: a seventh of the time of a short run."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _busy(screen: Console, what: str) -> AbstractContextManager[Any]:
    return nullcontext() if screen.quiet or not screen.is_terminal else screen.status(what)


class _bar:
    """A progress bar over simulated time; its call takes the simulated time and the wall time of the last piece."""

    def __init__(self, screen: Console, duration: float) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.1f} of {task.total:.1f} s"),
            TextColumn("{task.fields[speed]}"),
        )
        self._progress = Progress(*columns, console=screen, transient=True, disable=screen.quiet)
        self._task = self._progress.add_task("compiling", total=duration, speed="")
        self._last = 0.0

    def __enter__(self) -> Callable[[float, float], None]:
        self._progress.start()
        return self._advance

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _advance(self, simulated: float, wall: float) -> None:
        factor = (simulated - self._last) / max(wall, 1e-9)
        # The first piece is mostly compilation and says nothing about the speed.
        speed = f"{factor:.0f} x real time" if self._last else ""
        self._last = simulated
        self._progress.update(self._task, completed=simulated, description="flying", speed=speed)


UNITS = {
    "m_s": "m/s",
    "mps": "m/s",
    "rad_s": "rad/s",
    "deg": "deg",
    "m": "m",
    "s": "s",
    "n": "N",
    "j": "J",
    "w": "W",
    "rel": "",
    "fraction": "",
}
"""Units by the suffix of a metric's name, longer suffixes before those that they end with."""


def split_metric(name: str) -> tuple[str, str]:
    """`position_error_rms_m` as words and unit; of `contact_force_mean_n_sliding`, of a phase, the unit stands before the phase's name."""
    phase = re.fullmatch(r"((?:end_effector|contact_force)_.*?(?:rms|mean|std)_(?:m|deg|n))_(\w+)", name)
    if phase is not None:
        words, unit = split_metric(phase[1])
        return f"{words}, {phase[2].replace('_', ' ')}", unit
    suffix = next((suffix for suffix in UNITS if name.endswith(f"_{suffix}")), "")
    # A ratio keeps the word that says what it is.
    words = name.removesuffix(f"_{suffix}") if UNITS.get(suffix) or suffix == "rel" else name
    return words.replace("_", " "), UNITS.get(suffix, "")


def _report(screen: Console, summary: dict[str, Any], files: list[Path]) -> None:
    from rich.markup import escape
    from rich.table import Table

    colors = {"finished": "green", "diverged": "red", "limit": "yellow"}
    status, timings = summary["status"], summary["timings"]
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("status", f"[{colors[status]}]{status}[/]")
    for name, value in summary["metrics"].items():
        words, unit = split_metric(name)
        table.add_row(words, f"{value:.4g} {unit}")
    table.add_row("wall time", f"{timings['compile_s']:.2g} s to compile, {timings['run_s']:.2g} s to fly")
    table.add_row("real-time factor", f"{timings['real_time_factor']:.4g}")
    screen.print(table)
    for warning in summary["warnings"]:
        screen.print(f"[yellow]warning:[/yellow] {escape(warning)}", soft_wrap=True)
    if summary["diagnosis"]:
        screen.print(f"[{colors[status]}]{escape(summary['diagnosis'])}[/]", soft_wrap=True)
    plots = [path for path in files if path.suffix == ".png"]
    named = ", ".join(path.name for path in files if path not in plots)
    screen.print(f"wrote {named} and {len(plots)} plots to {files[0].parent}", soft_wrap=True)
    screen.print(f"next: [bold]skycrane view {files[0].parent}[/bold]", soft_wrap=True)
