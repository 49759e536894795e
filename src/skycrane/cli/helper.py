"""A process of its own that writes files of a run, and loads xarray, matplotlib and viser while the run is still being compiled.

It is a plain subprocess of the same interpreter: JAX is not in it, nothing is forked, the caller's script does not run again, and it
works alike on every system. What it is to write comes through a pipe, as a pickle of plain arrays. A helper that fails is not an
error: the caller then writes the files itself, and what is wrong, if anything is, shows there.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def worthwhile() -> bool:
    """Whether a second processor can do it meanwhile, and this process has not loaded the libraries anyway."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 and "xarray" not in sys.modules and bool(sys.executable) and not getattr(sys, "frozen", False)


class Helper:
    """A process that gets ready for a task of `skycrane.viz.files`, is given a data set with :meth:`send`, and answers by :meth:`files`."""

    def __init__(self, task: str) -> None:
        self._answer: bytes | None = None
        self._thread: Any = None
        code = f"import sys; sys.path[:] = {sys.path!r}; from skycrane.viz.files import serve; serve({task!r})"
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )

    def send(self, parts: tuple[Any, ...], folder: Path) -> None:
        """The arguments of the data set, and the directory to write into."""
        if self._process is not None:
            import pickle
            from threading import Thread

            self._thread = Thread(target=self._talk, args=(self._process, pickle.dumps((parts, folder), protocol=5)), daemon=True)
            self._thread.start()

    def _talk(self, process: subprocess.Popen, message: bytes) -> None:
        answer, _ = process.communicate(message)
        self._answer = answer if process.returncode == 0 else None

    def files(self) -> list[Path] | None:
        """What was written, once it is; None where it was not."""
        if self._thread is None:
            return None
        self._thread.join()
        return None if self._answer is None else [Path(name) for name in json.loads(self._answer)]

    def close(self) -> None:
        """End it, if it has not ended."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        with contextlib.suppress(OSError), self._process:  # closes the pipes, and waits
            pass
