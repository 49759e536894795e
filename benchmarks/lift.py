"""Four quadrotors and a load on cables of five segments: open loop against C and MuJoCo's tendons, closed loop against the clock."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.environments import Remote, Unavailable, against
from benchmarks.lift_system import COMMAND, STEP, THRUST, as_c, lift
from benchmarks.measure import Record, compare, skipped
from skycrane.core.bodies import BodyState, State
from skycrane.core.controller import Constant
from skycrane.core.system import System
from skycrane.scenario.build import Built, build
from skycrane.scenario.fly import options
from skycrane.scenario.loader import load
from skycrane.simulation.batch import map_lanes
from skycrane.simulation.implicit import LinearlyImplicit, LinearlyImplicit3
from skycrane.simulation.integrators import RK4, AbstractIntegrator
from skycrane.simulation.rollout import simulate, start

STEPS, LONG_S, CLOSED_S, BATCH = 2500, 5.0, 4.0, 256
WITHIN = 1e-3  # m, of the load's place after LONG_S


def held(built: Built) -> Constant:
    """The command that the controller gives first, held for ever."""
    first = start(built.system, built.controller, built.reference, built.initial, built.sensors)
    measurement, _ = built.sensors(0, jnp.zeros(()), built.system, first.state, first.command, built.system.prepare(), first.sensor_memory)
    return Constant(built.controller(jnp.zeros(()), measurement, built.reference, first.controller_memory)[0])


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def in_c(state: State) -> Iterator[Callable[[float, int], np.ndarray]]:
    """A function of step and number of steps that returns the state at the end."""
    with tempfile.TemporaryDirectory() as folder:
        library, source = Path(folder) / "lift.so", Path(__file__).with_name("lift.c")
        subprocess.run(
            ["gcc", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"], check=True
        )
        code = ctypes.CDLL(str(library))
        code.fly.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_long]

        def fly(step: float, steps: int) -> np.ndarray:
            numbers = np.ascontiguousarray(as_c(state))
            code.fly(numbers.ctypes.data, THRUST, step, steps)
            return numbers

        yield fly


def flight(system: System, state: State, integrator: AbstractIntegrator, step: float, steps: int) -> Callable[[], State]:
    settings = {"duration": steps * step, "step": step, "integrator": integrator, "save_every": steps}
    fly = jax.jit(lambda state: simulate(system, COMMAND, None, state, **settings).final.state)
    return lambda: jax.block_until_ready(fly(state))


def run() -> list[Record]:
    system, state = lift()
    with in_c(state) as c:
        records = open_loop(system, state, c) + best_method(system, state, c) + batch(system, state)
    return [*records, closed_loop()]


def open_loop(system: System, state: State, c) -> list[Record]:
    fly = flight(system, state, RK4(), STEP, STEPS)
    common = {"units": STEPS, "step_s": STEP, "compile_s": timed(fly), "rounds": 9}
    apart = np.abs(as_c(fly()) - c(STEP, STEPS)).max()
    if apart > 1e-9:
        raise RuntimeError(f"C and Skycrane fly different paths ({apart:.1e}); the comparison would mean nothing")
    ours_name = "skycrane RK4, 4 vehicles, load, 20 segments, state at the end"
    names = {"name": "lift_open_loop", "ours_name": ours_name}
    return [
        compare("lift_open_loop_c", ours_name, "C -O3 -ffast-math, a cable to a vector lane", fly, lambda: c(STEP, STEPS), **common),
        against("mujoco", "lift", names, fly, {**common, "precision": "float64", "rounds": 7}),
    ]


def best_method(system: System, state: State, c) -> list[Record]:
    """The fastest settings that keep the load within a millimetre after five seconds, in simulated seconds."""
    exact = c(STEP / 8, round(8 * LONG_S / STEP))[:3]
    choices = [
        ("RK4", RK4(), STEP),
        ("linearly implicit, order 2", LinearlyImplicit(), 2e-3),
        ("linearly implicit, order 3", LinearlyImplicit3(), 4e-3),
        ("linearly implicit, order 3", LinearlyImplicit3(), 8e-3),
    ]
    good = []
    for name, method, step in choices:
        fly = flight(system, state, method, step, round(LONG_S / step))
        compile_s = timed(fly)
        error = np.abs(as_c(fly())[:3] - exact).max()
        if error < WITHIN:
            good.append(
                (min(timed(fly) for _ in range(3)), f"skycrane {name} at {1e3 * step:g} ms, error {error:.0e} m", fly, step, compile_s)
            )
    _, ours_name, fly, step, compile_s = min(good, key=lambda choice: choice[0])
    name = "lift_best_method_mujoco"
    try:
        remote = Remote("mujoco", "lift_euler")
        error = np.abs(np.array(remote()) - exact).max()
        if error > WITHIN:
            raise RuntimeError(f"MuJoCo is {error:.1e} m off; it should be given a smaller step")
        label = f"{remote.name} Euler at 0.2 ms, error {error:.0e} m, simulated seconds"
        common = {"units": LONG_S, "peer_units": LONG_S, "step_s": step, "compile_s": compile_s, "rounds": 5}
        return [compare(name, ours_name, label, fly, remote, **common)]
    except Unavailable as error:
        return [skipped(name, ours_name, "mujoco", str(error), "float64", step)]


def batch(system: System, state: State) -> list[Record]:
    """Lifts whose boxes start at different speeds, by the best method of either within a millimetre, in simulated seconds."""
    devices, seconds, step = min(2, len(jax.devices())), 0.4, 8e-3
    steps = round(seconds / step)

    def one(speed):
        b = state.bodies
        moving = State(BodyState(b.p_WB, b.q_WB, speed * b.v_W, b.w_B), state.memory)
        settings = {"duration": seconds, "step": step, "save_every": steps, "integrator": LinearlyImplicit3()}
        return simulate(system, COMMAND, None, moving, **settings).final.state.bodies.p_WB

    compiled = jax.jit(lambda speeds: map_lanes(one, speeds, block=16, devices=devices))
    speeds = jnp.linspace(0.5, 1.5, BATCH)

    def fly():
        return jax.block_until_ready(compiled(speeds))

    common = {"units": BATCH * seconds, "precision": "float64", "step_s": step, "compile_s": timed(fly), "rounds": 5}
    ours_name = f"skycrane.map_lanes, linearly implicit at 8 ms, {BATCH} lifts, {devices} device(s), simulated seconds"
    names = {"name": f"lift_batch_{BATCH}", "ours_name": ours_name}
    return [against("mujoco", f"lifts:{BATCH}", names, fly, common)]


def closed_loop() -> Record:
    built = build(load("lift-box").scenario)
    return real_time("lift_closed_loop", built, CLOSED_S, "formation control")


def real_time(name: str, built: Built, seconds: float, control: str) -> Record:
    """A scenario against the clock: simulated seconds per second."""
    settings, run = options(built), built.scenario.run

    def fly():
        return jax.block_until_ready(
            simulate(built.system, built.controller, built.reference, built.initial, duration=seconds, save_every=100, **settings)
        )

    compile_s = timed(fly)
    label = f"skycrane {type(built.integrator).__name__}, {control} at {1 / run.tick:.0f} Hz, simulated seconds"
    clock = {"units": seconds, "peer_units": 0.1, "step_s": run.step, "compile_s": compile_s, "rounds": 7}
    return compare(name, label, "real time", fly, lambda: time.sleep(0.1), **clock)
