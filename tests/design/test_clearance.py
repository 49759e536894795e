"""Certified distances against dense sampling, closed forms and a general-purpose optimiser."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from skycrane.design.clearance import Boom, Box, Sphere, Wake, distance
from skycrane.design.convex import gap
from skycrane.design.profile import WAKE, Profile

RNG = np.random.default_rng(11)


def basis(F):
    a = np.cross(F, [1.0, 0, 0] if abs(F[0]) < 0.6 else [0, 1.0, 0])
    a /= np.linalg.norm(a)
    return a, np.cross(F, a)


def surface(wake, along=140, around=160):
    """Dense points of a wake's surface, faces included, by its equation alone."""
    F, table = -wake.axis, wake.profile.stations
    a, b = basis(F)
    x = np.linspace(table[0, 0], table[-1, 0], along)
    R = wake.profile.at(x)
    x = np.concatenate([x, np.full(30, x[0]), np.full(30, x[-1])])
    R = np.concatenate([R, np.linspace(0, R[0], 30), np.linspace(0, R[-1], 30)])
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)
    ring = np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b
    return (wake.origin - x[:, None, None] * F + R[:, None, None] * ring).reshape(-1, 3)


def random_wake(spread=0.8, profile=WAKE):
    return Wake(RNG.normal(size=3) * spread, RNG.normal(size=3), profile)


def test_the_wake_of_the_paper():
    np.testing.assert_allclose(WAKE.at(np.array([-0.06, 0.0, 0.1086, 0.837, 0.91])), [0.134, 0.110, 0.0944, 0.307, 0.300], atol=5e-4)
    assert WAKE.excess < 1e-6


@pytest.mark.parametrize("profile", [WAKE, Profile.table([(-0.1, 0.05), (0.0, 0.2), (0.2, 0.08), (0.5, 0.3), (0.8, 0.1)])])
def test_two_wakes_against_dense_sampling(profile):
    apart = 0
    for _ in range(8):
        first, second = random_wake(profile=profile), random_wake(profile=profile)
        found = distance(first, second)
        assert found.upper - found.lower < 2e-6
        sampled = cKDTree(surface(first)).query(surface(second))[0].min()
        if found.lower > 0:
            apart += 1
            assert found.lower <= sampled
            assert sampled < found.upper + 0.015  # the mesh is 1 cm wide
            np.testing.assert_allclose(np.linalg.norm(found.first - found.second), found.upper, atol=1e-9)
            for wake, point in ((first, found.first), (second, found.second)):
                x = (point - wake.origin) @ wake.axis
                rho = np.linalg.norm(point - wake.origin - x * wake.axis)
                assert wake.profile.start - 1e-9 <= x <= wake.profile.end + 1e-9
                assert rho <= wake.profile.at(np.array(x)) + 1e-9
        else:
            assert sampled < 0.02
    assert apart >= 3


@pytest.mark.parametrize("kind", ["sphere", "boom", "box"])
def test_a_wake_and_other_bodies(kind):
    for _ in range(6):
        wake, at = random_wake(0.5), RNG.normal(size=3)
        points = surface(wake)
        if kind == "sphere":
            other, sampled = Sphere(at, 0.05), np.linalg.norm(points - at, axis=1).min() - 0.05
        elif kind == "boom":
            end = at + RNG.normal(size=3)
            t = np.clip((points - at) @ (end - at) / ((end - at) @ (end - at)), 0, 1)
            other, sampled = Boom(at, end, 0.02), np.linalg.norm(points - at - t[:, None] * (end - at), axis=1).min() - 0.02
        else:
            R = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
            inside = np.maximum(np.abs((points - at) @ R) - [0.1, 0.2, 0.05], 0)
            other, sampled = Box(at, (0.2, 0.4, 0.1), R), np.linalg.norm(inside, axis=1).min()
        found = distance(wake, other)
        if found.lower > 0:
            assert found.lower <= sampled + 1e-12
            assert sampled < found.upper + 2e-3
        else:
            assert sampled < 0.01


def test_closed_forms():
    disk = Profile.table([(0.0, 0.3), (0.2, 0.3)])
    up = Wake((0, 0, 0), (0, 0, 1), disk)
    assert distance(up, Wake((1.0, 0, 0), (0, 0, 1), disk)).upper == pytest.approx(0.4, abs=1e-7)
    assert distance(up, Wake((0, 0, -0.5), (0, 0, 1), disk)).upper == pytest.approx(0.3, abs=1e-7)
    # Rim to edge: 0.1 across and 0.3 along.
    assert distance(up, Wake((0.7, 0, -0.5), (0, 0, 1), disk)).upper == pytest.approx(np.hypot(0.1, 0.3), abs=1e-7)
    assert distance(up, Sphere((0, 0, -0.1))).upper < 1e-8
    assert gap(Box((0, 0, 0), (2, 2, 2)), Box((3, 3, 0), (2, 2, 2))).lower == pytest.approx(np.sqrt(2), abs=1e-9)


def test_a_waist_holds_a_ball_that_its_hull_does_not():
    hourglass = Profile.table([(0.0, 0.5), (0.5, 0.1), (1.0, 0.5)])
    found = distance(Wake((0, 0, 0), (0, 0, 1), hourglass), Sphere((0.3, 0, -0.5), 0.05))
    # From (0.3, waist) to the line from (0.5 rho at 0) to (0.1 at the waist): 0.2 cos(slope), the slope being 0.4 in 0.5.
    assert found.upper == pytest.approx(0.2 * 0.5 / np.hypot(0.4, 0.5) - 0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("rows", "part"),
    [([(0, 0.1)], "two or more"), ([(0, 0.1), (0, 0.2)], "increase"), ([(0, -1), (1, 1)], "0 or more"), ([(0, np.nan), (1, 1)], "finite")],
)
def test_bad_profiles_are_refused(rows, part):
    with pytest.raises(ValueError, match=part):
        Profile.table(rows)
