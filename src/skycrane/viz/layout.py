"""Where the axes of a plot stand: margins computed from font sizes and from the characters of the tick labels.

matplotlib's own layout measures every text with the font, and draws each figure twice for it; here all is known beforehand but the
width of the tick labels, and those are digits.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import ScalarFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

TICK_SIZE = 9  # points
LABEL_SIZE = 10
TITLE_SIZE = 13
LEGEND_SIZE = 9
LINE = 1.2  # height of a line of text over the font's size
TICK = 7.0  # points, from the axes to a tick's label
PAD = 5.0  # points, around everything
GAP = 11.0  # points, between two axes
NARROW, MINUS, DIGIT = 0.33, 0.84, 0.64  # widths of characters over the font's size, DejaVu Sans
SUPERSCRIPT = str.maketrans("0123456789-\N{MINUS SIGN}", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")


class PlainFormatter(ScalarFormatter):
    """Tick labels without mathtext, which takes as long as the rest of a plot; powers of ten by superscript characters."""

    def __init__(self) -> None:
        super().__init__(useMathText=False)
        self.set_powerlimits((-3, 5))

    def get_offset(self) -> str:
        """The power of ten and the constant that all labels of the axis share."""
        text = re.sub(r"e([-\N{MINUS SIGN}]?\d+)", lambda m: "×10" + m[1].translate(SUPERSCRIPT), super().get_offset())
        return re.sub(r"^1×", "×", text)


def arrange(figure: Figure, *, legend_rows: int = 0, label_rows: int = 0) -> None:
    """Give the axes of a figure the room that labels, the title, ``label_rows`` of event labels and the legend leave."""
    axes = [axis for axis in figure.axes if axis.get_visible()]
    # Equal scales widen the limits by the shape of the axes: the labels are those of about the right shape.
    _place(figure, axes, [(40.0, False)] * len(axes), legend_rows, label_rows)
    for axis in axes:
        axis.apply_aspect()
    _place(figure, axes, [_labels(axis.yaxis) for axis in axes], legend_rows, label_rows)


def legend_height(rows: int) -> float:
    """Height [points] of a legend below all axes."""
    return rows * 1.5 * LEGEND_SIZE + 2 * PAD if rows else 0.0


def _place(figure: Figure, axes: list[Axes], labels: list[tuple[float, bool]], legend_rows: int, label_rows: int) -> None:
    width, height = (72.0 * inches for inches in figure.get_size_inches())
    grid: Any = axes[0].get_gridspec()
    left, between, below, above = PAD, 20.0, 0.0, 0.0
    lowest = highest = 0.0  # under the last row and over the first
    beside = [0.0] * grid.ncols  # where the labels of each column's axes stand
    for axis, (longest, power) in zip(axes, labels, strict=True):
        spec: Any = axis.get_subplotspec()
        own = (TICK + longest if longest else 0.0) + 0.4 * LABEL_SIZE
        beside[spec.colspan.start] = max(beside[spec.colspan.start], own)
        room = own + (LINE * LABEL_SIZE if axis.get_ylabel() else 0.0)
        if spec.colspan.start == 0:
            left = max(left, PAD + room)
        else:
            between = max(between, room)
        under = (TICK + LINE * TICK_SIZE if axis.xaxis.get_tick_params()["labelbottom"] else 0.0) + (
            LINE * LABEL_SIZE + 3 if axis.get_xlabel() else 0.0
        )
        over = LINE * float(axis.title.get_fontsize()) + 6 if axis.get_title() else 0.7 * TICK_SIZE if power else 0.0
        if spec.rowspan.stop < grid.nrows:
            below = max(below, under)
        else:
            lowest = max(lowest, under)
        if spec.rowspan.start > 0:
            above = max(above, over)
        else:
            highest = max(highest, over)
    if figure.get_supylabel():
        left += LINE * LABEL_SIZE + PAD
        figure.supylabel(figure.get_supylabel(), x=PAD / width, fontsize=LABEL_SIZE, ha="left")
    top = height - 2 * PAD - LINE * TITLE_SIZE - max(highest, 11.0 * label_rows + 3) - 3
    bottom = PAD + lowest + legend_height(legend_rows)
    right = width - PAD - 12.0  # half of the last label of the time axis
    column, row = GAP + between, GAP + below + above
    wide = (right - left - (grid.ncols - 1) * column) / grid.ncols
    high = (top - bottom - (grid.nrows - 1) * row) / grid.nrows
    figure.subplots_adjust(left / width, bottom / height, right / width, top / height, column / wide, row / high)
    for axis in axes:
        column_of: Any = axis.get_subplotspec()
        axis.yaxis.set_label_coords(-beside[column_of.colspan.start] / wide, 0.5)
        axis.xaxis.set_label_coords(0.5, -(TICK + LINE * TICK_SIZE + 3) / high)


def _labels(axis: Axis) -> tuple[float, bool]:
    """Width [points] of the longest tick label, 0 where there are none, and whether a power of ten stands above them."""
    if not axis.get_tick_params()["labelleft"]:
        return 0.0, False
    low, high = sorted(axis.get_view_interval())
    slack = 1e-6 * (high - low)
    ticks = [tick for tick in axis.get_majorticklocs() if low - slack <= tick <= high + slack]
    formatter = axis.get_major_formatter()
    width = max((TICK_SIZE * sum(map(_em, label)) for label in formatter.format_ticks(ticks)), default=0.0)
    return width, bool(formatter.get_offset())


def _em(letter: str) -> float:
    return NARROW if letter in ".,'" else MINUS if letter == "\N{MINUS SIGN}" else DIGIT
