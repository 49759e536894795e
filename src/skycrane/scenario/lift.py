"""Loads and cables of a scenario in numbers: bodies, places at the start, and elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.control.team import load_shares
from skycrane.core.chain import WORLD as FIXED
from skycrane.elements.cables import CableGround, Cables, Winch
from skycrane.loads import rigid
from skycrane.loads.rope import Rope, cables_of
from skycrane.vehicles.multirotor import Multirotor

from .cables import WORLD, CableNumbers, CableSpec, RopeMaterial
from .cargo import BoxShape, ConeShape, CylinderShape, LoadSpec, ShapeSpec
from .scenario import Scenario
from .sea import buoy_starts

AXES = {"x": np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]), "y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]), "z": np.eye(3)}
"""Rotations that turn the z axis of a shape to a body axis."""


@dataclass(frozen=True)
class Pose:
    """Where a body starts: ``position`` (3,) m and rotation ``R_WB`` (3, 3)."""

    position: np.ndarray
    R_WB: np.ndarray

    def point(self, offset_B: np.ndarray) -> np.ndarray:
        """A point of the body in world axes."""
        return self.position + self.R_WB @ offset_B


def rotation(attitude_deg: tuple[float, float, float]) -> np.ndarray:
    """R = Rz(yaw) Ry(pitch) Rx(roll), (3, 3)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.deg2rad(attitude_deg)), np.sin(np.deg2rad(attitude_deg))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rigid_of(spec: LoadSpec) -> rigid.Rigid:
    """Mass properties of a load."""
    if spec.parts:
        return rigid.composite([_solid(part.shape, part.mass).moved(part.position, rotation(part.attitude_deg)) for part in spec.parts])
    assert spec.mass is not None
    solid = rigid.Rigid.create(spec.mass, np.ones(3)) if spec.shape is None else _solid(spec.shape, spec.mass)
    inertia = solid.inertia_B if spec.inertia is None else np.array(spec.inertia)
    return rigid.Rigid.create(spec.mass, inertia, solid.com_B if spec.com is None else spec.com)


def _solid(shape: ShapeSpec, mass: float) -> rigid.Rigid:
    if isinstance(shape, BoxShape):
        return rigid.box(mass, shape.size)
    if isinstance(shape, CylinderShape):
        return rigid.cylinder(mass, shape.radius, shape.height).moved(np.zeros(3), AXES[shape.axis])
    if isinstance(shape, ConeShape):
        return rigid.cone(mass, shape.radius, shape.height).moved(np.zeros(3), AXES[shape.axis])
    return rigid.sphere(mass, shape.radius)


def touching_points(spec: LoadSpec) -> np.ndarray:
    """Points (m, 3) of a load that touch the ground: the given ones, or corners and rims of its shapes."""
    if spec.feet is not None:
        return np.array(spec.feet)
    if spec.parts:
        return np.concatenate([np.array(p.position) + _rim(p.shape) @ rotation(p.attitude_deg).T for p in spec.parts])
    return np.zeros((1, 3)) if spec.shape is None else _rim(spec.shape)


def _rim(shape: ShapeSpec) -> np.ndarray:
    if isinstance(shape, BoxShape):
        signs = np.stack(np.meshgrid([-0.5, 0.5], [-0.5, 0.5], [-0.5, 0.5], indexing="ij"), -1).reshape(-1, 3)
        return signs * np.array(shape.size)
    if isinstance(shape, (CylinderShape, ConeShape)):
        angle = np.arange(8) * np.pi / 4
        ring = np.stack([shape.radius * np.cos(angle), shape.radius * np.sin(angle), 0 * angle], -1)
        if isinstance(shape, ConeShape):
            points = np.vstack([ring - [0, 0, 0.25 * shape.height], [[0, 0, 0.75 * shape.height]]])
        else:
            top = np.array([0.0, 0.0, 0.5 * shape.height])
            points = np.vstack([ring - top, ring + top])
        return points @ AXES[shape.axis].T
    return np.vstack([np.eye(3), -np.eye(3)]) * shape.radius


