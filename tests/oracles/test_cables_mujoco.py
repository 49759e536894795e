"""MuJoCo's spatial tendons as cables: a swinging chain with slack, and a load on three cables.

A tendon with ``springlength="0 L"`` has a spring beyond L only, as a segment here; its damper also acts when slack, so damping is used
where all segments stay taut.  Nodes are point masses on three slide joints.  Both sides integrate with the classical Runge-Kutta method
at the same step, so that they agree far better than either agrees with the truth: 1e-8 m over seconds of taut swinging, rounding and the
different form of attitude steps; 2e-5 m where segments go slack, since a step that meets the kink a rounding earlier or later differs.
"""

import mujoco
import numpy as np
import pytest

from skycrane.simulation.integrators import RK4
from tests.cable_models import QUAD, SEED_ROPE, advance, hover_height, hung, lift, lift_start

STEP = 2e-4


def model_of(bodies, world_points, cables):
    """``bodies``: name -> (position, mass, inertia or None for a point, {site: place}); ``cables``: (site, site, k, c, L)."""
    xml = [f'<mujoco><option timestep="{STEP}" integrator="RK4" gravity="0 0 -9.81"><flag contact="disable"/></option><worldbody>']
    text = lambda v: " ".join(repr(float(x)) for x in np.ravel(v))  # noqa: E731
    xml += [f'<site name="{n}" pos="{text(p)}"/>' for n, p in world_points.items()]
    for name, (position, mass, inertia, sites) in bodies.items():
        axes = ("1 0 0", "0 1 0", "0 0 1")
        joints = "<freejoint/>" if inertia is not None else "".join(f'<joint type="slide" axis="{a}"/>' for a in axes)
        diagonal = text(np.full(3, 1e-6) if inertia is None else inertia)
        xml.append(
            f'<body name="{name}" pos="{text(position)}">{joints}<inertial pos="0 0 0" mass="{float(mass)!r}" diaginertia="{diagonal}"/>'
        )
        xml += [f'<site name="{n}" pos="{text(p)}"/>' for n, p in sites.items()] + ["</body>"]
    xml.append("</worldbody><tendon>")
    for a, b, k, c, L in cables:
        numbers = f'stiffness="{float(k)!r}" damping="{float(c)!r}" springlength="0 {float(L)!r}"'
        xml.append(f'<spatial {numbers}><site site="{a}"/><site site="{b}"/></spatial>')
    return mujoco.MjModel.from_xml_string("".join(xml) + "</tendon></mujoco>")


@pytest.mark.parametrize(("spread", "damping", "atol"), [(1.0, 2.0, 1e-8), (0.8, 0.0, 2e-5)], ids=["taut", "slack"])
def test_swinging_chain(spread, damping, atol):
    """A ball on four segments, let go from aside; with ``spread`` below 1 from within reach, so that it falls into the chain."""
    m, L, k, node, ball = 4, 0.5, 1500.0, 0.1, 0.4
    points = np.linspace(0, 1, m + 1)[:, None] * np.array([0.6, 0.0, -0.8]) * m * L * spread * (1 + 1e-3)
    system = hung(points, ball, stiffness=k, damping=damping, length=L, node_mass=node)
    state = system.initial_state([points[-1]], velocity=[[0.0, 0.7, 0.0]])
    bodies = {f"n{i}": (points[i], node, None, {f"s{i}": np.zeros(3)}) for i in range(1, m)}
    bodies["ball"] = (points[m], ball, [0.01] * 3, {f"s{m}": np.zeros(3)})
    model = model_of(bodies, {"s0": points[0]}, [(f"s{i}", f"s{i + 1}", k, damping, L) for i in range(m)])
    data = mujoco.MjData(model)
    data.qvel[3 * (m - 1) : 3 * (m - 1) + 3] = [0.0, 0.7, 0.0]
    shortest = np.inf
    for _ in range(10):
        state = advance(RK4(), system, state, STEP, 250)
        for _ in range(250):
            mujoco.mj_step(model, data)
            shortest = min(shortest, data.ten_length.min())
        np.testing.assert_allclose(state.bodies.p_WB[0], data.body("ball").xpos, atol=atol)
        nodes = np.array([data.body(f"n{i}").xpos for i in range(1, m)])
        np.testing.assert_allclose(state.memory["cables"]["nodes"].position[:, 0], nodes, atol=10 * atol)
    assert (shortest < L) == (spread < 1)


def test_a_load_on_cables():
    """arXiv 2305.09175's rope, three vehicles, a swinging box; thrusts are constant."""
    points = np.array([[0.6, 0.0, 0.1], [-0.3, 0.5, 0.1], [-0.3, -0.5, 0.1]])
    system = lift(points=points)
    state = lift_start(system)
    n, m, height = 3, SEED_ROPE.segments, hover_height(system)
    top = points + np.array([0, 0, height])
    nodes = np.asarray(system.elements["cables"].nodes)
    bodies = {f"quad{i}": (top[i], QUAD.mass, np.diag(QUAD.inertia_B), {f"s{i}_0": np.zeros(3)}) for i in range(n)}
    inertia = np.asarray(system.bodies.inertia_B[n])
    com = np.asarray(system.bodies.com_B[n])
    for i in range(n):
        for j in range(1, m):
            bodies[f"n{i}_{j}"] = (nodes[j - 1, i], SEED_ROPE.segment_mass, None, {f"s{i}_{j}": np.zeros(3)})
    values, axes = np.linalg.eigh(inertia)
    axes = axes * np.sign(np.linalg.det(axes))
    # The body frame of MuJoCo sits at the centre of mass, along the principal axes.
    bodies["load"] = (com, system.bodies.mass[n], values, {f"s{i}_{m}": axes.T @ (points[i] - com) for i in range(n)})
    cables = [(f"s{i}_{j}", f"s{i}_{j + 1}", SEED_ROPE.segment_stiffness, SEED_ROPE.damping, 0.5) for i in range(n) for j in range(m)]
    model = model_of(bodies, {}, cables)
    data = mujoco.MjData(model)
    load = model.body("load")
    address = model.jnt_qposadr[load.jntadr[0]]
    mujoco.mju_mat2Quat(data.qpos[address + 3 : address + 7], axes.ravel())
    data.qvel[model.jnt_dofadr[load.jntadr[0]] :][:3] = [0.5, 0.3, 0.0]
    for i in range(n):
        data.xfrc_applied[model.body(f"quad{i}").id, :3] = np.asarray(system.elements["push"].force_W[i])
    for _ in range(5):
        state = advance(RK4(), system, state, STEP, 500)
        mujoco.mj_step(model, data, nstep=500)
        b = state.bodies
        R = np.reshape(data.body("load").xmat, (3, 3)) @ axes.T
        np.testing.assert_allclose(b.p_WB[n], data.body("load").xpos - R @ com, atol=1e-8)
        for i in range(n):
            np.testing.assert_allclose(b.p_WB[i], data.body(f"quad{i}").xpos, atol=1e-8)
