"""A vehicle's table in numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from skycrane.elements.airfoils import AnalyticPolar
from skycrane.elements.motors import Battery, ThrottleCurve
from skycrane.elements.rotor_aero import Blade, BladeElementRotors
from skycrane.elements.rotor_effects import AxialFlow, GroundEffect
from skycrane.elements.rotor_jets import Jet
from skycrane.elements.rotors import AbstractRotors, Rotors
from skycrane.vehicles.layout import Layout, alternating, canted_axes, coaxial, ring
from skycrane.vehicles.multirotor import Multirotor

from .rotors import CoaxialLayout, RingLayout, RotorNumbers, Spin
from .vehicle import VehicleSpec

SEA_LEVEL = 1.225
"""kg/m^3, density at which blade elements are compared with coefficients unless a scenario says otherwise."""


def multirotor(spec: VehicleSpec, density: float = SEA_LEVEL) -> Multirotor:
    """The vehicle that a table describes, as controllers and trims see it: blade elements by what they do in hover, and coefficients
    with a reference density by what they are in air of the given one."""
    numbers = spec.rotor_numbers()

    def each(name: str) -> np.ndarray:
        return np.array([getattr(rotor, name) for rotor in numbers], dtype=float)

    def given(name: str, missing: float) -> np.ndarray | None:
        values = [getattr(rotor, name) for rotor in numbers]
        if all(value is None for value in values):
            return None
        return np.array([missing if value is None else value for value in values], dtype=float)

    thrust, torque = each("thrust_coefficient"), each("torque_coefficient")
    if spec.rotor is not None and spec.rotor.blade is not None:
        thrust, torque = (np.array(each_) for each_ in _hover_coefficients(spec, density))
    elif numbers[0].reference_density is not None:
        thrust, torque = (density / each("reference_density") * coefficients for coefficients in (thrust, torque))
    center = None if spec.drag is None else (spec.drag.center or spec.com)
    return Multirotor.create(
        spec.mass,
        np.array(spec.inertia),
        layout_of(spec),
        thrust,
        torque,
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


def hover_speeds(craft: Multirotor, gravity: float) -> np.ndarray:
    """Rotor speeds (n,) of hover, rad/s."""
    return np.asarray(craft.hover_speeds(gravity))


def start_speeds(spec: VehicleSpec, hover: np.ndarray) -> np.ndarray:
    """Rotor speeds (n,) at the start, rad/s."""
    speeds = spec.initial.rotors
    if speeds == "hover":
        return hover
    return np.zeros(len(hover)) if speeds == "stopped" else np.array(speeds, dtype=float)


def steady_speeds(spec: VehicleSpec, hover: np.ndarray) -> np.ndarray:
    """Speeds (n,) rad/s to hold until there is something better: those given for the start, else of hover."""
    return hover if isinstance(spec.initial.rotors, str) else np.array(spec.initial.rotors, dtype=float)


def rotors_element(
    spec: VehicleSpec, craft: Multirotor, bodies: tuple[int, ...], speeds: np.ndarray, jet: Jet | None = None
) -> AbstractRotors:
    """The rotors of k alike vehicles with their options, at first at ``speeds`` (k, n) rad/s; ``jet``: how others feel them."""
    numbers, options = spec.rotor_numbers(), spec.rotor
    shared: dict[str, Any] = {
        "speed_min": craft.speed_min, "speed_max": craft.speed_max, "time_up": craft.time_up, "time_down": craft.time_down,
        "inertia": craft.rotor_inertia, "speed_initial": jnp.asarray(speeds), "throttle": throttle_of(spec), "battery": _battery(spec),
        "ground_effect": None if options is None or options.ground_effect is None else GroundEffect(options.ground_effect.lowest),
        "jet": jet,
    }  # fmt: skip
    place = (bodies, craft.position_B, craft.axis_B, craft.spin)
    if options is not None and options.blade is not None:
        return BladeElementRotors.create(*place, *_blade(spec), quadrature=options.blade.quadrature, **shared)

    def given(name: str, missing: float | None = None) -> np.ndarray | None:
        values = [getattr(rotor, name) for rotor in numbers]
        if all(value is None for value in values) or (missing is None and None in values):
            return None
        return np.array([missing if value is None else value for value in values], dtype=float)

    thrust, torque = (np.array([getattr(rotor, name) for rotor in numbers]) for name in ("thrust_coefficient", "torque_coefficient"))
    return Rotors.create(
        *place,
        thrust,
        torque,
        drag_coefficient=given("drag_coefficient", 0.0),
        reference_density=given("reference_density"),
        radius=given("radius"),
        axial_flow=None if options is None or options.axial_flow is None else AxialFlow(options.axial_flow.loading_slope),
        **shared,
    )


def throttle_of(spec: VehicleSpec) -> ThrottleCurve | None:
    """The curve of the vehicle's speed controllers, None where they follow speeds."""
    given = None if spec.rotor is None else spec.rotor.throttle
    if given is None:
        return None
    if given.curve is not None:
        return ThrottleCurve.create(*np.array(given.curve).T)
    assert given.linear_part is not None
    return ThrottleCurve.quadratic(max(rotor.speed_max for rotor in spec.rotor_numbers()), given.linear_part)


def _battery(spec: VehicleSpec) -> Battery | None:
    given = spec.battery
    if given is None:
        return None
    return Battery.create(
        3600.0 * given.capacity_ah, given.resistance, np.array(given.open_circuit), nominal=given.nominal, efficiency=given.efficiency,
        payload_power=given.payload_power, charge_initial=given.charge,
    )  # fmt: skip


def _blade(spec: VehicleSpec) -> tuple[Blade, AnalyticPolar]:
    assert spec.rotor is not None
    assert spec.rotor.blade is not None
    given, polar = spec.rotor.blade, spec.rotor.blade.polar
    radius = np.array([rotor.radius for rotor in spec.rotor_numbers()], dtype=float)
    blade = Blade(radius, np.array(given.station), np.array(given.chord), np.deg2rad(given.pitch_deg), float(given.blades))
    return blade, AnalyticPolar(
        lift_slope=polar.lift_slope,
        stall_angle=float(np.deg2rad(polar.stall_deg)),
        sharpness=polar.sharpness,
        drag_zero=polar.drag_zero,
        drag_rise=polar.drag_rise,
    )


@cache
def _hover_coefficients(spec: VehicleSpec, density: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """k_F and k_M of each rotor of blades in hover."""
    assert spec.rotor is not None
    assert spec.rotor.blade is not None
    layout = layout_of(spec)
    rotors = BladeElementRotors.create(
        (0,), layout.position_B, layout.axis_B, layout.spin, *_blade(spec), quadrature=spec.rotor.blade.quadrature
    )
    thrust, torque = eqx.filter_jit(lambda r: r.hover_coefficients(density))(rotors)
    return tuple(np.asarray(thrust)[0].tolist()), tuple(np.asarray(torque)[0].tolist())


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
