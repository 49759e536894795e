"""PX4's parameters: its own unit-test matrices, files in and out, and every vehicle of the catalogue there and back."""

import numpy as np
import pytest

from skycrane.scenario import catalogue, load
from skycrane.scenario.craft import multirotor
from skycrane.vehicles.px4 import (
    MAX_ROTORS,
    Px4Rotors,
    as_airframe_lines,
    as_parameter_file,
    effectiveness,
    from_multirotor,
    from_parameters,
    parse,
    read,
    to_parameters,
)

DOWN = np.array([0.0, 0.0, -1.0])


def test_quadrotor_x_of_px4():
    """ActuatorEffectivenessRotorsTest.cpp, QuadrotorX, to the last bit."""
    position = [[1, 1, 0], [-1, -1, 0], [1, -1, 0], [-1, 1, 0]]
    expected = [
        [-1.0, 1.0, 1.0, -1.0],
        [1.0, -1.0, 1.0, -1.0],
        [0.05, 0.05, -0.05, -0.05],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [-1.0, -1.0, -1.0, -1.0],
    ]
    np.testing.assert_array_equal(effectiveness(position, [DOWN] * 4, np.ones(4), [0.05, 0.05, -0.05, -0.05]), expected)


def test_hexarotor_x_of_px4():
    """ActuatorEffectivenessRotorsTest.cpp, HexarotorX, to the last bit."""
    position = [[0, 0.5, 0], [0, -0.5, 0], [0.43, -0.25, 0], [-0.43, 0.25, 0], [0.43, 0.25, 0], [-0.43, -0.25, 0]]
    km = [-0.05, 0.05, -0.05, 0.05, 0.05, -0.05]
    expected = [
        [-0.5, 0.5, 0.25, -0.25, -0.25, 0.25],
        [0, 0, 0.43, -0.43, 0.43, -0.43],
        km,
        [0] * 6,
        [0] * 6,
        [-1.0] * 6,
    ]
    np.testing.assert_array_equal(effectiveness(position, [DOWN] * 6, np.ones(6), km), expected)


def test_single_rotor_with_px4_defaults():
    """p = (0.2, 0.1, 0), the rest left at PX4's defaults: the moment is (-0.65, 1.30, 0.325)."""
    rotors = from_parameters({"CA_ROTOR_COUNT": 1, "CA_ROTOR0_PX": 0.2, "CA_ROTOR0_PY": 0.1})
    np.testing.assert_allclose(rotors.effectiveness()[:, 0], [-0.65, 1.30, 0.325, 0, 0, -6.5], rtol=1e-12)
    # Only the direction of the axis counts.
    longer = from_parameters({"CA_ROTOR_COUNT": 1, "CA_ROTOR0_PX": 0.2, "CA_ROTOR0_PY": 0.1, "CA_ROTOR0_AZ": -20.0})
    np.testing.assert_allclose(longer.effectiveness(), rotors.effectiveness(), rtol=1e-12)


def asymmetric_quad():
    position = np.array([[0.13, 0.22, 0], [-0.13, -0.20, 0], [0.13, -0.22, 0], [-0.13, 0.20, 0]])
    return Px4Rotors(position, np.tile(DOWN, (4, 1)), np.full(4, 6.925), np.array([0.12, 0.12, -0.12, -0.12]))


def test_inverse_of_an_asymmetric_quad():
    """Published entries of the mixer of PX4's x500 (PX4-Autopilot 23938)."""
    B = asymmetric_quad().effectiveness()
    mix = np.linalg.pinv(B[[0, 1, 2, 5]])
    np.testing.assert_allclose(mix[:, 3], -0.0361, atol=5e-5)
    np.testing.assert_allclose(mix[:, 0], [-0.1719, 0.1719, 0.1719, -0.1719], atol=5e-5)
    np.testing.assert_allclose(mix[:, 1], [0.2777, -0.2777, 0.2777, -0.2777], atol=5e-5)
    np.testing.assert_allclose(mix[:, 2], [0.2865, 0.3152, -0.2865, -0.3152], atol=5e-5)


