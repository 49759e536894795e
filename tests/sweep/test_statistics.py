"""Sensitivities against closed forms, the table, and the plots."""

import numpy as np
import pytest

from skycrane.sweep.design import design
from skycrane.sweep.plots import save_sweep_plots
from skycrane.sweep.runner import table
from skycrane.sweep.space import Choice, Range
from skycrane.sweep.statistics import first_order, summary

X = tuple(Range(name, -np.pi, np.pi) for name in ("a", "b", "c"))


def ishigami(p):
    """Ishigami and Homma (1990) with 7 and 0.1; first-order and total indices in closed form."""
    return np.sin(p[0]) + 7 * np.sin(p[1]) ** 2 + 0.1 * p[2] ** 4 * np.sin(p[0])


FIRST, TOTAL = (0.3139, 0.4424, 0.0), (0.5576, 0.4424, 0.2437)


def records_of(rows, function, keys="abc", status=lambda p: "finished"):
    return [
        {"index": k, "key": str(k), "values": dict(zip(keys, p, strict=True)), "status": status(p), "reason": "",
         "metrics": {"y": float(function(p)), "same": 1.0}}
        for k, p in enumerate(rows)
    ]  # fmt: skip


def test_sobol_indices_against_the_closed_form():
    found = summary(records_of(design(X, "sobol", 1024, 3, indices=True), ishigami), X, True)
    indices = found["sobol_indices"]
    assert list(indices) == ["y"]  # a metric that never changes has none
    for name, want in (("first_order", FIRST), ("total_order", TOTAL)):
        np.testing.assert_allclose([indices["y"][k][name] for k in "abc"], want, atol=0.03)
    assert all(0 < indices["y"][k]["total_order_std"] < 0.05 for k in "abc")


def test_first_order_share_of_any_design():
    shares = summary(records_of(design(X, "lhs", 2048, 3), ishigami), X, False)["sensitivity"]["y"]
    np.testing.assert_allclose([shares[k]["first_order"] for k in "abc"], FIRST, atol=0.05)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 3000)
    y = np.array([0.0, 1.0, 5.0])[x] + rng.normal(size=3000)
    level = np.var([0.0, 1.0, 5.0])
    assert first_order(x.astype(float), y) == pytest.approx(level / (level + 1), abs=0.01)
    assert first_order(rng.random(3000), rng.random(3000)) < 0.02


def test_failures_are_counted_and_drawn(tmp_path):
    dimensions = (Range("a", 0.01, 1.0, log=True), Choice("b", ("x", "y")))
    rows = design(dimensions, "lhs", 40, 0)
    records = records_of(rows, lambda p: p[0] * (1 + (p[1] == "x")), "ab", lambda p: "diverged" if p[0] > 0.5 else "finished")
    found = summary(records, dimensions, False)
    assert found["status"] == {"diverged": 6, "finished": 34}
    y = found["metrics"]["y"]
    assert (y["count"], y["min_at"]) == (34, int(np.argmin([r["metrics"]["y"] for r in records])))
    columns = table(records, dimensions)
    assert list(columns) == ["index", "key", "a", "b", "status", "reason", "same", "y"]
    files = save_sweep_plots(records, dimensions, found, tmp_path)
    assert {f.name for f in files} == {"parallel_coordinates_y.png", "sensitivity_y.png", "response_y.png", "failures.png"}
    assert all(f.stat().st_size > 5000 for f in files)


def test_a_column_of_mixed_values_becomes_text():
    records = records_of([(1.0, True), (2.0, "b")], lambda p: p[0], "ab")
    columns = table(records, (Range("a", 0.0, 1.0), Choice("b", (True, "b"))))
    assert columns["b"] == ["true", '"b"']
