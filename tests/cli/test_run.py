"""`skycrane run` and the commands on its results, end to end."""

import json

import numpy as np
import pytest
import xarray as xr

from skycrane.cli import execute
from skycrane.cli.run import safe_name, split_metric

FALL = """
schema_version = "1"
name = "fall"
[run]
duration = 0.6
[vehicle]
model = "tutorial-quad"
[control]
kind = "rotor_speeds"
speeds = 500
"""


def run(*arguments):
    return execute([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fall")
    (folder / "fall.toml").write_text(FALL)
    return folder


@pytest.fixture(scope="module")
def result(place):
    assert run("run", place / "fall.toml", "--out", place / "out", "--seed", "7", "--quiet") == 0
    return place / "out"


def test_files(result):
    names = {path.name for path in result.iterdir()}
    assert {"result.nc", "summary.json", "replay.html"} <= names
    assert sum(name.endswith(".png") for name in names) >= 3
    assert (result / "replay.html").stat().st_size > 100_000


def test_summary_contract(result):
    summary = json.loads((result / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert {"import_s", "compile_s", "run_s", "real_time_factor"} <= set(summary["timings"])
    assert all(np.isfinite(value) for value in [*summary["metrics"].values(), *summary["timings"].values()])
    assert summary["metrics"]["energy_drift_rel"] < 1e-8
    assert summary["seed"] == 7
    assert summary["scenario"] == "fall"
    assert {"skycrane", "jax"} <= set(summary["versions"])


def test_result_file(result):
    with xr.open_dataset(result / "result.nc", engine="h5netcdf") as dataset:
        assert all({"units", "long_name"} <= set(variable.attrs) for variable in dataset.data_vars.values())
        assert dataset.attrs["scenario"] == "fall"
        assert dataset.attrs["seed"] == 7
        assert len(dataset.attrs["scenario_hash"]) == 64
        assert float(dataset["time"][-1]) == pytest.approx(0.6)
        toml = dataset.attrs["scenario_toml"]
        scene = json.loads(dataset.attrs["scene"])
    assert len([s for s in scene["bodies"]["uav"]["shapes"] if s["kind"] == "rotor"]) == 4
    from skycrane.scenario import loads

    assert loads(toml).scenario.name == "fall"


def test_json_prints_the_summary_and_nothing_else(place, capfd):
    assert run("run", place / "fall.toml", "--out", place / "json", "--json") == 0
    captured = capfd.readouterr()
    printed = json.loads(captured.out)
    assert printed == json.loads((place / "json" / "summary.json").read_text())


def test_a_run_that_does_not_finish_gives_exit_code_1(place, capsys):
    arguments = ["run", place / "fall.toml", "--out", place / "limit", "--set", "run.max_speed=2"]
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert "limit" in printed
    assert "'uav'" in printed
    summary = json.loads((place / "limit" / "summary.json").read_text())
    assert summary["status"] == "limit"
    assert summary["metrics"]["speed_max_m_s"] <= 2.0


def test_the_table_and_the_next_command(result, place, capsys):
    assert run("run", place / "fall.toml", "--out", result) == 2
    assert "--force" in capsys.readouterr().err
    assert run("run", place / "fall.toml", "--out", result, "--force", "--seed", "7", "--duration", "0.6") == 0
    printed = capsys.readouterr().out
    assert "finished" in printed
    assert "m/s" in printed
    assert f"skycrane view {result}" in printed


def test_plot_draws_again(result, tmp_path, capsys):
    assert run("plot", result, "position", "rotor_speed", "--out", tmp_path / "plots") == 0
    assert {path.stem for path in (tmp_path / "plots").iterdir()} == {"position", "rotor_speed"}
    assert run("plot", result, "no_such_variable") == 2
    assert "position" in capsys.readouterr().err


def test_describe(place, capsys):
    assert run("describe", place / "fall.toml", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    vehicle = facts["vehicles"]["uav"]
    assert vehicle["mass_kg"] == 2.0
    assert vehicle["hover_speed_rad_s"] == pytest.approx([700.357052] * 4)
    assert set(vehicle["not_controlled"]) == {"force x", "force y"}
    # Four rotors of 1e-5 N s^2 at 1200 rad/s against 2 kg.
    assert vehicle["hover_margin"] == pytest.approx(4 * 1e-5 * 1200**2 / 19.62)
    assert facts["run"]["largest_stable_step_s"] == pytest.approx(2.785 * 0.05, rel=0.01)
    assert run("describe", place / "fall.toml") == 0
    assert "moment z (yaw)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words", "unit"),
    [
        ("position_error_rms_m", "position error rms", "m"),
        ("speed_max_m_s", "speed max", "m/s"),
        ("rotor_speed_max_rad_s", "rotor speed max", "rad/s"),
        ("energy_drift_rel", "energy drift", ""),
        ("settle_time_s", "settle time", "s"),
        ("thrust_max_n", "thrust max", "N"),
        ("rotor_saturation_fraction", "rotor saturation fraction", ""),
        ("contact_force_mean_n_sliding", "contact force mean, sliding", "N"),
        ("end_effector_attitude_rms_deg_uav_2", "end effector attitude rms, uav 2", "deg"),
    ],
)
def test_metrics_in_words(name, words, unit):
    assert split_metric(name) == (words, unit)


def test_names_of_directories_are_harmless():
    assert safe_name("../../etc/passwd") == "______etc_passwd"
    assert safe_name("") == "run"
