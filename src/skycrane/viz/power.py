"""Plots of what a flight costs and of the air that it meets: speed, power, battery, and wind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skycrane.viz.dataset import axis_label, events_of, names_of, times_of, title_of, unit_of
from skycrane.viz.figures import PALETTE, colors_for, finish, new_figure, pad_limits, time_axis

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def power(dataset: xr.Dataset) -> Figure | None:
    """Speed of each body that has rotors, power at their shafts, and voltage and charge of batteries where there are some."""
    if not {"rotor_shaft_power", "velocity"} <= set(dataset.data_vars):
        return None
    time, bodies = times_of(dataset), names_of(dataset, "velocity", "body")
    rotors = names_of(dataset, "rotor_shaft_power", "rotor")
    names = [body for body in bodies if any(rotor.rpartition("/")[0] == body for rotor in rotors)]
    if not names:
        return None
    shaft = dataset["rotor_shaft_power"].transpose("time", "rotor").values
    speed = np.linalg.norm(dataset["velocity"].sel(body=names).transpose("time", "body", "axis").values, axis=-1)
    batteries = sorted(str(name) for name in dataset.data_vars if str(name).endswith(("_battery_voltage", "_state_of_charge")))
    rows = 2 + len({name.endswith("_state_of_charge") for name in batteries})
    figure, axes = new_figure(rows, 1, height=1.6 + 1.9 * rows)
    colors = dict(zip(names, colors_for(len(names)), strict=True))
    for index, name in enumerate(names):
        own = [k for k, rotor in enumerate(rotors) if rotor.rpartition("/")[0] == name]
        axes[0, 0].plot(time, speed[:, index], color=colors[name], linewidth=1.5, label=name)
        axes[1, 0].plot(time, np.nansum(shaft[:, own], axis=1), color=colors[name], linewidth=1.5, label=name)
    axes[0, 0].set_ylabel(axis_label("speed", unit_of(dataset, "velocity", "m/s")))
    axes[1, 0].set_ylabel(axis_label("shaft power", "W"))
    row = 2
    for ending, text, unit in (("_battery_voltage", "battery", "V"), ("_state_of_charge", "charge", "")):
        chosen = [name for name in batteries if name.endswith(ending)]
        for name in chosen:
            values = dataset[name].transpose("time", "body")
            for index, body in enumerate(values["body"].values):
                if np.any(np.isfinite(values.values[:, index])):
                    axes[row, 0].plot(
                        time, values.values[:, index], color=colors.get(str(body), PALETTE[0]), linewidth=1.5, label=str(body)
                    )
        if chosen:
            axes[row, 0].set_ylabel(axis_label(text, unit) if unit else text)
            row += 1
    for axis in axes[:, 0]:
        pad_limits(axis, 1e-3)
    time_axis(axes[-1, 0], time)
    finish(figure, f"Speed and power: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def wind(dataset: xr.Dataset) -> Figure | None:
    """Velocity of the air at each body, axis by axis."""
    if "wind" not in dataset:
        return None
    time, unit, names = times_of(dataset), unit_of(dataset, "wind", "m/s"), names_of(dataset, "wind", "body")
    values = dataset["wind"].transpose("time", "body", "axis").values
    figure, axes = new_figure(3, 1, height=6.6)
    for row, text in enumerate(("wind x, east", "wind y, north", "wind z, up")):
        for index, (name, color) in enumerate(zip(names, colors_for(len(names)), strict=True)):
            axes[row, 0].plot(time, values[:, index, row], color=color, linewidth=1.3, label=f"at {name}")
        axes[row, 0].set_ylabel(axis_label(text, unit))
        pad_limits(axes[row, 0], 0.1)
    time_axis(axes[-1, 0], time)
    finish(figure, f"Wind: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure
