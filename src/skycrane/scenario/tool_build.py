"""End-effectors of a scenario: their controller, their references, the surface, and the metrics."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.analysis.metrics import attitude_error
from skycrane.control.backstepping import Backstepping, BacksteppingGains, ForceTask, Schedule
from skycrane.control.model import VehicleModel
from skycrane.control.redistribution import Shift
from skycrane.control.rigid_regressor import Inertial
from skycrane.control.tip_paths import AtTip
from skycrane.core.controller import AbstractReference
from skycrane.elements.surface import SurfaceContact
from skycrane.math.rotation import rotate
from skycrane.simulation.samples import Samples
from skycrane.vehicles.multirotor import Multirotor

from .reference import HoverReference, TumbleReference
from .scenario import Scenario, Vehicle
from .tool import BacksteppingControl

SURFACE = "surface"


def tools_of(scenario: Scenario) -> tuple[str, ...]:
    """Vehicles with an end-effector: the order of the surface's points."""
    return tuple(name for name, v in scenario.fleet.items() if v.spec.end_effector is not None)


def tip_of(vehicle: Vehicle) -> np.ndarray:
    """Place (3,) of the end-effector in body axes; the reference point for a vehicle without."""
    tool = vehicle.spec.end_effector
    return np.zeros(3) if tool is None else np.array(tool.position)


def leads_the_tip(vehicle: Vehicle) -> bool:
    """Whether the vehicle's reference is the path of its end-effector.  One that only says "where it starts" is that of the vehicle."""
    if not isinstance(vehicle.control, BacksteppingControl) or vehicle.spec.end_effector is None:
        return False
    spec = vehicle.reference
    return not isinstance(spec, (HoverReference, TumbleReference)) or spec.position is not None


def led(vehicle: Vehicle, reference: AbstractReference | None) -> AbstractReference | None:
    """The reference as one of the vehicle's own reference point."""
    if reference is None or not leads_the_tip(vehicle):
        return reference
    return AtTip(reference, jnp.asarray(tip_of(vehicle))[None])


def surface_of(scenario: Scenario) -> dict[str, SurfaceContact]:
    """The surface as an element, where there is one."""
    surface, tools = scenario.environment.surface, tools_of(scenario)
    if surface is None or not tools:
        return {}
    normal = np.array(surface.normal)
    contact = SurfaceContact(
        tuple(scenario.bodies.index(name) for name in tools),
        jnp.array([tip_of(scenario.fleet[name]) for name in tools]),
        jnp.array(surface.point, dtype=float),
        jnp.asarray(normal / np.linalg.norm(normal)),
        stiffness=surface.stiffness,
        dissipation=surface.dissipation,
        friction=surface.friction,
    )
    return {SURFACE: contact}


def backstepping_of(scenario: Scenario, name: str, craft: Multirotor, element: str) -> Backstepping:
    """The controller of a vehicle."""
    vehicle = scenario.fleet[name]
    control = vehicle.control
    assert isinstance(control, BacksteppingControl)
    model = VehicleModel.of(craft, (scenario.bodies.index(name),), element, scenario.environment.gravity)
    com_B = jnp.zeros((1, 3)) if model.com_B is None else model.com_B
    true = Inertial.of(model.mass, com_B, model.inertia_B)
    believed = control.believed
    mass = believed.mass_factor * true.mass
    moment = true.moment * believed.mass_factor if believed.com is None else mass[:, None] * jnp.array([believed.com], dtype=float)
    start = Inertial(mass, moment, believed.inertia_factor * true.inertia)
    g = control.gains
    mean = float(np.asarray(true.inertia)[0, :3].mean())
    velocity = g.velocity or (4.2 * float(model.mass[0]),) * 3
    rate = g.rate or (7.0 * mean,) * 3
    adapted = control.wrench == "adapted"
    gains = BacksteppingGains(
        *(jnp.array([v], dtype=float) for v in (g.position, g.attitude, velocity, rate)),
        *(jnp.array(v, dtype=float) for v in (g.mass, g.moment, g.inertia, g.force if adapted else 0.0, g.torque if adapted else 0.0)),
    )
    return Backstepping(
        model,
        gains,
        jnp.asarray(tip_of(vehicle))[None],
        start,
        None if control.redistribution == "bounded" else Shift.of(model.allocation, control.redistribution),
        _schedule(control),
        _task(scenario, name, control),
        0.2 * mass,
        euler=control.attitude == "euler",
        felt=control.wrench == "felt",
    )


