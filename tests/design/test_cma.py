"""The evolution strategy on functions with known optima."""

import numpy as np
import pytest

from skycrane.design.cma import minimize


def test_an_ill_conditioned_bowl():
    scale = np.logspace(0, 3, 8)
    best = minimize(lambda x: float((scale * (x - 1.0) ** 2).sum()), np.zeros(8), 0.5, 6000, seed=1)
    np.testing.assert_allclose(best, 1.0, atol=1e-5)


def test_the_bent_valley():
    def rosenbrock(x):
        return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())

    best = minimize(rosenbrock, np.zeros(5), 0.3, 9000, seed=2)
    assert rosenbrock(best) == pytest.approx(0.0, abs=1e-6)


def test_evaluations_are_kept():
    calls = []
    minimize(lambda x: calls.append(1) or float(x @ x), np.ones(4), 0.3, 100)
    assert len(calls) <= 100
