"""Rotors and where they sit: `[vehicle.rotor]`, `[vehicle.layout]` and `[[vehicle.rotors]]`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Coordinate, Count, Degrees, Length, Number, Position, Problem, Spec, Unit, refuse_if_any
from .rotor_options import AxialFlowSpec, BladeSpec, GroundEffectSpec, ThrottleSpec

MAX_ROTORS = 64

Spin = Literal["ccw", "cw"]
TimeConstant = Annotated[Number, Field(ge=1e-4, le=100), Unit("s")]


class RotorCoefficients(Spec):
    """What one rotor does at a speed W: thrust k_F W^2 along its axis, and a reaction moment against its spin."""

    thrust_coefficient: Annotated[Number, Field(gt=0, le=10), Unit("N s^2")] | None = Field(
        default=None, description="k_F: thrust = k_F W^2 with the speed W in rad/s"
    )
    torque_coefficient: Annotated[Number, Field(ge=0, le=10), Unit("N m s^2")] | None = Field(
        default=None, description="k_M: reaction moment = k_M W^2; give this or `moment_ratio`"
    )
    moment_ratio: Annotated[Number, Field(ge=0, le=10), Unit("m")] | None = Field(
        default=None, description="k_M / k_F (PX4 `CA_ROTORi_KM`, Gazebo `momentConstant`)"
    )
    speed_min: Annotated[Number, Field(ge=0, le=1e5), Unit("rad/s")] | None = Field(
        default=None, description="slowest speed that a command asks for; 0 by default"
    )
    speed_max: Annotated[Number, Field(gt=0, le=1e5), Unit("rad/s")] | None = Field(default=None, description="fastest speed")
    time_constant: TimeConstant | None = Field(
        default=None, description="of the first-order motor lag; without any the speed follows at once"
    )
    time_up: TimeConstant | None = Field(default=None, description="motor lag while the speed rises; needs `time_down`")
    time_down: TimeConstant | None = Field(default=None, description="motor lag while the speed falls; needs `time_up`")
    inertia: Annotated[Number, Field(ge=0, le=1e3), Unit("kg m^2")] | None = Field(
        default=None, description="of the turning parts about the axis; given, the gyroscopic and spin-up moments count"
    )
    radius: Length | None = Field(
        default=None, description="of the disc; drawn, and needed by the options of `[vehicle.rotor]` that say so"
    )
    drag_coefficient: Annotated[Number, Field(ge=0, le=10), Unit("kg/rad")] | None = Field(
        default=None, description="k_D: force against the hub's airspeed in the disc, k_D times rotor speed times airspeed"
    )
    reference_density: Annotated[Number, Field(gt=0, le=100), Unit("kg/m^3")] | None = Field(
        default=None, description="density that the coefficients hold at; without it that of the air does not count"
    )

    @model_validator(mode="after")
    def _consistent(self) -> RotorCoefficients:
        problems = []
        if self.torque_coefficient is not None and self.moment_ratio is not None:
            problems.append(Problem(("moment_ratio",), "give torque_coefficient or moment_ratio, not both"))
        if self.time_constant is not None and (self.time_up is not None or self.time_down is not None):
            problems.append(Problem(("time_constant",), "give time_constant, or time_up and time_down, not both"))
        if (self.time_up is None) != (self.time_down is None):
            missing = "time_up" if self.time_up is None else "time_down"
            problems.append(Problem((missing,), "missing: time_up and time_down go together"))
        if self.speed_min is not None and self.speed_max is not None and self.speed_min >= self.speed_max:
            problems.append(Problem(("speed_min",), f"must be below speed_max ({self.speed_max:g} rad/s)", self.speed_min))
        refuse_if_any(problems)
        return self

    def over(self, default: RotorCoefficients | None) -> RotorNumbers:
        """These values where given, the vehicle's `[vehicle.rotor]` elsewhere. ValueError names what neither gives."""

        def pick(*names: str) -> tuple[float | None, ...]:
            """The group of keys from the first of the two tables that has any of it."""
            for table in (self, default):
                if table is not None:
                    values = tuple(getattr(table, name) for name in names)
                    if any(value is not None for value in values):
                        return values
            return (None,) * len(names)

        (k_F,) = pick("thrust_coefficient")
        k_M, ratio = pick("torque_coefficient", "moment_ratio")
        (speed_max,) = pick("speed_max")
        (speed_min,) = pick("speed_min")
        both, up, down = pick("time_constant", "time_up", "time_down")
        (inertia,) = pick("inertia")
        (radius,) = pick("radius")
        (drag,) = pick("drag_coefficient")
        (density,) = pick("reference_density")
        if any(isinstance(table, RotorDefaults) and table.blade is not None for table in (self, default)):
            # Follows from the blades when the vehicle is built.
            k_F = k_M = math.nan
        if k_F is not None and k_M is None and ratio is not None:
            k_M = ratio * k_F
        missing = []
        if k_F is None:
            missing.append("thrust_coefficient")
        if k_M is None and ratio is None:
            missing.append("torque_coefficient or moment_ratio")
        if speed_max is None:
            missing.append("speed_max")
        if k_F is None or k_M is None or speed_max is None:
            raise ValueError("missing: " + ", ".join(missing))
        up, down = (both, both) if both is not None else (up, down)
        return RotorNumbers(k_F, k_M, speed_min or 0.0, speed_max, up, down, inertia, radius, drag, density)


