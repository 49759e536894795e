"""Pictures of a sweep: parallel coordinates, response surfaces, sensitivities, and where points failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skycrane.viz.figures import PALETTE, new_figure, save_figure

from .block import FINISHED
from .space import Choice, Dimension

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAILED_COLOR = "#D55E00"
PREFERRED = ("position_error_rms_m", "speed_max_m_s", "duration_s")
MOST_LINES = 2000


def save_sweep_plots(
    records: Sequence[dict[str, Any]], dimensions: Sequence[Dimension], found: dict[str, Any], folder: Path, metric: str | None = None
) -> list[Path]:
    """Write the plots that the sweep has data for; ``metric`` is coloured, by default the position error or the first that varies."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    name = metric or _metric_of(found)
    if name is not None:
        inputs = _most_influential(found, name, dimensions)
        pictures = {
            "parallel_coordinates": parallel_coordinates(records, dimensions, name),
            "sensitivity": sensitivity(found, name),
            "response": response(records, inputs[:2], name),
        }
        safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        files += [save_figure(figure, folder / f"{kind}_{safe}.png") for kind, figure in pictures.items() if figure is not None]
    else:
        inputs = list(dimensions)
    if any(r["status"] != FINISHED for r in records):
        files.append(save_figure(failure_map(records, inputs[:2]), folder / "failures.png"))
    return files


def _metric_of(found: dict[str, Any]) -> str | None:
    varying = [name for name, spread in found["metrics"].items() if spread["max"] > spread["min"]]
    return next((name for name in (*PREFERRED, *varying) if name in varying), None)


def _most_influential(found: dict[str, Any], metric: str, dimensions: Sequence[Dimension]) -> list[Dimension]:
    shares = found["sensitivity"].get(metric, {})
    return sorted(dimensions, key=lambda d: -shares.get(d.key, {}).get("first_order", 0.0))


def _positions(records: Sequence[dict[str, Any]], dimension: Dimension) -> np.ndarray:
    """Where values lie on an axis: numbers as they are, anything else by its place in the list."""
    values = [r["values"][dimension.key] for r in records]
    if isinstance(dimension, Choice):
        return np.array([dimension.values.index(v) for v in values], dtype=float)
    return np.array(values, dtype=float)


def _dress(axis: Axes, which: str, dimension: Dimension) -> None:
    getattr(axis, f"set_{which}label")(dimension.key)
    if isinstance(dimension, Choice):
        getattr(axis, f"set_{which}ticks")(range(len(dimension.values)), [str(v)[:16] for v in dimension.values])
    elif dimension.log:
        getattr(axis, f"set_{which}scale")("log")


