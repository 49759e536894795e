import numpy as np
import pytest

from skycrane.analysis.performance import performance
from skycrane.analysis.trim import trim
from skycrane.elements.motors import Battery
from tests.analysis.models import K_F, K_M, LAG, multirotor

G = 9.81


def test_hover_power_and_endurance_by_hand():
    system = multirotor(radius=0.15)
    found = performance(system, battery_energy=50 * 3600.0, usable=0.8, drive_efficiency=0.7, payload_power=10.0)
    speed = np.sqrt(2 * G / 4 / K_F)
    shaft, thrust, area = 4 * K_M * speed**3, 2 * G / 4, np.pi * 0.15**2
    induced = 4 * thrust * np.sqrt(thrust / (2 * 1.225 * area))
    assert found.shaft_power == pytest.approx(shaft)
    assert found.induced_power == pytest.approx(induced)
    assert found.figure_of_merit == pytest.approx(induced / shaft)
    assert found.thrust_to_weight == pytest.approx(4 * K_F * 1500**2 / (2 * G))
    assert found.disc_loading == pytest.approx(thrust / area)
    assert found.power_loading == pytest.approx(2 * G / shaft)
    assert found.electric_power == pytest.approx(shaft / 0.7 + 10)
    assert found.endurance == pytest.approx(0.8 * 50 * 3600 / (shaft / 0.7 + 10))


def test_what_is_not_known_is_not_a_number():
    found = performance(multirotor())
    assert np.isnan([found.induced_power, found.figure_of_merit, found.endurance]).all()
    assert performance(multirotor(), radius=0.15).figure_of_merit == pytest.approx(0.7599, abs=1e-4)


def test_the_battery_of_the_rotors_counts():
    battery = Battery.create(3600.0 * 5, 0.0, [12.0, 12.0], efficiency=0.8, payload_power=5.0)
    found = performance(multirotor(battery=battery, **LAG))
    assert found.electric_power == pytest.approx(found.shaft_power / 0.8 + 5.0)
    assert found.endurance == pytest.approx(0.8 * 12 * 3600 * 5 / found.electric_power)


def test_power_in_level_flight_and_refusal_without_trim():
    system = multirotor()
    cruise = trim(system, speed=10.0)
    assert performance(system, cruise).shaft_power == pytest.approx(cruise.shaft_power)
    weak = multirotor(speed_max=600.0)
    with pytest.raises(ValueError, match="vertical force cannot be balanced"):
        performance(weak)
