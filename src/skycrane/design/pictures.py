"""Pictures of a design: the layout with its wakes in three dimensions, and the Pareto plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skycrane.design.problem import Problem

COLORS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e", "#9498a0")


def _surface(problem: Problem, r: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, ...]:
    """Coordinates (m, k) of the surface of a wake."""
    table = problem.profile.sampled(40)
    table = np.concatenate([[[table[0, 0], 0.0]], table, [[table[-1, 0], 0.0]]])
    helper = np.array([1.0, 0.0, 0.0]) if abs(F[0]) < 0.6 else np.array([0.0, 1.0, 0.0])
    a = np.cross(F, helper)
    a /= np.linalg.norm(a)
    b = np.cross(F, a)
    angle = np.linspace(0, 2 * np.pi, 33)
    ring = np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b
    p = r - table[:, 0, None, None] * F + table[:, 1, None, None] * ring
    return tuple(p[..., k] for k in range(3))


def layout_picture(problem: Problem, position: np.ndarray, direction: np.ndarray, tip: np.ndarray, file: Path) -> None:
    """The layout from two sides, wakes in colour, rotor disks, arms and end-effector."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.5), layout="constrained")
    for panel, (elevation, azimuth) in enumerate(((22, 35), (12, 125))):
        axes: Any = figure.add_subplot(1, 2, panel + 1, projection="3d")
        for k, (r, F) in enumerate(zip(position, direction, strict=True)):
            color = COLORS[k % len(COLORS)]
            axes.plot_surface(*_surface(problem, r, F), color=color, alpha=0.28, linewidth=0, shade=True)
            axes.plot(*np.stack([np.zeros(3), r]).T, color="#444", linewidth=1.5)
            axes.text(*(r + 0.16 * F), str(k + 1), color=color, fontweight="bold")
            axes.quiver(*r, *(0.14 * F), color=color, linewidth=2)
        axes.plot(*np.stack([np.zeros(3), tip]).T, color="#000", linewidth=2.5)
        axes.scatter(*tip, color="#000", s=30)
        axes.set_aspect("equal")
        axes.view_init(elevation, azimuth)
        axes.locator_params(nbins=5)
        axes.set_xlabel("x, m", labelpad=8)
        axes.set_ylabel("y, m", labelpad=8)
        axes.set_zlabel("z, m", labelpad=6)
        axes.set_box_aspect(None, zoom=0.8)  # leaves room for the labels, of which the layout engine knows nothing
    figure.savefig(file, dpi=110)


def pareto_picture(points: Sequence[dict[str, float]], chosen: dict[str, float], file: Path) -> None:
    """Size against condition number and against the attainable force; what no other point beats is joined."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    size = np.array([p["size_norm_m"] for p in points])
    for axes, key, label, sign in (
        (left, "condition_number_limited", "condition number", 1),
        (right, "force_radius_n", "force in the worst direction in level hover, N", -1),
    ):
        value = np.array([p[key] for p in points])
        axes.scatter(size, value, s=18, color="#9498a0", label="local optima")
        order = [k for k in np.argsort(size) if not any((size < size[k]) & (sign * value <= sign * value[k]))]
        axes.plot(size[order], value[order], color="#4269d0", marker="o", markersize=5, label="not beaten")
        axes.scatter([chosen["size_norm_m"]], [chosen[key]], color="#ff725c", s=60, zorder=3, label="this design")
        axes.set_xlabel("size, m")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    left.legend()
    figure.savefig(file, dpi=110)
