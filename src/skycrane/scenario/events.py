"""The `[[events]]` list: what happens during the run, at given times."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Force, Impulse, Number, Period, Position, Spec, Time, Unit, Velocity

MAX_EVENTS = 1000


class RotorFailureEvent(Spec):
    """A rotor loses thrust and moment from this time on."""

    kind: Literal["rotor_failure"]
    time: Time = Field(description="from the start of the run")
    vehicle: str | None = Field(default=None, description="which vehicle; may be left out where there is only one")
    rotor: Annotated[Count, Field(ge=1)] = Field(description="its number, counted from 1: rotor 2 of `uav` is `uav/2`")
    remaining: Annotated[Number, Field(ge=0, le=1), Unit("-")] = Field(
        default=0.0, description="part of thrust and moment that is left: 0 dead, 1 whole again"
    )


class ImpulseEvent(Spec):
    """A blow: momentum added at one instant."""

    kind: Literal["impulse"]
    time: Time = Field(description="from the start of the run")
    body: str | None = Field(default=None, description="which body; may be left out where there is only one")
    linear: tuple[Impulse, Impulse, Impulse] = Field(description="world axes")
    point: Position = Field(default=(0.0, 0.0, 0.0), description="where it hits, body axes from the reference point")


class PushEvent(Spec):
    """A steady force for a while, at the reference point."""

    kind: Literal["push"]
    time: Time = Field(description="of its beginning, from the start of the run")
    duration: Period = Field(description="how long it lasts")
    body: str | None = Field(default=None, description="which body; may be left out where there is only one")
    force: tuple[Force, Force, Force] = Field(description="world axes")


class WindEvent(Spec):
    """From this time on a `steady` wind has another velocity."""

    kind: Literal["wind"]
    time: Time = Field(description="from the start of the run")
    velocity: Velocity = Field(description="of the air in world axes")


EventSpec = Annotated[RotorFailureEvent | ImpulseEvent | PushEvent | WindEvent, Field(discriminator="kind")]
