"""The command line: `skycrane run`, `check`, `describe`, `trim`, `linearize`, `list`, `new`, `plot`, `view`, `schema`, `export`.

The commands load what they need when they run, so that `--help`, `check`, `list`, `new` and `schema` answer at once:
none of them imports JAX.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

USER_ERROR = 2
"""Exit code where the user's input is at fault; a run that does not finish gives 1."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    code = execute(arguments)
    # At its end Python looks for garbage among all that JAX has made, half a second for nothing: the process is over.
    gc.freeze()
    sys.exit(code)


def execute(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. A mistake of the user is one message on standard error."""
    # JAX reads it as it is imported; without it, programs from the cache write long lines on some processors.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from cyclopts import CycloptsError

    from skycrane.cli.app import app, errors

    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        errors().print(f"[red]{_plain(str(error))}[/red]\nSee `skycrane --help`.")
        return USER_ERROR
    except UserError as error:
        errors().print(f"[red]error:[/red] {_plain(str(error))}", soft_wrap=True)
        return USER_ERROR
    except KeyboardInterrupt:
        errors().print("interrupted")
        return 130
    except BrokenPipeError:
        # The reader of a pipe has gone (`| head`); nothing more can be said, not even by Python's own flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code if isinstance(code, int) else 0


class UserError(Exception):
    """Something that the user can mend; the text says how."""


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
