"""`skycrane describe`: what a scenario's vehicles are and can do, before any flight."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from skycrane.cli.common import Changes, Target, console, load_target

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from skycrane.control.allocation import Allocation
    from skycrane.scenario.build import Built


MOST_ROTORS = 16  # up to which the wrench set is worked out: its faces grow with the fifth power of their number

FAILED = {
    "full": "hovers level with full attitude control",
    "yaw given up": "tilt can be controlled while it turns as it must",
    "balance only": "balances level, but some small moment cannot be had",
    "none": "no level hover",
}


def describe(
    target: Target = None,
    *,
    changes: Changes = (),
    as_json: Annotated[bool, Parameter(name="--json", negative=(), help="Print the same as JSON and nothing else.")] = False,
) -> None:
    """Tell what a vehicle can do: mass, inertia, what it reaches and may lose, hover, loop frequencies, largest stable step."""
    loaded = load_target(target, changes)
    from skycrane.runtime import configure

    configure("float64")
    from skycrane.scenario.build import build

    built = build(loaded.scenario)
    facts: dict[str, Any] = {
        "scenario": loaded.scenario.name,
        "vehicles": {name: vehicle_facts(built, name) for name in built.crafts},
        "buoys": {name: buoy_facts(built, name) for name in loaded.scenario.buoys},
        "run": run_facts(built),
    }
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        for name, vehicle in facts["vehicles"].items():
            _show_vehicle(console(), name, vehicle)
        for name, buoy in facts["buoys"].items():
            _show_buoy(console(), name, buoy)
        _show_run(console(), facts["run"])


def vehicle_facts(built: Built, name: str) -> dict[str, Any]:
    """Mass properties, rotors, what they reach, and hover of one vehicle."""
    import numpy as np

    from skycrane.control.allocation import AXES, Allocation
    from skycrane.control.reach import analyse

    craft = built.crafts[name]
    gravity = built.scenario.environment.gravity
    mass, com_B, inertia_B, speed_max = map(np.asarray, (craft.mass, craft.com_B, craft.inertia_B, craft.speed_max))
    weight = float(mass) * gravity
    # Each newton of thrust, and each (rad/s)^2 of speed.
    matrix = np.asarray(craft.effectiveness()) * np.asarray(craft.thrust_coefficient)
    layout = (craft.position_B, craft.axis_B, craft.spin, craft.thrust_coefficient, craft.torque_coefficient)
    allocation = Allocation.create(*layout, speed_min=craft.speed_min, speed_max=craft.speed_max, center_B=com_B)
    reach = analyse(allocation, vertical_force=weight)
    hover = hover_speeds(allocation, weight)
    return {
        "mass_kg": float(mass),
        "com_m": com_B.tolist(),
        "inertia_kg_m2": inertia_B.tolist(),
        "principal_inertia_kg_m2": np.linalg.eigvalsh(inertia_B).tolist(),
        "rotors": craft.count,
        "effectiveness_n_per_rad2_s2": dict(zip(AXES, matrix.tolist(), strict=True)),
        "controlled": list(reach.kept),
        "not_controlled": dict(reach.dropped),
        "omnidirectional": bool(reach.omnidirectional),
        "lateral_force_at_hover_n": float(reach.lateral_force),
        "speed_max_rad_s": speed_max.tolist(),
        "hover_speed_rad_s": hover.tolist(),
        "hover_wrench_error": (matrix @ hover**2 - [0.0, 0.0, weight, 0.0, 0.0, 0.0]).tolist(),
        "hover_shaft_power_w": float(np.asarray(craft.torque_coefficient) @ hover**3),
        **authority_facts(built, name),
        "redistribution": redistribution_facts(allocation, weight) if reach.omnidirectional else None,
        "natural_frequency_rad_s": natural_frequencies(built, name),
    }


def hover_speeds(allocation: Allocation, weight: float) -> np.ndarray:
    """Rotor speeds (n,) rad/s that carry the weight level, as the allocation of the controllers finds them."""
    import jax.numpy as jnp
    import numpy as np

    from skycrane.math.components import Vec3

    zero = jnp.zeros(1)
    return np.asarray(allocation(Vec3(zero, zero, zero + weight), Vec3(zero, zero, zero)).speed)[0]


def redistribution_facts(allocation: Allocation, weight: float) -> dict[str, Any] | None:
    """Largest thrust over random hover attitudes by each way to make thrusts positive; limits aside."""
    import numpy as np

    from skycrane.design.redistribution import compare

    found = compare(np.asarray(allocation.effectiveness, float)[0], weight)
    return None if found is None else found.facts()


def authority_facts(built: Built, name: str) -> dict[str, Any]:
    """What the rotors can give beyond hover in the worst direction, and which of them may fail: exact, from the attainable wrench set."""
    import numpy as np

    from skycrane.analysis.wrench_set import WrenchSet

    if built.crafts[name].count > MOST_ROTORS:
        return {"hover_margin": None, "extra_force_worst_n": None, "extra_moment_worst_nm": None, "one_rotor_failed": {}}
    wrenches = WrenchSet.of(built.system, name)
    margin = wrenches.hover_margin()
    return {
        "hover_margin": float(margin) if np.isfinite(margin) else None,
        "extra_force_worst_n": max(float(wrenches.forces().radius), 0.0),
        "extra_moment_worst_nm": max(float(wrenches.attitude_moments().radius), 0.0),
        "one_rotor_failed": {failure.stopped[0]: failure.kind for failure in wrenches.failures(1)},
    }


def natural_frequencies(built: Built, name: str) -> dict[str, list[float]]:
    """Of the loops with the default gains, about or along body x, y, z; `linearize --closed-loop` has the modes of the real one."""
    import numpy as np

    from skycrane.control.model import default_gains

    gains = default_gains(built.crafts[name], built.scenario.environment.gravity)
    return {loop: np.sqrt(np.asarray(getattr(gains, loop))[0]).tolist() for loop in ("position", "attitude")}


def buoy_facts(built: Built, name: str) -> dict[str, Any]:
    """How a buoy floats by itself, at rest."""
    import math

    from skycrane.scenario.sea import hydrostatics_of

    rest = hydrostatics_of(built.scenario, name)

    def finite(value: float) -> float | None:
        return float(value) if math.isfinite(value) else None

    return {
        "mass_kg": float(built.scenario.buoys[name].mass),
        "draft_m": rest.draft,
        "immersed_volume_m3": rest.volume,
        "whole_volume_m3": rest.whole_volume,
        "waterplane_m2": rest.waterplane,
        "metacentric_height_roll_m": rest.gm_roll,
        "metacentric_height_pitch_m": rest.gm_pitch,
        "period_heave_s": finite(rest.period_heave),
        "period_roll_s": finite(rest.period_roll),
        "period_pitch_s": finite(rest.period_pitch),
        "stable": bool(rest.stable),
        "verdict": rest.verdict,
        "attitude_from_the_sea": built.scenario.buoys[name].model == "source",
    }


def run_facts(built: Built) -> dict[str, Any]:
    """The step against the fastest thing in the system."""
    from dataclasses import replace

    from skycrane.scenario.record import largest_step
    from skycrane.simulation.integrators import RK4

    return {
        "step_s": built.scenario.run.step,
        "control_period_s": built.scenario.run.tick,
        "fastest_rate_1_s": built.system.rate_bound(built.system.prepare()),
        "largest_stable_step_s": largest_step(built)[0],
        "largest_stable_step_rk4_s": largest_step(replace(built, integrator=RK4()))[0],
    }


def _show_vehicle(out: Console, name: str, facts: dict[str, Any]) -> None:
    from rich.table import Table

    def line(label: str, text: str, style: str = "") -> None:
        out.print(f"  {label:<20}{text}", style=style, soft_wrap=True, markup=False)

    out.print(f"[bold]{name}[/bold]: {facts['mass_kg']:.6g} kg, {facts['rotors']} rotors")
    line("principal inertia", ", ".join(f"{value:.5g}" for value in facts["principal_inertia_kg_m2"]) + " kg m^2")
    line("centre of mass", ", ".join(f"{value:.4g}" for value in facts["com_m"]) + " m")
    line("hover speed", f"{_span(facts['hover_speed_rad_s'])} rad/s of {_span(facts['speed_max_rad_s'])}")
    if max(map(abs, facts["hover_wrench_error"])) > 1e-3 * facts["mass_kg"]:
        missing = ", ".join(f"{value:.3g}" for value in facts["hover_wrench_error"])
        line("", f"cannot hover level: force and moment are off by {missing} N, N m", "yellow")
    line("hover shaft power", f"{facts['hover_shaft_power_w']:.4g} W")
    line("controls", ", ".join(facts["controlled"]) or "nothing")
    for axis, reason in facts["not_controlled"].items():
        line("", f"not {axis}: {reason}")
    if facts["omnidirectional"]:
        line("", "every direction of force and moment, in any attitude")
    thrust = facts["redistribution"]
    if thrust:
        line(
            "any attitude",
            f"largest thrust over {thrust['attitudes']} random attitudes: rule (17) {thrust['rule_17_max_n']:.1f} N, smallest shift "
            f"{thrust['minimal_shift_max_n']:.1f} N, smallest peak {thrust['bounded_max_n']:.1f} N",
        )
    sideways = facts["lateral_force_at_hover_n"]
    worst = f"{sideways:.4g} N in the worst direction, held level" if sideways > 0 else "nothing: it must tilt to move"
    line("sideways at hover", worst)
    if facts["hover_margin"] is not None:
        line("lift in hover", f"up to {facts['hover_margin']:.3g} times the weight without tilt or turn")
    if facts["extra_force_worst_n"] is not None:
        line("beyond hover", f"{facts['extra_force_worst_n']:.3g} N and {facts['extra_moment_worst_nm']:.3g} N m in the worst direction")
    for kind in dict.fromkeys(facts["one_rotor_failed"].values()):
        rotors = [rotor for rotor, k in facts["one_rotor_failed"].items() if k == kind]
        which = "any one" if len(rotors) == facts["rotors"] else ", ".join(rotors)
        line("failed rotor", f"{which}: {FAILED[kind]}")
    for loop, values in facts["natural_frequency_rad_s"].items():
        line(f"{loop} loop", ", ".join(f"{value:.3g}" for value in values) + " rad/s with default gains")
    title = "at full speed, body axes, moments about the centre of mass [N, N m]"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2))
    table.add_column("rotor", justify="right")
    for short in ("Fx", "Fy", "Fz", "Mx", "My", "Mz"):
        table.add_column(short, justify="right")
    for i, speed in enumerate(facts["speed_max_rad_s"]):
        row = (values[i] * speed**2 for values in facts["effectiveness_n_per_rad2_s2"].values())
        table.add_row(f"{name}/{i + 1}", *(f"{0.0 if abs(value) < 1e-9 else value:.4g}" for value in row))
    out.print(table)


def _show_buoy(out: Console, name: str, facts: dict[str, Any]) -> None:
    def line(label: str, text: str, style: str = "") -> None:
        out.print(f"  {label:<20}{text}", style=style, soft_wrap=True, markup=False)

    def seconds(value: float | None) -> str:
        return "none" if value is None else f"{value:.3g} s"

    out.print(f"[bold]{name}[/bold]: {facts['mass_kg']:.6g} kg, afloat")
    line("draft", f"{facts['draft_m']:.4g} m, {100 * facts['immersed_volume_m3'] / facts['whole_volume_m3']:.3g} % of its volume immersed")
    line("metacentric height", f"{facts['metacentric_height_roll_m']:.3g} m in roll, {facts['metacentric_height_pitch_m']:.3g} m in pitch")
    periods = (facts[f"period_{axis}_s"] for axis in ("heave", "roll", "pitch"))
    line("periods", ", ".join(f"{axis} {seconds(p)}" for axis, p in zip(("heave", "roll", "pitch"), periods, strict=True)))
    if facts["attitude_from_the_sea"]:
        line("", "the model takes roll and pitch from the slope of the sea")
    line("", facts["verdict"], "" if facts["stable"] or facts["attitude_from_the_sea"] else "yellow")


def _show_run(out: Console, facts: dict[str, Any]) -> None:
    stable = facts["largest_stable_step_s"]
    limit = f"largest stable step about {stable:.3g} s" if stable else "no limit of the step by stability"
    steps = f"step {facts['step_s']:g} s, control period {facts['control_period_s']:g} s"
    out.print(f"{steps}; {limit} (without the controller)", soft_wrap=True)
    explicit = facts["largest_stable_step_rk4_s"]
    if explicit is not None and explicit != stable:
        out.print(f"with rk4 the largest stable step would be about {explicit:.3g} s", soft_wrap=True)
    if stable is not None and facts["step_s"] > stable:
        out.print("[yellow]the step is longer than that: the run will probably diverge[/yellow]")


def _span(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.6g}" if high - low < 1e-6 * max(high, 1.0) else f"{low:.6g} to {high:.6g}"
