import jax
import jax.numpy as jnp
import numpy as np

from skycrane.core.controller import Constant
from skycrane.elements.contact import GroundContact
from skycrane.elements.gravity import Gravity
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import free_body

CORNERS = np.array([[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.2, 0.2)])


def crate(keep_ledger=False, **contact):
    ground = GroundContact((0,) * 4, jnp.asarray(CORNERS), **contact)
    environment = Environment(ground=Ground(0.0))
    return free_body(
        2.0, (0.05, 0.05, 0.08), elements={"gravity": Gravity(), "ground": ground}, environment=environment, keep_ledger=keep_ledger
    )


def drop(system, duration=3.0, step=5e-4, **state):
    return simulate(system, Constant({}), None, system.initial_state(**state), duration=duration, step=step, save_every=20)


def test_a_dropped_crate_comes_to_rest_at_the_static_depth():
    system = crate(stiffness=5e3, dissipation=3.0)
    end = drop(system, position=[[0, 0, 0.6]], duration=6.0).state.bodies
    np.testing.assert_allclose(end.p_WB[-1, 0, 2], 0.1 - 2 * 9.81 / (4 * 5e3), atol=1e-5)
    assert np.abs(end.v_W[-1]).max() < 1e-3


def test_the_ground_never_pulls_and_friction_never_exceeds_its_cone():
    system = crate()
    run = drop(system, position=[[0, 0, 0.4]], velocity=[[3.0, -1.0, -2.0]], angular_velocity=[[2.0, 1.0, 0.0]])
    prepared = system.prepare()
    for k in range(0, len(run.time), 10):
        state = type(run.state)(*(at(part, k) for part in (run.state.bodies, run.state.memory)))
        (push,) = system.wrenches(0.0, state, {}, prepared)["ground"]
        f = np.asarray(push.force_W.array())
        assert f[:, 2].min() >= 0
        assert np.all(np.hypot(f[:, 0], f[:, 1]) <= 0.8 * f[:, 2] + 1e-12)


def at(tree, k):
    return jax.tree.map(lambda x: x[k], tree)


def test_a_sliding_crate_stops_after_the_coulomb_distance():
    system = crate(friction=0.4, slip_speed=0.005)
    height = 0.1 - 2 * 9.81 / (4 * 5e3)
    end = drop(system, position=[[0, 0, height]], velocity=[[2.0, 0, 0]], duration=2.0, step=2e-4).state.bodies
    np.testing.assert_allclose(end.p_WB[-1, 0, 0], 2.0**2 / (2 * 0.4 * 9.81), rtol=0.02)


def test_energy_minus_work_is_kept_through_impacts():
    """The regularised friction of a hard landing is stiff: a tenth of the step, and a drift that shrinks with it."""
    system = crate(keep_ledger=True, slip_speed=0.2)
    run = drop(system, 1.5, 1e-4, position=[[0, 0, 1.0]], velocity=[[1.0, 0, 0]], angular_velocity=[[1.0, 2.0, 0.0]])
    prepared = system.prepare()

    energy = np.asarray(jax.vmap(lambda s: system.energy(0.0, s, prepared))(run.state))
    work = np.asarray(run.state.memory["energy_ledger"].work)
    assert energy[-1] < 0.3 * energy[0]  # it did lose energy
    assert np.abs(energy - energy[0] - work).max() / energy[0] < 1e-3
