"""Taking turns: the contenders run one after the other, round after round, so that a machine whose speed drifts treats them alike."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version


@dataclass(frozen=True)
class Record:
    """One comparison; ``ratio`` is the median over rounds of ours per second over the peer's."""

    name: str
    ours: str
    peer: str
    ours_per_s: float
    peer_per_s: float
    ratio: float
    ratio_min: float
    ratio_max: float
    precision: str
    step_s: float
    compile_s: float
    versions: dict[str, str]
    machine: str
    note: str = ""

    def as_dict(self) -> dict:
        return asdict(self)


def versions(*packages: str) -> dict[str, str]:
    return {name: version(name) for name in ("skycrane", "jax", "jaxlib", *packages)} | {"python": platform.python_version()}


def machine() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{len(names)} x {names[0]}" if names else platform.processor() or platform.machine()


def skipped(name: str, ours_name: str, peer_name: str, why: str, precision: str, step_s: float) -> Record:
    """A comparison that could not be made, and why."""
    nothing = float("nan")
    return Record(
        name, ours_name, peer_name, nothing, nothing, nothing, nothing, nothing, precision, step_s, nothing, versions(), machine(), why
    )  # fmt: skip


def take_turns(ours: Callable[[], object], peer: Callable[[], object], rounds: int = 15) -> tuple[list[float], list[float]]:
    """Seconds of each, round by round, after one warm-up."""
    times: tuple[list[float], list[float]] = ([], [])
    for contender in (ours, peer):
        contender()
    for _ in range(rounds):
        for contender, log in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            contender()
            log.append(time.perf_counter() - start)
    return times


def compare(
    name: str,
    ours_name: str,
    peer_name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    units: float,
    peer_units: float | None = None,
    precision: str = "float64",
    step_s: float,
    compile_s: float,
    packages: tuple[str, ...] = (),
    rounds: int = 15,
) -> Record:
    """``units`` of work (steps, vehicle-steps) that one call does, of ours and of the peer."""
    a, b = take_turns(ours, peer, rounds)
    peer_units = units if peer_units is None else peer_units
    ratios = [(units / x) / (peer_units / y) for x, y in zip(a, b, strict=True)]
    return Record(
        name, ours_name, peer_name, units / statistics.median(a), peer_units / statistics.median(b), statistics.median(ratios), min(ratios),
        max(ratios), precision, step_s, compile_s, versions(*packages), machine(),
    )  # fmt: skip
