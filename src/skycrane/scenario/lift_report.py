"""Metrics of loads, cables and teams of a flown scenario."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from skycrane.analysis.lift_metrics import cable_metrics, disc_clearances, distance_metrics, formation_metrics, load_metrics
from skycrane.control.formation import FormationControl
from skycrane.simulation.samples import Samples

from .craft import radii
from .lift import cable_groups, touching_points
from .places import rotor_groups


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
    R = Rotation.from_quat(q_WB, scalar_first=True).as_matrix()
    return lambda vectors: np.einsum("nij,kj->nki", R, vectors)
