"""Winds, rotor options, blade elements, sensors, delay and events of a scenario: the numbers arrive, and the mistakes are named."""

import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.control.pid import CascadedPid
from skycrane.control.sensors import Estimator
from skycrane.control.timing import Delayed
from skycrane.elements.rotor_aero import BladeElementRotors
from skycrane.environment.air import standard_density
from skycrane.math.components import Vec3
from skycrane.scenario import ScenarioError, catalogue, load, loads
from skycrane.scenario.build import build
from skycrane.scenario.fly import fly
from skycrane.scenario.record import record

HEAD = 'schema_version = "1"\nname = "test"\n[vehicle]\nmodel = "tutorial-quad"\n'
BLADES = """
[vehicle.rotor]
kind = "blade_element"
radius = 0.15
speed_max = 800
time_constant = 0.05
blade = { station = [0.1, 1.0], chord = [0.03, 0.01], pitch_deg = [20, 10] }
"""


def built(*overrides, name="tutorial-quad"):
    return build(load(name, overrides).scenario)


def refused(text, *overrides, folder=None):
    with pytest.raises(ScenarioError) as caught:
        loads(text, "quad.toml", overrides, folder)
    return str(caught.value)


def wind_at(b, t, height=0.0):
    air = b.system.environment.air
    velocity = air.velocity_W(jnp.asarray(float(t)), Vec3(*(jnp.zeros(1) + x for x in (0.0, 0.0, height))))
    return np.array([float(np.ravel(v)[0]) for v in velocity.components()])


def flown(*overrides, name):
    loaded = load(name, overrides)
    b = build(loaded.scenario)
    return record(loaded, b, fly(b), import_s=0.0)


# -- winds ---------------------------------------------------------------------------------------------------------------


def test_a_sum_of_winds():
    b = built(
        "environment.wind={kind='sum', parts=[{kind='steady', velocity=[1,0,0]},{kind='gust', velocity=[0,4,0], start=2, rise=1, hold=1}]}",
        "events=[{kind='gust', time=10, velocity=[0,0,2], rise=1}]",
    )
    np.testing.assert_allclose(wind_at(b, 0.0), [1, 0, 0])
    np.testing.assert_allclose(wind_at(b, 2.5), [1, 2, 0], atol=1e-12)
    np.testing.assert_allclose(wind_at(b, 3.5), [1, 4, 0], atol=1e-12)
    np.testing.assert_allclose(wind_at(b, 11.0), [1, 0, 2], atol=1e-12)


def test_shear_begins_at_the_ground():
    power = built("environment.wind={kind='shear', velocity=[8,0,0], exponent=0.5}", "environment.ground={height=2}")
    np.testing.assert_allclose(wind_at(power, 0, 2 + 2.5), [4, 0, 0])
    log = built("environment.wind={kind='shear', law='logarithm', velocity=[8,0,0], roughness=0.1}")
    np.testing.assert_allclose(wind_at(log, 0, 1.0), [4, 0, 0])


def test_turbulence_follows_the_seed():
    def gusts(*overrides):
        return wind_at(built("environment.wind={kind='dryden', wind_20ft=8}", "run.duration=5", *overrides), 2.0)

    np.testing.assert_array_equal(gusts(), gusts())
    assert not np.allclose(gusts(), gusts("run.seed=1"))
    np.testing.assert_array_equal(gusts("environment.wind.seed=1"), gusts("run.seed=1"))


def test_a_record_is_read_and_kept(tmp_path):
    (tmp_path / "wind.csv").write_text("time,wind_x,wind_y,wind_z,note\n0,0,0,0,a\n2,4,2,0,b\n")
    loaded = loads(HEAD + '[environment.wind]\nkind = "record"\nfile = "wind.csv"\nscale = 2\n', folder=tmp_path)
    np.testing.assert_allclose(wind_at(build(loaded.scenario), 1.0), [4, 2, 0])
    # The result's own text needs no other file.
    assert loads(loaded.toml(), folder=tmp_path / "elsewhere").scenario == loaded.scenario


