"""What the viewer draws: boxes, arms and rotors of the vehicles, and the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from .craft import layout_of, radii, reach_of
from .scenario import Scenario
from .vehicle import VehicleSpec


def scene(scenario: Scenario) -> dict[str, Any]:
    """The scene in the form of the result file's attribute `scene`."""
    ground = scenario.environment.ground
    return {
        "bodies": {name: _vehicle(name, vehicle.spec) for name, vehicle in scenario.fleet.items()},
        "ground": None if ground is None else {"height": ground.height},
        "water": None,
        "cables": None,
    }


def _vehicle(name: str, spec: VehicleSpec) -> dict[str, Any]:
    reach, com_B = reach_of(spec), np.array(spec.com)
    size = spec.visual.size or (0.5 * reach, 0.4 * reach, 0.2 * reach)
    shapes: list[dict[str, Any]] = [{"kind": "box", "size": list(size), "position": com_B.tolist()}]
    layout = layout_of(spec)
    for i, radius in enumerate(radii(spec)):
        hub_B = layout.position_B[i]
        if np.linalg.norm(hub_B - com_B) > 1e-6:
            shapes.append({"kind": "rod", "from": com_B.tolist(), "to": hub_B.tolist(), "radius": 0.025 * reach})
        rotor = {"kind": "rotor", "radius": radius, "position": hub_B.tolist(), "name": f"{name}/{i + 1}"}
        shapes.append({**rotor, "axis": layout.axis_B[i].tolist(), "spin": int(layout.spin[i])})
    for foot in spec.feet or ():
        # A leg down from above the foot, at the height of the body and halfway in.
        top = [0.5 * foot[0], 0.5 * foot[1], float(com_B[2]) - 0.4 * size[2]]
        if np.linalg.norm(np.subtract(top, foot)) > 1e-6:
            shapes.append({"kind": "rod", "from": top, "to": list(foot), "radius": 0.012 * reach})
        shapes.append({"kind": "sphere", "radius": 0.02 * reach, "position": list(foot)})
    drawn: dict[str, Any] = {"shapes": shapes}
    if spec.visual.color is not None:
        drawn["color"] = list(spec.visual.color)
    return drawn
