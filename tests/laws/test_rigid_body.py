"""Laws of a single rigid body, and published numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from skycrane.core.controller import Constant
from skycrane.math import rotation
from skycrane.simulation.integrators import RK4, Adaptive, SemiImplicitEuler
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import free_body

SPIN = dict(inertia=(1.0, 2.0, 3.5))
SPIN_RATE = [[4.0, 0.5, 6.0]]


def fly(system, state, duration, step, integrator=None, save_every=1):
    return simulate(system, Constant({}), None, state, duration=duration, step=step, integrator=integrator, save_every=save_every)


def angular_momentum_W(system, bodies):
    J = np.asarray(system.bodies.inertia_B[0])
    return np.einsum("nij,jk,nk->ni", np.asarray(rotation.to_matrix(bodies.q_WB[:, 0])), J, np.asarray(bodies.w_B[:, 0]))


def test_euler_equation_without_torque():
    system = free_body(inertia=(1.0, 2.0, 3.0))
    state = system.initial_state(angular_velocity=[[1.0, 1.0, 1.0]])
    rate = system.dynamics(0.0, state, {}, system.prepare())
    np.testing.assert_allclose(rate.bodies.w_B[0], [-1, 1, -1 / 3], rtol=1e-14)


def test_quarter_turn():
    system = free_body(inertia=(1.0, 1.0, 1.0))
    run = fly(system, system.initial_state(angular_velocity=[[0.0, 0.0, 1.0]]), np.pi / 2, np.pi / 2000)
    np.testing.assert_allclose(run.state.bodies.q_WB[-1, 0], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-12)


def test_constant_rate_equals_the_closed_form():
    system = free_body(inertia=(1.0, 1.0, 1.0))  # a sphere keeps its rate
    run = fly(system, system.initial_state(angular_velocity=[[1.0, 2.0, 3.0]]), 10.0, 1e-3, save_every=1000)
    closed = rotation.exp(np.asarray(run.time)[:, None] * np.array([1.0, 2.0, 3.0]))
    assert rotation.angle_between(run.state.bodies.q_WB[:, 0], closed).max() < 1e-10


def test_tumbling_keeps_energy_and_angular_momentum():
    system = free_body(**SPIN)
    run = fly(system, system.initial_state(angular_velocity=SPIN_RATE), 10.0, 1e-3, save_every=100)
    w = np.asarray(run.state.bodies.w_B[:, 0])
    energy = 0.5 * np.sum(np.array([1.0, 2.0, 3.5]) * w**2, -1)
    L = angular_momentum_W(system, run.state.bodies)
    assert np.ptp(energy) / energy[0] < 1e-9
    assert np.abs(L - L[0]).max() / np.linalg.norm(L[0]) < 1e-9


@pytest.mark.parametrize(("integrator", "steps"), [(RK4(), (50, 100, 200)), (SemiImplicitEuler(), (4000, 8000, 16000))])
def test_measured_order_of_attitude_rate_and_position(integrator, steps):
    """Against scipy's DOP853 at 1e-13, an outside engine; a body with its centre of mass off the reference point, in drag-free flight."""
    J, c, m = np.diag([1.0, 2.0, 3.5]), np.array([0.1, -0.05, 0.2]), 2.0

    def euler(t, x):  # flat Newton-Euler equations about the centre of mass
        q, w, v = x[:4], x[4:7], x[7:10]
        dq = 0.5 * np.array([-q[1:] @ w, *(q[0] * w + np.cross(q[1:], w))])
        return np.concatenate([dq, np.linalg.solve(J, -np.cross(w, J @ w)), [0, 0, 0], v])

    v0, w0 = np.array([1.0, 0.2, -0.5]), np.array(SPIN_RATE[0])
    x0 = np.concatenate([[1, 0, 0, 0], w0, v0 + np.cross(w0, c), c])
    exact = solve_ivp(euler, (0, 2), x0, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    system = free_body(m, (1.0, 2.0, 3.5), com=c)
    errors = {"attitude": [], "rate": [], "position": []}
    for n in steps:
        state = system.initial_state(velocity=[v0], angular_velocity=[w0])
        end = fly(system, state, 2.0, 2.0 / n, integrator, save_every=n).state.bodies
        q = np.asarray(end.q_WB[-1, 0])
        exact_q = exact[:4] / np.linalg.norm(exact[:4])
        com = np.asarray(end.p_WB[-1, 0]) + Rotation.from_quat(q[[1, 2, 3, 0]]).apply(c)
        errors["attitude"].append(float(rotation.angle_between(q, exact_q)))
        errors["rate"].append(np.linalg.norm(end.w_B[-1, 0] - exact[4:7]))
        errors["position"].append(np.linalg.norm(com - exact[10:13]))
    for what, e in errors.items():
        order = np.log2(np.array(e[:-1]) / np.array(e[1:]))
        assert abs(order[-1] - integrator.order) < 0.2, (what, e)


def test_adaptive_integrator_is_a_reference():
    system = free_body(**SPIN)
    state = system.initial_state(angular_velocity=SPIN_RATE)
    fine = fly(system, state, 1.0, 1e-4, save_every=10_000)
    adaptive = fly(system, state, 1.0, 0.1, Adaptive())
    np.testing.assert_allclose(adaptive.state.bodies.w_B[-1], fine.state.bodies.w_B[-1], atol=1e-9)


def test_nasa_check_case_02_tumbling_brick():
    """Body rates [deg/s] of simulation 01 of NESC check case 02, every 5 s.  Source: nasa/simupy-flight, NESC check-case data."""
    wanted = np.array(
        [
            [-16.939485149392073, 9.631939377436426, 33.406628079368062],
            [-2.418902221778410, -23.552569519515789, 28.128592630033431],
            [18.437254313582269, 2.386880298914253, 34.310705611612882],
            [-5.422734679890159, 22.715930576502963, 28.608281747225586],
            [-15.184088701189102, -13.617799500299141, 32.416796198407226],
            [12.618390775667759, -17.397474761830800, 31.119588886829948],
        ]
    )
    system = free_body(inertia=(0.001894220, 0.006211019, 0.007194665))  # any unit: only ratios matter
    first = np.array([9.999999999960824, 19.999999999978947, 29.999999999939774])
    run = fly(system, system.initial_state(angular_velocity=[np.radians(first)]), 30.0, 1e-3, save_every=5000)
    np.testing.assert_allclose(np.degrees(run.state.bodies.w_B[1:, 0]), wanted, atol=1e-8)


def test_centre_of_mass_moves_in_a_straight_line():
    c = np.array([0.3, -0.2, 0.1])
    system = free_body(2.0, (0.3, 0.4, 0.5), com=c)
    v, w = np.array([1.0, 0.0, -0.5]), np.array([2.0, -1.0, 3.0])
    run = fly(system, system.initial_state(velocity=[v], angular_velocity=[w]), 5.0, 1e-3, save_every=500)
    b = run.state.bodies
    com = np.asarray(b.p_WB[:, 0]) + np.asarray(rotation.rotate(b.q_WB[:, 0], c))
    np.testing.assert_allclose(com, c + np.asarray(run.time)[:, None] * (v + np.cross(w, c)), atol=1e-9)


ADDED = np.diag([0.6, 0.9, 12.5, 0.6, 0.7, 1.2]) + 0.05 * (np.eye(6, k=4) + np.eye(6, k=-4))


def test_added_mass_keeps_energy_and_the_fluid_momentum():
    """Kirchhoff's equations in still ideal fluid: kinetic energy, and linear and angular momentum in world axes, are constants."""
    system = free_body(12.5, (0.13, 0.73, 0.75), com=(0.02, 0.0, -0.06), added=ADDED)
    state = system.initial_state(velocity=[[1.0, -2.0, 0.5]], angular_velocity=[[0.5, 1.0, -0.7]])
    prepared = system.prepare()
    run = fly(system, state, 5.0, 5e-4, save_every=500)

    def momenta(state):
        kin = system.kinematics(state, prepared)
        h_lin, h_ang = prepared.momentum_B(kin.v_B, kin.w_B)
        linear = kin.R_WB @ h_lin
        return linear.array()[0], (kin.R_WB @ h_ang + kin.p_WB.cross(linear)).array()[0]

    energy = np.asarray(jax.vmap(lambda s: system.energy(0.0, s, prepared))(run.state))
    linear, angular = jax.vmap(momenta)(run.state)
    assert np.ptp(energy) / energy[0] < 1e-10
    np.testing.assert_allclose(linear, np.broadcast_to(linear[0], linear.shape), atol=1e-9)
    np.testing.assert_allclose(angular, np.broadcast_to(angular[0], angular.shape), atol=2e-8)


def test_added_mass_acts_at_once():
    """Sphere of mass m with added mass 2 m under a force F accelerates with F / 3 m (gz-sim 1923)."""
    from skycrane.elements.push import Push

    push = Push((0,), jnp.array([[6.0, 0.0, 0.0]]), jnp.zeros((1, 3)), jnp.zeros((1, 3)))
    system = free_body(2.0, (1.0, 1.0, 1.0), added=np.diag([4.0, 4, 4, 0, 0, 0]), elements={"push": push})
    rate = system.dynamics(0.0, system.initial_state(), {}, system.prepare())
    np.testing.assert_allclose(rate.bodies.v_W[0], [1.0, 0.0, 0.0], rtol=1e-14)


def test_reference_point_does_not_matter():
    """The same body described about two reference points flies the same way."""
    from skycrane.elements.gravity import Gravity

    c = np.array([0.2, 0.1, -0.3])
    about_com = free_body(1.5, (0.2, 0.3, 0.4), elements={"gravity": Gravity()})
    about_b = free_body(1.5, (0.2, 0.3, 0.4), com=c, elements={"gravity": Gravity()})
    w, v = np.array([1.0, -2.0, 0.7]), np.array([0.3, 0.2, 1.0])
    one = fly(
        about_com, about_com.initial_state(position=[c], velocity=[v + np.cross(w, c)], angular_velocity=[w]), 2.0, 1e-3, save_every=2000
    )
    two = fly(about_b, about_b.initial_state(velocity=[v], angular_velocity=[w]), 2.0, 1e-3, save_every=2000)
    com = two.state.bodies.p_WB[-1, 0] + rotation.rotate(two.state.bodies.q_WB[-1, 0], c)
    np.testing.assert_allclose(com, one.state.bodies.p_WB[-1, 0], atol=1e-10)
    assert rotation.angle_between(one.state.bodies.q_WB[-1, 0], two.state.bodies.q_WB[-1, 0]) < 1e-11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(mass=-1.0), "body 'body': mass is -1.0"),
        (dict(inertia=(1.0, -2.0, 3.0)), "not positive definite"),
        (dict(added=np.diag([1.0, 1, 1, 1, 1, 1]) + np.eye(6, k=1)), "added mass is not symmetric"),
        (dict(added=np.ones((5, 6))), r"added has shape \(1, 5, 6\), expected \(1, 6, 6\)"),
    ],
)
def test_impossible_bodies_are_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        free_body(**change)
