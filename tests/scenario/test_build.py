"""From the file to the objects that fly: the numbers arrive where they belong."""

import json

import numpy as np
import pytest

from skycrane.scenario import catalogue, load, loads
from skycrane.scenario.build import build
from skycrane.scenario.craft import feet_of, hover_speeds, layout_of, multirotor, start_speeds
from skycrane.scenario.fly import _piece, fly
from skycrane.scenario.record import record

OPEN = """
schema_version = "1"
name = "open"
[run]
duration = 1.0
[vehicle]
model = "tutorial-quad"
[control]
kind = "rotor_speeds"
speeds = 500
"""


def flown(text, *overrides):
    loaded = loads(text, overrides=overrides)
    built = build(loaded.scenario)
    return record(loaded, built, fly(built), import_s=0.0)


def hover(name, *overrides):
    spec = load(name, overrides).scenario.vehicle
    craft = multirotor(spec)
    return craft, start_speeds(spec, hover_speeds(craft, 9.81))


def test_the_tutorial_quad_hovers_at_its_printed_speed():
    np.testing.assert_allclose(hover("tutorial-quad")[1], 700.357052, rtol=1e-9)


@pytest.mark.parametrize("name", list(catalogue("vehicle")))
def test_every_vehicle_of_the_catalogue_hovers_within_its_limits(name):
    craft, speeds = hover(name)
    assert np.all(speeds < 0.9 * craft.speed_max)
    wanted = np.array([0, 0, 9.81 * craft.mass, 0, 0, 0])
    thrust = craft.thrust_coefficient * speeds**2
    np.testing.assert_allclose(craft.effectiveness() @ thrust, wanted, atol=1e-6 * wanted[2])


def test_hover_beyond_the_limits_is_at_the_limit():
    craft, speeds = hover("tutorial-quad", "vehicle.mass=10")
    np.testing.assert_allclose(speeds, craft.speed_max)


def test_px4_order_of_rotors():
    layout = layout_of(load("px4-x500").scenario.vehicle)
    # Front right, back left, front left, back right, with forward x and left y.
    np.testing.assert_array_equal(np.sign(layout.position_B[:, :2]), [[1, -1], [-1, 1], [1, 1], [-1, -1]])
    np.testing.assert_array_equal(layout.spin, [1, 1, -1, -1])


def test_terminal_descent_of_the_tutorial():
    summary = flown(OPEN, "run.duration=40", "run.step=0.01", "run.save_period=0.5").summary
    assert summary["status"] == "finished"
    assert summary["metrics"]["speed_max_m_s"] == pytest.approx(20.887, abs=1e-3)
    assert summary["metrics"]["energy_drift_rel"] < 1e-8


def test_events_reach_the_body():
    """Without weight, air and thrust the momentum is what the events gave."""
    events = """
[environment]
gravity = 0
air_density = 0
[[events]]
kind = "push"
time = 0.2
duration = 0.5
force = [2.0, 0.0, 0.0]
[[events]]
kind = "impulse"
time = 0.4
linear = [0.0, 1.0, 0.0]
point = [0.1, 0.0, 0.0]
[[events]]
kind = "push"
time = 0.5
duration = 0.1
force = [0.0, 0.0, -4.0]
"""
    result = flown(OPEN + events, "control.speeds=0", "vehicle.initial.rotors=stopped").dataset
    # Momentum 2 N * 0.5 s, 1 N s, -4 N * 0.1 s; moment of the blow 0.1 m * 1 N s about z.
    np.testing.assert_allclose(result["velocity"].values[-1, 0], np.array([1.0, 1.0, -0.4]) / 2.0, rtol=1e-9)
    np.testing.assert_allclose(result["angular_velocity"].values[-1, 0], [0, 0, 0.1 / 0.0225], atol=1e-9)
    assert [label["label"] for label in json.loads(result.attrs["events"])][:2] == ["push of 2 N", "blow of 1 N s"]


