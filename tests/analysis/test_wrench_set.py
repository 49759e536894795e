import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from skycrane.analysis.authority import worst_direction_radius
from skycrane.analysis.wrench_set import WrenchSet
from skycrane.analysis.zonotope import Zonotope
from skycrane.vehicles.layout import coaxial, ring
from tests.analysis.models import K_F, K_M, multirotor, slung

G = 9.81
SEVEN = np.array([
    [-0.216, -0.104, -0.091, 0.27511, -0.82592, 0.49211],
    [0.064, 0.039, 0.331, -0.09200, 0.96623, -0.24071],
    [-0.060, 0.238, -0.141, -0.13870, 0.51611, 0.84522],
    [0.296, 0.163, -0.329, -0.55189, -0.36379, -0.75038],
    [0.212, -0.246, 0.156, -0.78989, -0.18080, 0.58599],
    [-0.064, 0.283, 0.201, 0.99851, 0.05410, 0.00760],
    [-0.506, -0.594, -0.062, 0.29885, -0.16592, -0.93977],
])  # fmt: skip


def seven(com=(0.0, 0.0, 0.0)):
    """Seven rotors that turn so that their torque is along their thrust: spin -1."""
    return WrenchSet.create(SEVEN[:, :3] - np.asarray(com), SEVEN[:, 3:], -1.0, 0.0147, 0.0, 28.0, 1.9 * G)


def from_layout(layout, upper=10.0, weight=2 * G):
    return WrenchSet.create(layout.position_B, layout.axis_B, layout.spin, K_M / K_F, 0.0, upper, weight)


# -- known numbers -----------------------------------------------------------------------------------------------------------------------


def test_seven_rotor_layout_at_level_hover():
    set_ = seven()
    assert set_.forces().radius == pytest.approx(17.56, abs=0.005)
    assert set_.moments().radius == pytest.approx(7.77, abs=0.005)
    found = set_.reachability()
    assert (found.rank, found.every_direction) == (6, True)
    assert found.margin == pytest.approx(1.0, abs=1e-3)  # nearly equal thrusts cancel
    np.testing.assert_allclose(set_.matrix @ found.null_vector, 0.0, atol=1e-9)


def test_flat_quadrotor_by_hand():
    set_ = from_layout(ring(4, 0.3, first_angle=np.pi / 4))
    assert set_.zonotope.dimension == 4
    assert set_.hover_margin() == pytest.approx(40 / (2 * G))
    assert set_.forces().radius == 0.0  # no force sideways
    assert set_.forces().reach([0.0, 0.0, 1.0]) == pytest.approx((-2 * G, 40 - 2 * G))
    # The thrust of a rotor is W/4 + Mx/4a + My/4a + Mz/4k up to signs; it ends at zero, first with yaw.
    arm = 0.3 * np.sqrt(0.5)
    assert set_.moments().radius == pytest.approx(2 * G / np.sqrt(2 / arm**2 + 1 / 0.01**2))
    assert abs(set_.moments().worst_direction[2]) > 0.99
    assert set_.moments().reach([1.0, 0.0, 0.0]) == pytest.approx((-2 * G * arm, 2 * G * arm))
    assert not set_.reachability().every_direction
    assert set_.after([0]).kind == "none"
    # It cannot carry more than it has thrust for.
    heavy = from_layout(ring(4, 0.3), weight=50.0)
    assert heavy.hover_margin() == pytest.approx(0.8)
    assert heavy.moments().radius < 0
    assert not heavy.moments().feasible
    assert heavy.moments().reach([1.0, 0, 0]) == (np.inf, -np.inf)


def test_which_rotors_may_fail():
    kinds = lambda layout, most=1: [f.kind for f in from_layout(layout).failures(most)]  # noqa: E731
    # Alternating spins: with one rotor stopped hover is possible, but yaw and roll can no longer be had apart.
    assert kinds(ring(6, 0.3)) == ["yaw given up"] * 6
    # Spins ++--+-: the published result (Schneider, Ducard, Konrad, Pascal 2012) is full control after four of six failures.
    assert sorted(kinds(ring(6, 0.3, spin=np.array([1.0, 1, -1, -1, 1, -1])))) == ["full"] * 4 + ["yaw given up"] * 2
    assert kinds(ring(8, 0.3)) == ["full"] * 8
    assert kinds(coaxial(4, 0.3, 0.1)) == ["full"] * 8
    pairs = {f.stopped: f.kind for f in from_layout(ring(8, 0.3)).failures(2) if len(f.stopped) == 2}
    assert len(pairs) == 28
    assert pairs["1", "5"] == "full"
    assert pairs["1", "2"] == "none" or pairs["1", "2"] == "full" or pairs["1", "2"] == "yaw given up"


