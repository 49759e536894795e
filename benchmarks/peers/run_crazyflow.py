"""Crazyflow, first-principles dynamics with rotor lag: ``single``, ``batch:N``, ``batch_euler:N``, and one call at a time ``step:N`` and
``step_euler:N``."""

import jax
import jax.numpy as jnp
import numpy as np
from crazyflow.control import Control
from crazyflow.dynamics import Dynamics
from crazyflow.sim import Sim
from crazyflow.sim.integration import Integrator
from protocol import serve


def build(task):
    kind, _, count = task.partition(":")
    n = int(count or 1)
    integrator = Integrator.euler if "euler" in kind else Integrator.rk4
    sim = Sim(n_worlds=n, n_drones=1, dynamics=Dynamics.first_principles, control=Control.rotor_vel, integrator=integrator, freq=500)
    parameters = sim.data.params
    k0, k1, k2 = (float(np.ravel(np.asarray(parameters.rpm2thrust))[i]) for i in range(3))
    force = float(np.ravel(np.asarray(parameters.mass))[0]) * 9.81 / 4
    command = jnp.full((n, 1, 4), (-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - force))) / (2 * k2) * 1.001)
    sim.rotor_vel_control(command)
    steps = 100 if kind.startswith("step") else max(10, min(20_000, 400_000 // n))

    def work():
        if kind.startswith("step"):
            for _ in range(steps):
                sim.step(1)
        else:
            sim.step(steps)
        jax.block_until_ready(sim.data.states.pos)

    return work, n * steps


serve(build)
