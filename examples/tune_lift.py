"""Tune the gains of a formation that carries a box, by the gradient of its error through 10 s of flight.

Run it: python examples/tune_lift.py [steps].  Every step flies the lift once and goes back through it.
"""

import sys

from skycrane.runtime import configure

configure("float64")  # before the first JAX computation: fast loops, double precision, cache of compiled programs

import equinox as eqx
import jax
import jax.numpy as jnp

from skycrane.scenario.build import build
from skycrane.scenario.fly import options
from skycrane.scenario.loader import load
from skycrane.simulation.rollout import simulate

TUNED = ("position", "velocity", "surface", "attitude", "rate")
CHANGE = 0.1  # the largest change of a gain's logarithm at a step


def main(steps: int = 5, flown: float = 10.0) -> list[float]:
    """Mean distance [m] of the load from where it is to go, before and after each step, which is what the gains are tuned for."""
    built = build(load("lift-box").scenario)
    (name,) = built.controller.members
    gains, load_index = built.controller.members[name].gains, built.system.bodies.index("box")
    target = built.reference[name](jnp.asarray(flown)).p_W[0]

    @jax.jit
    @jax.value_and_grad
    def error(logarithms):
        scaled = [getattr(gains, gain) * jnp.exp(logarithms[gain]) for gain in TUNED]
        controller = eqx.tree_at(lambda c: [getattr(c.members[name].gains, gain) for gain in TUNED], built.controller, scaled)
        run = simulate(
            built.system, controller, built.reference, built.initial, duration=flown, save_every=50, bounded_memory=True, **options(built)
        )
        distance = run.state.bodies.p_WB[:, load_index] - target
        return jnp.mean(jnp.sqrt(jnp.sum(distance**2, -1) + 1e-6))

    logarithms, errors = {gain: jnp.zeros(()) for gain in TUNED}, []
    for step in range(steps + 1):
        value, slope = error(logarithms)
        errors.append(float(value))
        factors = ", ".join(f"{gain} x {float(jnp.exp(x)):.3f}" for gain, x in logarithms.items())
        print(f"step {step}: mean distance {errors[-1]:.4f} m; {factors}", flush=True)
        largest = max(abs(float(s)) for s in slope.values())
        logarithms = {gain: x - CHANGE * slope[gain] / largest for gain, x in logarithms.items()}
    return errors


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