def test_two_opposite_motors_of_a_hexarotor_stopped():
    """Roll and yaw become collinear on a regular hexagon: balance without control."""
    found = from_layout(ring(6, 0.3, first_angle=np.pi / 2)).after([0, 3])
    assert found.hovers
    assert found.moment_radius == pytest.approx(0.0, abs=1e-12)


def test_canted_hexarotor_hovers_tilted_after_a_failure():
    set_ = from_layout(ring(6, 0.3, torsional=np.array([0.4, -0.4] * 3)))
    level, best = set_.after([0]), set_.after([0], up=None)
    assert not level.hovers
    assert best.hovers
    assert best.kind == "yaw given up"
    assert 5 < np.degrees(np.arccos(best.up[2])) < 20
    left = set_.without([0])
    assert left.zonotope.contains(left.hover_wrench(best.up))
    assert set_.attitude_moments(set_.best_up()).radius >= set_.attitude_moments().radius
    np.testing.assert_array_equal(from_layout(ring(8, 0.3)).best_up(), [0, 0, 1])


def test_reachability_counts_rotors():
    random = np.random.default_rng(0)
    axis = random.normal(size=(6, 3))
    six = WrenchSet.create(random.normal(size=(6, 3)), axis, 1.0, 0.01, 0.0, 1.0)
    assert six.reachability().rank == 6
    assert not six.reachability().every_direction  # six cannot be enough with rotors that only push
    flat = from_layout(ring(8, 0.3)).reachability()
    assert (flat.rank, flat.every_direction) == (4, False)


def test_from_a_system_with_limits_and_failures():
    system = multirotor(ring(6, 0.3), speed_max=1000.0, speed_min=100.0, stopped=[2])
    set_ = WrenchSet.of(system)
    upper = np.full(6, K_F * 1e6)
    upper[2] = 0.0
    np.testing.assert_allclose(set_.upper, upper)
    np.testing.assert_allclose(set_.lower[[0, 2]], [K_F * 1e4, 0.0])
    assert set_.labels[3] == "uav/4"
    assert set_.weight == pytest.approx(2 * G)
    reference = from_layout(ring(6, 0.3))
    np.testing.assert_allclose(set_.matrix, reference.matrix, atol=1e-15)
    assert WrenchSet.of(slung(), "uav0").matrix.shape == (6, 4)
    with pytest.raises(ValueError, match="has no rotors"):
        WrenchSet.of(slung(), "load")
    with pytest.raises(ValueError, match="no largest speed"):
        WrenchSet.of(multirotor(speed_max=np.inf))


# -- against linear programming ----------------------------------------------------------------------------------------------------------


def furthest(set_, direction, at=None, fixed=()):
    """Largest s so that at + s direction is attainable: by linear programming over the thrusts.  None if there is no s."""
    n = len(set_.upper)
    at = np.zeros(6) if at is None else at
    units = np.repeat([1.0, set_.arm], 3) * set_.upper.max()
    found = linprog(
        np.r_[np.zeros(n), -1.0], A_eq=np.hstack([set_.matrix, -direction[:, None]]) / units[:, None], b_eq=at / units,
        bounds=[*zip(set_.lower, set_.upper, strict=True), (None, None)],
    )  # fmt: skip
    return found.x[-1] if found.status == 0 else None


@st.composite
def layouts(draw):
    """4 to 12 rotors anywhere, pointing anywhere, or all upwards; some coincide."""
    n = draw(st.integers(4, 12))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    position = random.uniform(-0.5, 0.5, (n, 3))
    axis = random.normal(size=(n, 3))
    if draw(st.booleans()):
        position[:, 2], axis = 0.0, np.tile([0.0, 0.0, 1.0], (n, 1))
    if draw(st.booleans()):
        position[1], axis[1] = position[0], axis[0]
    spin = random.choice([-1.0, 1.0], n)
    lower = random.uniform(0.0, 2.0, n) * draw(st.booleans())
    return WrenchSet.create(position, axis, spin, 0.02, lower, lower + random.uniform(1.0, 20.0, n), 1.0), random


