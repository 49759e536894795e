"""MuJoCo: ``single`` (mj_step in C over many steps), ``batch:N`` (mujoco.rollout on two threads), and a lift on spatial tendons: ``lift``
(RK4, 0.4 ms), ``lift_euler`` (0.2 ms, 5 s, the fastest of its methods within 1 mm) and ``lifts:N`` (rollout of that, in
simulated seconds)."""

import itertools

import mujoco
import numpy as np
from mujoco import rollout
from protocol import serve

MASS, INERTIA, K_F, K_M, ARM = 0.5, (3.65e-3, 3.68e-3, 7.03e-3), 5.57e-6, 1.36e-7, 0.17 * 0.5**0.5
PLACES = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
SPINS = (1, -1, 1, -1)
SPEED = np.sqrt(MASS * 9.81 / 4 / K_F) * np.array([1.01, 1.0, 1.0, 1.01])


def quadrotor():
    sites = "".join(f'<site name="r{i}" pos="{x * ARM} {y * ARM} 0"/>' for i, (x, y) in enumerate(PLACES))
    motors = "".join(f'<motor site="r{i}" gear="0 0 1 0 0 {-s * K_M / K_F}"/>' for i, s in enumerate(SPINS))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.002" integrator="RK4" density="1.2"><flag contact="disable"/></option><worldbody><body><freejoint/>'
        f'<inertial pos="0 0 0" mass="{MASS}" diaginertia="{INERTIA[0]} {INERTIA[1]} {INERTIA[2]}"/>{sites}</body></worldbody>'
        f"<actuator>{motors}</actuator></mujoco>"
    )


def lift(integrator, step):
    """Four quadrotors, a box of 2 kg, four cables of five springs between points of 10 g; thrust that holds everything up."""
    bodies, tendons, motors = "", "", ""
    corners = [(0.3, 0.2, 0.05), (-0.3, 0.2, 0.05), (-0.3, -0.2, 0.05), (0.3, -0.2, 0.05)]
    hooks = "".join(f'<site name="h{i}" pos="{x} {y} {z}"/>' for i, (x, y, z) in enumerate(corners))
    bodies += f'<body pos="0 0 2"><freejoint/><inertial pos="0 0 0" mass="2" diaginertia="0.03 0.06 0.08"/>{hooks}</body>'
    for i, (x, y, z) in enumerate(corners):
        for k in range(1, 5):
            slide = "".join(f'<joint type="slide" axis="{a}"/>' for a in ("1 0 0", "0 1 0", "0 0 1"))
            mass = '<inertial pos="0 0 0" mass="0.01" diaginertia="1e-6 1e-6 1e-6"/>'
            bodies += f'<body pos="{x} {y} {2 + z + 0.1 * k}">{slide}{mass}<site name="n{i}_{k}"/></body>'
        inertial = '<inertial pos="0 0 0" mass="0.5" diaginertia="0.00365 0.00368 0.00703"/>'
        bodies += f'<body pos="{x} {y} {2.5 + z}"><freejoint/>{inertial}<site name="u{i}"/></body>'
        motors += f'<motor site="u{i}" gear="0 0 1 0 0 0"/>'
        chain = [f"h{i}", *(f"n{i}_{k}" for k in range(1, 5)), f"u{i}"]
        for a, b in itertools.pairwise(chain):
            tendons += f'<spatial stiffness="20000" damping="20" springlength="0 0.1"><site site="{a}"/><site site="{b}"/></spatial>'
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{step}" integrator="{integrator}"><flag contact="disable"/></option><worldbody>{bodies}</worldbody>'
        f"<tendon>{tendons}</tendon><actuator>{motors}</actuator></mujoco>"
    )


def build(task):
    kind, _, count = task.partition(":")
    of_lift = kind.startswith("lift")
    model = lift(*("Euler", 2e-4) if kind in ("lift_euler", "lifts") else ("RK4", 4e-4)) if of_lift else quadrotor()
    data = mujoco.MjData(model)
    control = np.full(4, (4 * 0.5 + 2 + 16 * 0.01) * 9.81 / 4) if of_lift else K_F * SPEED**2
    data.ctrl[:] = control
    if of_lift:
        data.qvel[:2] = 0.5, 0.3
    if count:
        n = int(count)
        steps = 25 if of_lift else max(5, 60_000 // n)
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        state = np.zeros(size)
        mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        states, controls = np.tile(state, (n, 1)), np.tile(control, (n, steps, 1))
        datas, out = [mujoco.MjData(model) for _ in range(2)], np.empty((n, steps, size))
        pool = rollout.Rollout(nthread=2)

        def roll():
            pool.rollout(model, datas, states, controls, state=out)

        return roll, n * steps * (2e-4 if of_lift else 1)
    steps = {"lift": 500, "lift_euler": 25_000}.get(kind, 5000)
    start = data.qpos.copy(), data.qvel.copy()

    def work():
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = start
        data.ctrl[:] = control
        mujoco.mj_step(model, data, nstep=steps)
        if not np.isfinite(data.qpos).all():
            raise RuntimeError("MuJoCo's state is not finite")
        return data.qpos[:3].tolist()

    return work, steps


serve(build)
