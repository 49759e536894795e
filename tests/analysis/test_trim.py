import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.analysis.trim import NoTrim, Trim, max_level_speed, trim
from skycrane.analysis.trim_setup import lifted
from skycrane.analysis.wrench_set import WrenchSet
from skycrane.core.controller import Constant
from skycrane.core.system import System
from skycrane.elements.gravity import Gravity
from skycrane.elements.motors import Battery, ThrottleCurve
from skycrane.environment.environment import Environment, Ground
from skycrane.math.rotation import from_euler, to_matrix
from skycrane.simulation.rollout import simulate
from skycrane.vehicles.layout import Layout, ring
from tests.analysis.models import K_F, K_M, LAG, LOAD, UAV, multirotor, slung
from tests.systems_for_tests import free_body

G = 9.81
HEXA = ring(6, 0.3)
CANTED = ring(6, 0.3, torsional=np.array([0.4, -0.4] * 3))


def speeds(result):
    return np.asarray(result.command["rotors"]).ravel()


def assert_flies_on(system, result, duration=0.5):
    """Flown with the constant command, the motion stays the steady one: same body velocity and rates."""
    run = simulate(system, Constant(result.command), None, result.state, duration=duration, step=1e-3)
    b = run.state.bodies
    v_B = jnp.einsum("tbji,tbj->tbi", to_matrix(b.q_WB), b.v_W)
    np.testing.assert_allclose(v_B, np.broadcast_to(v_B[0], v_B.shape), atol=1e-7)
    np.testing.assert_allclose(b.w_B, np.broadcast_to(b.w_B[0], b.w_B.shape), atol=1e-7)


# -- numbers of the tutorial -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speed", "pitch_deg", "rotor_speed"), [(0.0, 0.0, 700.357052), (5.0, 1.609378, 700.495227), (10.0, 6.412298, 702.558112)]
)
def test_level_flight_of_the_tutorial(speed, pitch_deg, rotor_speed):
    system = multirotor(**LAG)
    found = trim(system, speed=speed)
    assert isinstance(found, Trim)
    assert np.degrees(found.pitch) == pytest.approx(pitch_deg, abs=5e-7)
    np.testing.assert_allclose(speeds(found), rotor_speed, atol=5e-7)
    assert found.residual_n < 1e-12
    assert found.residual_nm < 1e-12
    assert found.shaft_power == pytest.approx(4 * K_M * rotor_speed**3, rel=1e-8)
    np.testing.assert_array_equal(found.state.memory["rotors"], found.command["rotors"])
    assert_flies_on(system, found)


def test_course_heading_and_climb():
    found = trim(multirotor(**LAG), speed=6.0, course=1.0, climb=2.0, heading=0.3)
    np.testing.assert_allclose(found.velocity_W, [6 * np.cos(1.0), 6 * np.sin(1.0), 2.0])
    assert found.yaw == pytest.approx(0.3)
    # Drag is isotropic: along minus the velocity, and the thrust makes up for it.
    V = np.sqrt(40.0)
    thrust = 0.5 * 1.225 * 0.036 * V * found.velocity_W + [0, 0, 2 * G]
    np.testing.assert_allclose(4 * K_F * speeds(found) ** 2, np.linalg.norm(thrust), rtol=1e-10)
    up = np.asarray(to_matrix(found.state.bodies.q_WB))[0, :, 2]
    np.testing.assert_allclose(up, thrust / np.linalg.norm(thrust), atol=1e-10)


def test_steady_turn_without_drag_banks_by_the_closed_form():
    system = multirotor(cd_area=0.0, **LAG)
    found = trim(system, speed=8.0, turn_rate=0.6)
    # Turning left means banking left, and the load factor is 1 / cos(bank); the moment needed to turn the inertia is small.
    assert np.degrees(found.roll) == pytest.approx(-np.degrees(np.arctan(8.0 * 0.6 / G)), abs=1e-6)
    assert K_F * np.sum(speeds(found) ** 2) == pytest.approx(2 * G / np.cos(found.roll), rel=1e-9)
    assert_flies_on(system, found)


def test_wind_is_flown_against():
    hovering = trim(multirotor(wind=(-10.0, 0.0, 0.0), **LAG))
    assert np.degrees(hovering.pitch) == pytest.approx(6.412298, abs=5e-7)
    np.testing.assert_allclose(hovering.state.bodies.v_W, 0.0)


