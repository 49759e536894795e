import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.controller import Constant
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.math import rotation
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import POSITIONS, SPINS, free_body

UP = [0.0, 0.0, 1.0]


def wrench_on_body(rotors, command, w_B=(0.0, 0.0, 0.0), attitude=None, memory=None):
    """Total force (world) and moment (body) that one Rotors element puts on a resting body of that angular velocity."""
    system = free_body(elements={"rotors": rotors})
    state = system.initial_state(attitude=attitude, angular_velocity=[w_B])
    if memory is not None:
        state.memory["rotors"] = memory
    (push,) = system.wrenches(0.0, state, {"rotors": command}, system.prepare())["rotors"]
    return np.asarray(push.force_W.array()[0]), np.asarray(push.moment_B.array()[0])


def test_thrust_of_a_known_coefficient():
    rotors = Rotors.create((0,), [[0.0, 0.0, 0.0]], UP, [1.0], 8.5e-6, 0.0)
    force, moment = wrench_on_body(rotors, jnp.full((1, 1), 700.0))
    np.testing.assert_allclose(force, [0, 0, 4.165])
    assert not moment.any()


def test_reaction_torque_opposes_the_spin():
    """A rotor that turns counter-clockwise seen from above drives the body clockwise: a negative moment about body z (up)."""
    for spin in (1.0, -1.0):
        rotors = Rotors.create((0,), [[0.0, 0.0, 0.0]], UP, [spin], 1e-5, 1e-7)
        np.testing.assert_allclose(wrench_on_body(rotors, jnp.full((1, 1), 500.0))[1], [0, 0, -spin * 1e-7 * 500.0**2])


def test_opposite_forces_at_28_mm_make_a_pure_roll_torque():
    rotors = Rotors.create((0,), [[0, 0.028, 0], [0, -0.028, 0]], [[0, 0, 1.0], [0, 0, -1.0]], [1.0, 1.0], 1e-6, 0.0)
    force, moment = wrench_on_body(rotors, jnp.full((1, 2), 1000.0))
    np.testing.assert_allclose(force, 0, atol=1e-15)
    np.testing.assert_allclose(moment, [0.056, 0, 0])


def test_gyroscopic_torque_of_a_published_case():
    """14000/18000 rpm quadrotor, the fast pair clockwise, J = 3.452e-8 kg m^2, body rate (5, 3, 0) rad/s (crazyflow PR 86)."""
    speed = jnp.asarray([[14000.0, 18000, 14000, 18000]]) * 2 * np.pi / 60
    with_inertia = Rotors.create((0,), POSITIONS, UP, SPINS, 1e-9, 1e-11, inertia=3.452e-8)
    without = Rotors.create((0,), POSITIONS, UP, SPINS, 1e-9, 1e-11)
    torque = wrench_on_body(with_inertia, speed, (5.0, 3.0, 0.0))[1] - wrench_on_body(without, speed, (5.0, 3.0, 0.0))[1]
    np.testing.assert_allclose(torque, [8.676e-5, -1.446e-4, 0], rtol=2e-4, atol=1e-12)


def test_gyroscopic_torque_does_no_work():
    rng = np.random.default_rng(1)
    for _ in range(20):
        axes, w, spins = rng.normal(size=(5, 3)), rng.normal(size=3), rng.choice([-1.0, 1.0], 5)
        speed = jnp.asarray(rng.uniform(0, 800, (1, 5)))
        arguments = ((0,), rng.normal(size=(5, 3)), axes, spins, 1e-6, 1e-8)
        torque = (
            wrench_on_body(Rotors.create(*arguments, inertia=1e-4), speed, w)[1] - wrench_on_body(Rotors.create(*arguments), speed, w)[1]
        )
        assert abs(torque @ w) < 1e-12


def test_spin_up_reaction_of_one_rotor_and_of_a_balanced_set():
    arguments = dict(time_up=0.05, time_down=0.05, inertia=2e-5)
    rotors = Rotors.create((0,), POSITIONS, UP, SPINS, 0.0, 0.0, **arguments)
    one = wrench_on_body(rotors, jnp.asarray([[100.0, 0, 0, 0]]), memory=jnp.zeros((1, 4)))[1]
    np.testing.assert_allclose(one, [0, 0, -2e-5 * 100 / 0.05], atol=1e-15)
    every = wrench_on_body(rotors, jnp.full((1, 4), 100.0), memory=jnp.zeros((1, 4)))[1]
    np.testing.assert_allclose(every, 0, atol=1e-15)


