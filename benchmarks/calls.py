"""Single calls from Python, a step at a time: one vehicle and 8,192 of them, with motor lag, in single precision."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.batch import single_precision
from benchmarks.environments import against
from benchmarks.measure import Record
from benchmarks.single import RATE, SPEED, STEP, VELOCITY, quadrotor
from skycrane.simulation.stepper import Stepper

CALLS = 100


def calls(n: int):
    """A function that makes a hundred calls for n vehicles and waits for the last."""
    system = single_precision(quadrotor(lag=True))
    state = single_precision(quadrotor(lag=True).initial_state(velocity=[VELOCITY], angular_velocity=[RATE]))
    stepper = Stepper(system, state, step=STEP, count=None if n == 1 else n)
    command = {"rotors": jnp.asarray(np.broadcast_to(SPEED, (1, 4) if n == 1 else (n, 1, 4)), jnp.float32)}

    def work():
        for _ in range(CALLS):
            stepper.step(command)
        return jax.block_until_ready(stepper.packed)

    return work


def run() -> list[Record]:
    records = []
    with jax.enable_x64(False):
        for n in (1, 8192):
            work = calls(n)
            began = time.perf_counter()
            work()
            common = {"units": n * CALLS, "precision": "float32", "step_s": STEP, "compile_s": time.perf_counter() - began, "rounds": 9}
            names = {"name": f"step_{n}", "ours_name": f"skycrane.Stepper.step, RK4 with motor lag, {n} vehicle(s)"}
            for task in ("step", "step_euler"):
                records.append(against("crazyflow", f"{task}:{n}", names, work, common))
            if n > 1:
                records.append(against("l2f", f"batch:{n}", names, work, common))
    return records
