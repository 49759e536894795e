"""Vehicles drawn larger than they are where their path is so long that they would be specks on it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from skycrane.viz.frames import Frames
from skycrane.viz.geometry import round_step

LONGEST = 60.0  # paths in diameters of the vehicle up to which it is drawn as it is
WANTED = 12.0  # what the path measures then, at most twice and a half as much


def enlarged(frames: Frames) -> tuple[Frames, float]:
    """The frames with the shapes of a single body made larger, and by how much: 1 where nothing changes.

    Several bodies keep their size, since they would overlap, and so does a body with cables, which hang on its real points.
    """
    if len(frames.bodies) != 1 or frames.cable_node_W.shape[1]:
        return frames, 1.0
    name = frames.bodies[0]
    diameter = 2.0 * frames.body_radius(name)
    path = float(np.linalg.norm(np.ptp(frames.position_W.reshape(-1, 3), axis=0)))
    if diameter == 0.0 or path <= LONGEST * diameter:
        return frames, 1.0
    factor = round_step(path / (WANTED * diameter))
    body = frames.scene["bodies"][name]
    larger = {**body, "shapes": [_scaled(shape, factor) for shape in body["shapes"]]}
    return dataclasses.replace(frames, scene={**frames.scene, "bodies": {name: larger}}), factor


def _scaled(shape: dict[str, Any], factor: float) -> dict[str, Any]:
    lengths = ("size", "radius", "height", "position", "from", "to")
    return {key: (factor * np.asarray(value, dtype=float)).tolist() if key in lengths else value for key, value in shape.items()}