def test_angular_momentum_of_body_and_rotor_is_kept_in_free_space():
    """A motor that spins up only exchanges momentum with the body: nothing outside pushes."""
    J_r, J = 1e-3, (0.1, 0.2, 0.3)
    rotors = Rotors.create((0,), [[0.0, 0, 0]], [0.6, 0.0, 0.8], [1.0], 0.0, 0.0, time_up=0.3, time_down=0.3, inertia=J_r)
    system = free_body(1.0, J, elements={"rotors": rotors})
    state = system.initial_state(angular_velocity=[[1.0, 2.0, -0.5]])
    run = simulate(system, Constant({"rotors": jnp.full((1, 1), 400.0)}), None, state, duration=2.0, step=1e-3, save_every=100)
    b = run.state.bodies
    h_B = np.asarray(J) * np.asarray(b.w_B[:, 0]) + J_r * np.asarray(run.state.memory["rotors"])[:, 0] * np.array([0.6, 0, 0.8])
    h_W = np.asarray(rotation.rotate(b.q_WB[:, 0], h_B))
    np.testing.assert_allclose(h_W, np.broadcast_to(h_W[0], h_W.shape), atol=1e-10)


@pytest.mark.parametrize(("start", "target", "tau"), [(100.0, 500.0, 0.02), (500.0, 100.0, 0.06)])
def test_motor_lag_rises_and_falls_with_its_own_time_constant(start, target, tau):
    rotors = Rotors.create((0,), [[0.0, 0, 0]], UP, [1.0], 0.0, 0.0, time_up=0.02, time_down=0.06, speed_initial=start)
    system = free_body(elements={"rotors": rotors})
    run = simulate(system, Constant({"rotors": jnp.full((1, 1), target)}), None, system.initial_state(), duration=0.1, step=1e-3)
    closed = target + (start - target) * np.exp(-np.asarray(run.time) / tau)
    np.testing.assert_allclose(run.state.memory["rotors"][:, 0, 0], closed, rtol=1e-7)


def test_commands_beyond_the_limits_and_failed_rotors():
    rotors = Rotors.create((0,), np.zeros((4, 3)), UP, SPINS, 1e-5, 0.0, speed_min=50, speed_max=600, speed_fraction=[1, 1, 0, 0.5])
    system = free_body(elements={"rotors": rotors})
    command = {"rotors": jnp.asarray([[-300.0, 900.0, 500.0, 500.0]])}
    log = system.outputs(0.0, system.initial_state(), command, system.prepare())["rotors"]
    np.testing.assert_allclose(log["speed"], [[50, 600, 0, 250]])
    np.testing.assert_allclose(log["thrust"], 1e-5 * np.array([[50, 600, 0, 250.0]]) ** 2)


def test_hover_speed_of_the_tutorial_quadrotor():
    """700.357052 rad/s holds 2 kg with k_F = 1e-5."""
    system = free_body(
        2.0, (0.015, 0.015, 0.0225), elements={"gravity": Gravity(), "rotors": Rotors.create((0,), POSITIONS, UP, SPINS, 1e-5, 1e-7)}
    )
    rate = system.dynamics(0.0, system.initial_state(), {"rotors": jnp.full((1, 4), 700.357052)}, system.prepare())
    np.testing.assert_allclose(rate.bodies.v_W, 0, atol=1e-7)
    np.testing.assert_allclose(rate.bodies.w_B, 0, atol=1e-9)


def drag_system(cd_area, center=None, wind=None, elements=None, density=1.225):
    environment = Environment(air=Air(density, SteadyWind(jnp.asarray(wind))) if wind is not None else Air(density))
    drag = Drag((0,), jnp.asarray([cd_area]), None if center is None else jnp.asarray([center]))
    return free_body(2.0, (0.015, 0.015, 0.0225), elements={"drag": drag, **(elements or {})}, environment=environment)


def test_terminal_descent_of_the_tutorial_quadrotor():
    """All rotors at 500 rad/s, released at rest: 20.887 m/s down (C_D A = 1.6 * 0.0225 m^2)."""
    elements = {"gravity": Gravity(), "rotors": Rotors.create((0,), POSITIONS, UP, SPINS, 1e-5, 1e-7)}
    system = drag_system([0.036] * 3, elements=elements)
    run = simulate(
        system, Constant({"rotors": jnp.full((1, 4), 500.0)}), None, system.initial_state(), duration=60.0, step=0.01, save_every=6000
    )
    assert abs(float(run.state.bodies.v_W[-1, 0, 2]) + 20.887) < 1e-3


