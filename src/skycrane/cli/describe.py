"""`skycrane describe`: what a scenario's vehicles are and can do, before any flight."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from skycrane.cli.common import Changes, Target, console, load_target

if TYPE_CHECKING:
    from rich.console import Console

    from skycrane.scenario.build import Built


def describe(
    target: Target = None,
    *,
    changes: Changes = (),
    as_json: Annotated[
        bool, Parameter(name="--json", negative=(), help="Print the same as JSON and nothing else.")
    ] = False,
) -> None:
    """Tell what a vehicle can do: mass, inertia, allocation, hover margin, largest stable step."""
    loaded = load_target(target, changes)
    from skycrane.runtime import configure

    configure("float64")
    from skycrane.scenario.build import build

    built = build(loaded.scenario)
    facts: dict[str, Any] = {
        "scenario": loaded.scenario.name,
        "vehicles": {name: vehicle_facts(built, name) for name in built.airframes},
        "run": run_facts(built),
    }
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _show(console(), facts)


def vehicle_facts(built: Built, name: str) -> dict[str, Any]:
    """Mass properties, rotors, effectiveness and hover of one vehicle."""
    import numpy as np

    from skycrane.scenario.airframe import AXES

    frame = built.airframes[name]
    gravity = built.scenario.environment.gravity
    matrix = frame.effectiveness
    hover = frame.hover_speeds(gravity)
    carried = (matrix @ hover**2)[:3]
    weight = frame.mass * gravity
    lifted = matrix[2] @ frame.speed_max**2
    # Each direction in its own unit, at full speed of all rotors: what is below a millionth of that is rounding.
    full = np.abs(matrix * frame.speed_max**2).sum(axis=1)
    left, sizes, _ = np.linalg.svd(matrix / np.where(full > 0, full, 1.0)[:, None], full_matrices=False)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    reached = np.linalg.norm(left[:, :rank], axis=1)
    return {
        "mass_kg": frame.mass,
        "com_m": frame.com_B.tolist(),
        "inertia_kg_m2": frame.inertia_B.tolist(),
        "principal_inertia_kg_m2": np.linalg.eigvalsh(frame.inertia_B).tolist(),
        "rotors": frame.count,
        "effectiveness": dict(zip(AXES, matrix.tolist(), strict=True)),
        "rank": rank,
        "reachable": [axis for axis, r in zip(AXES, reached, strict=True) if r > 1 - 1e-6],
        "unreachable": [axis for axis, r in zip(AXES, reached, strict=True) if r < 1e-6],
        "coupled": [axis for axis, r in zip(AXES, reached, strict=True) if 1e-6 <= r <= 1 - 1e-6],
        "hover_speed_rad_s": hover.tolist(),
        "hover_force_error_N": float(np.linalg.norm(carried - [0.0, 0.0, weight])),
        "thrust_to_weight": float(lifted / weight) if weight > 0 else None,
        "hover_power_W": float(frame.torque_coefficient @ hover**3),
    }


def run_facts(built: Built) -> dict[str, Any]:
    """The step against the fastest thing in the system."""
    rate = built.system.rate_bound(built.system.prepare())
    step = built.scenario.run.step
    radius = float(built.integrator.stability_radius)
    return {
        "step_s": step,
        "control_period_s": built.scenario.run.tick,
        "fastest_rate_1_s": rate,
        "largest_stable_step_s": radius / rate if rate > 0 and radius != float("inf") else None,
    }


def _show(out: Console, facts: dict[str, Any]) -> None:
    from rich.table import Table

    for name, v in facts["vehicles"].items():
        out.print(f"[bold]{name}[/bold]: {v['mass_kg']:.6g} kg, {v['rotors']} rotors")
        principal = ", ".join(f"{value:.5g}" for value in v["principal_inertia_kg_m2"])
        out.print(f"  principal inertia   {principal} kg m^2")
        out.print(f"  centre of mass      {', '.join(f'{value:.4g}' for value in v['com_m'])} m")
        out.print(f"  hover speed         {_span(v['hover_speed_rad_s'])} rad/s")
        if v["hover_force_error_N"] > 1e-6 * v["mass_kg"]:
            out.print(f"  [yellow]cannot hover level: {v['hover_force_error_N']:.4g} N are missing[/yellow]")
        if v["thrust_to_weight"] is not None:
            out.print(f"  thrust to weight    {v['thrust_to_weight']:.3g}")
        out.print(f"  hover shaft power   {v['hover_power_W']:.4g} W")
        out.print(f"  controls alone      {', '.join(v['reachable']) or 'nothing'} (rank {v['rank']} of 6)")
        if v["coupled"]:
            out.print(f"  only together       {', '.join(v['coupled'])}")
        if v["unreachable"]:
            out.print(f"  cannot produce      {', '.join(v['unreachable'])}")
        table = Table(
            title="effectiveness: force [N] and moment [N m] for each (rad/s)^2, body axes", title_justify="left"
        )
        table.add_column("")
        for i in range(v["rotors"]):
            table.add_column(f"{name}/{i + 1}", justify="right")
        for axis, row in v["effectiveness"].items():
            table.add_row(axis, *(f"{value:.3g}" for value in row))
        out.print(table)
    run = facts["run"]
    out.print(f"step {run['step_s']:g} s, control period {run['control_period_s']:g} s, ", end="")
    stable = run["largest_stable_step_s"]
    out.print(f"largest stable step about {stable:.3g} s" if stable else "no stability limit of the step")
    if stable is not None and run["step_s"] > stable:
        out.print("[yellow]the step is longer than that: the run will probably diverge[/yellow]")


def _span(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.6g}" if high - low < 1e-6 * max(high, 1.0) else f"{low:.6g} to {high:.6g}"