def test_pure_roll_changes_no_total_thrust():
    """Also on an asymmetric frame (PX4-Autopilot 8628)."""
    B = asymmetric_quad().effectiveness()
    change = B @ np.linalg.pinv(B) @ np.array([0.3, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(change, [0.3, 0, 0, 0, 0, 0], atol=1e-12)


AIRFRAME = """#!/bin/sh
# @name Gazebo x500
. ${R}etc/init.d/rc.mc_defaults
PX4_SIM_MODEL=${PX4_SIM_MODEL:=x500}
param set-default CA_AIRFRAME 0
param set-default CA_ROTOR_COUNT 4
param set-default CA_ROTOR0_PX 0.13
param set-default CA_ROTOR0_PY 0.22
param set-default CA_ROTOR0_KM  0.05
param set-default CA_ROTOR1_PX -0.13
param set-default CA_ROTOR1_PY -0.20   # a comment
param set-default CA_ROTOR1_KM  0.05
param set-default CA_ROTOR2_PX 0.13
param set-default CA_ROTOR2_PY -0.22
param set-default CA_ROTOR2_KM -0.05
\tparam set-default CA_ROTOR3_PX -0.13
param set-default CA_ROTOR3_PY 0.20
param set CA_ROTOR3_KM -0.05
param set-default MPC_THR_HOVER 0.60
"""
TABLE = """# Onboard parameters for Vehicle 1
#
# Vehicle-Id Component-Id Name Value Type
1\t1\tCA_ROTOR_COUNT\t4\t6
1\t1\tCA_ROTOR0_PX\t0.129999995231628418\t9
1\t1\tMPC_THR_HOVER\t0.600000023841857910\t9
1\t1\tSYS_NAME\tabc\t9
"""


def test_reading_an_airframe_script(tmp_path):
    file = tmp_path / "4001_gz_x500"
    file.write_text(AIRFRAME)
    rotors = read(file)
    np.testing.assert_array_equal(rotors.position_FRD, asymmetric_quad().position_FRD)
    np.testing.assert_array_equal(rotors.moment_ratio, [0.05, 0.05, -0.05, -0.05])
    np.testing.assert_array_equal(rotors.thrust, 6.5)
    # Rotor 0 of PX4 is front right and turns counter-clockwise: forward, and to the left of the body's negative y.
    layout = rotors.layout
    np.testing.assert_array_equal(layout.position_B[0], [0.13, -0.22, 0.0])
    np.testing.assert_array_equal(layout.axis_B, [[0, 0, 1]] * 4)
    np.testing.assert_array_equal(layout.spin, [1, 1, -1, -1])


def test_other_forms_of_a_parameter_file():
    found = parse(TABLE)
    assert found == {"CA_ROTOR_COUNT": 4.0, "CA_ROTOR0_PX": 0.12999999523162842, "MPC_THR_HOVER": 0.6000000238418579}
    assert parse("PARAM CA_ROTOR0_PX 0.5\nCA_ROTOR0_PY,0.25\nCA_ROTOR0_PZ 1\nCA_ROTOR0_PZ 2\nother text") == {
        "CA_ROTOR0_PX": 0.5, "CA_ROTOR0_PY": 0.25, "CA_ROTOR0_PZ": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize("name", list(catalogue("vehicle")))
@pytest.mark.parametrize("write", [as_parameter_file, as_airframe_lines])
def test_every_vehicle_of_the_catalogue_there_and_back(name, write, tmp_path):
    vehicle = multirotor(load(name).scenario.vehicle)
    rotors = from_multirotor(vehicle)
    file = tmp_path / "vehicle.params"
    file.write_text(write(rotors))
    again = read(file)
    # Text and back is exact, but for the last digit of an axis, which is normalised once more.
    np.testing.assert_array_equal(again.position_FRD, rotors.position_FRD)
    np.testing.assert_array_equal(again.thrust, rotors.thrust)
    np.testing.assert_array_equal(again.moment_ratio, rotors.moment_ratio)
    np.testing.assert_allclose(again.axis_FRD, rotors.axis_FRD, atol=2e-16)
    # PX4's matrix is ours with y and z turned, at full thrust.
    turned = np.diag([1.0, -1, -1, 1, -1, -1])
    ours = np.asarray(vehicle.effectiveness()) * np.asarray(vehicle.thrust_coefficient * vehicle.speed_max**2)
    np.testing.assert_allclose(again.effectiveness()[[3, 4, 5, 0, 1, 2]], turned @ ours, atol=1e-12 * np.abs(ours).max())
    back = again.multirotor(float(vehicle.mass), vehicle.inertia_B, vehicle.speed_max)
    for field in ("axis_B", "spin", "thrust_coefficient", "torque_coefficient"):
        np.testing.assert_allclose(getattr(back, field), getattr(vehicle, field), rtol=1e-12, atol=1e-15, err_msg=field)
    np.testing.assert_allclose(back.position_B, vehicle.position_B - vehicle.com_B, atol=1e-15)


def test_kind_of_airframe():
    def kind(name):
        return to_parameters(from_multirotor(multirotor(load(name).scenario.vehicle)))["CA_AIRFRAME"]

    assert [kind(name) for name in ("px4-x500", "coaxial-octorotor", "canted-hexarotor", "omnidirectional-heptarotor")] == [0, 0, 7, 7]
    assert "CA_ROTOR0_AZ" not in as_airframe_lines(asymmetric_quad())
    assert "CA_ROTOR0_PX 0.13" in as_airframe_lines(asymmetric_quad())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"CA_ROTOR_COUNT": 0}, f"expected 1 to {MAX_ROTORS}"),
        ({"CA_ROTOR_COUNT": 2.5}, "CA_ROTOR_COUNT is 2.5"),
        ({"CA_ROTOR1_AZ": 0}, "CA_ROTOR1_AX, _AY, _AZ are all zero"),
        ({"CA_ROTOR0_TILT": 1}, "servo tilts"),
        ({"CA_R_REV": 2}, "motor 2 reversible"),
    ],
)
def test_parameters_that_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_parameters({"CA_ROTOR_COUNT": 2, **change})


def test_numbers_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match="line 2: CA_ROTOR0_PX is 'x', expected a number"):
        parse("CA_ROTOR_COUNT 1\nCA_ROTOR0_PX x")
    file = tmp_path / "empty.params"
    file.write_text("")
    with pytest.raises(ValueError, match=r"empty\.params: CA_ROTOR_COUNT is 0"):
        read(file)
    strong = asymmetric_quad()._replace(thrust=np.full(4, 120.0))
    with pytest.raises(ValueError, match="CA_ROTOR0_CT would be 120; PX4 takes up to 100"):
        to_parameters(strong)
    many = Px4Rotors(np.zeros((13, 3)), np.tile(DOWN, (13, 1)), np.ones(13), np.zeros(13))
    with pytest.raises(ValueError, match="13 rotors"):
        to_parameters(many)
    with pytest.raises(ValueError, match="rotor 1: the axis has zero length"):
        effectiveness(np.zeros((2, 3)), [DOWN, 0 * DOWN], np.ones(2), np.zeros(2))
    unlimited = asymmetric_quad().multirotor(1.0, [0.01, 0.01, 0.02], np.inf)
    with pytest.raises(ValueError, match="finite speed_max"):
        from_multirotor(unlimited)
