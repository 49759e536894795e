"""The `[environment]` table: gravity, air, wind and ground."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import Coordinate, Number, Spec, Unit, Velocity


class NoWind(Spec):
    """Still air."""

    kind: Literal["none"]


class SteadyWind(Spec):
    """The same wind everywhere and always, until a `wind` event changes it."""

    kind: Literal["steady"]
    velocity: Velocity = Field(description="of the air in world axes: [5, 0, 0] blows towards the east")


WindSpec = Annotated[NoWind | SteadyWind, Field(discriminator="kind")]


class GroundSpec(Spec):
    """A flat compliant ground under the feet: normal force k x (1 + d x') at depth x, and Coulomb friction."""

    height: Coordinate = Field(default=0.0, description="of the surface, world z")
    stiffness: Annotated[Number, Field(gt=0, le=1e9), Unit("N/m")] = Field(
        default=5000.0, description="k, under each foot"
    )
    dissipation: Annotated[Number, Field(ge=0, le=100), Unit("s/m")] = Field(
        default=0.5, description="d: the larger, the less a landing bounces"
    )
    friction: Annotated[Number, Field(ge=0, le=10), Unit("-")] = Field(default=0.8, description="Coulomb coefficient")


class EnvironmentSpec(Spec):
    """What surrounds the vehicles."""

    gravity: Annotated[Number, Field(ge=0, le=100), Unit("m/s^2")] = Field(default=9.81, description="downwards")
    air_density: Annotated[Number, Field(ge=0, le=100), Unit("kg/m^3")] = Field(default=1.225, description="for drag")
    wind: WindSpec = Field(default=NoWind(kind="none"), description="`none` or `steady`")
    ground: GroundSpec | None = Field(default=None, description="leave the table out for a world without ground")
