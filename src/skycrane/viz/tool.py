"""End-effectors: how well each is where it should be, what it presses with, and the wall that it touches.

The scene names the tips (``tools``: body to place in body axes, m) and the wall (``surface``: ``point`` and ``normal``, world axes;
``press`` where the force along the normal is controlled, and not the place).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skycrane.viz.dataset import axis_label, events_of, names_of, scene_of, times_of, title_of
from skycrane.viz.figures import colors_for, finish, new_figure, time_axis
from skycrane.viz.geometry import Array, z_axis_to

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

WALL = (120, 130, 145)


def end_effector(dataset: xr.Dataset) -> Figure | None:
    """Distance of each end-effector from its place, the error of its attitude, and the force on the surface."""
    scene = scene_of(dataset)
    tools: dict[str, list[float]] = scene.get("tools") or {}
    references = {"reference_position", "reference_attitude"} <= set(dataset.data_vars)
    names = [name for name in names_of(dataset, "reference_position", "tracked") if name in tools] if references else []
    force = dataset["surface_normal_force"].values if "surface_normal_force" in dataset and tools else None
    if not names and force is None:
        return None
    time, rows = times_of(dataset), 2 * bool(names) + (force is not None)
    figure, axes = new_figure(rows, 1, height=1.6 + 2.0 * rows)
    for name, color in zip(names, colors_for(len(names)), strict=True):
        away, angle = _errors(dataset, name, np.array(tools[name], float), scene.get("surface"))
        axes[0, 0].plot(time, 1e3 * away, color=color, linewidth=1.5, label=name)
        axes[1, 0].plot(time, np.degrees(angle), color=color, linewidth=1.5, label=name)
    if names:
        pressed = (scene.get("surface") or {}).get("press")
        axes[0, 0].set_ylabel(axis_label("off along the wall" if pressed else "off its place", "mm"))
        axes[1, 0].set_ylabel(axis_label("attitude error", "°"))
    if force is not None:
        for column, (name, color) in enumerate(zip(tools, colors_for(len(tools)), strict=True)):
            axes[rows - 1, 0].plot(time, force[:, column], color=color, linewidth=1.5, label=name)
        axes[rows - 1, 0].set_ylabel(axis_label("force on the wall", "N"))
    for axis in axes[:, 0]:
        axis.set_ylim(bottom=0.0)
    time_axis(axes[-1, 0], time)
    finish(figure, f"End-effector: {title_of(dataset)}", axes[:, 0], events=events_of(dataset))
    return figure


def _errors(dataset: xr.Dataset, name: str, tip: Array, surface: dict[str, Any] | None) -> tuple[Array, Array]:
    """Distance (T,) m of a tip from its place, along the wall only where it presses; error (T,) rad of its attitude."""
    from scipy.spatial.transform import Rotation

    at, q = (dataset[v].sel(body=name).values for v in ("position", "attitude"))
    goal, wanted = (dataset[f"reference_{v}"].sel(tracked=name).values for v in ("position", "attitude"))
    known = np.isfinite(np.concatenate([at, q, goal, wanted], -1)).all(-1)
    away, angle = np.full(len(at), np.nan), np.full(len(at), np.nan)
    if known.any():
        R, W = (Rotation.from_quat(v[known], scalar_first=True) for v in (q, wanted))
        apart = at[known] + R.apply(tip) - goal[known] - W.apply(tip)
        if surface is not None and surface.get("press"):
            normal = np.array(surface["normal"], float)
            apart = apart - (apart @ normal)[:, None] * normal
        away[known], angle[known] = np.linalg.norm(apart, axis=-1), (R * W.inv()).magnitude()
    return away, angle


def add_wall(scene: Any, surface: dict[str, Any], path: Array, size: float) -> None:
    """Draw a wall where the motion (..., 3) comes near it: a pane that reaches beyond the motion."""
    point, normal = np.array(surface["point"], float), np.array(surface["normal"], float)
    middle = np.nanmean(path.reshape(-1, 3), axis=0)
    middle = middle + ((point - middle) @ normal - 0.006 * size) * normal
    edge = 1.3 * size
    scene.add_box(
        "/surface", dimensions=(edge, edge, 0.01 * size), position=tuple(middle), wxyz=tuple(z_axis_to(normal)), color=WALL,
        opacity=0.35, cast_shadow=False, receive_shadow=False,
    )  # fmt: skip
