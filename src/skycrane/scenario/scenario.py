"""The whole scenario, and the checks that need to see more than one table of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Name, Problem, Spec, refuse_if_any
from .control import ControlSpec, FeedbackControl, GeometricControl, RotorSpeedsControl
from .environment import EnvironmentSpec
from .events import (
    MAX_EVENTS,
    EventSpec,
    ImpulseEvent,
    PushEvent,
    RotorFailureEvent,
    TargetEvent,
    WindEvent,
)
from .reference import HoverReference, ReferenceSpec
from .run import RunSpec
from .sensors import SensorsSpec
from .vehicle import VehicleSpec

SINGLE = "uav"
"""Body name of the vehicle in `[vehicle]`; its rotors are `uav/1`, `uav/2`, ..."""
MAX_VEHICLES = 64
MAX_DELAY = 100
"""Control periods of the longest delay; every one is a command that waits in the state."""


class FleetVehicleSpec(VehicleSpec):
    """One of several vehicles, `[vehicles.NAME]`, with its own controller and reference."""

    control: ControlSpec = Field(default=GeometricControl(kind="geometric"), description="what turns reference into speeds")
    reference: ReferenceSpec = Field(default=HoverReference(kind="hover"), description="where it should be")


@dataclass(frozen=True)
class Vehicle:
    """A vehicle with what flies it, in the same form for one and for several."""

    spec: VehicleSpec
    control: ControlSpec
    reference: ReferenceSpec
    path: tuple[str, ...]
    """Key path of the vehicle's table in the file."""