def parallel_coordinates(records: Sequence[dict[str, Any]], dimensions: Sequence[Dimension], metric: str) -> Figure:
    """A line for every point across all keys, coloured by the metric; points that failed are drawn dashed."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    records = records[:: -(-len(records) // MOST_LINES)]
    columns = []
    for dimension in dimensions:
        x = _positions(records, dimension)
        ends = (0, len(dimension.values) - 1) if isinstance(dimension, Choice) else (dimension.low, dimension.high)
        if not isinstance(dimension, Choice) and dimension.log:
            x, ends = np.log(x), tuple(np.log(ends))
        columns.append((x - ends[0]) / (ends[1] - ends[0]))
    y = np.array([r["metrics"].get(metric, np.nan) if r["status"] == FINISHED else np.nan for r in records], dtype=float)
    there = np.isfinite(y)
    scale = Normalize(y[there].min(), y[there].max())
    columns.append(np.where(there, scale(y), np.nan))
    lines = np.stack([np.stack(np.broadcast_arrays(np.arange(len(columns)), row), -1) for row in np.stack(columns, -1)])
    figure, axes = new_figure(1, 1, height=5.0, constrained=True)
    axis = axes[0, 0]
    axis.add_collection(LineCollection(list(lines[there]), colors=colormaps["viridis"](scale(y[there])), linewidths=0.8, alpha=0.7))
    axis.add_collection(LineCollection(list(lines[~there, :-1]), colors=FAILED_COLOR, linewidths=0.7, linestyles="dashed", alpha=0.7))
    axis.set_xlim(-0.15, len(columns) - 0.85)
    axis.set_ylim(-0.06, 1.06)
    axis.set_yticks([])
    axis.set_xticks(range(len(columns)), [*(d.key for d in dimensions), metric])
    for place, dimension in enumerate(dimensions):
        ends = (dimension.values[0], dimension.values[-1]) if isinstance(dimension, Choice) else (dimension.low, dimension.high)
        for end, height, side in zip(ends, (-0.02, 1.02), ("top", "bottom"), strict=True):
            axis.text(place, height, f"{end:.4g}" if isinstance(end, float) else str(end)[:16], ha="center", va=side, fontsize=8)
    figure.colorbar(ScalarMappable(scale, "viridis"), ax=axis, label=metric)
    failed = int((~there).sum())
    axis.set_title(f"{len(records)} points" + (f", {failed} failed (dashed)" if failed else ""), fontsize=10)
    return figure


def response(records: Sequence[dict[str, Any]], inputs: Sequence[Dimension], metric: str) -> Figure | None:
    """The metric over the two keys that matter most to it, or over the only one."""
    from matplotlib.tri import Triangulation

    good = [r for r in records if r["status"] == FINISHED and metric in r["metrics"]]
    if len(good) < 4:
        return None
    y = np.array([r["metrics"][metric] for r in good])
    figure, axes = new_figure(1, 1, height=5.5, constrained=True)
    axis = axes[0, 0]
    x = _positions(good, inputs[0])
    _dress(axis, "x", inputs[0])
    if len(inputs) == 1:
        axis.plot(x, y, ".", color=PALETTE[0])
        axis.set_ylabel(metric)
        return figure
    z = _positions(good, inputs[1])
    _dress(axis, "y", inputs[1])
    # Triangles between the points as the axes show them; points on one line have none.
    shown = [np.log(v) if not isinstance(d, Choice) and d.log else v for v, d in ((x, inputs[0]), (z, inputs[1]))]
    scaled = [(v - v.min()) / (np.ptp(v) or 1.0) for v in shown]
    try:
        triangles = Triangulation(*scaled).triangles
        axis.tricontourf(Triangulation(x, z, triangles), y, levels=16, cmap="viridis", alpha=0.75)
    except (RuntimeError, ValueError):
        pass
    dots = axis.scatter(x, z, c=y, s=14, cmap="viridis", edgecolors="white", linewidths=0.4)
    figure.colorbar(dots, ax=axis, label=metric)
    return figure


def sensitivity(found: dict[str, Any], metric: str) -> Figure | None:
    """Bars of how much each key matters to the metric."""
    exact = found.get("sobol_indices", {}).get(metric)
    shares = exact or found["sensitivity"].get(metric)
    if not shares:
        return None
    keys = sorted(shares, key=lambda key: shares[key]["first_order"])
    figure, axes = new_figure(1, 1, height=1.6 + 0.4 * len(keys), constrained=True)
    axis, place = axes[0, 0], np.arange(len(keys))
    if exact:
        axis.barh(place + 0.2, [shares[k]["total_order"] for k in keys], 0.36, color=PALETTE[1], label="total index",
                  xerr=[shares[k]["total_order_std"] for k in keys])  # fmt: skip
    errors = {"xerr": [shares[k]["first_order_std"] for k in keys]} if exact else {}
    width = 0.36 if exact else 0.6
    axis.barh(
        place - (0.2 if exact else 0.0), [shares[k]["first_order"] for k in keys], width, color=PALETTE[0], label="first order", **errors
    )
    axis.set_yticks(place, keys)
    axis.set_xlabel(f"share of the variance of {metric}")
    axis.legend(fontsize=8, frameon=False)
    return figure


def failure_map(records: Sequence[dict[str, Any]], inputs: Sequence[Dimension]) -> Figure:
    """Which points failed, over the two keys that matter most."""
    figure, axes = new_figure(1, 1, height=5.5, constrained=True)
    axis = axes[0, 0]
    statuses = sorted({r["status"] for r in records}, key=lambda s: (s != FINISHED, s))
    for status, color, marker in zip(statuses, (PALETTE[2], *PALETTE[1:2], *PALETTE[3:]), "osX^Dv", strict=False):
        part = [r for r in records if r["status"] == status]
        x = _positions(part, inputs[0])
        y = _positions(part, inputs[1]) if len(inputs) > 1 else np.zeros(len(part))
        axis.scatter(x, y, s=22, color=color, marker=marker, label=f"{status} ({len(part)})", alpha=0.8, linewidths=0)
    _dress(axis, "x", inputs[0])
    if len(inputs) > 1:
        _dress(axis, "y", inputs[1])
    else:
        axis.set_yticks([])
    figure.legend(loc="outside upper center", ncols=len(statuses), fontsize=8, frameon=False)
    return figure
