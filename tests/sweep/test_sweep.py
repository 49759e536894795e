"""Sweeps that are killed and go on, points that fail, and the same numbers as `skycrane run`."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from skycrane.cli import execute
from skycrane.runtime import FAST_LOOP_FLAG
from skycrane.scenario import ScenarioError
from skycrane.scenario.build import build
from skycrane.scenario.fly import fly
from skycrane.scenario.loader import loads
from skycrane.scenario.record import metrics_of
from skycrane.simulation.samples import sample
from skycrane.sweep.block import Entry, Task
from skycrane.sweep.engines import run_local
from skycrane.sweep.runner import sweep

FALL = """
schema_version = "1"
name = "fall"
[run]
duration = 0.2
[vehicle]
model = "tutorial-quad"
[control]
kind = "rotor_speeds"
speeds = 500
"""
ARGUMENTS = {"vary": ["vehicle.mass=0.8:1.2", "control.speeds=400:600"], "samples": 24, "width": 4}


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "fall.toml"
    path.write_text(FALL)
    return path


@pytest.fixture(scope="module")
def undisturbed(scenario, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    return out, sweep(scenario, out=out, jobs=1, **ARGUMENTS)


@pytest.fixture
def same_compiler(monkeypatch):
    """Processes that a test starts compile as this one does, and find its programs in the cache."""
    if not os.environ.get("SKYCRANE_TESTS_OPTIMISED"):
        monkeypatch.setenv("XLA_FLAGS", f"{FAST_LOOP_FLAG} --xla_backend_optimization_level=0")


def contents(out):
    """All that a sweep has written."""
    names = ["manifest.json", "table.csv", "table.parquet", "summary.json"]
    return {p.name: p.read_bytes() for p in [*(out / n for n in names), *(out / "parts").iterdir()]}


def test_a_point_has_the_metrics_of_its_run(undisturbed, scenario):
    records = undisturbed[1].records
    assert [r["index"] for r in records] == list(range(24))
    for record in (records[0], records[17]):
        loaded = loads(FALL, overrides=[f"{key}={value!r}" for key, value in record["values"].items()])
        assert record["key"] == loaded.digest
        built = build(loaded.scenario)
        run = fly(built).run
        samples = sample(run, built.system, built.followed, events=built.timeline, control_period=loaded.scenario.run.tick)
        expected = metrics_of(run, built, built.followed, samples)
        assert set(record["metrics"]) == set(expected)
        drift = {"energy_drift_rel": 0.0}
        assert record["metrics"] | drift == pytest.approx(expected | drift, rel=1e-9)


def test_workers_killed_at_random_change_no_bit(undisturbed, scenario, tmp_path, same_compiler):
    rng, killed, over = random.Random(4), [], threading.Event()

    def murderer():
        while len(killed) < 2 and not over.wait(rng.uniform(0.5, 3.0)):
            children = multiprocessing.active_children()
            if children:
                killed.append(rng.choice(children).pid)
                os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=murderer)
    thread.start()
    try:
        sweep(scenario, out=tmp_path, jobs=2, **ARGUMENTS)
    finally:
        over.set()
        thread.join()
    assert killed
    assert contents(tmp_path) == contents(undisturbed[0])


def test_a_killed_sweep_goes_on_without_repeating_or_losing_a_point(undisturbed, scenario, tmp_path, same_compiler):
    options = [f"--vary={v}" for v in ARGUMENTS["vary"]] + [
        "--samples",
        "24",
        "--width",
        "4",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
        "--quiet",
    ]
    code = f"import sys; from skycrane.cli import main; main(['sweep', {str(scenario)!r}, *{options!r}])"
    process = subprocess.Popen([sys.executable, "-c", code])
    parts = tmp_path / "parts"
    while process.poll() is None and len(list(parts.glob("*.json")) if parts.exists() else []) < 2:
        time.sleep(0.005)
    process.kill()
    process.wait()
    there = {p: p.stat().st_mtime_ns for p in parts.glob("*.json")}
    # A file cut short by a failing disk, and one that was being written, count as not there.
    broken = sorted(there)[0]
    broken.write_bytes(broken.read_bytes()[:100])
    (parts / "half.json.tmp").write_text("{")
    result = sweep(scenario, out=tmp_path, jobs=1, **ARGUMENTS)
    assert result.discarded == [broken.name]
    assert result.flown == 24 - 4 * (len(there) - 1)
    assert all(p.stat().st_mtime_ns == then for p, then in there.items() if p != broken)
    assert contents(tmp_path) == contents(undisturbed[0])
    assert sweep(scenario, out=tmp_path, jobs=1, **ARGUMENTS).flown == 0


def test_another_sweep_is_not_mixed_in(undisturbed, scenario, tmp_path):
    with pytest.raises(ScenarioError, match=r"holds another sweep .*seed: 0 there, 1 now"):
        sweep(scenario, out=undisturbed[0], jobs=1, seed=1, **ARGUMENTS)
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ScenarioError, match="something other than a sweep"):
        sweep(scenario, out=tmp_path, jobs=1, **ARGUMENTS)


def test_failed_points_have_a_reason_and_stop_nobody(scenario, tmp_path):
    vary = ["vehicle.mass=[-1, 1.0, 1.1]", "run.max_speed=[1e-3, 100.0]"]
    result = sweep(scenario, vary, method="grid", out=tmp_path, jobs=1, width=2)
    status = [r["status"] for r in result.records]
    assert status == ["invalid", "invalid", "limit", "finished", "limit", "finished"]
    assert "vehicle.mass = -1" in result.records[0]["reason"]
    assert "max_speed" in result.records[2]["reason"]
    assert "speed_max_m_s" in result.records[2]["metrics"]
    assert result.summary["status"] == {"finished": 2, "invalid": 2, "limit": 2}


def test_a_scenario_that_is_wrong_everywhere_is_refused(scenario, tmp_path):
    with pytest.raises(ScenarioError, match=r"vehicle\.masss"):
        sweep(scenario, ["vehicle.masss=1:2"], out=tmp_path / "new", jobs=1)
    assert not (tmp_path / "new").exists()


def test_a_block_that_kills_its_process_becomes_a_reason():
    results = []
    # Tables that no check has seen: as the worker unpickles them it ends at once.
    task = Task("block", "float64", 1, (Entry(3, "key", {"a": 1.0}, _Bomb(), ""),), ())
    run_local([task], lambda task, records: results.append(records), 1)
    assert [r["status"] for r in results[0]] == ["error"]
    assert "ended 3 times" in results[0][0]["reason"]


class _Bomb:
    def __reduce__(self):
        return os._exit, (7,)


def test_the_command_line(scenario, tmp_path, capsys):
    bare = ["sweep", str(scenario), "--vary", "vehicle.mass=0.9,1.0,1.1", "--method", "grid", "--jobs", "1"]
    command = [*bare, "--out", str(tmp_path / "s")]
    assert execute(command) == 0
    shown = capsys.readouterr().out
    assert "3 of 3 points" in shown
    assert "points/s" in shown
    assert "table.parquet" in shown
    assert list((tmp_path / "s" / "plots").glob("parallel_*.png"))
    assert execute([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == 3
    assert execute([*command, "--metric", "beauty"]) == 2
    assert "no metric 'beauty'" in " ".join(capsys.readouterr().err.split())
    for extra, message in ((["--engine", "dask"], "--address"), (["--samples", "3"], "no --samples")):
        assert execute([*bare, *extra, "--out", str(tmp_path / extra[0])]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
