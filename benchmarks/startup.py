"""What a user waits for: importing, building a vehicle, the first run; each in a fresh process.

``python -m benchmarks.startup [NAME ...]`` runs every bundled scenario (or those named) twice with a cache of its own, empty at first, and
prints the seconds of both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.measure import Record, compare

JAX = "import jax"
IMPORT = "import skycrane"
BUILD = """
import skycrane
skycrane.fast_loops()
hexa = skycrane.Multirotor.create(1.2, (0.012, 0.012, 0.022), skycrane.ring(6, 0.28), 8.5e-6, 1.4e-7, speed_max=1000.0)
system = skycrane.system_for(hexa)
skycrane.simulate
"""
RUN = "from skycrane.cli import main; main(['run', {name!r}, '--out', {out!r}, '--force', '--quiet'])"


def process(code: str, **environment: str) -> Callable[[], float]:
    """A function that runs a program in a process of its own, and returns its seconds."""
    # Containers often set this; with it every process compiles every module from source, which takes four seconds. A user does not have it.
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def work() -> float:
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], check=False, env={**inherited, **environment}, stdout=subprocess.DEVNULL)
        if done.returncode not in (0, 1):  # 1 is a flight that diverges, as one of the bundled ones is to
            raise subprocess.CalledProcessError(done.returncode, done.args)
        return time.perf_counter() - began

    return work


def run() -> list[Record]:
    common = {"units": 1, "precision": "float64", "step_s": 0.0, "compile_s": 0.0, "rounds": 5}
    with tempfile.TemporaryDirectory() as folder:
        cache = {"XDG_CACHE_HOME": folder}
        code = RUN.format(name="quadrotor-circle", out=f"{folder}/out")
        process(code, **cache)()  # fills the cache
        cold = process(code, SKYCRANE_NO_CACHE="1")
        return [
            compare("import", IMPORT, JAX, process(IMPORT), process(JAX), **common),
            compare("build_and_reach_simulate", "skycrane: a hexarotor", JAX, process(BUILD, **cache), process(JAX), **common),
            compare(
                "first_run_cached",
                "skycrane run, from the cache",
                "the same without",
                process(code, **cache),
                cold,
                **{**common, "rounds": 3},
            ),
        ]


def every_scenario(names: list[str]) -> None:
    """A line for each: seconds with an empty cache, and from the cache."""
    print(f"{'scenario':24} {'cold':>6} {'cached':>7}  seconds")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            work = process(RUN.format(name=name, out=f"{folder}/out"), XDG_CACHE_HOME=folder)
            print(f"{name:24} {work():6.1f} {work():7.1f}", flush=True)


if __name__ == "__main__":
    from skycrane.scenario import catalogue

    every_scenario(sys.argv[1:] or sorted(catalogue("scenario")))
