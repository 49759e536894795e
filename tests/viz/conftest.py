"""Synthetic results in the documented format: no simulator runs here.

The motion is kinematic but consistent: attitude, rotor thrust and cable follow from the path by Newton's law.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
import xarray as xr

GRAVITY = 9.81
WEIGHTLESS = np.array([0.0, 0.0, GRAVITY])
SIDEWAYS = [0.7071067811865476, 0.7071067811865476, 0, 0]
UNITS = {
    "time": ("s", "time"),
    "position": ("m", "position in world axes"),
    "velocity": ("m/s", "velocity in world axes"),
    "attitude": ("1", "attitude, body to world"),
    "angular_velocity": ("rad/s", "angular velocity in body axes"),
    "reference_position": ("m", "reference position in world axes"),
    "reference_attitude": ("1", "reference attitude, body to world"),
    "rotor_speed": ("rad/s", "rotor speed"),
    "rotor_speed_command": ("rad/s", "rotor speed command"),
    "rotor_thrust": ("N", "rotor thrust"),
    "cable_node_position": ("m", "cable node position in world axes"),
    "cable_tension": ("N", "cable tension"),
    "energy": ("J", "total energy"),
    "work": ("J", "work of non-conservative forces"),
    "drag_force": ("N", "drag force in world axes"),
}


def attitude_of(acceleration_W: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Attitude (T, 4) of a body whose z axis carries its weight and gives `acceleration_W` (T, 3)."""
    from scipy.spatial.transform import Rotation

    up = acceleration_W + WEIGHTLESS
    z = up / np.linalg.norm(up, axis=1, keepdims=True)
    ahead = np.stack([np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)], axis=1)
    y = np.cross(z, ahead)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    matrix = np.stack([np.cross(y, z), y, z], axis=2)
    return Rotation.from_matrix(matrix).as_quat(scalar_first=True)


def multirotor_shapes(name: str, rotors: int, arm: float = 0.25, radius: float = 0.12) -> list[dict]:
    """Scene shapes of a ring of rotors on rods around a box."""
    shapes: list[dict] = [{"kind": "box", "size": [0.16, 0.1, 0.06], "position": [0, 0, 0], "quaternion": [1, 0, 0, 0]}]
    for index in range(rotors):
        angle = 2.0 * np.pi * (index + 0.5) / rotors
        hub = [arm * np.cos(angle), arm * np.sin(angle), 0.03]
        shapes += [
            {"kind": "rod", "from": [0, 0, 0], "to": hub, "radius": 0.008},
            {
                "kind": "rotor", "radius": radius, "position": hub, "axis": [0, 0, 1],
                "spin": 1 if index % 2 == 0 else -1, "name": f"{name}/{index + 1}",
            },
        ]  # fmt: skip
    return shapes


def with_units(dataset: xr.Dataset) -> xr.Dataset:
    for name in [*dataset.data_vars, "time"]:
        unit, long_name = UNITS[str(name)]
        dataset[name].attrs.update(units=unit, long_name=long_name)
    return dataset


