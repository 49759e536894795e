"""Archimedes: ``adaptive:RTOL``, its integrator (CVODES, built once and used again), 10 s of the quadrotor on a grid of 2 ms."""

import archimedes as arc
import numpy as np
from protocol import serve

MASS, INERTIA, K_F, K_M, ARM = 0.5, (3.65e-3, 3.68e-3, 7.03e-3), 5.57e-6, 1.36e-7, 0.17 * 0.5**0.5
DRAG, GRAVITY = tuple(0.5 * 1.225 * area for area in (0.010, 0.012, 0.020)), 9.81
SPEED = np.sqrt(MASS * GRAVITY / 4 / K_F) * np.array([1.01, 1.0, 1.0, 1.01])
START = np.array([0, 0, 0, 1, 0, 0, 0, 1.0, 0.5, 0, 0.1, 0.2, 0.3])


def rate(t, s, speed):
    w, x, y, z = s[3], s[4], s[5], s[6]
    v, r = s[7:10], s[10:13]
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    R = np.array(rows, like=s)
    thrust = K_F * speed**2
    moment = (
        ARM * (thrust[0] + thrust[1] - thrust[2] - thrust[3]),
        ARM * (-thrust[0] + thrust[1] + thrust[2] - thrust[3]),
        -K_M / K_F * (thrust[0] - thrust[1] + thrust[2] - thrust[3]),
    )
    v_B = R.T @ v
    length = np.sqrt(v_B[0] ** 2 + v_B[1] ** 2 + v_B[2] ** 2 + 1e-30)
    force = [-length * DRAG[0] * v_B[0], -length * DRAG[1] * v_B[1], sum(thrust[i] for i in range(4)) - length * DRAG[2] * v_B[2]]
    a = R @ np.array(force, like=s) / MASS
    A, B, C = INERTIA
    turn = [
        (moment[0] - (C - B) * r[1] * r[2]) / A,
        (moment[1] - (A - C) * r[0] * r[2]) / B,
        (moment[2] - (B - A) * r[0] * r[1]) / C,
    ]
    half = [
        0.5 * (-x * r[0] - y * r[1] - z * r[2]),
        0.5 * (w * r[0] + y * r[2] - z * r[1]),
        0.5 * (w * r[1] - x * r[2] + z * r[0]),
        0.5 * (w * r[2] + x * r[1] - y * r[0]),
    ]
    return np.array([v[0], v[1], v[2], *half, a[0], a[1], a[2] - GRAVITY, *turn], like=s)


def build(task):
    rtol = float(task.partition(":")[2])
    fly = arc.integrator(rate, t_eval=np.linspace(0.0, 10.0, 5001), rtol=rtol, atol=1e-2 * rtol)
    return lambda: np.asarray(fly(START, SPEED))[:3, -1].tolist(), 10.0


serve(build)
