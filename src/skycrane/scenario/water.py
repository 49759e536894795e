"""The `[environment.water]`, `[buoys.NAME]` and `[tethers.NAME]` tables."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import (
    Coordinate,
    Count,
    Degrees,
    Flag,
    Length,
    Mass,
    Name,
    Number,
    Period,
    Position,
    Problem,
    Rate,
    Spec,
    Speed,
    Unit,
    Velocity,
    refuse_if_any,
)
from .cables import PointSpec
from .vehicle import VisualSpec

Share = Annotated[Number, Field(gt=0, le=1), Unit("-")]


class CurrentSpec(Spec):
    """A steady current that may fall off with depth as (1 + z / depth)^exponent."""

    velocity: Velocity = Field(description="at the mean level, world axes: where the water goes to")
    depth: Length | None = Field(default=None, description="at which it has stopped; without it the same at all depths")
    exponent: Annotated[Number, Field(gt=0, le=10), Unit("-")] = Field(default=1.0 / 7.0, description="1/7 tidal, 1 driven by wind")


class WavesBase(Spec):
    """What all waves have in common."""

    direction_deg: Degrees = Field(default=0.0, description="where they run to, from east to north")
    stretching: Literal["wheeler", "vertical", "none"] = Field(
        default="wheeler", description="how the velocity profile goes on above the mean level"
    )
    drift: Flag = Field(default=True, description="whether the Stokes drift is part of the water's velocity")


class RegularWaves(WavesBase):
    """One plane wave."""

    kind: Literal["regular"]
    height: Annotated[Number, Field(ge=0, le=40), Unit("m")] = Field(description="from trough to crest: twice the amplitude")
    period: Period = Field(description="of the wave")
    phase_deg: Degrees = Field(default=0.0, description="at the origin at the start; 90 is a crest")


class SeaBase(WavesBase):
    """A random sea of many waves."""

    significant_height: Annotated[Number, Field(ge=0, le=30), Unit("m")] = Field(description="4 standard deviations of the surface")
    peak_period: Period = Field(description="at which the spectrum is highest")
    spreading: Annotated[Number, Field(gt=0, le=100), Unit("-")] | None = Field(
        default=None, description="s of the spreading of directions, cos^(2s); without it all waves run in one direction"
    )
    components: Annotated[Count, Field(ge=1, le=2000)] = Field(default=40, description="waves that it is made of")
    seed: Annotated[Count, Field(ge=0, le=2**32 - 1)] | None = Field(default=None, description="of this sea; by default that of the run")


class PiersonMoskowitzSea(SeaBase):
    """A fully developed sea."""

    kind: Literal["pierson_moskowitz"]


class JonswapSea(SeaBase):
    """A growing sea."""

    kind: Literal["jonswap"]
    gamma: Annotated[Number, Field(ge=1, le=20), Unit("-")] = Field(default=3.3, description="how much the peak is raised")


WavesSpec = Annotated[RegularWaves | PiersonMoskowitzSea | JonswapSea, Field(discriminator="kind")]


class WaterSpec(Spec):
    """Water below a surface that waves move."""

    level: Coordinate = Field(default=0.0, description="mean level, world z")
    depth: Length | None = Field(default=None, description="of the bottom below it, for the waves; deep water without it")
    density: Annotated[Number, Field(ge=100, le=2000), Unit("kg/m^3")] = Field(default=1000.0, description="of the water")
    viscosity: Annotated[Number, Field(gt=0, le=1), Unit("m^2/s")] = Field(default=1.787e-6, description="kinematic")
    current: CurrentSpec | None = Field(default=None, description="leave out for none")
    waves: WavesSpec | None = Field(default=None, description="leave out for a flat surface")


class BoxHull(Spec):
    """A box; the reference point is its middle."""

    kind: Literal["box"]
    size: tuple[Length, Length, Length] = Field(description="length, width, height")


class CylinderHull(Spec):
    """An upright cylinder; the reference point is its middle."""

    kind: Literal["cylinder"]
    radius: Length = Field(description="of the cylinder")
    height: Length = Field(description="of the cylinder")


class SphereHull(Spec):
    """A ball; the reference point is its centre."""

    kind: Literal["sphere"]
    radius: Length = Field(description="of the ball")


class TwinHull(Spec):
    """Two equal hulls side by side; the reference point is between their middles."""

    kind: Literal["twin"]
    size: tuple[Length, Length, Length] = Field(description="length, width, height of each")
    spacing: Length = Field(description="between their middles")
    round: Flag = Field(default=False, description="whether they are lying cylinders of this width instead of boxes")


HullSpec = Annotated[BoxHull | CylinderHull | SphereHull | TwinHull, Field(discriminator="kind")]
Six = tuple[Number, Number, Number, Number, Number, Number]
Matrix = tuple[tuple[Number, ...], ...]


class BuoyInitialSpec(Spec):
    """Where and how the buoy starts."""

    position: tuple[Coordinate, Coordinate] = Field(default=(0.0, 0.0), description="x, y of the reference point")
    height: Coordinate | None = Field(default=None, description="world z of the reference point; afloat without it")
    velocity: Velocity | None = Field(default=None, description="world axes; with the current without it")
    attitude_deg: tuple[Degrees, Degrees, Degrees] = Field(default=(0.0, 0.0, 0.0), description="roll, pitch, yaw")
    angular_velocity: tuple[Rate, Rate, Rate] = Field(default=(0.0, 0.0, 0.0), description="body axes")


class BuoySpec(Spec):
    """A floating body. Forces in the water: surge, sway, heave, roll, pitch, yaw, about the reference point in body axes."""

    mass: Mass = Field(description="of everything")
    hull: HullSpec = Field(description="its shape, evenly filled with its mass")
    com_height: Coordinate | None = Field(default=None, description="centre of mass above the reference point: ballast")
    model: Literal["floating", "source"] = Field(
        default="floating",
        description="six degrees of freedom, or Kourani and Daher's box that takes roll and pitch from the slope of the sea",
    )
    added_mass: Six | None = Field(default=None, description="kg and kg m^2; estimated from the shape without it")
    added_matrix: Matrix | None = Field(default=None, description="in place of `added_mass`: 6 rows of 6, from a panel code")
    damping: Six = Field(default=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), description="linear, N s/m and N m s")
    damping_matrix: Matrix | None = Field(default=None, description="in place of `damping`: 6 rows of 6")
    quadratic_damping: Six = Field(default=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), description="N s^2/m^2 and N m s^2")
    skin_friction: Flag = Field(default=True, description="along the wet surface, by the ITTC line")
    surface: Literal["columns", "plane"] = Field(
        default="columns",
        description="where the hull meets the sea: column by column, or a plane that touches the sea at the reference point (faster)",
    )
    deck: Flag = Field(default=False, description="whether loads can stand on its top")
    points: dict[Name, Position] = Field(default={}, description="named points, body axes, for cables and tethers")
    compat: Flag = Field(default=False, description="with the errors of Kourani and Daher's program, for comparison; needs `source`")
    visual: VisualSpec = Field(default=VisualSpec(), description="how it is drawn")
    initial: BuoyInitialSpec = Field(default=BuoyInitialSpec(), description="the state to start from")

    @model_validator(mode="after")
    def _physical(self) -> BuoySpec:
        problems = []
        for key in ("added_matrix", "damping_matrix"):
            rows = getattr(self, key)
            if rows is None:
                continue
            if key.removesuffix("_matrix") == "added" and self.added_mass is not None:
                problems.append(Problem(("added_mass",), "give added_mass or added_matrix, not both"))
            if len(rows) != 6:
                problems.append(Problem((key,), f"expected 6 rows, found {len(rows)}"))
            problems += [Problem((key, i), f"expected 6 numbers in a row, found {len(r)}", r) for i, r in enumerate(rows) if len(r) != 6]
            if not problems:
                uneven = [(i, j) for i in range(6) for j in range(i) if abs(rows[i][j] - rows[j][i]) > 1e-6 * (1 + abs(rows[i][j]))]
                if uneven:
                    i, j = uneven[0]
                    problems.append(Problem((key, i, j), f"must equal row {j + 1}, number {i + 1}: the matrix is symmetric", rows[i][j]))
        if self.added_mass is not None:
            problems += [Problem(("added_mass", i), "must be at least 0", v) for i, v in enumerate(self.added_mass) if v < 0]
        if self.model == "source" and not isinstance(self.hull, BoxHull):
            problems.append(Problem(("hull", "kind"), 'must be "box" for model = "source"', self.hull.kind))
        if self.compat and self.model != "source":
            problems.append(Problem(("compat",), 'needs model = "source"'))
        refuse_if_any(problems)
        return self


class TetherSpec(Spec):
    """An inextensible tether: slack or taut, never longer."""

    upper: Name = Field(description="body at one end, such as the vehicle")
    upper_point: PointSpec = Field(default=(0.0, 0.0, 0.0), description="where, body axes")
    lower: Name = Field(description="body at the other end, such as the buoy")
    lower_point: PointSpec = Field(default=(0.0, 0.0, 0.0), description="where, body axes")
    length: Length = Field(description="of the tether")
    breaking_tension: Annotated[Number, Field(gt=0, le=1e9), Unit("N")] | None = Field(default=None, description="never breaks without it")
    lever: Annotated[Number, Field(ge=0, le=100), Unit("m")] | None = Field(
        default=None,
        description="pulls at the reference points, and turns the lower body in yaw as if hooked so far ahead (Kourani and Daher)",
    )


class SurgeGainsSpec(Spec):
    """Proportional, integral and derivative gains of the loops of surge control; those of Kourani and Daher where left out."""

    length: tuple[Number, Number, Number] | None = Field(default=None, description="of the tether while slack: 1/s^2, 1/s^3, 1/s")
    elevation: tuple[Number, Number, Number] | None = Field(default=None, description="1/s^2, 1/s^3, 1/s")
    azimuth: tuple[Number, Number, Number] | None = Field(default=None, description="1/s^2, 1/s^3, 1/s")
    surge: tuple[Number, Number] | None = Field(default=None, description="proportional and integral")


class SurgeControl(Spec):
    """Tow a buoy by its surge velocity; the reference is `surge_steps` or `tow_to`."""

    kind: Literal["surge"]
    tether: Name = Field(description="that it tows by; the vehicle at its upper end, the buoy at its lower")
    law: Literal["source", "incremental"] = Field(
        default="source", description="of Kourani and Daher, or one that measures tension and acceleration in place of a model of the water"
    )
    share: Share = Field(default=1.0, description="part of the towing force that this vehicle takes, if several tow")
    slack_length: Length | None = Field(
        default=None, description="distance that is kept while it does not tow; 0.957 of the tether without it"
    )
    thrust_max: Annotated[Number, Field(gt=0, le=1e6), Unit("N")] | None = Field(
        default=None, description="0.9 of what the rotors give together without it"
    )
    noisy: Flag = Field(
        default=False, description="whether it sees the instruments of Kourani and Daher with their noise instead of the true state"
    )
    gains: SurgeGainsSpec = Field(default=SurgeGainsSpec(), description="where those of Kourani and Daher do not suit")
    measure_from: Annotated[Number, Field(ge=0, le=1e6), Unit("s")] = Field(default=35.0, description="from which on the metrics count")


class SurgeStepsReference(Spec):
    """Speed of the buoy and azimuth of its tether in steps; speed 0 is a slack tether."""

    kind: Literal["surge_steps"]
    times: Annotated[tuple[Annotated[Number, Field(ge=0, le=1e6)], ...], Field(min_length=1, max_length=100)] = Field(
        description="of the steps, s"
    )
    speeds: tuple[Annotated[Number, Field(ge=0, le=100)], ...] = Field(
        description="from each step on, m/s over ground along the bow; 0 before"
    )
    azimuths_deg: tuple[Annotated[Number, Field(ge=-36000, le=36000)], ...] = Field(
        description="from each step on, from east to north; the first one before"
    )
    turn_rate_deg: Annotated[Number, Field(ge=-360, le=360), Unit("deg/s")] = Field(
        default=0.0, description="of the azimuth after the last step"
    )
    height: Coordinate | None = Field(default=None, description="of the vehicle, world z; 45 degrees above the buoy without it")

    @model_validator(mode="after")
    def _fits(self) -> SurgeStepsReference:
        problems = []
        for key in ("speeds", "azimuths_deg"):
            if len(getattr(self, key)) != len(self.times):
                problems.append(Problem((key,), f"expected as many numbers as times ({len(self.times)})", getattr(self, key)))
        if any(b <= a for a, b in zip(self.times, self.times[1:], strict=False)):
            problems.append(Problem(("times",), "must rise", self.times))
        refuse_if_any(problems)
        return self


class TowReference(Spec):
    """Tow the buoy to a place."""

    kind: Literal["tow_to"]
    goal: tuple[Coordinate, Coordinate] = Field(description="x, y")
    speed: Annotated[Speed, Field(gt=0)] = Field(description="over ground")
    start: Annotated[Number, Field(ge=0, le=1e6), Unit("s")] = Field(default=0.0, description="until which the tether stays slack")
    slowing: Length = Field(default=15.0, description="distance from the goal within which it slows down")
    arrived: Length = Field(default=1.5, description="distance within which it stops towing")
    slowest: Annotated[Speed, Field(gt=0)] = Field(default=1.5, description="on arrival")
    offset_deg: Degrees = Field(default=0.0, description="of the tether from the direction of the goal, for one of several vehicles")
    height: Coordinate | None = Field(default=None, description="of the vehicle, world z; 45 degrees above the buoy without it")
