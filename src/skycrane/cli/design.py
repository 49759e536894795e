"""`skycrane design manipulator`: find a rotor layout by optimisation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from skycrane.cli import UserError
from skycrane.cli.common import console

if TYPE_CHECKING:
    from rich.console import Console

design = App(name="design", help="Find a vehicle by optimisation.")

LINE_EVERY = 10.0  # s

Solver = Literal["slsqp", "nlopt", "ipopt"]
Objective = Literal["size", "condition", "sigma", "force", "torque", "power", "mass"]


@design.command
def manipulator(
    *,
    out: Annotated[Path, Parameter(help="Directory for report, vehicle file and pictures; a run that was stopped goes on there.")],
    problem: Annotated[Path | None, Parameter(help="TOML file with a problem; the options below replace its keys.")] = None,
    rotors: Annotated[int | None, Parameter(help="7 to 16, each pushing one way; 7 by default.")] = None,
    objective: Annotated[Objective | None, Parameter(help="Made smallest (size, the default, condition, power, mass) or largest.")] = None,
    starts: Annotated[int, Parameter(help="Random starts; half as many shaken ones follow.")] = 400,
    budget: Annotated[float, Parameter(help="Wall time in s, everything included.")] = 300.0,
    evaluations: Annotated[int | None, Parameter(help="Stop after so many evaluations too.")] = None,
    seed: int = 0,
    workers: Annotated[int | None, Parameter(help="Processes; one for each processor by default.")] = None,
    condition_max: Annotated[float | None, Parameter(help="Largest condition number; 5 by default.")] = None,
    sigma_min: Annotated[float | None, Parameter(help="Smallest singular value; 0.001 by default.")] = None,
    clearance: Annotated[float | None, Parameter(help="Between wakes, and to the end-effector, in m; 0.01 by default.")] = None,
    boom_radius: Annotated[float | None, Parameter(help="Keep wakes off a straight bar of this radius in m to the end-effector.")] = None,
    reach: Annotated[tuple[float, float] | None, Parameter(help="Least and largest end-effector distance from the origin, in m.")] = None,
    box: Annotated[tuple[float, float, float] | None, Parameter(help="Half edges in m of a box for the rotor places.")] = None,
    size_max: Annotated[float | None, Parameter(help="Largest size in m; 1 where the size is not what is made smallest.")] = None,
    mirror: Annotated[
        tuple[str, ...], Parameter(help="`1-2:y`: rotor 2 mirrors rotor 1 along y.", consume_multiple=True, negative=())
    ] = (),
    spins: Annotated[str | None, Parameter(help="Handedness of each rotor, such as `cw,ccw,cw,...`; all cw by default.")] = None,
    one_failed: Annotated[bool, Parameter(negative=(), help="Level hover with any single rotor stopped (8 rotors or more).")] = False,
    failed_margin: Annotated[float | None, Parameter(help="Force in N (moment over 0.3 m) left in any direction then; 0.")] = None,
    any_attitude: Annotated[bool, Parameter(negative=(), help="Hover in any attitude within the rotors' limits.")] = False,
    thrust_max: Annotated[float | None, Parameter(help="Of each rotor, in N; 28 by default.")] = None,
    explore: Annotated[bool, Parameter(negative=(), help="Begin each start with a search without derivatives (CMA-ES).")] = False,
    solver: Annotated[Solver, Parameter(help="What goes downhill; the last two are extras of these names.")] = "slsqp",
    baseline: Annotated[bool, Parameter(help="Solve it by Latin hypercube and pattern search too, and report both.")] = True,
    as_json: Annotated[bool, Parameter(name="--json", negative=(), help="Print the report as JSON and nothing else.")] = False,
) -> int:
    """Design a fully actuated vehicle whose wakes meet neither each other nor the end-effector.

    Writes report.json, report.html, vehicle.toml (for `skycrane run`), layout.png and pareto.png. Exit code 1 where no
    layout was found that meets every constraint; the report then says which ones block it.
    """
    if out.is_file():
        raise UserError(f"--out {out} is a file; give a directory")
    if not 1 <= starts <= 100_000:
        raise UserError(f"--starts is {starts}: expected 1 to 100000")
    if not 1 <= budget <= 1e6:
        raise UserError(f"--budget is {budget:g}: expected 1 to 1000000 s")
    if workers is not None and not 1 <= workers <= 1024:
        raise UserError(f"--workers is {workers}: expected 1 to 1024")
    if evaluations is not None and evaluations < 1:
        raise UserError(f"--evaluations is {evaluations}: expected 1 or more")
    if seed < 0:
        raise UserError(f"--seed is {seed}: expected 0 or more")
    import os

    from skycrane.runtime import configure

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy starts: small matrices, and a process for each core
    configure()
    from skycrane.design.problem import DesignError, Problem
    from skycrane.design.problem_file import mirror as mirrored
    from skycrane.design.problem_file import read
    from skycrane.design.run import NoDesign, run

    screen = console(as_json)
    try:
        given: dict[str, Any] = {
            "rotors": rotors, "objective": objective, "condition_max": condition_max, "sigma_min": sigma_min, "clearance": clearance,
            "end_effector_clearance": clearance, "boom_radius": boom_radius, "reach": reach, "box": box, "size_max": size_max,
            "mirrored": tuple(mirrored(text) for text in mirror) or None, "spins": None if spins is None else _spins(spins),
            "one_failed": one_failed or None, "failed_margin": failed_margin, "any_attitude": any_attitude or None,
            "thrust_max": thrust_max,
        }  # fmt: skip
        wanted = Problem(**({} if problem is None else read(problem)) | {key: v for key, v in given.items() if v is not None})
        with _Bar(screen, budget) as bar:
            facts = run(
                wanted, out, starts=starts, budget=budget, seed=seed, workers=workers, baseline=baseline, progress=bar.show,
                evaluations=evaluations or 10**12, explore=explore, solver=solver,
            )  # fmt: skip
    except (DesignError, NoDesign) as error:
        raise UserError(str(error)) from None
    if as_json:
        import json

        print(json.dumps(facts, indent=2))
    _report(screen, facts, out)
    return 0 if facts["constraints_satisfied"] else 1


def _spins(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if any(word not in ("cw", "ccw") for word in words):
        raise UserError(f"--spins {text!r}: expected cw or ccw for each rotor, separated by commas")
    return tuple(1 if word == "ccw" else -1 for word in words)


class _Bar:
    """Progress on the screen: phase, jobs, best value so far, time."""

    def __init__(self, screen: Console, budget: float):
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self.budget = budget
        columns = (
            TextColumn("{task.description:<48}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} s"),
            TimeElapsedColumn(),
        )
        self.bar = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
        self.task = self.bar.add_task("starting", total=budget)
        self.screen, self.phase, self.said = screen, "", 0.0

    def __enter__(self) -> _Bar:
        self.bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.bar.__exit__(*error)

    def show(self, phase: str, done: int, planned: int, best: float | None, used: float) -> None:
        found = "" if best is None else f", best {best:.4f}"
        self.bar.update(self.task, completed=min(used, self.budget), description=f"{phase} {done}/{planned}{found}")
        # Where nobody sees a bar, a line for each phase and now and then.
        if not self.screen.is_terminal and (phase != self.phase or used >= self.said + LINE_EVERY):
            self.screen.print(f"{used:.0f} s of {self.budget:.0f} s: {phase} {done}/{planned}{found}", soft_wrap=True)
            self.phase, self.said = phase, used


def _report(screen: Console, facts: dict[str, Any], out: Path) -> None:
    from rich.table import Table

    from skycrane.design.report import ROWS, misses

    base = facts["baseline"]
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("this design", justify="right")
    if base:
        table.add_column("pattern search", justify="right")
    table.add_column("")
    for key, text, unit in ROWS:
        cells = [_shown(source[key]) for source in (facts, base) if source]
        table.add_row(text, *cells, unit)
    screen.print(table)
    thrust = facts["redistribution"]
    if thrust:
        screen.print(
            f"largest thrust over {thrust['attitudes']} hover attitudes: rule (17) {thrust['rule_17_max_n']:.2f} N, "
            f"smallest shift {thrust['minimal_shift_max_n']:.2f} N, smallest peak {thrust['bounded_max_n']:.2f} N"
        )
    for case in facts["checks"]:
        if facts["constraints_satisfied"] and not case["holds"]:
            screen.print(f"[red]case {case['number']} of allocation does not hold: {case['name']} ({case['found']})[/red]")
    if not facts["constraints_satisfied"]:
        screen.print(f"[red]no layout meets every constraint; the best one misses: {'; '.join(misses(facts))}[/red]")
    screen.print(f"written to {out}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