class RotorDefaults(RotorCoefficients):
    """The rotors of a vehicle: coefficients of every rotor that has none of its own, and options of them all."""

    kind: Literal["quadratic", "blade_element"] = Field(
        default="quadratic", description="thrust = k_F W^2, or from the shape of the `blade` in any flow"
    )
    blade: BladeSpec | None = Field(default=None, description='of `kind = "blade_element"`, in place of thrust and torque coefficients')
    throttle: ThrottleSpec | None = Field(default=None, description="leave out for speed-controlled motors")
    ground_effect: GroundEffectSpec | None = Field(default=None, description="leave out for none")
    axial_flow: AxialFlowSpec | None = Field(default=None, description="leave out for thrust that only speed decides")

    @model_validator(mode="after")
    def _blades_replace_coefficients(self) -> RotorDefaults:
        problems = []
        if self.kind == "quadratic":
            if self.blade is not None:
                problems.append(Problem(("blade",), 'needs kind = "blade_element" beside it'))
        else:
            if self.blade is None:
                problems.append(Problem(("blade",), 'missing; kind = "blade_element" needs this table'))
            if self.radius is None:
                problems.append(Problem(("radius",), "missing; blade elements need it, in m"))
            problems += quadratic_keys((), self)
            if self.axial_flow is not None:
                problems.append(Problem(("axial_flow",), "blade elements have it anyway: leave it out"))
        refuse_if_any(problems)
        return self


QUADRATIC = ("thrust_coefficient", "torque_coefficient", "moment_ratio", "drag_coefficient", "reference_density")


def quadratic_keys(path: tuple[str | int, ...], rotor: RotorCoefficients) -> list[Problem]:
    """A problem for each coefficient that blade elements leave no room for."""
    given = ((name, getattr(rotor, name)) for name in QUADRATIC)
    return [
        Problem((*path, name), "follows from the blades of blade-element rotors: leave it out", value)
        for name, value in given
        if value is not None
    ]


@dataclass(frozen=True)
class RotorNumbers:
    """All coefficients of one rotor, SI."""

    thrust_coefficient: float
    torque_coefficient: float
    speed_min: float
    speed_max: float
    time_up: float | None
    time_down: float | None
    inertia: float | None
    radius: float | None
    drag_coefficient: float | None
    reference_density: float | None


class CantSpec(Spec):
    """How far the thrust axis leans away from body z, by two turns: first flapwise, then torsional."""

    torsional_deg: Annotated[Degrees, Field(ge=-90, le=90)] = Field(
        default=0.0, description="turn about the outward arm; a positive one leans the thrust clockwise seen from above"
    )
    flapwise_deg: Annotated[Degrees, Field(ge=-90, le=90)] = Field(
        default=0.0, description="turn about the tangent; a positive one leans the thrust outward"
    )


