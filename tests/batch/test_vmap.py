"""vmap over any leaf of anything equals a loop."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from skycrane.core.controller import Constant
from skycrane.core.events import Impulse, Timeline
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import quad_command, quadrotor

SYSTEM = quadrotor(com=(0.01, 0, 0), environment=Environment(jnp.array(9.81), Air(jnp.array(1.2), SteadyWind(jnp.zeros(3)))))
STATE = SYSTEM.initial_state(velocity=[[1.0, 0, 0]])
RNG = np.random.default_rng(2)

LEAVES = {
    "mass": (lambda s: s.bodies.mass, 1 + 0.1 * RNG.uniform(size=(4, 1))),
    "centre of mass": (lambda s: s.bodies.com_B, 0.02 * RNG.normal(size=(4, 1, 3))),
    "rotor positions": (lambda s: s.elements["rotors"].position_B, RNG.normal(size=(4, 1, 4, 3))),
    "thrust coefficients": (lambda s: s.elements["rotors"].thrust_coefficient, 5e-6 * RNG.uniform(0.5, 1, (4, 1, 4))),
    "drag": (lambda s: s.elements["drag"].cd_area_B, RNG.uniform(size=(4, 1, 3))),
    "gravity": (lambda s: s.environment.gravity, RNG.uniform(1, 10, 4)),
    "wind": (lambda s: s.environment.air.wind.velocity, RNG.normal(size=(4, 3))),
}


def end(system=SYSTEM, state=STATE, command=None, events=None):
    command = quad_command() if command is None else command
    return simulate(system, Constant(command), None, state, duration=0.1, step=2e-3, events=events, save_every=50).final.state.bodies


def assert_batch_equals_loop(function, batch):
    together = jax.vmap(function)(batch)
    apart = [function(jax.tree.map(lambda x, k=k: x[k], batch)) for k in range(jax.tree.leaves(batch)[0].shape[0])]
    for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(jax.tree.map(lambda *x: jnp.stack(x), *apart)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_over_leaves_of_the_system():
    """Every leaf at once, each lane with its own values."""

    def one(values):
        system = SYSTEM
        for name, (where, _) in LEAVES.items():
            system = eqx.tree_at(where, system, values[name])
        return end(system)

    assert_batch_equals_loop(one, {name: jnp.asarray(values) for name, (_, values) in LEAVES.items()})


def test_over_states_commands_and_events():
    batch = (
        STATE.bodies.v_W + jnp.asarray(RNG.normal(size=(4, 1, 3))),
        quad_command()["rotors"] * jnp.asarray(RNG.uniform(0.9, 1.1, (4, 1, 4))),
        jnp.asarray(RNG.uniform(0, 0.1, 4)),
    )

    def one(values):
        v, command, time = values
        state = eqx.tree_at(lambda s: s.bodies.v_W, STATE, v)
        return end(state=state, command={"rotors": command}, events=Timeline(impulses=(Impulse(0, time, jnp.array([0.1, 0.2, 0.3])),)))

    assert_batch_equals_loop(one, batch)


def test_over_whole_stacked_systems():
    systems = [eqx.tree_at(lambda s: s.bodies.mass, SYSTEM, jnp.array([m])) for m in (0.4, 0.5, 0.7)]
    fixed = eqx.filter(systems[0], eqx.is_array, inverse=True)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *[eqx.filter(s, eqx.is_array) for s in systems])
    assert_batch_equals_loop(lambda a: end(eqx.combine(a, fixed)), stacked)
