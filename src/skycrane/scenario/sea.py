"""Water, buoys, tethers and towing of a scenario: the objects, and what is reported of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from skycrane.control.model import VehicleModel
from skycrane.control.surge import LOGGED, Loop, SurgeControl, SurgeGains, TowedBuoy
from skycrane.control.surge_incremental import IncrementalSurgeControl
from skycrane.control.surge_plans import AbstractSurgePlan, StepPlan, TowPlan
from skycrane.control.surge_sensors import TowSensors
from skycrane.core.constraint import AbstractConstraint
from skycrane.core.element import AbstractElement
from skycrane.elements.buoyancy import Columns
from skycrane.elements.deck import DeckContact
from skycrane.elements.slaved import SlavedBuoy
from skycrane.elements.tether import LeverTether, Tether
from skycrane.environment.spectra import draw, jonswap, pierson_moskowitz
from skycrane.environment.water import Current, Water
from skycrane.environment.waves import Waves, airy
from skycrane.loads.buoy import Buoy, box_buoy, cylinder_buoy, friction_of, sphere_buoy, twin_buoy
from skycrane.loads.hydrostatics import Hydrostatics
from skycrane.loads.rigid import Rigid
from skycrane.math.components import Vec3
from skycrane.simulation.dataset import Table
from skycrane.simulation.samples import Samples
from skycrane.vehicles.multirotor import Multirotor

from . import water as spec
from .scenario import Scenario, Vehicle

if TYPE_CHECKING:
    pass

SOURCE_COUPLING = 0.0932  # m, see skycrane.systems.tethered_buoy
SLAVED_INERTIA = 1e4  # kg m^2, of roll and pitch, which are imposed


def water_of(scenario: Scenario) -> Water | None:
    """The water, if there is some."""
    given = scenario.environment.water
    if given is None:
        return None
    current = None if given.current is None else Current(jnp.array(given.current.velocity), given.current.depth, given.current.exponent)
    waves = None if given.waves is None else _waves(given.waves, given, scenario)
    return Water(given.level, given.density, given.viscosity, waves, current)


def _waves(given: Any, water: spec.WaterSpec, scenario: Scenario) -> Waves:
    options: dict[str, Any] = {
        "depth": water.depth, "gravity": scenario.environment.gravity, "stretching": given.stretching, "drift": given.drift,
    }  # fmt: skip
    if isinstance(given, spec.RegularWaves):
        return airy(given.height, given.period, given.direction_deg, given.phase_deg, **options)
    height, period = given.significant_height, given.peak_period
    spectrum = jonswap(height, period, given.gamma) if isinstance(given, spec.JonswapSea) else pierson_moskowitz(height, period)
    seed = scenario.run.seed if given.seed is None else given.seed
    return draw(
        spectrum,
        period,
        count=given.components,
        seed=seed,
        direction_deg=given.direction_deg,
        spreading_exponent=given.spreading,
        **options,
    )


# -- buoys ----------------------------------------------------------------------------------------------------------------------------


def buoy_of(given: spec.BuoySpec, density: float) -> Buoy:
    """A buoy in numbers."""
    hull = given.hull
    added: Any = given.added_matrix or given.added_mass
    options: dict[str, Any] = {
        "center_height": given.com_height, "density": density, "linear": _array(given.damping_matrix or given.damping),
        "quadratic": _array(given.quadratic_damping), "added": None if added is None else _array(added),
    }  # fmt: skip
    if isinstance(hull, spec.BoxHull):
        if given.model == "source" and added is None:
            m = given.mass
            options["added"] = np.array([0.05 * m, 0.05 * m, m, 0.05 * m, 0.05 * m, m])
        buoy, length = box_buoy(given.mass, hull.size, **options), hull.size[0]
    elif isinstance(hull, spec.CylinderHull):
        buoy, length = cylinder_buoy(given.mass, hull.radius, hull.height, **options), 2 * hull.radius
    elif isinstance(hull, spec.SphereHull):
        buoy, length = sphere_buoy(given.mass, hull.radius, **options), 2 * hull.radius
    else:
        buoy, length = twin_buoy(given.mass, hull.size, hull.spacing, round_hulls=hull.round, **options), hull.size[0]
    if given.model == "source":
        yaw = 0.208 if given.compat else float(buoy.rigid.inertia_B[2, 2])
        slaved = Rigid.create(given.mass, (SLAVED_INERTIA, SLAVED_INERTIA, yaw))
        return Buoy(slaved, buoy.columns, buoy.added, buoy.linear, buoy.quadratic, buoy.displacement)
    if not given.skin_friction:
        return buoy
    skin = friction_of(buoy.columns, length)
    return Buoy(buoy.rigid, buoy.columns, buoy.added, buoy.linear, buoy.quadratic, buoy.displacement, skin)


def _array(value: Any) -> np.ndarray:
    return np.array(value, dtype=float)


def buoys_of(scenario: Scenario) -> dict[str, Buoy]:
    """All buoys by name."""
    water = scenario.environment.water
    return {name: buoy_of(given, 1000.0 if water is None else water.density) for name, given in scenario.buoys.items()}


def hydrostatics_of(scenario: Scenario, name: str) -> Hydrostatics:
    """How a buoy floats by itself."""
    water = scenario.environment.water
    assert water is not None
    return buoy_of(scenario.buoys[name], water.density).hydrostatics(water.density, scenario.environment.gravity)


def buoy_starts(scenario: Scenario) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and velocity (3,) of every buoy at the start: afloat, with the current, where the file does not say."""
    water, out = water_of(scenario), {}
    for name, given in scenario.buoys.items():
        assert water is not None
        start = given.initial
        height = start.height
        if height is None:
            place = Vec3(*(np.asarray(c) for c in (*start.position, 0.0)))
            level = eqx.filter_jit(lambda water, place: water.motion(jnp.zeros(()), place).level)(water, place)
            height = float(level) + hydrostatics_of(scenario, name).height
        drift = np.zeros(3) if water.current is None else np.asarray(water.current.velocity_W(jnp.zeros(())).array())
        velocity = drift if start.velocity is None else np.array(start.velocity)
        out[name] = (np.array([*start.position, height]), velocity)
    return out


