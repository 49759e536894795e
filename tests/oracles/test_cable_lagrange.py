"""arXiv 2305.09175's own coordinates: Euler-Lagrange equations of n vehicles, elastic links and a load, against the Cartesian chains.

The equations of arXiv 2305.09175 in z-down axes, with their misprints put right (``M_ij`` of the double sums is ``Mc_min(j,k)``, link
directions un-squared, signs of the length equation), solved densely for the 6 + 4 n m accelerations of load position, load rate, link
directions and link lengths.  Nothing is shared with the package.  Its axes follow by turning world and bodies by diag(1, -1, -1).
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skycrane.core.bodies import SecondOrder
from skycrane.core.system import System
from skycrane.elements.cables import Cables
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.loads.rigid import Rigid
from tests.cable_models import bodies_of, jit_once

G = 9.81
E3 = np.array([0.0, 0.0, 1.0])
TURN = np.diag([1.0, -1.0, -1.0])


def hat(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def accelerations(p, s):
    """Accelerations of the load, its rate, and of every joint (n, m+1, 3) from the vehicle to the attachment point; z down.

    ``p``: masses m_l, m_i (n,), m_ij (n, m), J_l, d (n, 3), K, b, L (n, m).  ``s``: R, W, q, w (n, m, 3), l, v (n, m), thrust u (n, 3).
    """
    n, m = p["m_ij"].shape
    R, W, q, w, l, v = (s[x] for x in ("R", "W", "q", "w", "l", "v"))  # noqa: E741
    size = 6 + 4 * n * m
    M, h = np.zeros((size, size)), np.zeros(size)
    at_w = lambda i, j: slice(6 + 3 * (i * m + j), 9 + 3 * (i * m + j))  # noqa: E731
    at_l = lambda i, j: 6 + 3 * n * m + i * m + j  # noqa: E731
    r_, W_ = slice(0, 3), slice(3, 6)
    Mc = p["m_i"][:, None] + np.cumsum(p["m_ij"], 1) - p["m_ij"]
    Mq = p["m_i"] + p["m_ij"].sum(1)
    total = p["m_l"] + Mq.sum()
    # The part of s'' without accelerations, s'' = l (-q^ w' - |w|^2 q) + 2 l' w x q + l'' q.
    free = -(l * (w**2).sum(-1))[..., None] * q + 2 * v[..., None] * np.cross(w, q)
    Jb = p["J_l"] - sum(Mq[i] * hat(d) @ hat(d) for i, d in enumerate(p["d"]))

    M[r_, r_] = total * np.eye(3)
    M[W_, W_] = Jb
    h[r_] = total * G * E3 + s["u"].sum(0)
    h[W_] = -hat(W) @ Jb @ W
    for i, d in enumerate(p["d"]):
        D = hat(d)
        swing = R @ hat(W) @ hat(W) @ d
        M[r_, W_] -= Mq[i] * R @ D
        M[W_, r_] += Mq[i] * D @ R.T
        h[r_] -= Mq[i] * swing
        h[W_] += D @ R.T @ (s["u"][i] + Mq[i] * G * E3)
        for j in range(m):
            Q, qj, wj, lj, c = hat(q[i, j]), q[i, j], at_w(i, j), at_l(i, j), Mc[i, j]
            M[r_, wj], M[r_, lj] = c * l[i, j] * Q, -c * qj
            M[W_, wj], M[W_, lj] = c * l[i, j] * D @ R.T @ Q, -c * D @ R.T @ qj
            h[r_] += c * free[i, j]
            h[W_] += D @ R.T @ (c * free[i, j])
            # Link direction and length, with A_i = r'' + R (W^2 d - d^ W').
            M[wj, r_], M[wj, W_] = -c * l[i, j] * Q, c * l[i, j] * Q @ R @ D
            M[lj, r_], M[lj, W_] = -c * qj, c * qj @ R @ D
            h[wj] = c * l[i, j] * Q @ (swing - G * E3) - 2 * c * l[i, j] * v[i, j] * w[i, j] - l[i, j] * Q @ s["u"][i]
            stretch = l[i, j] - p["L"][i, j]
            pull = max(0.0, p["K"][i, j] * stretch + p["b"][i, j] * v[i, j]) if stretch > 0 else 0.0
            h[lj] = c * qj @ (swing - G * E3) - pull - qj @ s["u"][i]
            for k in range(m):
                Mjk = Mc[i, min(j, k)]
                wk, lk, Qk = at_w(i, k), at_l(i, k), hat(q[i, k])
                M[wj, wk] = c * l[i, j] ** 2 * np.eye(3) if j == k else -Mjk * l[i, j] * l[i, k] * Q @ Qk
                M[wj, lk] = 0.0 if j == k else Mjk * l[i, j] * Q @ q[i, k]
                M[lj, wk], M[lj, lk] = -Mjk * l[i, k] * qj @ Qk, Mjk * qj @ q[i, k]
                if j != k:
                    h[wj] -= Mjk * l[i, j] * Q @ free[i, k]
                h[lj] -= Mjk * qj @ free[i, k]
    np.testing.assert_allclose(M, M.T, atol=1e-12 * np.abs(M).max())
    x = np.linalg.solve(M, h)
    joints = np.zeros((n, m + 1, 3))
    for i, d in enumerate(p["d"]):
        joints[i, m] = x[:3] + R @ (hat(W) @ hat(W) @ d - hat(d) @ x[3:6])
        for j in reversed(range(m)):
            second = free[i, j] - l[i, j] * hat(q[i, j]) @ x[at_w(i, j)] + x[at_l(i, j)] * q[i, j]
            joints[i, j] = joints[i, j + 1] - second
    return x[:3], x[3:6], joints


def random_case(rng, n, m):
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)  # noqa: E731
    a = rng.normal(size=(3, 3))
    p = {
        "m_l": rng.uniform(1, 3), "m_i": rng.uniform(0.5, 1, n), "m_ij": rng.uniform(0.01, 0.1, (n, m)), "J_l": a @ a.T + np.eye(3),
        "d": rng.normal(size=(n, 3)),
        "K": rng.uniform(1e3, 2e4, (n, m)), "b": rng.uniform(5, 20, (n, m)), "L": rng.uniform(0.3, 0.6, (n, m)),
    }  # fmt: skip
    q = unit(rng.normal(size=(n, m, 3)))
    w = np.cross(q, rng.normal(size=(n, m, 3)))
    s = {
        "R": Rotation.random(random_state=int(rng.integers(1000))).as_matrix(), "W": rng.normal(size=3), "q": q, "w": w,
        "l": p["L"] * rng.uniform(0.97, 1.03, (n, m)), "v": 3 * rng.normal(size=(n, m)), "u": 10 * rng.normal(size=(n, 3)),
        "r": rng.normal(size=3), "r'": rng.normal(size=3),
    }  # fmt: skip
    return p, s


def engine(p, s):
    """The package's system and state for the same numbers."""
    n, m = p["m_ij"].shape
    turned = lambda x: np.asarray(x) @ TURN  # noqa: E731
    d, R, W = turned(p["d"]), TURN @ s["R"] @ TURN, turned(s["W"])
    load = Rigid.create(p["m_l"], TURN @ p["J_l"] @ TURN).with_points(p["m_ij"][:, -1], d)
    quads = [Rigid.create(x, [0.01, 0.01, 0.02]) for x in p["m_i"]]
    step = turned(s["l"][..., None] * s["q"])
    rate = turned(s["v"][..., None] * s["q"] + s["l"][..., None] * np.cross(s["w"], s["q"]))
    ends = turned(s["r"]) + d @ R.T, turned(s["r'"]) + np.cross(W, d) @ R.T

    def joints(end, steps):  # (n, m+1, 3) from the vehicle down
        return np.concatenate([end[:, None] - np.cumsum(steps[:, ::-1], 1)[:, ::-1], end[:, None]], 1)

    places, speeds = joints(ends[0], step), joints(ends[1], rate)
    column = lambda x: jnp.asarray(x.T)  # noqa: E731
    nodes = SecondOrder(*(jnp.asarray(x[:, 1:-1].swapaxes(0, 1)) for x in (places, speeds)))
    cables = Cables(
        tuple(range(n)), (n,) * n, jnp.zeros((n, 3)), jnp.asarray(d), column(p["K"]), column(p["b"]), column(p["L"]),
        column(p["m_ij"][:, :-1]), nodes.position, jnp.ones((m, n)),
    )  # fmt: skip
    push = Push(tuple(range(n)), jnp.asarray(turned(s["u"])), jnp.zeros((n, 3)), jnp.zeros((n, 3)))
    names = [f"quad{i}" for i in range(n)] + ["load"]
    system = System(bodies_of(names, [*quads, load]), {"gravity": Gravity(), "cables": cables, "push": push})
    state = system.initial_state(
        np.vstack([places[:, 0], turned(s["r"])]),
        np.vstack([np.tile([1.0, 0, 0, 0], (n, 1)), Rotation.from_matrix(R).as_quat(scalar_first=True)]),
        np.vstack([speeds[:, 0], turned(s["r'"])]), np.vstack([np.zeros((n, 3)), W]), {"cables": {"nodes": nodes}},
    )  # fmt: skip
    return system, state


@pytest.mark.parametrize(("n", "m"), [(1, 5), (2, 1), (3, 2), (4, 5), (5, 3), (6, 2)])
def test_the_seeds_minimal_coordinates_give_the_same_accelerations(n, m):
    rng = np.random.default_rng(n)
    rates = jit_once(lambda system, state: system.dynamics(0.0, state, {}, system.prepare()))
    slack, taut = 0, 0
    for _ in range(6):
        p, s = random_case(rng, n, m)
        slack, taut = slack + (s["l"] <= p["L"]).sum(), taut + (s["l"] > p["L"]).sum()
        linear, angular, joints = (x @ TURN for x in accelerations(p, s))
        rate = rates(*engine(p, s))
        scale = max(np.abs(joints).max(), 1.0)
        found = np.concatenate([rate.bodies.v_W[:n, None], rate.memory["cables"]["nodes"].velocity.swapaxes(0, 1)], 1)
        np.testing.assert_allclose(found, joints[:, :-1], atol=1e-9 * scale)
        np.testing.assert_allclose(rate.bodies.v_W[n], linear, atol=1e-9 * scale)
        np.testing.assert_allclose(rate.bodies.w_B[n], angular, atol=1e-9 * scale)
    assert slack > 0
    assert taut > 0
