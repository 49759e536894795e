"""Allocation against a general solver, at its limits, and the cases of other people's bug reports."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from skycrane.control.allocation import Allocation, regularisation
from skycrane.math.components import Vec3
from skycrane.vehicles.layout import canted_axes, coaxial, ring
from tests.control.fleet import random_allocation

K_F, K_M = 1e-5, 1.5e-7


def vectors(wrench):
    wrench = jnp.asarray(wrench)
    return Vec3.of(wrench[..., :3]), Vec3.of(wrench[..., 3:])


@eqx.filter_jit
def allocate(allocation, wrench):
    """Thrust, speed (k, n) and unmet wrench (k, 6)."""
    a = allocation(*vectors(wrench))
    return a.thrust, a.speed, jnp.concatenate([a.unmet_force_B.array(), a.unmet_moment_B.array()], -1)


@eqx.filter_jit
def solved(allocation, wrench):
    problem = allocation.problem(*vectors(wrench))
    A, b = problem.weighted
    start = jnp.clip(problem.unlimited(), problem.lo, problem.hi)
    return A, b, start, problem.lo, problem.hi, problem.minimizer()


def of_layout(layout, **options):
    return Allocation.create(layout.position_B, layout.axis_B, layout.spin, K_F, K_M, **{"speed_max": 1000.0, **options})


def hover(n, thrust=3.0, roll=0.0, pitch=0.0, yaw=0.0):
    """Demand (1, 6) of a mean thrust [N] and moments [N m]."""
    return np.array([[0.0, 0.0, n * thrust, roll, pitch, yaw]])


@pytest.mark.parametrize(
    ("n", "dtype"), [(1, np.float64), (4, np.float64), (7, np.float64), (64, np.float64), (4, np.float32), (12, np.float32)]
)
def test_never_worse_than_a_general_solver_and_never_outside_the_limits(n, dtype):
    rng = np.random.default_rng(n)
    k = 60
    allocation = random_allocation(rng, k, n, speed_min=100.0)
    # From demands that all can meet to a hundred times too much.
    size = rng.choice([0.1, 1.0, 3.0, 100.0], (k, 1)) * n * np.array([2.0, 2.0, 10.0, 3.0, 3.0, 0.3])
    wrench = rng.normal(size=(k, 6)) * size + [0, 0, 5.0 * n, 0, 0, 0]
    allocation = jax.tree.map(lambda x: x.astype(dtype), allocation)
    found = solved(allocation, jnp.asarray(wrench, dtype))
    assert found[-1].dtype == dtype
    eps = regularisation(dtype)
    for A, b, start, lo, hi, u in zip(*(np.asarray(x, float) for x in found), strict=True):
        assert np.all(u >= lo)
        assert np.all(u <= hi)

        def cost(x, A=A, b=b, start=start):
            return 0.5 * np.sum((A @ x - b) ** 2) + 0.5 * eps * np.sum((x - start) ** 2)

        stacked, goal = np.vstack([A, np.sqrt(eps) * np.eye(n)]), np.r_[b, np.sqrt(eps) * start]
        other = lsq_linear(stacked, goal, (lo, hi), tol=1e-14, method="bvls" if n < 20 else "trf")
        best = cost(np.clip(other.x, lo, hi))
        assert cost(u) <= best + (1e-12 if dtype == np.float64 else 2e-5) * (1 + best)


def test_six_seven_and_eight_rotors_give_what_is_asked():  # case 24
    for layout in (ring(6, 0.3), ring(7, 0.3), ring(8, 0.3), coaxial(4, 0.3, 0.1)):
        n = len(layout.spin)
        asked = hover(n, 3.0, 0.5, -0.4, 0.02)
        thrust, speed, unmet = allocate(of_layout(layout), asked)
        assert np.abs(unmet).max() < 1e-12 * 3 * n
        # Independently: sum of thrusts and of their moments.
        r, T = layout.position_B, np.asarray(thrust)[0]
        np.testing.assert_allclose(
            [T.sum(), r[:, 1] @ T, -r[:, 0] @ T, -(layout.spin * K_M) @ np.asarray(speed)[0] ** 2], asked[0, 2:], atol=1e-12
        )


def test_of_all_exact_answers_the_smallest():
    layout = ring(8, 0.3)
    allocation = of_layout(layout)
    asked = hover(8, 3.0, 0.5, -0.4, 0.02)
    thrust = np.asarray(allocate(allocation, asked)[0])[0]
    B = np.asarray(allocation.effectiveness)[0, 2:]
    np.testing.assert_allclose(thrust, np.linalg.pinv(B) @ asked[0, 2:], rtol=1e-9)


@pytest.mark.parametrize("irregular", [0.0, 0.006])
def test_two_opposite_motors_stopped_lose_yaw_and_nothing_else(irregular):  # case 25
    layout = ring(6, 0.3, first_angle=np.pi / 6)
    position = layout.position_B + irregular * np.random.default_rng(0).normal(size=(6, 3)) * [1, 1, 0]
    allocation = Allocation.create(position, layout.axis_B, layout.spin, K_F, K_M, speed_max=1000.0, available=[0, 1, 1, 0, 1, 1])
    np.testing.assert_array_equal(np.asarray(allocation.weight)[0] > 0, [False, False, True, True, True, False])
    thrust, _, _ = allocate(allocation, np.zeros((1, 6)))
    np.testing.assert_array_equal(thrust, 0.0)
    whole = of_layout(layout)
    for axis in (3, 4):
        asked = hover(6) + 0.1 * np.eye(6)[axis]
        thrust, _, unmet = allocate(allocation, asked)
        assert np.abs(np.asarray(unmet)[0, 2:5]).max() < 1e-12
        # Ordinary gains: no rotor is asked for more than three times what it would do with all six.
        change = np.abs(np.asarray(thrust) - np.asarray(allocate(allocation, hover(6))[0])).max()
        ordinary = np.abs(np.asarray(allocate(whole, asked)[0]) - np.asarray(allocate(whole, hover(6))[0])).max()
        assert change < 3 * ordinary


def test_a_stopped_motor_during_the_flight_is_obeyed_at_once():  # case 30, no stale caches
    allocation = of_layout(ring(6, 0.3))
    failed = eqx.tree_at(lambda a: a.thrust_max, allocation, allocation.thrust_max.at[0, 2].set(0.0))
    thrust, speed, unmet = allocate(failed, hover(6))
    assert thrust[0, 2] == speed[0, 2] == 0.0
    assert np.abs(np.asarray(unmet)[0, 2:5]).max() < 1e-6


def test_effectiveness_of_a_px4_frame():  # case 26, from FRD to FLU
    position = np.array([[0.13, 0.22, 0], [-0.13, -0.20, 0], [0.13, -0.22, 0], [-0.13, 0.20, 0]]) * [1, -1, -1]
    ct, km = 6.925, 0.12
    # PX4 normalises: thrust ct at full speed. Its positive km is a rotor that turns counter-clockwise.
    allocation = Allocation.create(position, [0, 0, 1.0], [1.0, 1, -1, -1], ct, ct * km, speed_max=1.0)
    base = np.array([[0, 0, 2 * ct, 0, 0, 0]])

    def column(axis, sign):
        step = 1e-3
        thrusts = [np.asarray(allocate(allocation, base + s * step * np.eye(6)[axis])[0])[0] for s in (1, -1)]
        return sign * (thrusts[0] - thrusts[1]) / (2 * step) / ct

    np.testing.assert_allclose(column(2, -1), -0.0361, atol=2e-3 * 0.0361)
    np.testing.assert_allclose(np.abs(column(3, 1)), 0.1719, rtol=3e-4)
    np.testing.assert_allclose(np.abs(column(4, -1)), 0.2777, rtol=3e-4)
    np.testing.assert_allclose(np.sort(np.abs(column(5, -1))), [0.2865, 0.2865, 0.3152, 0.3152], rtol=3e-4)


def test_a_roll_demand_leaves_the_total_thrust_alone():  # case 27
    rng = np.random.default_rng(3)
    layout = ring(4, 0.3, first_angle=np.pi / 4)
    position = layout.position_B * rng.uniform(0.6, 1.4, (4, 1))
    allocation = Allocation.create(position, layout.axis_B, layout.spin, K_F, K_M, speed_max=1000.0)
    still, rolling = (allocate(allocation, hover(4, roll=roll))[0] for roll in (0.0, 0.3))
    assert abs(float(jnp.sum(rolling) - jnp.sum(still))) < 1e-12
    assert np.abs(np.asarray(rolling - still)).max() > 0.1


def test_twice_the_maximum_puts_every_rotor_at_its_limit_and_reports_the_rest():  # case 28
    thrust, speed, unmet = allocate(of_layout(ring(6, 0.3)), hover(6, thrust=20.0))
    np.testing.assert_allclose(thrust, 10.0, rtol=1e-12)
    np.testing.assert_allclose(speed, 1000.0, rtol=1e-12)
    np.testing.assert_allclose(unmet[0], [0, 0, 60.0, 0, 0, 0], atol=1e-9)


def test_priority_roll_before_thrust_before_yaw():
    allocation = of_layout(ring(4, 0.3, first_angle=np.pi / 4))
    # Near full thrust a roll takes thrust away rather than being lost.
    _, _, unmet = allocate(allocation, hover(4, 9.9, roll=1.0))
    assert abs(unmet[0, 3]) < 0.1
    assert unmet[0, 2] > 1.0
    # A yaw that is out of reach costs nearly nothing elsewhere.
    _, _, unmet = allocate(allocation, hover(4, 5.0, roll=0.5, yaw=10.0))
    assert abs(unmet[0, 2]) < 0.02 * 20
    assert abs(unmet[0, 3]) < 0.02
    assert unmet[0, 5] > 9.0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=6, max_size=6), st.integers(0, 5))
def test_no_demand_gives_negative_complex_or_infinite_speeds(wrench, seed):  # case 30
    allocation = random_allocation(np.random.default_rng(seed), 1, 6)
    thrust, speed, unmet = allocate(allocation, np.array([wrench]))
    for value in (thrust, speed, unmet):
        assert np.isrealobj(value)
        assert np.all(np.isfinite(value))
    assert np.all(speed >= 0)
    assert np.all(speed <= 1000.0 * (1 + 1e-12))
    np.testing.assert_allclose(K_F * 0 + np.asarray(allocation.thrust_coefficient) * speed**2, thrust, rtol=1e-12, atol=1e-12)


def test_an_infinite_demand_counts_as_all_there_is():
    thrust, _, unmet = allocate(of_layout(ring(4, 0.3)), np.array([[0, 0, np.inf, 0, 0, 0]]))
    np.testing.assert_allclose(thrust, 10.0)
    assert np.isinf(unmet[0, 2])


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(6)), st.integers(0, 1000))
def test_the_order_of_the_rotors_does_not_matter(order, seed):  # case 23
    rng = np.random.default_rng(seed)
    allocation = random_allocation(rng, 1, 6, speed_min=50.0)
    wrench = np.array([[0, 0, 30.0, 0, 0, 0]]) + rng.normal(size=(1, 6)) * [5, 5, 20, 5, 5, 0.5]
    order = list(order)
    shuffled = eqx.tree_at(
        lambda a: (a.effectiveness, a.thrust_min, a.thrust_max, a.thrust_coefficient), allocation,
        (allocation.effectiveness[..., order], allocation.thrust_min[:, order], allocation.thrust_max[:, order],
         allocation.thrust_coefficient[:, order]),
    )  # fmt: skip
    first, second = allocate(allocation, wrench)[0], allocate(shuffled, wrench)[0]
    np.testing.assert_allclose(np.asarray(first)[:, order], second, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_a_mirrored_layout_mirrors_the_answer(seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(-np.pi, np.pi, 6)
    position = np.stack([np.cos(angle), np.sin(angle), 0.1 * rng.normal(size=6)], -1) * rng.uniform(0.2, 0.5, (6, 1))
    axis, spin = canted_axes(angle, rng.uniform(-0.5, 0.5, 6), rng.uniform(-0.3, 0.3, 6)), rng.choice([-1.0, 1.0], 6)
    wrench = hover(6) + rng.normal(size=(1, 6)) * [3, 3, 10, 3, 3, 0.5]
    mirror = np.array([1.0, -1.0, 1.0])
    here = Allocation.create(position, axis, spin, K_F, K_M, speed_max=1000.0)
    there = Allocation.create(position * mirror, axis * mirror, -spin, K_F, K_M, speed_max=1000.0)
    first = allocate(here, wrench)[0]
    # Moments are axial vectors: the mirror keeps the component across it and turns the others round.
    second = allocate(there, wrench * np.r_[mirror, -mirror])[0]
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_derivatives_by_demand_limits_and_effectiveness(factor):  # free and saturated
    rng = np.random.default_rng(5)
    allocation = random_allocation(rng, 2, 7, speed_min=100.0)
    wrench = jnp.asarray(np.array([[0, 0, 35.0, 0, 0, 0]]) + factor * rng.normal(size=(2, 6)) * [5, 5, 10, 3, 3, 0.3])
    weights = jnp.asarray(rng.normal(size=(2, 7)))
    arrays, rest = eqx.partition(allocation, eqx.is_array)

    @jax.jit
    def merit(arrays, wrench):
        a = eqx.combine(arrays, rest)(*vectors(wrench))
        return jnp.sum(weights * a.thrust) + jnp.sum(a.speed) * 1e-3

    gradient = jax.jit(jax.grad(merit, (0, 1)))(arrays, wrench)
    direction = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)) * jnp.abs(x).mean(), (arrays, wrench))
    # The weights act through a solution that is only regularised where they matter; keep them fixed.
    direction = eqx.tree_at(lambda d: d[0].weight, direction, jnp.zeros((2, 6)))
    slope = sum(jnp.sum(g * d) for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True))
    step = 2e-5  # the saturated solution is exact to about 1e-9
    ahead, behind = (merit(*jax.tree.map(lambda x, d, s=s: x + s * step * d, (arrays, wrench), direction)) for s in (1, -1))
    assert float(slope) == pytest.approx(float(ahead - behind) / (2 * step), rel=3e-5)


def test_derivatives_are_finite_at_the_limits():  # case 12
    allocation = of_layout(ring(4, 0.3))

    @jax.jit
    def speeds(wrench):
        return jnp.sum(allocation(*vectors(wrench)).speed)

    for demand in (np.zeros((1, 6)), hover(4, 10.0), hover(4, 30.0), hover(4, 0.0, roll=1.0)):
        assert np.all(np.isfinite(jax.grad(speeds)(jnp.asarray(demand))))


def test_vmap_equals_a_loop():
    rng = np.random.default_rng(1)
    allocation = of_layout(ring(6, 0.3, torsional=0.4 * np.array([1.0, -1] * 3)))
    demands = jnp.asarray(hover(6) + rng.normal(size=(20, 1, 6)) * [10, 10, 30, 5, 5, 2])
    together = jax.jit(jax.vmap(lambda w: allocation(*vectors(w)).thrust))(demands)
    apart = np.stack([allocate(allocation, w)[0] for w in demands])
    np.testing.assert_allclose(together, apart, atol=1e-9)


def test_numbers_that_cannot_be_are_refused():
    layout = ring(4, 0.3)
    with pytest.raises(ValueError, match="finite speed_max"):
        of_layout(layout, speed_max=np.inf)
    with pytest.raises(ValueError, match="speed_min < speed_max"):
        of_layout(layout, speed_min=1000.0)
    with pytest.raises(ValueError, match=r"\(k, n, 3\)"):
        Allocation.create(np.zeros(3), [0, 0, 1.0], 1.0, K_F, K_M, speed_max=1.0)
