"""The gradient of a lift's path by every gain of its controller, against the same flight without it: explicit and linearly implicit."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks.lift import timed
from benchmarks.measure import Record, compare
from skycrane.scenario.build import build
from skycrane.scenario.fly import options
from skycrane.scenario.loader import load
from skycrane.simulation.integrators import RK4
from skycrane.simulation.rollout import simulate

FLOWN_S = 1.0


def run() -> list[Record]:
    built = build(load("lift-box").scenario)
    numbers, fixed = eqx.partition(built.controller, eqx.is_inexact_array)
    records = []
    for name, changes in (("rk4", {"integrator": RK4(), "step": 4e-4}), ("linearly_implicit", {})):
        settings = options(built) | changes

        def error(numbers, settings=settings):
            flight = simulate(
                built.system, eqx.combine(numbers, fixed), built.reference, built.initial, duration=FLOWN_S, save_every=25,
                bounded_memory=True, **settings,
            )  # fmt: skip
            return jnp.mean(flight.state.bodies.p_WB[:, -1] ** 2)

        forward, backward = jax.jit(error), jax.jit(jax.value_and_grad(error))
        compile_s = timed(lambda backward=backward: jax.block_until_ready(backward(numbers)))
        forward(numbers)
        records.append(compare(
            f"lift_gradient_{name}", "gradient of 1 s by all gains, checkpointed (evaluations)", "the flight alone (evaluations)",
            lambda backward=backward: jax.block_until_ready(backward(numbers)),
            lambda forward=forward: jax.block_until_ready(forward(numbers)),
            units=1, precision="float64", step_s=settings["step"], compile_s=compile_s, rounds=15,
        ))  # fmt: skip
    return records
