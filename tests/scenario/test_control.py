"""Controllers and references of a scenario: the keys arrive where they belong, and the bundled scenarios fly."""

import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.analysis.metrics import metrics
from skycrane.control.model import default_gains
from skycrane.control.pose import FullPoseControl, GeometricControl
from skycrane.core.controller import Team
from skycrane.scenario import ScenarioError, load, loads
from skycrane.scenario.build import build
from skycrane.scenario.craft import multirotor
from skycrane.scenario.fly import fly


def built(*overrides, name="tutorial-quad"):
    return build(load(name, overrides).scenario)


def target(reference, t):
    return reference(jnp.asarray(float(t)))


def test_the_default_is_geometric_hover_at_the_start():
    b = built("vehicle.initial.position=[1, 2, 3]", "vehicle.initial.attitude_deg=[5, 0, 90]")
    assert isinstance(b.controller, GeometricControl)
    at = target(b.reference, 1.0)
    np.testing.assert_allclose(at.p_W, [[1, 2, 3]])
    np.testing.assert_allclose(at.q_WB, [[np.sqrt(0.5), 0, 0, np.sqrt(0.5)]], atol=1e-15)


def test_gains_that_are_given_replace_computed_ones():
    b = built("control={kind='geometric', tilt_max_deg=30, outer_every=4, gains={rate=[9, 8, 7], position_integral=[1, 1, 1]}}")
    gains = b.controller.gains
    computed = default_gains(multirotor(load("tutorial-quad").scenario.vehicle))
    np.testing.assert_array_equal(gains.rate, [[9, 8, 7]])
    np.testing.assert_array_equal(gains.position_integral, [[1, 1, 1]])
    np.testing.assert_array_equal(gains.attitude, computed.attitude)
    assert gains.attitude_integral is None
    assert b.controller.tilt_max == pytest.approx(np.pi / 6)
    assert b.controller.outer_every == 4


def test_full_pose_control():
    assert isinstance(built("control={kind='full_pose'}", name="canted-hexarotor").controller, FullPoseControl)


def test_a_circle_begins_where_its_phase_says_and_looks_along_its_path():
    reference = built(
        "reference={kind='circle', center=[1, 0], radius=2, height=3, period=4, phase_deg=90, direction='cw', heading='forward'}"
    ).reference
    at = target(reference, 0.0)
    np.testing.assert_allclose(at.p_W, [[1, 2, 3]], atol=1e-14)
    np.testing.assert_allclose(at.v_W, [[np.pi, 0, 0]], atol=1e-13)
    np.testing.assert_allclose(np.abs(at.q_WB), [[1, 0, 0, 0]], atol=1e-14)


def test_a_figure_eight_crosses_its_center():
    reference = built("reference={kind='figure_eight', center=[1, 2], length=4, width=2, height=3, period=8}").reference
    np.testing.assert_allclose(target(reference, 0.0).p_W, [[1, 2, 3]], atol=1e-14)
    np.testing.assert_allclose(target(reference, 2.0).p_W, [[3, 2, 3]], atol=1e-14)
    np.testing.assert_allclose(target(reference, 1.0).p_W, [[1 + np.sqrt(2), 3, 3]], atol=1e-14)


@pytest.mark.parametrize("timing", ["times=[0, 2, 5]", "speed=1.0"])
def test_waypoints_are_reached_in_time(timing):
    reference = built(f"reference={{kind='waypoints', points=[[0,0,1],[2,0,1],[2,3,1]], yaw_deg=[0, 90, 180], {timing}}}").reference
    np.testing.assert_allclose(target(reference, 2.0).p_W, [[2, 0, 1]], atol=1e-12)
    np.testing.assert_allclose(target(reference, 5.0).p_W, [[2, 3, 1]], atol=1e-12)
    np.testing.assert_allclose(target(reference, 5.0).v_W, 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(target(reference, 2.0).q_WB), [[np.sqrt(0.5), 0, 0, np.sqrt(0.5)]], atol=1e-12)


def test_the_number_of_yaws_is_that_of_the_points():
    with pytest.raises(ScenarioError, match="3: one for each point"):
        load(
            "tutorial-quad",
            ["reference={kind='waypoints', points=[[0,0,1],[2,0,1],[2,3,1]], speed=1, yaw_deg=[0, 90]}"],
        )


def test_several_vehicles_are_a_team():
    text = """
schema_version = "1"
name = "team"
[vehicles.a]
model = "tutorial-quad"
[vehicles.b]
model = "canted-hexarotor"
initial = { position = [3, 0, 0] }
control = { kind = "full_pose" }
[vehicles.c]
model = "tutorial-quad"
control = { kind = "rotor_speeds", speeds = 600 }
"""
    b = build(loads(text).scenario)
    assert isinstance(b.controller, Team)
    assert set(b.followed) == {"a", "b"}
    np.testing.assert_allclose(target(b.reference["b"], 0).p_W, [[3, 0, 0]])
    assert set(b.system.elements) == {"gravity", "rotors_a", "rotors_b", "rotors_c", "drag"}


# Largest and root mean square position error, m: a little above what they are.
BOUNDS = {"quadrotor-hover": (1.4, 0.6), "quadrotor-circle": (0.25, 0.08), "hexarotor-canted": (0.2, 0.06)}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_bundled_scenarios_fly_well(name):
    b = build(load(name).scenario)
    flight = fly(b)
    assert flight.run.status_name == "finished"
    found = metrics(flight.run, b.system, b.followed, events=b.timeline, control_period=b.scenario.run.tick)
    largest, rms = BOUNDS[name]
    assert found["position_error_max_m"] < largest
    assert found["position_error_rms_m"] < rms
    assert found["energy_drift_rel"] < 1e-7
    if name == "hexarotor-canted":
        assert found["tilt_max_deg"] < 0.5
