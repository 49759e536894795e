"""10 s of one vehicle on a grid of 2 ms, each program by its fastest way within 0.1 mm, judged by a Dormand-Prince 8(7) solution."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.environments import Remote, Unavailable, against
from benchmarks.measure import Record, skipped
from benchmarks.single import RATE, SPEED, STEP, VELOCITY, quadrotor
from skycrane.core.controller import Constant
from skycrane.simulation.integrators import RK4, Adaptive
from skycrane.simulation.rollout import simulate

FLOWN_S, WITHIN = 10.0, 1e-4
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def run() -> list[Record]:
    system = quadrotor()
    state = system.initial_state(velocity=[VELOCITY], angular_velocity=[RATE])
    command = Constant({"rotors": jnp.asarray(SPEED[None])})

    def flight(integrator, step):
        fly = jax.jit(
            lambda system, state: simulate(system, command, None, state, duration=FLOWN_S, step=step, integrator=integrator).state
        )
        return lambda: jax.block_until_ready(fly(system, state)).bodies.p_WB

    exact = np.asarray(flight(Adaptive(), 0.1)())[-1, 0]
    ours = flight(RK4(), STEP)
    error = np.abs(np.asarray(ours())[-1, 0] - exact).max()
    if error > WITHIN:
        raise RuntimeError(f"RK4 at {STEP} s errs by {error:.1e} m")
    names = {"name": "ten_seconds_within_0.1_mm", "ours_name": f"RK4 at 2 ms, error {error:.0e} m (simulated s)"}
    common = {"units": FLOWN_S, "precision": "float64", "step_s": STEP, "compile_s": 0.0, "rounds": 15}
    try:
        rtol = next((rtol for rtol in TOLERANCES if _error(rtol, exact) <= WITHIN), None)
    except Unavailable as problem:
        return [skipped(f"{names['name']}_archimedes", names["ours_name"], "archimedes", str(problem), "float64", STEP)]
    if rtol is None:
        raise RuntimeError("Archimedes flies another path at every tolerance; the comparison would mean nothing")
    return [against("archimedes", f"adaptive:{rtol}", names, ours, common)]


def _error(rtol: float, exact: np.ndarray) -> float:
    """Where Archimedes is after the flight with this tolerance, off by [m]."""
    remote = Remote("archimedes", f"adaptive:{rtol}")
    try:
        return float(np.abs(np.asarray(remote()) - exact).max())
    finally:
        remote.close()
