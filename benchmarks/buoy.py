"""A quadrotor tows a buoy through regular waves, closed loop, against the clock."""

from __future__ import annotations

from benchmarks.lift import real_time
from benchmarks.measure import Record
from skycrane.scenario.build import build
from skycrane.scenario.loader import load


def run() -> list[Record]:
    return [real_time("buoy_waves_closed_loop", build(load("buoy-waves").scenario), 10.0, "surge control")]
