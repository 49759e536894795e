"""Static shape of cables between fixed ends.

The nodes minimise the potential energy

    V(x) = sum_j 1/2 k_j max(0, |x_j - x_(j-1)| - L_j)^2 + sum_i m_i g z_i  (+ 1/2 m_i w^2 depth_i^2 on the ground)

which is convex: its only minimum is the hanging chain, found by Newton's method with the damping of Nielsen (1999, "Damping parameter in
Marquardt's method", eq. 2.4), (H + d I) s = -V' with d smaller the better the quadratic model predicts what a step gains; where that is
slow (long slack ropes), by a trust-region Newton method (scipy).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax
from jax.tree_util import tree_map

from skycrane.math.checks import concrete


def hanging_nodes(
    upper_W: Any,
    lower_W: Any,
    length: Any,
    stiffness: Any,
    node_mass: Any,
    gravity: float,
    ground: tuple[float, Any] | None = None,
) -> np.ndarray:
    """Places (m-1, k, 3) m of the inner nodes at rest, world axes.

    ``upper_W``, ``lower_W`` (k, 3) m; ``length``, ``stiffness`` (m, k); ``node_mass`` (m-1, k); ``ground`` height [m] and rate [1/s] of
    its bed. Numbers that a transformation traces count by their present value: the shape is a start, not a part of the model.
    """
    given = tree_map(lax.stop_gradient, (upper_W, lower_W, length, stiffness, node_mass))
    if not concrete(given):
        raise ValueError("the hanging shape needs known numbers: build the cables outside jit, vmap and grad, and replace leaves inside")
    top, bottom, L, k, m = (np.asarray(x, dtype=float) for x in given)
    if len(m) == 0:
        return np.zeros((0, len(top), 3))
    return np.stack([_one(top[i], bottom[i], L[:, i], k[:, i], m[:, i], gravity, ground) for i in range(len(top))], axis=1)


def _one(top, bottom, L, k, m, gravity, ground) -> np.ndarray:
    n = len(m)
    # Sizes of order one: lengths by the rope's, energy by its weight's.
    scale = L.sum()
    unit = max(m.sum() * gravity, 1e-6) * scale

    def parts(x):
        points = np.vstack([top, x.reshape(n, 3) * scale, bottom])
        d = np.diff(points, axis=0)
        l = np.linalg.norm(d, axis=1)  # noqa: E741
        e = d / np.maximum(l, 1e-12)[:, None]
        return points[1:-1, 2], e, l, np.maximum(l - L, 0.0)

    def depth_of(z):
        return np.maximum(float(ground[0]) - z, 0.0) if ground is not None else np.zeros(n)

    bed = m * float(ground[1]) ** 2 if ground is not None else np.zeros(n)

    def energy(x):
        z, _, _, stretch = parts(x)
        return ((0.5 * k * stretch**2).sum() + (m * gravity * z).sum() + (0.5 * bed * depth_of(z) ** 2).sum()) / unit

    def gradient(x):
        z, e, _, stretch = parts(x)
        pull = (k * stretch)[:, None] * e
        g = pull[:-1] - pull[1:]
        g[:, 2] += m * gravity - bed * depth_of(z)
        return g.ravel() * scale / unit

    def hessian(x):
        z, e, l, stretch = parts(x)  # noqa: E741
        H = np.zeros((n, 3, n, 3))
        for j in range(n + 1):
            along = np.outer(e[j], e[j])
            swing = k[j] * stretch[j] / max(l[j], 1e-12)
            block = (k[j] if stretch[j] > 0 else 0.0) * along + swing * (np.eye(3) - along)
            for a, b, sign in ((j - 1, j - 1, 1), (j, j, 1), (j - 1, j, -1), (j, j - 1, -1)):
                if 0 <= a < n and 0 <= b < n:
                    H[a, :, b, :] += sign * block
        for i in range(n):
            H[i, 2, i, 2] += bed[i] * (depth_of(z)[i] > 0)
        return H.reshape(3 * n, 3 * n) * scale**2 / unit

    start = (_start(top, bottom, L) / scale).ravel()
    found = _minimum(energy, gradient, hessian, start)
    if found is None:
        from scipy import optimize  # a third of a second: only where it is needed

        found = optimize.minimize(
            energy, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-10, "maxiter": 2000}
        ).x
    return found.reshape(n, 3) * scale


def _minimum(energy, gradient, hessian, x: np.ndarray, tolerance: float = 1e-10, steps: int = 60) -> np.ndarray | None:
    """Where a convex energy has a gradient shorter than ``tolerance``; None where that takes more steps."""
    V, g, H = energy(x), gradient(x), hessian(x)
    damping, growth = 1e-6 * np.trace(H) / len(x), 2.0
    for _ in range(steps):
        if np.linalg.norm(g) < tolerance:
            return x
        step = -np.linalg.solve(H + max(damping, 1e-14 * np.trace(H)) * np.eye(len(x)), g)
        expected = -g @ step - 0.5 * step @ H @ step
        new = energy(x + step)
        gain = (V - new) / expected if expected > 1e-15 * abs(V) else 1.0  # smaller is below what the energy can tell
        if gain > 0:
            x, V = x + step, new
            g, H = gradient(x), hessian(x)
            damping, growth = damping * max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3), 2.0
        else:
            damping, growth = damping * growth, 2.0 * growth
    return None


def _start(top, bottom, L) -> np.ndarray:
    """A parabola of about the right length below the straight line."""
    s = np.cumsum(L)[:-1] / L.sum()
    chord = np.linalg.norm(bottom - top)
    slack = max(L.sum() - chord, 0.0)
    sag = np.sqrt(3.0 / 8.0 * slack * max(chord, 0.05 * L.sum()))
    line = top + s[:, None] * (bottom - top)
    line[:, 2] -= 4.0 * max(sag, 0.45 * slack) * s * (1 - s)
    return line
