"""Where the points lie: grid, Latin hypercube, Sobol sequence, or independent random numbers (scipy.stats.qmc).

For variance-based indices (Saltelli et al. 2010, table 2) the design is three-fold: matrices A and B of n rows from one Sobol sequence of
2 d columns, and for each dimension i the matrix AB_i, which is A with column i from B: n (d + 2) points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skycrane.scenario.base import Problem
from skycrane.scenario.errors import ScenarioError

from .space import MAX_GRID, Dimension, Range

METHODS = ("grid", "lhs", "sobol", "montecarlo")
DEFAULT_SAMPLES = 128


def design(dimensions: Sequence[Dimension], method: str, samples: int | None, seed: int, indices: bool = False) -> list[tuple[Any, ...]]:
    """Points as tuples of values, one value for each dimension; the same arguments give the same points.

    Args:
        dimensions: what is varied.
        method: one of :data:`METHODS`.
        samples: number of points (not for a grid); with ``indices`` the rows n of each matrix, a power of two.
        seed: of scrambling and random numbers.
        indices: the three-fold design, in the order A, B, AB_1 ... AB_d.

    Raises:
        ScenarioError: for numbers that do not fit the method.
    """
    d = len(dimensions)
    if method not in METHODS:
        _refuse(f"method {method!r}; expected one of {', '.join(METHODS)}")
    if method == "grid":
        return _grid(dimensions, samples, indices)
    n = DEFAULT_SAMPLES if samples is None else samples
    if not 1 <= n <= MAX_GRID:
        _refuse(f"{n} samples; expected 1 to {MAX_GRID}")
    if method == "sobol" and n & (n - 1):
        _refuse(f"{n} samples; a Sobol sequence needs a power of two, such as {2 ** round(math.log2(n))}")
    if indices:
        if method != "sobol":
            _refuse("Sobol indices need --method sobol")
        if not all(isinstance(dimension, Range) for dimension in dimensions):
            _refuse("Sobol indices need ranges of numbers, LOW:HIGH, in every --vary")
        both = _unit("sobol", 2 * d, n, seed)
        A, B = both[:, :d], both[:, d:]
        unit = np.concatenate([A, B, *(np.where(np.arange(d) == i, B, A) for i in range(d))])
    else:
        unit = _unit(method, d, n, seed)
    return [tuple(dimension.at(float(u)) for dimension, u in zip(dimensions, row, strict=True)) for row in unit]


def _grid(dimensions: Sequence[Dimension], samples: int | None, indices: bool) -> list[tuple[Any, ...]]:
    if samples is not None:
        _refuse("a grid takes no --samples; give the count in the range, such as vehicle.mass=1:3:7")
    if indices:
        _refuse("Sobol indices need --method sobol")
    axes = [dimension.grid() for dimension in dimensions]
    if math.prod(map(len, axes)) > MAX_GRID:
        _refuse(f"a grid of {math.prod(map(len, axes))} points; at most {MAX_GRID}")
    return list(itertools.product(*axes))


def _unit(method: str, d: int, n: int, seed: int) -> np.ndarray:
    """Points (n, d) of the unit cube."""
    from scipy.stats import qmc

    rng = np.random.default_rng(seed)
    if method == "montecarlo":
        return rng.random((n, d))
    sampler = {"lhs": qmc.LatinHypercube, "sobol": qmc.Sobol}[method]
    return sampler(d, rng=rng).random(n)


def _refuse(message: str):
    raise ScenarioError("sweep", [Problem((), message)])
