"""A vehicle's table in numbers: where its rotors are, what they do, and what they can do together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skycrane.vehicles.layout import Layout, alternating, canted_axes, coaxial, ring

from .rotors import CoaxialLayout, RingLayout, RotorNumbers, Spin
from .vehicle import VehicleSpec

AXES = ("force x", "force y", "force z", "moment x", "moment y", "moment z")


@dataclass(frozen=True)
class Airframe:
    """A vehicle in SI numbers and body axes, rotor by rotor.

    ``com_B`` (3,) m and ``inertia_B`` (3, 3) kg m^2 about it; ``layout`` with n rotors; every other array has shape (n,).
    ``time_up`` and ``time_down`` are None where no rotor has a lag, ``rotor_inertia`` where none has one.
    """

    mass: float
    com_B: np.ndarray
    inertia_B: np.ndarray
    layout: Layout
    thrust_coefficient: np.ndarray
    torque_coefficient: np.ndarray
    speed_min: np.ndarray
    speed_max: np.ndarray
    time_up: np.ndarray | None
    time_down: np.ndarray | None
    rotor_inertia: np.ndarray | None
    radius: np.ndarray

    @property
    def count(self) -> int:
        """Number of rotors."""
        return len(self.thrust_coefficient)

    @property
    def effectiveness(self) -> np.ndarray:
        """(6, n): force and moment about the centre of mass, body axes, for each unit of squared speed."""
        axis, force = self.layout.axis_B, self.thrust_coefficient[:, None] * self.layout.axis_B
        reaction = -(self.layout.spin * self.torque_coefficient)[:, None] * axis
        return np.concatenate([force, np.cross(self.layout.position_B - self.com_B, force) + reaction], axis=1).T

    def hover_speeds(self, gravity: float) -> np.ndarray:
        """Speeds (n,) at which the rotors carry the weight without a moment, or as nearly as they can, rad/s.

        Sideways forces count last: a vehicle that cannot hover level without them leans.
        """
        weight = self.mass * gravity
        wanted = np.array([0.0, 0.0, weight, 0.0, 0.0, 0.0])
        span = max(float(np.abs(self.layout.position_B).max()), 1e-3)
        scale = np.array([0.01, 0.01, 1.0, 1 / span, 1 / span, 1 / span]) / max(weight, 1e-12)
        # The unknowns are parts of the largest squared speed.
        rows, goal = scale[:, None] * self.effectiveness * self.speed_max**2, scale * wanted
        low = (self.speed_min / self.speed_max) ** 2
        share = np.linalg.pinv(rows, rcond=1e-9) @ goal
        if np.any(share < low) or np.any(share > 1.0):
            share = _bounded(rows, goal, low)
        return self.speed_max * np.sqrt(np.clip(share, low, 1.0))


def _bounded(rows: np.ndarray, goal: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Least squares between limits, for vehicles that cannot hover in the ordinary way."""
    # Imported for the exception only: it takes a second.
    from scipy.optimize import lsq_linear

    # A trace of regularisation makes equal rotors turn equally.
    padded = np.vstack([rows, 1e-6 * np.eye(len(low))])
    return lsq_linear(padded, np.concatenate([goal, np.zeros(len(low))]), (low, np.ones(len(low))), tol=1e-14).x


def airframe(spec: VehicleSpec) -> Airframe:
    """The numbers of a vehicle's table."""
    numbers = spec.rotor_numbers()
    layout = layout_of(spec)
    reach = float(np.abs(layout.position_B).max())

    def each(name: str) -> np.ndarray:
        return np.array([getattr(rotor, name) for rotor in numbers], dtype=float)

    def given(name: str, missing: float) -> np.ndarray | None:
        values = [getattr(rotor, name) for rotor in numbers]
        if all(value is None for value in values):
            return None
        return np.array([missing if value is None else value for value in values], dtype=float)

    return Airframe(
        mass=spec.mass,
        com_B=np.array(spec.com),
        inertia_B=np.array(spec.inertia),
        layout=layout,
        thrust_coefficient=each("thrust_coefficient"),
        torque_coefficient=each("torque_coefficient"),
        speed_min=each("speed_min"),
        speed_max=each("speed_max"),
        # A rotor without a lag beside one that has one gets the shortest that the format allows.
        time_up=given("time_up", 1e-4),
        time_down=given("time_down", 1e-4),
        rotor_inertia=given("inertia", 0.0),
        radius=np.array([_radius(rotor, reach) for rotor in numbers]),
    )


def _radius(rotor: RotorNumbers, reach: float) -> float:
    return rotor.radius if rotor.radius is not None else max(0.4 * reach, 0.01)


def layout_of(spec: VehicleSpec) -> Layout:
    """Places, axes and spins of the rotors that the table describes."""
    layout = spec.layout
    if isinstance(layout, RingLayout):
        return _ring(layout)
    if isinstance(layout, CoaxialLayout):
        first = np.deg2rad(layout.first_angle_deg)
        return coaxial(
            layout.arms, layout.arm, layout.gap, first_angle=first, clockwise=layout.order == "cw",
            height=layout.height, first_spin=_sign(layout.first_spin),
        )  # fmt: skip
    assert spec.rotors is not None
    position_B = np.array([rotor.position for rotor in spec.rotors])
    axes = np.tile([0.0, 0.0, 1.0], (len(spec.rotors), 1))
    for i, rotor in enumerate(spec.rotors):
        if rotor.axis is not None:
            axes[i] = np.array(rotor.axis) / np.linalg.norm(rotor.axis)
        elif rotor.cant is not None:
            angle = np.arctan2(rotor.position[1], rotor.position[0])
            cant = np.deg2rad([rotor.cant.torsional_deg, rotor.cant.flapwise_deg])
            axes[i] = canted_axes(np.array([angle]), *cant)[0]
    return Layout(position_B, axes, np.array([_sign(rotor.spin) for rotor in spec.rotors]))


def _ring(layout: RingLayout) -> Layout:
    pattern = alternating(layout.rotors)
    spin = _sign(layout.first_spin) * pattern if layout.spins is None else np.array([_sign(s) for s in layout.spins])
    cant = layout.cant
    return ring(
        layout.rotors,
        layout.arm,
        first_angle=np.deg2rad(layout.first_angle_deg),
        clockwise=layout.order == "cw",
        height=layout.height,
        spin=spin,
        torsional=np.deg2rad(cant.torsional_deg) * (pattern if cant.torsional_sign == "alternating" else 1.0),
        flapwise=np.deg2rad(cant.flapwise_deg) * (pattern if cant.flapwise_sign == "alternating" else 1.0),
    )


def _sign(spin: Spin) -> float:
    return 1.0 if spin == "ccw" else -1.0
