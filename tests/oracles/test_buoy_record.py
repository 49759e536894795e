"""The plant against the record of Kourani and Daher: their thrust command and UAV attitude in, their tension and buoy velocity out.

With the errors of their program switched on (see :mod:`skycrane.elements.slaved`), since the record contains them.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.core.controller import AbstractController
from skycrane.core.element import AbstractElement, Wrench
from skycrane.core.system import System
from skycrane.elements.gravity import Gravity
from skycrane.elements.slaved import SlavedBuoy, SourceAzimuth
from skycrane.elements.tether import LeverTether, Tether
from skycrane.environment.environment import Environment
from skycrane.environment.water import Current, Water
from skycrane.math.components import Vec3
from skycrane.simulation.rollout import simulate

LENGTH, LAG, SAMPLE = 7.0, 0.05, 0.02


class RecordedThrust(AbstractElement):
    """Thrust on the UAV: the command (thrust, direction) through the motor lag."""

    start: jax.Array

    def init(self):
        return self.start

    def wrench(self, t, kin, memory, command):
        force = Vec3(*(command[k : k + 1] * memory for k in (1, 2, 3)))
        return (Wrench((1,), force, None),), (command[0] - memory) / LAG


class Playback(AbstractController):
    start: jax.Array
    table: jax.Array

    def init(self):
        return ()

    def __call__(self, t, measurement, reference, memory):
        x = (t + self.start) / SAMPLE + 1e-6
        i = x.astype(int)
        before, after = jax.lax.dynamic_slice_in_dim(self.table, i, 2)
        return {"thrust": before + (x - i) * (after - before)}, memory


def plant(errors):
    added = np.zeros((2, 6, 6))
    added[0] = np.diag([0.625, 0.625, 12.5, 0, 0, 12.5])
    bodies = Bodies.create(["buoy", "uav"], [12.5, 5.0], [[1e4, 1e4, 0.208 if errors else 0.732], [0.16, 0.16, 0.22]], added=added)
    thrust = RecordedThrust(jnp.zeros(()))
    elements = {
        "gravity": Gravity(),
        "buoy": SlavedBuoy(0, jnp.array([0.8, 0.25, 0.25]), jnp.array([0, 0, 22.87]), 1.0, errors),
        "thrust": SourceAzimuth(thrust, 0, 1, LENGTH) if errors else thrust,
    }
    tether = LeverTether(Tether((0, 1), LENGTH), 0.4, 0.0932 if errors else 0.0)
    water = Water(level=10.0, current=Current(jnp.array([-1.0, 0.0, 0.0])))
    return System(bodies, elements, {"tether": tether}, Environment(9.81, water=water))


@pytest.fixture(scope="module")
def record():
    with np.load(Path(__file__).parents[1] / "data" / "buoy-C1.npz") as file:
        return {k: np.asarray(file[k], dtype=float) for k in file}


def flown(record, errors, starts, duration):
    """Tension (windows, samples) and buoy velocity (windows, samples, 3), from the record's state at each window's start on."""
    p, v = (np.stack([record[f"{n}_{k}"] for k in range(3)], -1) for n in ("X_b", "Xdot_b"))
    roll, pitch, yaw = (record[f"euler_u_{k}"] for k in range(3))
    c, s = np.cos, np.sin
    axis = [c(yaw) * s(pitch) + s(yaw) * s(roll) * c(pitch), s(yaw) * s(pitch) - c(yaw) * s(roll) * c(pitch), c(roll) * c(pitch)]
    thrust = record["u_1c"].copy()
    for i in range(1, len(thrust)):
        thrust[i] = thrust[i - 1] + (1 - np.exp(-SAMPLE / LAG)) * (record["u_1c"][i - 1] - thrust[i - 1])
    al, ph = (np.unwrap(np.deg2rad(record[f"alpha_phi_{k}"])) for k in range(2))
    e_r = np.stack([c(al) * c(ph), c(al) * s(ph), s(al)], -1)
    v_u = v + LENGTH * np.gradient(e_r, SAMPLE, axis=0)
    psi = record["euler_b_2"]
    turning = np.gradient(psi, SAMPLE)
    system = plant(errors)

    def start(i):
        attitude = [[np.cos(psi[i] / 2), 0, 0, np.sin(psi[i] / 2)], [1, 0, 0, 0]]
        memory = {"thrust": jnp.array(thrust[i])}
        return system.initial_state([p[i], p[i] + LENGTH * e_r[i]], attitude, [v[i], v_u[i]], [[0, 0, turning[i]], [0, 0, 0]], memory)

    states = jax.tree.map(lambda *x: jnp.stack(x), *(start(i) for i in starts))
    table = jnp.asarray(np.stack([record["u_1c"], *axis], -1))
    prepared = system.prepare()

    @jax.jit
    @jax.vmap
    def fly(state, begin):
        run = simulate(system, Playback(begin, table), None, state, duration=duration, step=2e-3, save_every=10)
        tension = jax.vmap(lambda s, u: system.tensions(0.0, s, u, prepared)["tether"][0])(run.state, run.command)
        return tension, run.state.bodies.v_W[:, 0]

    return (np.asarray(x) for x in fly(states, jnp.asarray(starts) * SAMPLE))


def test_the_record_of_the_authors_is_reproduced(record):
    starts = np.arange(800, 4501, 100)  # every 2 s from 16 s on, taut since 15.3 s
    tension, velocity = flown(record, True, starts, 10.0)
    tension_rms, velocity_rms, correlation = [], [], []
    for n, i in enumerate(starts):
        two, ten = slice(i, i + 101), slice(i, i + 501)
        tension_rms.append(np.sqrt(np.mean((tension[n, :101] - record["T"][two]) ** 2)))
        error = velocity[n, :101, :2] - np.stack([record["Xdot_b_0"], record["Xdot_b_1"]], -1)[two]
        velocity_rms.append(np.sqrt(np.mean(error**2, 0)))
        correlation.append(np.corrcoef(tension[n], record["T"][ten])[0, 1])
    assert np.median(tension_rms) < 0.3  # wanted: 0.6
    assert (np.median(velocity_rms, 0) < 0.01).all()  # wanted: 0.2
    assert min(correlation[2:]) > 0.995  # wanted: 0.97