def test_the_fastest_level_flight_by_its_closed_form():
    found = max_level_speed(multirotor(**LAG))
    drag = np.sqrt((4 * K_F * 1500.0**2) ** 2 - (2 * G) ** 2)
    assert found.found
    assert found.speed == pytest.approx(np.sqrt(drag / (0.5 * 1.225 * 0.036)), rel=1e-7)
    assert found.trim.limits == tuple(f"uav/{i} at its highest speed" for i in (1, 2, 3, 4))
    assert "uav/1 at its highest speed" in found.sentence
    # Up to there a trim is found, beyond it is not, and the axis is named.
    assert trim(multirotor(**LAG), speed=0.999 * found.speed).converged
    beyond = trim(multirotor(**LAG), speed=1.02 * found.speed)
    assert isinstance(beyond, NoTrim)
    assert beyond.axis == "force ahead"
    assert beyond.missing == pytest.approx(0.5 * 1.225 * 0.036 * (1.02 * found.speed) ** 2 - drag, rel=1e-3)
    assert "cannot be balanced" in str(beyond)


def test_without_drag_there_is_no_speed_limit():
    found = max_level_speed(multirotor(cd_area=0.0, **LAG), most=50.0)
    assert not found.found
    assert found.speed == pytest.approx(50.0)


# -- failures ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rotor", range(6))
def test_hexarotor_hovers_with_any_one_rotor_stopped(rotor):
    system = multirotor(HEXA, stopped=[rotor], speed_max=1000.0)
    found = trim(system)
    expected = np.full(6, 700.357052)
    expected[[rotor, (rotor + 3) % 6]] = 0.0  # the opposite one has to rest too
    assert found.converged
    np.testing.assert_allclose(speeds(found), expected, atol=1e-3)
    assert f"uav/{rotor + 1} stopped" in found.limits
    assert f"uav/{(rotor + 3) % 6 + 1} at its lowest speed" in found.limits


def test_three_rotors_of_the_same_spin_cannot_hover_without_spinning():
    system = multirotor(HEXA, stopped=[1, 3, 5])
    found = trim(system, allow="spin")
    assert isinstance(found, NoTrim)
    assert found.axis == "yaw moment"
    assert found.missing == pytest.approx(2 * G * K_M / K_F, rel=1e-6)  # no way around: every newton brings its torque
    assert "0.1962 N m of yaw moment cannot be balanced" in found.sentence


def test_with_rotor_drag_they_hover_spinning():
    system = multirotor(HEXA, stopped=[1, 3, 5], drag_coefficient=1e-4)
    found = trim(system, allow="spin")
    assert found.converged
    # Level, each hub moves at W r: 3 k_D w W r^2 = 3 k_M w^2.
    rotor = np.sqrt(2 * G / 3 / K_F)
    assert found.turn_rate == pytest.approx(-K_M * rotor / (1e-4 * 0.3**2), rel=1e-3)
    assert trim(system).converged is False
    assert_flies_on(system, found)


def test_quadrotor_with_a_stopped_rotor_spins_on_a_circle():
    # Two opposite arms of the hexagon do not exist on a quadrotor.
    quad_of_six = ring(4, 0.3, first_angle=np.pi / 4)
    layout = Layout(*(np.concatenate([a, b[:2]]) for a, b in zip(quad_of_six, HEXA, strict=True)))
    system = multirotor(layout, stopped=[0, 4, 5], drag_coefficient=1e-4)
    assert trim(system).converged is False
    found = trim(system, allow="spin")
    assert found.converged
    assert abs(found.turn_rate) > 1.0
    assert_flies_on(system, found)


def test_too_little_thrust_says_how_much_is_missing():
    found = trim(multirotor(speed_max=600.0))
    assert isinstance(found, NoTrim)
    assert found.axis == "vertical force"
    assert found.missing == pytest.approx(2 * G - 4 * K_F * 600**2, rel=1e-6)
    # The exact set of wrenches says the same.
    assert WrenchSet.of(multirotor(speed_max=600.0)).hover_margin() == pytest.approx(4 * K_F * 600**2 / (2 * G))


# -- redundant and fully actuated vehicles -----------------------------------------------------------------------------------------------


def test_the_least_power_is_chosen_among_redundant_rotors():
    found = trim(multirotor(HEXA, inertia=(0.02, 0.03, 0.04)))
    np.testing.assert_allclose(speeds(found), np.sqrt(2 * G / 6 / K_F), rtol=1e-7)  # equal speeds: power is convex in thrust


def test_a_fully_actuated_vehicle_stays_level_where_it_can_and_tilts_where_it_must():
    system = multirotor(CANTED, speed_max=1000.0)
    slow, fast = trim(system, speed=4.0), trim(system, speed=20.0)
    assert slow.converged
    assert (slow.roll, slow.pitch) == (0.0, 0.0)
    assert fast.converged
    assert fast.pitch > 0.05
    held = trim(system, attitude=from_euler("zyx", [0.5, 0.05, -0.04]))
    assert held.converged
    np.testing.assert_allclose([held.roll, held.pitch, held.yaw], [-0.04, 0.05, 0.5], atol=1e-12)
    free = trim(system, speed=4.0, attitude="free")
    assert free.shaft_power < slow.shaft_power


# -- several bodies ----------------------------------------------------------------------------------------------------------------------


