"""What must hold for every controller: derivatives through a closed loop, and a hover that is kept."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from skycrane.control.references import Hover
from skycrane.core.controller import AbstractController
from skycrane.simulation.integrators import RK4
from skycrane.simulation.rollout import simulate
from skycrane.vehicles.multirotor import system_for
from tests.contracts.examples import CONTROLLERS, LIFTS, RNG, concrete_subclasses


def test_every_controller_has_an_example():
    assert concrete_subclasses(AbstractController) == {type(c) for c, _, _ in CONTROLLERS.values()}


def fly(name, controller, duration):
    _, plant, _ = CONTROLLERS[name]
    if name in LIFTS:  # both ends of a load on soft cables start aside; the last body, the load, comes back to where it hung
        options = {"duration": duration, "step": 4e-3, "save_every": 1000, "integrator": RK4(unroll=False)}
        return simulate(plant.system, controller, plant.reference["beam"], plant.initial, **options)
    system = system_for(plant)
    hover = Hover(jnp.array([[0.1, -0.2, 0.3]]), jnp.zeros(1))
    reference = {"uav": hover} if name == "team" else hover
    state = system.initial_state(velocity=[[0.3, 0.2, -0.1]], angular_velocity=[[0.3, -0.2, 0.1]])
    return simulate(system, controller, reference, state, duration=duration, step=4e-3, save_every=1000, integrator=RK4(unroll=False))


@pytest.mark.parametrize("name", [n for n in CONTROLLERS if "surge" not in n])  # theirs: tests/control/test_surge.py
def test_derivatives_by_every_number_of_the_controller(name):
    """Forward mode against central differences along random directions; each number moves in proportion to its size.

    The allocation's tables belong together (a matrix and what was derived from it), so they are not moved one by one here: its derivatives
    have tests of their own.
    """
    free = jax.tree_util.tree_map_with_path(
        lambda path, x: eqx.is_inexact_array(x) and "allocation" not in jax.tree_util.keystr(path), CONTROLLERS[name][0]
    )
    moving, fixed = eqx.partition(CONTROLLERS[name][0], free)
    flat, unravel = ravel_pytree(moving)
    weights = jnp.asarray(RNG.normal(size=3))

    def value(x):
        return fly(name, eqx.combine(unravel(x), fixed), 0.1).state.bodies.p_WB[-1, -1] @ weights

    value_and_slope = jax.jit(lambda x, d: jax.jvp(value, (x,), (d,)))
    size = jnp.where(flat == 0, 1e-3, jnp.abs(flat))
    for _ in range(2):
        d = jnp.asarray(RNG.normal(size=flat.size)) * size
        h = 1e-5
        up, down = (value_and_slope(flat + s * h * d, d)[0] for s in (1, -1))
        slope = value_and_slope(flat, d)[1]
        np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", [n for n, (_, _, returns) in CONTROLLERS.items() if returns])
def test_a_hover_is_reached_and_kept(name):
    end = fly(name, CONTROLLERS[name][0], 8.0).state.bodies
    if name in LIFTS:  # the load may go on rocking about the line through its two cables, which nothing damps
        np.testing.assert_allclose(end.p_WB[-1, -1], 0.0, atol=0.05)
        assert float(jnp.abs(end.w_B[-1, :-1]).max()) < 0.15
        return
    np.testing.assert_allclose(end.p_WB[-1, 0], [0.1, -0.2, 0.3], atol=0.02)
    assert float(jnp.abs(end.w_B[-1]).max()) < 0.02