def test_a_rotor_that_fails_loses_its_thrust():
    failure = '[[events]]\nkind = "rotor_failure"\ntime = 0.1\nrotor = 2\nremaining = 0.25\n'
    thrust = flown(OPEN + failure, "vehicle.rotor.time_constant=0.01", "vehicle.initial.rotors=[500,500,500,500]").dataset
    last = thrust["rotor_thrust"].isel(time=-1)
    assert list(last["rotor"].values) == ["uav/1", "uav/2", "uav/3", "uav/4"]
    np.testing.assert_allclose(last.values, [2.5, 0.25 * 2.5, 2.5, 2.5], rtol=1e-9)


def test_the_wind_event_changes_the_airspeed():
    wind = '[environment.wind]\nkind = "steady"\nvelocity = [1, 0, 0]\n[[events]]\nkind = "wind"\ntime = 0.5\nvelocity = [0, 3, 0]\n'
    airspeed = flown(OPEN + wind, "environment.gravity=0", "control.speeds=0", "vehicle.initial.rotors=stopped").dataset["drag_airspeed"]
    assert float(airspeed[0, 0]) == pytest.approx(1.0)
    assert float(airspeed[-1, 0]) == pytest.approx(np.hypot(3.0, 0.0), rel=0.02)


def test_several_vehicles_fly_side_by_side():
    text = """
schema_version = "1"
name = "pair"
run = { duration = 0.5 }
[vehicles.b]
model = "tutorial-quad"
control = { kind = "rotor_speeds", speeds = 0 }
initial = { position = [1, 0, 0], rotors = "stopped" }
[vehicles.a]
model = "canted-hexarotor"
control = { kind = "rotor_speeds", speeds = 800 }
[[events]]
kind = "impulse"
time = 0
body = "a"
linear = [1, 0, 0]
"""
    result = flown(text).dataset
    assert list(result["body"].values) == ["b", "a"]
    assert sorted(result["rotor"].values) == [f"a/{i}" for i in range(1, 7)] + [f"b/{i}" for i in range(1, 5)]
    last = result["position"].isel(time=-1)
    assert float(last.sel(body="b", axis="z")) < -1.0
    assert float(last.sel(body="a", axis="z")) > 1.0
    assert float(last.sel(body="a", axis="x")) > 0.1


@pytest.mark.parametrize("samples", [1, 2, 31, 32, 33, 63, 64, 100, 997, 1000, 12345])
def test_pieces_cover_the_run_and_waste_little(samples):
    length = _piece(samples)
    count = -(-samples // length)
    assert (count - 1) * length < samples <= count * length
    assert count * length - samples <= 0.03 * samples
    assert count <= 64


def test_the_end_of_the_run_is_its_end():
    for duration, samples in [(0.5, 26), (0.51, 27), (0.002, 2)]:
        result = flown(OPEN, f"run.duration={duration}").dataset
        assert len(result["time"]) == samples
        assert float(result["time"][-1]) >= duration - 1e-12
        assert float(result["time"][-1]) < duration + 0.02


def test_the_run_in_pieces_is_the_run_in_one(monkeypatch):
    whole = "run.duration=1.28"
    pieces = flown(OPEN, whole).dataset
    monkeypatch.setattr("skycrane.scenario.fly.PIECES", 1)
    monkeypatch.setattr("skycrane.scenario.fly._piece", lambda samples: samples)
    once = flown(OPEN, whole).dataset
    for name in ("position", "rotor_speed_command", "energy"):
        np.testing.assert_array_equal(pieces[name].values, once[name].values)


def test_default_feet_are_below_everything():
    spec = load("crazyflie").scenario.vehicle
    feet = feet_of(spec)
    assert feet.shape == (4, 3)
    assert feet[:, 2].max() < layout_of(spec).position_B[:, 2].min()


def test_a_run_that_meets_a_limit_keeps_what_it_had():
    loaded = loads(OPEN, overrides=["run.max_distance=1.0", "run.duration=3"])
    built = build(loaded.scenario)
    seen = []
    done = record(loaded, built, fly(built, lambda *args: seen.append(args)), 0.0)
    result, summary = done.dataset, done.summary
    assert summary["status"] == "limit"
    assert "uav" in summary["diagnosis"]
    assert 0.2 < float(result["time"][-1]) < 3.0
    assert np.abs(result["position"]).max() <= 1.0
    assert len(seen) < 10
