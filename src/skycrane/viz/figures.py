"""What every plot shares: size, palette, grid, legend, event lines, and saving. matplotlib's objects, no pyplot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from skycrane.viz.dataset import TimedLabel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which is too faint for a line on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#333333")
REFERENCE_COLOR = "#333333"
EVENT_COLOR = "#8C2D04"
DPI = 130
WIDTH = 10.0  # inches
COMMON_LABELS = ("reference", "reference (dashed)", "command (dashed)", "start", "end")
MAX_LEGEND = 20
LABEL_ROWS = 4  # rows of event labels above the top axes
CHARACTER = 0.056  # inches, of an average letter in an event's label


def new_figure(
    rows: int, columns: int, *, height: float, share: Literal["all", "none"] = "all", constrained: bool = False
) -> tuple[Figure, np.ndarray]:
    """A figure with a grid of axes (rows, columns) that share x as `share` says ("all" or "none").

    `finish` places them; where it is not called, `constrained` leaves that to matplotlib, which takes three times as long."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from skycrane.viz.layout import TICK_SIZE, PlainFormatter

    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=share)
    for axis in axes.flat:
        axis.grid(True, color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=TICK_SIZE)
        axis.yaxis.set_major_formatter(PlainFormatter())
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG; packed quickly, for a file that is a fifth larger."""
    figure.savefig(path, format="png", facecolor="white", pil_kwargs={"compress_level": 1})
    return path


def colors_for(count: int) -> list[Any]:
    """Colours for `count` lines: the palette while it lasts, then an even ramp from dark to light."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    from matplotlib import colormaps

    return [colormaps["viridis"](value) for value in np.linspace(0.0, 0.9, count)]


def finish(figure: Figure, title: str, *columns: Sequence[Axes] | np.ndarray, events: Sequence[TimedLabel] = ()) -> None:
    """Title, one legend for the whole figure outside the data, and the events on every column of axes, top first."""
    from skycrane.viz.layout import LEGEND_SIZE, PAD, TITLE_SIZE, arrange

    label_rows = max((draw_events(column, events, WIDTH / len(columns) - 0.9) for column in columns), default=0)
    high = 72.0 * figure.get_figheight()
    figure.suptitle(title, fontsize=TITLE_SIZE, fontweight="bold", y=1.0 - PAD / high, va="top")
    entries: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    legend_rows = 0
    if len(entries) > 1:
        # What holds for every line (its dashed reference or command, the marks of start and end) comes last.
        shown = sorted(entries.items(), key=lambda entry: entry[0] in COMMON_LABELS)
        if len(shown) > MAX_LEGEND:
            # First and last tell the ramp of colours apart; the rest would fill the page.
            shown = [shown[index] for index in np.unique(np.linspace(0, len(shown) - 1, MAX_LEGEND).astype(int))]
        ncols = min(len(shown), max(1, int(9.0 / (0.8 + 1.2 * CHARACTER * max(len(label) for label, _ in shown)))))
        legend_rows = -(-len(shown) // ncols)
        figure.legend(
            [handle for _, handle in shown],
            [label for label, _ in shown],
            loc="lower center",
            bbox_to_anchor=(0.5, PAD / high),
            borderpad=0.0,
            borderaxespad=0.0,
            ncols=ncols,
            frameon=False,
            fontsize=LEGEND_SIZE,
        )
    arrange(figure, legend_rows=legend_rows, label_rows=label_rows)


def draw_events(axes: Sequence[Axes] | np.ndarray, events: Sequence[TimedLabel], width: float) -> int:
    """A vertical line per event on every axes, `width` inches wide, and its label above the first, in several rows: how many."""
    top = axes[0]
    start, end = top.get_xlim()
    shown = [event for event in events if start <= event.time <= end]
    for event in shown:
        for axis in axes:
            axis.axvline(event.time, color=EVENT_COLOR, linewidth=0.9, linestyle=(0, (3, 2)), alpha=0.8, zorder=1.5)
    per_inch = (end - start) / width
    free = [start] * LABEL_ROWS
    used = 0
    for event in shown:
        length = per_inch * CHARACTER * (len(event.label) + 1)
        leftwards = event.time + length > end
        left = event.time - length if leftwards else event.time
        row = next((number for number in range(LABEL_ROWS) if free[number] <= left), None)
        if row is None:
            continue  # the line stands; a label that covers another one would help nobody
        free[row] = left + length + 0.2 * per_inch
        used = max(used, row + 1)
        top.annotate(
            event.label, (event.time, 1.0), xycoords=("data", "axes fraction"),
            xytext=(-2 if leftwards else 2, 2 + 11 * row), textcoords="offset points", ha="right" if leftwards else "left", va="bottom",
            fontsize=8, color=EVENT_COLOR,
        )  # fmt: skip
    top.set_xlim(start, end)
    return used


def time_axis(axis: Axes, time: np.ndarray) -> None:
    """Label and limits of a time axis."""
    axis.set_xlabel("time [s]")
    if len(time) > 1 and time[-1] > time[0]:
        axis.set_xlim(time[0], time[-1])


def pad_limits(axis: Axes, least: float) -> None:
    """Widen the y limits to at least `least`, so that rounding noise does not fill an axes."""
    low, high = axis.get_ylim()
    if high - low < least:
        middle = 0.5 * (low + high)
        axis.set_ylim(middle - 0.5 * least, middle + 0.5 * least)
