"""The `[reference]` table: where the vehicle should be, and which way it should point."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from .base import Coordinate, Degrees, Length, Number, Period, Position, Problem, Spec, Time, Unit, refuse_if_any
from .environment import sample_problems
from .water import SurgeStepsReference, TowReference

MAX_WAYPOINTS = 1000
MAX_PROBLEMS = 20


class HoverReference(Spec):
    """Stay at one place."""

    kind: Literal["hover"]
    position: Position | None = Field(default=None, description="the default is where the vehicle starts")
    yaw_deg: Degrees | None = Field(default=None, description="the default is the yaw at the start")


ONE, EACH = "a yaw in deg", "a list of yaws in deg"
Yaws = Annotated[
    Annotated[Degrees, Tag(ONE)] | Annotated[tuple[Degrees, ...], Tag(EACH)],
    Discriminator(lambda v: EACH if isinstance(v, (list, tuple)) else ONE),
]


class WaypointsReference(Spec):
    """The smoothest path through points, at rest at the first and at the last, where it stays."""

    kind: Literal["waypoints"]
    points: tuple[Position, ...] = Field(description="2 to 1000 places, world axes")
    times: tuple[Time, ...] | None = Field(default=None, description="at which each point is reached; give this or `speed`")
    speed: Annotated[Number, Field(gt=0, le=1e3), Unit("m/s")] | None = Field(default=None, description="mean speed from point to point")
    minimize: Literal["jerk", "snap"] = Field(default="jerk", description="what the path has least of")
    yaw_deg: Yaws = Field(default=0.0, description="held throughout, or one for each point")

    @model_validator(mode="after")
    def _points_have_times(self) -> WaypointsReference:
        problems = []
        if not 2 <= len(self.points) <= MAX_WAYPOINTS:
            problems.append(Problem(("points",), f"expected 2 to {MAX_WAYPOINTS} points, found {len(self.points)}"))
        if (self.times is None) == (self.speed is None):
            problems.append(Problem(("times",), "give either times or speed"))
        if self.times is not None:
            if len(self.times) != len(self.points):
                problems.append(Problem(("times",), f"expected {len(self.points)} times, one for each point", self.times))
            for i, (before, after) in enumerate(zip(self.times, self.times[1:], strict=False)):
                if after <= before:
                    problems.append(Problem(("times", i + 1), f"must be later than the time before it ({before:g} s)", after))
        elif self.speed is not None:
            for i, (here, there) in enumerate(zip(self.points, self.points[1:], strict=False)):
                if here == there:
                    problems.append(Problem(("points", i + 1), "equals the point before it: give times to wait there", there))
        if not isinstance(self.yaw_deg, float) and len(self.yaw_deg) != len(self.points):
            wanted = f"expected one yaw, or {len(self.points)}: one for each point"
            problems.append(Problem(("yaw_deg",), wanted, self.yaw_deg))
        refuse_if_any(problems)
        return self


class RoundReference(Spec):
    """What closed paths have in common."""

    center: tuple[Coordinate, Coordinate] = Field(default=(0.0, 0.0), description="x and y of the middle, world axes")
    height: Coordinate = Field(description="world z")
    period: Period = Field(description="of one round")
    ramp: Time = Field(default=0.0, description="in which the speed rises from rest; 0 for full speed at once")
    phase_deg: Degrees = Field(default=0.0, description="where on the path it begins")
    yaw_deg: Degrees = Field(default=0.0, description="of a `fixed` heading; otherwise added to that of the path")


class CircleReference(RoundReference):
    """Round a horizontal circle for ever, from center + radius (cos phase, sin phase) on."""

    kind: Literal["circle"]
    radius: Length = Field(description="of the circle")
    direction: Literal["ccw", "cw"] = Field(default="ccw", description="seen from above")
    heading: Literal["fixed", "forward", "inward"] = Field(default="fixed", description="the same always, along the path, or to the center")


class FigureEightReference(RoundReference):
    """Round a lying figure of eight for ever: x = length/2 sin(phase), y = width/2 sin(2 phase) from the center."""

    kind: Literal["figure_eight"]
    length: Length = Field(description="from end to end along x")
    width: Length = Field(description="from side to side along y")
    heading: Literal["fixed", "forward"] = Field(default="fixed", description="the same always, or along the path")


class PathReference(Spec):
    """A recorded path, through all its samples with a smooth velocity and acceleration; it stands still at its ends."""

    kind: Literal["path"]
    file: str | None = Field(default=None, description="CSV beside this file with a header of `time`, `x`, `y`, `z` and perhaps `yaw_deg`")
    samples: tuple[Annotated[tuple[Number, ...], Field(min_length=4, max_length=5)], ...] | None = Field(
        default=None, description="the same in place: [time, x, y, z] in s and m, or with yaw in deg as the fifth"
    )

    @model_validator(mode="after")
    def _times_rise(self) -> PathReference:
        problems = sample_problems(self.file, self.samples)
        for i, row in enumerate(self.samples or ()):
            if len(row) != len(self.samples[0]):  # type: ignore[index]
                problems.append(Problem(("samples", i), "expected as many numbers in every sample", row))
            elif row[0] < 0 or max(map(abs, row)) > 1e6:
                problems.append(Problem(("samples", i), "expected times from 0 on and numbers within +-1e+06", row))
        refuse_if_any(problems[:MAX_PROBLEMS])
        return self


class TumbleReference(Spec):
    """Turn about all axes while the place is held, or moves round a circle; for vehicles that push every way.

    The attitude is roll, pitch and yaw that grow steadily: R = Rz(yaw) Ry(pitch) Rx(roll)."""

    kind: Literal["tumble"]
    position: Position | None = Field(default=None, description="the default is where the vehicle starts")
    roll_period: Period | None = Field(default=None, description="of one turn about body x; without it none")
    pitch_period: Period | None = Field(default=None, description="of one turn about the pitch axis; without it none")
    yaw_period: Period | None = Field(default=None, description="of one turn about world z; without it none")
    start: Time = Field(default=0.0, description="until which the vehicle hovers level")
    ramp: Time = Field(default=2.0, description="in which the turning gets up to speed")
    radius: Annotated[Number, Field(ge=0, le=1e3), Unit("m")] = Field(
        default=0.0, description="of a horizontal circle round `position`; 0 to stay there"
    )
    circle_period: Period = Field(default=10.0, description="of one round of that circle")


class SweepReference(Spec):
    """Round a horizontal circle while roll, pitch and yaw swing; for vehicles that push every way."""

    kind: Literal["sweep"]
    center: Position = Field(description="of the circle, world axes")
    radius: Annotated[Number, Field(ge=0, le=1e3), Unit("m")] = Field(default=0.5, description="of the circle; 0 to stay there")
    period: Period = Field(default=12.0, description="of one round")
    roll_deg: Degrees = Field(default=0.0, description="how far roll swings each way")
    roll_period: Period = Field(default=10.0, description="of its swing")
    pitch_deg: Degrees = Field(default=0.0, description="how far pitch swings each way")
    pitch_period: Period = Field(default=12.0, description="of its swing")
    yaw_deg: Degrees = Field(default=0.0, description="how far yaw swings each way")
    yaw_period: Period = Field(default=12.0, description="of its swing")
    ramp: Time = Field(default=0.0, description="in which the motion gets up to speed, and comes to rest")
    stop: Period | None = Field(default=None, description="when it begins to come to rest; never by default")


ReferenceSpec = Annotated[
    HoverReference
    | WaypointsReference
    | CircleReference
    | FigureEightReference
    | PathReference
    | TumbleReference
    | SweepReference
    | SurgeStepsReference
    | TowReference,
    Field(discriminator="kind"),
]
