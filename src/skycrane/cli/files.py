"""Commands about files, which need no simulation: `check`, `list`, `new`, `schema`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from skycrane.cli import USER_ERROR, UserError
from skycrane.cli.common import Changes, console, load_target

STARTER = "starter.toml"


def check(
    *targets: Annotated[str, Parameter(help="Names of bundled scenarios or vehicles, or TOML files.")],
    changes: Changes = (),
) -> int:
    """Check scenario files without running them; says what is wrong, where, and what is allowed there."""
    from skycrane.cli.app import errors

    names = [*targets, *(change for change in changes if "=" not in change)]
    changes = tuple(change for change in changes if "=" in change)
    if not names:
        raise UserError("nothing to check: give the names of scenarios or TOML files")
    failed = False
    for name in names:
        try:
            loaded = load_target(name, changes)
        except UserError as error:
            failed = True
            errors().print(str(error), style="red", markup=False, soft_wrap=True)
            continue
        scenario = loaded.scenario
        rotors = ", ".join(f"{body} with {v.spec.rotor_count} rotors" for body, v in scenario.fleet.items())
        events = f", {len(scenario.events)} events" if scenario.events else ""
        console().print(f"[green]ok[/green] {loaded.source}: {scenario.run.duration:g} s, {rotors}{events}", soft_wrap=True)
        if scenario.cables:
            from skycrane.scenario.lift_report import stretched_at_start

            for warning in stretched_at_start(scenario):
                console().print(f"[yellow]warning:[/yellow] {warning}", soft_wrap=True)
    return USER_ERROR if failed else 0


def list_(*, as_json: Annotated[bool, Parameter(name="--json", negative=())] = False) -> None:
    """List the bundled scenarios and the vehicles of the catalogue."""
    from rich.table import Table

    from skycrane.scenario.bundled import DEFAULT_SCENARIO, KINDS, titles

    entries = {kind: titles(kind) for kind in KINDS}
    if as_json:
        print(json.dumps(entries, indent=2))
        return
    out = console()
    for kind, names in entries.items():
        table = Table(title=f"{kind}s", title_justify="left", title_style="bold", show_header=False, box=None)
        for name, title in names.items():
            note = " [dim](what `skycrane run` runs without a name)[/dim]" if name == DEFAULT_SCENARIO else ""
            table.add_row(f"  [cyan]{name}[/cyan]", title + note)
        out.print(table)
    out.print("\nRun one with [bold]skycrane run NAME[/bold]; start your own with [bold]skycrane new mine[/bold].")
    out.print("A vehicle's name can be run too (it hovers) or stand in a scenario as [bold]model[/bold].")


def new(
    name: Annotated[str, Parameter(help="Name of the scenario; writes NAME.toml here.")],
    *,
    source: Annotated[str | None, Parameter(name="--from", help="Scenario or file to copy instead of the starter.")] = None,
    force: Annotated[bool, Parameter(negative=(), help="Write over a file of this name.")] = False,
) -> None:
    """Write a commented scenario file to start from."""
    from skycrane.scenario import ScenarioError, loads
    from skycrane.scenario.loader import find

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,47}", path.stem):
        raise UserError(f"{path.stem!r} is no scenario name: use lower-case letters, digits, '-' and '_' (at most 48)")
    if path.exists() and not force:
        raise UserError(f"{path} is already there; --force writes over it")
    if not path.parent.is_dir():
        raise UserError(f"there is no directory {path.parent}")
    try:
        origin = find(source) if source else Path(__file__).parent / STARTER
        text = re.sub(r'^name = ".*"$', f'name = "{path.stem}"', origin.read_text(encoding="utf-8"), count=1, flags=re.M)
        loads(text, str(path), folder=path.parent)
    except ScenarioError as error:
        raise UserError(str(error)) from None
    path.write_text(text, encoding="utf-8")
    out = console()
    out.print(f"wrote {path}", soft_wrap=True)
    out.print(f"next: edit it, then [bold]skycrane check {path}[/bold] and [bold]skycrane run {path}[/bold]", soft_wrap=True)


def schema(
    *,
    form: Annotated[Literal["json", "markdown"], Parameter(name="--format", help="For editors, or to read.")] = "json",
) -> None:
    """Print the format of scenario files: JSON Schema for editors, or tables to read."""
    print(json.dumps(json_schema(), indent=2) if form == "json" else _markdown())


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario file."""
    from skycrane.scenario import Scenario

    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}


def _markdown() -> str:
    from skycrane.scenario.document import reference

    return reference()
