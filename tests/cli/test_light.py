"""Commands that need no simulation answer without JAX, and every mistake is one short message and exit code 2."""

import json
import subprocess
import sys

import pytest

from skycrane.cli import execute
from skycrane.scenario import catalogue, load

LIGHT = {
    ("--help",): 0,
    ("--version",): 0,
    ("run", "--help"): 0,
    ("list",): 0,
    ("check", "quadrotor-hover", "crazyflie"): 0,
    ("check", "quadrotor-hovr"): 2,
    ("schema",): 0,
    ("schema", "--format", "markdown"): 0,
    ("new", "mine"): 0,
    ("run", "nothing-of-that-name"): 2,
}
HEAVY = {"jax", "jaxlib", "equinox", "scipy", "xarray", "matplotlib", "viser", "numpy"}
SCRIPT = f"""
import sys
from skycrane.cli import execute
for arguments, code in {LIGHT}.items():
    assert execute(arguments) == code, arguments
    loaded = {HEAVY} & set(sys.modules)
    assert not loaded, (arguments, loaded)
print("all light")
"""


def test_no_heavy_import(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all light\n")


BUILDING = """
import sys
import jax
from jax import monitoring
compiled = []
monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: compiled.append(event) if "backend_compile" in event else None)
import skycrane
hexa = skycrane.Multirotor.create(1.2, (0.012, 0.012, 0.022), skycrane.ring(6, 0.28), 8.5e-6, 1.4e-7, speed_max=1000.0)
system = skycrane.system_for(hexa)
skycrane.simulate
import skycrane.scenario.build, skycrane.scenario.fly, skycrane.scenario.record
assert not compiled, compiled
slow = {"scipy", "xarray", "pandas", "matplotlib", "viser", "diffrax"} & set(sys.modules)
assert not slow, slow
jax.jit(lambda x: x + 1)(1)
assert compiled, "the event has another name now"
"""


def test_building_a_vehicle_compiles_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", BUILDING], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run(*arguments):
    return execute([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["check", "nothing.toml"], "no such file"),
        (["check"], "nothing to check"),
        (["check", "quadrotor-hover", "--set", "vehicle.mass=-1"], "vehicle.mass = -1"),
        (["run", "quadrotor-hovr"], "did you mean 'quadrotor-hover'"),
        (["run", "quadrotor-hover", "--set", "vehicle.masss=1"], "did you mean 'mass'"),
        (["run", "quadrotor-hover", "--duration", "-1"], "run.duration = -1"),
        (["run", "quadrotor-hover", "--seed", "x"], "seed"),
        (["run", "--nonsense"], "nonsense"),
        (["frobnicate"], "frobnicate"),
        (["new", "Bad Name"], "no scenario name"),
        (["new", "mine", "--from", "nothing"], "nothing"),
        (["new", "nowhere/mine"], "no directory"),
        (["plot", "nowhere"], "no result file"),
        (["view", "nowhere"], "no result file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_user_errors_are_short(arguments, part, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert part in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*catalogue("scenario"), *catalogue("vehicle")])
def test_every_bundled_file_passes_check(name, capsys):
    assert run("check", name) == 0
    assert f"ok {name}.toml" in capsys.readouterr().out


def test_new_writes_a_file_that_passes_check(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("new", "mine") == 0
    assert run("new", "copy", "--from", "hexarotor-canted") == 0
    assert run("check", "mine.toml", "copy.toml") == 0
    assert load("copy.toml").scenario.name == "copy"
    assert load("copy.toml").scenario.run == load("hexarotor-canted").scenario.run
    assert "# m" in (tmp_path / "copy.toml").read_text()
    capsys.readouterr()
    assert run("new", "mine") == 2
    assert "--force" in capsys.readouterr().err
    assert run("new", "mine", "--force") == 0


def test_a_directory_with_results_is_not_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "keep").write_text("")
    assert run("run", "quadrotor-hover", "--out", "out") == 2
    assert "--force" in capsys.readouterr().err
    assert run("run", "quadrotor-hover", "--out", "out/keep") == 2
    assert "is a file" in capsys.readouterr().err


def test_list_as_json(capsys):
    assert run("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert set(listed["scenario"]) == set(catalogue("scenario"))
    assert all(listed["vehicle"].values())


def test_changes_may_follow_one_set_and_precede_the_name(capsys):
    assert run("check", "--set", "vehicle.mass=2.2", "run.duration=5", "quadrotor-hover") == 0
    assert "5 s" in capsys.readouterr().out


def test_the_json_schema_accepts_what_the_check_accepts(capsys):
    assert run("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["required"] == ["schema_version", "name"]
    vehicle = schema["$defs"]["VehicleSpec"]
    assert {"required": ["model"]} in vehicle["anyOf"]
    assert vehicle["properties"]["mass"]["unit"] == "kg"
