"""The inextensible tether: equations derived in other coordinates, the source's oracle, the limit of stiff elastic cables, breaking."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.core.controller import Constant
from skycrane.core.system import System
from skycrane.elements.cables import Cables
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.elements.slaved import SlavedBuoy
from skycrane.elements.tether import LeverTether, Tether
from skycrane.environment.environment import Environment
from skycrane.environment.water import Water
from skycrane.simulation.rollout import simulate

G = 9.81
M_U, M_B, LENGTH = 5.0, 12.5, 7.0
ADDED = np.array([0.6, 0.9, 12.5])


def two(constraint, elements, mass=(M_B, M_U), added=None, gravity=G, water=None, **options):
    inertia = [[1e3, 1e3, 12.0], [0.16, 0.16, 0.22]]
    bodies = Bodies.create(["buoy", "uav"], mass, inertia, added=added)
    parts = {"gravity": Gravity(), **elements}
    constraints = {"tether": constraint} if constraint is not None else {}
    return System(bodies, parts, constraints, Environment(gravity, water=water), **options)


def pushes(buoy=(0, 0, 0), uav=(0, 0, 0)):
    return Push((0, 1), jnp.array([buoy, uav], dtype=float), jnp.zeros((2, 3)), jnp.zeros((2, 3)))


def directions(al, ph):
    ca, sa, cp, sp = np.cos(al), np.sin(al), np.cos(ph), np.sin(ph)
    return np.array([ca * cp, ca * sp, sa]), np.array([-sa * cp, -sa * sp, ca]), np.array([-sp, cp, 0.0])


def test_taut_equations_agree_with_euler_and_lagrange():
    """In the coordinates (x, y, z, elevation, azimuth) of Kourani and Daher: by differentiation of the Lagrangian, and by its matrices
    with the signs corrected; accelerations of both bodies and the tension agree to 1e-9."""
    rng = np.random.default_rng(7)
    added = np.zeros((2, 6, 6))
    added[0, :3, :3] = np.diag(ADDED)

    def place(q):
        ca, sa, cp, sp = jnp.cos(q[3]), jnp.sin(q[3]), jnp.cos(q[4]), jnp.sin(q[4])
        return jnp.concatenate([q[:3], q[:3] + LENGTH * jnp.stack([ca * cp, ca * sp, sa])])

    @jax.jit
    def lagrange(q, v, M_b, force):
        J = jax.jacfwd(place)

        def kinetic(q, v):
            u = J(q) @ v
            return 0.5 * u[:3] @ M_b @ u[:3] + 0.5 * M_U * u[3:] @ u[3:]

        M = jax.hessian(kinetic, 1)(q, v)
        coriolis = jax.jacfwd(jax.grad(kinetic, 1), 0)(q, v) @ v - jax.grad(kinetic, 0)(q, v)
        a = jnp.linalg.solve(M, J(q).T @ force - coriolis)
        return M, coriolis, J(q) @ a + jax.jvp(lambda q: J(q) @ v, (q,), (v,))[1]

    system = two(Tether((0, 1), LENGTH), {"push": pushes()}, added=added)

    @jax.jit
    def ours(state, force):
        changed = eqx.tree_at(lambda s: s.elements["push"].force_W, system, force.reshape(2, 3))
        prepared = changed.prepare()
        return changed.dynamics(0.0, state, {}, prepared).bodies.v_W, changed.tensions(0.0, state, {}, prepared)["tether"][0]

    for _ in range(6):
        yaw, al, ph = rng.uniform(-3, 3), rng.uniform(0.2, 1.3), rng.uniform(-3, 3)
        q, v = np.r_[rng.normal(size=3), al, ph], rng.normal(size=5) * [3, 3, 1, 0.4, 0.4]
        uu, f_b = np.r_[rng.normal(size=3) * 10 + 60 * directions(al, ph)[0] + [0, 0, 20]], rng.normal(size=3) * 20
        c, s = np.cos(yaw), np.sin(yaw)
        R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        M_b = M_B * np.eye(3) + R @ np.diag(ADDED) @ R.T
        force = np.r_[f_b - [0, 0, M_B * G], uu - [0, 0, M_U * G]]
        M, coriolis, a = lagrange(q, v, M_b, force)

        e_r, e_al, e_ph = directions(al, ph)
        ca, sa = np.cos(al), np.sin(al)
        P = M_U * LENGTH * np.stack([e_al, ca * e_ph], 1)
        Q = M_U * LENGTH**2 * np.diag([1, ca**2])
        np.testing.assert_allclose(M, np.block([[M_b + M_U * np.eye(3), P], [P.T, Q]]), atol=1e-9)
        da, dp, cp, sp = v[3], v[4], np.cos(ph), np.sin(ph)
        flat = -(da**2 + dp**2) * ca * np.array([cp, sp]) + 2 * sa * da * dp * np.array([sp, -cp])
        rows = M_U * LENGTH * np.r_[flat, -sa * da**2]
        np.testing.assert_allclose(coriolis, np.r_[rows, M_U * LENGTH**2 * sa * ca * np.array([dp**2, -2 * da * dp / 1.0])], atol=1e-9)

        r_b = q[:3]
        v_u = v[:3] + LENGTH * (da * e_al + ca * dp * e_ph)
        state = system.initial_state([r_b, r_b + LENGTH * e_r], [[np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)], [1, 0, 0, 0]], [v[:3], v_u])
        acceleration, tension = ours(state, jnp.asarray(np.r_[f_b, uu]))
        np.testing.assert_allclose(np.ravel(acceleration), a, atol=1e-9)
        expected = e_r @ uu - M_U * (e_r @ a[:3] - LENGTH * (da**2 + ca**2 * dp**2) + G * sa)
        assert expected > 0
        np.testing.assert_allclose(tension, expected, rtol=1e-9)


def test_the_planar_oracle_of_the_source():
    """m_u = 1.8, 13.0 kg on the buoy, V = 5 m/s: T = 20.46 N, V_im = 0.01153 m^3, u1 = 35.22 N at 44.94 deg; and case 44."""
    tension, volume, thrust, al, speed = 20.46, 0.01153, 35.22, np.deg2rad(44.94), 5.0
    buoy = SlavedBuoy(0, jnp.array([0.8, 0.25, 0.25]), jnp.zeros(3), 1.0)
    e_r, _, _ = directions(al, 0.0)
    uav = tension * e_r + [0, 0, 1.8 * G]
    np.testing.assert_allclose(np.linalg.norm(uav), thrust, rtol=0.01)
    system = two(LeverTether(Tether((0, 1), LENGTH), 0.4), {"buoy": buoy, "push": pushes(uav=uav)}, mass=(13.0, 1.8), water=Water())
    z = 0.125 - volume / 0.2
    state = system.initial_state([[0, 0, z], [*(LENGTH * e_r[:2]), z + LENGTH * e_r[2]]], velocity=[[speed, 0, 0]] * 2)
    prepared = system.prepare()
    rate = system.dynamics(0.0, state, {}, prepared)
    np.testing.assert_allclose(system.tensions(0.0, state, {}, prepared)["tether"], [tension], rtol=0.01)
    np.testing.assert_allclose(rate.bodies.v_W, 0.0, atol=0.01)
    drag = -sum(w.force_W.x[0] for w in system.wrenches(0.0, state, {}, prepared)["buoy"])
    np.testing.assert_allclose(drag, tension * np.cos(al), rtol=0.01)
    np.testing.assert_allclose(1000 * G * volume, 13.0 * G - tension * np.sin(al), rtol=0.01)


def test_the_lever_turns_the_buoy_towards_the_tether():
    system = two(LeverTether(Tether((0, 1), LENGTH), 0.4, 0.1), {"push": pushes(uav=(0, 30.0, 60.0))}, gravity=0.0)
    al, ph = 0.7, np.pi / 2
    state = system.initial_state([[0, 0, 0], LENGTH * directions(al, ph)[0]])
    prepared = system.prepare()
    (T,) = system.tensions(0.0, state, {}, prepared)["tether"]
    rate = system.dynamics(0.0, state, {}, prepared).bodies
    np.testing.assert_allclose(rate.w_B[0], [0, 0, T * (0.4 * np.cos(al) + 0.1 * np.sin(al)) / 12.0], rtol=1e-9)


@pytest.fixture(scope="module")
def swing():
    """A weight swings below another one and jerks the tether: free fall, then taut."""
    system = two(Tether((0, 1), 2.0), {"push": pushes((0, 0, 6.0 * G))}, mass=(4.0, 2.0), keep_ledger=True)
    state = system.initial_state([[0, 0, 0], [1.2, 0.0, -1.0]], velocity=[[0, 0, 0], [0.5, 0.8, 0.0]])
    return system, simulate(system, Constant({}), None, state, duration=2.0, step=2e-3, save_every=5), state


def test_a_jerk_keeps_momentum_and_the_length(swing):
    system, run, _ = swing
    p = 4.0 * run.state.bodies.v_W[:, 0] + 2.0 * run.state.bodies.v_W[:, 1]
    np.testing.assert_allclose(p, np.broadcast_to(p[0], p.shape), atol=1e-11)  # weight and lift balance
    r = np.linalg.norm(run.state.bodies.p_WB[:, 1] - run.state.bodies.p_WB[:, 0], axis=-1)
    assert r.min() < 1.9
    np.testing.assert_allclose(r[150:], 2.0, atol=2e-4)
    energy = jax.vmap(lambda s: system.energy(0.0, s, system.prepare()))(run.state) - run.state.memory["energy_ledger"].work
    np.testing.assert_allclose(energy, energy[0], atol=2e-3)


def test_stiff_elastic_tethers_converge_to_it(swing):
    _, run, state = swing
    end = run.state.bodies.p_WB[-1, 1]
    errors = []
    for k in (1e4, 4e4, 1.6e5):
        mass = 4.0 * 2.0 / 6.0
        ends = (0,), (1,), jnp.zeros((1, 3)), jnp.zeros((1, 3))
        numbers = (jnp.array([[x]]) for x in (k, 2 * np.sqrt(k * mass), 2.0))
        cable = Cables(*ends, *numbers, jnp.zeros((0, 1)), jnp.zeros((0, 1, 3)), jnp.ones((1, 1)))
        elastic = two(None, {"push": pushes((0, 0, 6.0 * G)), "cable": cable}, mass=(4.0, 2.0))
        start = elastic.initial_state(state.bodies.p_WB, velocity=state.bodies.v_W)
        other = simulate(elastic, Constant({}), None, start, duration=2.0, step=2e-4, save_every=5000)
        errors.append(float(jnp.abs(other.state.bodies.p_WB[-1, 1] - end).max()))
    assert errors[0] > 1.7 * errors[1] > 1.7**2 * errors[2]
    assert errors[2] < 5e-3


def test_it_breaks_at_its_breaking_tension_and_stays_broken():
    system = two(Tether((0, 1), 2.0, breaking_tension=25.0), {"push": pushes((0, 0, 60.0))}, mass=(4.0, 2.0))
    state = system.initial_state([[0, 0, 0], [0, 0, -2.0]])
    prepared = system.prepare()
    # Together they rise with 60/6 - g: the tension is 2 (a + g) = 20 N.
    np.testing.assert_allclose(system.tensions(0.0, state, {}, prepared)["tether"], [20.0], rtol=1e-9)
    pull = eqx.tree_at(lambda s: s.elements["push"].force_W, system, jnp.array([[0, 0, 80.0], [0, 0, 0]]))
    run = simulate(pull, Constant({}), None, state, duration=0.5, step=1e-3, save_every=100)
    assert float(run.state.memory["tether"][-1]) > 0
    broken = jax.tree.map(lambda x: x[-1], run.state)
    assert float(pull.tensions(0.0, broken, {}, prepared)["tether"][0]) == 0.0
    np.testing.assert_allclose(run.state.bodies.p_WB[-1, 1, 2], -2.0 - 0.5 * G * 0.25, atol=0.05)


def test_bad_tethers_are_refused():
    with pytest.raises(ValueError, match="to itself"):
        Tether((1, 1), 2.0)
    with pytest.raises(ValueError, match="offset_A"):
        Tether((0, 1), 2.0, jnp.zeros(2))
