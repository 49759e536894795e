"""Positive thrusts from a wrench: the paper's rule, the smallest shift, and the smallest peak.

With a positive null vector n of the map (``B n = 0``; all ones for a layout that is balanced), any exact solution lambda can be shifted by
c n.  A. Nikou, G. Gavridis and K. Kyriakopoulos (ICRA 2015), eqs. (16), (17), shift by the sum of all negative thrusts,

    c = sum_k max(0, -lambda_k)     (with lambda = D^-1 W of the first six, and 0 for the seventh);

the smallest shift that leaves none negative is ``c = max_k (-lambda_k / n_k)``, of either sign, and since n is positive it has the smallest
total.  For seven rotors the null space is one line, and the smallest peak is the same; for more it is a linear programme,
``min t, 0 <= lambda <= t, B lambda = W``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skycrane.control.reach import positive_null


def rule_17(B: np.ndarray, wrench: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Thrusts (..., n) of the paper's rule for wrenches (..., 6); the first six rotors must span all directions."""
    six = np.linalg.solve(B[:, :6], wrench[..., None])[..., 0]
    rest = np.zeros((*six.shape[:-1], B.shape[1] - 6))
    shift = np.maximum(-six, 0.0).sum(-1, keepdims=True)
    return np.concatenate([six, rest], -1) + shift * null


def minimal_shift(B: np.ndarray, wrench: np.ndarray, null: np.ndarray) -> np.ndarray:
    """The solution of smallest norm, shifted along ``null`` until the least thrust is 0."""
    thrust = wrench @ np.linalg.pinv(B).T
    return thrust + (-thrust / null).max(-1, keepdims=True) * null


def bounded(B: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Positive thrusts with the smallest peak, one wrench (6,)."""
    from skycrane.design.verify import smallest_peak

    return smallest_peak(B, wrench, np.ones(B.shape[1]))


@dataclass(frozen=True)
class Comparison:
    """Largest thrust [N] of each rule in each hover attitude (m,)."""

    rule_17: np.ndarray
    minimal_shift: np.ndarray
    bounded: np.ndarray
    bounded_of: int

    def facts(self) -> dict[str, Any]:
        """Ready for JSON."""
        out: dict[str, Any] = {"attitudes": len(self.rule_17), "bounded_attitudes": self.bounded_of}
        for name in ("rule_17", "minimal_shift", "bounded"):
            values = getattr(self, name)
            out[f"{name}_max_n"], out[f"{name}_mean_n"] = float(values.max()), float(values.mean())
        return out


def compare(B: np.ndarray, weight: float, count: int = 10_000, seed: int = 0) -> Comparison | None:
    """The rules over random hover attitudes; ``B`` about the centre of mass, ``weight`` N.  None without a positive null vector.

    For seven rotors the smallest peak is that of the smallest shift; for more it is computed for the 200 attitudes that ask most of the
    smallest shift.
    """
    null = positive_null(B)
    if null is None or np.linalg.cond(B[:, :6]) > 1e8:
        return None
    directions = np.random.default_rng(seed).normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    wrench = np.concatenate([weight * directions, np.zeros((count, 3))], 1)
    shifted = minimal_shift(B, wrench, null).max(-1)
    if B.shape[1] == 7:
        best, of = shifted, count
    else:
        hardest = np.argsort(-shifted)[:200]
        best, of = np.array([bounded(B, wrench[k]).max() for k in hardest]), len(hardest)
    return Comparison(rule_17(B, wrench, null).max(-1), shifted, best, of)
