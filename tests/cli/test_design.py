"""`skycrane design manipulator`: what it writes, that it flies, what it refuses, and what it says."""

import json

import numpy as np
import pytest
import xarray as xr

from skycrane.cli import execute
from skycrane.design.multistart import search
from skycrane.design.problem import DesignError, Problem
from skycrane.design.vehicle_file import vehicle_toml
from skycrane.design.verify import verify
from skycrane.scenario import load
from tests.design import layouts

COMMAND = ["design", "manipulator", "--workers", "1", "--budget", "300", "--no-baseline"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A directory with a design, from one short start; every end settles where all constraints hold."""
    out = tmp_path_factory.mktemp("design")
    assert execute([*COMMAND, "--out", str(out), "--starts", "1", "--evaluations", "60"]) == 0
    return out


def test_the_report(made):
    facts = json.loads((made / "report.json").read_text())
    for key in (
        "size_norm_m", "condition_number", "condition_number_full", "sigma_min", "clearance_min_m", "end_effector_clearance_min_m",
        "evaluations", "wall_s", "baseline",
    ):  # fmt: skip
        assert key in facts
    assert facts["constraints_satisfied"]
    assert facts["blocking"] == []
    assert facts["redistribution"]["attitudes"] == 10_000
    page = (made / "report.html").read_text()
    assert "Every constraint holds." in page
    assert "30. no negative" in page
    assert (made / "layout.png").stat().st_size > 10_000


def test_the_cases_of_allocation_hold_for_what_was_found(made):
    checks = json.loads((made / "report.json").read_text())["checks"]
    assert [c["number"] for c in checks] == list(range(24, 31))
    assert [c["name"] for c in checks if not c["holds"]] == []


def test_what_was_found_can_be_flown(made):
    scenario = load(str(made / "vehicle.toml")).scenario
    assert scenario.fleet["uav"].control.kind == "backstepping"


def test_a_designed_vehicle_hovers_steadily(tmp_path):
    """A layout from a long search, from its file as it is: with gains for a heavier vehicle it begins to swing after three seconds."""
    facts = verify(Problem(), layouts.PLACES, layouts.DIRECTIONS, layouts.TIP, distances=False)
    vehicle = vehicle_toml(Problem(), layouts.PLACES, layouts.DIRECTIONS, layouts.TIP, facts, "stored")
    (tmp_path / "vehicle.toml").write_text(vehicle)
    pushed = ["--set", "control.believed.mass_factor=1.1", "--set", "vehicle.initial.velocity=[0.1, 0, 0]"]
    assert execute(["run", str(tmp_path / "vehicle.toml"), "--out", str(tmp_path / "f"), "--quiet", *pushed]) == 0
    found = json.loads((tmp_path / "f" / "summary.json").read_text())
    assert found["status"] == "finished"
    assert found["metrics"]["tilt_max_deg"] < 1.0
    assert found["timings"]["run_s"] < 5.0  # seconds of compiling belong elsewhere
    with xr.open_dataset(tmp_path / "f" / "result.nc", engine="h5netcdf") as flight:
        speed = flight["rotor_speed"].values[len(flight["time"]) // 2 :]
        x, y = flight["attitude"].values[-1, 0, 1:3]
    assert np.ptp(speed, axis=0).max() < 1.0  # rad/s; 500 when it swings
    assert np.hypot(x, y) < 1e-3


def test_a_stopped_run_goes_on(made):
    lines = (made / "starts.jsonl").read_text().splitlines()
    (made / "starts.jsonl").write_text("\n".join(lines) + '\n{"kind": "sta')  # cut off by a kill
    again = search(Problem(), starts=1, budget=1e-3, workers=1, directory=made)
    assert len(again.results) == len(lines) - 1
    with pytest.raises(DesignError, match="another problem"):
        search(Problem(clearance=0.02), starts=1, budget=1e-3, workers=1, directory=made)


def test_what_blocks_a_design_is_said_with_amounts(capsys, tmp_path):
    """A size that cannot be: the best of what was found, and by how much it misses what."""
    assert execute([*COMMAND, "--out", str(tmp_path / "d"), "--size-max", "0.2", "--starts", "1", "--evaluations", "20"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    facts = json.loads((tmp_path / "d" / "report.json").read_text())
    assert "size" in facts["blocking"]
    assert "no layout meets every constraint; the best one misses:" in said
    assert f"size by {facts['size_norm_m'] - 0.2:.3g} m" in said
    assert "No layout meets every constraint" in (tmp_path / "d" / "report.html").read_text()


def test_rules_of_redistribution_on_a_vehicle_that_is_there(capsys):
    """The numbers of the layout in the catalogue, whose source gives about 41 N for the paper's rule and 17.5 N for the smallest shift."""
    assert execute(["describe", "manipulator-inspect", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["vehicles"]["uav"]["redistribution"]
    assert found["attitudes"] == 10_000
    assert found["rule_17_max_n"] == pytest.approx(41, abs=1.0)
    assert found["minimal_shift_max_n"] == pytest.approx(17.5, abs=0.3)
    assert execute(["describe", "manipulator-inspect"]) == 0
    assert "rule (17) 41" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--rotors", "6"], "7 to 16"), (["--one-failed"], "8 or more"), (["--starts", "0"], "--starts is 0"),
        (["--budget", "0"], "--budget is 0"), (["--workers", "0"], "--workers is 0"), (["--mirror", "1-2:q"], "1-2:y"),
        (["--spins", "cw,up"], "cw or ccw"), (["--condition-max", "0.5"], "more than 1"), (["--objective", "beauty"], "size"),
        (["--problem", "none.toml"], "there is no such file"), (["--evaluations", "0"], "--evaluations is 0"),
        (["--box", "-1", "-1", "-1"], "box is"), (["--seed", "-1"], "--seed is -1"), (["--boom-radius", "-1"], "boom_radius is -1"),
        (["--size-max", "0"], "size_max is 0"), (["--mirror", "1-99:y"], "no rotor 99: they are numbered 1 to 7"),
        (["--mirror", "0-2:y"], "numbered from 1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(options, part, capsys, tmp_path):
    assert execute(["design", "manipulator", "--out", str(tmp_path / "d"), *options]) == 2
    assert part in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('rotors = "many"', "rotors = 'many': expected a whole number"), ("rotors = 7.5", "rotors = 7.5: expected a whole number"),
        ('reach = "far"', "reach = 'far': expected a list of 2, each a number"), ("spins = 3", "spins = 3: expected a list of a whole"),
        ('clearance = "a"', "clearance = 'a': expected a number"), ("box = [1]", "box = [1]: expected a list of 3"),
        ("rotor = 7", "did you mean 'rotors'?"), ("one_failed = 1", "expected true or false"), ("sigma_min = nan", "expected a number"),
        ("tasks = [1]", "tasks"), ("bodies = [3]", "bodies"), ("fixed = [{ rotor = 1 }]", "position"), ("profile = [1]", "profile"),
        ("components = { rotor = 'x' }", "components"), ("mirrored = [3]", "expected a list of"),
    ],
)  # fmt: skip
def test_bad_problem_files_are_refused(text, part, capsys, tmp_path):
    (tmp_path / "p.toml").write_text(text)
    assert execute(["design", "manipulator", "--problem", str(tmp_path / "p.toml"), "--out", str(tmp_path / "d")]) == 2
    assert part in " ".join(capsys.readouterr().err.split())


def test_a_file_for_a_directory_is_refused(capsys, tmp_path):
    (tmp_path / "d").write_text("")
    assert execute(["design", "manipulator", "--out", str(tmp_path / "d")]) == 2
    assert "is a file" in capsys.readouterr().err
