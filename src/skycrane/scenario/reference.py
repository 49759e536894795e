"""The `[reference]` table: where the vehicle should be, and which way it should point."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Coordinate, Degrees, Length, Number, Period, Position, Problem, Spec, Time, Unit, refuse_if_any

MAX_WAYPOINTS = 1000


class HoverReference(Spec):
    """Stay at one place."""

    kind: Literal["hover"]
    position: Position | None = Field(default=None, description="the default is where the vehicle starts")
    yaw_deg: Degrees | None = Field(default=None, description="the default is the yaw at the start")


class WaypointsReference(Spec):
    """Through points by minimum-jerk arcs, at rest at the first and at the last."""

    kind: Literal["waypoints"]
    points: tuple[Position, ...] = Field(description="2 to 1000 places, world axes")
    times: tuple[Time, ...] | None = Field(
        default=None, description="at which each point is reached; give this or `speed`"
    )
    speed: Annotated[Number, Field(gt=0, le=1e3), Unit("m/s")] | None = Field(
        default=None, description="mean speed from point to point"
    )
    yaw_deg: Degrees = Field(default=0.0, description="held throughout")

    @model_validator(mode="after")
    def _points_have_times(self) -> WaypointsReference:
        problems = []
        if not 2 <= len(self.points) <= MAX_WAYPOINTS:
            problems.append(Problem(("points",), f"expected 2 to {MAX_WAYPOINTS} points, found {len(self.points)}"))
        if (self.times is None) == (self.speed is None):
            problems.append(Problem(("times",), "give either times or speed"))
        if self.times is not None:
            if len(self.times) != len(self.points):
                problems.append(
                    Problem(("times",), f"expected {len(self.points)} times, one for each point", self.times)
                )
            for i, (before, after) in enumerate(zip(self.times, self.times[1:], strict=False)):
                if after <= before:
                    problems.append(
                        Problem(("times", i + 1), f"must be later than the time before it ({before:g} s)", after)
                    )
        elif self.speed is not None:
            for i, (here, there) in enumerate(zip(self.points, self.points[1:], strict=False)):
                if here == there:
                    problems.append(
                        Problem(("points", i + 1), "equals the point before it: give times to wait there", there)
                    )
        refuse_if_any(problems)
        return self


class CircleReference(Spec):
    """Round a horizontal circle for ever."""

    kind: Literal["circle"]
    center: tuple[Coordinate, Coordinate] = Field(default=(0.0, 0.0), description="x and y of the center, world axes")
    radius: Length = Field(description="of the circle")
    period: Period = Field(description="of one round")
    height: Coordinate = Field(description="world z")
    direction: Literal["ccw", "cw"] = Field(default="ccw", description="seen from above")
    yaw: Literal["fixed", "forward", "inward"] = Field(
        default="fixed", description="hold `yaw_deg`, look along the path, or look at the center"
    )
    yaw_deg: Degrees = Field(default=0.0, description="of a fixed yaw; otherwise added to the yaw of the path")


class FigureEightReference(Spec):
    """Round a lying figure of eight for ever: x = length/2 sin(p), y = width/2 sin(2p), p = 2 pi t / period."""

    kind: Literal["figure_eight"]
    center: tuple[Coordinate, Coordinate] = Field(default=(0.0, 0.0), description="x and y of the crossing, world axes")
    length: Length = Field(description="from end to end along x")
    width: Length = Field(description="from side to side along y")
    period: Period = Field(description="of one round")
    height: Coordinate = Field(description="world z")
    yaw_deg: Degrees = Field(default=0.0, description="held throughout")


ReferenceSpec = Annotated[
    HoverReference | WaypointsReference | CircleReference | FigureEightReference, Field(discriminator="kind")
]
