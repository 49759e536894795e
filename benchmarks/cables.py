"""What a step costs by the number of cable segments and of vehicles, explicit and linearly implicit: at most in proportion to either.

Draws ``benchmarks/cables.png`` beside the records.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from benchmarks.lift import held
from benchmarks.measure import Record, machine, versions
from skycrane.scenario import loads
from skycrane.scenario.build import build
from skycrane.simulation.implicit import LinearlyImplicit3
from skycrane.simulation.integrators import RK4
from skycrane.simulation.rollout import simulate

PICTURE = Path(__file__).with_suffix(".png")
SEGMENTS = (5, 10, 20, 40, 80, 160)  # of the cable below one vehicle
VEHICLES = (1, 2, 4, 8, 16)  # with a load on five segments each
STEPS, ROUNDS = 2000, 9
# The time of a step does not depend on its length, so explicit steps are as short as the finest cable needs.
METHODS = {"RK4": (RK4(), 5e-6), "linearly implicit": (LinearlyImplicit3(), 1e-3)}


def text(vehicles: int, segments: int) -> str:
    """A load on a ring of cables."""
    angle = 2 * np.pi * np.arange(vehicles) / vehicles
    ring = 0.0 if vehicles == 1 else 0.15 * vehicles
    points = ", ".join(f"p{i} = [{ring * np.cos(a):.6f}, {ring * np.sin(a):.6f}, 0.1]" for i, a in enumerate(angle))
    lines = [
        'schema_version = "1"', 'name = "cost"', "[environment]", 'downwash = "off"', "[loads.load]", f"mass = {0.5 * vehicles}",
        f"inertia = [{0.1 * vehicles**3}, {0.1 * vehicles**3}, {0.2 * vehicles**3}]", f"points = {{ {points} }}",
    ]  # fmt: skip
    for i in range(vehicles):
        lines += [
            f"[vehicles.v{i}]", 'model = "lift-quad"', f'initial = {{ over = "c{i}" }}', f"[cables.c{i}]", f'upper = "v{i}"',
            'lower = "load"', f'lower_point = "p{i}"', "length = 2.5", f"segments = {segments}",
            'material = { kind = "numbers", axial_stiffness = 1e4, linear_density = 0.02, damping = 20.0 }',
        ]  # fmt: skip
    return "\n".join([*lines, "[team]", 'kind = "formation"', 'load = "load"'])


def flight(vehicles: int, segments: int, method: str) -> Callable[[], object]:
    built = build(loads(text(vehicles, segments)).scenario)
    command, (integrator, step) = held(built), METHODS[method]
    settings = {"duration": STEPS * step, "step": step, "integrator": integrator, "save_every": STEPS}
    return lambda: jax.block_until_ready(simulate(built.system, command, None, built.initial, **settings))


def run() -> list[Record]:
    records, curves = [], {}
    for what, sizes, built in (
        ("segments", SEGMENTS, lambda n, method: flight(1, n, method)),
        ("vehicles", VEHICLES, lambda n, method: flight(n, 5, method)),
    ):
        for method in METHODS:
            flights, compiled = [], 0.0
            for n in sizes:
                flights.append(built(n, method))
                began = time.perf_counter()
                run = flights[-1]()
                compiled = time.perf_counter() - began
                assert run.status_name == "finished", f"{n} {what} with {method}: {run.status_name}"
            rounds = np.array([[timed(fly) for fly in flights] for _ in range(ROUNDS)]) / STEPS
            curves[what, method] = np.median(rounds, 0)
            records.append(compared(what, method, sizes, rounds, compiled))
    plot(curves)
    return records


def timed(fly: Callable[[], object]) -> float:
    began = time.perf_counter()
    fly()
    return time.perf_counter() - began


def compared(what: str, method: str, sizes: tuple[int, ...], rounds: np.ndarray, compile_s: float) -> Record:
    """The largest against the smallest, in segments or vehicles and steps per second: above 1 where the cost grows less than linearly."""
    per_s = np.array(sizes) / rounds
    ratios = (per_s[:, -1] / per_s[:, 0]).tolist()
    return Record(
        f"cables_{what}_{method.replace(' ', '_').lower()}", f"{sizes[-1]} {what}, {method}", f"{sizes[0]} {what}",
        statistics.median(per_s[:, -1].tolist()), statistics.median(per_s[:, 0].tolist()), statistics.median(ratios), min(ratios),
        max(ratios),
        "float64", METHODS[method][1], compile_s, versions(), machine(),
    )  # fmt: skip


def plot(curves: dict[tuple[str, str], np.ndarray]) -> None:
    """Time of a step against either number, with a straight line through the largest."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, (what, sizes, title) in zip(
        axes, (("segments", SEGMENTS, "one vehicle, one cable"), ("vehicles", VEHICLES, "a load, five segments each")), strict=True
    ):
        for method, color, marker in zip(METHODS, ("#0072B2", "#D55E00"), "os", strict=True):
            took = curves[what, method] * 1e6
            axis.loglog(sizes, took, marker + "-", color=color, label=method)
            axis.loglog(sizes, took[-1] * np.array(sizes) / sizes[-1], ":", color=color)
        axis.set_xticks(sizes, [str(n) for n in sizes])
        axis.minorticks_off()
        axis.set_xlabel(f"{what} ({title})")
        axis.set_ylabel("time of a step, µs")
        axis.grid(alpha=0.3)
    axes[0].legend(title="dotted: in proportion", frameon=False)
    figure.savefig(PICTURE, dpi=130)
