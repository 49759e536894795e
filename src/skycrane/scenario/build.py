"""From a checked scenario to the objects that `simulate` flies."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.control.model import Gains, default_gains
from skycrane.control.pose import FullPoseControl, GeometricControl
from skycrane.control.references import Circle, FigureEight, Hover
from skycrane.control.splines import Waypoints
from skycrane.core.bodies import State
from skycrane.core.controller import AbstractController, AbstractReference, Constant, Team
from skycrane.core.element import AbstractElement
from skycrane.core.events import Event, Impulse, Timeline
from skycrane.core.system import System
from skycrane.elements.contact import GroundContact
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.environment.air import AbstractWind, Air, NoWind, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground
from skycrane.simulation.integrators import RK4, AbstractIntegrator, Adaptive, SemiImplicitEuler
from skycrane.simulation.rollout import Limits
from skycrane.vehicles.multirotor import Multirotor, bodies_for, rotors_for

from .control import GainsSpec, RotorSpeedsControl
from .craft import feet_of, multirotor, start_speeds
from .environment import EnvironmentSpec
from .environment import SteadyWind as SteadyWindSpec
from .events import ImpulseEvent, PushEvent, RotorFailureEvent, WindEvent
from .reference import CircleReference, HoverReference, WaypointsReference
from .scenario import SINGLE, Scenario, Vehicle


@dataclass(frozen=True)
class Built:
    """A scenario ready to fly. Bodies have the names of the vehicles; rotors are the element `rotors`, or `rotors_NAME`."""

    scenario: Scenario
    crafts: dict[str, Multirotor]
    system: System
    controller: AbstractController
    reference: Any
    initial: State
    timeline: Timeline
    integrator: AbstractIntegrator
    limits: Limits | None

    @property
    def followed(self) -> Any:
        """The references that vehicles follow: those of vehicles without feedback are left out."""
        if not isinstance(self.reference, dict):
            return self.reference
        return {name: member for name, member in self.reference.items() if member is not None}


def build(scenario: Scenario) -> Built:
    """Everything that `simulate` needs, in the precision that JAX is set to."""
    fleet = scenario.fleet
    crafts = {name: multirotor(vehicle.spec) for name, vehicle in fleet.items()}
    system = System(
        bodies_for(tuple(crafts), list(crafts.values())),
        _elements(scenario, crafts),
        environment=_environment(scenario.environment),
        keep_ledger=True,
    )
    initial = system.initial_state(
        position=[v.spec.initial.position for v in fleet.values()],
        attitude=[attitude(v) for v in fleet.values()],
        velocity=[v.spec.initial.velocity for v in fleet.values()],
        angular_velocity=[v.spec.initial.angular_velocity for v in fleet.values()],
    )
    controllers = {name: _controller(name, v, crafts[name], scenario) for name, v in fleet.items()}
    references = {name: _reference(v) for name, v in fleet.items()}
    alone = scenario.vehicle is not None
    return Built(
        scenario,
        crafts,
        system,
        controllers[SINGLE] if alone else Team(controllers),
        references[SINGLE] if alone else references,
        initial,
        _timeline(scenario),
        _integrator(scenario),
        _limits(scenario),
    )


def rotors_of(scenario: Scenario, name: str) -> str:
    """Name of the element that holds a vehicle's rotors, which is also the name of its command."""
    return "rotors" if scenario.vehicle is not None else f"rotors_{name}"


def attitude(vehicle: Vehicle) -> np.ndarray:
    """Quaternion (4,) of a vehicle at the start, from its roll, pitch and yaw."""
    roll, pitch, yaw = 0.5 * np.deg2rad(vehicle.spec.initial.attitude_deg)
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def _elements(scenario: Scenario, crafts: dict[str, Multirotor]) -> dict[str, AbstractElement]:
    elements: dict[str, AbstractElement] = {"gravity": Gravity()}
    fleet, index = scenario.fleet, {name: i for i, name in enumerate(scenario.bodies)}
    for name, craft in crafts.items():
        speeds = start_speeds(fleet[name].spec, craft, scenario.environment.gravity)
        # An element for each vehicle, so that each has a command of its own.
        elements[rotors_of(scenario, name)] = rotors_for([craft], (index[name],), speeds[None])
    drags = {name: v.spec.drag for name, v in fleet.items() if v.spec.drag is not None}
    if drags:
        centers = np.array([drag.center or fleet[name].spec.com for name, drag in drags.items()], dtype=float)
        elements["drag"] = Drag(
            tuple(index[name] for name in drags),
            jnp.array([drag.cd_area for drag in drags.values()], dtype=float),
            jnp.asarray(centers) if centers.any() else None,
        )
    ground = scenario.environment.ground
    if ground is not None:
        feet = {name: feet_of(v.spec) for name, v in fleet.items()}
        elements["contact"] = GroundContact(
            tuple(index[name] for name, points in feet.items() for _ in points),
            jnp.asarray(np.concatenate(list(feet.values()))),
            stiffness=ground.stiffness,
            dissipation=ground.dissipation,
            friction=ground.friction,
        )
    pushes = [event for event in scenario.events if isinstance(event, PushEvent)]
    if pushes:
        still = jnp.zeros((len(pushes), 3))
        elements["push"] = Push(tuple(index[event.body or SINGLE] for event in pushes), still, still, still)
    return elements


