"""The `[cables.NAME]` tables: elastic cables between points of bodies or of the world."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from .base import Count, Flag, Length, Name, Number, Period, Position, Spec, Unit

MAX_CABLES = 256
MAX_SEGMENTS = 1000
WORLD = "world"
"""In place of a body: a point that is fixed in the world."""

POINT, NAMED = "a list of 3 numbers", "the name of a point of the load"
PointSpec = Annotated[
    Annotated[Position, Tag(POINT)] | Annotated[str, Tag(NAMED)],
    Discriminator(lambda v: POINT if isinstance(v, (list, tuple)) else NAMED),
]
Ratio = Annotated[Number, Field(ge=0, le=100), Unit("-")]


class RopeMaterial(Spec):
    """A round rope by its material."""

    kind: Literal["rope"]
    diameter: Annotated[Number, Field(gt=0, le=1), Unit("m")] = Field(description="of the rope")
    density: Annotated[Number, Field(gt=0, le=3e4), Unit("kg/m^3")] = Field(description="of its material")
    youngs_modulus: Annotated[Number, Field(gt=0, le=1e13), Unit("Pa")] = Field(description="of its material")
    damping_ratio: Annotated[Ratio, Field(le=10)] = Field(
        default=1.0, description="of neighbouring segments that swing against each other along the rope"
    )
    bending: Flag = Field(default=False, description="whether it resists bending, as a round rod would")


class CableNumbers(Spec):
    """A cable by its numbers."""

    kind: Literal["numbers"]
    axial_stiffness: Annotated[Number, Field(gt=0, le=1e12), Unit("N")] = Field(description="E A")
    linear_density: Annotated[Number, Field(gt=0, le=1e4), Unit("kg/m")] = Field(description="mass per length")
    damping: Annotated[Number, Field(ge=0, le=1e9), Unit("N s/m")] = Field(description="of one segment")
    bending_stiffness: Annotated[Number, Field(gt=0, le=1e9), Unit("N m^2")] | None = Field(
        default=None, description="E I; without it the cable is limp"
    )


class SegmentNumbers(Spec):
    """A cable by the numbers of one of its segments, as in arXiv 2305.09175."""

    kind: Literal["segments"]
    stiffness: Annotated[Number, Field(gt=0, le=1e12), Unit("N/m")] = Field(description="of the spring of one segment")
    damping: Annotated[Number, Field(ge=0, le=1e9), Unit("N s/m")] = Field(description="of its damper")
    mass: Annotated[Number, Field(gt=0, le=1e4), Unit("kg")] = Field(description="of one segment")


MaterialSpec = Annotated[RopeMaterial | CableNumbers | SegmentNumbers, Field(discriminator="kind")]


class CableDragSpec(Spec):
    """Drag on the cable, across and along it apart."""

    normal: Ratio = Field(default=1.1, description="drag coefficient across")
    tangential: Ratio = Field(default=0.05, description="drag coefficient along")
    diameter: Annotated[Number, Field(gt=0, le=1), Unit("m")] | None = Field(default=None, description="needed where the material has none")


class WinchSpec(Spec):
    """A winch at the upper end, moved by events of `kind = "winch"`."""

    speed_max: Annotated[Number, Field(gt=0, le=1e3), Unit("m/s")] = Field(default=1.0, description="of reeling in or out")
    time_constant: Period = Field(default=0.1, description="of its control of the length")


def _like_or_numbers(schema: dict[str, Any]) -> None:
    """In a file `like` can stand for any key; it is resolved before this class sees the table."""
    required = schema.pop("required")
    schema["anyOf"] = [{"required": ["like"]}, {"required": required}]


class CableSpec(Spec):
    """A cable of spring-damper segments that pull and never push."""

    model_config = ConfigDict(json_schema_extra=_like_or_numbers)

    like: Name | None = Field(default=None, description="another cable whose keys stand in for those that are left out here")
    upper: Name = Field(description='body at the upper end, or "world"')
    upper_point: PointSpec = Field(default=(0.0, 0.0, 0.0), description="where, body axes (world axes for the world)")
    lower: Name = Field(description='body at the lower end, or "world"')
    lower_point: PointSpec = Field(default=(0.0, 0.0, 0.0), description="where, body axes (world axes for the world)")
    length: Length = Field(description="unstretched")
    segments: Annotated[Count, Field(ge=1, le=MAX_SEGMENTS)] = Field(default=5, description="of the chain")
    material: MaterialSpec = Field(description="stiffness, damping and mass")
    lumps: Literal["half", "lower"] = Field(
        default="half", description="a segment's mass goes half to either end of it, or all to its lower end (as in arXiv 2305.09175)"
    )
    drag: CableDragSpec | None = Field(default=None, description="leave out for none")
    on_ground: Flag = Field(default=False, description="whether its nodes lie on the ground where they touch it")
    winch: WinchSpec | None = Field(default=None, description="leave out for a constant length")
