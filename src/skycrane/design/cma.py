"""Evolution strategy with covariance matrix adaptation: a search without derivatives that looks around before SLSQP goes down.

The (mu/mu_w, lambda) strategy of N. Hansen, "The CMA evolution strategy: a tutorial" (arXiv 1604.00772, 2016), with its default parameters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def minimize(value: Callable[[np.ndarray], float], start: np.ndarray, size: float, evaluations: int, seed: int = 0) -> np.ndarray:
    """The best point seen within ``evaluations`` of ``value``, from ``start`` with steps of about ``size``."""
    rng = np.random.default_rng(seed)
    n = len(start)
    count = 4 + int(3 * np.log(n))
    parents = count // 2
    w = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
    w /= w.sum()
    mu = 1 / (w**2).sum()
    c_c = (4 + mu / n) / (n + 4 + 2 * mu / n)
    c_s = (mu + 2) / (n + mu + 5)
    c_1 = 2 / ((n + 1.3) ** 2 + mu)
    c_mu = min(1 - c_1, 2 * (mu - 2 + 1 / mu) / ((n + 2) ** 2 + mu))
    damp = 1 + 2 * max(0.0, np.sqrt((mu - 1) / (n + 1)) - 1) + c_s
    expected = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    mean, C, path_c, path_s = start.astype(float), np.eye(n), np.zeros(n), np.zeros(n)
    best, best_value = mean.copy(), value(mean)
    used = 1
    while used + count <= evaluations:
        sizes, axes = np.linalg.eigh(C)
        sizes = np.sqrt(np.maximum(sizes, 1e-20))
        y = rng.normal(size=(count, n)) * sizes @ axes.T
        values = np.array([value(mean + size * step) for step in y])
        used += count
        order = np.argsort(values)
        if values[order[0]] < best_value:
            best, best_value = mean + size * y[order[0]], float(values[order[0]])
        chosen = y[order[:parents]]
        step = w @ chosen
        mean = mean + size * step
        path_s = (1 - c_s) * path_s + np.sqrt(c_s * (2 - c_s) * mu) * (axes @ ((axes.T @ step) / sizes))
        length = np.linalg.norm(path_s)
        moving = length / np.sqrt(1 - (1 - c_s) ** (2 * used / count)) < (1.4 + 2 / (n + 1)) * expected
        path_c = (1 - c_c) * path_c + moving * np.sqrt(c_c * (2 - c_c) * mu) * step
        old = (1 - moving) * c_c * (2 - c_c)
        C = (1 - c_1 - c_mu + c_1 * old) * C + c_1 * np.outer(path_c, path_c) + c_mu * (chosen.T * w) @ chosen
        size *= np.exp(c_s / damp * (length / expected - 1))
    return best
