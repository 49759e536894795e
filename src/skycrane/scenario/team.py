"""The `[team]` table: several vehicles that carry one load, flown together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import Flag, Length, Name, Number, Spec, Unit
from .control import Gain, Gain3, Integral, Integral3
from .reference import HoverReference, ReferenceSpec

Edge = tuple[Name, Name]


class TeamSpecBase(Spec):
    """What every team has."""

    load: Name = Field(description="the load that follows the reference")
    vehicles: tuple[Name, ...] | None = Field(default=None, description="of the team; by default all with a cable to the load")
    reference: ReferenceSpec = Field(default=HoverReference(kind="hover"), description="where the load should be")


class FormationGainsSpec(Spec):
    """Gains of the three loops of arXiv 2305.09175; along world axes, or about body axes."""

    position: Integral3 = Field(default=(0.7, 0.7, 1.0), description="K_r, part of the load's error that moves the leader point")
    integral: Integral3 = Field(default=(0.0, 0.0, 0.0), description="K_i, 1/s")
    velocity: Integral3 = Field(default=(0.7, 0.7, 1.0), description="K_v")
    surface: Gain3 = Field(default=(1.0, 1.0, 1.0), description="Lambda of the sliding surface, 1/s")
    bound: Gain3 = Field(default=(2.0, 2.0, 2.0), description="K, expected bound of disturbances, m/s^2")
    reach: Gain3 = Field(default=(4.0, 4.0, 4.0), description="M, speed of approach to the surface, m/s^2")
    layer: Gain3 = Field(default=(2.0, 2.0, 2.0), description="phi, half width of the boundary layer, m/s")
    attitude: Gain | None = Field(default=None, description="k_p, N m/rad; computed where it is left out")
    rate: Gain | None = Field(default=None, description="k_d, N m s/rad; computed where it is left out")
    attitude_integral: Integral | None = Field(default=None, description="k_i, N m/(rad s); computed where it is left out")


class FormationTeam(TeamSpecBase):
    """Sliding-mode formation over a communication graph, as in arXiv 2305.09175: each vehicle keeps its place above its cable."""

    kind: Literal["formation"]
    edges: tuple[Edge, ...] | None = Field(default=None, description="pairs of vehicles that hear each other; by default a ring")
    gains: FormationGainsSpec = Field(default=FormationGainsSpec(), description="of the three loops")
    carries: Flag = Field(
        default=True,
        description="whether each vehicle is told its share of load and cable; the seed does not, which its gains cannot make good",
    )
    tilt_max_deg: Annotated[Number, Field(gt=0, lt=80), Unit("deg")] = Field(default=30.0, description="of each of roll and pitch")


class PayloadGainsSpec(Spec):
    """Gains as accelerations; along world axes, or about body axes."""

    position: Gain3 = Field(default=(0.8, 0.8, 1.5), description="of the load, 1/s^2")
    velocity: Gain3 = Field(default=(1.7, 1.7, 2.2), description="of the load, 1/s")
    integral: Integral3 = Field(default=(0.2, 0.2, 0.3), description="of the load, 1/s^3")
    attitude: Gain3 = Field(default=(2.0, 2.0, 1.0), description="of the load, 1/s^2")
    rate: Gain3 = Field(default=(2.4, 2.4, 1.8), description="of the load, 1/s")
    attitude_integral: Integral3 = Field(default=(0.2, 0.2, 0.1), description="of the load, 1/s^3")
    direction: Gain = Field(default=12.0, description="of the cables, 1/s^2")
    swing: Gain = Field(default=6.0, description="of the cables, 1/s")
    stretch: Integral = Field(default=2.2, description="against stretching of the cables, 1/s")


class PayloadTeam(TeamSpecBase):
    """Geometric control of the load's pose, its wrench shared out as cable tensions that keep the vehicles apart."""

    kind: Literal["payload"]
    gains: PayloadGainsSpec = Field(default=PayloadGainsSpec(), description="of load and cables")
    clearance: Length = Field(default=1.0, description="least distance between vehicles: cables lean outwards as far as it takes")
    tension_min: Annotated[Number, Field(ge=0, le=1e6), Unit("N")] = Field(default=0.5, description="least upward pull of a cable")
    tilt_max_deg: Annotated[Number, Field(gt=0, lt=80), Unit("deg")] = Field(
        default=35.0, description="of a vehicle's force from the vertical"
    )


TeamSpec = Annotated[FormationTeam | PayloadTeam, Field(discriminator="kind")]
