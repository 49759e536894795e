"""Zonotopes: all sums of given vectors with bounded weights, ``Z = {M x : lower <= x <= upper}``, and their sections, exactly.

With the generators g_i = M_i (upper_i - lower_i)/2 and the centre c = M (upper + lower)/2 the support function is

    h(a) = max {a . w : w in Z} = a . c + sum_i |a . g_i|

and every facet of a zonotope of dimension r is orthogonal to r - 1 independent generators (McMullen, "On zonotopes", Trans. AMS 159,
1971), so the half-spaces ``a . w <= h(a)`` for the normals a of all (r-1)-subsets, both signs, are the set.  A half-space with its
support as offset contains Z whatever its normal is: subsets that are not independent, or normals that are slightly off, add redundant
half-spaces and never a wrong one.  A section with a flat ``w0 + E x`` then has the half-spaces ``E^T a . x <= h(a) - a . w0``; the
largest ball around x = 0 in it has the radius

    min over the half-spaces of (h(a) - a . w0) / |E^T a|,

exact again, because redundant half-spaces contain the ball too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

MOST_SUBSETS = 2_000_000
FLAT = 1e-9  # relative size below which a direction does not belong to the set


@dataclass(frozen=True)
class Zonotope:
    """``matrix`` (d, n), ``lower`` and ``upper`` (n,).  ``scale`` (d,): typical sizes of the rows, where their units differ."""

    matrix: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray = field(default_factory=lambda: np.ones(0))

    def __post_init__(self):
        if not (np.isfinite(self.lower).all() and np.isfinite(self.upper).all()):
            raise ValueError("a zonotope needs finite bounds")
        if (self.upper < self.lower).any():
            raise ValueError("a zonotope needs lower <= upper")

    @cached_property
    def center(self) -> np.ndarray:
        return self.matrix @ (0.5 * (self.lower + self.upper))

    @cached_property
    def _generators(self) -> np.ndarray:
        """Scaled generators (d, k), parallel ones merged."""
        scale = self.scale if len(self.scale) else np.ones(len(self.matrix))
        g = self.matrix * (0.5 * (self.upper - self.lower)) / scale[:, None]
        size = np.linalg.norm(g, axis=0)
        g = g[:, size > FLAT * max(size.max(initial=0.0), 1e-300)]
        merged: list[np.ndarray] = []
        for v in g.T:
            for k, other in enumerate(merged):
                cosine = v @ other / (np.linalg.norm(v) * np.linalg.norm(other))
                if abs(cosine) > 1 - 1e-14:
                    merged[k] = other + np.sign(cosine) * v
                    break
            else:
                merged.append(v)
        return np.array(merged).T.reshape(len(self.matrix), len(merged))

    @cached_property
    def basis(self) -> np.ndarray:
        """Orthonormal columns (d, r), in scaled coordinates, of the directions in which the set extends."""
        if not self._generators.size:
            return np.zeros((len(self.matrix), 0))
        left, sizes, _ = np.linalg.svd(self._generators, full_matrices=False)
        return left[:, sizes > FLAT * sizes[0]]

    @property
    def dimension(self) -> int:
        return self.basis.shape[1]

    def support(self, direction: np.ndarray) -> np.ndarray:
        """Largest value of ``direction . w`` over the set; direction (..., d)."""
        along = np.asarray(direction, float) @ self.matrix
        return np.maximum(along * self.lower, along * self.upper).sum(-1)

    @cached_property
    def half_spaces(self) -> tuple[np.ndarray, np.ndarray]:
        """Normals (m, d) and offsets (m,): the set, within the directions in which it extends, is ``normals @ w <= offsets``.

        Raises:
            ValueError: where there are too many facets to list.
        """
        r = self.dimension
        scale = self.scale if len(self.scale) else np.ones(len(self.matrix))
        if r == 0:
            return np.zeros((0, len(self.matrix))), np.zeros(0)
        inner = self.basis.T @ self._generators
        inner = inner / np.linalg.norm(inner, axis=0)
        count = comb(inner.shape[1], r - 1)
        if count > MOST_SUBSETS:
            raise ValueError(f"{inner.shape[1]} generators in {r} dimensions have up to {count} pairs of facets: too many to list")
        subsets = np.array(list(combinations(range(inner.shape[1]), r - 1)), int).reshape(count, r - 1)
        if r == 1:
            normals = np.ones((1, 1))
        else:
            # The last right singular vector is orthogonal to all r - 1 generators of the subset.
            stacked = np.concatenate([inner.T[subsets], np.zeros((count, 1, r))], axis=1)
            normals = np.linalg.svd(stacked)[2][:, -1]
        outward = (normals @ self.basis.T) / scale
        outward = np.concatenate([outward, -outward])
        return outward, self.support(outward)

    def off_plane(self, w: np.ndarray) -> np.ndarray:
        """The scaled part of w that lies outside the directions in which the set extends."""
        scale = self.scale if len(self.scale) else np.ones(len(self.matrix))
        d = (np.asarray(w, float) - self.center) / scale
        return d - self.basis @ (self.basis.T @ d)

    def contains(self, w: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether w (d,) belongs to the set, to within ``tolerance`` of its size."""
        normals, offsets = self.half_spaces
        size = max(np.abs(self._generators).sum(), 1e-300)
        inside = not len(offsets) or bool((normals @ w <= offsets + tolerance * size * np.linalg.norm(normals * self._units, axis=1)).all())
        return inside and bool(np.abs(self.off_plane(w)).max(initial=0.0) <= tolerance * size)

    @property
    def _units(self) -> np.ndarray:
        return self.scale if len(self.scale) else np.ones(len(self.matrix))

    def project(self, rows: list[int]) -> Zonotope:
        """The set of some components of w, whatever the others are."""
        return Zonotope(self.matrix[rows], self.lower, self.upper, self._units[rows])

    def section(self, at: np.ndarray, free: np.ndarray | list[int]) -> Section:
        """The part of the set on the flat ``at + E x``.

        Args:
            at: (d,) point of the flat.
            free: indices of the components that x stands for, or the columns E (d, k) themselves.
        """
        at = np.asarray(at, float)
        E = np.eye(len(at))[:, free] if np.ndim(free) == 1 else np.asarray(free, float)
        normals, offsets = self.half_spaces
        outside = (np.eye(len(at)) - self.basis @ self.basis.T) @ (E / self._units[:, None])
        # Directions x that stay within the set's own dimensions.
        _, sizes, vh = np.linalg.svd(outside)
        sizes = np.concatenate([sizes, np.zeros(E.shape[1] - len(sizes))])
        reference = np.linalg.norm(E / self._units[:, None], axis=0).max()
        span = vh[sizes <= FLAT * reference].T
        size = max(np.abs(self._generators).sum(), 1e-300)
        off = float(np.abs(self.off_plane(at)).max(initial=0.0))
        return Section(normals @ E, offsets - normals @ at, span, off > 1e-7 * size, size * float(np.linalg.norm(self._units)))


