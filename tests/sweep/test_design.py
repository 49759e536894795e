"""What is varied, where the points lie, how they are put into blocks, and what is refused."""

import numpy as np
import pytest

from skycrane.scenario import ScenarioError
from skycrane.sweep.design import design
from skycrane.sweep.plan import Point, plan
from skycrane.sweep.space import Choice, Range, parse_all, parse_vary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vehicle.mass=1:3", [1.0, 1.5, 2.0, 2.5, 3.0]),
        ("vehicle.mass=1:3:2", [1.0, 3.0]),
        ("a=0.01:1:3:log", [0.01, 0.1, 1.0]),
        ("run.seed=int:2:4", [2, 3, 4]),
        ("vehicle.layout.rotors=4,6", [4, 6]),
        ('a.b[1].kind=["x", "y"]', ["x", "y"]),
        ("a=[[0, 1], [1, 0]]", [[0, 1], [1, 0]]),
    ],
)
def test_values_of_a_key(text, expected):
    values = parse_vary(text).grid()
    assert [type(v) for v in values] == [type(v) for v in expected]
    assert values == (pytest.approx(expected) if isinstance(expected[0], float) else expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vehicle.mass", "key=LOW:HIGH"),
        ("vehicle..mass=1:2", "no key path"),
        ("a=3:1", "below the high end"),
        ("a=0:1:log", "above zero"),
        ("a=1:2:1", "grid values"),
        ("a=1:2:x", "neither"),
        ("a=int:1:2.5", "whole numbers"),
        ("a=[1]", "at least two"),
        ("a=[1, 1]", "at least two"),
        ("a=1:inf", "neither"),
        ("a=two words, b", "no TOML value"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(ScenarioError, match=message):
        parse_vary(text)


def test_a_key_is_varied_once_and_something_is():
    for texts, message in ((["a=1:2", "a=1:3"], "2 times"), ([], "nothing to vary")):
        with pytest.raises(ScenarioError, match=message):
            parse_all(texts)


BOTH = (Range("x", -1.0, 3.0), Range("y", 0.01, 100.0, log=True))


@pytest.mark.parametrize("method", ["lhs", "sobol", "montecarlo"])
def test_samples_repeat_and_fill_the_box(method):
    points = np.array(design(BOTH, method, 64, 5))
    np.testing.assert_array_equal(points, np.array(design(BOTH, method, 64, 5)))
    assert not np.array_equal(points, np.array(design(BOTH, method, 64, 6)))
    unit = np.stack([(points[:, 0] + 1) / 4, np.log(points[:, 1] / 0.01) / np.log(1e4)], -1)
    assert ((unit >= 0) & (unit <= 1)).all()
    if method != "montecarlo":  # one point in each of 64 slices of every key
        for column in unit.T:
            assert sorted((column * 64).astype(int)) == list(range(64))


def test_grid_and_three_fold_design():
    grid = design((Range("x", 0.0, 1.0, 3), Choice("k", ("a", "b"))), "grid", None, 0)
    assert grid == [(0.0, "a"), (0.0, "b"), (0.5, "a"), (0.5, "b"), (1.0, "a"), (1.0, "b")]
    points = np.array(design(BOTH, "sobol", 8, 0, indices=True)).reshape(4, 8, 2)
    A, B, first, second = points
    np.testing.assert_array_equal(first, np.stack([B[:, 0], A[:, 1]], -1))
    np.testing.assert_array_equal(second, np.stack([A[:, 0], B[:, 1]], -1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((BOTH, "grid", 5, 0), "no --samples"),
        ((BOTH, "sobol", 100, 0), "such as 128"),
        ((BOTH, "lhs", 0, 0), "expected 1"),
        ((BOTH, "lhs", 8, 0, True), "need --method sobol"),
        ((BOTH, "grid", None, 0, True), "need --method sobol"),
        (((Choice("k", (1, 2)),), "sobol", 8, 0, True), "need ranges"),
        ((BOTH, "best", 8, 0), "expected one of"),
        (((Range("x", 0, 1, 2000), Range("y", 0, 1, 2000)), "grid", None, 0), "at most"),
    ],
)
def test_designs_that_do_not_fit(arguments, message):
    with pytest.raises(ScenarioError, match=message):
        design(*arguments)


def test_blocks_hold_each_point_once_and_never_mix_choices():
    dimensions = (Range("x", 0.0, 1.0), Choice("k", (True, "b", 3)))
    rows = design(dimensions, "lhs", 50, 1)
    blocks = plan(dimensions, rows, 8, "sweep")
    assert sorted(p.index for b in blocks for p in b.points) == list(range(50))
    assert all(len(b.points) <= 8 and len({repr(p.values["k"]) for p in b.points}) == 1 for b in blocks)
    assert blocks == plan(dimensions, rows, 8, "sweep")
    assert {b.key for b in blocks}.isdisjoint(b.key for b in plan(dimensions, rows, 8, "another"))
    x = 0.1 + 0.2
    assert Point(0, {"x": x, "y": [1.5, True, "it's"]}).changes == ["x=0.30000000000000004", 'y=[1.5, true, "it\'s"]']
