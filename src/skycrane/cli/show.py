"""Commands that show a result that is there already: `plot` and `view`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from skycrane.cli import UserError
from skycrane.cli.common import console

Result = Annotated[Path, Parameter(help="A result directory, or its result.nc.")]


def plot(
    result: Result,
    variables: Annotated[tuple[str, ...], Parameter(help="Variables to plot one by one; the standard plots by default.")] = (),
    *,
    out: Annotated[Path | None, Parameter(help="Directory for the plots; that of the result by default.")] = None,
) -> None:
    """Draw the plots of a result again, or plots of single variables."""
    from skycrane.viz import open_result, plot_variable, save_plots
    from skycrane.viz.figures import save_figure

    folder = out or (result if result.is_dir() else result.parent)
    try:
        dataset = open_result(result)
        if variables:
            figures = [(name, plot_variable(dataset, name)) for name in variables]
            folder.mkdir(parents=True, exist_ok=True)
            files = [save_figure(figure, folder / name) for name, figure in figures]
        else:
            files = save_plots(dataset, folder)
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from None
    for path in files:
        console().print(f"wrote {path}", soft_wrap=True)


def view(
    result: Result,
    *,
    port: Annotated[int | None, Parameter(help="Port on this machine; a free one by default.")] = None,
    host: Annotated[str, Parameter(help="Address to serve on; only this machine by default.")] = "127.0.0.1",
    browser: Annotated[bool, Parameter(help="Whether to open the page in the browser.")] = True,
) -> None:
    """Show a result in the browser: the scene in 3-D, with a time slider."""
    from skycrane.viz import open_viewer

    try:
        viewer = open_viewer(result, host, port)
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from None
    with viewer:
        console().print(f"{viewer.url}  (stop with Ctrl-C)", soft_wrap=True)
        if browser:
            webbrowser.open(viewer.url)
        try:
            viewer.wait()
        except KeyboardInterrupt:
            console().print("closed")
