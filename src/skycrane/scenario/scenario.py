"""The whole scenario, and the checks that need to see more than one table of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Name, Problem, Spec, refuse_if_any
from .cables import MAX_CABLES, WORLD, CableSpec
from .cargo import LoadSpec
from .control import BacksteppingControl, ControlSpec, FeedbackControl, GeometricControl, RotorSpeedsControl
from .environment import EnvironmentSpec
from .events import (
    MAX_EVENTS,
    CutEvent,
    EventSpec,
    ImpulseEvent,
    PushEvent,
    RotorFailureEvent,
    TargetEvent,
    WinchEvent,
    WindEvent,
)
from .reference import HoverReference, ReferenceSpec
from .run import RunSpec
from .sensors import SensorsSpec
from .team import FormationTeam, TeamSpec
from .vehicle import VehicleSpec
from .water import BuoySpec, SurgeControl, SurgeStepsReference, TetherSpec, TowReference

SINGLE = "uav"
"""Body name of the vehicle in `[vehicle]`; its rotors are `uav/1`, `uav/2`, ..."""
MAX_VEHICLES = 64
MAX_LOADS = 64
MAX_DELAY = 100
"""Control periods of the longest delay; every one is a command that waits in the state."""


class FleetVehicleSpec(VehicleSpec):
    """One of several vehicles, `[vehicles.NAME]`, with its own controller and reference."""

    control: ControlSpec = Field(default=GeometricControl(kind="geometric"), description="what turns reference into speeds")
    reference: ReferenceSpec = Field(default=HoverReference(kind="hover"), description="where it should be")


TEAM = "team"
"""Name of the rotors' element of a team whose vehicles are alike."""


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
    loads: dict[Name, LoadSpec] = Field(default={}, description="bodies that are carried, by name")
    cables: dict[Name, CableSpec] = Field(default={}, description="elastic cables by name")
    buoys: dict[Name, BuoySpec] = Field(default={}, description="bodies that float, by name")
    tethers: dict[Name, TetherSpec] = Field(default={}, description="inextensible tethers by name")
    team: TeamSpec | None = Field(default=None, description="vehicles that carry a load together, in place of controls of their own")
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
        """Names of all bodies, in the order of the state: vehicles, then loads, then buoys."""
        return (*self.fleet, *self.loads, *self.buoys)

    @property
    def team_vehicles(self) -> tuple[str, ...]:
        """The vehicles that the team flies, in the order of the file."""
        if self.team is None:
            return ()
        if self.team.vehicles is not None:
            return self.team.vehicles
        ends = {(c.upper, c.lower) for c in self.cables.values()}
        return tuple(name for name in self.fleet if (name, self.team.load) in ends or (self.team.load, name) in ends)

    @model_validator(mode="after")
    def _fits_together(self) -> Scenario:
        refuse_if_any(
            self._vehicle_problems()
            or [
                *self._control_problems(), *self._sensor_problems(), *self._cable_problems(), *self._water_problems(),
                *self._team_problems(), *self._event_problems(),
            ]
        )  # fmt: skip
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
        if len(self.loads) > MAX_LOADS:
            problems.append(Problem(("loads",), f"expected at most {MAX_LOADS} loads, found {len(self.loads)}"))
        for name in self.loads:
            if name in self.fleet or name == WORLD:
                problems.append(Problem(("loads", name), "there is a vehicle of this name" if name != WORLD else "is a reserved name"))
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
            problems += self._tool_problems(vehicle, table)
            if self.environment.downwash == "on" and any(rotor.radius is None for rotor in vehicle.spec.rotor_numbers()):
                wanted = "needs the radius of every rotor (`radius` in its table), which lacks for a rotor of " + ".".join(vehicle.path)
                problems.append(Problem(("environment", "downwash"), wanted, "on"))
            options = vehicle.spec.rotor
            if options is not None and options.ground_effect is not None and self.environment.ground is None:
                wanted = "needs [environment.ground]"
                problems.append(Problem((*vehicle.path, "rotor", "ground_effect"), wanted))
        return problems

    def _tool_problems(self, vehicle: Vehicle, table: tuple[str, ...]) -> list[Problem]:
        control, problems = vehicle.control, []
        if not isinstance(control, BacksteppingControl):
            return []
        if vehicle.spec.rotor_count < 7:
            wanted = f"backstepping needs seven or more rotors that push every way; this vehicle has {vehicle.spec.rotor_count}"
            problems.append(Problem((*table, "kind"), wanted))
        if control.press is not None and (self.environment.surface is None or vehicle.spec.end_effector is None):
            problems.append(Problem((*table, "press"), "needs [environment.surface] and an end-effector of the vehicle"))
        if control.known_wrenches and control.wrench not in ("known", "felt"):
            problems.append(Problem((*table, "known_wrenches"), 'needs wrench = "known" or "felt"'))
        if control.wrench == "felt" and control.press is None:
            problems.append(Problem((*table, "wrench"), '"felt" needs the table press: its sensor is the one that feels'))
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

    def _cable_problems(self) -> list[Problem]:
        problems = []
        if len(self.cables) > MAX_CABLES:
            problems.append(Problem(("cables",), f"expected at most {MAX_CABLES} cables, found {len(self.cables)}"))
        for name, cable in self.cables.items():
            at = ("cables", name)
            for end in ("upper", "lower"):
                body, point = getattr(cable, end), getattr(cable, f"{end}_point")
                if body != WORLD and body not in self.bodies:
                    problems.append(Problem((*at, end), f"there is no body of this name{nearest(body, (*self.bodies, WORLD))}", body))
                elif isinstance(point, str):
                    known = self._points(body)
                    if point not in known:
                        hint = nearest(point, known) or f": {body} has none"
                        problems.append(Problem((*at, f"{end}_point"), f"there is no point of this name{hint}", point))
            if cable.upper == cable.lower:
                problems.append(Problem((*at, "lower"), "both ends are on the same body", cable.lower))
            if cable.on_ground and self.environment.ground is None:
                problems.append(Problem((*at, "on_ground"), "needs [environment.ground]"))
            if cable.drag is not None and cable.drag.diameter is None and cable.material.kind != "rope":
                problems.append(Problem((*at, "drag", "diameter"), 'missing: only a material of kind = "rope" has a diameter of its own'))
        for name, vehicle in self.fleet.items():
            over = vehicle.spec.initial.over
            if over is None:
                continue
            place = (*vehicle.path, "initial", "over")
            x, y, _ = vehicle.spec.initial.position
            if over not in self.cables:
                problems.append(Problem(place, f"there is no cable of this name{nearest(over, self.cables)}", over))
            elif self.cables[over].upper != name or self.cables[over].lower not in (*self.loads, WORLD):
                problems.append(Problem(place, f"must be a cable with {name} at its upper end and a load or the world at its lower", over))
            elif x * x + y * y >= self.cables[over].length ** 2:
                wanted = f"x and y must be less than the cable's length ({self.cables[over].length:g} m) aside"
                problems.append(Problem((*vehicle.path, "initial", "position"), wanted, vehicle.spec.initial.position))
        return problems

    def _points(self, body: str) -> dict[str, tuple[float, float, float]]:
        """The named points of a body."""
        carried = self.loads.get(body) or self.buoys.get(body)
        return {} if carried is None else carried.points

    def _water_problems(self) -> list[Problem]:
        problems = []
        for name in self.buoys:
            if name in self.fleet or name in self.loads or name == WORLD:
                problems.append(Problem(("buoys", name), "is a reserved name" if name == WORLD else "there is another body of this name"))
        if self.buoys and self.environment.water is None:
            problems.append(Problem(("buoys",), "need [environment.water]"))
        if len(self.buoys) > MAX_LOADS or len(self.tethers) > MAX_LOADS:
            problems.append(Problem(("buoys",), f"expected at most {MAX_LOADS} buoys and as many tethers"))
        for name, tether in self.tethers.items():
            at = ("tethers", name)
            for end in ("upper", "lower"):
                body, point = getattr(tether, end), getattr(tether, f"{end}_point")
                if body not in self.bodies:
                    problems.append(Problem((*at, end), f"there is no body of this name{nearest(body, self.bodies)}", body))
                elif isinstance(point, str) and point not in self._points(body):
                    hint = nearest(point, self._points(body)) or f": {body} has none"
                    problems.append(Problem((*at, f"{end}_point"), f"there is no point of this name{hint}", point))
            if tether.upper == tether.lower:
                problems.append(Problem((*at, "lower"), "both ends are on the same body", tether.lower))
        return problems or [p for name, v in self.fleet.items() for p in self._towing_problems(name, v)]

    def _towing_problems(self, name: str, vehicle: Vehicle) -> list[Problem]:
        control, reference = vehicle.control, vehicle.reference
        table = ("control",) if self.vehicle is not None else (*vehicle.path, "control")
        of_surge = isinstance(reference, (SurgeStepsReference, TowReference))
        if not isinstance(control, SurgeControl):
            wanted = f'needs control of kind = "surge" for {name}'
            return [Problem((*table[:-1], "reference", "kind"), wanted, reference.kind)] if of_surge else []
        problems = []
        if control.tether not in self.tethers:
            hint = nearest(control.tether, self.tethers)
            problems.append(Problem((*table, "tether"), f"there is no tether of this name{hint}", control.tether))
        elif self.tethers[control.tether].upper != name or self.tethers[control.tether].lower not in self.buoys:
            wanted = f"must be a tether with {name} at its upper end and a buoy at its lower"
            problems.append(Problem((*table, "tether"), wanted, control.tether))
        if not of_surge:
            wanted = 'surge control needs a reference of kind = "surge_steps" or "tow_to"'
            problems.append(Problem((*table[:-1], "reference", "kind"), wanted, reference.kind))
        if control.noisy and (self.sensors is not None or len(self.fleet) > 1):
            problems.append(Problem((*table, "noisy"), "is for a single vehicle without [sensors]"))
        return problems

    def _team_problems(self) -> list[Problem]:
        team = self.team
        if team is None:
            return []
        if self.vehicle is not None:
            return [Problem(("team",), "needs [vehicles.NAME]; a single [vehicle] has [control]")]
        if team.load not in self.loads:
            return [Problem(("team", "load"), f"there is no load of this name{nearest(team.load, self.loads)}", team.load)]
        problems = []
        carried = {c.upper for c in self.cables.values() if c.lower == team.load}
        for i, name in enumerate(team.vehicles or ()):
            if name not in self.vehicles:
                problems.append(Problem(("team", "vehicles", i), f"there is no vehicle of this name{nearest(name, self.vehicles)}", name))
        if problems:
            return problems
        if not self.team_vehicles:
            return [Problem(("team", "load"), "no vehicle has a cable to this load", team.load)]
        for name in self.team_vehicles:
            if name not in carried:
                problems.append(
                    Problem(("team", "vehicles"), f"{name} needs a cable with itself at the upper and {team.load} at the lower end")
                )
            for key in ("control", "reference"):
                if key in self.vehicles[name].model_fields_set:
                    problems.append(Problem(("vehicles", name, key), "a vehicle of the team is flown by [team]: leave it out"))
        edges = (team.edges or ()) if isinstance(team, FormationTeam) else ()
        for i, edge in enumerate(edges):
            for name in edge:
                if name not in self.team_vehicles:
                    hint = nearest(name, self.team_vehicles)
                    problems.append(Problem(("team", "edges", i), f"there is no vehicle of this name in the team{hint}", name))
            if edge[0] == edge[1]:
                problems.append(Problem(("team", "edges", i), "joins a vehicle to itself", edge))
        if isinstance(team, FormationTeam) and team.edges is not None and not problems and not self._connected(team.edges):
            problems.append(Problem(("team", "edges"), "do not connect all vehicles of the team"))
        return problems

    def _connected(self, edges: Iterable[tuple[str, str]]) -> bool:
        reached, grew = {self.team_vehicles[0]}, True
        while grew:
            more = {b for e in edges for a, b in (e, e[::-1]) if a in reached} - reached
            reached |= more
            grew = bool(more)
        return reached == set(self.team_vehicles)

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
                name = event.body or self._only_one()
                problems += self._name_problems((*at, "body"), name, "body")
                tools = [known for known, v in self.fleet.items() if v.spec.end_effector is not None]
                if isinstance(event, PushEvent) and event.end_effector and name in self.bodies and name not in tools:
                    problems.append(Problem((*at, "end_effector"), f"{name} has no end-effector"))
            elif isinstance(event, WindEvent) and self.environment.mean_wind is None:
                wanted = 'needs [environment.wind] with kind = "steady" (velocity = [0, 0, 0] for still air at first)'
                wanted += ' or "shear", or a "sum" with exactly one of them'
                problems.append(Problem((*at, "kind"), wanted, event.kind))
            elif isinstance(event, (CutEvent, WinchEvent)):
                if event.cable not in self.cables:
                    hint = nearest(event.cable, self.cables)
                    problems.append(Problem((*at, "cable"), f"there is no cable of this name{hint}", event.cable))
                elif isinstance(event, WinchEvent) and self.cables[event.cable].winch is None:
                    problems.append(Problem((*at, "cable"), "has no winch: give it a table `winch`", event.cable))
            elif isinstance(event, TargetEvent) and self.team is not None and event.vehicle in (None, self.team.load):
                if self.team.reference.kind != "hover":
                    problems.append(Problem((*at, "kind"), 'needs a team reference of kind = "hover"', event.kind))
            elif isinstance(event, TargetEvent):
                name = event.vehicle or self._only_one()
                problems += self._name_problems((*at, "vehicle"), name, "vehicle")
                if name in self.fleet and self.fleet[name].reference.kind != "hover":
                    problems.append(Problem((*at, "kind"), f'needs a reference of kind = "hover" for {name}', event.kind))
        return problems

    def _only_one(self) -> str | None:
        return next(iter(self.fleet)) if len(self.fleet) == 1 else None

    def _body_or_vehicle(self, what: str) -> tuple[str, ...]:
        return self.bodies if what == "body" else tuple(self.fleet)

    def _name_problems(self, path: tuple[str | int, ...], name: str | None, what: str) -> list[Problem]:
        if name is None:
            return [Problem(path, f"missing: there are several; expected one of {', '.join(self._body_or_vehicle(what))}")]
        if name not in self._body_or_vehicle(what):
            return [Problem(path, f"there is no {what} of this name{nearest(name, self._body_or_vehicle(what))}", name)]
        return []


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'this'?` for a word that is close to a known one, else the list of all known ones."""
    known = list(known)
    close = difflib.get_close_matches(word.lower(), known, n=3, cutoff=0.6)
    if close:
        # Two letters exchanged is the likeliest slip, though difflib thinks a missing one is nearer.
        exchanged = [name for name in close if sorted(name) == sorted(word.lower())]
        return f"; did you mean {(exchanged or close)[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""
