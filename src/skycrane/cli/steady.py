"""`skycrane trim` and `skycrane linearize`: steady motion of a vehicle, and small motion about it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from skycrane.cli import UserError
from skycrane.cli.common import Changes, Target, console, load_target

if TYPE_CHECKING:
    from rich.console import Console

    from skycrane.analysis.closed_loop import ClosedLoop, Margins
    from skycrane.analysis.linear_model import LinearModel, Mode
    from skycrane.analysis.trim import NoTrim, Trim
    from skycrane.scenario.build import Built
    from skycrane.scenario.steady import Condition

FORMATS = (".npz", ".json")


@Parameter(name="*")
@dataclass(frozen=True)
class Motion:
    """The steady motion that is asked for."""

    speed: Annotated[float, Parameter(help="Horizontal speed over ground in m/s.")] = 0.0
    climb: Annotated[float, Parameter(help="Vertical speed in m/s, upwards.")] = 0.0
    turn_rate: Annotated[float, Parameter(help="Turn about the vertical in rad/s, positive to the left.")] = 0.0
    course_deg: Annotated[float, Parameter(help="Course over ground, in degrees from east towards north.")] = 0.0
    heading_deg: Annotated[float | None, Parameter(help="Heading, in degrees from east towards north; along the course by default.")] = None
    failed: Annotated[tuple[int, ...], Parameter(help="Rotors that have stopped, counted from 1.", consume_multiple=True, negative=())] = ()
    vehicle: Annotated[str | None, Parameter(help="Which vehicle, where the scenario has several.")] = None

    def condition(self, spin: bool = False) -> Condition:
        """The same in radians, checked.

        Raises:
            UserError: for numbers that are not finite, or a spin together with speed.
        """
        from skycrane.scenario.steady import Condition

        for name in ("speed", "climb", "turn_rate", "course_deg", "heading_deg"):
            value = getattr(self, name)
            if value is not None and not abs(value) <= 1e4:
                raise UserError(f"--{name.replace('_', '-')} is {value}: expected a number within +-10000")
        if self.speed < 0:
            raise UserError(f"--speed is {self.speed:g}: expected 0 or more; --course-deg gives its direction")
        if spin and (self.speed or self.turn_rate):
            raise UserError("--spin goes with hover or climb: leave out --speed and --turn-rate")
        heading = None if self.heading_deg is None else math.radians(self.heading_deg)
        return Condition(self.speed, self.climb, self.turn_rate, math.radians(self.course_deg), heading, self.failed, spin)


AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print the same as JSON and nothing else.")]


def trim(
    target: Target = None,
    *,
    motion: Motion | None = None,
    spin: Annotated[bool, Parameter(negative=(), help="Let it spin about the vertical if there is no trim otherwise.")] = False,
    changes: Changes = (),
    as_json: AsJson = False,
) -> int:
    """Find steady motion: hover, level flight, climb, descent or turn, also with failed rotors.

    The wind is that of the scenario at its beginning. Exit code 1 where there is no such motion.
    """
    from skycrane.scenario.steady import facts_of

    _, _, found = _trimmed(target, changes, motion or Motion(), spin)
    facts = facts_of(found)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _show_trim(console(), facts)
    return 0 if found.converged else 1


def linearize(
    target: Target = None,
    *,
    motion: Motion | None = None,
    closed_loop: Annotated[bool, Parameter(negative=(), help="With the scenario's controller, and its stability margins.")] = False,
    settle: Annotated[float, Parameter(help="Time in s to fly before, for integral terms to come to rest (closed loop).")] = 0.0,
    out: Annotated[Path | None, Parameter(help="Write the matrices: FILE.npz or FILE.json.")] = None,
    changes: Changes = (),
    as_json: AsJson = False,
) -> int:
    """Linear model about a trim: its modes, and with `--closed-loop` the modes and margins of the controlled vehicle.

    Takes the conditions of `skycrane trim`. Exit code 1 where there is no such trim.
    """
    if out is not None and out.suffix not in FORMATS:
        raise UserError(f"--out {out}: expected a name that ends in .npz or .json")
    if not 0 <= settle <= 1000:
        raise UserError(f"--settle is {settle}: expected 0 to 1000 s")
    condition, built, found = _trimmed(target, changes, motion or Motion(), False)
    from skycrane.scenario.steady import facts_of, loop_at, loop_margins, open_loop

    screen = console(as_json)
    if not found.converged:
        print(json.dumps({"trim": facts_of(found)}, indent=2)) if as_json else _show_trim(screen, facts_of(found))
        return 1
    loop: ClosedLoop | None = None
    margins: dict[str, Margins] = {}
    if closed_loop:
        from skycrane.scenario.pilots import model_path

        if model_path(built.controller) is None:
            raise UserError('--closed-loop needs a controller with feedback: this scenario has control.kind = "rotor_speeds"')
        loop = loop_at(built, found, condition, settle)
        margins = loop_margins(built, loop, found)
    model = open_loop(built, found) if loop is None else loop.closed
    facts: dict[str, Any] = {
        "trim": facts_of(found),
        "dt_s": model.dt,
        "states": list(model.states),
        "inputs": list(model.inputs),
        "modes": [mode_facts(mode) for mode in model.modes()],
        "stable": model.stable(),
    }
    if loop is not None:
        facts["margins"] = {name: margin_facts(each) for name, each in margins.items()}
        facts["disk_margin_all_rotors"] = loop.disk_margin()
        facts["drift_in_one_period"] = _drift(loop.closed)
    if out is not None:
        _write(out, model, facts)
    if as_json:
        print(json.dumps(facts, indent=2))
        return 0
    screen.print(found.sentence, soft_wrap=True, markup=False)
    kind = f"closed loop, sampled every {model.dt:g} s" if loop is not None else "open loop"
    _show_modes(screen, model.modes(), f"modes ({kind})")
    if loop is not None:
        _show_margins(screen, facts["margins"], facts["disk_margin_all_rotors"])
        if not facts["stable"]:
            screen.print("[red]the closed loop is not stable here: the margins mean nothing[/red]")
        elif facts["drift_in_one_period"] > 1e-3:
            screen.print("[yellow]the controller does not hold this trim exactly (offset by wind?): --settle 10 flies first[/yellow]")
    if out is not None:
        screen.print(f"wrote {out}: {len(model.states)} states, {len(model.inputs)} inputs", soft_wrap=True)
    return 0


def _drift(model: LinearModel) -> float:
    """The largest change in one control period of velocity or rate in body axes: zero where the controller holds the trim."""
    kept = [i for i, name in enumerate(model.states) if name in {f"uav/{part}" for part in ("vx", "vy", "vz", "p", "q", "r")}]
    return float(abs(model.residual[kept]).max())


def _trimmed(target: str | None, changes: tuple[str, ...], motion: Motion, spin: bool) -> tuple[Condition, Built, Trim | NoTrim]:
    loaded = load_target(target, changes)
    from skycrane.runtime import configure

    configure("float64")
    from skycrane.scenario.steady import alone, find_trim

    condition = motion.condition(spin)
    try:
        built, found = find_trim(alone(loaded.scenario, motion.vehicle), condition)
    except ValueError as error:
        raise UserError(str(error)) from None
    return condition, built, found


def _show_trim(out: Console, facts: dict[str, Any]) -> None:
    from rich.table import Table

    out.print(facts["sentence"], style="" if facts["found"] else "red", soft_wrap=True, markup=False)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    angles = ", ".join(f"{name} {facts[f'{name}_deg']:+.4f}" for name in ("roll", "pitch", "yaw"))
    table.add_row("attitude", f"{angles} deg" + ("" if facts["found"] else " (the nearest that was found)"))
    table.add_row("velocity", ", ".join(f"{value:+.3f}" for value in facts["velocity_m_s"].values()) + " m/s east, north, up")
    if facts["turn_rate_rad_s"]:
        rate = facts["turn_rate_rad_s"]
        table.add_row("turn", f"{rate:+.4f} rad/s ({math.degrees(rate):+.2f} deg/s)")
    for i, speed in enumerate(facts["rotor_speed_rad_s"], start=1):
        table.add_row(f"rotor {i}", f"{speed:.3f} rad/s")
    if facts.get("shaft_power_w") is not None:
        table.add_row("shaft power", f"{facts['shaft_power_w']:.4g} W")
    table.add_row("residual", f"{facts['residual_force_n']:.3g} N, {facts['residual_moment_nm']:.3g} N m")
    out.print(table)


def mode_facts(mode: Mode) -> dict[str, Any]:
    """A mode as JSON can hold it."""
    return {
        "real_1_s": mode.eigenvalue.real,
        "imag_1_s": mode.eigenvalue.imag,
        "frequency_rad_s": mode.frequency,
        "damping": mode.damping,
        "states": mode.participation,
    }


def margin_facts(margins: Margins) -> dict[str, Any]:
    """Margins as JSON can hold them: null where there is no limit."""

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "gain_up": finite(margins.gain_up),
        "gain_down": margins.gain_down,
        "phase_deg": finite(margins.phase_deg),
        "crossover_rad_s": finite(margins.crossover),
        "delay_s": finite(margins.delay_s),
        "disk": margins.disk,
        "stable": margins.stable,
    }


def _show_modes(out: Console, modes: list[Mode], title: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for heading in ("eigenvalue [1/s]", "frequency [rad/s]", "damping"):
        table.add_column(escape(heading), justify="right")
    table.add_column("mostly in")
    for mode in modes:
        # Names such as `uav/rotors[0,1]` and units in brackets are no markup.
        value = mode.eigenvalue
        text = f"{value.real:.4g} +- {value.imag:.4g}i" if mode.oscillates else f"{value.real:.4g}"
        # `rotors[uav/2]`, `rotors[uav/4]`, ... are told apart in the JSON; here it is enough that it is the rotors.
        states = ", ".join(list(dict.fromkeys(re.sub(r"\[.*\]", "", name) for name in mode.participation))[:3])
        unstable = mode.eigenvalue.real > 1e-9
        table.add_row(text, f"{mode.frequency:.4g}", f"{mode.damping:.3f}", escape(states), style="red" if unstable else "")
    out.print(table)


def _show_margins(out: Console, margins: dict[str, dict[str, Any]], together: float) -> None:
    from rich.markup import escape
    from rich.table import Table

    title = "stability margins, one loop cut at a time"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("loop")
    for heading in ("gain may grow", "may shrink to", "phase [deg]", "crossover [rad/s]", "delay [ms]", "disk"):
        table.add_column(escape(heading), justify="right")
    for name, m in margins.items():
        crossover = "-" if m["crossover_rad_s"] is None else f"{m['crossover_rad_s']:.3g}"
        table.add_row(
            name,
            "no limit" if m["gain_up"] is None else f"{m['gain_up']:.3g} x",
            f"{m['gain_down']:.3g} x",
            "no limit" if m["phase_deg"] is None else f"{m['phase_deg']:.3g}",
            crossover,
            "no limit" if m["delay_s"] is None else f"{1e3 * m['delay_s']:.3g}",
            f"{m['disk']:.3f}",
        )
    out.print(table)
    out.print(f"disk margin with all rotors changed at once: {together:.3f}", soft_wrap=True)


def _write(out: Path, model: LinearModel, facts: dict[str, Any]) -> None:
    if not out.parent.is_dir():
        raise UserError(f"there is no directory {out.parent}")
    matrices: dict[str, Any] = {name: getattr(model, name) for name in "ABCD"}
    if out.suffix == ".json":
        content = {**facts, "outputs": list(model.outputs), **{name: value.tolist() for name, value in matrices.items()}}
        out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return
    import numpy as np

    names: dict[str, Any] = {name: np.array(getattr(model, name)) for name in ("states", "inputs", "outputs")}
    np.savez(out, **matrices, **names, dt=model.dt)
