import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.analysis.metrics import attitude_error, energy_drift, heading_error, metrics, must_tilt
from skycrane.core.controller import Constant
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.math.rotation import from_euler, multiply
from skycrane.simulation.rollout import simulate
from skycrane.vehicles.layout import ring
from tests.simulation.test_rollout import EVENTS, REFERENCE, STATE, SYSTEM, Climb, fly
from tests.systems_for_tests import HOVER_SPEED, K_F, free_body, quad_command, quadrotor


def test_free_fall_against_its_closed_form():
    system = free_body(2.0, elements={"gravity": Gravity()}, keep_ledger=True)
    start = system.initial_state(position=[[0.0, 0.0, 1.0]])
    run = simulate(system, Constant({}), Climb(jnp.array(0.0)), start, duration=1.0, step=0.01)
    found = metrics(run, system, Climb(jnp.array(0.0)))
    assert found["position_error_max_m"] == pytest.approx(0.5 * 9.81 - 1.0)
    t = np.asarray(run.time)
    assert found["position_error_rms_m"] == pytest.approx(np.sqrt(np.mean((1.0 - 0.5 * 9.81 * t**2) ** 2)))
    assert found["speed_max_m_s"] == pytest.approx(9.81)
    assert found["energy_drift_rel"] < 1e-13
    assert found["attitude_error_max_deg"] == 0.0
    assert "settle_time_s" not in found
    assert "thrust_max_n" not in found


def test_closed_loop_with_events_keeps_its_energy_account():
    found = metrics(fly(STATE, 0.5, save_every=3), SYSTEM, REFERENCE, events=EVENTS, control_period=1e-2)
    assert found["energy_drift_rel"] < 1e-8
    assert found["rotor_saturation_fraction"] == 0.0
    assert all(isinstance(value, float) and np.isfinite(value) for value in found.values())


def test_rotor_figures_of_a_hover():
    system = quadrotor(lag=False)
    run = simulate(system, Constant(quad_command((1, 1, 1, 1))), Climb(jnp.array(0.0)), system.initial_state(), duration=1.0, step=0.01)
    found = metrics(run, system, Climb(jnp.array(0.0)))
    assert found["settle_time_s"] == 0.0
    assert found["thrust_max_n"] == pytest.approx(K_F * HOVER_SPEED**2)
    assert found["shaft_energy_j"] == pytest.approx(4 * 1.36e-7 * HOVER_SPEED**3)
    assert found["tilt_max_deg"] == pytest.approx(0.0, abs=1e-6)


def test_saturated_commands_are_counted():
    system = quadrotor()
    run = simulate(
        system, Constant({"rotors": jnp.array([[2000.0, 400, 400, 0.0]])}), None, system.initial_state(), duration=0.1, step=0.01
    )
    assert metrics(run, system)["rotor_saturation_fraction"] == 0.5


def test_heading_error_ignores_tilt_and_full_error_does_not():
    wanted = from_euler("zyx", [0.4, 0.0, 0.0])
    tilt = from_euler("zyx", [0.0, 0.5, 0.0])
    turned = from_euler("zyx", [0.4 + 0.1, 0.0, 0.0])
    q = multiply(turned, tilt)
    assert float(heading_error(np.asarray(q), np.asarray(wanted))) == pytest.approx(0.1, abs=1e-12)
    assert float(heading_error(-np.asarray(q), np.asarray(wanted))) == pytest.approx(0.1, abs=1e-12)
    assert float(attitude_error(np.asarray(turned), np.asarray(wanted))) == pytest.approx(0.1, abs=1e-12)
    small = np.asarray(from_euler("zyx", [0.4 + 1e-9, 0.0, 0.0]))
    assert float(attitude_error(-small, np.asarray(wanted))) == pytest.approx(1e-9, rel=1e-5)
    half_turn = np.asarray(from_euler("zyx", [0.4 + np.pi, 0.0, 0.0]))
    assert float(attitude_error(half_turn, np.asarray(wanted))) == pytest.approx(np.pi)


def test_flat_rotors_must_tilt_and_canted_ones_need_not():
    flat, canted = (ring(6, 0.3, torsional=c) for c in (0.0, 0.4))
    for layout, answer in ((flat, True), (canted, False)):
        rotors = Rotors.create((0,), layout.position_B, layout.axis_B, layout.spin, 1e-5, 1e-7)
        assert must_tilt(free_body(elements={"rotors": rotors}), 0) is answer
    assert not must_tilt(free_body(), 0)


def test_energy_drift_is_relative_to_energy_or_throughput():
    energy, work = np.array([10.0, 11.0, 12.0]), np.array([0.0, 1.0, 2.1])
    assert energy_drift(energy, work, np.array([0.0, 1, 2])) == pytest.approx(0.1 / 12)
    assert energy_drift(energy, work, np.array([0.0, 50, 100])) == pytest.approx(0.1 / 100)
    assert energy_drift(np.zeros(3), np.zeros(3), np.zeros(3)) == 0.0