# -- cables ---------------------------------------------------------------------------------------------------------------------------


def rope_of(spec: CableSpec) -> Rope:
    """One cable's rope."""
    m, n = spec.material, spec.segments
    if isinstance(m, RopeMaterial):
        rope = Rope.of_material(
            spec.length, m.diameter, m.density, m.youngs_modulus, m.damping_ratio, n, bending=m.bending, normal_drag=None
        )
    elif isinstance(m, CableNumbers):
        rope = Rope(spec.length, m.axial_stiffness, m.damping, m.linear_density, m.bending_stiffness, segments=n)
    else:
        rope = Rope.of_segments(n, spec.length / n, m.stiffness, m.damping, m.mass)
    drag: dict[str, Any] = {}
    if spec.drag is not None:
        diameter = spec.drag.diameter or (m.diameter if isinstance(m, RopeMaterial) else 0.0)
        drag = {"drag_normal": spec.drag.normal * diameter, "drag_tangential": spec.drag.tangential * diameter}
    return Rope(
        rope.length, rope.axial_stiffness, rope.damping, rope.linear_density, rope.bending_stiffness, segments=n, lumps=spec.lumps, **drag
    )


def point_of(scenario: Scenario, body: str, point: Any) -> np.ndarray:
    """A point of a body, by its name or its coordinates (3,) m."""
    return np.array((scenario.loads | scenario.buoys)[body].points[point] if isinstance(point, str) else point, dtype=float)


def index_of(scenario: Scenario, body: str) -> int:
    """A body's index, or that of a point fixed in the world."""
    return FIXED if body == WORLD else scenario.bodies.index(body)


def ends_of(scenario: Scenario) -> dict[str, tuple[int, int, np.ndarray, np.ndarray]]:
    """Bodies and points of both ends of every cable: upper, lower, upper_B, lower_B."""
    return {
        name: (
            index_of(scenario, c.upper), index_of(scenario, c.lower),
            point_of(scenario, c.upper, c.upper_point), point_of(scenario, c.lower, c.lower_point),
        )
        for name, c in scenario.cables.items()
    }  # fmt: skip


