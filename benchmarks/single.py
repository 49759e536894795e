"""One vehicle, RK4, float64, every state stored, against a scalar C loop compiled on the spot."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.environments import against
from benchmarks.measure import Record, compare
from skycrane.core.bodies import Bodies
from skycrane.core.controller import Constant
from skycrane.core.system import System
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.environment.environment import Environment
from skycrane.simulation.rollout import simulate

STEP, STEPS = 2e-3, 50_000
MASS, INERTIA, K_F, K_M = 0.5, (3.65e-3, 3.68e-3, 7.03e-3), 5.57e-6, 1.36e-7
ARM = 0.17 * np.sqrt(0.5)
SPEED = np.sqrt(MASS * 9.81 / 4 / K_F) * np.array([1.01, 1.0, 1.0, 1.01])
VELOCITY, RATE = (1.0, 0.5, 0.0), (0.1, 0.2, 0.3)


def quadrotor(lag: bool = False) -> System:
    """The vehicle of ``quadrotor.c``."""
    position = np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]]) * ARM
    time_constant = 0.03 if lag else None
    rotors = Rotors.create(
        (0,), position, [0.0, 0.0, 1.0], [1.0, -1, 1, -1], K_F, K_M, time_up=time_constant, time_down=time_constant, speed_initial=SPEED
    )  # fmt: skip
    drag = Drag((0,), jnp.array([[0.010, 0.012, 0.020]]))
    bodies = Bodies.create(["quad"], [MASS], [INERTIA])
    return System(bodies, {"gravity": Gravity(), "rotors": rotors, "drag": drag}, environment=Environment(9.81))


def compiled_c(directory: str) -> ctypes.CDLL:
    library = Path(directory) / "quadrotor.so"
    source = Path(__file__).with_name("quadrotor.c")
    subprocess.run(["gcc", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"], check=True)
    code = ctypes.CDLL(str(library))
    code.fly.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_long, ctypes.c_void_p]
    return code


def run() -> list[Record]:
    """Compare, after checking that both programs fly the same path."""
    records = []
    with tempfile.TemporaryDirectory() as directory:
        code = compiled_c(directory)
        speed, stored = np.ascontiguousarray(SPEED), np.empty((STEPS, 13))

        def in_c():
            s = np.array([0, 0, 0, 1, 0, 0, 0, *VELOCITY, *RATE], dtype=float)
            code.fly(s.ctypes.data, speed.ctypes.data, STEP, STEPS, stored.ctypes.data)

        for lag in (False, True):
            system = quadrotor(lag)
            state = system.initial_state(velocity=[VELOCITY], angular_velocity=[RATE])
            command = Constant({"rotors": jnp.asarray(SPEED[None])})

            fly = jax.jit(lambda system, state, command: simulate(system, command, None, state, duration=STEP * STEPS, step=STEP).state)

            def ours(fly=fly, system=system, state=state, command=command):
                return jax.block_until_ready(fly(system, state, command))

            start = time.perf_counter()
            b = ours().bodies
            compile_s = time.perf_counter() - start
            in_c()
            mine = np.concatenate([b.p_WB[:-1, 0], b.q_WB[:-1, 0], b.v_W[:-1, 0], b.w_B[:-1, 0]], -1)
            difference = np.abs(mine - stored)[:5000].max()
            if difference > 1e-6:
                raise RuntimeError(f"the C loop and Skycrane fly different paths ({difference:.1e}); the comparison would mean nothing")
            name = "single_rk4_stored" + ("_motor_lag" if lag else "")
            ours_name = "skycrane.simulate, 17 states with motor lag" if lag else "skycrane.simulate, 13 states"
            common = {"units": STEPS, "precision": "float64", "step_s": STEP, "compile_s": compile_s}
            records.append(compare(name, ours_name, "C -O3 -ffast-math, 13 states", ours, in_c, **common))
            names = {"name": name, "ours_name": ours_name}
            for peer in ("crazyflow", "rotorpy") if lag else ("mujoco",):
                records.append(against(peer, "single", names, ours, {**common, "rounds": 7}))
    return records