def sea_elements(scenario: Scenario, buoys: dict[str, Buoy], feet: dict[str, np.ndarray]) -> dict[str, AbstractElement]:
    """Elements of buoys, and contact of the loads' points ``feet`` (m, 3) with decks."""
    out: dict[str, AbstractElement] = {}
    index = {name: i for i, name in enumerate(scenario.bodies)}
    for name, given in scenario.buoys.items():
        if given.model == "source":
            assert isinstance(given.hull, spec.BoxHull)
            damping = np.array(given.damping)
            out[f"buoy_{name}"] = SlavedBuoy(index[name], jnp.array(given.hull.size), jnp.asarray(damping[:3]), damping[5], given.compat)
        else:
            out[f"buoy_{name}"] = buoys[name].element(index[name], given.surface)
        if given.deck and feet:
            bodies = tuple(index[load] for load, points in feet.items() for _ in points)
            top, half = _deck(given.hull)
            points = jnp.asarray(np.concatenate(list(feet.values())))
            out[f"deck_{name}"] = DeckContact(index[name], bodies, points, top, jnp.asarray(half))
    return out


def _deck(hull: Any) -> tuple[float, np.ndarray]:
    """Height of the deck above the reference point, and half its length and width."""
    if isinstance(hull, spec.CylinderHull):
        return 0.5 * hull.height, np.array([hull.radius, hull.radius])
    if isinstance(hull, spec.SphereHull):
        return hull.radius, np.array([0.5, 0.5]) * hull.radius
    aside = 0.5 * (hull.spacing + hull.size[1]) if isinstance(hull, spec.TwinHull) else 0.5 * hull.size[1]
    return 0.5 * hull.size[2], np.array([0.5 * hull.size[0], aside])


# -- tethers and towing ---------------------------------------------------------------------------------------------------------------


def _point(scenario: Scenario, body: str, point: Any) -> np.ndarray:
    return np.array((scenario.loads | scenario.buoys)[body].points[point] if isinstance(point, str) else point, dtype=float)


def tethers_of(scenario: Scenario) -> dict[str, AbstractConstraint]:
    """The constraints, `tether_NAME`."""
    out: dict[str, AbstractConstraint] = {}
    for name, given in scenario.tethers.items():
        lower, upper = scenario.bodies.index(given.lower), scenario.bodies.index(given.upper)
        ends = (_point(scenario, given.lower, given.lower_point), _point(scenario, given.upper, given.upper_point))
        at_lower, at_upper = (jnp.asarray(p) if p.any() and given.lever is None else None for p in ends)
        tether = Tether((lower, upper), given.length, at_lower, at_upper, given.breaking_tension)
        buoy = scenario.buoys.get(given.lower)
        coupling = SOURCE_COUPLING if buoy is not None and buoy.compat else 0.0
        out[f"tether_{name}"] = tether if given.lever is None else LeverTether(tether, given.lever, coupling)
    return out


def towing(scenario: Scenario) -> tuple[str, ...]:
    """Vehicles with surge control."""
    return tuple(name for name, v in scenario.fleet.items() if isinstance(v.control, spec.SurgeControl))


