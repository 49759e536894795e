"""Every kind of mistake in a scenario is refused with file, key path, value and what is allowed there."""

import itertools

import pytest

from skycrane.scenario import ScenarioError, catalogue, load, loads

QUAD = """
schema_version = "1"
name = "quad"
[vehicle]
mass = 1.5
inertia = [0.012, 0.012, 0.021]
[[vehicle.rotors]]
position = [0.2, 0.2, 0.0]
spin = "ccw"
[[vehicle.rotors]]
position = [-0.2, 0.2, 0.0]
spin = "cw"
[[vehicle.rotors]]
position = [-0.2, -0.2, 0.0]
spin = "ccw"
[[vehicle.rotors]]
position = [0.2, -0.2, 0.0]
spin = "cw"
[vehicle.rotor]
thrust_coefficient = 1e-5
moment_ratio = 0.016
speed_max = 1000
time_constant = 0.02
"""


def refused(text: str, *overrides: str) -> str:
    """The message with which a scenario is refused."""
    with pytest.raises(ScenarioError) as caught:
        loads(text, "quad.toml", overrides)
    return str(caught.value)


def test_the_example_itself_is_valid():
    assert loads(QUAD).scenario.vehicle.rotor_count == 4


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("vehicle.mass=-2.0", ["quad.toml", "vehicle.mass = -2", "> 0 and <= 100000", "kg"]),
        ("vehicle.mass=0", ["vehicle.mass = 0", "> 0"]),
        ("vehicle.mass=nan", ["vehicle.mass = nan", "finite"]),
        ("vehicle.mass=inf", ["vehicle.mass = inf", "finite"]),
        ("vehicle.mass=true", ["vehicle.mass = true", "number"]),
        ('vehicle.mass="2"', ['vehicle.mass = "2"', "number"]),
        ("vehicle.mass=[2]", ["vehicle.mass = [2]", "number"]),
        ("vehicle.mass=1979-05-27", ["vehicle.mass = 1979-05-27", "number"]),
        ("vehicle.rotors[2].position=[0.1, nan, 0]", ["vehicle.rotors[2].position[1] = nan", "finite", "in m"]),
        ("vehicle.rotors[2].position=[0.1, 0.2]", ["vehicle.rotors[2].position = [0.1, 0.2]", "expected 3 numbers"]),
        ("vehicle.rotors[2].position=[1, 2, 3, 4]", ["vehicle.rotors[2].position", "expected 3 numbers"]),
        ("vehicle.rotors[1].axis=[0, 0, 0]", ["vehicle.rotors[1].axis = [0, 0, 0]", "zero"]),
        ("vehicle.rotors[0].spin=left", ['vehicle.rotors[0].spin = "left"', "'ccw' or 'cw'"]),
        ("vehicle.rotors=[]", ["vehicle.rotors", "1 to 64 rotors", "found 0"]),
        ("vehicle.inertia=[1, 1, -1]", ["vehicle.inertia = [1, 1, -1]", "positive definite"]),
        ("vehicle.inertia=[[1,2,0],[2,1,0],[0,0,1]]", ["vehicle.inertia", "positive definite", "-1, 1, 3"]),
        ("vehicle.inertia=[[1,0.5,0],[0,1,0],[0,0,1]]", ["vehicle.inertia", "symmetric"]),
        ("vehicle.inertia=[1, 1, 2.5]", ["vehicle.inertia", "add up to at least the largest", "1, 1, 2.5"]),
        ("vehicle.inertia=[1, 1]", ["vehicle.inertia", "[ixx, iyy, izz] or a 3x3 matrix"]),
        ("vehicle.inertia=[1, 1, nan]", ["vehicle.inertia[2] = nan", "finite"]),
        ("vehicle.rotor.speed_min=2000", ["vehicle.rotor.speed_min = 2000", "below speed_max"]),
        ("vehicle.rotors[2].speed_min=2000", ["vehicle.rotors[2].speed_min = 2000", "below speed_max"]),
        ("vehicle.rotor.torque_coefficient=1e-7", ["vehicle.rotor.moment_ratio", "not both"]),
        ("vehicle.rotor.time_up=0.1", ["vehicle.rotor.time_down: missing"]),
        ("vehicle.initial.rotors=[100, 100]", ["vehicle.initial.rotors", "expected 4 speeds"]),
        ("vehicle.initial.rotors=fast", ["vehicle.initial.rotors", "'hover' or 'stopped' or a list"]),
        ("vehicle.model=crazyfly", ['vehicle.model = "crazyfly"', "did you mean 'crazyflie'"]),
        ("vehicle.model='../x.toml'", ["vehicle.model", "own directory"]),
        ("vehicle.model='/etc/x.toml'", ["vehicle.model", "own directory"]),
        ("vehicle.model='x.toml'", ["vehicle.model", "no such file"]),
        ("run.duration=0", ["run.duration = 0", "> 0", "in s"]),
        ("run.step=1e-9", ["run.step = 1e-09", "steps"]),
        ("run.save_period=2e-3", None),
        ("run.control_period=0.005", ["run.control_period = 0.005", "whole multiple of run.step", "0.004"]),
        ("run.seed=1.5", ["run.seed = 1.5", "integer"]),
        ("run.integrator=rk5", ["run.integrator", "'rk4'"]),
        ("environment.wind.kind=stedy", ["environment.wind.kind", "did you mean 'steady'"]),
        ("environment.wind={}", ["environment.wind.kind: missing", "none, steady"]),
        ("reference={kind='circle', radius=1, period=5}", ["reference.height: missing", "in m"]),
        ("reference={kind='waypoints', points=[[0,0,0]], speed=1}", ["reference.points", "2 to 1000"]),
        ("reference={kind='waypoints', points=[[0,0,0],[1,0,0]]}", ["reference.times", "times or speed"]),
        ("reference={kind='waypoints', points=[[0,0,0],[1,0,0]], times=[1,1]}", ["reference.times[1] = 1", "later"]),
        ("control={kind='rotor_speeds', speeds=[1,2]}", ["control.speeds = [1, 2]", "4: one for each rotor"]),
        ("control={kind='rotor_speeds', speeds='x'}", ['control.speeds = "x"', "a speed in rad/s or a list"]),
        ("events=[{kind='impulse', time=1, linear=[1,0,0], body='uva'}]", ["events[0].body", "did you mean 'uav'"]),
        ("events=[{kind='push', time=1, duration=1, force=[1,0,0], body='load'}]", ["events[0].body", "known: uav"]),
        ("events=[{kind='rotor_failure', time=1, rotor=5}]", ["events[0].rotor = 5", "1 to 4"]),
        ("events=[{kind='rotor_failure', time=1, rotor=0}]", ["events[0].rotor = 0", ">= 1"]),
        ("events=[{kind='rotor_failure', time=1, rotor=1, vehicle='uva'}]", ["events[0].vehicle", "mean 'uav'"]),
        ("events=[{kind='wind', time=1, velocity=[1,0,0]}]", ["events[0].kind", 'kind = "steady"']),
        ("events=[{kind='rotor_failure', time=-1, rotor=1}]", ["events[0].time = -1", ">= 0"]),
        ("events=[{kind='rotor_failur', time=1, rotor=1}]", ["events[0].kind", "did you mean 'rotor_failure'"]),
        ("vehicles.b.mass=1", ["vehicles.b.inertia: missing"]),
        ("schema_version=2", ["schema_version = 2", "'1'"]),
        ("name='../../etc'", ["name", "lower-case letter"]),
    ],
)
def test_a_wrong_value_is_named_with_its_path_and_what_is_allowed(change, parts):
    if parts is None:
        assert loads(QUAD, overrides=[change]).scenario
        return
    message = refused(QUAD, change)
    for part in ("quad.toml", *parts):
        assert part in message


