"""The `[loads.NAME]` tables: rigid bodies that are carried."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Degrees, Length, Mass, Name, Position, Problem, Rate, Spec, Velocity, refuse_if_any
from .vehicle import MAX_FEET, DragSpec, Inertia, VisualSpec, inertia_problems

MAX_PARTS = 64


class BoxShape(Spec):
    """A solid box; the reference point is its centre."""

    kind: Literal["box"]
    size: tuple[Length, Length, Length] = Field(description="edges along x, y, z")


class CylinderShape(Spec):
    """A solid cylinder; the reference point is its centre."""

    kind: Literal["cylinder"]
    radius: Length = Field(description="of the cylinder")
    height: Length = Field(description="along its axis")
    axis: Literal["x", "y", "z"] = Field(default="z", description="body axis along which it lies")


class ConeShape(Spec):
    """A solid cone; the reference point is its centre of mass, a quarter of the height from the base."""

    kind: Literal["cone"]
    radius: Length = Field(description="of the base")
    height: Length = Field(description="from base to tip")
    axis: Literal["x", "y", "z"] = Field(default="z", description="body axis that the tip points along")


class SphereShape(Spec):
    """A solid ball; the reference point is its centre."""

    kind: Literal["sphere"]
    radius: Length = Field(description="of the ball")


ShapeSpec = Annotated[BoxShape | CylinderShape | ConeShape | SphereShape, Field(discriminator="kind")]


class PartSpec(Spec):
    """A homogeneous part of a composite load."""

    mass: Mass = Field(description="of the part")
    shape: ShapeSpec = Field(description="solid shape")
    position: Position = Field(default=(0.0, 0.0, 0.0), description="of the part's reference point, load axes")
    attitude_deg: tuple[Degrees, Degrees, Degrees] = Field(default=(0.0, 0.0, 0.0), description="roll, pitch, yaw of the part")


class LoadInitialSpec(Spec):
    """Where and how the load starts."""

    position: Position = Field(default=(0.0, 0.0, 0.0), description="of the reference point, world axes")
    velocity: Velocity = Field(default=(0.0, 0.0, 0.0), description="world axes")
    attitude_deg: tuple[Degrees, Degrees, Degrees] = Field(default=(0.0, 0.0, 0.0), description="roll, pitch, yaw")
    angular_velocity: tuple[Rate, Rate, Rate] = Field(default=(0.0, 0.0, 0.0), description="body axes")


class LoadSpec(Spec):
    """A rigid load. Mass properties come from `shape` and `mass`, from `mass`, `com` and `inertia`, or from `parts`."""

    mass: Mass | None = Field(default=None, description="of the whole load; leave out with `parts`")
    shape: ShapeSpec | None = Field(default=None, description="homogeneous solid; also how it is drawn")
    com: Position | None = Field(default=None, description="centre of mass from the reference point, where it is not that of the shape")
    inertia: Inertia | None = Field(default=None, description="about the centre of mass, where it is not that of the shape")
    parts: Annotated[tuple[PartSpec, ...], Field(max_length=MAX_PARTS)] = Field(default=(), description="of a composite load")
    points: dict[Name, Position] = Field(default={}, description="named points, load axes, for cables")
    drag: DragSpec | None = Field(default=None, description="leave out for none")
    feet: tuple[Position, ...] | None = Field(
        default=None, description="points that touch the ground, load axes, 1 to 64; by default corners or rims of the shape"
    )
    visual: VisualSpec = Field(default=VisualSpec(), description="how it is drawn")
    initial: LoadInitialSpec = Field(default=LoadInitialSpec(), description="the state to start from")

    @model_validator(mode="after")
    def _physical(self) -> LoadSpec:
        problems = []
        if self.parts:
            problems += [
                Problem((key,), "give `parts` or mass properties of the whole, not both")
                for key in ("mass", "inertia", "com", "shape")
                if getattr(self, key) is not None
            ]
        elif self.mass is None:
            problems.append(Problem(("mass",), "missing: give `mass` with `shape` or `inertia`, or `parts`"))
        elif self.shape is None and self.inertia is None:
            problems.append(Problem(("inertia",), "missing: give `inertia` or `shape`"))
        if self.inertia is not None:
            problems += inertia_problems(self.inertia)
        if self.feet is not None and not 1 <= len(self.feet) <= MAX_FEET:
            problems.append(Problem(("feet",), f"expected 1 to {MAX_FEET} points, found {len(self.feet)}"))
        refuse_if_any(problems)
        return self
