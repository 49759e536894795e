"""The `[vehicle]` table: a rigid body with rotors, drag and a state to start from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from .base import (
    Degrees,
    Length,
    Mass,
    Number,
    Position,
    Problem,
    Rate,
    Spec,
    Unit,
    Velocity,
    refuse_if_any,
)
from .rotor_options import BatterySpec
from .rotors import MAX_ROTORS, LayoutSpec, RotorCoefficients, RotorDefaults, RotorNumbers, RotorSpec, quadratic_keys
from .tool import EndEffectorSpec

MAX_FEET = 64

Moment = Annotated[Number, Field(ge=-1e7, le=1e7), Unit("kg m^2")]
Row = tuple[Moment, Moment, Moment]
Area = Annotated[Number, Field(ge=0, le=1e4), Unit("m^2")]
Shade = Annotated[Number, Field(ge=0, le=1), Unit("-")]
RotorSpeed = Annotated[Number, Field(ge=0, le=1e5), Unit("rad/s")]


def _as_matrix(value: Any) -> Any:
    """`[ixx, iyy, izz]` as a 3x3 matrix; anything else goes on to the ordinary check."""
    if isinstance(value, (list, tuple)) and len(value) == 3 and not any(isinstance(v, (list, tuple)) for v in value):
        return [[value[i] if i == j else 0.0 for j in range(3)] for i in range(3)]
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise PydanticCustomError("inertia_shape", "expected [ixx, iyy, izz] or a 3x3 matrix, kg m^2")
    return value


Matrix = tuple[Row, Row, Row]
Inertia = Annotated[Matrix, BeforeValidator(_as_matrix, json_schema_input_type=Row | Matrix)]
WORD, EACH = "'hover' or 'stopped'", "a list of speeds in rad/s"
RotorStart = Annotated[
    Annotated[Literal["hover", "stopped"], Tag(WORD)] | Annotated[tuple[RotorSpeed, ...], Tag(EACH)],
    Discriminator(lambda v: EACH if isinstance(v, (list, tuple)) else WORD),
]


class DragSpec(Spec):
    """Quadratic drag, F = -1/2 rho |v| (cd_area * v) with the airspeed v in body axes, at the centre of pressure."""

    cd_area: tuple[Area, Area, Area] = Field(description="drag coefficient times area along each body axis")
    center: Position | None = Field(default=None, description="of pressure, body axes; the default is the centre of mass")


class VisualSpec(Spec):
    """How the vehicle is drawn; no effect on the flight."""

    color: tuple[Shade, Shade, Shade] | None = Field(default=None, description="red, green, blue")
    size: tuple[Length, Length, Length] | None = Field(default=None, description="of the body's box along its axes")


class InitialSpec(Spec):
    """Where and how the vehicle starts."""

    position: Position = Field(default=(0.0, 0.0, 0.0), description="world axes: x east, y north, z up")
    over: str | None = Field(
        default=None,
        description="cable above whose lower end the vehicle starts; x and y of `position` are then how far aside, on the sphere on which "
        "the cable is just taut, and z is added to the height",
    )
    velocity: Velocity = Field(default=(0.0, 0.0, 0.0), description="world axes")
    attitude_deg: tuple[Degrees, Degrees, Degrees] = Field(
        default=(0.0, 0.0, 0.0),
        description="roll, pitch, yaw: turn by yaw about z, then pitch about y, then roll about x",
    )
    angular_velocity: tuple[Rate, Rate, Rate] = Field(default=(0.0, 0.0, 0.0), description="body axes")
    rotors: RotorStart = Field(default="hover", description="`hover` (turning fast enough to hover), `stopped`, or the speed of each")


def _model_or_numbers(schema: dict[str, Any]) -> None:
    """In a file `model` can stand for the mass and the inertia; it is put in before this class sees the table."""
    required = schema.pop("required")
    schema["anyOf"] = [{"required": ["model"]}, {"required": required}]


class VehicleSpec(Spec):
    """A vehicle. Body axes: x forward, y left, z up; the body's reference point is their origin."""

    model_config = ConfigDict(json_schema_extra=_model_or_numbers)

    model: str | None = Field(
        default=None,
        description="name of a catalogue vehicle, or of a TOML file beside this one; keys given here replace its own",
    )
    mass: Mass = Field(description="of everything, rotors included")
    com: Position = Field(default=(0.0, 0.0, 0.0), description="centre of mass, body axes")
    inertia: Inertia = Field(description="about the centre of mass: [ixx, iyy, izz] or a 3x3 matrix")
    layout: LayoutSpec | None = Field(default=None, description="regular rotor places; give this or `rotors`")
    rotors: tuple[RotorSpec, ...] | None = Field(default=None, description="rotor by rotor, 1 to 64")
    rotor: RotorDefaults | None = Field(
        default=None, description="coefficients of every rotor that has none of its own, and options of all rotors"
    )
    battery: BatterySpec | None = Field(default=None, description="leave out for power without end")
    feet: tuple[Position, ...] | None = Field(
        default=None, description="points that touch the ground, body axes, 1 to 64; by default four below the body"
    )
    end_effector: EndEffectorSpec | None = Field(default=None, description="a tool at the end of a bar; leave out for none")
    drag: DragSpec | None = Field(default=None, description="leave out for none")
    visual: VisualSpec = Field(default=VisualSpec(), description="how it is drawn")
    initial: InitialSpec = Field(default=InitialSpec(), description="the state to start from")

    @property
    def rotor_count(self) -> int:
        """How many rotors."""
        if self.rotors is not None:
            return len(self.rotors)
        assert self.layout is not None
        return self.layout.rotor_count

    def rotor_numbers(self) -> list[RotorNumbers]:
        """The coefficients of each rotor, own values before those of `[vehicle.rotor]`."""
        if self.rotors is not None:
            return [rotor.over(self.rotor) for rotor in self.rotors]
        assert self.rotor is not None
        return [self.rotor.over(None)] * self.rotor_count

    @model_validator(mode="after")
    def _physical(self) -> VehicleSpec:
        problems = inertia_problems(self.inertia) + (self._rotor_problems() or self._option_problems())
        if self.feet is not None and not 1 <= len(self.feet) <= MAX_FEET:
            problems.append(Problem(("feet",), f"expected 1 to {MAX_FEET} points, found {len(self.feet)}"))
        speeds = self.initial.rotors
        if not problems and not isinstance(speeds, str) and len(speeds) != self.rotor_count:
            wanted = f"expected {self.rotor_count} speeds, one for each rotor"
            problems.append(Problem(("initial", "rotors"), wanted, speeds))
        refuse_if_any(problems)
        return self

    def _rotor_problems(self) -> list[Problem]:
        if self.layout is not None and self.rotors is not None:
            return [Problem(("layout",), "give layout or rotors, not both")]
        if self.rotors is not None:
            if not 1 <= len(self.rotors) <= MAX_ROTORS:
                return [Problem(("rotors",), f"expected 1 to {MAX_ROTORS} rotors, found {len(self.rotors)}")]
            problems = []
            for i, rotor in enumerate(self.rotors):
                problems += _coefficient_problems(("rotors", i), rotor, self.rotor)
            return problems
        if self.layout is None:
            wanted = f"missing: give [vehicle.layout], or 1 to {MAX_ROTORS} entries [[vehicle.rotors]]"
            return [Problem(("rotors",), wanted)]
        if self.rotor is None:
            return [Problem(("rotor",), "missing: the table with the coefficients of the rotors")]
        return _coefficient_problems(("rotor",), self.rotor, None)

    def _option_problems(self) -> list[Problem]:
        """What options of the rotors miss; the rotors themselves are in order."""
        problems, options = [], self.rotor or RotorDefaults()
        if options.blade is not None:
            for i, rotor in enumerate(self.rotors or ()):
                problems += quadratic_keys(("rotors", i), rotor)
        numbers = self.rotor_numbers()
        if any(rotor.radius is None for rotor in numbers):
            for name in ("ground_effect", "axial_flow"):
                if getattr(options, name) is not None:
                    problems.append(Problem(("rotor", name), "needs the radius of every rotor"))
        if len({rotor.reference_density is None for rotor in numbers}) > 1:
            problems.append(Problem(("rotors",), "give reference_density for every rotor, or for none"))
        if self.battery is not None and all(rotor.time_up is None for rotor in numbers):
            problems.append(Problem(("battery",), "needs motor lag: give vehicle.rotor.time_constant"))
        return problems