class RingCantSpec(CantSpec):
    """Cant of a ring: the same angles for each arm, with the sign kept or alternating from rotor to rotor."""

    torsional_sign: Literal["alternating", "same"] = Field(default="alternating", description="from rotor to rotor")
    flapwise_sign: Literal["alternating", "same"] = Field(default="same", description="from rotor to rotor")


class RingLayout(Spec):
    """Rotors evenly spaced on a circle."""

    kind: Literal["ring"]
    rotors: Annotated[Count, Field(ge=1, le=MAX_ROTORS)] = Field(description="how many")
    arm: Length = Field(description="from the body's z axis to each rotor")
    first_angle_deg: Degrees = Field(default=0.0, description="of rotor 1, from forward towards left")
    order: Spin = Field(default="ccw", description="way round in which the rotors are counted, seen from above")
    height: Coordinate = Field(default=0.0, description="of the rotors, body z")
    spins: tuple[Spin, ...] | None = Field(default=None, description="of each rotor; by default alternating from `first_spin`")
    first_spin: Spin = Field(default="ccw", description="of rotor 1, seen from above")
    cant: RingCantSpec = Field(default=RingCantSpec(), description="lean of the thrust axes")

    @property
    def rotor_count(self) -> int:
        """How many rotors."""
        return self.rotors

    @model_validator(mode="after")
    def _one_spin_each(self) -> RingLayout:
        if self.spins is not None and len(self.spins) != self.rotors:
            refuse_if_any([Problem(("spins",), f"expected {self.rotors} entries, one for each rotor", self.spins)])
        return self


class CoaxialLayout(Spec):
    """Pairs of opposite spin on each arm of a ring: rotors 1 and 2 are the upper and the lower one of the first arm."""

    kind: Literal["coaxial"]
    arms: Annotated[Count, Field(ge=1, le=MAX_ROTORS // 2)] = Field(description="how many")
    arm: Annotated[Number, Field(ge=0, le=1e3), Unit("m")] = Field(description="length; 0 for a single coaxial pair")
    gap: Length = Field(description="between the upper and the lower rotor")
    first_angle_deg: Degrees = Field(default=0.0, description="of arm 1, from forward towards left")
    order: Spin = Field(default="ccw", description="way round in which the arms are counted, seen from above")
    height: Coordinate = Field(default=0.0, description="of the middle between upper and lower rotors, body z")
    first_spin: Spin = Field(default="ccw", description="of rotor 1; the upper rotors alternate from arm to arm")

    @property
    def rotor_count(self) -> int:
        """How many rotors."""
        return 2 * self.arms


LayoutSpec = Annotated[RingLayout | CoaxialLayout, Field(discriminator="kind")]


class RotorSpec(RotorCoefficients):
    """One entry of `[[vehicle.rotors]]`: its place, axis and spin, and the coefficients in which it differs."""

    position: Position = Field(description="of the hub, body axes")
    spin: Spin = Field(description="seen from above, that is, looking against the thrust")
    axis: tuple[Number, Number, Number] | None = Field(
        default=None, description="thrust direction in body axes, of any length but zero; the default is [0, 0, 1]"
    )
    cant: CantSpec | None = Field(default=None, description="lean of the thrust axis about the rotor's arm, instead of `axis`")

    @model_validator(mode="after")
    def _has_a_direction(self) -> RotorSpec:
        problems = []
        if self.axis is not None:
            if self.cant is not None:
                problems.append(Problem(("cant",), "give axis or cant, not both"))
            if not 1e-6 < max(abs(component) for component in self.axis) < 1e6:
                problems.append(Problem(("axis",), "expected a direction: its length must not be zero", self.axis))
        elif self.cant is not None and self.position[0] == 0 and self.position[1] == 0:
            problems.append(Problem(("cant",), "a rotor on the body's z axis has no arm to turn about: give axis instead"))
        refuse_if_any(problems)
        return self
