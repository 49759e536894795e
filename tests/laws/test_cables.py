"""Laws of bodies on cables: momentum, energy, tightening, and no push ever."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skycrane.core.bodies import Bodies, SecondOrder
from skycrane.core.system import System
from skycrane.environment.environment import Environment
from skycrane.simulation.implicit import LinearlyImplicit
from skycrane.simulation.integrators import RK4
from tests.cable_models import advance, chain, jit_once, measured

OFFSET = np.array([[0.1, -0.05, 0.2], [-0.05, 0.1, -0.1]])
NODE = 0.05


def pair(damping=0.0):
    """Two bodies in free space on a cable of three segments."""
    bodies = Bodies.create(["a", "b"], [1.0, 0.6], [[0.02, 0.03, 0.04], [0.03, 0.02, 0.02]])
    points = np.linspace([0.1, -0.05, 0.2], [-0.05, 0.1, 1.706], 4)
    cable = chain(0, 1, *OFFSET, points, 2000.0, damping, 0.5, NODE)
    return System(bodies, {"cables": cable}, environment=Environment(0.0), keep_ledger=True)


def spinning(system):
    """The pair turns about an axis across the cable, which the centrifugal force keeps taut; the bodies tumble a little."""
    nodes = np.asarray(system.elements["cables"].nodes)
    position = np.array([[0.0, 0, 0], [0.0, 0, 1.806]])
    axis = np.array([4.0, 1.0, 0.0])
    centre = np.array([0.0, 0, 0.7])
    turn = lambda p: np.cross(axis, p - centre) + np.array([0.3, -0.2, 0.1])  # noqa: E731
    memory = {"cables": {"nodes": SecondOrder(jnp.asarray(nodes), jnp.asarray(turn(nodes)))}}
    return system.initial_state(position, velocity=turn(position), angular_velocity=[axis, axis], memory=memory)


def momentum(system, state):
    """Linear and angular momentum about the world's origin, of bodies and nodes."""
    b, nodes = state.bodies, state.memory["cables"]["nodes"]
    R = Rotation.from_quat(np.asarray(b.q_WB), scalar_first=True).as_matrix()
    linear, angular = np.zeros(3), np.zeros(3)
    for i in range(system.bodies.count):
        arm = R[i] @ np.asarray(system.bodies.com_B[i])
        v = np.asarray(b.v_W[i]) + np.cross(R[i] @ b.w_B[i], arm)
        p = float(system.bodies.mass[i]) * v
        linear += p
        angular += np.cross(np.asarray(b.p_WB[i]) + arm, p) + R[i] @ np.asarray(system.bodies.inertia_B[i]) @ np.asarray(b.w_B[i])
    x, v = (np.asarray(a)[:, 0] for a in (nodes.position, nodes.velocity))
    return linear + NODE * v.sum(0), angular + NODE * np.cross(x, v).sum(0)


@pytest.fixture(scope="module", params=[RK4(), LinearlyImplicit()], ids=["rk4", "implicit"])
def integrator(request):
    return request.param


def test_momentum_and_energy_of_a_taut_pair(integrator):
    """Linear momentum is kept to rounding by every step; energy and angular momentum to the method's order."""
    system = pair()
    start = spinning(system)
    before = measured(system, start)
    linear, angular = momentum(system, start)
    drift, turned, slack = [], [], []
    for h, steps in ((1e-3, 500), (5e-4, 1000)):
        end = advance(integrator, system, start, h, steps)
        after = measured(system, end)
        now = momentum(system, end)
        np.testing.assert_allclose(now[0], linear, atol=1e-12)
        drift.append(abs(float(after["energy"] - before["energy"])))
        turned.append(np.abs(now[1] - angular).max())
        slack.append(float(after["tension"].min()))
    assert min(slack) > 1.0
    assert drift[1] < 3e-3 * float(before["energy"])
    # A dissipative term of the next higher order may be what is left of the energy.
    assert integrator.order - 0.4 < np.log2(drift[0] / drift[1]) < integrator.order + 1.4
    assert np.log2(turned[0] / turned[1]) > integrator.order - 0.4


def test_angular_momentum_has_no_rate():
    system = pair(damping=3.0)
    state = spinning(system)
    rate = jit_once(lambda s: system.dynamics(0.0, s, {}, system.prepare()))(state)
    h = 1e-4
    shifted = [momentum(system, moved(state, rate, sign * h)) for sign in (1, -1)]
    linear, angular = ((a - b) / (2 * h) for a, b in zip(*shifted, strict=True))
    force = np.asarray(measured(system, state)["tension"]).max()
    np.testing.assert_allclose(linear, 0, atol=1e-6 * force)  # the error of the difference
    np.testing.assert_allclose(angular, 0, atol=1e-6 * force)


def moved(state, rate, h):
    b, r, n, dn = state.bodies, rate.bodies, state.memory["cables"]["nodes"], rate.memory["cables"]["nodes"]
    bodies = type(b)(*(getattr(b, x) + h * getattr(r, x) for x in ("p_WB", "q_WB", "v_W", "w_B")))
    return type(state)(bodies, {"cables": {"nodes": SecondOrder(n.position + h * dn.position, n.velocity + h * dn.velocity)}})


def test_a_pair_that_flies_apart_tightens(integrator):
    """Cases 36 and 38: from slack to taut momentum is kept, energy never rises with damping, and no segment ever pushes."""
    system = pair(damping=3.0)
    nodes = np.asarray(system.elements["cables"].nodes) * [1, 1, 0.6]
    state = system.initial_state(
        [[0.0, 0, 0], [0.0, 0, 1.1]], velocity=[[0.1, 0, -1.0], [0, 0.1, 2.0]],
        memory={"cables": {"nodes": SecondOrder(jnp.asarray(nodes), jnp.zeros_like(nodes))}},
    )  # fmt: skip
    linear, _ = momentum(system, state)
    first = measured(system, state)
    assert float(first["tension"].max()) == 0.0
    energy, work, highest = [float(first["energy"])], [float(first["work"])], 0.0
    h, chunk = (1e-4, 100) if isinstance(integrator, RK4) else (5e-4, 20)
    for _ in range(60):
        state = advance(integrator, system, state, h, chunk)
        log = measured(system, state)
        energy.append(float(log["energy"]))
        work.append(float(log["work"]))
        assert float(log["tension"].min()) >= 0.0
        highest = max(highest, float(log["tension"].max()))
    assert highest > 20.0
    np.testing.assert_allclose(momentum(system, state)[0], linear, atol=1e-12)
    # Each contact with the end of the slack costs a step's error; between them the account closes.
    tolerance = 1e-4 * energy[0] if isinstance(integrator, RK4) else 2e-2 * energy[0]
    assert np.diff(energy).max() < tolerance
    assert energy[-1] < 0.9 * energy[0]
    assert np.diff(work).max() <= 1e-12  # dampers only take energy out
    np.testing.assert_allclose(np.array(energy) - np.array(work), energy[0], atol=10 * tolerance)
