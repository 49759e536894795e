"""The controller of a scenario's team, and what it follows."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.control.formation import FormationControl, FormationGains
from skycrane.control.model import Gains, VehicleModel, default_gains
from skycrane.control.payload import PayloadControl, PayloadGains, reference_pulls, sharing_maps
from skycrane.control.reach import lateral_force
from skycrane.control.team import Agents, laplacian, load_shares, ring_edges
from skycrane.core.controller import AbstractController
from skycrane.loads.rigid import Rigid
from skycrane.vehicles.multirotor import Multirotor

from .downwash import thrust_shares
from .lift import ends_of, rope_of
from .places import rotor_groups
from .scenario import Scenario
from .team import FormationTeam, PayloadTeam

SIDEWAYS = 0.2
"""Part of its weight that a vehicle must be able to push sideways to be flown level."""


def agents_of(scenario: Scenario, crafts: dict[str, Multirotor]) -> tuple[Agents, tuple[str, ...]]:
    """The team's vehicles as agents, and their names in that order."""
    gravity = scenario.environment.gravity
    models, level = [], []
    order: list[str] = []
    for element, names in rotor_groups(scenario).items():
        if names[0] not in scenario.team_vehicles:
            continue
        model = VehicleModel.of([crafts[n] for n in names], tuple(scenario.bodies.index(n) for n in names), element, gravity)
        weight = float(crafts[names[0]].mass) * gravity
        models.append(model)
        level.append(crafts[names[0]].count > 5 and lateral_force(model.allocation, weight, 0) > SIDEWAYS * weight)
        order += names
    return Agents(tuple(models), tuple(bool(x) for x in level)), tuple(order)


def crew_of(scenario: Scenario, crafts: dict[str, Multirotor], bare: dict[str, Rigid], loaded: dict[str, Any]) -> AbstractController:
    """The controller of the team. ``bare`` are the loads alone, ``loaded`` with the cable ends that they carry."""
    team = scenario.team
    assert team is not None
    agents, names = agents_of(scenario, crafts)
    load, ends = scenario.bodies.index(team.load), ends_of(scenario)
    cables = [next(c for c, s in scenario.cables.items() if s.upper == n and s.lower == team.load) for n in names]
    ropes = [rope_of(scenario.cables[c]) for c in cables]
    attachment, hook = (np.array([ends[c][k] for c in cables]) for k in (3, 2))
    length = np.array([float(r.length) for r in ropes])
    gains = [default_gains(crafts[n], scenario.environment.gravity) for n in names]
    if isinstance(team, FormationTeam):
        return _formation(scenario, crafts, team, agents, names, load, attachment, hook, length, ropes, bare[team.load], gains)
    body = loaded[team.load]
    P, sharing = sharing_maps(attachment, np.asarray(body.com_B))
    weight = float(body.mass) * scenario.environment.gravity
    g = team.gains
    array = lambda value: jnp.array(value, dtype=float)  # noqa: E731
    control_gains = PayloadGains(
        array(g.position), array(g.velocity), array(g.integral), array(g.attitude), array(g.rate), array(g.attitude_integral),
        array(g.direction), array(g.swing), array(g.stretch), *(_rows(gains, key) for key in ("attitude", "rate")),
    )  # fmt: skip
    return PayloadControl(
        agents, load, array(attachment), array(body.com_B), array(body.mass), array(body.inertia_B), array(length + np.linalg.norm(hook,
        axis=1)), array([float(r.segment_mass) * r.segments - float(r.end_masses[1]) for r in ropes]), array(sharing), array(P),
        array(reference_pulls(attachment, np.asarray(body.com_B), weight, length, team.clearance)), control_gains, jnp.ones(len(names)),
        tension_min=float(team.tension_min), tilt_max=float(np.deg2rad(team.tilt_max_deg)),
    )  # fmt: skip


def _rows(gains: list[Gains], key: str) -> Any:
    return jnp.asarray(np.concatenate([np.asarray(getattr(g, key)) for g in gains]))


def _formation(
    scenario, crafts, team: FormationTeam, agents, names, load, attachment, hook, length, ropes, body, gains
) -> FormationControl:
    edges = ring_edges(len(names)) if team.edges is None else [(names.index(a), names.index(b)) for a, b in team.edges]
    pinning = np.ones(len(names))
    graph = laplacian(len(names), edges) + np.diag(pinning)
    offset = attachment.copy()
    offset[:, 2] += length - hook[:, 2]
    carried = np.zeros(len(names))
    if team.carries:
        share = load_shares(attachment, np.asarray(body.com_B)) * float(body.mass)
        carried = share + np.array([float(r.segment_mass) * r.segments for r in ropes])
        # A jet that pushes on the load takes a share of the thrust, so that thrust for the rest lifts as if all were heavier.
        lost, own = (np.array([x[n] for n in names]) for x in (thrust_shares(scenario), {n: float(crafts[n].mass) for n in names}))
        carried = (carried + lost * own) / (1.0 - lost)
    g = team.gains
    inertia = np.array([np.diagonal(np.asarray(J)) for model in agents.groups for J in model.inertia_B])

    def each(given: float | None, computed: np.ndarray) -> Any:
        return jnp.asarray(computed if given is None else np.full((len(names), 3), given))

    attitude = each(g.attitude, inertia * np.asarray(_rows(gains, "attitude")))
    along = {
        key: jnp.array(getattr(g, key), dtype=float) for key in ("position", "integral", "velocity", "surface", "bound", "reach", "layer")
    }
    return FormationControl(
        agents, load, jnp.asarray(graph), jnp.asarray(np.linalg.inv(graph)), jnp.asarray(pinning), jnp.asarray(offset),
        jnp.asarray(carried), FormationGains(
            **along, attitude=attitude, rate=each(g.rate, inertia * np.asarray(_rows(gains, "rate"))),
            attitude_integral=each(g.attitude_integral, 0.05 * np.asarray(attitude)),
        ),
        tilt_max=float(np.deg2rad(team.tilt_max_deg)),
    )  # fmt: skip


__all__ = ["PayloadTeam", "agents_of", "crew_of"]