def surge_of(scenario: Scenario, name: str, craft: Multirotor, element: str, buoys: dict[str, Buoy]) -> SurgeControl:
    """The surge controller of a vehicle."""
    control = scenario.fleet[name].control
    assert isinstance(control, spec.SurgeControl)
    tether = scenario.tethers[control.tether]
    buoy, given = buoys[tether.lower], scenario.buoys[tether.lower]
    water = scenario.environment.water
    assert water is not None
    hook = _point(scenario, tether.lower, tether.lower_point)
    length, area = _friction(given, buoy)
    towed = TowedBuoy(
        scenario.bodies.index(tether.lower), tether.length, float(buoy.rigid.mass + buoy.added[0, 0]), length, area,
        jnp.asarray(hook) if hook.any() and tether.lever is None else None, water.density, water.viscosity,
    )  # fmt: skip
    kind = IncrementalSurgeControl if control.law == "incremental" else SurgeControl
    most = np.asarray(craft.thrust_coefficient * craft.speed_max**2)
    arms = np.abs(np.asarray(craft.effectiveness())[3:]) @ most
    options: dict[str, Any] = {
        "thrust_max": control.thrust_max or 0.9 * float(most.sum()),
        "torque_max": jnp.asarray(0.5 * arms),
        "slack_length": control.slack_length or 0.957 * tether.length,
        "shortest": 0.687 * tether.length,
        "share": control.share,
        "taut_margin": 0.05 if control.noisy else 0.01,
        "log": f"surge_{name}",
    }
    model = VehicleModel.of(craft, (scenario.bodies.index(name),), element, scenario.environment.gravity)
    made = kind(model, towed, scenario.run.tick, **options)
    return _with_gains(made, control.gains, kind)


def _with_gains(made: SurgeControl, given: spec.SurgeGainsSpec, kind: type[SurgeControl]) -> SurgeControl:
    import dataclasses

    changed: dict[str, Loop] = {}
    for loop, values in given:
        if values is not None:
            old = getattr(made.gains, loop)
            changed[loop] = dataclasses.replace(old, **dict(zip(("kp", "ki", "kd"), values, strict=False)))
    gains: SurgeGains = dataclasses.replace(made.gains, **changed) if changed else made.gains
    return dataclasses.replace(made, gains=gains)


def _friction(given: spec.BuoySpec, buoy: Buoy) -> tuple[float, float]:
    """Length and wet area at rest of the hull, for the controller's drag."""
    columns: Columns = buoy.columns
    depth = float(buoy.displacement) / float(columns.area.sum())
    if given.model == "source":
        assert isinstance(given.hull, spec.BoxHull)
        length, width, _ = given.hull.size
        return length, 2 * length * depth + length * width
    if buoy.skin is None:
        return 1.0, 0.0
    return float(buoy.skin.length), float(buoy.skin.area(depth, 1.0))


def plan_of(scenario: Scenario, vehicle: Vehicle) -> AbstractSurgePlan:
    """What a towing vehicle follows."""
    given, control = vehicle.reference, vehicle.control
    assert isinstance(control, spec.SurgeControl)
    tether = scenario.tethers[control.tether]
    water = scenario.environment.water
    assert water is not None
    height = getattr(given, "height", None)
    if height is None:
        height = water.level + hydrostatics_of(scenario, tether.lower).height + np.sqrt(0.5) * tether.length
    if isinstance(given, spec.TowReference):
        return TowPlan(
            jnp.array(given.goal), given.speed, height, given.start, given.slowing, given.arrived, given.slowest,
            float(np.deg2rad(given.offset_deg)),
        )  # fmt: skip
    assert isinstance(given, spec.SurgeStepsReference)
    return StepPlan.create(given.times, given.speeds, given.azimuths_deg, float(height), given.turn_rate_deg)


def tow_sensors(scenario: Scenario) -> TowSensors | None:
    """The instruments of a vehicle that tows by them."""
    for name in towing(scenario):
        control = scenario.fleet[name].control
        if isinstance(control, spec.SurgeControl) and control.noisy:
            bodies = scenario.bodies
            buoy = bodies.index(scenario.tethers[control.tether].lower)
            return TowSensors(bodies.index(name), buoy, scenario.run.tick, scenario.run.seed)
    return None


# -- what is reported -----------------------------------------------------------------------------------------------------------------

_MEANING = {
    "surge_reference": ("m/s", "wanted surge speed of the buoy, filtered"), "surge_error": ("m/s", "surge speed minus the wanted one"),
    "elevation_reference": ("rad", "wanted elevation of the tether"), "elevation_error": ("rad", "elevation minus the wanted one"),
    "azimuth_reference": ("rad", "wanted azimuth of the tether"), "azimuth_error": ("rad", "azimuth minus the wanted one"),
    "pulling": ("1", "1 while towing, 0 with a slack tether, filtered"),
}  # fmt: skip


