"""Models, changes, round trips, and what the specs compute."""

import pytest

from skycrane.scenario import catalogue, load, loads
from skycrane.scenario.overrides import parse_override
from skycrane.scenario.run import RunSpec

ALL = [*catalogue("scenario"), *catalogue("vehicle")]


@pytest.mark.parametrize("name", ALL)
def test_every_bundled_file_is_valid_and_says_what_it_is(name):
    loaded = load(name)
    assert loaded.scenario.name == name
    assert loaded.scenario.title
    if name in catalogue("scenario"):
        assert loaded.scenario.description


@pytest.mark.parametrize("name", ALL)
def test_the_complete_toml_loads_to_the_same_scenario(name):
    loaded = load(name, ["run.seed=98765"])
    again = loads(loaded.toml())
    assert again.scenario == loaded.scenario
    assert again.digest == loaded.digest
    assert again.digest != load(name).digest


def test_keys_of_the_scenario_replace_those_of_the_model(tmp_path):
    base = 'schema_version = "1"\nname = "x"\n[vehicle]\nmodel = "tutorial-quad"\n'
    spec = loads(base + "mass = 3.0\n[vehicle.rotor]\nspeed_max = 900\n").scenario.vehicle
    assert spec.mass == 3.0
    assert spec.rotor.speed_max == 900
    assert spec.rotor.thrust_coefficient == 1e-5
    # Another kind of layout takes nothing over from the model's; rotors replace a layout altogether.
    layout = loads(base + 'layout = {kind = "coaxial", arms = 4, arm = 0.3, gap = 0.1}').scenario.vehicle.layout
    assert layout.kind == "coaxial"
    assert layout.first_angle_deg == 0.0
    listed = loads(base + '[[vehicle.rotors]]\nposition = [0, 0, 0]\nspin = "cw"\n').scenario.vehicle
    assert listed.layout is None
    assert listed.rotor_count == 1


def test_a_model_may_be_a_file_beside_the_scenario(tmp_path):
    (tmp_path / "mine.toml").write_text('schema_version = "1"\nname = "mine"\n[vehicle]\nmodel = "crazyflie"\nmass = 0.03\n')
    (tmp_path / "fly.toml").write_text('schema_version = "1"\nname = "fly"\n[vehicle]\nmodel = "mine.toml"\n')
    spec = load(tmp_path / "fly.toml").scenario.vehicle
    assert spec.mass == 0.03
    assert spec.rotor_count == 4


def test_changes_reach_into_the_model():
    scenario = load("quadrotor-circle", ["vehicle.rotors[1].spin=cw", "vehicle.mass=2.2", "run.max_speed=30"]).scenario
    assert scenario.vehicle.rotors[1].spin == "cw"
    assert scenario.vehicle.mass == 2.2
    assert scenario.run.max_speed == 30
    other = load("quadrotor-hover", ["vehicle.model=crazyflie"]).scenario
    assert other.vehicle.mass == 0.028


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("a.b=2.5", ("a", "b"), 2.5),
        ("a.b = -1e-3", ("a", "b"), -1e-3),
        ("a[1].b[0]=[1, 2]", ("a", 1, "b", 0), [1, 2]),
        ("a=true", ("a",), True),
        ("a=semi_implicit_euler", ("a",), "semi_implicit_euler"),
        ("a='x y'", ("a",), "x y"),
        ("a={kind = 'none'}", ("a",), {"kind": "none"}),
    ],
)
def test_a_change_is_a_path_and_a_toml_value(text, path, value):
    assert parse_override(text) == (path, value)


@pytest.mark.parametrize(
    ("duration", "step", "control", "save", "ticks", "steps", "samples"),
    [
        (1.0, 0.002, None, None, 500, 1, 10),
        (1.0, 0.002, 0.004, None, 250, 2, 5),
        (1.0, 0.001, 0.003, 0.006, 334, 3, 2),
        (0.3, 0.1, None, None, 3, 1, 1),
        (1e-3, 0.002, None, None, 1, 1, 1),
    ],
)
def test_periods_are_whole_multiples(duration, step, control, save, ticks, steps, samples):
    run = RunSpec(duration=duration, step=step, control_period=control, save_period=save)
    assert (run.ticks, run.steps_per_tick, run.ticks_per_sample) == (ticks, steps, samples)


def test_rotors_take_their_own_coefficients_before_the_common_ones():
    text = """
schema_version = "1"
name = "x"
[vehicle]
mass = 1
inertia = [1, 1, 1]
[[vehicle.rotors]]
position = [1, 0, 0]
spin = "cw"
torque_coefficient = 3e-7
time_up = 0.1
time_down = 0.2
[[vehicle.rotors]]
position = [0, 1, 0]
spin = "ccw"
[vehicle.rotor]
thrust_coefficient = 1e-5
moment_ratio = 0.01
speed_max = 1000
time_constant = 0.05
"""
    first, second = loads(text).scenario.vehicle.rotor_numbers()
    assert (first.torque_coefficient, first.time_up, first.time_down) == (3e-7, 0.1, 0.2)
    assert second.torque_coefficient == pytest.approx(1e-7)
    assert (second.time_up, second.time_down) == (0.05, 0.05)
