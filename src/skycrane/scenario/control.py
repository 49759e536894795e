"""The `[control]` table: what turns the reference into rotor speeds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from .base import Number, Spec, Unit

Gain = Annotated[Number, Field(gt=0, le=1e5)]
Gains = tuple[Gain, Gain, Gain]
RotorSpeed = Annotated[Number, Field(ge=0, le=1e5), Unit("rad/s")]

ONE, EACH = "a speed in rad/s", "a list of speeds in rad/s"
Speeds = Annotated[
    Annotated[RotorSpeed, Tag(ONE)] | Annotated[tuple[RotorSpeed, ...], Tag(EACH)],
    Discriminator(lambda v: EACH if isinstance(v, (list, tuple)) else ONE),
]


class GeometricControl(Spec):
    """Geometric position and attitude control on SE(3); gains that are left out are computed from the vehicle."""

    kind: Literal["geometric"]
    position_gain: Gains | None = Field(
        default=None, description="acceleration per position error along world axes, 1/s^2"
    )
    velocity_gain: Gains | None = Field(
        default=None, description="acceleration per velocity error along world axes, 1/s"
    )
    attitude_gain: Gains | None = Field(
        default=None, description="angular acceleration per attitude error, body axes, 1/s^2"
    )
    rate_gain: Gains | None = Field(default=None, description="angular acceleration per rate error, body axes, 1/s")


class CascadedPidControl(Spec):
    """Position, velocity, attitude and rate loops, one inside the other, with gains computed from the vehicle."""

    kind: Literal["cascaded_pid"]


class RotorSpeedsControl(Spec):
    """No feedback: constant rotor speeds."""

    kind: Literal["rotor_speeds"]
    speeds: Speeds = Field(description="of all rotors, or of each")


ControlSpec = Annotated[GeometricControl | CascadedPidControl | RotorSpeedsControl, Field(discriminator="kind")]
