"""The sea and tethers: plots of towing and floating, and what the viewer draws of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skycrane.viz.dataset import axis_label, events_of, names_of, times_of, title_of, unit_of
from skycrane.viz.figures import PALETTE, REFERENCE_COLOR, colors_for, finish, new_figure, pad_limits, time_axis
from skycrane.viz.geometry import Array

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

DASHED = (0, (5, 2))
LINES = 9  # of the patch of sea that the viewer draws, in each direction
TETHER_NODES = 9


def towing(dataset: xr.Dataset) -> Figure | None:
    """Surge speed, elevation and azimuth of every towing vehicle against their references, and the tension of the tethers."""
    if "surge_reference" not in dataset:
        return None
    time, names = times_of(dataset), names_of(dataset, "surge_reference", "towing")
    tensions = [str(key) for key in dataset.data_vars if str(key).startswith("tether_") and str(key).endswith("_tension")]
    figure, axes = new_figure(4 if tensions else 3, 1, height=9.5)
    quantities = (
        ("surge", "surge speed", "m/s", 1.0),
        ("elevation", "elevation", "deg", 180 / np.pi),
        ("azimuth", "azimuth", "deg", 180 / np.pi),
    )
    for row, (key, text, unit, scale) in enumerate(quantities):
        wanted, error = (dataset[f"{key}_{what}"].transpose("time", "towing").values * scale for what in ("reference", "error"))
        for index, (name, color) in enumerate(zip(names, colors_for(len(names)), strict=True)):
            axes[row, 0].plot(time, wanted[:, index] + error[:, index], color=color, linewidth=1.5, label=name)
            axes[row, 0].plot(
                time, wanted[:, index], color=REFERENCE_COLOR if len(names) == 1 else color, linewidth=1.1, linestyle=DASHED,
                label="reference" if len(names) == 1 else "reference (dashed)",
            )  # fmt: skip
        axes[row, 0].set_ylabel(axis_label(text, unit))
        pad_limits(axes[row, 0], 0.02)
    for key, color in zip(tensions, colors_for(len(tensions)), strict=True):
        values = dataset[key].values.reshape(len(time), -1)[:, 0]
        axes[3, 0].plot(time, values, color=color, linewidth=1.3, label=key.removeprefix("tether_").removesuffix("_tension"))
    if tensions:
        axes[3, 0].set_ylabel(axis_label("tension", "N"))
    time_axis(axes[-1, 0], time)
    finish(figure, f"Towing: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def floating(dataset: xr.Dataset) -> Figure | None:
    """Height of every buoy with the surface at its place, and how much of it is immersed."""
    keys = [str(key) for key in dataset.data_vars if str(key).startswith("buoy_") and str(key).endswith("_immersed_fraction")]
    if not keys:
        return None
    time = times_of(dataset)
    names = [key.removeprefix("buoy_").removesuffix("_immersed_fraction") for key in keys]
    figure, axes = new_figure(2, 1, height=6.2)
    for name, key, color in zip(names, keys, colors_for(len(names)), strict=True):
        axes[0, 0].plot(time, dataset["position"].sel(body=name, axis="z").values, color=color, linewidth=1.5, label=name)
        level = dataset[f"buoy_{name}_water_level"].values
        axes[0, 0].plot(time, level, color=PALETTE[5 % len(PALETTE)], linewidth=1.0, linestyle=DASHED, label="surface there (dashed)")
        axes[1, 0].plot(time, dataset[key].values, color=color, linewidth=1.3, label=name)
    axes[0, 0].set_ylabel(axis_label("height", unit_of(dataset, "position", "m")))
    axes[1, 0].set_ylabel("immersed part")
    pad_limits(axes[0, 0], 0.02)
    time_axis(axes[-1, 0], time)
    finish(figure, f"Floating: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


# -- the viewer -----------------------------------------------------------------------------------------------------------------------


def surface_height(water: dict[str, Any], time: float, x: Array, y: Array) -> Array:
    """World height of the surface (the scene's ``water``) above points."""
    level = np.full(np.shape(x), float(water.get("height", 0.0)))
    waves = water.get("waves")
    if not waves:
        return level
    A, w, k, eps, c, s = (np.asarray(waves[key])[:, None] for key in ("amplitude", "frequency", "number", "phase", "east", "north"))
    phase = w * time - k * (np.ravel(x) * c + np.ravel(y) * s) + eps
    return level + (A * np.sin(phase)).sum(0).reshape(np.shape(x))


def wave_cell(water: dict[str, Any], size: float) -> float:
    """Distance [m] of the lines that show the sea: some to the shortest strong wave, and not too fine for the scene."""
    waves = water.get("waves") or {}
    amplitude = np.asarray(waves.get("amplitude", []), dtype=float)
    if not amplitude.size:
        return size / 16.0
    strong = amplitude >= 0.3 * amplitude.max()
    shortest = 2 * np.pi / float(np.asarray(waves["number"])[strong].max())
    return float(np.clip(shortest / 8.0, 0.5, 4.0))


def sea_lines(water: dict[str, Any], time: float, centre: Array, cell: float) -> Array:
    """Line segments (n, 2, 3) of a square of the surface around ``centre`` (2,), on a grid that is fixed in the world."""
    middle = np.round(np.asarray(centre) / cell) * cell
    steps = (np.arange(LINES) - LINES // 2) * cell
    X, Y = np.meshgrid(middle[0] + steps, middle[1] + steps, indexing="ij")
    points = np.stack([X, Y, surface_height(water, time, X, Y)], -1)
    along = np.stack([points[:-1], points[1:]], -2).reshape(-1, 2, 3)
    across = np.stack([points[:, :-1], points[:, 1:]], -2).reshape(-1, 2, 3)
    return np.concatenate([along, across])


def tether_nodes(tethers: list[dict[str, Any]], bodies: tuple[str, ...], position_W: Array, attitude_WB: Array) -> Array:
    """Nodes (F, tethers, TETHER_NODES, 3): straight where taut, hanging in a parabola of about the tether's length where slack."""
    out = np.zeros((len(position_W), len(tethers), TETHER_NODES, 3))
    s = np.linspace(0.0, 1.0, TETHER_NODES)
    for column, tether in enumerate(tethers):
        ends = []
        for body, point in zip(tether["bodies"], tether["points"], strict=True):
            index = bodies.index(body)
            ends.append(position_W[:, index] + _rotated(attitude_WB[:, index], np.asarray(point, dtype=float)))
        d = ends[1] - ends[0]
        far = np.maximum(np.linalg.norm(d, axis=-1), 1e-6)
        sag = far * np.sqrt(3 / 8 * np.clip(tether["length"] / far - 1.0, 0.0, 4.0))
        line = ends[0][:, None] + s[None, :, None] * d[:, None]
        line[:, :, 2] -= 4 * s * (1 - s) * sag[:, None]
        out[:, column] = line
    return out


def _rotated(q: Array, v: Array) -> Array:
    """A vector turned by unit quaternions (F, 4)."""
    w, u = q[:, :1], q[:, 1:]
    cross = np.cross(u, np.broadcast_to(v, u.shape))
    return v + 2.0 * (w * cross + np.cross(u, cross))
