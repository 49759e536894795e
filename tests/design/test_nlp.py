"""The programmes that go downhill, on a problem with a known optimum; what they do when they are stopped or missing."""

import numpy as np
import pytest

from skycrane.design import nlp
from skycrane.design.problem import DesignError, Problem
from skycrane.design.rows import Rows
from skycrane.design.run import run

LOW, HIGH, START = np.ones(4), np.full(4, 5.0), np.array([1.0, 5.0, 5.0, 1.0])


def problem_71(x):
    """Problem 71 of W. Hock and K. Schittkowski, "Test examples for nonlinear programming codes" (1981)."""
    a, b, c, d = x
    product = x.prod()
    return Rows(
        a * d * (a + b + c) + c, np.array([d * (2 * a + b + c), a * d, a * d + 1, a * (a + b + c)]),
        np.array([x @ x - 40]), 2 * x[None], np.array([product - 25]), (product / x)[None],
    )  # fmt: skip


@pytest.mark.parametrize("method", nlp.PACKAGES)
def test_a_known_optimum(method):
    found = nlp.descend(method, problem_71, START, LOW, HIGH, 100, 1e-10)
    np.testing.assert_allclose(found, [1.0, 4.743, 3.82115, 1.379408], atol=2e-5)


@pytest.mark.parametrize("method", nlp.PACKAGES)
def test_a_fixed_unknown_stays(method):
    low, high = LOW.copy(), HIGH.copy()
    low[0] = high[0] = 1.2
    assert nlp.descend(method, problem_71, START, low, high, 100, 1e-8)[0] == pytest.approx(1.2, abs=1e-12)


@pytest.mark.parametrize("method", nlp.PACKAGES)
def test_rows_may_stop_it(method):
    seen = []

    def rows(x):
        seen.append(x)
        if len({tuple(x) for x in seen}) > 3:
            raise nlp.Stopped
        return problem_71(x)

    with pytest.raises(nlp.Stopped):
        nlp.descend(method, rows, START, LOW, HIGH, 100, 1e-10)
    assert len(seen) < 40


@pytest.mark.parametrize("method", ["nlopt", "ipopt"])
def test_a_missing_package_is_named_with_its_extra(method, monkeypatch, tmp_path):
    monkeypatch.setattr(nlp, "find_spec", lambda name: None)
    with pytest.raises(DesignError, match=rf"pip install 'skycrane\[{method}\]'"):
        run(Problem(), tmp_path, solver=method)
    with pytest.raises(DesignError, match="expected one of slsqp, nlopt, ipopt"):
        nlp.require("newton")
