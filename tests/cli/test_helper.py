"""Helpers write a run's files in other processes; where one cannot, nobody notices."""

import sys
import time

import numpy as np

from skycrane.cli.helper import Helper

TABLE = (
    {
        "position": (("time", "body", "axis"), np.zeros((3, 1, 3)), {"units": "m"}),
        "attitude": (("time", "body", "quaternion"), np.tile([1.0, 0.0, 0.0, 0.0], (3, 1, 1)), {"units": "1"}),
    },
    {"time": ("time", [0.0, 0.1, 0.2], {"units": "s"}), "body": ["uav"]},
    {"scenario": "still"},
)


def test_a_helper_writes_what_it_is_sent(tmp_path):
    helper = Helper("plots")
    helper.send(TABLE, tmp_path)
    files = helper.files()
    assert [path.name for path in files] == ["result.nc", "path.png", "attitude.png"]
    assert all(path.stat().st_size > 1000 for path in files)
    helper.close()


def test_a_helper_that_cannot_says_so(tmp_path, monkeypatch):
    lost = Helper("plots")
    lost.send(TABLE, tmp_path / "not there")
    assert lost.files() is None
    idle = Helper("replay")
    assert idle.files() is None  # nothing was sent
    began = time.perf_counter()
    idle.close()
    assert idle._process.returncode is not None
    assert time.perf_counter() - began < 5.0
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    missing = Helper("plots")
    missing.send(TABLE, tmp_path)
    assert missing.files() is None
    missing.close()
