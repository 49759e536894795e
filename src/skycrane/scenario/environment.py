"""The `[environment]` table: gravity, air, wind and ground."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import (
    Coordinate,
    Count,
    Degrees,
    Flag,
    Length,
    Number,
    Period,
    Problem,
    Spec,
    Speed,
    Time,
    Unit,
    Velocity,
    refuse_if_any,
)
from .tool import SurfaceSpec
from .water import WaterSpec

MAX_RECORD = 20_000
"""Samples of a record in a scenario: enough for half an hour at 10 Hz, and little enough to be kept in every result."""


class NoWind(Spec):
    """Still air."""

    kind: Literal["none"]


class SteadyWind(Spec):
    """The same wind everywhere and always, until a `wind` event changes it."""

    kind: Literal["steady"]
    velocity: Velocity = Field(description="of the air in world axes: [5, 0, 0] blows towards the east")


class ShearWind(Spec):
    """A mean wind that grows with the height above ground, until a `wind` event changes it."""

    kind: Literal["shear"]
    velocity: Velocity = Field(description="of the air at the reference height, world axes")
    reference_height: Length = Field(default=10.0, description="above ground, at which `velocity` blows")
    law: Literal["power", "logarithm"] = Field(
        default="power", description="(h / h_ref)^`exponent`, or ln(h / z_0) / ln(h_ref / z_0) with the `roughness` z_0"
    )
    exponent: Annotated[Number, Field(ge=0, le=2), Unit("-")] = Field(
        default=1.0 / 7.0, description="of the power law; 1/7 over open country"
    )
    roughness: Annotated[Number, Field(gt=0, le=10), Unit("m")] = Field(
        default=0.03, description="z_0 of the logarithmic law: 0.01 mown grass, 0.03 fields, 0.5 suburbs"
    )

    @model_validator(mode="after")
    def _reference_above_the_ground(self) -> ShearWind:
        if self.law == "logarithm" and self.reference_height <= self.roughness:
            limit = f"must be above the roughness ({self.roughness:g} m)"
            refuse_if_any([Problem(("reference_height",), limit, self.reference_height)])
        return self


class GustWind(Spec):
    """One gust of the shape 1 - cos, at the same time everywhere."""

    kind: Literal["gust"]
    velocity: Velocity = Field(description="of the air at its height, world axes")
    start: Time = Field(description="of its beginning")
    rise: Period = Field(description="from nothing to its height, and as long to fade again")
    hold: Time = Field(default=0.0, description="at its height; 0 for a single bump")


class DrydenWind(Spec):
    """Dryden turbulence of MIL-F-8785C at low altitude, along a mean wind that is not part of it (add a `steady` one)."""

    kind: Literal["dryden"]
    wind_20ft: Annotated[Number, Field(ge=0, le=100), Unit("m/s")] = Field(
        description="mean wind 20 ft (6.1 m) above ground, which sets the strength: 7.7 light, 15 moderate, 23 severe"
    )
    height: Annotated[Number, Field(ge=0, le=304.8), Unit("m")] = Field(
        default=6.096, description="above ground, at which strength and length scales are taken; the model begins at 3 m"
    )
    heading_deg: Degrees = Field(default=0.0, description="towards which the mean wind blows, from east to north")
    airspeed: Annotated[Number, Field(ge=0, le=1e3), Unit("m/s")] = Field(
        default=0.0, description="at which the vehicle passes the turbulence; at least the mean wind is taken"
    )
    seed: Annotated[Count, Field(ge=0, le=2**32 - 1)] | None = Field(
        default=None, description="of this turbulence; by default that of the run"
    )
    frozen: Flag = Field(default=False, description="whether the pattern moves past the vehicles, instead of being the same everywhere")


class RecordWind(Spec):
    """A record of wind over time, the same everywhere; straight between its samples, constant before and after."""

    kind: Literal["record"]
    file: str | None = Field(
        default=None, description="CSV beside this file with a header of `time`, `wind_x`, `wind_y`, `wind_z` (s, m/s)"
    )
    samples: tuple[tuple[Coordinate, Speed, Speed, Speed], ...] | None = Field(
        default=None, description="the same in place: [time, x, y, z] in s and m/s, world axes"
    )
    scale: Annotated[Number, Field(ge=-1e3, le=1e3), Unit("-")] = Field(default=1.0, description="multiplies it")

    @model_validator(mode="after")
    def _times_rise(self) -> RecordWind:
        refuse_if_any(sample_problems(self.file, self.samples))
        return self


def sample_problems(file: str | None, samples: tuple[tuple[float, ...], ...] | None) -> list[Problem]:
    """What is wrong with a record of rows that begin with a time."""
    if samples is None:
        wanted = "missing: give file or samples" if file is None else "a file can be read only for a scenario in a file"
        return [Problem(("file",), wanted, file)]
    if not 2 <= len(samples) <= MAX_RECORD:
        return [Problem(("samples",), f"expected 2 to {MAX_RECORD} samples, found {len(samples)}")]
    for i, (before, after) in enumerate(pairwise(samples)):
        if not after[0] > before[0]:
            limit = f"must be later than the time before it ({before[0]:g} s)"
            return [Problem(("samples", i + 1, 0), limit, after[0])]
    return []


SingleWind = Annotated[NoWind | SteadyWind | ShearWind | GustWind | DrydenWind | RecordWind, Field(discriminator="kind")]


class SumWind(Spec):
    """Several winds added up, such as a shear with turbulence and a gust."""

    kind: Literal["sum"]
    parts: Annotated[tuple[SingleWind, ...], Field(min_length=1, max_length=16)] = Field(description="1 to 16 winds of the other kinds")


WindSpec = Annotated[NoWind | SteadyWind | ShearWind | GustWind | DrydenWind | RecordWind | SumWind, Field(discriminator="kind")]


class GroundSpec(Spec):
    """A flat compliant ground under the feet: normal force k x (1 + d x') at depth x, and Coulomb friction."""

    height: Coordinate = Field(default=0.0, description="of the surface, world z")
    stiffness: Annotated[Number, Field(gt=0, le=1e9), Unit("N/m")] = Field(default=5000.0, description="k, under each foot")
    dissipation: Annotated[Number, Field(ge=0, le=100), Unit("s/m")] = Field(
        default=0.5, description="d: the larger, the less a landing bounces"
    )
    friction: Annotated[Number, Field(ge=0, le=10), Unit("-")] = Field(default=0.8, description="Coulomb coefficient")


class EnvironmentSpec(Spec):
    """What surrounds the vehicles."""

    gravity: Annotated[Number, Field(ge=0, le=100), Unit("m/s^2")] = Field(default=9.81, description="downwards")
    air_density: Annotated[Number, Field(ge=0, le=100), Unit("kg/m^3")] = Field(
        default=1.225, description="for drag, and for rotors that know the density of their coefficients"
    )
    altitude: Annotated[Number, Field(ge=-500, le=11000), Unit("m")] | None = Field(
        default=None, description="of world height 0 above sea level: air of the standard atmosphere, for `air_density`"
    )
    temperature_offset: Annotated[Number, Field(ge=-60, le=60), Unit("K")] = Field(
        default=0.0, description="how much warmer than standard; needs `altitude`"
    )
    stratified: Flag = Field(default=False, description="whether the density falls with height; needs `altitude`")
    wind: WindSpec = Field(default=NoWind(kind="none"), description="still air by default")
    downwash: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="jets of rotors on loads and on other vehicles; `auto`: where a vehicle's place is above a box that it carries",
    )
    ground: GroundSpec | None = Field(default=None, description="leave the table out for a world without ground")
    surface: SurfaceSpec | None = Field(default=None, description="a wall or table that end-effectors touch; leave out for none")
    water: WaterSpec | None = Field(default=None, description="leave the table out for a world without water")

    @property
    def winds(self) -> tuple[NoWind | SteadyWind | ShearWind | GustWind | DrydenWind | RecordWind, ...]:
        """The parts of the wind, one or several."""
        return self.wind.parts if isinstance(self.wind, SumWind) else (self.wind,)

    @property
    def mean_wind(self) -> int | None:
        """Which of the parts a `wind` event changes: the steady or sheared one, if there is exactly one."""
        found = [i for i, wind in enumerate(self.winds) if isinstance(wind, (SteadyWind, ShearWind))]
        return found[0] if len(found) == 1 else None

    @model_validator(mode="after")
    def _one_density(self) -> EnvironmentSpec:
        problems = []
        given = self.model_fields_set
        if self.altitude is not None and "air_density" in given:
            problems.append(Problem(("air_density",), "give air_density or altitude, not both"))
        for key in ("temperature_offset", "stratified"):
            if self.altitude is None and getattr(self, key):
                problems.append(Problem((key,), "needs altitude: the standard atmosphere from there on"))
        refuse_if_any(problems)
        return self
