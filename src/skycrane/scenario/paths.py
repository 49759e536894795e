"""The references of a scenario."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.control.references import Circle, FigureEight, Hover
from skycrane.control.splines import Sampled, Waypoints
from skycrane.control.tip_paths import Sweep
from skycrane.control.tumble import Tumble
from skycrane.core.controller import AbstractReference

from .control import RotorSpeedsControl
from .reference import CircleReference, HoverReference, PathReference, SweepReference, TumbleReference, WaypointsReference


def reference_of(control: Any, spec: Any, initial: Any) -> AbstractReference | None:
    """What a vehicle or load that starts at ``initial`` follows; None for one without feedback."""
    if isinstance(control, RotorSpeedsControl):
        return None
    if isinstance(spec, HoverReference):
        yaw_deg = initial.attitude_deg[2] if spec.yaw_deg is None else spec.yaw_deg
        return Hover.create(np.array(spec.position or initial.position), np.deg2rad(yaw_deg))
    if isinstance(spec, WaypointsReference):
        points_W, yaw = np.array(spec.points), np.deg2rad(spec.yaw_deg)
        if spec.times is None:
            assert spec.speed is not None
            return Waypoints.at_speed(points_W, spec.speed, minimize=spec.minimize, yaw=yaw)
        return Waypoints.create(points_W, np.array(spec.times), minimize=spec.minimize, yaw=yaw)
    if isinstance(spec, PathReference):
        rows = np.array(spec.samples)
        return Sampled.create(rows[:, 0], rows[:, 1:4], yaw=np.deg2rad(rows[:, 4]) if rows.shape[1] == 5 else 0.0)
    if isinstance(spec, TumbleReference):
        periods = (spec.roll_period, spec.pitch_period, spec.yaw_period)
        rate = [0.0 if period is None else 2 * np.pi / period for period in periods]
        numbers: dict[str, Any] = {
            "center_W": spec.position or initial.position, "rate": rate, "yaw": np.deg2rad(initial.attitude_deg[2]),
            "start": spec.start, "ramp": spec.ramp, "radius": spec.radius, "circle_rate": 2 * np.pi / spec.circle_period,
        }  # fmt: skip
        return Tumble(**{name: jnp.array([value], dtype=float) for name, value in numbers.items()})
    if isinstance(spec, SweepReference):
        swing = np.deg2rad([spec.roll_deg, spec.pitch_deg, spec.yaw_deg])
        numbers = {
            "center_W": spec.center, "radius": spec.radius, "circle_rate": 2 * np.pi / spec.period, "swing": swing,
            "swing_rate": 2 * np.pi / np.array([spec.roll_period, spec.pitch_period, spec.yaw_period]), "ramp": spec.ramp,
            "stop": 1e9 if spec.stop is None else spec.stop,
        }  # fmt: skip
        return Sweep(**{name: jnp.array([value], dtype=float) for name, value in numbers.items()})
    center_W, phase, yaw = np.array([*spec.center, spec.height]), np.deg2rad(spec.phase_deg), np.deg2rad(spec.yaw_deg)
    options: dict[str, Any] = {"phase": phase, "ramp": spec.ramp, "yaw": yaw, "heading": spec.heading}
    if isinstance(spec, CircleReference):
        period = spec.period if spec.direction == "ccw" else -spec.period
        return Circle.create(center_W, spec.radius, period, **options)
    return FigureEight.create(center_W, spec.length, spec.width, spec.period, **options)
