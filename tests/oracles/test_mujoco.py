"""The same vehicle, exported to MuJoCo and flown there: the same rotor commands, its own dynamics and integrator."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from skycrane.core.controller import Constant
from skycrane.interop.mjcf import to_mjcf
from skycrane.math import rotation
from skycrane.simulation.rollout import simulate
from skycrane.vehicles.layout import ring
from skycrane.vehicles.multirotor import Multirotor, system_for

MASS, INERTIA = 1.3, np.array([[0.02, 0.001, -0.002], [0.001, 0.025, 0.0005], [-0.002, 0.0005, 0.04]])
K_F, K_M = 8.5e-6, 1.4e-7
STEP = 1e-3


def hexarotor(com):
    cant = np.radians(25) * np.array([1, -1, 1, -1, 1, -1])
    layout = ring(6, 0.3, height=0.05, torsional=cant)
    return Multirotor.create(MASS, INERTIA, layout, K_F, K_M, speed_max=900.0, com_B=com)


@pytest.mark.parametrize("com", [(0.0, 0.0, 0.0), (0.03, -0.02, 0.04)])
def test_open_loop_flight_of_a_canted_hexarotor(com):
    vehicle = hexarotor(com)
    system = system_for(vehicle)
    speed = np.array([520.0, 540, 500, 530, 510, 545])
    v0, w0 = np.array([0.5, -0.3, 0.2]), np.array([0.4, -0.2, 0.6])
    state = system.initial_state(velocity=[v0], angular_velocity=[w0])
    run = simulate(system, Constant({"rotors": jnp.asarray(speed[None])}), None, state, duration=2.0, step=STEP, save_every=100)

    model = mujoco.MjModel.from_xml_string(to_mjcf(vehicle, step=STEP))
    data = mujoco.MjData(model)
    data.qvel[:] = np.concatenate([v0, w0])  # of the body frame: linear in world axes, angular in body axes
    data.ctrl[:] = K_F * speed**2
    for k in range(1, 21):
        mujoco.mj_step(model, data, nstep=100)
        b = run.state.bodies
        np.testing.assert_allclose(b.p_WB[k, 0], data.qpos[:3], atol=2e-8)
        assert rotation.angle_between(b.q_WB[k, 0], data.qpos[3:7]) < 2e-8
        np.testing.assert_allclose(b.v_W[k, 0], data.qvel[:3], atol=2e-7)
        np.testing.assert_allclose(b.w_B[k, 0], data.qvel[3:], atol=2e-7)


def test_the_exported_hover_holds_the_weight():
    model = mujoco.MjModel.from_xml_string(to_mjcf(hexarotor((0.0, 0.0, 0.0))))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("hover").id)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qacc, 0, atol=1e-6)
