"""What a sweep says: spread of every metric, and how much each varied key matters to it.

``rank_correlation`` is Spearman's: +1 or -1 where the metric rises or falls with the key all along.  ``first_order`` is the share of the
metric's variance that the key explains alone, V(E[y | x]) / V(y), estimated from any design by the correlation ratio over groups of equal
x (Plischke, Borgonovo, Smith 2013), corrected for the number of groups.  With the three-fold design (``--indices``) the first-order and
total indices are those of Saltelli et al. (2010), by scipy.stats.sobol_indices.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .block import FINISHED
from .space import Dimension, Range

MIN_FOR_SENSITIVITY = 8


def summary(records: Sequence[dict[str, Any]], dimensions: Sequence[Dimension], indices: bool) -> dict[str, Any]:
    """Counts, statistics and sensitivities, as JSON can hold them."""
    good = [r for r in records if r["status"] == FINISHED]
    names = sorted({name for r in good for name in r["metrics"]})
    columns = {name: np.array([r["metrics"].get(name, math.nan) for r in good]) for name in names}
    inputs = {dimension.key: _ranks([r["values"][dimension.key] for r in good], dimension) for dimension in dimensions}
    points = [r["index"] for r in good]
    out: dict[str, Any] = {
        "points": len(records),
        "status": dict(sorted(Counter(r["status"] for r in records).items())),
        "reasons": dict(Counter(_kind(r["reason"]) for r in records if r["reason"]).most_common(20)),
        "metrics": {name: _spread(y, points) for name, y in columns.items()},
        "sensitivity": {name: _sensitivity(inputs, y) for name, y in columns.items()},
    }
    if indices:
        out["sobol_indices"] = {name: found for name in names if (found := sobol(records, dimensions, name)) is not None}
    return out


def _kind(reason: str) -> str:
    """A reason without its numbers, so that like ones count together."""
    return " ".join("#" if any(c.isdigit() for c in word) else word for word in reason.split())[:160]


def _spread(y: np.ndarray, points: Sequence[int]) -> dict[str, float]:
    there = np.isfinite(y)
    values, where = y[there], np.asarray(points)[there]
    low, median, high = np.quantile(values, [0.05, 0.5, 0.95])
    numbers = {"mean": values.mean(), "std": values.std(ddof=1) if len(values) > 1 else 0.0, "min": values.min(), "q05": low}
    numbers |= {"median": median, "q95": high, "max": values.max()}
    places = {"count": len(values), "min_at": int(where[values.argmin()]), "max_at": int(where[values.argmax()])}
    return {name: float(value) for name, value in numbers.items()} | places


def _ranks(values: Sequence[Any], dimension: Dimension) -> tuple[np.ndarray, bool]:
    """Values as numbers, and whether their order means something."""
    if isinstance(dimension, Range):
        return np.array(values, dtype=float), True
    ordered = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in dimension.values)
    return np.array(values if ordered else [dimension.values.index(v) for v in values], dtype=float), ordered


def _sensitivity(inputs: dict[str, tuple[np.ndarray, bool]], y: np.ndarray) -> dict[str, dict[str, float]]:
    there = np.isfinite(y)
    if there.sum() < MIN_FOR_SENSITIVITY or np.ptp(y[there]) <= 1e-12 * np.abs(y[there]).max():
        return {}
    from scipy.stats import spearmanr

    out: dict[str, dict[str, float]] = {}
    for key, (x, ordered) in inputs.items():
        a, b = x[there], y[there]
        if np.ptp(a) == 0:
            continue
        out[key] = {"first_order": first_order(a, b)}
        if ordered:
            out[key]["rank_correlation"] = float(spearmanr(a, b).statistic)
    return out


def first_order(x: np.ndarray, y: np.ndarray) -> float:
    """Share of the variance of y that x explains alone, 0 to 1."""
    n = len(y)
    levels, group = np.unique(x, return_inverse=True)
    if len(levels) > max(4, math.isqrt(n)):
        group = np.argsort(np.argsort(x, kind="stable"), kind="stable") * max(4, math.isqrt(n)) // n
    groups = int(group.max()) + 1
    if n <= groups:
        return math.nan
    means = np.bincount(group, y) / np.bincount(group)
    within, total = np.sum((y - means[group]) ** 2), np.sum((y - y.mean()) ** 2)
    # The groups explain a little of any noise; this takes the part away that they explain by chance (Kelley's epsilon squared).
    return float(max(0.0, 1.0 - (within / (n - groups)) / (total / (n - 1))))


def sobol(records: Sequence[dict[str, Any]], dimensions: Sequence[Dimension], metric: str) -> dict[str, dict[str, float]] | None:
    """First-order and total indices of a metric over the three-fold design; None where a point lacks the metric."""
    from scipy.stats import sobol_indices

    d = len(dimensions)
    n = len(records) // (d + 2)
    y = np.array([r["metrics"].get(metric, math.nan) if r["status"] == FINISHED else math.nan for r in records])
    if not np.isfinite(y).all() or np.ptp(y) <= 1e-12 * np.abs(y).max():
        return None
    parts = {"f_A": y[None, :n], "f_B": y[None, n : 2 * n], "f_AB": y[2 * n :].reshape(d, 1, n)}
    found = sobol_indices(func=parts, n=n)
    # Intervals by resampling the rows, with numbers that do not depend on the run.
    rng = np.random.default_rng(0)
    first, total = [], []
    for _ in range(100):
        rows = rng.integers(0, n, n)
        again = sobol_indices(func={"f_A": parts["f_A"][:, rows], "f_B": parts["f_B"][:, rows], "f_AB": parts["f_AB"][..., rows]}, n=n)
        first.append(np.ravel(again.first_order))
        total.append(np.ravel(again.total_order))
    names = ("first_order", "total_order", "first_order_std", "total_order_std")
    columns = (np.ravel(found.first_order), np.ravel(found.total_order), np.std(first, axis=0), np.std(total, axis=0))
    return {dimension.key: {name: float(c[i]) for name, c in zip(names, columns, strict=True)} for i, dimension in enumerate(dimensions)}
