"""Steps back to the constraints against a general-purpose optimiser, and what they do where there is no way back."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skycrane.design.problem import Problem
from skycrane.design.restore import least_change, least_miss
from skycrane.design.rows import ROUGH
from skycrane.design.solve import BUFFER, Solver
from tests.design.layouts import DIRECTIONS, PLACES, TIP

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("wished", [False, True])
def test_the_shortest_step_is_that_of_a_general_solver(wished):
    for _ in range(5):
        C, D = RNG.normal(size=(3, 8)), RNG.normal(size=(12, 8))
        c, d = RNG.normal(size=3), RNG.normal(size=12) - 0.5
        low, high = np.full(8, -2.0), np.full(8, 2.0)
        low[5] = high[5] = 0.3  # a fixed unknown
        low[6] = -np.inf
        wish = RNG.normal(size=8) if wished else np.zeros(8)
        step = least_change(c, C, d, D, low, high, wish if wished else None)
        other = minimize(
            lambda s, wish=wish: ((s - wish) ** 2).sum(), np.zeros(8), bounds=list(zip(low, high, strict=True)), method="SLSQP",
            constraints=[
                {"type": "eq", "fun": lambda s, c=c, C=C: c + C @ s}, {"type": "ineq", "fun": lambda s, d=d, D=D: d + D @ s},
            ],
        )  # fmt: skip
        if step is None:
            assert not other.success
            continue
        np.testing.assert_allclose(c + C @ step, 0, atol=1e-9)
        assert (d + D @ step).min() > -1e-9
        np.testing.assert_allclose(step, other.x, atol=1e-5)


def test_contradictions_are_shared():
    """s >= 1 and s <= 0 in one unknown: the middle misses both by a half, as far as the step may go."""
    none = np.zeros(0), np.zeros((0, 1))
    rows = np.array([-1.0, 0.0]), np.array([[1.0], [-1.0]])
    wide = np.array([-10.0]), np.array([10.0])
    assert least_change(*none, *rows, *wide) is None
    np.testing.assert_allclose(least_miss(*none, *rows, *wide, 5.0), 0.5)
    np.testing.assert_allclose(least_miss(*none, *rows, *wide, 0.2), 0.2)


def test_a_point_off_its_constraints_settles_and_slides():
    solver = Solver(Problem())
    at, rows = solver.problem.layout, solver.rows
    x = np.zeros(at.size)
    x[at.r], x[at.f], x[at.e] = PLACES.ravel(), DIRECTIONS.ravel(), TIP
    rows.change(0.0, 4.9, ROUGH)  # a little less than the design was made for
    off = x + 1e-3 * RNG.normal(size=x.size)
    assert max(rows.violation(off).values()) > 1e-3
    settled = solver.settle(off)
    here = rows(settled)
    assert np.abs(here.equal).max() < 1e-9
    assert here.least.min() > 0.1 * BUFFER
    slid = solver.slide(settled, steps=4)
    assert rows(slid).objective < here.objective - 1e-4
    assert max(rows.violation(slid).values()) < 1e-7


def test_what_cannot_be_had_is_missed_as_little_as_can_be():
    """A size too small for the wakes: all equations hold, and no other row is much worse than the worst."""
    solver = Solver(Problem(size_max=0.4))
    at, rows = solver.problem.layout, solver.rows
    x = np.zeros(at.size)
    x[at.r], x[at.f], x[at.e] = PLACES.ravel(), DIRECTIONS.ravel(), TIP
    rows.change(0.0, 5.0, ROUGH)
    missed = rows.violation(solver.settle(x, 20))
    assert missed["balance"] < 1e-4
    assert 0.01 < missed["size"] < 0.15
    assert missed["condition number"] == pytest.approx(missed["size"], rel=0.05)
