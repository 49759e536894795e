"""Options of the rotors: blades, throttle curve, corrections of the thrust; and the battery."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Count, Length, Number, Problem, Spec, Unit, refuse_if_any

MAX_POINTS = 64

RotorSpeed = Annotated[Number, Field(ge=0, le=1e5), Unit("rad/s")]
Fraction = Annotated[Number, Field(ge=0, le=1), Unit("-")]
BladeAngle = Annotated[Number, Field(ge=-90, le=90), Unit("deg")]


class PolarSpec(Spec):
    """The sections' coefficients over any angle of attack: thin airfoil, stall, flat plate. Defaults: physics of small propellers."""

    lift_slope: Annotated[Number, Field(gt=0, le=10), Unit("1/rad")] = Field(default=5.7, description="of attached flow")
    stall_deg: Annotated[Number, Field(gt=0, le=60), Unit("deg")] = Field(
        default=14.3239448783, description="angle of attack at which the flow separates; 0.25 rad by default"
    )
    sharpness: Annotated[Number, Field(gt=0, le=1000), Unit("1/rad")] = Field(default=40.0, description="of the stall")
    drag_zero: Annotated[Number, Field(ge=0, le=1), Unit("-")] = Field(default=0.023, description="drag coefficient without lift")
    drag_rise: Annotated[Number, Field(ge=0, le=100), Unit("1/rad^2")] = Field(
        default=0.5, description="drag coefficient = drag_zero + drag_rise angle^2 before the stall"
    )


class BladeSpec(Spec):
    """The blades of rotors of `kind = "blade_element"`: rigid, with uniform inflow from momentum theory."""

    blades: Annotated[Count, Field(ge=1, le=12)] = Field(default=2, description="of each rotor")
    station: tuple[Fraction, ...] = Field(description="r / R where chord and pitch are given, rising from the cut-out (above 0) to 1")
    chord: tuple[Length, ...] = Field(description="at the stations, linear between")
    pitch_deg: tuple[BladeAngle, ...] = Field(description="of the sections at the stations, linear between")
    polar: PolarSpec = Field(default=PolarSpec(), description="of the sections")
    quadrature: Literal["gauss", "light"] = Field(
        default="light", description="points on the disc: `light` has a third of those of `gauss`, within about 0.2 %"
    )

    @model_validator(mode="after")
    def _rows_fit(self) -> BladeSpec:
        problems, count = [], len(self.station)
        if not 2 <= count <= MAX_POINTS:
            problems.append(Problem(("station",), f"expected 2 to {MAX_POINTS} stations, found {count}"))
        elif self.station[0] <= 0 or self.station[-1] != 1:
            problems.append(Problem(("station",), "expected stations from above 0 to exactly 1", self.station))
        problems += rising(("station",), self.station)
        for name in ("chord", "pitch_deg"):
            if len(getattr(self, name)) != count:
                wanted = f"expected {count} entries, one for each station"
                problems.append(Problem((name,), wanted, getattr(self, name)))
        refuse_if_any(problems)
        return self


class ThrottleSpec(Spec):
    """A speed controller without speed feedback: what reaches it is a number from 0 to 1, and the battery's voltage counts.

    Controllers go on asking for speeds; the curve's inverse turns them into throttle."""

    curve: tuple[tuple[Fraction, RotorSpeed], ...] | None = Field(
        default=None, description="[throttle, speed in rad/s] from point to point, both rising, linear between"
    )
    linear_part: Fraction | None = Field(
        default=None, description="a: thrust / greatest = (1 - a) u^2 + a u, PX4's `THR_MDL_FAC` being 1 - a"
    )

    @model_validator(mode="after")
    def _one_curve(self) -> ThrottleSpec:
        problems = []
        if (self.curve is None) == (self.linear_part is None):
            problems.append(Problem(("curve",), "give either curve or linear_part"))
        if self.curve is not None:
            if not 2 <= len(self.curve) <= MAX_POINTS:
                problems.append(Problem(("curve",), f"expected 2 to {MAX_POINTS} points, found {len(self.curve)}"))
            for column, name in enumerate(("throttle", "speed")):
                for i, (before, after) in enumerate(pairwise(self.curve)):
                    if after[column] <= before[column]:
                        limit = f"the {name} must rise from point to point ({before[column]:g} before)"
                        problems.append(Problem(("curve", i + 1, column), limit, after[column]))
        refuse_if_any(problems)
        return self


class GroundEffectSpec(Spec):
    """More thrust near the ground (Cheeseman and Bennett 1955); needs the rotors' radius and `[environment.ground]`."""

    lowest: Annotated[Number, Field(gt=0.25, le=10), Unit("-")] = Field(
        default=0.5, description="smallest height, in radii, at which the formula is used; below, it would grow without bound"
    )


class AxialFlowSpec(Spec):
    """Less thrust in climb and more in descent, at the same speed; needs the rotors' radius. Blade elements have it anyway."""

    loading_slope: Annotated[Number, Field(gt=0, le=10), Unit("1/rad")] = Field(
        default=0.5, description="solidity times lift slope of the blades"
    )


class BatterySpec(Spec):
    """A battery whose voltage under load limits the speed of the rotors, and that runs empty. Needs motor lag."""

    capacity_ah: Annotated[Number, Field(gt=0, le=1e5), Unit("Ah")] = Field(description="capacity; 1 Ah = 3600 A s")
    resistance: Annotated[Number, Field(ge=0, le=100), Unit("ohm")] = Field(description="inside, with wiring")
    open_circuit: tuple[Annotated[Number, Field(gt=0, le=1e5), Unit("V")], ...] = Field(
        description="voltage without load at states of charge evenly spaced from empty to full"
    )
    nominal: Annotated[Number, Field(gt=0, le=1e5), Unit("V")] | None = Field(
        default=None, description="at which `speed_max` and throttle curve hold; by default the full battery's"
    )
    efficiency: Annotated[Number, Field(gt=0, le=1), Unit("-")] = Field(default=0.75, description="power at the shafts over electric power")
    payload_power: Annotated[Number, Field(ge=0, le=1e6), Unit("W")] = Field(default=0.0, description="of everything but the rotors")
    charge: Fraction = Field(default=1.0, description="state of charge at the start")

    @model_validator(mode="after")
    def _voltage_does_not_fall(self) -> BatterySpec:
        problems = []
        if not 2 <= len(self.open_circuit) <= MAX_POINTS:
            found = len(self.open_circuit)
            problems.append(Problem(("open_circuit",), f"expected 2 to {MAX_POINTS} voltages, found {found}"))
        for i, (before, after) in enumerate(pairwise(self.open_circuit)):
            if after < before:
                limit = f"must not fall with the charge ({before:g} V before)"
                problems.append(Problem(("open_circuit", i + 1), limit, after))
        refuse_if_any(problems)
        return self


def rising(path: tuple[str | int, ...], values: tuple[float, ...]) -> list[Problem]:
    """A problem for each value that is not above the one before it."""
    pairs = enumerate(pairwise(values))
    return [Problem((*path, i + 1), f"must be above the one before it ({a:g})", b) for i, (a, b) in pairs if b <= a]
