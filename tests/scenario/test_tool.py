"""End-effectors in scenarios: the bundled ones reach their accuracy, and mistakes are explained."""

import pytest

from skycrane.scenario import ScenarioError, load
from skycrane.scenario.scene import scene
from tests.scenario.test_options import flown

WHOLE = ("manipulator-inspect", "manipulator-push", "manipulator-tumble")
# Root mean square errors of the end-effector, mm and degrees, of a simulation of the same law by other code; a factor of two is allowed.
ADAPTED = {"start": (22, 0.84), "free": (4.6, 0.31), "push": (118, 5.5), "pushed": (5.2, 0.45)}
KNOWN = {"start": (26, 0.92), "free": (8.9, 0.07), "push": (14.8, 0.59), "pushed": (10.4, 0.04)}
KNOWN_CHANGES = (
    "control.wrench=known",
    "control.known_wrenches=[{time=20, duration=100, force=[-5,0,0], torque=[0,0,-0.5]}]",
)


def check(found, table):
    for phase, (position, attitude) in table.items():
        assert found[f"end_effector_position_rms_m_{phase}"] < 2e-3 * position
        assert found[f"end_effector_attitude_rms_deg_{phase}"] < 2 * attitude
    assert found["thrust_max_n"] < 28.0


def test_inspection_with_wrong_parameters_and_a_wrench_to_be_found():
    summary = flown(name="manipulator-inspect").summary
    assert summary["status"] == "finished"
    check(summary["metrics"], ADAPTED)
    assert summary["metrics"]["energy_drift_rel"] < 1e-8


@pytest.mark.slow
def test_inspection_with_a_known_wrench():
    check(flown(*KNOWN_CHANGES, name="manipulator-inspect").summary["metrics"], KNOWN)


@pytest.mark.slow
def test_inspection_without_knowing_the_wrench_goes_astray():
    found = flown("control.wrench=ignored", name="manipulator-inspect").summary["metrics"]
    assert found["end_effector_position_rms_m_pushed"] > 0.3


@pytest.mark.slow
def test_euler_angles_do_as_well_where_pitch_is_small():
    check(flown("control.attitude=euler", name="manipulator-inspect").summary["metrics"], ADAPTED)


def test_a_full_turn_about_every_axis():
    summary = flown(name="manipulator-tumble").summary
    assert summary["status"] == "finished"
    found = summary["metrics"]
    assert found["tilt_max_deg"] > 150
    assert found["end_effector_position_rms_m_turning"] < 0.02
    assert found["end_effector_attitude_rms_deg_turning"] < 1.5
    assert found["thrust_max_n"] < 28.0


def test_the_wall_and_the_tip_are_in_the_scene():
    drawn = scene(load("manipulator-push").scenario)
    assert drawn["surface"] == {"point": [1.0, 0.0, 0.0], "normal": [-1.0, 0.0, 0.0], "press": True}
    assert drawn["tools"] == {"uav": [0.320, -0.169, -0.346]}


def test_five_newtons_against_a_wall_while_sliding():
    summary = flown(name="manipulator-push").summary
    assert summary["status"] == "finished"
    found = summary["metrics"]
    assert abs(found["contact_force_mean_n_sliding"] - 5.0) < 0.15
    assert found["contact_force_std_n_sliding"] < 0.4
    assert found["end_effector_position_rms_m_sliding"] < 0.2


@pytest.mark.parametrize(
    ("name", "change", "parts"),
    [
        ("manipulator-push", "environment.surface.normal=[0,0,0]", ["environment.surface.normal", "zero vector"]),
        ("manipulator-push", "control.press.force=-1", ["control.press.force = -1", "> 0", "in N"]),
        ("manipulator-push", "control.press.gian=1", ["control.press.gian", "mean 'gain'"]),
        ("manipulator-inspect", "control.press={force=5}", ["control.press", "[environment.surface]"]),
        ("manipulator-inspect", "control.wrench=felt", ["control.wrench", "press"]),
        ("manipulator-inspect", "control.known_wrenches=[{time=1,duration=1}]", ["control.known_wrenches", '"known"']),
        ("manipulator-inspect", "vehicle.end_effector.phases=[{name='a',start=2,end=1}]", ["phases[0].end = 1", "later than start"]),
        ("quadrotor-hover", "control={kind='backstepping'}", ["control.kind", "seven or more rotors"]),
        (
            "quadrotor-hover", "events=[{kind='push',time=0,duration=1,force=[1,0,0],end_effector=true}]",
            ["events[0].end_effector", "has no end-effector"],
        ),
    ],
)  # fmt: skip
def test_mistakes_are_explained(name, change, parts):
    with pytest.raises(ScenarioError) as caught:
        load(name, [change])
    for part in parts:
        assert part in str(caught.value)