@dataclass(frozen=True)
class Section:
    """A convex set ``{x : normals @ x <= slack}`` of k components around x = 0, within the directions ``span`` (k, j).

    ``unreachable``: the flat does not meet the dimensions of the set at all.
    """

    normals: np.ndarray
    slack: np.ndarray
    span: np.ndarray
    unreachable: bool
    size: float

    @cached_property
    def _inner(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Normals within ``span``, their lengths, and which of the half-spaces limit x at all."""
        inner = self.normals @ self.span
        length = np.linalg.norm(inner, axis=1)
        reference = length.max(initial=0.0)
        return inner, length, length > FLAT * max(reference, 1e-300)

    @property
    def feasible(self) -> bool:
        """Whether x = 0 belongs to the set (to within rounding)."""
        return not self.unreachable and bool(
            (self.slack >= -1e-9 * self.size * np.linalg.norm(self.normals, axis=1).max(initial=1.0)).all()
        )

    @property
    def full(self) -> bool:
        """Whether the set extends in all k directions."""
        return not self.unreachable and self.span.shape[1] == self.normals.shape[1]

    @property
    def radius(self) -> float:
        """Radius of the largest ball around x = 0 in the set: what can be had in the worst direction.  0 where a whole direction is
        missing, negative (minus the distance to the farthest violated half-space) where x = 0 itself is outside, minus infinity where
        it is not even in the dimensions of the set."""
        if self.unreachable:
            return -np.inf
        within = self.inner_radius
        return within if self.full or within < 0 else 0.0

    @property
    def inner_radius(self) -> float:
        """The same within the directions in which the set extends."""
        if self.unreachable:
            return -np.inf
        _, length, counts = self._inner
        parallel = self.slack[~counts]
        if len(parallel) and parallel.min() < -1e-9 * self.size:
            return -np.inf
        return float((self.slack[counts] / length[counts]).min(initial=np.inf))

    @property
    def worst_direction(self) -> np.ndarray:
        """Unit vector (k,) in which the set ends first."""
        if not self.full:
            _, _, vh = np.linalg.svd(self.span.T) if self.span.size else (None, None, np.eye(self.normals.shape[1]))
            return vh[-1]
        inner, length, counts = self._inner
        k = np.flatnonzero(counts)[np.argmin(self.slack[counts] / length[counts])]
        return self.span @ (inner[k] / length[k])

    def reach(self, direction: np.ndarray) -> tuple[float, float]:
        """The interval of s for which ``s * direction`` belongs to the set; (inf, -inf) where there is none.  Exact."""
        direction = np.asarray(direction, float)
        missing = direction - self.span @ (self.span.T @ direction)
        if self.unreachable:
            return np.inf, -np.inf
        if np.linalg.norm(missing) > 1e-9 * np.linalg.norm(direction):
            return (0.0, 0.0) if self.feasible else (np.inf, -np.inf)
        rate = self.normals @ direction
        counts = np.abs(rate) > FLAT * np.abs(rate).max(initial=0.0)
        if (self.slack[~counts] < -1e-9 * self.size).any():
            return np.inf, -np.inf
        with np.errstate(divide="ignore"):
            s = self.slack / rate
        up, down = s[counts & (rate > 0)].min(initial=np.inf), s[counts & (rate < 0)].max(initial=-np.inf)
        return (float(down), float(up)) if down <= up + 1e-12 * max(abs(up), abs(down)) else (np.inf, -np.inf)

    def vertices(self) -> np.ndarray:
        """Corners (v, k) of the set, for drawing.

        Raises:
            ValueError: where the set has no interior.
        """
        from scipy.spatial import HalfspaceIntersection

        if not self.full:
            raise ValueError("the set is flat: it has no corners in all directions")
        middle, radius = self.chebyshev()
        if not radius > 0:
            raise ValueError("the set is empty or a single point")
        return HalfspaceIntersection(np.hstack([self.normals, -self.slack[:, None]]), middle).intersections

    def chebyshev(self) -> tuple[np.ndarray, float]:
        """Centre (k,) and radius of the largest ball that fits anywhere in the set."""
        from scipy.optimize import linprog

        length = np.linalg.norm(self.normals, axis=1)
        k = self.normals.shape[1]
        found = linprog(
            np.r_[np.zeros(k), -1.0], A_ub=np.hstack([self.normals, length[:, None]]), b_ub=self.slack,
            bounds=[(None, None)] * (k + 1),
        )  # fmt: skip
        return found.x[:k], float(found.x[k])
