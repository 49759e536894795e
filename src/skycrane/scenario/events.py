"""The `[[events]]` list: what happens during the run, at given times."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Count, Degrees, Flag, Force, Impulse, Length, Number, Period, Position, Problem, Spec, Time, Unit, Velocity, refuse
from .tool import Torque

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
    detected_after: Time | None = Field(default=None, description="when the controller's allocation learns of it; without it never")


class ImpulseEvent(Spec):
    """A blow: momentum added at one instant."""

    kind: Literal["impulse"]
    time: Time = Field(description="from the start of the run")
    body: str | None = Field(default=None, description="which body; may be left out where there is only one")
    linear: tuple[Impulse, Impulse, Impulse] = Field(description="world axes")
    point: Position = Field(default=(0.0, 0.0, 0.0), description="where it hits, body axes from the reference point")


class PushEvent(Spec):
    """A steady force, and perhaps a torque, for a while, at the reference point or at the end-effector."""

    kind: Literal["push"]
    time: Time = Field(description="of its beginning, from the start of the run")
    duration: Period = Field(description="how long it lasts")
    body: str | None = Field(default=None, description="which body; may be left out where there is only one")
    force: tuple[Force, Force, Force] = Field(description="world axes")
    torque: tuple[Torque, Torque, Torque] = Field(default=(0.0, 0.0, 0.0), description="world axes")
    end_effector: Flag = Field(default=False, description="whether it acts at the body's end-effector")


class WindEvent(Spec):
    """From this time on the `steady` or `shear` wind has another velocity."""

    kind: Literal["wind"]
    time: Time = Field(description="from the start of the run")
    velocity: Velocity = Field(description="of the air in world axes")


class GustEvent(Spec):
    """A gust of the shape 1 - cos, on top of any other wind."""

    kind: Literal["gust"]
    time: Time = Field(description="of its beginning, from the start of the run")
    velocity: Velocity = Field(description="of the air at its height, world axes")
    rise: Period = Field(description="from nothing to its height, and as long to fade again")
    hold: Time = Field(default=0.0, description="at its height; 0 for a single bump")


class CutEvent(Spec):
    """A cable is cut, or let go, at one of its ends."""

    kind: Literal["cut"]
    time: Time = Field(description="from the start of the run")
    cable: str = Field(description="which cable")
    at: Literal["upper", "lower"] = Field(default="lower", description="the end that comes loose")


class WinchEvent(Spec):
    """From this time on the winch of a cable goes for another length."""

    kind: Literal["winch"]
    time: Time = Field(description="from the start of the run")
    cable: str = Field(description="which cable; it needs a `winch`")
    length: Length = Field(description="unstretched length to reel to")


class TargetEvent(Spec):
    """From this time on a vehicle with a `hover` reference has another place to be."""

    kind: Literal["target"]
    time: Time = Field(description="from the start of the run")
    vehicle: str | None = Field(
        default=None, description="which vehicle, or a team's load; may be left out where there is only one, or a team"
    )
    position: Position | None = Field(default=None, description="world axes; the old one by default")
    yaw_deg: Degrees | None = Field(default=None, description="the old one by default")

    @model_validator(mode="after")
    def _something_changes(self) -> TargetEvent:
        if self.position is None and self.yaw_deg is None:
            refuse([Problem(("position",), "missing: give position or yaw_deg")])
        return self


EventSpec = Annotated[
    RotorFailureEvent | ImpulseEvent | PushEvent | WindEvent | GustEvent | TargetEvent | CutEvent | WinchEvent, Field(discriminator="kind")
]