def _coefficient_problems(path: tuple[str | int, ...], rotor: RotorCoefficients, default: RotorCoefficients | None) -> list[Problem]:
    try:
        numbers = rotor.over(default)
    except ValueError as error:
        hint = "" if default is not None or len(path) == 1 else " (or give them for all rotors in [vehicle.rotor])"
        return [Problem(path, f"{error}{hint}")]
    if numbers.speed_min >= numbers.speed_max:
        limit = f"must be below speed_max ({numbers.speed_max:g} rad/s)"
        return [Problem((*path, "speed_min"), limit, numbers.speed_min)]
    return []


def inertia_problems(inertia: Matrix) -> list[Problem]:
    """Why a matrix cannot be the inertia of a body: asymmetric, not positive definite, or beyond the triangle rule.

    No body has a principal moment larger than the sum of the other two: trace / 2 - J must be positive too.
    """
    largest = max(abs(value) for row in inertia for value in row)
    if any(abs(inertia[i][j] - inertia[j][i]) > 1e-9 * largest for i in range(3) for j in range(i)):
        return [Problem(("inertia",), "must be symmetric", _shown(inertia))]
    if not _positive_definite(inertia):
        rule = "must be positive definite; its principal moments are"
    # A flat plate reaches equality, and published tables are rounded.
    elif not _positive_definite(_minus(sum(inertia[i][i] for i in range(3)) / (2 - 1e-3), inertia)):
        rule = "no body has such an inertia: the two smaller principal moments must add up to at least the largest;"
        rule += " they are"
    else:
        return []
    # Imported for the message only: NumPy would be a third of the time that a check takes.
    import numpy as np

    principal = ", ".join(f"{value:.6g}" for value in np.linalg.eigvalsh(np.array(inertia)))
    return [Problem(("inertia",), f"{rule} {principal} kg m^2", _shown(inertia))]


def _positive_definite(m: Matrix) -> bool:
    """Sylvester: the leading minors are positive."""
    two = m[0][0] * m[1][1] - m[0][1] * m[1][0]
    three = (
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    )
    return m[0][0] > 0 and two > 0 and three > 0


def _minus(scalar: float, m: Matrix) -> Matrix:
    """scalar times unit matrix, minus m."""
    rows = [[(scalar if i == j else 0.0) - m[i][j] for j in range(3)] for i in range(3)]
    return (_row(rows[0]), _row(rows[1]), _row(rows[2]))


def _row(values: list[float]) -> Row:
    return (values[0], values[1], values[2])


def _shown(inertia: Matrix) -> Any:
    """As the user is likely to have written it."""
    diagonal = all(inertia[i][j] == 0 for i in range(3) for j in range(3) if i != j)
    return [inertia[i][i] for i in range(3)] if diagonal else inertia
