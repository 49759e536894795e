"""PNG plots of a run: one function per plot, and the table `PLOTS` that `save_plots` walks.

Each function takes the data set and returns a matplotlib `Figure`, or None where the data set lacks what it shows.
A new system adds its plots to the table and to nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skycrane.viz.dataset import axis_label, events_of, names_of, open_result, times_of, title_of, unit_of
from skycrane.viz.figures import (
    EVENT_COLOR,
    PALETTE,
    REFERENCE_COLOR,
    colors_for,
    finish,
    new_figure,
    pad_limits,
    save_figure,
    time_axis,
)
from skycrane.viz.geometry import euler_zyx
from skycrane.viz.lift import formation, load, stretch
from skycrane.viz.power import power, wind
from skycrane.viz.sea import floating, towing
from skycrane.viz.tool import end_effector

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHED = (0, (5, 2))


def tracking(dataset: xr.Dataset) -> Figure | None:
    """Position of each tracked body against its reference, axis by axis, and the norm of the error."""
    if not {"position", "reference_position"} <= set(dataset.data_vars):
        return None
    names = [name for name in names_of(dataset, "reference_position", "tracked") if name in dataset["body"].values]
    if not names:
        return None
    time, unit = times_of(dataset), unit_of(dataset, "position", "m")
    position = dataset["position"].sel(body=names).transpose("time", "body", "axis").values
    reference = dataset["reference_position"].sel(tracked=names).transpose("time", "tracked", "axis").values
    figure, axes = new_figure(4, 1, height=9.0)
    for index, (name, color) in enumerate(zip(names, colors_for(len(names)), strict=True)):
        for row in range(3):
            axes[row, 0].plot(time, position[:, index, row], color=color, linewidth=1.5, label=name)
            if len(names) <= len(PALETTE):  # beyond that, twice the lines would hide more than they show
                axes[row, 0].plot(
                    time, reference[:, index, row], color=REFERENCE_COLOR if len(names) == 1 else color, linewidth=1.1,
                    linestyle=DASHED, alpha=0.9, label="reference" if len(names) == 1 else "reference (dashed)",
                )  # fmt: skip
        error = np.linalg.norm(position[:, index] - reference[:, index], axis=-1)
        axes[3, 0].plot(time, error, color=color, linewidth=1.5, label=name)
    for row, text in enumerate(("x, east", "y, north", "z, up", "error norm")):
        axes[row, 0].set_ylabel(axis_label(text, unit))
        pad_limits(axes[row, 0], 0.02)  # rounding errors are not to fill a panel
    axes[3, 0].set_ylim(bottom=0.0)
    time_axis(axes[3, 0], time)
    finish(figure, f"Tracking: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def path(dataset: xr.Dataset) -> Figure | None:
    """Path of every body from above and from the side, with equal scales; the reference is dashed."""
    if "position" not in dataset:
        return None
    names, unit = names_of(dataset, "position", "body"), unit_of(dataset, "position", "m")
    position = dataset["position"].transpose("time", "body", "axis").values
    spans = np.nanmax(position, axis=(0, 1)) - np.nanmin(position, axis=(0, 1))
    side = 0 if spans[0] >= spans[1] else 1
    # Whichever way the motion is long, the two views stand so that each gets room.
    stacked = spans[side] > 2.0 * max(spans[2], spans[1] if side == 0 else 0.0)
    figure, axes = new_figure(*((2, 1) if stacked else (1, 2)), height=7.0 if stacked else 5.8, share="none")
    planes = [(axes.flat[0], 0, 1, "from above"), (axes.flat[1], side, 2, f"from the {('south', 'east')[side]}")]
    for axis, across, along, view in planes:
        for index, (name, color) in enumerate(zip(names, colors_for(len(names)), strict=True)):
            line = position[:, index]
            axis.plot(line[:, across], line[:, along], color=color, linewidth=1.5, label=name)
            axis.plot(*line[0, [across, along]], "o", color=color, markersize=5)
            axis.plot(*_last_finite(line)[[across, along]], "s", color=color, markersize=5)
        if "reference_position" in dataset:
            reference = dataset["reference_position"].transpose("tracked", "time", "axis").values
            for line in reference:
                still = np.nanmax(np.ptp(line, axis=0)) < 1e-9  # a line of no length would not show
                axis.plot(
                    line[:1, across] if still else line[:, across],
                    line[:1, along] if still else line[:, along],
                    color=REFERENCE_COLOR,
                    linewidth=0.9,
                    linestyle=DASHED,
                    marker="+" if still else None,
                    markersize=9,
                    label="reference",
                )
        axis.plot([], [], "o", color="#777777", markersize=5, label="start")
        axis.plot([], [], "s", color="#777777", markersize=5, label="end")
        axis.margins(0.08)
        axis.set_aspect("equal", adjustable="datalim")
        axis.set_xlabel(axis_label(("x, east", "y, north")[across], unit))
        axis.set_ylabel(axis_label(("x, east", "y, north", "z, up")[along], unit))
        axis.set_title(view, fontsize=10)
    finish(figure, f"Path: {title_of(dataset)}")
    return figure


def attitude(dataset: xr.Dataset) -> Figure | None:
    """Roll, pitch and yaw (z-y-x) in degrees, and body rates, of every body."""
    if "attitude" not in dataset:
        return None
    names, time = names_of(dataset, "attitude", "body"), times_of(dataset)
    angles = _degrees(dataset["attitude"].transpose("time", "body", "quaternion").values)
    with_rates = "angular_velocity" in dataset
    figure, axes = new_figure(3, 2 if with_rates else 1, height=7.0)
    colors = dict(zip(names, colors_for(len(names)), strict=True))
    for row, text in enumerate(("roll", "pitch", "yaw")):
        for index, name in enumerate(names):
            axes[row, 0].plot(time, angles[:, index, row], color=colors[name], linewidth=1.3, label=name)
        axes[row, 0].set_ylabel(f"{text} [°]")
        if "reference_attitude" in dataset:
            reference = _degrees(dataset["reference_attitude"].transpose("time", "tracked", "quaternion").values)
            for index in range(reference.shape[1]):
                axes[row, 0].plot(
                    time, reference[:, index, row], color=REFERENCE_COLOR, linewidth=0.9, linestyle=DASHED,
                    label="reference",
                )  # fmt: skip
        pad_limits(axes[row, 0], 0.1)
        if with_rates:
            rates = dataset["angular_velocity"].transpose("time", "body", "axis").values
            for index, name in enumerate(names):
                axes[row, 1].plot(time, rates[:, index, row], color=colors[name], linewidth=1.3, label=name)
            axes[row, 1].set_ylabel(axis_label(f"rate about {'xyz'[row]}", unit_of(dataset, "angular_velocity", "rad/s")))
            pad_limits(axes[row, 1], 1e-3)
    for axis in axes[2]:
        time_axis(axis, time)
    finish(figure, f"Attitude: {title_of(dataset)}", *axes.T, events=events_of(dataset))
    return figure


def rotors(dataset: xr.Dataset) -> Figure | None:
    """Speed of each rotor with its command, and thrust; one panel per vehicle where there are many rotors."""
    kinds = [name for name in ("rotor_speed", "rotor_thrust") if name in dataset]
    if not kinds:
        return None
    groups: dict[str, list[int]] = {}
    names = names_of(dataset, kinds[0], "rotor")
    for index, name in enumerate(names):
        groups.setdefault(name.rpartition("/")[0], []).append(index)
    if len(groups) > 1 and len(names) > len(PALETTE) + 1:
        return _rotor_panels(dataset, kinds[0], groups)
    time = times_of(dataset)
    figure, axes = new_figure(len(kinds), 1, height=1.2 + 3.2 * len(kinds))
    for axis, kind in zip(axes[:, 0], kinds, strict=True):
        _rotor_lines(axis, dataset, kind, list(range(len(names))), names)
        axis.set_ylabel(axis_label(kind.replace("_", " "), unit_of(dataset, kind)))
    time_axis(axes[-1, 0], time)
    finish(figure, f"Rotors: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def energy(dataset: xr.Dataset) -> Figure | None:
    """Total energy, work of the non-conservative forces, and what is left between them, which should be nothing."""
    if "energy" not in dataset:
        return None
    time, unit = times_of(dataset), unit_of(dataset, "energy", "J")
    stored = dataset["energy"].values
    with_work = "work" in dataset
    figure, axes = new_figure(2 if with_work else 1, 1, height=6.2 if with_work else 3.6)
    axes[0, 0].plot(time, stored - stored[0], color=PALETTE[0], linewidth=1.6, label="change of total energy")
    axes[0, 0].set_ylabel(axis_label("energy", unit))
    if with_work:
        work = dataset["work"].values
        axes[0, 0].plot(
            time, work - work[0], color=PALETTE[1], linewidth=1.3, linestyle=DASHED,
            label="work of non-conservative forces",
        )  # fmt: skip
        drift = (stored - stored[0]) - (work - work[0])
        axes[1, 0].plot(time, drift, color=PALETTE[3], linewidth=1.3, label="drift: energy change less work")
        axes[1, 0].set_ylabel(axis_label("drift", unit))
    time_axis(axes[-1, 0], time)
    finish(figure, f"Energy: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def tension(dataset: xr.Dataset) -> Figure | None:
    """Tension of each cable: the line is the largest over its segments, the band reaches down to the smallest."""
    if "cable_tension" not in dataset:
        return None
    time, unit = times_of(dataset), unit_of(dataset, "cable_tension", "N")
    names = names_of(dataset, "cable_tension", "cable")
    values = dataset["cable_tension"].transpose("time", "cable", "segment").values
    figure, axes = new_figure(1, 1, height=4.2)
    for index, (name, color) in enumerate(zip(names, colors_for(len(names)), strict=True)):
        present = values[:, index][:, np.any(np.isfinite(values[:, index]), axis=0)]
        if present.shape[1] == 0:
            continue
        low, high = np.min(present, axis=1), np.max(present, axis=1)
        axes[0, 0].fill_between(time, low, high, color=color, alpha=0.25, linewidth=0.0)
        axes[0, 0].plot(time, high, color=color, linewidth=1.4, label=f"{name}: largest of its segments")
    axes[0, 0].set_ylabel(axis_label("tension", unit))
    axes[0, 0].set_ylim(bottom=min(0.0, axes[0, 0].get_ylim()[0]))
    time_axis(axes[0, 0], time)
    finish(figure, f"Cable tension: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


PLOTS: Mapping[str, Callable[[xr.Dataset], Figure | None]] = {
    "tracking.png": tracking,
    "end_effector.png": end_effector,
    "path.png": path,
    "attitude.png": attitude,
    "rotors.png": rotors,
    "energy.png": energy,
    "power.png": power,
    "wind.png": wind,
    "tension.png": tension,
    "formation.png": formation,
    "load.png": load,
    "cables.png": stretch,
    "towing.png": towing,
    "floating.png": floating,
}


def save_plots(dataset: xr.Dataset | str | Path, directory: str | Path) -> list[Path]:
    """Write every plot of `PLOTS` that the data set has data for into `directory`, and return their paths."""
    dataset, directory = open_result(dataset), Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    figures = ((name, plot(dataset)) for name, plot in PLOTS.items())
    return [save_figure(figure, directory / name) for name, figure in figures if figure is not None]


def plot_variable(dataset: xr.Dataset | str | Path, name: str) -> Figure:
    """Any variable of the run over time, with a line per combination of its other coordinates."""
    dataset = open_result(dataset)
    over_time = sorted(str(key) for key, values in dataset.data_vars.items() if "time" in values.dims)
    if name not in over_time:
        raise ValueError(f"no variable {name!r} over time in this result; it has: {', '.join(over_time)}")
    values = dataset[name].transpose("time", ...)
    lines = values.values.reshape(len(values["time"]), -1)
    labels = [""]
    for dimension in values.dims[1:]:
        labels = [f"{label} {entry}".strip() for label in labels for entry in values[dimension].values]
    figure, axes = new_figure(1, 1, height=4.6)
    time = times_of(dataset)
    for line, label, color in zip(lines.T, labels, colors_for(lines.shape[1]), strict=True):
        if np.any(np.isfinite(line)):
            axes[0, 0].plot(time, line, color=color, linewidth=1.3, label=label or name)
    long_name = str(values.attrs.get("long_name", name.replace("_", " ")))
    axes[0, 0].set_ylabel(axis_label(long_name, unit_of(dataset, name)))
    time_axis(axes[0, 0], time)
    finish(figure, f"{name}: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def _rotor_lines(axis: Axes, dataset: xr.Dataset, kind: str, indices: list[int], labels: tuple[str, ...]) -> None:
    time, values = times_of(dataset), dataset[kind].transpose("time", "rotor").values
    command = f"{kind}_command"
    for index, label, color in zip(indices, labels, colors_for(len(indices)), strict=True):
        axis.plot(time, values[:, index], color=color, linewidth=1.3, label=label)
        if command in dataset:
            line = dataset[command].transpose("time", "rotor").values[:, index]
            axis.plot(time, line, color=color, linewidth=0.9, linestyle=DASHED, alpha=0.8, label="command (dashed)")


def _rotor_panels(dataset: xr.Dataset, kind: str, groups: dict[str, list[int]]) -> Figure:
    """One small panel per vehicle, all with the same scales."""
    columns = min(4, int(np.ceil(np.sqrt(len(groups)))))
    rows = -(-len(groups) // columns)
    figure, axes = new_figure(rows, columns, height=1.4 + 1.7 * rows)
    axes[0, 0].sharey(axes[0, 0])
    for axis in axes.flat[1:]:
        axis.sharey(axes[0, 0])
    for number, (axis, (vehicle, indices)) in enumerate(zip(axes.flat, groups.items(), strict=False)):
        labels = tuple(f"rotor {position + 1}" for position in range(len(indices)))
        _rotor_lines(axis, dataset, kind, indices, labels)
        axis.set_title(vehicle, fontsize=9)
        axis.tick_params(labelleft=number % columns == 0)
    for axis in axes.flat[len(groups) :]:
        axis.set_visible(False)
    time_axis(axes[-1, 0], times_of(dataset))
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.supylabel(axis_label(kind.replace("_", " "), unit_of(dataset, kind)), fontsize=10)
    # The titles stand where the labels of events would: the events are named in the legend.
    events = events_of(dataset)
    for number, axis in enumerate(axes.flat[: len(groups)]):
        for event in events:
            label = f"{event.time:g} s: {event.label}" if number == 0 else None
            axis.axvline(event.time, color=EVENT_COLOR, linewidth=0.8, linestyle=(0, (3, 2)), alpha=0.8, label=label)
    finish(figure, f"Rotors: {title_of(dataset)}")
    return figure


def _degrees(q: np.ndarray) -> np.ndarray:
    """Roll, pitch, yaw (..., 3) in degrees within +-180, broken by NaN where an angle wraps, time being axis 0."""
    angles = np.degrees(euler_zyx(q))
    jumps = np.abs(np.diff(angles, axis=0)) > 180.0
    angles[1:][jumps] = np.nan
    return angles


def _last_finite(line: np.ndarray) -> np.ndarray:
    """Last row (3,) of a path (T, 3) without NaN; the first row if there is none."""
    finite = np.flatnonzero(np.all(np.isfinite(line), axis=-1))
    return line[finite[-1] if finite.size else 0]
