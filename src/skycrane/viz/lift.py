"""Plots of a lift, as in figures 4, 5, 7 and 8 of arXiv 2305.09175: paths of all bodies, the load's motion, the cables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from skycrane.viz.dataset import axis_label, events_of, names_of, times_of, title_of, unit_of
from skycrane.viz.figures import colors_for, finish, new_figure, pad_limits, time_axis
from skycrane.viz.geometry import euler_zyx

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def _carriers(dataset: xr.Dataset) -> tuple[list[str], list[str]]:
    """Bodies with rotors, and bodies without."""
    rotors = {rotor.rpartition("/")[0] for rotor in names_of(dataset, "rotor_thrust", "rotor")}
    bodies = names_of(dataset, "position", "body")
    return [b for b in bodies if b in rotors], [b for b in bodies if b not in rotors]


def formation(dataset: xr.Dataset) -> Figure | None:
    """Places of vehicles (thin) and loads (thick) over time, axis by axis; only for several bodies with cables."""
    vehicles, loads = _carriers(dataset)
    if "cable_tension" not in dataset or not loads:
        return None
    time, unit = times_of(dataset), unit_of(dataset, "position", "m")
    figure, axes = new_figure(3, 1, height=7.0)
    names = [*vehicles, *loads]
    values = dataset["position"].sel(body=names).transpose("time", "body", "axis").values
    few = len(names) <= 10
    for row, text in enumerate(("x, east", "y, north", "z, up")):
        for k, (name, color) in enumerate(zip(names, colors_for(len(names)), strict=True)):
            thick = name in loads
            label = name if few or thick else None
            axes[row, 0].plot(time, values[:, k, row], color="black" if thick else color, linewidth=2.0 if thick else 1.1, label=label)
        axes[row, 0].set_ylabel(axis_label(text, unit))
        pad_limits(axes[row, 0], 0.1)
    time_axis(axes[-1, 0], time)
    finish(figure, f"Vehicles and load: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def load(dataset: xr.Dataset) -> Figure | None:
    """Angles, angular velocity and velocity of every carried body."""
    _, loads = _carriers(dataset)
    if "cable_tension" not in dataset or not loads:
        return None
    time = times_of(dataset)
    figure, axes = new_figure(3, 1, height=7.0)
    styles = ("-", "--", ":", "-.")
    for k, name in enumerate(loads[: len(styles)]):
        own = dataset.sel(body=name)
        angles = np.degrees(np.unwrap(euler_zyx(own["attitude"].transpose("time", "quaternion").values), axis=0))
        rates = own["angular_velocity"].transpose("time", "axis").values
        speeds = own["velocity"].transpose("time", "axis").values
        prefix = f"{name}: " if len(loads) > 1 else ""
        for row, values in enumerate((angles, rates, speeds)):
            for i, (text, color) in enumerate(zip(("x, roll", "y, pitch", "z, yaw"), colors_for(3), strict=True)):
                label = prefix + text if row == 0 else None
                axes[row, 0].plot(time, values[:, i], styles[k], color=color, linewidth=1.4, label=label)
    for row, (text, unit) in enumerate((("load angles", "deg"), ("load rates", "rad/s"), ("load velocity", "m/s"))):
        axes[row, 0].set_ylabel(axis_label(text, unit))
        pad_limits(axes[row, 0], 0.01)
    time_axis(axes[-1, 0], time)
    finish(figure, f"Load: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def stretch(dataset: xr.Dataset) -> Figure | None:
    """How much longer than unstretched every cable is, and how far it leans from the vertical."""
    if not {"cable_stretched_length", "cable_node_position"} <= set(dataset.data_vars):
        return None
    rest = (json.loads(dataset.attrs.get("scene") or "{}").get("cables") or {}).get("length")
    names = names_of(dataset, "cable_stretched_length", "cable")
    if rest is None or len(rest) != len(names):
        return None
    time = times_of(dataset)
    longer = 1e3 * (dataset["cable_stretched_length"].transpose("time", "cable").values - np.array(rest))
    nodes = dataset["cable_node_position"].transpose("time", "cable", "node", "axis").values
    figure, axes = new_figure(2, 1, height=5.2)
    few = len(names) <= 10
    for k, (name, color) in enumerate(zip(names, colors_for(len(names)), strict=True)):
        last = int(np.isfinite(nodes[0, k, :, 0]).sum()) - 1
        d = nodes[:, k, 0] - nodes[:, k, last]
        lean = np.degrees(np.arctan2(np.hypot(d[:, 0], d[:, 1]), d[:, 2]))
        for row, values in enumerate((longer[:, k], lean)):
            axes[row, 0].plot(time, values, color=color, linewidth=1.2, label=name if few else None)
    axes[0, 0].set_ylabel(axis_label("length beyond rest", "mm"))
    axes[1, 0].set_ylabel(axis_label("lean of the cable", "deg"))
    for axis in axes[:, 0]:
        pad_limits(axis, 0.01)
    time_axis(axes[-1, 0], time)
    finish(figure, f"Cables: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure
