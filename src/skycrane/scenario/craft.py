"""A vehicle's table in numbers."""

from __future__ import annotations

import equinox as eqx
import numpy as np

from skycrane.vehicles.layout import Layout, alternating, canted_axes, coaxial, ring
from skycrane.vehicles.multirotor import Multirotor

from .rotors import CoaxialLayout, RingLayout, RotorNumbers, Spin
from .vehicle import VehicleSpec


def multirotor(spec: VehicleSpec) -> Multirotor:
    """The vehicle that a table describes."""
    numbers = spec.rotor_numbers()

    def each(name: str) -> np.ndarray:
        return np.array([getattr(rotor, name) for rotor in numbers], dtype=float)

    def given(name: str, missing: float) -> np.ndarray | None:
        values = [getattr(rotor, name) for rotor in numbers]
        if all(value is None for value in values):
            return None
        return np.array([missing if value is None else value for value in values], dtype=float)

    center = None if spec.drag is None else (spec.drag.center or spec.com)
    return Multirotor.create(
        spec.mass,
        np.array(spec.inertia),
        layout_of(spec),
        each("thrust_coefficient"),
        each("torque_coefficient"),
        speed_min=each("speed_min"),
        speed_max=each("speed_max"),
        # A rotor without a lag beside one that has one gets the shortest that the format allows.
        time_up=given("time_up", 1e-4),
        time_down=given("time_down", 1e-4),
        rotor_inertia=given("inertia", 0.0),
        com_B=np.array(spec.com),
        cd_area_B=None if spec.drag is None else np.array(spec.drag.cd_area),
        # None, which is cheaper, where the pressure acts at the origin.
        drag_center_B=np.array(center) if center is not None and any(center) else None,
    )


def start_speeds(spec: VehicleSpec, craft: Multirotor, gravity: float) -> np.ndarray:
    """Rotor speeds (n,) at the start, rad/s."""
    speeds = spec.initial.rotors
    if speeds == "hover":
        return np.asarray(eqx.filter_jit(Multirotor.hover_speeds)(craft, gravity))
    return np.zeros(craft.count) if speeds == "stopped" else np.array(speeds, dtype=float)


def feet_of(spec: VehicleSpec) -> np.ndarray:
    """Points (m, 3) that touch the ground: the given ones, or four on a square below the lowest rotor and the body."""
    if spec.feet is not None:
        return np.array(spec.feet)
    offset_B = layout_of(spec).position_B - np.array(spec.com)
    reach = reach_of(spec)
    height = min(0.0, float(offset_B[:, 2].min())) - 0.4 * reach
    corners = 0.4 * reach * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    return np.array(spec.com) + np.concatenate([corners, np.full((4, 1), height)], axis=1)


def reach_of(spec: VehicleSpec) -> float:
    """Distance from the centre of mass to the furthest rotor, m; 0.1 for a single rotor right there."""
    distance = np.linalg.norm(layout_of(spec).position_B - np.array(spec.com), axis=1).max()
    return float(distance) if distance > 1e-6 else 0.1


def radii(spec: VehicleSpec) -> list[float]:
    """Radius of each rotor for the picture, m."""

    def drawn(rotor: RotorNumbers) -> float:
        return rotor.radius if rotor.radius is not None else 0.4 * reach_of(spec)

    return [drawn(rotor) for rotor in spec.rotor_numbers()]


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
