"""What must hold for every element: the energy law, derivatives, batches, precision, described outputs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from skycrane.core.element import AbstractElement
from tests.contracts.examples import COMMANDS, ELEMENTS, RNG, concrete_subclasses, random_state, two_bodies


def test_every_element_has_an_example():
    assert concrete_subclasses(AbstractElement) == {type(e) for e in ELEMENTS.values()}


@pytest.mark.parametrize("name", [*ELEMENTS, "all together"])
def test_energy_rate_equals_power(name):
    """d/dt (kinetic energy + stored energies) = sum of powers, along the equations of motion.

    The left side comes from the derivative of the total energy, the right side from what the elements report; so gyroscopic terms, added
    mass and frames are held to account too."""
    system = two_bodies(dict(ELEMENTS) if name == "all together" else {name: ELEMENTS[name]})
    prepared = system.prepare()

    @jax.jit
    def both(state):
        rate = system.dynamics(0.0, state, COMMANDS, prepared)
        _, energy_rate = jax.jvp(lambda s: system.energy(0.0, s, prepared), (state,), (rate,))
        kin = system.kinematics(state, prepared)
        wrenches = system.wrenches(0.0, state, COMMANDS, prepared)
        power = sum(e.power(0.0, kin, state.memory[n], COMMANDS.get(n), wrenches[n]) for n, e in system.elements.items())
        return energy_rate, power

    for _ in range(5):
        np.testing.assert_allclose(*both(random_state(system)), rtol=1e-9, atol=1e-9)


def outcome(system, state, weights):
    """A smooth number that depends on every acceleration and every rate of the memory."""
    return weights @ ravel_pytree(system.dynamics(0.1, state, COMMANDS, system.prepare()))[0]


@pytest.mark.parametrize("name", ELEMENTS)
def test_derivatives_by_every_parameter_and_by_the_state(name):
    system = two_bodies({name: ELEMENTS[name]})
    state = random_state(system)
    moving, fixed = eqx.partition((system, state), eqx.is_inexact_array)
    weights = jnp.asarray(RNG.normal(size=ravel_pytree(state)[0].size))
    flat, unravel = ravel_pytree(jax.tree.map(lambda x: jnp.where(jnp.isinf(x), 1e4, x), moving))
    value = jax.jit(lambda x: outcome(*eqx.combine(unravel(x), fixed), weights))
    gradient = np.asarray(jax.jit(jax.grad(value))(flat))
    assert np.isfinite(gradient).all()
    # Along random directions, each number moved in proportion to its own size.
    size = jnp.where(flat == 0, 1e-3, jnp.abs(flat))
    directions = jnp.asarray(RNG.normal(size=(8, flat.size))) * size
    h = 1e-5
    numeric = np.array([(value(flat + h * d) - value(flat - h * d)) / (2 * h) for d in directions])
    scale = np.abs(gradient * np.asarray(size)).max()
    np.testing.assert_allclose(np.asarray(directions) @ gradient, numeric, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("name", ELEMENTS)
def test_a_batch_equals_a_loop(name):
    system = two_bodies({name: ELEMENTS[name]})
    states = [random_state(system) for _ in range(3)]
    prepared = system.prepare()
    one = jax.jit(lambda s: system.dynamics(0.0, s, COMMANDS, prepared))
    together = jax.vmap(one)(jax.tree.map(lambda *x: jnp.stack(x), *states))
    for k, state in enumerate(states):
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(one(state)), strict=True):
            np.testing.assert_allclose(a[k], b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ELEMENTS)
def test_single_precision_stays_single(name):
    system = two_bodies({name: ELEMENTS[name]})
    state = random_state(system)
    low = lambda tree: jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, tree)  # noqa: E731
    small = low(system)
    rate = jax.jit(lambda s: small.dynamics(jnp.float32(0.0), s, low(COMMANDS), small.prepare()))(low(state))
    full = system.dynamics(0.0, state, COMMANDS, system.prepare())
    for a, b in zip(jax.tree.leaves(rate), jax.tree.leaves(full), strict=True):
        assert a.dtype == jnp.float32
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * float(jnp.abs(b).max()))


@pytest.mark.parametrize("name", ELEMENTS)
def test_outputs_are_what_they_are_said_to_be(name):
    system = two_bodies({name: ELEMENTS[name]})
    log = system.outputs(0.0, random_state(system), COMMANDS, system.prepare()).get(name, {})
    for key, value in log.items():
        info = ELEMENTS[name].outputs_info[key]
        assert jnp.ndim(value) == len(info.dims), key
        assert info.long_name
        assert bool(jnp.isfinite(value).all()), key
