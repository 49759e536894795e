"""A multirotor as a MuJoCo model (MJCF): the same mass properties, and each rotor a motor on a site.

The control of motor i is the rotor's thrust [N]; its reaction moment ``-s k_M / k_F`` about the thrust axis comes with it.  Motor lag, drag
and wind are not part of the model.
"""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

from skycrane.environment.environment import GRAVITY
from skycrane.math import rotation
from skycrane.vehicles.multirotor import Multirotor

ROTOR_RADIUS, ROTOR_HEIGHT = 0.3, 0.004  # drawn discs: radius as a part of the arm, height in m


def to_mjcf(vehicle: Multirotor, name: str = "vehicle", gravity: float = GRAVITY, step: float = 0.002) -> str:
    """The model as text: one free body ``name`` with sites and motors ``rotor1``, ``rotor2``, ..., integrated by RK4 with ``step`` [s]; a
    keyframe ``hover`` holds the thrusts of level hover."""
    root = ElementTree.Element("mujoco", model=name)
    ElementTree.SubElement(root, "option", timestep=_text(step), integrator="RK4", gravity=_text([0.0, 0.0, -gravity]))
    body = ElementTree.SubElement(ElementTree.SubElement(root, "worldbody"), "body", name=name)
    ElementTree.SubElement(body, "freejoint", name=f"{name}_free")
    J = np.asarray(vehicle.inertia_B, dtype=float)
    full = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
    ElementTree.SubElement(body, "inertial", pos=_text(vehicle.com_B), mass=_text(vehicle.mass), fullinertia=_text(full))
    position, axis = np.asarray(vehicle.position_B, dtype=float), np.asarray(vehicle.axis_B, dtype=float)
    arm = float(np.linalg.norm(position - position.mean(0), axis=1).mean()) or 0.1
    motors = ElementTree.SubElement(root, "actuator")
    k_F = np.asarray(vehicle.thrust_coefficient, dtype=float)
    moment = -np.asarray(vehicle.spin, dtype=float) * np.asarray(vehicle.torque_coefficient, dtype=float) / k_F
    strongest = k_F * np.asarray(vehicle.speed_max, dtype=float) ** 2
    for i, (p, a) in enumerate(zip(position, axis, strict=True)):
        label, turn = f"rotor{i + 1}", _text(rotation.from_matrix(_frame(a)))
        ElementTree.SubElement(body, "site", name=label, pos=_text(p), quat=turn)
        size = _text([ROTOR_RADIUS * arm, ROTOR_HEIGHT / 2])
        # A picture only: no mass, no contact.
        ElementTree.SubElement(
            body,
            "geom",
            type="cylinder",
            pos=_text(p),
            quat=turn,
            size=size,
            mass="0",
            contype="0",
            conaffinity="0",
            rgba="0.3 0.6 0.8 0.5",
        )
        motor = ElementTree.SubElement(motors, "motor", name=label, site=label, gear=_text([0, 0, 1, 0, 0, moment[i]]))
        if np.isfinite(strongest[i]):
            motor.set("ctrllimited", "true")
            motor.set("ctrlrange", _text([0.0, strongest[i]]))
    hover = k_F * np.asarray(vehicle.hover_speeds(gravity), dtype=float) ** 2
    ElementTree.SubElement(ElementTree.SubElement(root, "keyframe"), "key", name="hover", ctrl=_text(hover))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _frame(z: np.ndarray) -> np.ndarray:
    """A rotation matrix whose third column is z."""
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], -1)


def _text(numbers: ArrayLike) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(np.asarray(numbers, dtype=float)))
