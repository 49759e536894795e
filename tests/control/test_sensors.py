"""Instruments against closed forms, and flight on estimates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.control.pose import GeometricControl
from skycrane.control.references import FigureEight
from skycrane.control.sensors import Compass, Estimator, Imu, Instruments, Positioning
from skycrane.core.controller import Constant
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.simulation.rollout import simulate
from skycrane.vehicles.multirotor import system_for
from tests.control.fleet import X500, distance, fly
from tests.systems_for_tests import free_body

SPIN = jnp.array([[0.0, 0.0, 1.0]])


def carried(mass=2.0):
    """A body whose weight is carried by a constant force."""
    lift = Push((0,), jnp.array([[0.0, 0.0, mass * 9.81]]), jnp.zeros((1, 3)), jnp.zeros((1, 3)))
    return free_body(mass, elements={"gravity": Gravity(), "lift": lift})


def read(system, state, instruments, tick=0):
    sensors = Instruments(instruments, 7)
    return sensors(jnp.asarray(tick), jnp.asarray(0.0), system, state, {}, system.prepare(), sensors.init(state))[0].readings


def test_an_accelerometer_on_a_turning_body():  # case 48
    system = carried()
    state = system.initial_state(velocity=[[2.0, 0.0, 0.0]], angular_velocity=SPIN)
    readings = read(system, state, {"center": Imu((0,)), "outside": Imu((0,), position_B=(0.1, 0.0, 0.0))})
    np.testing.assert_allclose(readings["center"]["specific_force"], [[0, 0, 9.81]], atol=1e-12)
    np.testing.assert_allclose(readings["outside"]["specific_force"], [[-0.1, 0, 9.81]], atol=1e-12)
    np.testing.assert_allclose(readings["center"]["angular_velocity"], SPIN)


def test_an_accelerometer_in_free_fall_and_on_an_accelerating_rotation():
    falling = free_body(elements={"gravity": Gravity()})
    np.testing.assert_allclose(
        read(falling, falling.initial_state(), {"imu": Imu((0,))})["imu"]["specific_force"], np.zeros((1, 3)), atol=1e-12
    )
    # A moment of 3 N m about z on J_zz = 3 kg m^2 makes 1 rad/s^2: 0.2 m/s^2 across at 0.2 m.
    turning = free_body(elements={"push": Push((0,), jnp.zeros((1, 3)), jnp.zeros((1, 3)), jnp.array([[0.0, 0.0, 3.0]]))})
    force = read(turning, turning.initial_state(), {"imu": Imu((0,), position_B=(0.2, 0.0, 0.0))})["imu"]["specific_force"]
    np.testing.assert_allclose(force, [[0.0, 0.2, 9.81]], atol=1e-12)


def test_a_tilted_accelerometer_and_compass_read_in_body_axes():
    system, half = carried(), np.deg2rad(90) / 2
    nose_up = system.initial_state(attitude=[[np.cos(half), 0.0, -np.sin(half), 0.0]])
    readings = read(system, nose_up, {"imu": Imu((0,)), "compass": Compass((0,))})
    np.testing.assert_allclose(readings["imu"]["specific_force"], [[9.81, 0, 0]], atol=1e-12)  # x points up
    yawed = system.initial_state(attitude=[[np.cos(half), 0.0, 0.0, np.sin(half)]])
    np.testing.assert_allclose(read(system, yawed, {"compass": Compass((0,))})["compass"]["north"], [[1, 0, 0]], atol=1e-12)
    assert readings["compass"]["fresh"]


def test_noise_has_the_stated_deviation_and_bias_and_is_new_at_every_tick():
    system = carried()
    state = system.initial_state(position=[[1.0, 2.0, 3.0]])
    instruments = {
        "imu": Imu((0,), accelerometer_bias=(0.1, 0.2, 0.3), gyro_bias=(0.01, 0.0, 0.0), accelerometer_noise=0.5, gyro_noise=0.02),
        "positioning": Positioning((0,), position_noise=(0.1, 0.2, 0.3), velocity_noise=0.05),
        "compass": Compass((0,), noise=0.01),
    }
    sensors, prepared = Instruments(instruments, 3), system.prepare()
    memory = sensors.init(state)
    many = jax.jit(jax.vmap(lambda k: sensors(k, jnp.asarray(0.0), system, state, {}, prepared, memory)[0].readings))(jnp.arange(4000))
    for name, reading, mean, deviation in (
        ("imu", "specific_force", [0.1, 0.2, 10.11], 0.5),
        ("imu", "angular_velocity", [0.01, 0, 0], 0.02),
        ("positioning", "position", [1, 2, 3], [0.1, 0.2, 0.3]),
        ("positioning", "velocity", [0, 0, 0], 0.05),
        ("compass", "north", [0, 1, 0], 0.01),
    ):
        values = np.asarray(many[name][reading])[:, 0]
        np.testing.assert_allclose(values.std(0), np.broadcast_to(deviation, 3), rtol=0.05)
        assert np.all(np.abs(values.mean(0) - mean) < 4 * np.asarray(deviation) / np.sqrt(4000))
    # Instruments do not share their random numbers.
    across = np.corrcoef(np.asarray(many["imu"]["specific_force"])[:, 0, 0], np.asarray(many["positioning"]["position"])[:, 0, 0])[0, 1]
    assert abs(across) < 0.06


def test_a_slow_instrument_holds_its_reading():
    system = carried()
    state = system.initial_state(velocity=[[1.0, 0.0, 0.0]])
    sensors = Instruments({"positioning": Positioning((0,), 3)})
    memory, seen = sensors.init(state), []
    for k in range(7):
        moved = system.initial_state(position=[[float(k), 0.0, 0.0]])
        measurement, memory = sensors(jnp.asarray(k), jnp.asarray(float(k)), system, moved, {}, system.prepare(), memory)
        seen.append((float(measurement.readings["positioning"]["position"][0, 0]), bool(measurement.readings["positioning"]["fresh"])))
    assert seen == [(0, True), (0, False), (0, False), (3, True), (3, False), (3, False), (6, True)]


def noisy(seed):
    return Instruments(
        {
            "imu": Imu((0,), accelerometer_noise=0.05, gyro_noise=0.005, gyro_bias=(0.01, -0.02, 0.015)),
            "positioning": Positioning((0,), 5, 0.02, 0.05),
            "compass": Compass((0,), 5, 0.02),
        },
        jnp.asarray(seed),
    )


def test_flight_on_estimates_finds_the_bias_and_repeats_by_its_seed():  # and case 13
    system, controller = system_for(X500), GeometricControl.of(X500)
    reference = FigureEight.create([0.0, 0.0, 2.0], 6.0, 3.0, 8.0, ramp=2.0)

    def flight(seed):
        sensors = Estimator(noisy(seed), initial_tilt=(0.1, -0.1, 0.1))
        return fly(system, controller, reference, duration=16.0, sensors=sensors, position=[[0.0, 0.0, 2.0]])

    first, again, other = flight(0), flight(0), flight(1)
    assert first.status_name == "finished"
    # Six degrees of error at the start, then better than a single fix.
    assert distance(first, reference).max() < 0.5
    assert np.sqrt((distance(first, reference, 8.0) ** 2).mean()) < 0.035
    np.testing.assert_allclose(first.final.sensor_memory[1].gyro_bias, [[0.01, -0.02, 0.015]], atol=0.004)
    np.testing.assert_array_equal(first.state.bodies.p_WB, again.state.bodies.p_WB)
    assert np.abs(first.state.bodies.p_WB - other.state.bodies.p_WB).max() > 1e-3


def test_without_noise_the_estimate_is_the_truth():
    # The observer integrates by Euler steps of 1 ms, so it is as exact as these.
    system = carried()
    perfect = Instruments({"imu": Imu((0,)), "positioning": Positioning((0,)), "compass": Compass((0,))})
    state = system.initial_state(velocity=[[1.0, 0.0, 0.0]], angular_velocity=[[0.0, 0.0, 0.5]])
    run = simulate(system, Constant({}), None, state, duration=2.0, step=0.001, sensors=Estimator(perfect), save_every=100)
    estimate, truth = run.final.sensor_memory[1].bodies, run.final.state.bodies
    np.testing.assert_allclose(estimate.p_WB, truth.p_WB, atol=2e-3)
    np.testing.assert_allclose(estimate.q_WB, truth.q_WB, atol=1e-3)


def test_an_estimator_names_the_instrument_that_is_missing():
    with pytest.raises(ValueError, match="missing: compass"):
        Estimator(Instruments({"imu": Imu((0,)), "positioning": Positioning((0,))}))
