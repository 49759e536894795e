"""Where a scenario's vehicles have their rotors: one element for each vehicle, or one for all alike vehicles of a team."""

from __future__ import annotations

from .scenario import TEAM, Scenario


def rotor_groups(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Elements with rotors, which are also the names of their commands, and the vehicles whose rotors each holds, row by row.

    Vehicles of a team that differ in nothing but their start share an element: one set of equations flies them all.
    """
    if scenario.vehicle is not None:
        return {"rotors": tuple(scenario.fleet)}
    team = scenario.team_vehicles
    out: dict[str, tuple[str, ...]] = {f"rotors_{name}": (name,) for name in scenario.fleet if name not in team}
    alike: list[list[str]] = []
    for name in team:
        spec = scenario.fleet[name].spec
        for group in alike:
            other = scenario.fleet[group[0]].spec
            if spec.model_copy(update={"initial": other.initial, "visual": other.visual}) == other:
                group.append(name)
                break
        else:
            alike.append([name])
    for i, group in enumerate(alike):
        out[f"rotors_{TEAM}" if len(alike) == 1 else f"rotors_{TEAM}_{i + 1}"] = tuple(group)
    return out


def rotor_place(scenario: Scenario, name: str) -> tuple[str, int]:
    """Element and row of a vehicle's rotors."""
    return next((element, names.index(name)) for element, names in rotor_groups(scenario).items() if name in names)