def test_the_wind_event_finds_the_mean_wind():
    b = built(
        "environment.wind={kind='sum', parts=[{kind='dryden', wind_20ft=3}, {kind='shear', velocity=[1,0,0]}]}",
        "events=[{kind='wind', time=1, velocity=[2,0,0]}]",
    )
    assert b.timeline.events[0].path == "system.environment.air.wind.parts.1.velocity"
    b.timeline.check({"system": b.system, "controller": b.controller, "reference": b.reference})


def test_standard_atmosphere():
    air = built("environment.altitude=2000", "environment.temperature_offset=10", "environment.stratified=true").system.environment.air
    assert float(air.density) == pytest.approx(float(standard_density(2000.0, 10.0)))
    assert float(air.density_at(Vec3(0.0, 0.0, 100.0))) < float(air.density)


# -- vehicles ------------------------------------------------------------------------------------------------------------


def test_options_of_the_rotors_arrive():
    b = built(
        "vehicle.rotor.drag_coefficient=1e-4",
        "vehicle.rotor.reference_density=1.225",
        "vehicle.rotor.ground_effect={lowest=0.6}",
        "vehicle.rotor.axial_flow={loading_slope=0.4}",
        "vehicle.rotor.throttle={curve=[[0,0],[0.5,700],[1,1200]]}",
        "vehicle.battery={capacity_ah=2, resistance=0.02, open_circuit=[14, 16]}",
        "environment.ground={}",
        "environment.air_density=1.0",
    )
    rotors = b.system.elements["rotors"]
    assert (rotors.ground_effect.lowest, rotors.axial_flow.loading_slope) == (0.6, 0.4)
    np.testing.assert_allclose(rotors.throttle.speed, [0, 700, 1200])
    assert float(rotors.battery.capacity) == 7200.0
    # The controller reckons with the air there is: thinner air, faster rotors.
    np.testing.assert_allclose(b.crafts["uav"].thrust_coefficient, 1e-5 / 1.225)
    np.testing.assert_allclose(b.controller.curve.throttle, [0, 0.5, 1])


def test_blade_elements_fly_by_their_own_hover_coefficients():
    b = build(loads(HEAD + BLADES).scenario)
    rotors = b.system.elements["rotors"]
    assert isinstance(rotors, BladeElementRotors)
    # 3.907 N and 0.05526 N m at 500 rad/s, on the light quadrature within 0.3 %.
    np.testing.assert_allclose(b.crafts["uav"].thrust_coefficient, 3.907 / 500**2, rtol=3e-3)
    np.testing.assert_allclose(b.crafts["uav"].torque_coefficient, 0.05526 / 500**2, rtol=3e-3)
    np.testing.assert_allclose(b.crafts["uav"].thrust_coefficient[0] * rotors.speed_initial**2, 19.62 / 4, rtol=1e-9)


def test_controllers_and_sensors():
    b = built(
        "control={kind='cascaded_pid', delay=0.008, outer_every=2, gains={rate=[9, 8, 7]}}",
        "sensors={positioning={period=0.1}, imu={gyro_bias=[0.01, 0, 0]}}",
        "run.control_period=0.004",
    )
    assert isinstance(b.controller, Delayed)
    assert b.controller.ticks == 2
    assert isinstance(b.controller.inner, CascadedPid)
    np.testing.assert_array_equal(b.controller.inner.gains.rate, [[9, 8, 7]])
    assert isinstance(b.sensors, Estimator)
    assert b.sensors.instruments.instruments["positioning"].period == 25


def test_the_allocation_learns_of_a_failure_after_a_while():
    b = built("control={kind='geometric', delay=0.01}", "events=[{kind='rotor_failure', time=1, rotor=2, detected_after=0.25}]")
    failure, *noticed = b.timeline.events
    assert failure.path == "system.elements.rotors.speed_fraction[0, 1]"
    assert {e.path for e in noticed} == {
        f"controller.inner.model.allocation.{field}[0, 1]" for field in ("thrust_max", "thrust_min", "thrust_coefficient")
    }
    assert all(float(e.time) == 1.25 for e in noticed)
    b.timeline.check({"system": b.system, "controller": b.controller, "reference": b.reference})