def keys_of(table, path=()):
    """Every key path of a tree of tables and lists."""
    if isinstance(table, dict):
        for key, value in table.items():
            yield (*path, key)
            yield from keys_of(value, (*path, key))
    elif isinstance(table, list):
        for index, value in enumerate(table):
            yield from keys_of(value, (*path, index))


def misspell(table, path):
    """A copy of the tables in which one key has its last two letters swapped, or doubled where that changes nothing."""
    if len(path) == 1:
        key = path[0]
        typo = key[:-2] + key[-1] + key[-2] if key[-1] != key[-2] else key + key[-1]
        return {typo if k == key else k: v for k, v in table.items()}, typo
    if isinstance(table, list):
        inner, typo = misspell(table[path[0]], path[1:])
        return [inner if i == path[0] else v for i, v in enumerate(table)], typo
    inner, typo = misspell(table[path[0]], path[1:])
    return {k: inner if k == path[0] else v for k, v in table.items()}, typo


NAMED = ("vehicles", "loads", "cables", "buoys", "tethers", "points")


@pytest.mark.parametrize("name", sorted(catalogue("scenario")))
def test_a_misspelt_key_at_any_depth_names_the_right_one(name):
    from skycrane.scenario import load_tables

    tables = load(name).tables
    # Names that the user gives can be anything.
    paths = [path for path in keys_of(tables) if path[-1] != "kind" and not (len(path) > 1 and path[-2] in NAMED)]
    assert len(paths) > 30
    for path in paths:
        wrong, typo = misspell(tables, path)
        with pytest.raises(ScenarioError) as caught:
            load_tables(wrong, "file.toml")
        found = [p for p in caught.value.problems if p.path == (*path[:-1], typo)]
        assert found, (path, str(caught.value))
        assert f"did you mean {path[-1]!r}?" in found[0].message