def _environment(spec: EnvironmentSpec) -> Environment:
    wind: AbstractWind = NoWind()
    if isinstance(spec.wind, SteadyWindSpec):
        wind = SteadyWind(jnp.array(spec.wind.velocity, dtype=float))
    ground = None if spec.ground is None else Ground(spec.ground.height)
    return Environment(spec.gravity, Air(spec.air_density, wind), ground)


def _timeline(scenario: Scenario) -> Timeline:
    """Events by their paths into the system. A push is switched on by one event and off by another."""
    events, impulses, push = [], [], 0
    for event in scenario.events:
        time = jnp.array(event.time, dtype=float)
        if isinstance(event, RotorFailureEvent):
            element = rotors_of(scenario, event.vehicle or scenario.bodies[0])
            # Thrust and moment go with the square of the speed.
            left = jnp.sqrt(jnp.array(event.remaining, dtype=float))
            events.append(Event(f"system.elements.{element}.speed_fraction[0, {event.rotor - 1}]", time, left))
        elif isinstance(event, ImpulseEvent):
            body = scenario.bodies.index(event.body or scenario.bodies[0])
            linear_W, offset_B = jnp.array(event.linear, dtype=float), jnp.array(event.point, dtype=float)
            impulses.append(Impulse(body, time, linear_W, offset_B=offset_B))
        elif isinstance(event, PushEvent):
            path = f"system.elements.push.force_W[{push}]"
            force_W = jnp.array(event.force, dtype=float)
            events += [Event(path, time, force_W), Event(path, time + event.duration, jnp.zeros(3))]
            push += 1
        elif isinstance(event, WindEvent):
            events.append(Event("system.environment.air.wind.velocity", time, jnp.array(event.velocity, dtype=float)))
    return Timeline(tuple(events), tuple(impulses))


def _integrator(scenario: Scenario) -> AbstractIntegrator:
    return {"rk4": RK4, "semi_implicit_euler": SemiImplicitEuler, "adaptive": Adaptive}[scenario.run.integrator]()


def _limits(scenario: Scenario) -> Limits | None:
    run = scenario.run
    if run.max_distance is None and run.max_speed is None:
        return None
    return Limits(run.max_distance or jnp.inf, run.max_speed or jnp.inf)


FEEDBACK: dict[str, type[GeometricControl] | type[FullPoseControl]] = {
    "geometric": GeometricControl,
    "full_pose": FullPoseControl,
}


def _controller(name: str, vehicle: Vehicle, craft: Multirotor, scenario: Scenario) -> AbstractController:
    control, element = vehicle.control, rotors_of(scenario, name)
    if isinstance(control, RotorSpeedsControl):
        speeds = jnp.broadcast_to(jnp.array(control.speeds, dtype=float), (1, craft.count))
        return Constant({element: speeds})
    body = scenario.bodies.index(name)
    return FEEDBACK[control.kind].of(
        craft,
        (body,),
        element,
        scenario.environment.gravity,
        _gains(control.gains, default_gains(craft, scenario.environment.gravity)),
        tilt_max=float(np.deg2rad(control.tilt_max_deg)),
        outer_every=control.outer_every,
    )


def _gains(given: GainsSpec, computed: Gains) -> Gains:
    """The given gains in place of the computed ones."""
    changed = {name: jnp.array([value], dtype=float) for name, value in given if value is not None}
    return dataclasses.replace(computed, **changed)


def _reference(vehicle: Vehicle) -> AbstractReference | None:
    """What the vehicle follows; None for one without feedback."""
    if isinstance(vehicle.control, RotorSpeedsControl):
        return None
    spec, initial = vehicle.reference, vehicle.spec.initial
    if isinstance(spec, HoverReference):
        yaw_deg = initial.attitude_deg[2] if spec.yaw_deg is None else spec.yaw_deg
        return Hover.create(np.array(spec.position or initial.position), np.deg2rad(yaw_deg))
    if isinstance(spec, WaypointsReference):
        points_W, yaw = np.array(spec.points), np.deg2rad(spec.yaw_deg)
        if spec.times is None:
            assert spec.speed is not None
            return Waypoints.at_speed(points_W, spec.speed, minimize=spec.minimize, yaw=yaw)
        return Waypoints.create(points_W, np.array(spec.times), minimize=spec.minimize, yaw=yaw)
    center_W, phase, yaw = np.array([*spec.center, spec.height]), np.deg2rad(spec.phase_deg), np.deg2rad(spec.yaw_deg)
    options: dict[str, Any] = {"phase": phase, "ramp": spec.ramp, "yaw": yaw, "heading": spec.heading}
    if isinstance(spec, CircleReference):
        period = spec.period if spec.direction == "ccw" else -spec.period
        return Circle.create(center_W, spec.radius, period, **options)
    return FigureEight.create(center_W, spec.length, spec.width, spec.period, **options)
