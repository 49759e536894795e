"""Derivatives of a whole flight by every vehicle number, against central differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from skycrane.core.controller import Constant
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.math import rotation
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import quad_command, quadrotor

ENVIRONMENT = Environment(air=Air(jnp.array(1.2), SteadyWind(jnp.array([1.0, -0.5, 0.2]))))
SYSTEM = quadrotor(com=(0.01, -0.02, 0.005), center=(0.0, 0.01, 0.02), inertia_rotor=1e-5, environment=ENVIRONMENT)
STATE = SYSTEM.initial_state(velocity=[[1.0, 0.5, -0.2]], angular_velocity=[[0.1, 0.2, 0.3]])
COMMAND = quad_command((1.01, 0.995, 1.02, 0.99))  # some rotors speed up, some slow down, none sits on the kink between
WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=13))


def outcome(system, duration=0.3, command=None, state=STATE):
    """One smooth number that depends on the whole end state, attitude included."""
    run = simulate(system, Constant(COMMAND if command is None else command), None, state, duration=duration, step=2e-3, save_every=1000)
    b = run.state.bodies
    end = jnp.concatenate([b.p_WB[-1, 0], b.q_WB[-1, 0], b.v_W[-1, 0], b.w_B[-1, 0]])
    return WEIGHTS @ end


def test_every_vehicle_parameter_against_central_differences():
    # A limit that is not reached is infinite here and has derivative zero; it is only checked to be finite.
    moving, fixed = eqx.partition(SYSTEM, eqx.is_inexact_array)
    value = lambda m: outcome(eqx.combine(m, fixed))  # noqa: E731
    gradient = jax.jit(jax.grad(value))(moving)
    named = jax.tree_util.tree_flatten_with_path(moving)[0]
    for (path, _), derivative in zip(named, jax.tree.leaves(gradient), strict=True):
        assert bool(jnp.isfinite(derivative).all()), path
    finite = jax.tree.map(lambda x: jnp.where(jnp.isinf(x), 1e4, x), moving)
    flat, unravel = ravel_pytree(finite)
    derivatives = np.asarray(ravel_pytree(gradient)[0])
    names = [jax.tree_util.keystr(path) for path, leaf in named for _ in range(leaf.size)]
    size = np.concatenate([np.full(leaf.size, float(jnp.abs(jnp.where(jnp.isinf(leaf), 0, leaf)).max()) or 1e-2) for _, leaf in named])
    h = 1e-4 * size
    steps = jnp.asarray(np.concatenate([k * np.diag(h) for k in (1, -1, 2, -2)]))
    plus, minus, plus2, minus2 = np.asarray(jax.jit(jax.vmap(lambda d: value(unravel(flat + d))))(steps)).reshape(4, -1)
    numeric = (8 * (plus - minus) - (plus2 - minus2)) / (12 * h)  # fourth order
    # As change of the outcome per relative change of the parameter, so that units do not matter.
    error = np.abs(numeric - derivatives) * size
    worst = int(np.argmax(error / np.maximum(np.abs(derivatives) * size, 1.0)))
    assert error[worst] < 1e-6 * max(abs(derivatives[worst]) * size[worst], 1.0), names[worst]
    assert np.count_nonzero(derivatives) > 50


def test_gradients_are_finite_at_complete_rest():
    """No speed, no wind, upright, rotors stopped: every guard (norms, square roots, angles) is on its edge."""
    system = quadrotor(inertia_rotor=1e-5)
    state = system.initial_state(memory={"rotors": jnp.zeros((1, 4))})

    def distance(system, state, command):
        run = simulate(system, Constant({"rotors": command}), None, state, duration=0.02, step=2e-3)
        return jnp.sum(rotation.log(run.state.bodies.q_WB[-1]) ** 2) + jnp.sum(run.state.bodies.p_WB[-1] ** 2)

    moving, fixed = eqx.partition(system, eqx.is_inexact_array)
    gradients = jax.grad(lambda m, s, c: distance(eqx.combine(m, fixed), s, c), (0, 1, 2))(moving, state, jnp.zeros((1, 4)))
    for leaf in jax.tree.leaves(gradients):
        assert bool(jnp.isfinite(leaf).all())


@pytest.mark.parametrize("precision", [jnp.float32, jnp.float64])
def test_a_run_keeps_its_precision(precision):
    cast = lambda tree: jax.tree.map(lambda x: x.astype(precision) if eqx.is_inexact_array(x) else x, tree)  # noqa: E731
    run = simulate(cast(SYSTEM), Constant(cast(quad_command())), None, cast(STATE), duration=0.1, step=2e-3)
    for leaf in jax.tree.leaves((run.state, run.command, run.time)):
        assert leaf.dtype == precision
