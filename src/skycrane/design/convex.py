"""Distance between two convex sets, with a certificate: the points that are that far apart, and a plane between them.

The algorithm of Gilbert, Johnson and Keerthi ("A fast procedure for computing the distance between complex objects in three-dimensional
space", IEEE J. Robotics Automation 4, 1988): with the support points ``s_A(d) = argmax {d . p : p in A}`` of both sets and the point v of
smallest norm in the simplex found so far in A - B,

    |v| >= distance >= v . (s_A(-v) - s_B(v)) / |v|

The right-hand side is the gap of a pair of parallel planes with A on one side and B on the other; whatever the arithmetic did before, it is
a lower bound because it is read off the sets' own support functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

ROUNDS = 200


class Convex(Protocol):
    """A convex set by its support points."""

    def support(self, direction: np.ndarray) -> np.ndarray:
        """The point (3,) of the set that is furthest along ``direction`` (3,)."""
        ...

    @property
    def centre(self) -> np.ndarray:
        """Some point (3,) of the set."""
        ...


@dataclass(frozen=True)
class Gap:
    """``upper``: distance [m] of the points ``first`` and ``second`` (3,), which belong to the sets; ``lower`` <= the true distance."""

    lower: float
    upper: float
    first: np.ndarray
    second: np.ndarray


def gap(a: Convex, b: Convex, tolerance: float = 1e-9, enough: float = np.inf, start: np.ndarray | None = None) -> Gap:
    """Bounds of the distance between two sets, no further apart than ``tolerance`` [m] (0 where they meet).

    Stops early once ``lower >= enough``: all that a caller who looks for something nearer needs to know.
    """
    v = a.centre - b.centre if start is None else start
    simplex: list[tuple[np.ndarray, np.ndarray]] = []
    lower, upper, at = 0.0, np.inf, (a.centre, b.centre)
    for _ in range(ROUNDS):
        size = float(np.linalg.norm(v))
        if size <= tolerance:
            return Gap(lower, min(size, upper), *at)
        p, q = a.support(-v), b.support(v)
        lower = max(lower, float(v @ (p - q)) / size)
        if lower >= enough or upper - lower <= tolerance:
            break
        simplex.append((p, q))
        simplex, v, at = _smallest(simplex)
        size = float(np.linalg.norm(v))
        if size >= upper - 1e-16:  # rounding: no progress any more
            break
        upper = size
    return Gap(lower, float(np.linalg.norm(at[0] - at[1])), *at)


def _smallest(pairs: list[tuple[np.ndarray, np.ndarray]]):
    """Of up to four points p - q the subset whose hull holds the point of smallest norm, that point, and its two parents."""
    differences = np.array([p - q for p, q in pairs])
    chosen: tuple[int, ...]
    best, chosen, weights = np.inf, (len(pairs) - 1,), np.ones(1)
    for size in range(1, len(pairs) + 1):
        for subset in combinations(range(len(pairs)), size):
            w = _weights(differences[list(subset)])
            if w is None:
                continue
            norm = float(np.linalg.norm(w @ differences[list(subset)]))
            if norm < best - 1e-16:
                best, chosen, weights = norm, subset, w
    kept = [pairs[k] for k in chosen][:4]
    first = weights @ np.array([p for p, _ in kept])
    second = weights @ np.array([q for _, q in kept])
    if len(kept) == 4:  # the origin lies inside: they meet
        return kept, 0.0 * (first - second), (first, second)
    return kept, first - second, (first, second)


def _weights(points: np.ndarray) -> np.ndarray | None:
    """Barycentric coordinates of the point of smallest norm in the affine hull of up to four points, None where it is not in their hull."""
    if len(points) == 1:
        return np.ones(1)
    edges = points[1:] - points[0]
    gram = edges @ edges.T
    scale = np.trace(gram)
    if scale <= 0 or np.linalg.det(gram / scale) < 1e-18:
        return None
    try:
        inner = np.linalg.solve(gram, -edges @ points[0])
    except np.linalg.LinAlgError:  # singular to the last bit
        return None
    weights = np.concatenate([[1 - inner.sum()], inner])
    return weights if (weights >= 0).all() else None
