"""The application object: which commands there are, and the consoles they print to."""

from __future__ import annotations

from importlib.metadata import version

from cyclopts import App
from rich.console import Console

from skycrane.cli import describe, design, export, files, run, show, steady, sweep

app = App(
    name="skycrane",
    help="Simulate multirotors that push, lift, carry and tow. Start with `skycrane run`.",
    version=lambda: f"skycrane {version('skycrane')}",
)
COMMANDS = (
    run.run, files.check, describe.describe, steady.trim, steady.linearize, files.list_, files.new, show.plot, show.view, files.schema,
    export.export,
)  # fmt: skip
for command in COMMANDS:
    app.command(command, name=command.__name__.rstrip("_"))

app.command(design.design)
app.command(sweep.sweep)


def errors() -> Console:
    """Where messages to the user go; made late, so that a redirected standard error is seen."""
    return Console(stderr=True, highlight=False, emoji=False)
