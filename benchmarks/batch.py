"""Batches of quadrotors in single precision, open loop, RK4 at 2 ms, ends only: C with vectorised lanes, MuJoCo, Crazyflow, RotorPy."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.environments import against
from benchmarks.measure import Record, compare
from benchmarks.single import RATE, SPEED, STEP, VELOCITY, quadrotor
from skycrane.core.controller import Constant
from skycrane.simulation.batch import map_lanes
from skycrane.simulation.rollout import simulate

SIZES = (64, 1024, 16_384)
CORES = min(2, len(jax.devices()))


@contextmanager
def c_batch(threads: int) -> Iterator[ctypes.CDLL]:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "batch.so"
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", *(["-fopenmp"] if threads > 1 else [])]
        subprocess.run(["gcc", *flags, "-o", str(library), str(Path(__file__).with_name("quadrotor_batch.c")), "-lm"], check=True)
        code = ctypes.CDLL(str(library))
        code.fly_many.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float, ctypes.c_long, ctypes.c_long]
        yield code


def single_precision(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32) if jnp.issubdtype(jnp.result_type(x), jnp.floating) else x, tree)


def ours(n: int, steps: int, devices: int):
    """A compiled flight of n quadrotors that differ in their rotor speeds by up to a percent; returns positions at the end (n, 3)."""
    system = single_precision(quadrotor())
    state = single_precision(quadrotor().initial_state(velocity=[VELOCITY], angular_velocity=[RATE]))
    speed = jnp.asarray(SPEED[None], jnp.float32)

    def one(factor):
        run = simulate(system, Constant({"rotors": factor * speed}), None, state, duration=steps * STEP, step=STEP, save_every=steps)
        return run.final.state.bodies.p_WB[0]

    compiled = jax.jit(lambda factors: map_lanes(one, factors, devices=devices))
    factors = jnp.asarray(np.linspace(0.995, 1.005, n), jnp.float32)
    return lambda: jax.block_until_ready(compiled(factors))


def c_ends(code: ctypes.CDLL, n: int, steps: int):
    start = np.array([0, 0, 0, 1, 0, 0, 0, *VELOCITY, *RATE], dtype=np.float32)
    speed = np.ascontiguousarray(np.float32(SPEED)[:, None] * np.linspace(0.995, 1.005, n, dtype=np.float32))

    def fly():
        s = np.ascontiguousarray(np.repeat(start[:, None], n, 1))
        code.fly_many(s.ctypes.data, speed.ctypes.data, STEP, steps, n)
        return s[:3].T

    return fly


def run() -> list[Record]:
    records = []
    with jax.enable_x64(False):
        for n in SIZES:
            steps = max(50, 400_000 // n)
            devices = CORES if n > 1024 else 1
            fly = ours(n, steps, devices)
            began = time.perf_counter()
            mine = np.asarray(fly())
            compile_s = time.perf_counter() - began
            names = {"name": f"batch_{n}", "ours_name": f"skycrane.map_lanes, RK4, {devices} device(s)"}
            common = {"units": n * steps, "precision": "float32", "step_s": STEP, "compile_s": compile_s, "rounds": 7}
            with c_batch(devices) as code:
                in_c = c_ends(code, n, steps)
                apart = np.abs(in_c()[:, :3] - mine).max()
                if apart > 1e-3 * max(1.0, np.abs(mine).max()):
                    raise RuntimeError(f"C and Skycrane fly different paths ({apart:.1e} m); the comparison would mean nothing")
                label = f"C -O3 -ffast-math, lanes, {devices} thread(s)"
                records.append(compare(names["name"] + "_c", names["ours_name"], label, fly, in_c, **common))
            peers = [("mujoco", "batch"), ("crazyflow", "batch"), ("crazyflow", "batch_euler"), ("rotorpy", "batch")]
            if n == 1024:  # L2F is compiled for some sizes only
                peers.append(("l2f", "batch"))
            for peer, task in peers:
                records.append(against(peer, f"{task}:{n}", names, fly, common))
    return records
