"""From a checked scenario to the objects that `simulate` flies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.core.bodies import State
from skycrane.core.controller import AbstractController, AbstractSensors, Team
from skycrane.core.element import AbstractElement
from skycrane.core.events import Timeline
from skycrane.core.system import System
from skycrane.elements.contact import GroundContact
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.simulation.integrators import RK4, AbstractIntegrator, Adaptive, SemiImplicitEuler
from skycrane.simulation.rollout import Limits
from skycrane.vehicles.multirotor import Multirotor, bodies_for

from .craft import feet_of, hover_speeds, multirotor, rotors_element, start_speeds, steady_speeds, throttle_of
from .events import PushEvent
from .instruments import sensors_of
from .paths import reference_of
from .pilots import controller_of
from .scenario import SINGLE, Scenario, Vehicle
from .surroundings import environment_of
from .timeline import rotors_of, timeline_of


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
            return self.reference
        return {name: member for name, member in self.reference.items() if member is not None}


def build(scenario: Scenario) -> Built:
    """Everything that `simulate` needs, in the precision that JAX is set to."""
    fleet = scenario.fleet
    environment = environment_of(scenario)
    # The density at world height 0: coefficients of blade elements are those of hover there.
    density = float(environment.air.density)
    crafts = {name: multirotor(vehicle.spec, density) for name, vehicle in fleet.items()}
    gravity = scenario.environment.gravity
    hover = {name: hover_speeds(craft, gravity) for name, craft in crafts.items()}
    system = System(
        bodies_for(tuple(crafts), list(crafts.values())),
        _elements(scenario, crafts, hover),
        environment=environment,
        keep_ledger=True,
    )
    initial = system.initial_state(
        position=[v.spec.initial.position for v in fleet.values()],
        attitude=[attitude(v) for v in fleet.values()],
        velocity=[v.spec.initial.velocity for v in fleet.values()],
        angular_velocity=[v.spec.initial.angular_velocity for v in fleet.values()],
    )
    controllers = {
        name: controller_of(
            v, crafts[name], scenario.bodies.index(name), rotors_of(scenario, name), gravity,
            scenario.run.tick, steady_speeds(v.spec, hover[name]), throttle_of(v.spec),
        )
        for name, v in fleet.items()
    }  # fmt: skip
    references = {name: reference_of(v) for name, v in fleet.items()}
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
        sensors_of(scenario),
    )


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


def _elements(scenario: Scenario, crafts: dict[str, Multirotor], hover: dict[str, np.ndarray]) -> dict[str, AbstractElement]:
    elements: dict[str, AbstractElement] = {"gravity": Gravity()}
    fleet, index = scenario.fleet, {name: i for i, name in enumerate(scenario.bodies)}
    for name, craft in crafts.items():
        speeds = start_speeds(fleet[name].spec, hover[name])
        # An element for each vehicle, so that each has a command of its own.
        elements[rotors_of(scenario, name)] = rotors_element(fleet[name].spec, craft, index[name], speeds)
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


def _integrator(scenario: Scenario) -> AbstractIntegrator:
    return {"rk4": RK4, "semi_implicit_euler": SemiImplicitEuler, "adaptive": Adaptive}[scenario.run.integrator]()


def _limits(scenario: Scenario) -> Limits | None:
    run = scenario.run
    if run.max_distance is None and run.max_speed is None:
        return None
    return Limits(run.max_distance or jnp.inf, run.max_speed or jnp.inf)