def test_a_path_goes_through_its_samples(tmp_path):
    rows = "".join(f"{t},{t * t},0,{1 + t},{10 * t}\n" for t in range(5))
    (tmp_path / "path.csv").write_text("time,x,y,z,yaw_deg\n" + rows)
    reference = build(loads(HEAD + '[reference]\nkind = "path"\nfile = "path.csv"\n', folder=tmp_path).scenario).reference
    target = reference(jnp.asarray(3.0))
    np.testing.assert_allclose(target.p_W, [[9, 0, 4]], atol=1e-12)
    np.testing.assert_allclose(2 * np.arctan2(target.q_WB[0, 3], target.q_WB[0, 0]), np.deg2rad(30), atol=1e-9)


def test_tumbling_is_consistent():
    reference = built("reference={kind='tumble', roll_period=5, pitch_period=7, yaw_period=9, radius=2, start=1, ramp=2}").reference
    h = 1e-5
    for t in (0.5, 2.0, 6.0):
        before, at, after = (reference(jnp.asarray(t + d)) for d in (-h, 0.0, h))
        np.testing.assert_allclose((after.p_W - before.p_W) / (2 * h), at.v_W, atol=1e-8)
        np.testing.assert_allclose((after.v_W - before.v_W) / (2 * h), at.a_W, atol=1e-8)
        w, x, y, z = np.asarray(at.q_WB[0])
        rate = np.asarray(after.q_WB - before.q_WB)[0] / (2 * h)
        conjugate_times = np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
        np.testing.assert_allclose(2 * conjugate_times @ rate, at.w_B[0], atol=1e-8)
    np.testing.assert_allclose(reference(jnp.asarray(0.9)).w_B, 0, atol=1e-15)


# -- in flight -----------------------------------------------------------------------------------------------------------


def test_leaving_what_the_model_describes_is_a_warning():
    """A fall with turning rotors: through the vortex ring, and out of it below."""
    done = flown("control={kind='rotor_speeds', speeds=600}", "run.duration=3", name="tutorial-quad")
    assert any("vortex-ring" in sentence for sentence in done.summary["warnings"])
    assert all(sentence.startswith("Rotors uav/1") for sentence in done.summary["warnings"])


def test_a_step_that_is_too_long_is_a_warning():
    done = flown("run.step=0.2", "vehicle.rotor.time_constant=0.06", "run.duration=0.4", "control={kind='rotor_speeds', speeds=700}",
                 name="tutorial-quad")  # fmt: skip
    assert "'rotors'" in done.summary["warnings"][0]
    assert "0.167 s" in done.summary["warnings"][0]


def test_flying_on_sensors_with_a_battery_in_wind():
    done = flown(
        "sensors={}", "vehicle.rotor.throttle={linear_part=0.3}", "environment.wind={kind='dryden', wind_20ft=4}", "run.duration=6",
        "vehicle.battery={capacity_ah=3, resistance=0.02, open_circuit=[14, 16]}", "control={kind='cascaded_pid'}",
        name="quadrotor-hover",
    )  # fmt: skip
    assert done.summary["status"] == "finished"
    assert done.summary["metrics"]["position_error_final_m"] < 0.8
    assert 0.9 < done.summary["metrics"]["charge_min_fraction"] < 1.0
    assert 0.0 < done.summary["metrics"]["rotor_saturation_fraction"] + 1e-9 < 0.2
    assert {"wind", "rotors_battery_voltage", "rotors_state_of_charge"} <= set(done.dataset.data_vars)


# A second or two of each bundled scenario, so that none of them is ever broken; whole flights are among the long studies.
FIRST = {"coaxial-octo-climb": 1.0, "forward-flight": 0.6, "hexarotor-gust": 1.0, "omni-tumble": 1.0, "rotor-failure": 1.0}


@pytest.mark.parametrize("name", sorted(FIRST))
def test_bundled_scenarios_take_off(name):
    done = flown(f"run.duration={FIRST[name]}", name=name)
    assert done.summary["status"] == "finished"
    assert done.summary["metrics"]["position_error_max_m"] < 0.15
    assert done.summary["metrics"]["energy_drift_rel"] < 1e-8


