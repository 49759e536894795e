"""Back to where every constraint holds: the least change of a point, again and again (Newton's method for equations and inequalities).

At a point x with equations c(x) = 0 and inequalities d(x) >= 0 the step is that of a least distance problem,

    min |s|^2   subject to   c + C s = 0,   d + D s >= spare,   low <= x + s <= high.

C. L. Lawson and R. J. Hanson, "Solving least squares problems" (1974), chapter 23: the equations are taken out by an orthogonal
factorisation, ``s = s0 + Z y``; what is left, ``min |y|`` subject to ``G y >= h``, is found from non-negative least squares,

    u >= 0 of the least |E u - f|,   E = [G^T ; h^T],   f = (0, .., 0, 1),   r = E u - f,   y = -r_1..n / r_n+1,

and where r = 0 the inequalities contradict each other: then the step is that of a linear programme,

    min t   subject to   c + C s = 0,   d + D s >= spare - t,   low <= x + s <= high,   |s_i| <= reach,

towards the point where the worst inequality is missed least.  Because ``spare`` is asked for beyond each inequality, what a step leaves
of it, by curvature or by a kink, does not matter.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog, nnls


def least_change(
    equal: np.ndarray,
    equal_jacobian: np.ndarray,
    least: np.ndarray,
    least_jacobian: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    wish: np.ndarray | None = None,
) -> np.ndarray | None:
    """The step s nearest to ``wish`` (0 by default) with ``equal + C s = 0``, ``least + D s >= 0``, ``low <= s <= high``.

    None where there is none.
    Equations that depend on each other are met in the sense of least squares.
    """
    n = len(low)
    free = high > low
    moved = np.where(free, 0.0, np.nan_to_num(low))
    left, sizes, right = np.linalg.svd(equal_jacobian[:, free], full_matrices=True)
    rank = int((sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300)).sum())
    rest = equal + equal_jacobian @ moved
    start = moved.copy()
    start[free] = -right[:rank].T @ ((left[:, :rank].T @ rest) / sizes[:rank])
    Z = right[rank:].T
    if wish is not None:
        start[free] += Z @ (Z.T @ wish[free])
    below, above = free & np.isfinite(low), free & np.isfinite(high)
    eye = np.eye(n)[:, free]
    G = np.concatenate([least_jacobian[:, free] @ Z, eye[below] @ Z, -eye[above] @ Z])
    h = -np.concatenate([least + least_jacobian @ start, (start - low)[below], (high - start)[above]])
    if not np.isfinite(G).all() or not np.isfinite(h).all():
        return None
    if (h <= 0).all():
        return start
    size = np.maximum(np.linalg.norm(G, axis=1), 1e-12)
    G, h = G / size[:, None], h / size
    E = np.concatenate([G.T, h[None]])
    f = np.zeros(len(E))
    f[-1] = 1.0
    try:
        u, _ = nnls(E, f, maxiter=10 * E.shape[1])
    except RuntimeError:  # it went round in circles
        return None
    r = E @ u - f
    if not -r[-1] > 1e-10:
        return None
    y = -r[:-1] / r[-1]
    step = start
    step[free] += Z @ y
    return step


def least_miss(
    equal: np.ndarray,
    equal_jacobian: np.ndarray,
    least: np.ndarray,
    least_jacobian: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    reach: float,
) -> np.ndarray | None:
    """The step no longer than ``reach`` in any unknown after which the worst row of ``least`` is missed least; equations count tenfold."""
    n, m, k = len(low), len(equal), len(least)
    # Unknowns s, t, and what each equation is off, both ways.
    found = linprog(
        np.r_[np.zeros(n), 1.0, np.full(2 * m, 10.0)],
        A_ub=np.hstack([-least_jacobian, -np.ones((k, 1)), np.zeros((k, 2 * m))]), b_ub=least,
        A_eq=np.hstack([equal_jacobian, np.zeros((m, 1)), np.eye(m), -np.eye(m)]), b_eq=-equal,
        bounds=[*zip(np.clip(low, -reach, 0.0), np.clip(high, 0.0, reach), strict=True), *[(0.0, None)] * (1 + 2 * m)],
    )  # fmt: skip
    return found.x[:n] if found.status == 0 else None