@pytest.mark.parametrize(("thrust", "sign"), [(30.0, 1), (0.0, -1)])
def test_terminal_speed_under_quadratic_drag(thrust, sign):
    k = 0.5 * 1.225 * 0.05
    rotors = Rotors.create((0,), [[0.0, 0, 0]], UP, [1.0], thrust / 500.0**2, 0.0)
    system = drag_system([0.05] * 3, elements={"gravity": Gravity(), "rotors": rotors})
    run = simulate(
        system, Constant({"rotors": jnp.full((1, 1), 500.0)}), None, system.initial_state(), duration=60.0, step=0.01, save_every=6000
    )
    np.testing.assert_allclose(run.state.bodies.v_W[-1, 0, 2], sign * np.sqrt(abs(thrust - 2.0 * 9.81) / k), rtol=1e-6)


def test_stopped_rotors_give_no_lift_at_any_airspeed():
    system = drag_system([0.0] * 3, wind=(10.0, 3.0, -5.0), elements={"rotors": Rotors.create((0,), POSITIONS, UP, SPINS, 1e-5, 1e-7)})
    rate = system.dynamics(0.0, system.initial_state(velocity=[[5.0, 0, 9.0]]), {"rotors": jnp.zeros((1, 4))}, system.prepare())
    assert not np.asarray(rate.bodies.v_W).any()


def test_wind_from_behind_a_turned_vehicle_comes_from_its_side():
    """Yaw 90 degrees, wind (5, 0, 0) in the world: the air moves along (0, -5, 0) past the body and pushes it that way."""
    system = drag_system([0.01, 0.02, 0.03], wind=(5.0, 0.0, 0.0))
    state = system.initial_state(attitude=[rotation.from_euler("zyx", [np.pi / 2, 0, 0])])
    (push,) = system.wrenches(0.0, state, {}, system.prepare())["drag"]
    force_B = np.asarray(rotation.to_matrix(state.bodies.q_WB[0]).T @ push.force_W.array()[0])
    np.testing.assert_allclose(force_B, [0, -0.5 * 1.225 * 5**2 * 0.02, 0], atol=1e-14)


def test_flying_with_the_wind_feels_no_drag_and_flying_in_still_air_equals_standing_in_wind():
    v = np.array([3.0, -2.0, 1.0])
    q = [rotation.from_euler("zyx", [0.3, -0.4, 0.5])]
    with_wind = drag_system([0.01, 0.02, 0.03], center=[0.1, 0, 0.2], wind=v)
    still = drag_system([0.01, 0.02, 0.03], center=[0.1, 0, 0.2])

    def rate(system, **given):
        rates = system.dynamics(0.0, system.initial_state(attitude=q, **given), {}, system.prepare()).bodies
        return np.concatenate([np.ravel(x) for x in jax.tree.leaves(rates)])

    moving = rate(with_wind, velocity=[v])
    np.testing.assert_allclose(moving[7:], 0, atol=1e-15)  # accelerations come after velocity and quaternion rate
    np.testing.assert_allclose(rate(still, velocity=[-v])[7:], rate(with_wind)[7:], rtol=1e-12)


def test_drag_above_the_centre_of_mass_pitches_the_vehicle_back():
    """Flying forward (+x) with the centre of pressure above: the drag turns the nose up, a negative moment about y (left)."""
    system = drag_system([0.01] * 3, center=[0, 0, 0.1])
    state = system.initial_state(velocity=[[10.0, 0, 0]])
    (push,) = system.wrenches(0.0, state, {}, system.prepare())["drag"]
    np.testing.assert_allclose(push.moment_B.array()[0], [0, -0.1 * 0.5 * 1.225 * 100 * 0.01, 0], atol=1e-15)


def test_step_derivative_at_rest_with_quadratic_drag_is_finite():
    """d(state after one step) / d(velocity) at v = 0: the drag part is zero (drake PR 17127)."""
    system = drag_system([0.01, 0.02, 0.03], center=[0.0, 0.0, 0.1])

    def after(v):
        return simulate(system, Constant({}), None, system.initial_state(velocity=[v]), duration=0.01, step=0.01).state.bodies.v_W[-1, 0]

    np.testing.assert_allclose(jax.jacobian(after)(jnp.zeros(3)), np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(position_B=[[0.0, 0, 0]], axis_B=[0.0, 0, 0], spin=[1.0]), "zero length"),
        (dict(position_B=[[0.0, 0, 0]], axis_B=UP, spin=[0.5]), r"spin must be \+1 or -1"),
        (dict(position_B=[0.0, 0, 0], axis_B=UP, spin=[1.0]), "rotor positions have shape"),
        (dict(position_B=[[0.0, 0, 0]], axis_B=UP, spin=[1.0], time_up=0.1), "both time_up and time_down"),
    ],
)
def test_impossible_rotors_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Rotors.create((0,), thrust_coefficient=1e-6, torque_coefficient=1e-8, **arguments)
