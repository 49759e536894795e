"""Metrics of loads, cables and teams of a flown scenario."""

from __future__ import annotations

from typing import Any

import numpy as np

from skycrane.analysis.lift_metrics import cable_metrics, disc_clearances, distance_metrics, formation_metrics, load_metrics
from skycrane.control.formation import FormationControl
from skycrane.simulation.samples import Samples

from .cables import WORLD
from .craft import radii
from .lift import cable_groups, ends_of, poses_of, rigid_of, touching_points
from .places import rotor_groups
from .scenario import Scenario

PRESSED = 0.2
"""Share of a load's weight above which jets that press on it are warned about."""
STRETCHED = 0.05
"""Share of its length by which a cable is stretched at the start above which it is warned about."""


def lift_metrics(built: Any, samples: Samples) -> dict[str, float]:
    """All of them; nothing for a scenario without loads and cables."""
    scenario, bodies = built.scenario, _arrays(samples)
    if not (scenario.loads or scenario.cables):
        return {}
    out: dict[str, float] = {}
    groups = cable_groups(scenario)
    names = {name: (element, i) for element, members in groups.items() for i, name in enumerate(members)}
    out |= cable_metrics(samples.time, {name: samples.outputs[element]["tension"][:, i] for name, (element, i) in names.items()})
    vehicles = [scenario.bodies.index(name) for name in scenario.fleet]
    out |= distance_metrics(bodies.p_WB[:, vehicles])
    for element in rotor_groups(scenario):
        lift = samples.outputs[element]["thrust"].sum(-1).max()
        out["vehicle_thrust_max_n"] = max(out.get("vehicle_thrust_max_n", 0.0), float(lift))
    out |= _clearance(built, samples, names)
    pressed = downloads(built, samples)
    if pressed:
        out["download_max_n"] = max(pressed.values())
    followed = None
    if scenario.team is not None:
        followed = scenario.team.load
        controller = built.controller.members[followed]
        load = scenario.bodies.index(followed)
        if isinstance(controller, FormationControl):
            flown = bodies.p_WB[:, list(controller.agents.bodies)]
            out |= formation_metrics(samples.time, flown, bodies.p_WB[:, load], np.asarray(controller.offset_W))
        assert samples.target is not None
        row = samples.tracked.index(followed)
        goal = (np.asarray(x)[-1, row] for x in (samples.target.p_W, samples.target.q_WB))
        out |= load_metrics(samples.time, bodies.p_WB[:, load], bodies.q_WB[:, load], *goal)
    return out


def downloads(built: Any, samples: Samples) -> dict[str, float]:
    """The largest force [N] with which the rotors' jets press each load down; nothing where jets do not count."""
    element = built.system.elements.get("downwash")
    if element is None:
        return {}
    most = samples.outputs["downwash"]["download"].max(0)
    return {built.scenario.bodies[body]: float(force) for body, force in zip(element.bodies, most, strict=True)}


def download_warnings(built: Any, samples: Samples) -> list[str]:
    """Loads on which the jets press with more than a fifth of their weight."""
    out = []
    for name, force in downloads(built, samples).items():
        share = force / (float(rigid_of(built.scenario.loads[name]).mass) * built.scenario.environment.gravity)
        if share > PRESSED:
            out.append(
                f"the rotors' jets press {name!r} down with up to {force:.3g} N, {share:.2g} times its weight: longer cables, vehicles "
                'further apart, or environment.downwash = "off"'
            )
    return out


def stretched_at_start(scenario: Scenario) -> list[str]:
    """Cables that are much longer than unstretched where the bodies start."""
    poses, ends, out = poses_of(scenario), ends_of(scenario), []
    for name, cable in scenario.cables.items():
        upper, lower = (
            point if body == WORLD else poses[body].point(point)
            for body, point in ((cable.upper, ends[name][2]), (cable.lower, ends[name][3]))
        )
        stretch = float(np.linalg.norm(upper - lower)) / cable.length - 1.0
        if stretch > STRETCHED:
            out.append(
                f"cable {name!r} starts stretched by {100 * stretch:.3g} %, {stretch * cable.length:.3g} m more than its length of "
                f"{cable.length:g} m: bring its ends nearer to one another, or start the vehicle with initial.over alone"
            )
    return out


def _clearance(built: Any, samples: Samples, cables: dict[str, tuple[str, int]]) -> dict[str, float]:
    """How near cables (their inner nodes) and loads (corners and rims) come to any rotor disc."""
    scenario, bodies = built.scenario, _arrays(samples)
    hubs, axes, sizes = [], [], []
    for name, craft in built.crafts.items():
        turn, at = _turn(bodies.q_WB[:, scenario.bodies.index(name)]), bodies.p_WB[:, scenario.bodies.index(name)]
        hubs.append(at[:, None] + turn(np.asarray(craft.position_B)))
        axes.append(turn(np.asarray(craft.axis_B)))
        sizes += radii(scenario.fleet[name].spec)
    points = []
    for name, load in scenario.loads.items():
        turn, at = _turn(bodies.q_WB[:, scenario.bodies.index(name)]), bodies.p_WB[:, scenario.bodies.index(name)]
        points.append(at[:, None] + turn(touching_points(load)))
    for element, i in cables.values():
        points.append(samples.outputs[element]["node_position"][:, i, 1:-1])
    points = [p for p in points if p.shape[1]]
    if not (hubs and points):
        return {}
    near = disc_clearances(np.concatenate(hubs, 1), np.concatenate(axes, 1), sizes, np.concatenate(points, 1))
    return {"rotor_disc_clearance_min_m": float(near.min())}


def _arrays(samples: Samples) -> Any:
    """States of the bodies, which are NumPy arrays in samples."""
    return samples.state.bodies


def _turn(q_WB: np.ndarray) -> Any:
    """Vectors (k, 3) of a body in world axes at every sample, (n, k, 3)."""
    from scipy.spatial.transform import Rotation

    R = Rotation.from_quat(q_WB, scalar_first=True).as_matrix()
    return lambda vectors: np.einsum("nij,kj->nki", R, vectors)
