"""Figures of merit of a load on cables: how fast the team and the load settle, how the cables fare, how near vehicles come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

POSITION_BAND = 0.1  # m
ANGLE_BAND = 2.0  # deg


def settling_time(time: np.ndarray, error: np.ndarray, band: float) -> float | None:
    """The last time [s] at which an error (n,) is beyond ``band``, from the start; 0 if it never is, None if it is at the end."""
    outside = np.flatnonzero(~(error <= band))
    if not outside.size:
        return 0.0
    return None if outside[-1] + 1 >= len(time) else float(time[outside[-1] + 1] - time[0])


def cable_metrics(time: np.ndarray, tensions: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Of every cable's tensions (n, segments) N, by name: the smallest and the largest tension, and how long a cable had a slack segment.

    ``slack_time_s`` is that of the cable that was slack longest; with several cables each has its ``slack_time_NAME_s``.
    """
    if not tensions:
        return {}
    everything = [T for T in tensions.values() if T.size]
    out = {
        "tension_min_n": float(min(T.min() for T in everything)),
        "tension_max_n": float(max(T.max() for T in everything)),
    }
    step = np.gradient(time) if len(time) > 1 else np.zeros(1)
    slack = {name: float(step[(T <= 0.0).any(-1)].sum()) for name, T in tensions.items()}
    out["slack_time_s"] = max(slack.values())
    if len(slack) > 1 and out["slack_time_s"] > 0:
        out |= {f"slack_time_{name.replace('-', '_')}_s": value for name, value in slack.items() if value > 0}
    return out


def load_metrics(time: np.ndarray, p_W: np.ndarray, q_WB: np.ndarray, goal_W: np.ndarray, goal_q: np.ndarray) -> dict[str, float]:
    """Of a load's path (n, 3) m and attitude (n, 4) against the place (3,) m and attitude (4,) in which it should come to rest.

    ``load_angle_*`` is the largest of roll, pitch and yaw away from that attitude, in degrees.
    """
    from scipy.spatial.transform import Rotation

    error = np.linalg.norm(p_W - goal_W, axis=-1)
    away = Rotation.from_quat(goal_q, scalar_first=True).inv() * Rotation.from_quat(q_WB, scalar_first=True)
    angle = np.abs(away.as_euler("ZYX", degrees=True)).max(-1)
    out: dict[str, float | None] = {
        "load_position_settling_s": settling_time(time, error, POSITION_BAND),
        "load_position_error_final_m": float(error[-1]),
        "load_angle_settling_s": settling_time(time, angle, ANGLE_BAND),
        "load_angle_final_deg": float(angle[-1]),
    }
    return {name: value for name, value in out.items() if value is not None}


def formation_metrics(time: np.ndarray, vehicles_W: np.ndarray, load_W: np.ndarray, offset_W: np.ndarray) -> dict[str, float]:
    """Of vehicles (n, k, 3) m that should be at world-fixed offsets (k, 3) m from the load (n, 3): error and settling time (0.1 m)."""
    error = np.linalg.norm(vehicles_W - load_W[:, None] - offset_W, axis=-1).max(-1)
    out: dict[str, float | None] = {
        "formation_error_final_m": float(error[-1]),
        "formation_settling_s": settling_time(time, error, POSITION_BAND),
    }
    return {name: value for name, value in out.items() if value is not None}


def distance_metrics(places_W: np.ndarray) -> dict[str, float]:
    """The least distance of any two of k vehicles at (n, k, 3) m."""
    k = places_W.shape[1]
    pairs = [np.linalg.norm(places_W[:, i] - places_W[:, j], axis=-1).min() for i in range(k) for j in range(i)]
    return {"vehicle_distance_min_m": float(min(pairs))} if pairs else {}


def disc_clearances(hubs_W: np.ndarray, axes_W: np.ndarray, radii: Sequence[float], points_W: Any) -> np.ndarray:
    """Least distance (n,) m from any of r rotor discs (hubs and unit axes (n, r, 3)) to any of p points (n, p, 3).

    The distance from a disc to a point at height h above its plane and distance s from its axis is ``hypot(h, max(s - R, 0))``.
    """
    d = points_W[:, None] - hubs_W[:, :, None]
    height = np.einsum("nrpk,nrk->nrp", d, axes_W)
    aside = np.sqrt(np.maximum((d * d).sum(-1) - height**2, 0.0))
    beyond = np.maximum(aside - np.asarray(radii)[None, :, None], 0.0)
    return np.hypot(height, beyond).min((1, 2))
