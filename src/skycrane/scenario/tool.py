"""End-effectors: where they sit, the surface that they touch, and the control of their pose."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Coordinate, Force, Length, Name, Number, Period, Position, Problem, Spec, Time, Unit, refuse_if_any

MAX_PHASES = 64
Gain = Annotated[Number, Field(gt=0, le=1e5)]
Gain3 = tuple[Gain, Gain, Gain]
Adaptation = Annotated[Number, Field(ge=0, le=1e4)]
Torque = Annotated[Number, Field(ge=-1e7, le=1e7), Unit("N m")]
Factor = Annotated[Number, Field(gt=0, le=10), Unit("-")]


class PhaseSpec(Spec):
    """A part of the run for which metrics of the end-effector are given apart."""

    name: Name = Field(description="ends the names of its metrics")
    start: Time = Field(description="from the start of the run")
    end: Period = Field(description="from the start of the run")

    @model_validator(mode="after")
    def _in_order(self) -> PhaseSpec:
        if self.end <= self.start:
            refuse_if_any([Problem(("end",), f"must be later than start ({self.start:g} s)", self.end)])
        return self


class EndEffectorSpec(Spec):
    """A tool at the end of a rigid bar, without mass of its own; axes as the body's."""

    position: Position = Field(description="of its tip, body axes")
    phases: Annotated[tuple[PhaseSpec, ...], Field(max_length=MAX_PHASES)] = Field(default=(), description="parts of the run with metrics")


class SurfaceSpec(Spec):
    """A compliant plane that end-effectors touch: normal force k x (1 + d x') at depth x, and Coulomb friction."""

    point: Position = Field(description="any place on it, world axes")
    normal: tuple[Coordinate, Coordinate, Coordinate] = Field(description="from the surface into the open, of any length")
    stiffness: Annotated[Number, Field(gt=0, le=1e9), Unit("N/m")] = Field(default=1000.0, description="k")
    dissipation: Annotated[Number, Field(ge=0, le=100), Unit("s/m")] = Field(
        default=0.5, description="d: the larger, the less a tool bounces"
    )
    friction: Annotated[Number, Field(ge=0, le=10), Unit("-")] = Field(default=0.3, description="Coulomb coefficient")

    @model_validator(mode="after")
    def _has_a_direction(self) -> SurfaceSpec:
        if sum(v * v for v in self.normal) < 1e-12:
            refuse_if_any([Problem(("normal",), "must not be the zero vector", self.normal)])
        return self


class BacksteppingGainsSpec(Spec):
    """Gains of the errors and of the adaptation; what is left out follows from mass and inertia."""

    position: Gain3 = Field(default=(1.5, 1.5, 1.5), description="1/s, along world axes")
    attitude: Gain3 = Field(default=(3.0, 3.0, 3.0), description="1/s, about body axes")
    velocity: Gain3 | None = Field(default=None, description="N s/m, along body axes; 4.2/s times the mass by default")
    rate: Gain3 | None = Field(default=None, description="N m s, about body axes; 7/s times the mean moment of inertia by default")
    mass: Adaptation = Field(default=0.5, description="of the adaptation of the mass; 0 for none, as below")
    moment: Adaptation = Field(default=0.05, description="of mass times centre of mass")
    inertia: Adaptation = Field(default=0.01, description="of the inertia")
    force: Adaptation = Field(default=8.0, description="of the force on the end-effector")
    torque: Adaptation = Field(default=0.8, description="of the torque on the end-effector")


class BelievedSpec(Spec):
    """What the controller believes at first, if that is not the truth."""

    mass_factor: Factor = Field(default=1.0, description="believed mass over true mass")
    com: Position | None = Field(default=None, description="believed centre of mass, body axes; the true one by default")
    inertia_factor: Factor = Field(default=1.0, description="believed inertia about the reference point over the true one")


class KnownWrenchSpec(Spec):
    """A wrench on the end-effector that is part of the task, so that the controller knows it beforehand."""

    time: Time = Field(description="of its beginning")
    duration: Period = Field(description="how long it lasts")
    force: tuple[Force, Force, Force] = Field(default=(0.0, 0.0, 0.0), description="on the end-effector, world axes")
    torque: tuple[Torque, Torque, Torque] = Field(default=(0.0, 0.0, 0.0), description="on the end-effector, world axes")


class PressSpec(Spec):
    """Press against the surface: the target moves into it until the wanted force is felt."""

    force: Annotated[Number, Field(gt=0, le=1e5), Unit("N")] = Field(description="normal to the surface")
    start: Time = Field(default=0.0, description="from when on")
    gain: Annotated[Number, Field(gt=0, le=10), Unit("m/(N s)")] = Field(
        default=0.002, description="speed of the target for each newton that is missing"
    )
    depth: Length = Field(default=0.3, description="how far the target goes at most")


class BacksteppingControl(Spec):
    """Adaptive backstepping on the pose of the end-effector, for vehicles that push every way; references are its path."""

    kind: Literal["backstepping"]
    attitude: Literal["so3", "euler"] = Field(default="so3", description="attitude errors as rotations, or as roll, pitch and yaw")
    gains: BacksteppingGainsSpec = Field(default=BacksteppingGainsSpec(), description="where the usual ones do not suit")
    believed: BelievedSpec = Field(default=BelievedSpec(), description="errors of the controller's first estimates")
    wrench: Literal["adapted", "known", "felt", "ignored"] = Field(
        default="adapted",
        description="on the end-effector: estimated, as in `known_wrenches`, that and what the force sensor feels, or none",
    )
    known_wrenches: Annotated[tuple[KnownWrenchSpec, ...], Field(max_length=MAX_PHASES)] = Field(default=(), description="of the task")
    redistribution: Literal["minimal_shift", "rule_17", "bounded"] = Field(
        default="minimal_shift", description="how thrusts of one sign are found: smallest shift, the paper's rule, or bounded optimum"
    )
    press: PressSpec | None = Field(default=None, description="needs [environment.surface] and an end-effector")