def test_a_tethered_load_trails_and_swings_out_in_a_turn():
    system = slung("tether", **LAG)
    guess = system.initial_state(position=[[0, 0, 0], [0, 0, -1.0]])
    ahead = trim(system, speed=8.0, guess=guess)
    assert ahead.converged
    d = np.asarray(ahead.state.bodies.p_WB[1] - ahead.state.bodies.p_WB[0])
    drag = 0.5 * 1.225 * 0.036 * 64
    assert d[0] / d[2] == pytest.approx(drag / (LOAD * G), rel=1e-8)  # force along the line is weight and drag of the load
    assert np.linalg.norm(d) == pytest.approx(1.0, abs=1e-9)
    turning = trim(system, speed=8.0, turn_rate=0.6, guess=guess)
    assert turning.converged
    assert turning.state.bodies.p_WB[1, 1] < -0.3  # turning left, the load hangs out to the right
    assert_flies_on(system, turning, duration=0.2)


def test_two_carriers_keep_their_distance_and_share_the_load():
    system = slung(carriers=2)
    guess = system.initial_state(position=[[0, 0.6, 0], [0, -0.6, 0], [0, 0, -0.8]])
    found = trim(system, guess=guess)
    assert found.converged
    np.testing.assert_allclose(found.state.bodies.p_WB[:2], guess.bodies.p_WB[:2])
    d = np.asarray(found.state.bodies.p_WB[0] - found.state.bodies.p_WB[2])
    stretch = np.linalg.norm(d) - 1.0
    assert 2 * 2000.0 * stretch * d[2] / np.linalg.norm(d) == pytest.approx(LOAD * G, rel=1e-9)
    assert found.roll < -0.05  # the left one leans left, against the pull to the right
    thrust = K_F * np.sum(np.asarray(found.command["rotors"]) ** 2, axis=1)
    np.testing.assert_allclose(thrust[0], np.linalg.norm([2000.0 * stretch * d[1] / np.linalg.norm(d), UAV * G + LOAD * G / 2]), rtol=1e-9)


# -- motors, ground, precision -----------------------------------------------------------------------------------------------------------


def test_throttle_curve_and_battery_translate_command_and_limit():
    curve = ThrottleCurve.create([0.0, 0.5, 1.0], [0.0, 800.0, 1500.0])
    battery = Battery.create(3600.0 * 5, 0.05, [10.0, 12.0], efficiency=0.8)
    system = multirotor(throttle=curve, battery=battery, **LAG)
    found = trim(system)
    assert found.converged
    memory = found.state.memory["rotors"]
    np.testing.assert_allclose(memory.speed, 700.357052, atol=1e-5)
    shaft = 4 * K_M * 700.357052**3
    U = 0.5 * (12.0 + np.sqrt(144.0 - 4 * 0.05 * shaft / 0.8))
    np.testing.assert_allclose(found.command["rotors"], 0.5 * 700.357052 / 800.0 * 12.0 / U, rtol=1e-8)
    # What the sagging battery allows limits the speed, at the voltage under that very load.
    weak = multirotor(battery=Battery.create(3600.0, 0.05, [10.0, 12.0], efficiency=0.8), speed_max=720.0, **LAG)
    assert not trim(weak, climb=6.0).converged
    assert trim(multirotor(speed_max=720.0, **LAG), climb=6.0).converged


def test_trim_is_looked_for_in_free_air():
    system = multirotor()
    system = System(system.bodies, system.elements, environment=Environment(ground=Ground(20.0)))
    np.testing.assert_allclose(lifted(system).bodies.p_WB[0], [0, 0, 120.0])


def test_single_precision_systems_are_trimmed_in_double():
    with jax.enable_x64(False):
        found = trim(multirotor(), speed=10.0)
    assert found.residual_n < 1e-9
    assert found.pitch == pytest.approx(np.radians(6.412298), abs=1e-6)
    assert found.state.bodies.p_WB.dtype == jnp.float32


def test_questions_that_make_no_sense_are_refused():
    system = multirotor()
    with pytest.raises(ValueError, match="speed and turn_rate must be 0"):
        trim(system, speed=3.0, allow="spin")
    with pytest.raises(ValueError, match="expected 'spin'"):
        trim(system, allow="tumble")
    with pytest.raises(ValueError, match="expected 'auto'"):
        trim(system, attitude="upside down")
    with pytest.raises(ValueError, match="has none"):
        trim(free_body(elements={"gravity": Gravity()}))
    with pytest.raises(KeyError, match="no body 'ufo'"):
        trim(system, body="ufo")


def test_a_stopped_rotor_has_a_finite_derivative():
    """The start may have rotors at rest: the square root of the unknown must not spoil the Jacobian."""
    system = multirotor(HEXA, stopped=[0, 3])
    assert trim(eqx.tree_at(lambda s: s.elements["rotors"].speed_max, system, jnp.full((1, 6), jnp.inf))).converged