def add_sea(table: Table, samples: Samples, scenario: Scenario) -> None:
    """References and errors of towing in the data set."""
    names = towing(scenario)
    if not names:
        return
    logs = np.stack([samples.command[f"surge_{name}"] for name in names], 1)
    table.coordinates["towing"] = list(names)
    for k, key in enumerate(LOGGED):
        units, meaning = _MEANING[key]
        table.variables[key] = (("time", "towing"), logs[:, :, k], {"units": units, "long_name": meaning})


def tow_metrics(scenario: Scenario, samples: Samples) -> dict[str, float]:
    """Figures of tethers, buoys and towing: of several the worst."""
    out: dict[str, float] = {}
    time = samples.time
    for name in towing(scenario):
        control = scenario.fleet[name].control
        assert isinstance(control, spec.SurgeControl)
        late = time >= _from(control.measure_from, time)
        log = samples.command[f"surge_{name}"][late]
        numbers = {
            "surge_error_std_mps": log[:, 1].std(), "surge_error_max_mps": np.abs(log[:, 1]).max(),
            "elevation_error_std_deg": np.degrees(log[:, 3].std()), "azimuth_error_std_deg": np.degrees(log[:, 5].std()),
        }  # fmt: skip
        out.update({key: max(float(value), out.get(key, 0.0)) for key, value in numbers.items()})
        tether = scenario.tethers[control.tether]
        buoy = samples.state.bodies.p_WB[-1, scenario.bodies.index(tether.lower)]
        if isinstance(scenario.fleet[name].reference, spec.TowReference):
            out["goal_distance_final_m"] = float(np.hypot(*(buoy[:2] - np.array(scenario.fleet[name].reference.goal))))  # type: ignore[union-attr]
    tensions = {name: samples.outputs[f"tether_{name}"]["tension"][:, 0] for name in scenario.tethers}
    if tensions:
        pulls = np.stack(list(tensions.values()))
        controls = [v.control for v in scenario.fleet.values() if isinstance(v.control, spec.SurgeControl)]
        start = min([c.measure_from for c in controls] or [0.0])
        late = time >= _from(start, time)
        out["tension_min_n"], out["tension_max_n"] = float(pulls[:, late].min()), float(pulls[:, late].max())
        slack = np.asarray((pulls <= 0).any(0))
        out["slack_time_s"] = float(np.trapezoid(np.where(late & slack, 1.0, 0.0), time))
        last = np.flatnonzero(slack)
        if not slack[-1]:
            out["taut_from_s"] = float(time[last.max() + 1] if last.size else time[0])
    immersed = [samples.outputs[f"buoy_{name}"]["immersed_fraction"].max() for name in scenario.buoys]
    if immersed:
        out["immersed_fraction_max"] = float(max(immersed))
    return out


def _from(wanted: float, time: np.ndarray) -> float:
    """The time from which on metrics count; half way through a run that ends before."""
    return wanted if wanted < time[-1] else 0.5 * float(time[-1])


def water_scene(scenario: Scenario) -> dict[str, Any] | None:
    """The water for the viewer: level and the waves' numbers."""
    water = water_of(scenario)
    if water is None:
        return None
    scene: dict[str, Any] = {"height": float(water.level)}
    if water.waves is not None:
        keys = ("amplitude", "frequency", "number", "phase", "east", "north")
        scene["waves"] = {key: np.asarray(getattr(water.waves, key), dtype=float).tolist() for key in keys}
    return scene


def hull_shapes(given: spec.BuoySpec) -> list[dict[str, Any]]:
    """A buoy as the viewer knows it."""
    hull = given.hull
    if isinstance(hull, spec.BoxHull):
        return [{"kind": "box", "size": list(hull.size)}]
    if isinstance(hull, spec.CylinderHull):
        return [{"kind": "cylinder", "radius": hull.radius, "height": hull.height}]
    if isinstance(hull, spec.SphereHull):
        return [{"kind": "sphere", "radius": hull.radius}]
    shapes: list[dict[str, Any]] = []
    length, width, height = hull.size
    for side in (0.5, -0.5):
        place = [0.0, side * hull.spacing, 0.0]
        if hull.round:
            ends = [[0.5 * length, place[1], 0.0], [-0.5 * length, place[1], 0.0]]
            shapes.append({"kind": "rod", "from": ends[0], "to": ends[1], "radius": 0.5 * width})
        else:
            shapes.append({"kind": "box", "size": [length, width, height], "position": place})
    shapes.append({"kind": "box", "size": [0.5 * length, hull.spacing, 0.1 * height], "position": [0.0, 0.0, 0.45 * height]})
    return shapes
