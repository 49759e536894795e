"""From a checked scenario to the objects that `simulate` flies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.control.surge_plans import AbstractSurgePlan
from skycrane.core.bodies import Bodies, State
from skycrane.core.controller import AbstractController, AbstractSensors, Team
from skycrane.core.element import AbstractElement
from skycrane.core.events import Timeline
from skycrane.core.system import System
from skycrane.elements.contact import GroundContact
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.loads.buoy import Buoy
from skycrane.loads.rigid import Rigid
from skycrane.loads.rope import with_end_lumps
from skycrane.simulation.implicit import LinearlyImplicit, LinearlyImplicit3
from skycrane.simulation.integrators import INTEGRATORS as EXPLICIT
from skycrane.simulation.integrators import AbstractIntegrator
from skycrane.simulation.rollout import Limits
from skycrane.vehicles.multirotor import Multirotor, bodies_for

from .craft import feet_of, hover_speeds, multirotor, rotors_element, start_speeds, steady_speeds, throttle_of
from .crew import crew_of
from .downwash import downwash_of, jet_of, thrust_shares
from .events import PushEvent
from .instruments import sensors_of
from .lift import cable_elements, carried_weights, ends_of, heavier, poses_of, rigid_of, rope_of, touching_points
from .paths import reference_of
from .pilots import controller_of
from .places import rotor_groups, rotor_place
from .scenario import SINGLE, Scenario
from .sea import buoy_starts, buoys_of, plan_of, sea_elements, surge_of, tethers_of, tow_sensors
from .surroundings import environment_of
from .timeline import timeline_of
from .tool import BacksteppingControl
from .tool_build import backstepping_of, led, surface_of, tip_of
from .water import SurgeControl

INTEGRATORS = {**EXPLICIT, "linearly_implicit": LinearlyImplicit3, "linearly_implicit_2": LinearlyImplicit}


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
    sensors: AbstractSensors

    @property
    def followed(self) -> Any:
        """The references that vehicles follow: those of vehicles without feedback are left out."""
        if not isinstance(self.reference, dict):
            return None if isinstance(self.reference, AbstractSurgePlan) else self.reference
        left_out = (AbstractSurgePlan, type(None))
        return {name: member for name, member in self.reference.items() if not isinstance(member, left_out)}


def build(scenario: Scenario) -> Built:
    """Everything that `simulate` needs, in the precision that JAX is set to."""
    fleet = scenario.fleet
    environment = environment_of(scenario)
    # The density at world height 0: coefficients of blade elements are those of hover there.
    density = float(environment.air.density)
    crafts = {name: multirotor(vehicle.spec, density) for name, vehicle in fleet.items()}
    gravity = scenario.environment.gravity
    poses = poses_of(scenario)
    carried, lost = carried_weights(scenario, poses), thrust_shares(scenario)
    hover = {
        # All of the weight, and what the jets push down.
        name: hover_speeds(
            heavier(craft, (carried[name] + lost[name] * float(craft.mass) * gravity) / (1.0 - lost[name]), gravity), gravity
        )
        for name, craft in crafts.items()
    }
    loads = {name: rigid_of(spec) for name, spec in scenario.loads.items()}
    buoys = buoys_of(scenario)
    members = members_of(scenario, crafts, loads, buoys)
    system = System(
        _bodies(members, buoys),
        _elements(scenario, crafts, hover) | cable_elements(scenario, poses) | _afloat(scenario, buoys),
        tethers_of(scenario),
        environment=environment,
        keep_ledger=True,
    )
    named = {name: v.spec.initial for name, v in fleet.items()} | {name: load.initial for name, load in scenario.loads.items()}
    starts: list[Any] = [*named.values(), *(buoy.initial for buoy in scenario.buoys.values())]
    velocities = {name: start.velocity for name, start in named.items()} | {n: v for n, (_, v) in buoy_starts(scenario).items()}
    initial = system.initial_state(
        position=[poses[name].position for name in members],
        attitude=[attitude(start.attitude_deg) for start in starts],
        velocity=[velocities[name] for name in members],
        angular_velocity=[start.angular_velocity for start in starts],
    )
    alone_flown = {name: v for name, v in fleet.items() if name not in scenario.team_vehicles}
    controllers = {
        name: backstepping_of(scenario, name, crafts[name], rotor_place(scenario, name)[0])
        if isinstance(v.control, BacksteppingControl)
        else surge_of(scenario, name, crafts[name], rotor_place(scenario, name)[0], buoys)
        if isinstance(v.control, SurgeControl)
        else controller_of(
            v, crafts[name], scenario.bodies.index(name), rotor_place(scenario, name)[0], gravity,
            scenario.run.tick, steady_speeds(v.spec, hover[name]), throttle_of(v.spec),
        )
        for name, v in alone_flown.items()
    }  # fmt: skip
    references: dict[str, Any] = {
        name: plan_of(scenario, v) if isinstance(v.control, SurgeControl) else led(v, reference_of(v.control, v.reference, v.spec.initial))
        for name, v in alone_flown.items()
    }
    if scenario.team is not None:
        load = scenario.team.load
        controllers[load] = crew_of(scenario, crafts, loads, members)
        references[load] = reference_of(None, scenario.team.reference, scenario.loads[load].initial)
    alone = scenario.vehicle is not None
    return Built(
        scenario,
        crafts,
        system,
        controllers[SINGLE] if alone else Team(controllers),
        references[SINGLE] if alone else references,
        initial,
        timeline_of(scenario, controllers),
        _integrator(scenario),
        _limits(scenario),
        tow_sensors(scenario) or sensors_of(scenario),
    )


def _bodies(members: dict[str, Any], buoys: dict[str, Buoy]) -> Bodies:
    """The bodies, with the added mass of those that float."""
    if not buoys:
        return bodies_for(tuple(members), list(members.values()))
    mass, inertia_B, com_B = (np.stack([np.asarray(getattr(m, key)) for m in members.values()]) for key in ("mass", "inertia_B", "com_B"))
    added = np.stack([np.asarray(buoys[name].added) if name in buoys else np.zeros((6, 6)) for name in members])
    return Bodies.create(tuple(members), mass, inertia_B, com_B, added)


def _afloat(scenario: Scenario, buoys: dict[str, Buoy]) -> dict[str, AbstractElement]:
    return sea_elements(scenario, buoys, {name: touching_points(load) for name, load in scenario.loads.items()})


def members_of(
    scenario: Scenario, crafts: dict[str, Multirotor], loads: dict[str, Rigid], buoys: dict[str, Buoy] | None = None
) -> dict[str, Any]:
    """Mass properties of all bodies by name, with the cable ends that they carry."""
    bare = {**crafts, **loads, **{name: buoy.rigid for name, buoy in (buoys or {}).items()}}
    if not scenario.cables:
        return bare
    upper, lower, upper_B, lower_B = zip(*ends_of(scenario).values(), strict=True)
    ropes = [rope_of(cable) for cable in scenario.cables.values()]
    return dict(zip(bare, with_end_lumps(list(bare.values()), ropes, upper, lower, upper_B, lower_B), strict=True))


def attitude(attitude_deg: tuple[float, float, float]) -> np.ndarray:
    """Quaternion (4,) from roll, pitch and yaw."""
    roll, pitch, yaw = 0.5 * np.deg2rad(attitude_deg)
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def _elements(scenario: Scenario, crafts: dict[str, Multirotor], hover: dict[str, np.ndarray]) -> dict[str, AbstractElement]:
    elements: dict[str, AbstractElement] = {"gravity": Gravity()}
    fleet, index = scenario.fleet, {name: i for i, name in enumerate(scenario.bodies)}
    # An element for each vehicle, so that each has a command of its own; one for all of a team.
    for element, names in rotor_groups(scenario).items():
        speeds = np.stack([start_speeds(fleet[name].spec, hover[name]) for name in names])
        elements[element] = rotors_element(
            fleet[names[0]].spec, crafts[names[0]], tuple(index[name] for name in names), speeds, jet_of(scenario, names[0])
        )
    coms = {name: v.spec.com for name, v in fleet.items()} | {name: rigid_of(load).com_B for name, load in scenario.loads.items()}
    specs = {name: v.spec for name, v in fleet.items()} | scenario.loads
    drags = {name: spec.drag for name, spec in specs.items() if spec.drag is not None}
    if drags:
        centers = np.array([coms[name] if drag.center is None else drag.center for name, drag in drags.items()], dtype=float)
        elements["drag"] = Drag(
            tuple(index[name] for name in drags),
            jnp.array([drag.cd_area for drag in drags.values()], dtype=float),
            jnp.asarray(centers) if centers.any() else None,
        )
    ground = scenario.environment.ground
    if ground is not None:
        feet = {name: feet_of(v.spec) for name, v in fleet.items()} | {name: touching_points(s) for name, s in scenario.loads.items()}
        elements["contact"] = GroundContact(
            tuple(index[name] for name, points in feet.items() for _ in points),
            jnp.asarray(np.concatenate(list(feet.values()))),
            stiffness=ground.stiffness,
            dissipation=ground.dissipation,
            friction=ground.friction,
        )
    elements |= downwash_of(scenario)
    elements |= surface_of(scenario)
    pushes = [event for event in scenario.events if isinstance(event, PushEvent)]
    if pushes:
        still, bodies = jnp.zeros((len(pushes), 3)), [event.body or SINGLE for event in pushes]
        tips = [tip_of(fleet[name]) if event.end_effector else np.zeros(3) for name, event in zip(bodies, pushes, strict=True)]
        turns = still if any(any(event.torque) for event in pushes) else None
        elements["push"] = Push(tuple(index[name] for name in bodies), still, jnp.asarray(np.array(tips)), still, turns)
    return elements


def _integrator(scenario: Scenario) -> AbstractIntegrator:
    # "auto" is settled before the flight (skycrane.scenario.choose); until then the safe one stands.
    return INTEGRATORS.get(scenario.run.integrator, LinearlyImplicit3)()


def _limits(scenario: Scenario) -> Limits | None:
    run = scenario.run
    if run.max_distance is None and run.max_speed is None:
        return None
    return Limits(run.max_distance or jnp.inf, run.max_speed or jnp.inf)