# Largest and root mean square position error, m, largest tilt, deg: a little above what they are.
WHOLE = {
    "hexarotor-gust": (0.12, 0.05, 1.0), "omni-tumble": (0.08, 0.05, 175.0), "rotor-failure": (0.25, 0.06, 30.0),
    "coaxial-octo-climb": (1.0, 0.35, 3.0), "forward-flight": (1.0, 0.6, 26.0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_bundled_scenarios_to_their_end(name):
    summary = flown(name=name).summary
    found, (largest, rms, tilt) = summary["metrics"], WHOLE[name]
    assert summary["status"] == "finished"
    assert found["position_error_max_m"] < largest
    assert found["position_error_rms_m"] < rms
    assert found["tilt_max_deg"] < tilt
    assert found["energy_drift_rel"] < 1e-7


def test_every_bundled_scenario_has_a_flight():
    from tests.scenario.test_control import BOUNDS
    from tests.scenario.test_lift import WHOLE as LIFTS
    from tests.scenario.test_sea import WHOLE as SEA
    from tests.scenario.test_tool import WHOLE as TOOLS

    assert set(catalogue("scenario")) == set(BOUNDS) | set(FIRST) | set(LIFTS) | set(TOOLS) | set(SEA)
    assert set(FIRST) == set(WHOLE)


# -- mistakes ------------------------------------------------------------------------------------------------------------

QUAD = HEAD + "[environment]\n"


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("environment.wind={kind='shear', velocity=[1,0]}", ["environment.wind.velocity = [1, 0]", "3 numbers"]),
        ("environment.wind={kind='shear', velocity=[1,0,0], rougness=1}", ["environment.wind.rougness", "mean 'roughness'"]),
        ("environment.wind={kind='shear', law='log', velocity=[1,0,0]}", ["environment.wind.law", "'power' or 'logarithm'"]),
        ("environment.wind={kind='gust', velocity=[1,0,0], start=1, rise=0}", ["environment.wind.rise = 0", "> 0", "in s"]),
        ("environment.wind={kind='dryden', wind_20ft=-1}", ["environment.wind.wind_20ft = -1", ">= 0 and <= 100", "m/s"]),
        ("environment.wind={kind='dryden', wind_20ft=5, height=400}", ["environment.wind.height = 400", "<= 304.8"]),
        ("environment.wind={kind='sum', parts=[]}", ["environment.wind.parts"]),
        ("environment.wind={kind='sum', parts=[{kind='sum', parts=[]}]}", ["environment.wind.parts[0].kind", "unknown kind", "steady"]),
        ("environment.wind={kind='sum', parts=[{kind='steady', velocity=[nan,0,0]}]}", ["environment.wind.parts[0].velocity[0] = nan"]),
        ("environment.wind={kind='record'}", ["environment.wind.file: missing", "samples"]),
        ("environment.wind={kind='record', samples=[[0,0,0,0],[0,1,0,0]]}", ["environment.wind.samples[1][0] = 0", "later"]),
        ("environment.wind={kind='record', file='none.csv'}", ['environment.wind.file = "none.csv"', "no such file"]),
        ("environment.wind={kind='record', file='../wind.csv'}", ["environment.wind.file", "own directory"]),
        ("environment.altitude=20000", ["environment.altitude = 20000", "<= 11000", "in m"]),
        ("environment={altitude=100, air_density=1.0}", ["environment.air_density", "not both"]),
        ("environment.stratified=true", ["environment.stratified", "altitude"]),
        ("vehicle.rotor.kind=blade", ["vehicle.rotor.kind", "'quadratic' or 'blade_element'"]),
        ("vehicle.rotor.blade={station=[0.1,1], chord=[0.03,0.01], pitch_deg=[20,10]}", ["vehicle.rotor.blade", 'kind = "blade_element"']),
        ("vehicle.rotor.throttle={}", ["vehicle.rotor.throttle.curve", "either curve or linear_part"]),
        ("vehicle.rotor.throttle={linear_part=2}", ["vehicle.rotor.throttle.linear_part = 2", "<= 1"]),
        ("vehicle.rotor.throttle={curve=[[0,0],[1,0]]}", ["vehicle.rotor.throttle.curve[1][1] = 0", "rise"]),
        ("vehicle.rotor.ground_effect={}", ["vehicle.rotor.ground_effect", "[environment.ground]"]),
        ("vehicle.rotor.axial_flow={slope=1}", ["vehicle.rotor.axial_flow.slope", "unknown key"]),
        ("vehicle.battery={capacity_ah=0, resistance=0, open_circuit=[14,16]}", ["vehicle.battery.capacity_ah = 0", "> 0", "in Ah"]),
        ("vehicle.battery={capacity_ah=1, resistance=0, open_circuit=[16,14]}", ["vehicle.battery.open_circuit[1] = 14", "not fall"]),
        ("control={kind='geometric', delay=0.0015}", ["control.delay = 0.0015", "control period"]),
        ("control={kind='cascaded_pid', gains={velocty=[1,1,1]}}", ["control.gains.velocty", "did you mean 'velocity'"]),
        ("control={kind='cascaded_pid', rate_max=0}", ["control.rate_max = 0", "> 0", "rad/s"]),
        ("sensors={positioning={period=0.0003}}", ["sensors.positioning.period = 0.0003", "whole multiple"]),
        ("sensors={imu={gyro_nois=1}}", ["sensors.imu.gyro_nois", "did you mean 'gyro_noise'"]),
        ("reference={kind='path'}", ["reference.file: missing"]),
        ("reference={kind='path', samples=[[0,0,0,1],[1,0,0,1,5]]}", ["reference.samples[1]", "as many numbers"]),
        ("reference={kind='tumble', roll_period=0}", ["reference.roll_period = 0", "> 0"]),
        ("events=[{kind='gust', time=1, velocity=[1,0,0], rise=-1}]", ["events[0].rise = -1", "> 0"]),
        ("events=[{kind='target', time=1}]", ["events[0].position: missing", "yaw_deg"]),
        ("events=[{kind='rotor_failure', time=1, rotor=1, detected_after=-1}]", ["events[0].detected_after = -1", ">= 0"]),
    ],
)
def test_mistakes_in_new_keys(change, parts, tmp_path):
    message = refused(QUAD, change, folder=tmp_path)
    for part in ("quad.toml", *parts):
        assert part in message


