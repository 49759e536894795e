"""The `[control]` table: what turns the reference into rotor speeds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from .base import Count, Number, Spec, Time, Unit
from .tool import BacksteppingControl
from .water import SurgeControl

RotorSpeed = Annotated[Number, Field(ge=0, le=1e5), Unit("rad/s")]

ONE, EACH = "a speed in rad/s", "a list of speeds in rad/s"
Speeds = Annotated[
    Annotated[RotorSpeed, Tag(ONE)] | Annotated[tuple[RotorSpeed, ...], Tag(EACH)],
    Discriminator(lambda v: EACH if isinstance(v, (list, tuple)) else ONE),
]


Gain = Annotated[Number, Field(gt=0, le=1e5)]
Gain3 = tuple[Gain, Gain, Gain]


class GainsSpec(Spec):
    """Gains as accelerations, so that they do not depend on mass and inertia; what is left out is computed."""

    position: Gain3 | None = Field(default=None, description="1/s^2, along world axes")
    velocity: Gain3 | None = Field(default=None, description="1/s, along world axes")
    attitude: Gain3 | None = Field(default=None, description="1/s^2, about body axes")
    rate: Gain3 | None = Field(default=None, description="1/s, about body axes")
    position_integral: Gain3 | None = Field(default=None, description="1/s^3; without it there is no integral term")
    attitude_integral: Gain3 | None = Field(default=None, description="1/s^3; without it there is no integral term")


class FeedbackControl(Spec):
    """What controllers with feedback have in common. Gains left out follow from motor lag, inertia and rotor limits."""

    tilt_max_deg: Annotated[Number, Field(gt=0, lt=90), Unit("deg")] = Field(
        default=60.0, description="largest lean of the wanted force from the vertical"
    )
    outer_every: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=1, description="control periods from one run of the position loop to the next"
    )
    delay: Annotated[Time, Field(le=10)] = Field(
        default=0.0, description="from measurement to command, whole control periods; the rotors hover until then"
    )


class GeometricControl(FeedbackControl):
    """Geometric position and attitude control on SE(3), for vehicles that push along body z and tilt to move."""

    kind: Literal["geometric"]
    gains: GainsSpec = Field(default=GainsSpec(), description="where the computed ones do not suit")


class FullPoseControl(FeedbackControl):
    """Position and attitude apart, for vehicles that push every way; near their limits position comes first."""

    kind: Literal["full_pose"]
    gains: GainsSpec = Field(default=GainsSpec(), description="where the computed ones do not suit")


Derivative = Annotated[Number, Field(ge=0, le=1e3)]
Derivative3 = tuple[Derivative, Derivative, Derivative]
Integral = Annotated[Number, Field(ge=0, le=1e5)]
Integral3 = tuple[Integral, Integral, Integral]


class PidGainsSpec(Spec):
    """Gains of the four loops, each of which gives the next its set point; what is left out is computed."""

    position: Gain3 | None = Field(default=None, description="1/s, along world axes")
    velocity: Gain3 | None = Field(default=None, description="1/s, along world axes")
    velocity_integral: Integral3 | None = Field(default=None, description="1/s^2")
    velocity_derivative: Derivative3 | None = Field(default=None, description="no unit")
    attitude: Gain3 | None = Field(default=None, description="1/s, about body axes")
    rate: Gain3 | None = Field(default=None, description="1/s, about body axes")
    rate_integral: Integral3 | None = Field(default=None, description="1/s^2")
    rate_derivative: Derivative3 | None = Field(default=None, description="no unit")


class CascadedPidControl(FeedbackControl):
    """Position, velocity, attitude and rate loops one within the other, as flight controllers have them."""

    kind: Literal["cascaded_pid"]
    gains: PidGainsSpec = Field(default=PidGainsSpec(), description="where the computed ones do not suit")
    speed_max: Annotated[Number, Field(gt=0, le=1e3), Unit("m/s")] = Field(
        default=10.0, description="largest speed that the position loop asks for"
    )
    rate_max: Annotated[Number, Field(gt=0, le=1e3), Unit("rad/s")] = Field(
        default=6.0, description="largest rate that the attitude loop asks for, about each axis"
    )
    filter_time: Annotated[Number, Field(gt=0, le=10), Unit("s")] = Field(
        default=0.02, description="of the low-pass filters of the derivative terms"
    )


class RotorSpeedsControl(Spec):
    """No feedback: constant rotor speeds."""

    kind: Literal["rotor_speeds"]
    speeds: Speeds = Field(description="of all rotors, or of each")


ControlSpec = Annotated[
    GeometricControl | FullPoseControl | CascadedPidControl | BacksteppingControl | SurgeControl | RotorSpeedsControl,
    Field(discriminator="kind"),
]