def cable_groups(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Elements of cables, and the cables of each: those with equally many segments and the same extras move as one."""
    groups: dict[tuple, list[str]] = {}
    for name, cable in scenario.cables.items():
        rope = rope_of(cable)
        extras = (rope.bending_stiffness is None, cable.drag is None, cable.on_ground, cable.winch is None)
        groups.setdefault((cable.segments, *extras), []).append(name)
    only = len(groups) == 1
    return {"cables" if only else f"cables_{i + 1}": tuple(names) for i, names in enumerate(groups.values())}


def cable_place(scenario: Scenario, name: str) -> tuple[str, int]:
    """Element and column of a cable."""
    return next((element, names.index(name)) for element, names in cable_groups(scenario).items() if name in names)


def cable_elements(scenario: Scenario, poses: dict[str, Pose]) -> dict[str, Cables]:
    """The elements of all cables, at rest between the places of their ends at the start."""
    ends, out = ends_of(scenario), {}
    ground = scenario.environment.ground
    for element, names in cable_groups(scenario).items():
        specs = [scenario.cables[name] for name in names]
        upper, lower, upper_B, lower_B = zip(*(ends[name] for name in names), strict=True)
        at_W = [
            [point if spec_body == WORLD else poses[spec_body].point(point) for spec_body, point in zip(bodies, points, strict=True)]
            for bodies, points in (([s.upper for s in specs], upper_B), ([s.lower for s in specs], lower_B))
        ]
        winch = None
        if specs[0].winch is not None:
            numbers = [(s.winch.time_constant, s.winch.speed_max, s.length) for s in specs if s.winch is not None]
            winch = Winch(*jnp.array(numbers, dtype=float).T)
        cables = cables_of(
            [rope_of(s) for s in specs], upper, lower, np.array(upper_B), np.array(lower_B), np.array(at_W[0]), np.array(at_W[1]),
            gravity=scenario.environment.gravity, winch=winch, names=names,
            ground=CableGround() if specs[0].on_ground else None, ground_height=0.0 if ground is None else ground.height,
        )  # fmt: skip
        out[element] = cables
    return out


# -- places at the start, and who carries what --------------------------------------------------------------------------------------


def poses_of(scenario: Scenario) -> dict[str, Pose]:
    """Where all bodies start; vehicles over cables stand above their lower ends, the cable as long as its static load stretches it."""
    poses = {
        name: Pose(np.array(load.initial.position, dtype=float), rotation(load.initial.attitude_deg))
        for name, load in scenario.loads.items()
    }
    for name, (position, _) in buoy_starts(scenario).items():
        poses[name] = Pose(position, rotation(scenario.buoys[name].initial.attitude_deg))
    pulls = static_pulls(scenario)
    for name, vehicle in scenario.fleet.items():
        initial = vehicle.spec.initial
        position, R_WB = np.array(initial.position, dtype=float), rotation(initial.attitude_deg)
        if initial.over is not None:
            cable = scenario.cables[initial.over]
            rope, end = rope_of(cable), point_of(scenario, cable.lower, cable.lower_point)
            foot = end if cable.lower == WORLD else poses[cable.lower].point(end)
            below = np.arange(rope.segments - 1, -1, -1) * float(rope.segment_mass) * scenario.environment.gravity
            stretch = ((pulls.get(initial.over, 0.0) + below) / float(rope.segment_stiffness)).sum()
            # Off to the side by the given place, on the sphere on which the cable is just taut.
            aside, length = np.array([position[0], position[1], 0.0]), float(rope.length) + stretch
            height = np.sqrt(max(length**2 - aside @ aside, 0.0)) + position[2]
            position = foot + aside + [0.0, 0.0, height] - R_WB @ point_of(scenario, cable.upper, cable.upper_point)
        poses[name] = Pose(position, R_WB)
    return poses


def static_pulls(scenario: Scenario) -> dict[str, float]:
    """Tension [N] at the lower end of every cable that carries a load below it, if all hung vertically."""
    ends = ends_of(scenario)
    out: dict[str, float] = {}
    for name, spec in scenario.loads.items():
        above = [c for c, cable in scenario.cables.items() if cable.lower == name]
        if not above:
            continue
        body = rigid_of(spec)
        lumps = [float(rope_of(scenario.cables[c]).end_masses[1]) for c in above]
        points = np.array([ends[c][3] for c in above])
        share = load_shares(points, np.asarray(body.com_B)) * float(body.mass)
        out |= {c: float(max(s + lump, 0.0)) * scenario.environment.gravity for c, s, lump in zip(above, share, lumps, strict=True)}
    return out


def carried_weights(scenario: Scenario, poses: dict[str, Pose]) -> dict[str, float]:
    """Weight [N] that each vehicle carries at the start: of cables that are taut then, and their loads."""
    ends, pulls = ends_of(scenario), static_pulls(scenario)
    out = dict.fromkeys(scenario.fleet, 0.0)
    for name, cable in scenario.cables.items():
        if cable.upper not in out:
            continue
        lower = ends[name][3] if cable.lower == WORLD else poses[cable.lower].point(ends[name][3])
        taut = np.linalg.norm(poses[cable.upper].point(ends[name][2]) - lower) > 0.98 * cable.length
        rope = rope_of(cable)
        weight = (rope.segments - 1) * float(rope.segment_mass) * scenario.environment.gravity
        out[cable.upper] += weight + (pulls.get(name, 0.0) if taut else 0.0)
    return out


def heavier(craft: Multirotor, weight: float, gravity: float) -> Multirotor:
    """The craft as if it weighed so much more [N]: what its rotors must carry at the start."""
    import equinox as eqx

    return craft if weight == 0.0 else eqx.tree_at(lambda c: c.mass, craft, craft.mass + weight / gravity)
