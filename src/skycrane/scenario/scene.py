"""What the viewer draws: boxes, arms and rotors of the vehicles, and the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cargo import BoxShape, ConeShape, LoadSpec, ShapeSpec, SphereShape
from .craft import layout_of, radii, reach_of
from .lift import AXES, cable_groups, point_of, rotation
from .scenario import Scenario
from .sea import hull_shapes, water_scene
from .vehicle import VehicleSpec
from .water import BuoySpec


def scene(scenario: Scenario) -> dict[str, Any]:
    """The scene in the form of the result file's attribute `scene`."""
    ground = scenario.environment.ground
    return {
        "bodies": {name: _vehicle(name, vehicle.spec) for name, vehicle in scenario.fleet.items()}
        | {name: _load(spec) for name, spec in scenario.loads.items()}
        | {name: _buoy(spec) for name, spec in scenario.buoys.items()},
        "ground": None if ground is None else {"height": ground.height},
        "water": water_scene(scenario),
        "tools": {name: list(v.spec.end_effector.position) for name, v in scenario.fleet.items() if v.spec.end_effector is not None},
        "surface": _surface(scenario),
        "cables": {"names": [n for g in cable_groups(scenario).values() for n in g], "length": lengths(scenario)}
        if scenario.cables
        else None,
        "tethers": [_tether(scenario, name) for name in scenario.tethers],
    }


def _surface(scenario: Scenario) -> dict[str, Any] | None:
    """The wall that end-effectors touch, and whether one presses against it."""
    surface = scenario.environment.surface
    if surface is None:
        return None
    normal = np.array(surface.normal) / np.linalg.norm(surface.normal)
    press = any(getattr(vehicle.control, "press", None) is not None for vehicle in scenario.fleet.values())
    return {"point": list(surface.point), "normal": normal.tolist(), "press": press}


def cable_names(scenario: Scenario) -> list[str]:
    """All cables, in the order of the result."""
    return [name for names in cable_groups(scenario).values() for name in names]


def lengths(scenario: Scenario) -> list[float]:
    """Unstretched lengths [m] of all cables, in the order of the result."""
    return [scenario.cables[name].length for name in cable_names(scenario)]


def _buoy(spec: BuoySpec) -> dict[str, Any]:
    drawn: dict[str, Any] = {"shapes": hull_shapes(spec), "color": list(spec.visual.color or (0.85, 0.35, 0.15))}
    return drawn


def _tether(scenario: Scenario, name: str) -> dict[str, Any]:
    """Ends of a tether for the viewer: bodies, points, length."""
    tether = scenario.tethers[name]
    points = [[0.0, 0.0, 0.0]] * 2 if tether.lever is not None else [
        point_of(scenario, body, point).tolist()
        for body, point in ((tether.lower, tether.lower_point), (tether.upper, tether.upper_point))
    ]  # fmt: skip
    return {"name": name, "bodies": [tether.lower, tether.upper], "points": points, "length": tether.length}


def _load(spec: LoadSpec) -> dict[str, Any]:
    parts = [(part.shape, np.array(part.position), rotation(part.attitude_deg)) for part in spec.parts]
    if spec.shape is not None:
        parts = [(spec.shape, np.zeros(3), np.eye(3))]
    shapes = [_solid(*part) for part in parts] or [{"kind": "sphere", "radius": 0.1, "position": list(spec.com or (0.0, 0.0, 0.0))}]
    drawn: dict[str, Any] = {"shapes": shapes}
    if spec.visual.color is not None:
        drawn["color"] = list(spec.visual.color)
    return drawn


def _solid(shape: ShapeSpec, position: np.ndarray, R: np.ndarray) -> dict[str, Any]:
    """A shape of a load as the viewer knows it."""
    if isinstance(shape, BoxShape):
        return {"kind": "box", "size": list(shape.size), "position": position.tolist(), "quaternion": quaternion(R).tolist()}
    if isinstance(shape, SphereShape):
        return {"kind": "sphere", "radius": shape.radius, "position": position.tolist()}
    R = R @ AXES[shape.axis]
    size: dict[str, Any] = {"radius": shape.radius, "height": shape.height}
    # A cone's reference point is its centre of mass, the viewer's the middle of its axis.
    middle = position + R @ [0.0, 0.0, 0.25 * shape.height] if isinstance(shape, ConeShape) else position
    return {"kind": shape.kind, **size, "position": middle.tolist(), "quaternion": quaternion(R).tolist()}


def quaternion(R: np.ndarray) -> np.ndarray:
    """Scalar-first quaternion (4,) of a rotation matrix (3, 3)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_quat(scalar_first=True)


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
    if spec.end_effector is not None:
        tip = list(spec.end_effector.position)
        shapes.append({"kind": "rod", "from": com_B.tolist(), "to": tip, "radius": 0.02 * reach})
        shapes.append({"kind": "sphere", "radius": 0.03 * reach, "position": tip})
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