def test_a_target_needs_a_hover():
    message = refused(QUAD, "reference={kind='circle', radius=1, period=5, height=1}", "events=[{kind='target', time=1, position=[0,0,1]}]")
    assert "events[0].kind" in message
    assert 'kind = "hover"' in message


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("vehicle.rotor.thrust_coefficient=1e-5", ["vehicle.rotor.thrust_coefficient = 1e-05", "follows from the blades"]),
        ("vehicle.rotor.blade.station=[0.0, 1.0]", ["vehicle.rotor.blade.station", "above 0"]),
        ("vehicle.rotor.blade.station=[0.5, 0.4, 1.0]", ["vehicle.rotor.blade.station[1] = 0.4", "above the one before"]),
        ("vehicle.rotor.blade.chord=[0.03]", ["vehicle.rotor.blade.chord = [0.03]", "2 entries"]),
        ("vehicle.rotor.blade.polar={stal_deg=12}", ["vehicle.rotor.blade.polar.stal_deg", "did you mean 'stall_deg'"]),
        ("vehicle.rotor.axial_flow={}", ["vehicle.rotor.axial_flow", "anyway"]),
    ],
)
def test_mistakes_in_blades(change, parts):
    message = refused(HEAD + BLADES, change)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("time,wind_x,wind_y\n0,1,2\n", "no column wind_z"),
        ("time,wind_x,wind_y,wind_z\n0,1,2,x\n", "row 2: expected 4 numbers"),
        ("time,wind_x,wind_y,wind_z\n0,1,2,3\n", "expected 2 to 20000 samples"),
        ("time,wind_x,wind_y,wind_z\n0,1,2,3\n1,nan,0,0\n", "finite"),
        ("", "its first line names nothing"),
        ("time,wind_x,wind_y,wind_z\n" + "0,0,0,0\n" * 20_001, "at most 20000"),
    ],
)
def test_mistakes_in_a_record(content, part, tmp_path):
    (tmp_path / "wind.csv").write_text(content)
    assert part in refused(HEAD + '[environment.wind]\nkind = "record"\nfile = "wind.csv"\n', folder=tmp_path)
