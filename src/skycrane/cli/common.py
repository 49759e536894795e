"""What several commands share: the target with its changes, and text output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from skycrane.cli import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from skycrane.scenario import LoadedScenario

Changes = Annotated[
    tuple[str, ...],
    Parameter(name="--set", consume_multiple=True, negative=(), help="Change a value: `--set vehicle.mass=2.2`."),
]
Target = Annotated[str | None, Parameter(help="Name of a bundled scenario or vehicle, or a TOML file.")]


def load_target(target: str | None, changes: Sequence[str]) -> LoadedScenario:
    """The scenario that is meant, checked. Without a target it is the default one."""
    from skycrane.scenario import ScenarioError, load
    from skycrane.scenario.bundled import DEFAULT_SCENARIO

    # `--set a=1 b=2` takes several changes, so it also swallows a target that comes after it.
    words = [change for change in changes if "=" not in change]
    if target is None and len(words) == 1:
        target = words[0]
        changes = [change for change in changes if "=" in change]
    try:
        return load(target or DEFAULT_SCENARIO, changes)
    except ScenarioError as error:
        raise UserError(str(error)) from None


def console(quiet: bool = False) -> Console:
    """Standard output, or nothing."""
    from rich.console import Console

    return Console(highlight=False, quiet=quiet, emoji=False)
