"""Four quadrotors and a load on cables of five segments: open loop against MuJoCo's tendons, closed loop against the clock."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp

from benchmarks.environments import against
from benchmarks.measure import Record, compare
from skycrane.core.controller import Constant
from skycrane.scenario.build import Built, build
from skycrane.scenario.fly import options
from skycrane.scenario.loader import load
from skycrane.simulation.integrators import RK4
from skycrane.simulation.rollout import simulate, start

OPEN_STEP, OPEN_STEPS, CLOSED_S = 4e-4, 2500, 4.0


def held(built: Built) -> Constant:
    """The command that the controller gives first, held for ever."""
    first = start(built.system, built.controller, built.reference, built.initial, built.sensors)
    measurement, _ = built.sensors(0, jnp.zeros(()), built.system, first.state, first.command, built.system.prepare(), first.sensor_memory)
    return Constant(built.controller(jnp.zeros(()), measurement, built.reference, first.controller_memory)[0])


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run() -> list[Record]:
    built = build(load("lift-box").scenario)
    command = held(built)
    records = []

    def openly():
        settings = {"duration": OPEN_STEPS * OPEN_STEP, "step": OPEN_STEP, "integrator": RK4(), "save_every": OPEN_STEPS}
        return jax.block_until_ready(simulate(built.system, command, None, built.initial, **settings))

    common = {"units": OPEN_STEPS, "precision": "float64", "step_s": OPEN_STEP, "compile_s": timed(openly), "rounds": 7}
    names = {"name": "lift_open_loop", "ours_name": "skycrane RK4, 4 vehicles, load, 20 segments, state at the end"}
    records.append(against("mujoco", "lift", names, openly, common))

    settings = options(built)

    def closed():
        return jax.block_until_ready(
            simulate(built.system, built.controller, built.reference, built.initial, duration=CLOSED_S, save_every=100, **settings)
        )

    compile_s = timed(closed)
    step = built.scenario.run.step
    records.append(
        compare("lift_closed_loop", f"skycrane {built.scenario.run.integrator}, formation control at {1 / step:.0f} Hz, simulated seconds",
                "real time", closed, lambda: time.sleep(0.1), units=CLOSED_S, peer_units=0.1, step_s=step, compile_s=compile_s, rounds=7)
    )  # fmt: skip
    return records
