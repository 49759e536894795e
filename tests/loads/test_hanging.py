"""Static shapes against closed forms: the elastic catenary, stretch under its own weight, a rope on the ground."""

import jax
import numpy as np
import pytest
from scipy import optimize

from skycrane.loads.hanging import hanging_nodes
from skycrane.loads.rope import Rope

G = 9.81


def catenary(span, drop, length, EA, weight):
    """Places (x along, z up) of points s of an elastic cable from (0, 0) to (span, -drop) (Irvine, "Cable Structures", 1981, ch. 1)."""

    def at(s, H, V):
        left = V - weight * s / length
        x = H * s / EA + H * length / weight * (np.arcsinh(V / H) - np.arcsinh(left / H))
        z = weight * s / EA * (V / weight - s / (2 * length)) + H * length / weight * (np.hypot(1, V / H) - np.hypot(1, left / H))
        return x, z

    def miss(p):
        x, z = at(length, *p)
        return [x - span, z - drop]

    found = optimize.root(miss, [0.2 * weight, 0.6 * weight], tol=1e-13)
    assert found.success
    assert found.x[0] > 0
    return lambda s: np.stack([at(s, *found.x)[0], 0 * s, -at(s, *found.x)[1]], -1)


def shape(rope, top, bottom, **options):
    m = rope.segments
    column = lambda value, rows: np.full((rows, 1), float(value))  # noqa: E731
    nodes = hanging_nodes(
        np.array([top]), np.array([bottom]), column(rope.length / m, m), column(rope.segment_stiffness, m),
        column(rope.segment_mass, m - 1), G, **options,
    )  # fmt: skip
    return np.vstack([[top], nodes[:, 0], [bottom]])


@pytest.mark.parametrize("length", [2.2, 3.5], ids=["tight", "sagging"])
def test_elastic_catenary_with_second_order_in_segment_length(length):
    EA, mu = 300.0, 0.8
    truth = catenary(2.0, 0.7, length, EA, mu * length * G)
    errors = []
    for m in (8, 16, 32):
        points = shape(Rope(length, EA, 0.0, mu, segments=m), [0.0, 0, 0], [2.0, 0, -0.7])
        errors.append(np.linalg.norm(points - truth(np.linspace(0, length, m + 1)), axis=1).max())
    assert errors[-1] < 2e-3 * length
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2.0, atol=0.25)


@pytest.mark.parametrize("m", [1, 2, 7])
@pytest.mark.parametrize("lumps", ["lower", "half"])
def test_stretch_under_its_own_weight(lumps, m):
    """Case 32: with all of a segment's mass at its lower end gL/EA [M + mc (m+1)/(2m)], with halves at both ends gL/EA [M + mc/2]."""
    L, EA, mc, load = 3.0, 500.0, 0.4, 2.0
    rope = Rope(L, EA, 0.0, mc / L, segments=m, lumps=lumps)
    carried = load + float(rope.end_masses[1])
    stretch = G * L / EA * (load + mc * ((m + 1) / (2 * m) if lumps == "lower" else 0.5))
    points = shape(rope, [0.0, 0, 0], [0.0, 0, -L - stretch])
    tension = float(rope.segment_stiffness) * (np.linalg.norm(np.diff(points, axis=0), axis=1) - L / m)
    below = carried + float(rope.segment_mass) * np.arange(m)[::-1]
    np.testing.assert_allclose(tension, below * G, rtol=1e-9)
    assert sum(map(float, rope.end_masses)) + (m - 1) * float(rope.segment_mass) == pytest.approx(mc)


def test_a_rope_on_the_ground():
    """A long rope from a ball at 0.5 m height to the ground: far from it, the nodes lie in the bed as deep as their weight needs."""
    rate = 150.0
    points = shape(Rope(3.0, 500.0, 0.0, 0.1, segments=20), [0.0, 0, 0.5], [1.5, 0, 0.0], ground=(0.0, rate))
    depth = G / rate**2
    lying = points[10:-1, 2]
    np.testing.assert_allclose(lying, -depth, atol=0.05 * depth)
    assert points[:, 2].min() > -1.1 * depth


def test_unknown_numbers_are_refused():
    def nodes(k):
        return hanging_nodes(np.zeros((1, 3)), np.ones((1, 3)), np.ones((3, 1)), k * np.ones((3, 1)), np.ones((2, 1)), G)

    with pytest.raises(ValueError, match="outside jit"):
        jax.jit(nodes)(100.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments": 0}, "segments"), ({"length": 0.0}, "length"), ({"axial_stiffness": -1.0}, "axial_stiffness"),
        ({"linear_density": 0.0}, "linear_density"), ({"damping": -1.0}, "damping"),
    ],
)  # fmt: skip
def test_impossible_ropes_are_refused(options, message):
    numbers = {"length": 1.0, "axial_stiffness": 100.0, "damping": 1.0, "linear_density": 0.1} | options
    with pytest.raises(ValueError, match=message):
        Rope(**numbers)


def test_a_rope_of_material():
    """8 mm steel: EA = E pi d^2/4, EI = E pi d^4/64; a pair of segment masses that swings against each other has the damping ratio."""
    rope = Rope.of_material(2.0, 8e-3, 7850.0, 200e9, 0.03, 4, bending=True)
    area = np.pi * 16e-6
    np.testing.assert_allclose([rope.axial_stiffness, rope.linear_density], [200e9 * area, 7850 * area])
    np.testing.assert_allclose(rope.bending_stiffness, 200e9 * area * 4e-6)
    k, m = float(rope.segment_stiffness), float(rope.segment_mass)
    # Fastest mode of a long chain: every node against its neighbours, m x'' + 4 c x' + 4 k x = 0.
    np.testing.assert_allclose(4 * rope.damping / (2 * np.sqrt(4 * k * m)), 0.03, rtol=1e-12)