def circling(
    names: Sequence[str] = ("uav",),
    rotors: int = 4,
    *,
    duration: float = 10.0,
    rate: float = 100.0,
    radius: float = 2.0,
    period: float = 8.0,
) -> xr.Dataset:
    """Multirotors of 1.2 kg on one circle, side by side, 1.5 m up, with a tracking error that dies out."""
    time = np.linspace(0.0, duration, round(duration * rate) + 1)
    omega = 2.0 * np.pi / period
    random = np.random.default_rng(1)
    position, reference, velocity, attitude, rates, thrust = [], [], [], [], [], []
    for index in range(len(names)):
        centre = np.array([(index % 4) * 3.0 * radius, (index // 4) * 3.0 * radius, 1.5])
        phase = omega * time + 0.4 * index
        ring = np.stack([np.cos(phase), np.sin(phase), 0.15 * np.sin(2.0 * phase)], axis=1)
        goal = centre + radius * ring
        error = 0.3 * np.exp(-time / 1.5)[:, None] * np.stack([np.cos(3 * time), np.sin(3 * time), -time / 3], axis=1)
        path = goal + error
        speed = np.gradient(path, time, axis=0, edge_order=2)
        acceleration = np.gradient(speed, time, axis=0, edge_order=2)
        position.append(path)
        reference.append(goal)
        velocity.append(speed)
        attitude.append(attitude_of(acceleration, phase + 0.5 * np.pi))
        rates.append(np.stack([0.2 * np.sin(phase), 0.1 * np.cos(phase), np.full_like(time, omega)], axis=1))
        lift = 1.2 * np.linalg.norm(acceleration + WEIGHTLESS, axis=1) / rotors
        wiggle = 1.0 + 0.06 * np.sin(np.outer(time, 2.0 + random.uniform(0.0, 2.0, rotors)) + np.arange(rotors))
        thrust.append(lift[:, None] * wiggle)
    forces = np.concatenate(thrust, axis=1)
    speeds = np.sqrt(forces / 1.0e-5)
    labels = [f"{name}/{rotor + 1}" for name in names for rotor in range(rotors)]
    velocities = np.stack(velocity, axis=1)
    positions = np.stack(position, axis=1)
    energy = 1.2 * np.sum(0.5 * np.sum(velocities**2, axis=2) + GRAVITY * positions[:, :, 2], axis=1)
    scene = {
        "bodies": {
            name: {"color": [70, 70, 80], "shapes": multirotor_shapes(name, rotors)} for name in names
        },
        "ground": {"height": 0.0},
        "water": None,
        "cables": None,
    }  # fmt: skip
    dataset = xr.Dataset(
        {
            "position": (("time", "body", "axis"), positions),
            "velocity": (("time", "body", "axis"), velocities),
            "attitude": (("time", "body", "quaternion"), np.stack(attitude, axis=1)),
            "angular_velocity": (("time", "body", "axis"), np.stack(rates, axis=1)),
            "reference_position": (("time", "tracked", "axis"), np.stack(reference, axis=1)),
            "rotor_speed": (("time", "rotor"), speeds),
            "rotor_speed_command": (("time", "rotor"), speeds * 1.01),
            "rotor_thrust": (("time", "rotor"), forces),
            "energy": ("time", energy),
            "work": ("time", energy - energy[0] + 2e-6 * np.cumsum(random.normal(size=len(time)))),
            "drag_force": (("time", "body", "axis"), -0.1 * velocities),
        },
        coords={
            "time": time, "body": list(names), "tracked": list(names), "rotor": labels,
            "axis": ["x", "y", "z"], "quaternion": ["w", "x", "y", "z"],
        },
        attrs={
            "schema_version": 1, "scenario": "circle in still air", "status": "ok", "scene": json.dumps(scene),
            "events": json.dumps([{"time": 3.0, "label": "gust"}, {"time": 6.5, "label": "motor 2 at half thrust"}]),
        },
    )  # fmt: skip
    return with_units(dataset)


def carrying() -> xr.Dataset:
    """A hexarotor that carries a box on two cables of unlike length (so that the nodes are padded)."""
    carrier = circling(("uav",), rotors=6, radius=1.5)
    time = carrier["time"].values
    above = carrier["position"].values[:, 0] + [0.0, 0.0, 1.0]
    swing = np.stack([0.25 * np.sin(2.0 * time), 0.25 * np.cos(2.0 * time), np.zeros_like(time)], axis=1)
    below = above + swing - [0.0, 0.0, 1.3]
    level = np.stack([np.cos(0.1 * time), 0 * time, 0 * time, np.sin(0.1 * time)], axis=1)
    nodes = np.full((len(time), 2, 6, 3), np.nan)
    tension = np.full((len(time), 2, 5), np.nan)
    for cable, (count, offset) in enumerate([(6, 0.15), (4, -0.15)]):
        along = np.linspace(0.0, 1.0, count)[None, :, None]
        end = below + np.array([offset, 0.0, 0.1])
        nodes[:, cable, :count] = (1.0 - along) * above[:, None] + along * end[:, None]
        pull = 4.0 * np.clip(1.0 + 0.9 * np.sin(2.5 * time + cable), 0.2, None)
        tension[:, cable, : count - 1] = pull[:, None] + 0.1 * np.arange(count - 1)
    scene = json.loads(carrier.attrs["scene"])
    scene["bodies"]["load"] = {"shapes": [
        {"kind": "box", "size": [0.4, 0.2, 0.2], "position": [0, 0, 0], "quaternion": [1, 0, 0, 0]},
        {"kind": "sphere", "radius": 0.05, "position": [0, 0, 0.12]},
        {"kind": "cylinder", "radius": 0.06, "height": 0.3, "position": [0, 0, -0.1], "quaternion": SIDEWAYS},
    ]}  # fmt: skip
    scene["cables"] = {"names": ["left", "right"], "radius": 0.002}
    both = np.stack([above, below], axis=1)
    attitude = np.stack([carrier["attitude"].values[:, 0], level], axis=1)
    keep = carrier.drop_vars(["position", "velocity", "attitude", "angular_velocity", "drag_force", "body"])
    keep["reference_position"] = keep["reference_position"] + [0.0, 0.0, 1.0]
    dataset = keep.assign(
        position=(("time", "body", "axis"), both),
        velocity=(("time", "body", "axis"), np.gradient(both, time, axis=0, edge_order=2)),
        attitude=(("time", "body", "quaternion"), attitude),
        angular_velocity=(("time", "body", "axis"), 0.1 * both),
        cable_node_position=(("time", "cable", "node", "axis"), nodes),
        cable_tension=(("time", "cable", "segment"), tension),
    ).assign_coords(body=["uav", "load"], cable=["left", "right"])
    dataset.attrs.update(scenario="box on two cables", scene=json.dumps(scene))
    return with_units(dataset)


@pytest.fixture(scope="session")
def quadrotor() -> xr.Dataset:
    """One quadrotor, 10 s at 100 Hz."""
    return circling()


@pytest.fixture(scope="session")
def hexarotor_with_load() -> xr.Dataset:
    """Two bodies and two cables, NaN-padded."""
    return carrying()


@pytest.fixture(scope="session")
def swarm() -> xr.Dataset:
    """Sixteen quadrotors: 64 rotors."""
    return circling([f"uav{number + 1}" for number in range(16)], duration=5.0)
