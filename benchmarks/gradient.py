"""The gradient of a lift's path by every gain of its controller, against the same flight without it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks.lift import timed
from benchmarks.measure import Record, compare
from skycrane.scenario.build import build
from skycrane.scenario.fly import options
from skycrane.scenario.loader import load
from skycrane.simulation.rollout import simulate

FLOWN_S = 1.0


def run() -> list[Record]:
    built = build(load("lift-box").scenario)
    settings, step = options(built), built.scenario.run.step
    numbers, fixed = eqx.partition(built.controller, eqx.is_inexact_array)

    def error(numbers):
        flight = simulate(
            built.system, eqx.combine(numbers, fixed), built.reference, built.initial, duration=FLOWN_S, save_every=25,
            bounded_memory=True, **settings,
        )  # fmt: skip
        return jnp.mean(flight.state.bodies.p_WB[:, -1] ** 2)

    forward, backward = jax.jit(error), jax.jit(jax.value_and_grad(error))
    compile_s = timed(lambda: jax.block_until_ready(backward(numbers)))
    forward(numbers)
    record = compare(
        "lift_gradient", "gradient of 1 s by all gains, checkpointed (evaluations)", "the flight alone (evaluations)",
        lambda: jax.block_until_ready(backward(numbers)), lambda: jax.block_until_ready(forward(numbers)), units=1, step_s=step,
        compile_s=compile_s, rounds=7,
    )  # fmt: skip
    return [record]
