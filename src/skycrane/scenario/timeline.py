"""The events of a scenario, by their paths into system, controller and reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.core.events import Event, Impulse, Timeline

from .events import CutEvent, ImpulseEvent, PushEvent, RotorFailureEvent, TargetEvent, WinchEvent, WindEvent
from .lift import cable_place
from .pilots import model_of, model_path
from .places import rotor_place
from .scenario import Scenario
from .surroundings import mean_wind_path
from .team import PayloadTeam
from .tool_build import leads_the_tip

OUT = 5.0
"""Time constants after which a winch has come to its length, once its speed is no limit."""


def timeline_of(scenario: Scenario, controllers: Mapping[str, Any]) -> Timeline:
    """All events. A push is switched on by one event and off by another; a gust is part of the wind itself."""
    events, impulses, push = [], [], 0
    for event in scenario.events:
        time = jnp.array(event.time, dtype=float)
        if isinstance(event, RotorFailureEvent):
            events += _failure(event, scenario, controllers)
        elif isinstance(event, ImpulseEvent):
            body = scenario.bodies.index(event.body or scenario.bodies[0])
            linear_W, offset_B = jnp.array(event.linear, dtype=float), jnp.array(event.point, dtype=float)
            impulses.append(Impulse(body, time, linear_W, offset_B=offset_B))
        elif isinstance(event, PushEvent):
            path = f"system.elements.push.force_W[{push}]"
            force_W = jnp.array(event.force, dtype=float)
            events += [Event(path, time, force_W), Event(path, time + event.duration, jnp.zeros(3))]
            if any(event.torque):
                path = f"system.elements.push.moment_W[{push}]"
                events += [Event(path, time, jnp.array(event.torque, dtype=float)), Event(path, time + event.duration, jnp.zeros(3))]
            push += 1
        elif isinstance(event, WindEvent):
            events.append(Event(mean_wind_path(scenario), time, jnp.array(event.velocity, dtype=float)))
        elif isinstance(event, CutEvent):
            element, column = cable_place(scenario, event.cable)
            segment = 0 if event.at == "upper" else scenario.cables[event.cable].segments - 1
            events.append(Event(f"system.elements.{element}.intact[{segment}, {column}]", time, jnp.zeros(())))
            believed = _payload_row(event.cable, "carrying", scenario, controllers)
            if believed is not None:
                events.append(Event(believed, time, jnp.zeros(())))
        elif isinstance(event, WinchEvent):
            element, column = cable_place(scenario, event.cable)
            events.append(Event(f"system.elements.{element}.winch.target[{column}]", time, jnp.array(event.length, dtype=float)))
            events += _believed_length(event, scenario, controllers)
        elif isinstance(event, TargetEvent):
            name = event.vehicle or (scenario.bodies[0] if scenario.team is None else scenario.team.load)
            path = "reference" if scenario.vehicle is not None else f"reference.{name}"
            if name in scenario.fleet and leads_the_tip(scenario.fleet[name]):
                path += ".path"
            if event.position is not None:
                events.append(Event(f"{path}.position_W[0]", time, jnp.array(event.position, dtype=float)))
            if event.yaw_deg is not None:
                events.append(Event(f"{path}.yaw[0]", time, jnp.deg2rad(jnp.array(event.yaw_deg, dtype=float))))
    return Timeline(tuple(events), tuple(impulses))


def _payload_row(cable: str, field: str, scenario: Scenario, controllers: Mapping[str, Any]) -> str | None:
    """The path of what the law of a `payload` team believes of a cable, None where no such team has it."""
    team, upper = scenario.team, scenario.cables[cable].upper
    if not isinstance(team, PayloadTeam) or upper not in scenario.team_vehicles:
        return None
    row = controllers[team.load].agents.bodies.index(scenario.bodies.index(upper))
    return f"controller.members.{team.load}.{field}[{row}]"


def _believed_length(event: WinchEvent, scenario: Scenario, controllers: Mapping[str, Any]) -> list[Event]:
    """The law's length of a cable follows its winch: a cable shorter than the law believes looks slack, and would carry next to nothing.
    So it learns of a shorter length at once, of a longer one when the cable is out."""
    path, cable = _payload_row(event.cable, "cable_length", scenario, controllers), scenario.cables[event.cable]
    if path is None or cable.winch is None:
        return []
    others = sorted((e.time, e.length) for e in scenario.events if isinstance(e, WinchEvent) and e.cable == event.cable)
    before = [length for time, length in others if time < event.time]
    longer, time = event.length - (before[-1] if before else cable.length), event.time
    if longer > 0:
        time += longer / cable.winch.speed_max + OUT * cable.winch.time_constant
        if any(event.time < other <= time for other, _ in others):
            return []
    return [Event(path, jnp.array(time, dtype=float), jnp.array(event.length, dtype=float))]


def _failure(event: RotorFailureEvent, scenario: Scenario, controllers: Mapping[str, Any]) -> list[Event]:
    """The rotor's own change and, where it is noticed, that of the controller's model."""
    name, rotor = event.vehicle or scenario.bodies[0], event.rotor - 1
    element, row = rotor_place(scenario, name)
    time = jnp.array(event.time, dtype=float)
    # Thrust and moment go with the square of the speed.
    left = jnp.sqrt(jnp.array(event.remaining, dtype=float))
    events = [Event(f"system.elements.{element}.speed_fraction[{row}, {rotor}]", time, left)]
    if event.detected_after is None:
        return events
    if name in scenario.team_vehicles:
        assert scenario.team is not None
        groups = controllers[scenario.team.load].agents.groups
        group = next(i for i, model in enumerate(groups) if model.rotors == element)
        path, allocation = f"controller.members.{scenario.team.load}.agents.groups.{group}", groups[group].allocation
    else:
        inner = model_path(controllers[name])
        if inner is None:
            return events
        path = f"{'controller' if scenario.vehicle is not None else f'controller.members.{name}'}.{inner}"
        allocation = model_of(controllers[name]).allocation
    noticed = time + event.detected_after
    for field in ("thrust_max", "thrust_min", "thrust_coefficient"):
        value = float(np.asarray(getattr(allocation, field))[row, rotor])
        # A dead rotor is not asked for anything; its coefficient stays, since the speed is found by dividing by it.
        if field != "thrust_coefficient" or event.remaining > 0:
            value *= event.remaining
        events.append(Event(f"{path}.allocation.{field}[{row}, {rotor}]", noticed, jnp.array(value)))
    return events
