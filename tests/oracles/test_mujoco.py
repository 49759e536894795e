"""The same vehicle in MuJoCo: same mass properties, same rotors, same commands, its own integrator."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.core.controller import Constant
from skycrane.core.system import System
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.environment.environment import Environment
from skycrane.math import rotation
from skycrane.simulation.rollout import simulate

MASS, INERTIA = 1.3, np.array([[0.02, 0.001, -0.002], [0.001, 0.025, 0.0005], [-0.002, 0.0005, 0.04]])
K_F, K_M = 8.5e-6, 1.4e-7
STEP = 1e-3


def hexarotor(com):
    angle = np.arange(6) * np.pi / 3
    position = np.stack([0.3 * np.cos(angle), 0.3 * np.sin(angle), 0.05 * np.ones(6)], -1)
    radial = np.stack([np.cos(angle), np.sin(angle), np.zeros(6)], -1)
    cant = np.radians(25) * np.array([1, -1, 1, -1, 1, -1])
    axis = np.array([0, 0, 1]) * np.cos(cant)[:, None] + np.cross(radial, [0, 0, 1]) * np.sin(cant)[:, None]
    spin = np.array([1.0, -1, 1, -1, 1, -1])
    rotors = Rotors.create((0,), position, axis, spin, K_F, K_M)
    bodies = Bodies.create(["hexa"], [MASS], [INERTIA], [com])
    return System(bodies, {"gravity": Gravity(), "rotors": rotors}, environment=Environment(9.81)), position, axis, spin


def mjcf(com, position, axis, spin):
    """Thrust T and reaction moment -spin k_M/k_F T along the rotor's axis, as a motor on a site."""
    J = INERTIA
    quat = [np.asarray(rotation.from_matrix(frame(a))) for a in axis]
    text = lambda v: " ".join(repr(float(x)) for x in v)  # noqa: E731
    sites = "".join(f'<site name="r{i}" pos="{text(p)}" quat="{text(q)}"/>' for i, (p, q) in enumerate(zip(position, quat, strict=True)))
    motors = "".join(f'<motor site="r{i}" gear="0 0 1 0 0 {float(-s * K_M / K_F)!r}"/>' for i, s in enumerate(spin))
    return f"""<mujoco><option timestep="{STEP}" integrator="RK4" gravity="0 0 -9.81"/><worldbody><body><freejoint/>
      <inertial pos="{text(com)}" mass="{MASS}" fullinertia="{text([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])}"/>
      {sites}</body></worldbody><actuator>{motors}</actuator></mujoco>"""


def frame(z):
    x = np.cross([0.3, 0.9, 0.1], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], -1)


@pytest.mark.parametrize("com", [(0.0, 0.0, 0.0), (0.03, -0.02, 0.04)])
def test_open_loop_flight_of_a_canted_hexarotor(com):
    system, position, axis, spin = hexarotor(com)
    speed = np.array([520.0, 540, 500, 530, 510, 545])
    v0, w0 = np.array([0.5, -0.3, 0.2]), np.array([0.4, -0.2, 0.6])
    state = system.initial_state(velocity=[v0], angular_velocity=[w0])
    run = simulate(system, Constant({"rotors": jnp.asarray(speed[None])}), None, state, duration=2.0, step=STEP, save_every=100)

    model = mujoco.MjModel.from_xml_string(mjcf(com, position, axis, spin))
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
