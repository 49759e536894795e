"""The files of a run, in two tasks that :mod:`skycrane.cli.helper` can give to two processes: what each loads, and what it writes."""

from __future__ import annotations

import gc
import json
import pickle
import signal
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skycrane.viz.dataset import RESULT_NAME
from skycrane.viz.figures import new_figure
from skycrane.viz.plots import save_plots
from skycrane.viz.replay import save_replay

if TYPE_CHECKING:
    import xarray as xr


def write_result_and_plots(dataset: xr.Dataset, folder: Path) -> list[Path]:
    """Write `result.nc` and every plot into a directory; their paths."""
    path = folder / RESULT_NAME
    dataset.to_netcdf(path, engine="h5netcdf")
    return [path, *save_plots(dataset, folder)]


def write_replay(dataset: xr.Dataset, folder: Path) -> list[Path]:
    """Write `replay.html` into a directory."""
    return [save_replay(dataset, folder)]


def _load_plotting() -> None:
    import h5netcdf  # noqa: F401

    figure, _ = new_figure(1, 1, height=1.0)
    figure.savefig(BytesIO(), format="png")


def _load_viewer() -> None:
    import viser  # noqa: F401


TASKS: dict[str, tuple[Callable[[], None], Callable[[Any, Path], list[Path]]]] = {
    "plots": (_load_plotting, write_result_and_plots),
    "replay": (_load_viewer, write_replay),
}
"""By name, what loads the libraries and what writes the files."""


def serve(task: str) -> None:
    """What a helper does: load the libraries, read a data set and a directory from standard input, write, and answer with the paths."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends it
    gc.disable()  # a second or two of life
    answer, sys.stdout = sys.stdout, sys.stderr  # what a library prints is not part of the answer
    load, write = TASKS[task]
    import xarray as xr

    xr.Dataset({"ready": ("x", [0.0])})  # xarray looks for other kinds of arrays when it sees its first
    load()
    try:
        parts, folder = pickle.load(sys.stdin.buffer)
    except EOFError:  # the caller has gone, or did not get that far
        return
    json.dump([str(path) for path in write(xr.Dataset(*parts), folder)], answer)