@given(layouts())
@settings(max_examples=40, deadline=None)
def test_sections_of_random_layouts_against_linear_programming(drawn):
    set_, random = drawn
    # A wrench that can be had, well inside: the image of thrusts well within their limits.
    inside = set_.matrix @ (set_.lower + random.uniform(0.2, 0.8, len(set_.lower)) * (set_.upper - set_.lower))
    assert set_.zonotope.contains(inside)
    for section, rows in ((set_.forces(inside), slice(0, 3)), (set_.moments(inside), slice(3, 6))):
        embed = lambda d, rows=rows: np.concatenate([d, np.zeros(3)]) if rows.start == 0 else np.concatenate([np.zeros(3), d])  # noqa: E731
        radius, worst = section.radius, section.worst_direction
        assert section.feasible
        for d in [worst, *random.normal(size=(4, 3))]:
            d = d / np.linalg.norm(d)
            exact = furthest(set_, embed(d), inside)
            assert section.reach(d)[1] == pytest.approx(exact, abs=1e-6 * set_.upper.max())
            assert radius <= exact + 1e-7
        # The radius is attained, not only a bound.
        assert radius == pytest.approx(furthest(set_, embed(worst), inside), abs=1e-6 * set_.upper.max())
    for d in random.normal(size=(3, 6)):
        found = linprog(-(d @ set_.matrix), bounds=[*zip(set_.lower, set_.upper, strict=True)])
        assert set_.support(d) == pytest.approx(-found.fun, rel=1e-9, abs=1e-9)
        outside = inside + d / np.linalg.norm(d) * 1e3
        assert not set_.zonotope.contains(outside)
    up = set_.hover_margin()
    exact = furthest(set_, set_.hover_wrench())
    assert up == -np.inf if exact is None else up == pytest.approx(exact, abs=1e-6 * set_.upper.max())


def test_corners_and_largest_ball_of_a_section():
    section = seven().forces()
    corners = section.vertices()
    # Every corner is attainable and none can be passed.
    for corner in corners[::5]:
        assert section.reach(corner)[1] == pytest.approx(1.0, rel=1e-6)
    from scipy.spatial import ConvexHull

    equations = ConvexHull(corners).equations
    assert -equations[:, 3].max() == pytest.approx(section.radius, rel=1e-6)
    middle, ball = section.chebyshev()
    assert ball >= section.radius
    assert np.all(section.normals @ middle + ball * np.linalg.norm(section.normals, axis=1) <= section.slack + 1e-9)
    with pytest.raises(ValueError, match="flat"):
        from_layout(ring(4, 0.3)).forces().vertices()


def test_box_segment_and_point():
    box = Zonotope(np.eye(3), np.array([-1.0, 0, 0]), np.array([1.0, 2, 3]))
    assert box.section(np.array([0.0, 1, 1]), [0, 1, 2]).radius == pytest.approx(1.0)
    assert box.section(np.array([0.0, 1, 1]), [1]).reach([1.0]) == pytest.approx((-1.0, 1.0))
    assert box.project([2]).section(np.zeros(1), [0]).reach([1.0]) == pytest.approx((0.0, 3.0))
    point = Zonotope(np.eye(2), np.ones(2), np.ones(2))
    assert point.dimension == 0
    assert point.contains(np.ones(2))
    assert not point.contains(np.array([1.0, 1.1]))
    with pytest.raises(ValueError, match="finite"):
        Zonotope(np.eye(1), np.zeros(1), np.full(1, np.inf))
    with pytest.raises(ValueError, match="lower <= upper"):
        Zonotope(np.eye(1), np.ones(1), np.zeros(1))


# -- for design --------------------------------------------------------------------------------------------------------------------------


def test_differentiable_radius_equals_the_exact_one_and_its_gradient_central_differences():
    set_ = seven()
    M, at = jnp.asarray(set_.matrix), jnp.asarray(set_.hover_wrench())
    for free, exact in (((0, 1, 2), set_.forces().radius), ((3, 4, 5), set_.moments().radius)):
        radius = jax.jit(lambda M, free=free: worst_direction_radius(M, set_.lower, set_.upper, at, free, arm=set_.arm))
        assert float(radius(M)) == pytest.approx(exact, rel=1e-12)
        direction, h = np.random.default_rng(0).normal(size=M.shape), 1e-6
        slope = (radius(M + h * direction) - radius(M - h * direction)) / (2 * h)
        assert float(jnp.sum(jax.grad(radius)(M) * direction)) == pytest.approx(float(slope), rel=1e-6)
    smooth = worst_direction_radius(M, set_.lower, set_.upper, at, (0, 1, 2), sharpness=5.0)
    assert set_.forces().radius - 1.0 < float(smooth) < set_.forces().radius