def _schedule(control: BacksteppingControl) -> Schedule | None:
    if control.wrench not in ("known", "felt") or not control.known_wrenches:
        return None
    rows = control.known_wrenches
    return Schedule(
        jnp.array([r.time for r in rows], dtype=float),
        jnp.array([r.time + r.duration for r in rows], dtype=float),
        jnp.array([[*r.force, *r.torque] for r in rows], dtype=float),
    )


def _task(scenario: Scenario, name: str, control: BacksteppingControl) -> ForceTask | None:
    press, surface = control.press, scenario.environment.surface
    if press is None or surface is None:
        return None
    normal = np.array(surface.normal)
    force, start, gain, depth = (jnp.array([v], dtype=float) for v in (press.force, press.start, press.gain, press.depth))
    towards_tool = jnp.asarray(normal / np.linalg.norm(normal))[None]
    return ForceTask(towards_tool, force, start, gain, depth, SURFACE, (tools_of(scenario).index(name),))


def tool_metrics(built: Any, samples: Samples) -> dict[str, float]:
    """Errors of the end-effectors over the whole run and in each phase, and the force on the surface."""
    scenario: Scenario = built.scenario
    out: dict[str, float] = {}
    tools = tools_of(scenario)
    for point, name in enumerate(tools):
        tool = scenario.fleet[name].spec.end_effector
        assert tool is not None
        who = f"_{name}" if len(tools) > 1 else ""
        series: dict[str, np.ndarray] = {}
        if samples.target is not None and name in samples.tracked:
            series |= _errors(scenario, samples, name)
        if SURFACE in samples.outputs:
            series["normal_force"] = np.asarray(samples.outputs[SURFACE]["normal_force"])[:, point]
        spans = [("", 0.0, np.inf), *((f"_{phase.name}", phase.start, phase.end) for phase in tool.phases)]
        for suffix, start, end in spans:
            during = (samples.time >= start - 1e-9) & (samples.time <= end + 1e-9)
            if during.any():
                out |= {f"{key}{who}{suffix}": value for key, value in _figures({k: v[during] for k, v in series.items()}).items()}
    return out


def _errors(scenario: Scenario, samples: Samples, name: str) -> dict[str, np.ndarray]:
    assert samples.target is not None
    row, body = samples.tracked.index(name), scenario.bodies.index(name)
    tip = tip_of(scenario.fleet[name])
    q, wanted = np.asarray(samples.state.bodies.q_WB)[:, body], np.asarray(samples.target.q_WB)[:, row]
    at = np.asarray(samples.state.bodies.p_WB)[:, body] + np.asarray(rotate(q, tip))
    goal = np.asarray(samples.target.p_W)[:, row] + np.asarray(rotate(wanted, tip))
    apart = at - goal
    surface, control = scenario.environment.surface, scenario.fleet[name].control
    if surface is not None and isinstance(control, BacksteppingControl) and control.press is not None:
        normal = np.array(surface.normal) / np.linalg.norm(surface.normal)
        apart = apart - (apart @ normal)[:, None] * normal  # along it the force is controlled, not the place
    return {"position": np.linalg.norm(apart, axis=-1), "attitude": np.degrees(attitude_error(q, wanted))}


def _figures(series: dict[str, np.ndarray]) -> dict[str, float]:
    def rms(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean(x**2)))

    out: dict[str, float] = {}
    if "position" in series:
        out["end_effector_position_rms_m"] = rms(series["position"])
        out["end_effector_attitude_rms_deg"] = rms(series["attitude"])
    if "normal_force" in series:
        out["contact_force_mean_n"] = float(series["normal_force"].mean())
        out["contact_force_std_n"] = float(series["normal_force"].std())
    return out