def test_all_problems_come_in_one_message():
    message = refused(QUAD, "vehicle.mass=-1", "run.step=0", "vehicle.masss=1", "events=[{kind='push'}]")
    assert "6 problems" in message
    for path in ("vehicle.mass = -1", "run.step = 0", "vehicle.masss = 1", "events[0].time", "events[0].duration"):
        assert path in message


def test_two_vehicles_need_names_in_events():
    text = QUAD.replace("[vehicle", "[vehicles.a").replace("[vehicles.a.rotors", "[vehicles.a.rotors")
    message = refused(text + text[text.index("[vehicles.a]") :].replace("vehicles.a", "vehicles.b"),
                      "events=[{kind='impulse', time=1, linear=[1,0,0]}]")  # fmt: skip
    assert "events[0].body: missing: there are several; expected one of a, b" in message


def test_one_and_several_vehicles_exclude_each_other():
    message = refused(QUAD, "vehicles.b={model='crazyflie'}")
    assert "give [vehicle] or [vehicles.NAME] (here: b), not both" in message
    assert "needs [vehicle]" in refused('schema_version="1"\nname="x"')


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x = [", "not valid TOML"),
        ("a = 1\na = 2\nb = 3", "line 2"),
        ("x = " + "[" * 5000, "not valid TOML"),
        ("x = " + "1" * 5000, "not valid TOML"),
        ("x = 2000-13-45", "not valid TOML"),
    ],
)
def test_broken_toml_is_one_clean_message(text, part):
    assert part in refused(text)


def test_files_that_cannot_be_read(tmp_path):
    big = tmp_path / "big.toml"
    big.write_bytes(b"#" * 5_000_001)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'schema_version = "1"\ntitle = "\xe9"\n')
    for target, part in [
        (big, "5 MB"),
        (latin, "not UTF-8 text (line 2)"),
        (tmp_path / "none.toml", "no such file"),
        (tmp_path / "x", "no such file"),
        ("quadrotor-hovr", "did you mean 'quadrotor-hover'"),
        ("something-else-entirely", "known: "),
    ]:
        with pytest.raises(ScenarioError) as caught:
            load(target)
        assert part in str(caught.value)


def test_a_mistake_in_a_model_is_reported_in_its_own_file(tmp_path):
    (tmp_path / "mine.toml").write_text(QUAD.replace("mass = 1.5", "mass = -1.5"))
    scenario = tmp_path / "fly.toml"
    scenario.write_text('schema_version = "1"\nname = "fly"\n[vehicle]\nmodel = "mine.toml"\n')
    with pytest.raises(ScenarioError) as caught:
        load(scenario)
    assert str(caught.value).startswith(f"{tmp_path / 'mine.toml'}: vehicle.mass = -1.5")


def test_models_in_a_circle_end(tmp_path):
    for name, other in itertools.permutations(["a", "b"]):
        text = f'schema_version = "1"\nname = "{name}"\n[vehicle]\nmodel = "{other}.toml"\n'
        (tmp_path / f"{name}.toml").write_text(text)
    with pytest.raises(ScenarioError, match="circle"):
        load(tmp_path / "a.toml")


def test_the_catalogues_have_the_promised_entries():
    assert {"quadrotor-hover", "quadrotor-circle", "hexarotor-canted"} <= set(catalogue("scenario"))
    assert {"tutorial-quad", "crazyflie", "px4-x500", "canted-hexarotor"} <= set(catalogue("vehicle"))
