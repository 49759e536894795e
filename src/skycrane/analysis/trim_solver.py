"""Bounded nonlinear equations with more unknowns than equations: find a solution, then the one of least cost.

1. From a start, bounded nonlinear least squares with exact Jacobians (trust-region reflective: Branch, Coleman and Li, SIAM J. Sci.
   Comput. 21, 1999), then Gauss-Newton steps of smallest norm over the unknowns that are within their bounds, which end at rounding level.
2. Among all solutions, sequential quadratic programming on the cost.  Equations that depend on each other are first replaced by the
   independent combinations U^T r of the singular value decomposition J = U S V^T, since the quadratic programme needs independent rows.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares, minimize

from skycrane.analysis.trim_problem import Problem, evaluate, evaluate_cost

SOLVED = 1e-9  # dimensionless residual below which equations count as solved
RANK = 1e-8  # singular values below this part of the largest count as zero


class _Equations:
    """Residual and Jacobian over the unknowns that are not fixed, each evaluated once."""

    def __init__(self, problem: Problem, z: np.ndarray, low: np.ndarray, high: np.ndarray):
        self.problem, self.base = problem, np.array(z, float)
        self.free = np.flatnonzero(high > low)
        self.low, self.high = low[self.free], high[self.free]
        fixed = np.setdiff1d(np.arange(len(z)), self.free)
        self.base[fixed] = low[fixed]
        self._last: tuple[bytes, np.ndarray, np.ndarray] | None = None

    def full(self, x: np.ndarray) -> np.ndarray:
        z = self.base.copy()
        z[self.free] = x
        return z

    def both(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = np.asarray(x, float).tobytes()
        if self._last is None or self._last[0] != key:
            r, J = evaluate(self.problem, jnp.asarray(self.full(x)))
            self._last = (key, np.asarray(r), np.asarray(J)[:, self.free])
        return self._last[1], self._last[2]

    def cost(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evaluate_cost(self.problem, jnp.asarray(self.full(x)))
        return float(value), np.asarray(gradient)[self.free]

    def clip(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, self.low, self.high)


def solve(problem: Problem, z: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, float]:
    """A solution near a start, or the least residual there.

    Args:
        z: start; low, high: bounds, equal where the unknown is fixed.

    Returns:
        The unknowns, and the largest residual (below ``SOLVED`` for a solution).
    """
    eq = _Equations(problem, z, low, high)
    if not len(eq.free):
        return eq.full(np.zeros(0)), float(np.abs(eq.both(np.zeros(0))[0]).max())
    # The method moves strictly between the bounds.
    room = np.where(np.isfinite(eq.high - eq.low), eq.high - eq.low, 1.0)
    x = np.clip(z[eq.free], eq.low + 1e-3 * room, eq.high - 1e-3 * room)
    found = least_squares(
        lambda x: eq.both(x)[0], x, lambda x: eq.both(x)[1], bounds=(eq.low, eq.high), ftol=1e-14, xtol=1e-14, gtol=1e-14, max_nfev=150
    )  # fmt: skip
    x = _polish(eq, found.x) if np.abs(found.fun).max() < 1e-2 else found.x
    return eq.full(x), float(np.abs(eq.both(x)[0]).max())


def _polish(eq: _Equations, x: np.ndarray, steps: int = 12) -> np.ndarray:
    """Gauss-Newton steps of smallest norm; unknowns at a bound that a step would cross stay there.  Never ends worse than it began."""
    best, least = x, np.abs(eq.both(x)[0]).max()
    for _ in range(steps):
        r, J = eq.both(x)
        held = np.zeros(len(x), bool)
        for _ in range(len(x)):
            step = np.zeros(len(x))
            step[~held] = -np.linalg.lstsq(J[:, ~held], r, rcond=RANK)[0]
            crossing = ((x <= eq.low) & (step < 0) | (x >= eq.high) & (step > 0)) & ~held
            if not crossing.any():
                break
            held |= crossing
        x = eq.clip(x + step)
        size = np.abs(eq.both(x)[0]).max()
        if size < least:
            best, least = x, size
        if size < 1e-15 or size > 10 * least:
            break
    return best


def choose(problem: Problem, z: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The solution of least cost that can be reached from a solution; the solution itself where it is the only one."""
    better, finished = _descend(problem, z, low, high)
    if not finished:
        # A bound that the equations force an unknown onto can look incompatible with them by a rounding error: hold it there.
        held = (better <= low) | (better >= high)
        better, _ = _descend(problem, better, np.where(held, better, low), np.where(held, better, high))
    return _sharpen(problem, better, low, high)


def _sharpen(problem: Problem, z: np.ndarray, low: np.ndarray, high: np.ndarray, steps: int = 4) -> np.ndarray:
    """Newton steps to the minimum of the cost on the null space of the equations, with the unknowns at bounds held.

    The curvature is that of the Lagrange function ``f - y . r``, by differences of its exact gradient along the null space.
    """
    held = (z <= low) | (z >= high)
    eq = _Equations(problem, z, np.where(held, z, low), np.where(held, z, high))
    x = z[eq.free]
    for _ in range(steps):
        f, gradient = eq.cost(x)
        J = eq.both(x)[1]
        _, sizes, vh = np.linalg.svd(J)
        Z = vh[int((sizes > RANK * sizes.max(initial=0.0)).sum()) :].T
        if not Z.shape[1]:
            break
        y = np.linalg.lstsq(J.T, gradient, rcond=RANK)[0]
        slope = lambda x, y=y: eq.cost(x)[1] - eq.both(x)[1].T @ y  # noqa: E731
        h = 1e-6
        curvature = np.stack([Z.T @ (slope(x + h * v) - slope(x - h * v)) / (2 * h) for v in Z.T], 1)
        values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
        curved = values > 1e-6 * np.abs(values).max(initial=0.0)  # flat or falling directions are left alone
        step = -Z @ (vectors[:, curved] @ ((vectors[:, curved].T @ (Z.T @ slope(x))) / values[curved]))
        better = _polish(eq, eq.clip(x + step))
        if np.abs(eq.both(better)[0]).max() > SOLVED or eq.cost(better)[0] > f + 1e-14 * abs(f):
            break
        moved, x = np.abs(better - x).max(), better
        if moved < 1e-12:
            break
    return eq.full(x)


def _descend(problem: Problem, z: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, bool]:
    """One run of the quadratic programming; the start itself where that found nothing better, and whether it ended as it should."""
    eq = _Equations(problem, z, low, high)
    x = z[eq.free]
    J = eq.both(x)[1]
    left, sizes, _ = np.linalg.svd(J, full_matrices=False)
    rank = int((sizes > RANK * sizes[0]).sum()) if len(sizes) else 0
    if rank == len(x):
        return z, True
    rows = left[:, :rank].T
    bounds = [(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(eq.low, eq.high, strict=True)]
    found = minimize(
        eq.cost, x, jac=True, method="SLSQP", bounds=bounds,
        constraints={"type": "eq", "fun": lambda x: rows @ eq.both(x)[0], "jac": lambda x: rows @ eq.both(x)[1]},
        options={"maxiter": 300, "ftol": 1e-13},
    )  # fmt: skip
    if not np.isfinite(found.x).all():
        return z, False
    better = _polish(eq, eq.clip(found.x))
    good = np.abs(eq.both(better)[0]).max() < SOLVED and eq.cost(better)[0] <= eq.cost(x)[0]
    return (eq.full(better) if good else z), found.status == 0
