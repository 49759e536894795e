"""What the viewer draws: boxes, arms and rotors of the vehicles, and the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from .airframe import Airframe
from .scenario import Scenario
from .vehicle import VehicleSpec


def scene(scenario: Scenario, airframes: dict[str, Airframe]) -> dict[str, Any]:
    """The scene in the form of the result file's attribute `scene`."""
    ground = scenario.environment.ground
    return {
        "bodies": {name: _vehicle(name, vehicle.spec, airframes[name]) for name, vehicle in scenario.fleet.items()},
        "ground": None if ground is None else {"height": ground.height},
        "water": None,
        "cables": None,
    }


def _vehicle(name: str, spec: VehicleSpec, frame: Airframe) -> dict[str, Any]:
    position_B = frame.layout.position_B
    reach = float(np.linalg.norm(position_B - frame.com_B, axis=1).max())
    size = spec.visual.size or (0.5 * reach, 0.4 * reach, 0.2 * reach)
    shapes: list[dict[str, Any]] = [{"kind": "box", "size": list(size), "position": frame.com_B.tolist()}]
    for i, (hub_B, axis_B, spin) in enumerate(zip(*frame.layout, strict=True)):
        if np.linalg.norm(hub_B - frame.com_B) > 1e-6:
            arm = {"kind": "rod", "from": frame.com_B.tolist(), "to": hub_B.tolist(), "radius": 0.025 * reach}
            shapes.append(arm)
        shapes.append(
            {
                "kind": "rotor",
                "radius": float(frame.radius[i]),
                "position": hub_B.tolist(),
                "axis": axis_B.tolist(),
                "spin": int(spin),
                "name": f"{name}/{i + 1}",
            }
        )
    for foot in spec.feet or ():
        shapes.append({"kind": "sphere", "radius": 0.02 * reach, "position": list(foot)})
    drawn: dict[str, Any] = {"shapes": shapes}
    if spec.visual.color is not None:
        drawn["color"] = list(spec.visual.color)
    return drawn