class Scenario(Spec):
    """A scenario file: one `[vehicle]`, or several `[vehicles.NAME]`, in an environment, for a time."""

    schema_version: Literal["1"] = Field(description="version of this format")
    name: Name = Field(description="short name, also of the result directory: lower-case letters, digits, `-` and `_`")
    title: Annotated[str, Field(max_length=200)] = Field(default="", description="one line")
    description: Annotated[str, Field(max_length=10_000)] = Field(default="", description="a few sentences")
    run: RunSpec = Field(default=RunSpec(), description="how long and how finely")
    environment: EnvironmentSpec = Field(default=EnvironmentSpec(), description="gravity, air, wind and ground")
    vehicle: VehicleSpec | None = Field(default=None, description=f"the vehicle, if there is one; its body is called `{SINGLE}`")
    control: ControlSpec | None = Field(default=None, description="of `[vehicle]`; `geometric` by default")
    reference: ReferenceSpec | None = Field(default=None, description="of `[vehicle]`; hover at the start by default")
    sensors: SensorsSpec | None = Field(default=None, description="leave out for controllers that see the true state")
    vehicles: dict[Name, FleetVehicleSpec] = Field(default={}, description="the vehicles by name, if there are several")
    events: Annotated[tuple[EventSpec, ...], Field(max_length=MAX_EVENTS)] = Field(default=(), description="what happens when")

    @property
    def fleet(self) -> dict[str, Vehicle]:
        """All vehicles by body name, in the order of the file."""
        if self.vehicle is not None:
            control = self.control or GeometricControl(kind="geometric")
            reference = self.reference or HoverReference(kind="hover")
            return {SINGLE: Vehicle(self.vehicle, control, reference, ("vehicle",))}
        return {name: Vehicle(spec, spec.control, spec.reference, ("vehicles", name)) for name, spec in self.vehicles.items()}

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of all bodies, in the order of the state."""
        return tuple(self.fleet)

    @model_validator(mode="after")
    def _fits_together(self) -> Scenario:
        refuse_if_any(self._vehicle_problems() or [*self._control_problems(), *self._sensor_problems(), *self._event_problems()])
        return self

    def _vehicle_problems(self) -> list[Problem]:
        if self.vehicle is None and not self.vehicles:
            return [Problem(("vehicle",), "missing: a scenario needs [vehicle], or [vehicles.NAME] for several")]
        if self.vehicle is not None and self.vehicles:
            names = ", ".join(self.vehicles)
            return [Problem(("vehicle",), f"give [vehicle] or [vehicles.NAME] (here: {names}), not both")]
        if len(self.vehicles) > MAX_VEHICLES:
            return [Problem(("vehicles",), f"expected at most {MAX_VEHICLES} vehicles, found {len(self.vehicles)}")]
        problems = []
        if self.vehicle is None:
            for key in ("control", "reference"):
                if getattr(self, key) is not None:
                    example = f"[vehicles.{next(iter(self.vehicles))}.{key}]"
                    problems.append(Problem((key,), f"belongs to [vehicle]; with several vehicles write {example}"))
        return problems

    def _control_problems(self) -> list[Problem]:
        problems = []
        for vehicle in self.fleet.values():
            control, count = vehicle.control, vehicle.spec.rotor_count
            table = ("control",) if self.vehicle is not None else (*vehicle.path, "control")
            speeds = control.speeds if isinstance(control, RotorSpeedsControl) else 0.0
            if not isinstance(speeds, float) and len(speeds) != count:
                wanted = f"expected one speed, or {count}: one for each rotor"
                problems.append(Problem((*table, "speeds"), wanted, speeds))
            if isinstance(control, FeedbackControl):
                ticks = control.delay / self.run.tick
                if abs(ticks - round(ticks)) > 1e-6 * max(ticks, 1.0):
                    near = round(ticks) * self.run.tick
                    wanted = f"must be a whole multiple of the control period ({self.run.tick:g} s), such as {near:g}"
                    problems.append(Problem((*table, "delay"), wanted, control.delay))
                elif round(ticks) > MAX_DELAY:
                    wanted = f"is {round(ticks)} control periods; at most {MAX_DELAY} are allowed"
                    problems.append(Problem((*table, "delay"), wanted, control.delay))
            options = vehicle.spec.rotor
            if options is not None and options.ground_effect is not None and self.environment.ground is None:
                wanted = "needs [environment.ground]"
                problems.append(Problem((*vehicle.path, "rotor", "ground_effect"), wanted))
        return problems

    def _sensor_problems(self) -> list[Problem]:
        problems = []
        for name in ("positioning", "compass") if self.sensors is not None else ():
            period = getattr(self.sensors, name).period
            ticks = period / self.run.tick
            if ticks < 1 - 1e-6 or abs(ticks - round(ticks)) > 1e-6 * ticks:
                near = max(1, round(ticks)) * self.run.tick
                wanted = f"must be a whole multiple of the control period ({self.run.tick:g} s), such as {near:g}"
                problems.append(Problem(("sensors", name, "period"), wanted, period))
        return problems

    def _event_problems(self) -> list[Problem]:
        problems = []
        for i, event in enumerate(self.events):
            at = ("events", i)
            if isinstance(event, RotorFailureEvent):
                name = event.vehicle or self._only_one()
                problems += self._name_problems((*at, "vehicle"), name, "vehicle")
                if name in self.fleet and event.rotor > (count := self.fleet[name].spec.rotor_count):
                    problems.append(Problem((*at, "rotor"), f"{name} has no such rotor; its rotors are 1 to {count}", event.rotor))
            elif isinstance(event, (ImpulseEvent, PushEvent)):
                problems += self._name_problems((*at, "body"), event.body or self._only_one(), "body")
            elif isinstance(event, WindEvent) and self.environment.mean_wind is None:
                wanted = 'needs [environment.wind] with kind = "steady" (velocity = [0, 0, 0] for still air at first)'
                wanted += ' or "shear", or a "sum" with exactly one of them'
                problems.append(Problem((*at, "kind"), wanted, event.kind))
            elif isinstance(event, TargetEvent):
                name = event.vehicle or self._only_one()
                problems += self._name_problems((*at, "vehicle"), name, "vehicle")
                if name in self.fleet and self.fleet[name].reference.kind != "hover":
                    problems.append(Problem((*at, "kind"), f'needs a reference of kind = "hover" for {name}', event.kind))
        return problems

    def _only_one(self) -> str | None:
        return next(iter(self.fleet)) if len(self.fleet) == 1 else None

    def _name_problems(self, path: tuple[str | int, ...], name: str | None, what: str) -> list[Problem]:
        if name is None:
            return [Problem(path, f"missing: there are several; expected one of {', '.join(self.bodies)}")]
        if name not in self.fleet:
            return [Problem(path, f"there is no {what} of this name{nearest(name, self.bodies)}", name)]
        return []


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'this'?` for a word that is close to a known one, else the list of all known ones."""
    known = list(known)
    match = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    if match:
        return f"; did you mean {match[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""
