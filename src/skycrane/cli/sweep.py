"""`skycrane sweep`: many runs of one scenario with keys varied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from skycrane.cli import UserError
from skycrane.cli.common import Changes, console
from skycrane.cli.run import safe_name, split_metric

if TYPE_CHECKING:
    from rich.console import Console

    from skycrane.sweep.runner import Progress, SweepResult

Vary = Annotated[
    tuple[str, ...],
    Parameter(
        name="--vary",
        consume_multiple=True,
        negative=(),
        help="What to vary: `key=1:3`, `key=1:3:7` (7 values in a grid), `key=0.01:1:log`, `key=int:2:8` or `key=[a, b]`.",
    ),
]


def sweep(
    target: Annotated[str, Parameter(help="Name of a bundled scenario or vehicle, or a TOML file.")],
    *,
    vary: Vary = (),
    method: Annotated[Literal["grid", "lhs", "sobol", "montecarlo"], Parameter(help="How the points are spread.")] = "lhs",
    samples: Annotated[int | None, Parameter(help="Number of points (not for a grid); 128 by default.")] = None,
    seed: Annotated[int, Parameter(help="Of the points; that of the runs is `--vary run.seed=int:1:100`.")] = 0,
    indices: Annotated[
        bool, Parameter(negative=(), help="With `sobol`: SAMPLES x (keys + 2) points, and from them first-order and total Sobol indices.")
    ] = False,
    changes: Changes = (),
    engine: Annotated[Literal["local", "dask"], Parameter(help="Processes of this machine, or a Dask cluster.")] = "local",
    address: Annotated[str | None, Parameter(help="Of the cluster's scheduler, such as tcp://10.0.0.1:8786.")] = None,
    jobs: Annotated[int | None, Parameter(help="Local processes; one for each processor by default.")] = None,
    width: Annotated[int | None, Parameter(help="Points that are flown as one batch; by the size of the sweep by default.")] = None,
    retry: Annotated[bool, Parameter(negative=(), help="Fly points again that ended in an error.")] = False,
    metric: Annotated[str | None, Parameter(help="The metric to show and plot; the position error where there is one.")] = None,
    out: Annotated[Path | None, Parameter(help="Directory for the results; `sweeps/<name>` by default.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=(), help="Print the summary as JSON and nothing else.")] = False,
    quiet: Annotated[bool, Parameter(negative=(), help="Print nothing but errors.")] = False,
) -> int:
    """Fly a scenario many times with keys varied; writes a table, statistics, sensitivities and plots.

    A sweep that was stopped, in whatever way, goes on where it was when the same command is given again.
    """
    from skycrane.scenario import ScenarioError
    from skycrane.sweep.plots import save_sweep_plots
    from skycrane.sweep.runner import sweep as fly

    screen = console(quiet or as_json)
    folder = out or Path("sweeps") / safe_name(Path(target).stem)
    try:
        with _Meter(screen) as progress:
            result = fly(
                target, vary, out=folder, method=method, samples=samples, seed=seed, indices=indices, changes=changes, engine=engine,
                address=address, jobs=jobs, width=width, retry=retry, progress=progress,
            )  # fmt: skip
    except ScenarioError as error:
        raise UserError(str(error)) from None
    if metric is not None and metric not in result.summary["metrics"]:
        raise UserError(f"no metric {metric!r}; there are {', '.join(result.summary['metrics']) or 'none: no point finished'}")
    plots = save_sweep_plots(result.records, result.dimensions, result.summary, folder / "plots", metric)
    if as_json:
        print(json.dumps(result.summary, indent=2))
    _report(screen, result, plots, folder)
    return 0 if result.summary["status"].get("finished") else 1


class _Meter:
    """A line that says how far the sweep is, how fast, and how long it will take."""

    def __init__(self, screen: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("flying"), BarColumn(), TextColumn("{task.completed:.0f} of {task.total:.0f} points"),
            TextColumn("{task.fields[speed]}"),
        )  # fmt: skip
        self._screen = screen
        self._bar = Progress(*columns, console=screen, transient=True, disable=screen.quiet)
        self._task = self._bar.add_task("", total=1, speed="loading")

    def __enter__(self) -> _Meter:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        speed = f"{progress.rate:.3g} points/s, {_duration(progress.remaining_s)} left" if progress.rate else ""
        failed = f", {progress.failed} failed" if progress.failed else ""
        self._bar.update(self._task, completed=progress.done, total=progress.total, speed=speed + failed)
        if not self._screen.is_terminal and progress.rate:
            self._screen.print(f"{progress.done} of {progress.total} points, {speed}{failed}", soft_wrap=True)


def _duration(seconds: float) -> str:
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _report(screen: Console, result: SweepResult, plots: list[Path], folder: Path) -> None:
    from rich.markup import escape
    from rich.table import Table

    found: dict[str, Any] = result.summary
    counts = ", ".join(f"{count} {status}" for status, count in found["status"].items())
    kept = found["points"] - result.flown
    screen.print(f"{found['points']} points: {counts}" + (f"; {kept} of them from before" if kept else ""), soft_wrap=True)
    for name in result.discarded:
        screen.print(f"[yellow]warning:[/yellow] {name} was damaged and flown again", soft_wrap=True)
    for reason, count in list(found["reasons"].items())[:5]:
        screen.print(f"[yellow]{count} x[/yellow] {escape(reason)}", soft_wrap=True)
    table = Table("metric", "min", "median", "max", "matters most", box=None, padding=(0, 2, 0, 0))
    for name, spread in found["metrics"].items():
        words, unit = split_metric(name)
        shares = found.get("sobol_indices", {}).get(name) or found["sensitivity"].get(name, {})
        key = max(shares, key=lambda k: shares[k]["first_order"], default=None)
        most = "" if key is None else f"{key} ({100 * shares[key]['first_order']:.0f} %)"
        table.add_row(
            f"{words} {f'[{unit}]' if unit else ''}".replace("[", r"\["),
            *(f"{spread[k]:.4g}" for k in ("min", "median", "max")),
            escape(most),
        )
    screen.print(table)
    screen.print(f"wrote {', '.join(path.name for path in result.files)} and {len(plots)} plots to {folder}", soft_wrap=True)
