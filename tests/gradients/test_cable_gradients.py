"""Derivatives through runs with cables, and where a cable switches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from skycrane.core.chain import WORLD
from skycrane.elements.cables import CableDrag, CableGround
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground
from skycrane.loads.rigid import Rigid
from skycrane.loads.rope import Rope
from skycrane.simulation.implicit import LinearlyImplicit
from skycrane.simulation.integrators import RK4
from tests.cable_models import chain, hung, jit_once, lift, lift_start

POINTS = np.array([[0.5, 0.0, 0.1], [-0.5, 0.0, 0.1]])


IMPLICIT = pytest.param((LinearlyImplicit(), 2e-3), id="implicit", marks=pytest.mark.slow)  # compiles for 40 s


@pytest.fixture(scope="module", params=[pytest.param((RK4(), 2e-4), id="rk4"), IMPLICIT])
def outcome(request):
    """Place and speed of the load after 0.2 s, by (load mass, stiffness) over their own values, and its derivative."""
    integrator, h = request.param
    system = lift(Rope.of_segments(2, 0.5, 2e4, 20.0, 0.02), POINTS, load=Rigid.create(2.0, [0.1, 0.3, 0.3]))

    def end(factors, state):
        mass = system.bodies.mass.at[2].multiply(factors[0])
        other = eqx.tree_at(
            lambda s: (s.bodies.mass, s.elements["cables"].stiffness), system, (mass, system.elements["cables"].stiffness * factors[1])
        )
        prepared = other.prepare()

        def one(state, _):
            return other.post_step(0.0, integrator.step(other, 0.0, state, {}, prepared, h), prepared), None

        b = jax.lax.scan(one, state, None, length=round(0.2 / h))[0].bodies
        return b.p_WB[2, 2] + 0.3 * b.v_W[2, 0] + 0.2 * b.v_W[2, 2]

    return system, jit_once(jax.value_and_grad(end))


@pytest.mark.parametrize("up", [0.0, 1.5], ids=["taut", "goes slack"])
def test_by_load_mass_and_stiffness(outcome, up):
    system, f = outcome
    state = lift_start(system, swing=(0.5, 0.3, up))  # thrown up, the load leaves the cables slack for 0.3 s
    one = jnp.ones(2)
    gradient = np.asarray(f(one, state)[1])
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).min() > 0
    h = 1e-6
    numeric = [(f(one + h * d, state)[0] - f(one - h * d, state)[0]) / (2 * h) for d in jnp.eye(2)]
    np.testing.assert_allclose(gradient, numeric, rtol=2e-4)


def test_finite_at_every_switch():
    """At full length to the last digit, at rest, at zero length, on the ground's surface."""
    m = 3
    straight = np.linspace([0.0, 0, 0], [0.0, 0, -1.5], m + 1)
    folded = np.array([[0.0, 0, 0], [0.0, 0, -0.5], [0.0, 0, -0.5], [0.0, 0, -1.0]])
    system = hung(
        straight, stiffness=1e4, damping=20.0, length=0.5, node_mass=0.01, bending=jnp.array([0.1]),
        drag=CableDrag(jnp.array([0.01]), jnp.array([0.001])), ground=CableGround(),
    )  # fmt: skip
    system = eqx.tree_at(lambda s: s.environment, system, Environment(9.81, ground=Ground(-0.5)))

    @jit_once
    def gradient(system, state):
        flat, unravel = ravel_pytree((system, state))

        def total(x):
            system, state = unravel(x)
            prepared = system.prepare()
            rate = ravel_pytree(system.dynamics(0.0, state, {}, prepared))[0]
            return (rate * jnp.linspace(0.3, 1.0, rate.size)).sum() + system.energy(0.0, state, prepared)

        return jax.grad(total)(flat)

    for points in (straight, folded):
        cable = chain(WORLD, 0, points[0], np.zeros(3), points, 1e4, 20.0, 0.5, 0.01)
        placed = eqx.tree_at(lambda s: s.elements["cables"].nodes, system, cable.nodes)
        assert np.isfinite(np.asarray(gradient(placed, placed.initial_state([points[-1]])))).all()
