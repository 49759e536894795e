"""Reverse-mode derivatives that fly again from saved samples: the same numbers, far less memory."""

import jax
import jax.numpy as jnp
import numpy as np

from skycrane.core.controller import Constant
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import quad_command, quadrotor

SYSTEM = quadrotor(lag=False)
STATE = SYSTEM.initial_state()


def derivative(bounded):
    def end(speeds):
        run = simulate(SYSTEM, Constant({"rotors": speeds}), None, STATE, duration=0.5, step=1e-3, save_every=25, bounded_memory=bounded)
        return run.state.bodies.p_WB[-1, 0, 2]

    return jax.jit(jax.grad(end)).lower(quad_command()["rotors"]).compile()


def test_same_derivative_with_a_fraction_of_the_memory():
    plain, bounded = derivative(False), derivative(True)
    a, b = plain(quad_command()["rotors"]), bounded(quad_command()["rotors"])
    assert bool(jnp.all(a > 0))
    np.testing.assert_allclose(a, b, rtol=1e-12)
    assert bounded.memory_analysis().temp_size_in_bytes < 0.25 * plain.memory_analysis().temp_size_in_bytes
