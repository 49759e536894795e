"""Where blocks are flown: in this process, in processes of this machine, or on a Dask cluster.

An engine takes tasks as it has room for them and hands every result to ``done`` in this process, which alone writes to the store; so
workers need no shared disk, and a worker that dies takes nothing with it but the block at hand, which is flown again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from typing import Any

from .block import ERROR, Task, failure, run_block

ATTEMPTS = 3
PATIENCE = "20s"  # for the answer of a Dask scheduler
Done = Callable[[Task, list[dict[str, Any]]], None]


def run_here(tasks: Iterable[Task], done: Done) -> None:
    """One after the other in this process."""
    for task in tasks:
        done(task, run_block(task))


def run_local(tasks: Iterable[Task], done: Done, jobs: int) -> None:
    """In ``jobs`` processes, started afresh (spawned), since JAX does not survive a fork."""
    waiting = iter(tasks)
    again: list[tuple[Task, int]] = []
    workers: list[_Worker] = []

    def following() -> tuple[Task, int] | None:
        if again:
            return again.pop()
        task = next(waiting, None)
        return None if task is None else (task, 1)

    try:
        while True:
            while len(workers) < jobs and (work := following()) is not None:
                workers.append(_Worker())
                workers[-1].give(*work)
            if not workers:
                return
            ready = wait([*(w.pipe for w in workers), *(w.process.sentinel for w in workers)])
            for worker in [w for w in workers if w.pipe in ready or w.process.sentinel in ready]:
                task, records = worker.task, worker.take()
                if records is None:
                    workers.remove(worker)
                    code = worker.close()
                    if worker.attempt < ATTEMPTS:
                        again.append((task, worker.attempt + 1))
                    else:
                        said = f"exit code {code}; -9 often means out of memory"
                        reason = f"the worker process ended {ATTEMPTS} times while flying this block ({said})"
                        done(task, [failure(entry, ERROR, reason) for entry in task.entries])
                    continue
                done(task, records)
                work = following()
                if work is None:
                    workers.remove(worker)
                    worker.close()
                else:
                    worker.give(*work)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.close()


class _Worker:
    """A process and the pipe to it."""

    task: Task
    attempt: int

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task: Task, attempt: int) -> None:
        self.task, self.attempt = task, attempt
        with contextlib.suppress(OSError):  # it may have died; `take` will say so
            self.pipe.send(task)

    def take(self) -> list[dict[str, Any]] | None:
        """The records, or None if the process has died."""
        try:
            return self.pipe.recv() if self.pipe.poll() else None
        except (EOFError, OSError):
            return None

    def close(self) -> int | None:
        self.pipe.close()
        self.process.join()
        return self.process.exitcode


def _serve(pipe: Connection) -> None:
    """A worker's life: blocks until the other end of the pipe is closed."""
    while True:
        try:
            task = pipe.recv()
            pipe.send(run_block(task))
        except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            return


def run_dask(tasks: Iterable[Task], done: Done, address: str) -> None:
    """On the cluster whose scheduler has this address; at most two blocks for every thread of it are under way.

    Raises:
        ImportError: without the package `distributed`.
        OSError: if nobody answers at the address.
    """
    from distributed import Client, as_completed

    with Client(address, timeout=PATIENCE) as client:
        room = max(2, 2 * sum(client.nthreads().values()))
        waiting = iter(tasks)
        flying: dict[str, Task] = {}
        finished = as_completed()

        def submit() -> None:
            while len(flying) < room and (task := next(waiting, None)) is not None:
                # A name of its own for every attempt: the cluster may remember the result of a sweep that was interrupted.
                future = client.submit(run_block, task, key=f"skycrane-{task.block}-{os.getpid()}", retries=ATTEMPTS - 1)
                flying[future.key] = task
                finished.add(future)

        submit()
        while flying:
            future = next(finished)
            task = flying.pop(future.key)
            error = future.exception()
            records = future.result() if error is None else [failure(e, ERROR, f"on the cluster: {error}") for e in task.entries]
            done(task, records)
            submit()
