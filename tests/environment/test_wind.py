"""Winds against their closed forms: shear, gusts, tables, sums, density."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.environment.air import Air, NoWind, SteadyWind, standard_density
from skycrane.environment.series import Series
from skycrane.environment.wind import Gust, GustFront, LogWind, PowerLawWind, ProfileWind, Superposed, TabulatedWind
from skycrane.math.components import Vec3


def at(wind, t=0.0, p=(0.0, 0.0, 0.0)):
    return np.asarray(wind.velocity_W(jnp.asarray(t), Vec3.of(jnp.asarray(p, float))).array())


HEIGHTS = np.array([[0.0, 0.0, z] for z in (-1.0, 0.0, 0.02, 0.5, 10.0, 40.0)])


def test_shear_laws():
    v = jnp.array([3.0, 4.0, 0.0])
    power = at(PowerLawWind(v, 10.0, 0.2, ground=0.0, lowest=0.1), p=HEIGHTS)
    np.testing.assert_allclose(power, np.maximum(HEIGHTS[:, 2:], 0.1) ** 0.2 / 10**0.2 * v, rtol=1e-12)
    log = at(LogWind(v, 10.0, 0.03), p=HEIGHTS)
    expected = np.log(np.maximum(HEIGHTS[:, 2:], 0.03) / 0.03) / np.log(10 / 0.03) * v
    np.testing.assert_allclose(log, expected, rtol=1e-12, atol=1e-15)
    assert not log[:3].any()
    raised = at(PowerLawWind(v, 10.0, 0.2, ground=2.0), p=[0.0, 0.0, 12.0])
    np.testing.assert_allclose(raised, v, rtol=1e-12)


def test_profile_is_linear_between_and_constant_outside():
    wind = ProfileWind(jnp.array([0.0, 10.0, 30.0]), jnp.array([[0.0, 0, 0], [5.0, 1, 0], [6.0, -1, 0]]))
    got = at(wind, p=[[0, 0, z] for z in (-5.0, 4.0, 10.0, 20.0, 99.0)])
    np.testing.assert_allclose(got, [[0, 0, 0], [2, 0.4, 0], [5, 1, 0], [5.5, 0, 0], [6, -1, 0]], atol=1e-12)


@pytest.mark.parametrize("hold", [None, 0.0, 1.5])
def test_gust_shape(hold):
    wind = Gust(jnp.array([0.0, 6.0, 0.0]), start=2.0, rise=0.8, hold=hold)
    t = np.linspace(0.0, 8.0, 801)
    got = np.asarray(jax.vmap(lambda s: wind.velocity_W(s, Vec3.of(jnp.zeros(3))).y)(jnp.asarray(t)))
    s = t - 2.0
    expected = np.where(s < 0, 0.0, np.where(s <= 0.8, 3.0 * (1 - np.cos(np.pi * s / 0.8)), 6.0))
    if hold is not None:
        back = s - 0.8 - hold
        falling = 3.0 * (1 + np.cos(np.pi * np.clip(back, 0, 0.8) / 0.8))
        expected = np.where(back > 0, falling, expected)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    assert got.max() == pytest.approx(6.0, rel=1e-3)


def test_gust_front_stands_still_or_moves_with_the_air():
    along = jnp.array([2.0, 0.0, 0.0])
    still = GustFront(jnp.array([0.0, 0.0, 3.0]), jnp.zeros(3), along, rise=4.0)
    got = at(still, 7.0, [[-1.0, 5, 5], [1.0, 0, 0], [2.0, 0, 0], [9.0, 0, 0]])[:, 2]
    np.testing.assert_allclose(got, [0, 3 * (1 - np.sqrt(0.5)) / 2, 1.5, 3])
    # Carried by a wind of 5 m/s along x, its front reaches x = 10 m after 2 s, and is full there 4 m / 5 m/s later.
    carried = GustFront(jnp.array([1.0, 0.0, 0.0]), jnp.zeros(3), -along, rise=4.0, drift=jnp.array([5.0, 0.0, 0.0]))
    here = [10.0, 3.0, 1.0]
    np.testing.assert_allclose([at(carried, t, here)[0] for t in (1.9, 2.0, 2.4, 2.8, 9.0)], [0, 0, 0.5, 1, 1], atol=1e-12)


def test_sum_of_winds_and_points_of_any_number():
    wind = Superposed((SteadyWind(jnp.array([1.0, 0.0, 0.0])), PowerLawWind(jnp.array([0.0, 2.0, 0.0])), NoWind()))
    got = at(wind, p=[[0.0, 0.0, 10.0], [5.0, 5.0, 10.0]])
    np.testing.assert_allclose(got, [[1, 2, 0]] * 2)
    assert wind.velocity_W(0.0, Vec3.of(jnp.zeros((3, 2, 3)))).array().shape == (3, 2, 3)


def test_record_of_wind(tmp_path):
    time = np.array([0.0, 0.5, 1.0, 2.5])
    velocity = np.array([[0.0, 0, 0], [1.0, 0, 0], [1.0, 2, 0], [4.0, 2, -1]])
    wind = TabulatedWind.create(time, velocity)
    for t in (-1.0, 0.0, 0.25, 0.9, 1.0, 1.75, 2.5, 80.0):
        expected = [np.interp(t, time, velocity[:, k]) for k in range(3)]
        np.testing.assert_allclose(at(wind, t), expected, atol=1e-12)
    file = tmp_path / "wind.csv"
    rows = [f"{v[1]},{t},{v[0]},{v[2]},0\n" for t, v in zip(time, velocity, strict=True)]
    file.write_text("wind_y, time,wind_x,wind_z,note\n" + "".join(rows))
    np.testing.assert_array_equal(TabulatedWind.from_csv(file).series.values, wind.series.values)


def test_records_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"does not rise after 0.5 s"):
        TabulatedWind.create([0.0, 0.5, 0.5], np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"expected \(n,\) and \(n, 3\)"):
        TabulatedWind.create([0.0, 0.5], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="not finite"):
        TabulatedWind.create([0.0, 0.5], [[0, 0, np.nan], [0, 0, 0]])
    with pytest.raises(ValueError, match="at least two"):
        TabulatedWind.create([0.0], np.zeros((1, 3)))
    file = tmp_path / "wind.csv"
    file.write_text("time,u,v,w\n0,1,2,3\n")
    with pytest.raises(ValueError, match="no column wind_x, wind_y, wind_z; the first line names time, u, v, w"):
        TabulatedWind.from_csv(file)
    file.write_text("time,wind_x,wind_y,wind_z\n0,1,2,3\n1,1,x,3\n")
    with pytest.raises(ValueError, match=r"wind\.csv"):
        TabulatedWind.from_csv(file)


def test_smooth_series_passes_through_its_samples_with_a_continuous_slope():
    values = np.random.default_rng(0).normal(size=(9, 2))
    series = Series.create(values, 0.1, start=1.0, smooth=True, outside="mirrored")
    nodes = jnp.asarray(1.0 + 0.1 * np.arange(9))
    np.testing.assert_allclose(jnp.stack(jax.vmap(series)(nodes), -1), values, atol=1e-12)
    np.testing.assert_allclose(jnp.stack(series(nodes), -1), values, atol=1e-12)  # the gather of many times at once
    slope = jax.jit(jax.vmap(jax.grad(lambda t: series(t)[0])))
    np.testing.assert_allclose(slope(nodes - 1e-9), slope(nodes + 1e-9), atol=1e-5)
    # Beyond its end, and before its start, it is read backwards.
    t = jnp.linspace(0.0, 0.8, 33)
    first = jax.jit(lambda t: series(t)[0])
    np.testing.assert_allclose(first(1.8 + t), first(1.8 - t), atol=1e-9)
    np.testing.assert_allclose(first(1.0 - t), first(1.0 + t), atol=1e-9)
    np.testing.assert_allclose(first(2.6 + t), first(1.0 + t), atol=1e-9)
    with pytest.raises(ValueError, match="at least 2"):
        Series.create(np.zeros((1, 3)), 0.1)
    with pytest.raises(ValueError, match="expected 'constant' or 'mirrored'"):
        Series.create(np.zeros((2, 3)), 0.1, outside="periodic")


def test_standard_atmosphere():
    # ISO 2533: 0, 1, 5 and 11 km (geopotential).
    got = [standard_density(h) for h in (0.0, 1000.0, 5000.0, 11000.0)]
    np.testing.assert_allclose(got, [1.2250, 1.11164, 0.736116, 0.363918], rtol=1e-5)
    # A day 20 K too warm: the pressure is the same.
    assert standard_density(1000.0, 20.0) == pytest.approx(standard_density(1000.0) * 281.65 / 301.65, rel=1e-12)
    p = Vec3.of(jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 500.0]]))
    assert Air.standard(500.0).density_at(p) == pytest.approx(standard_density(500.0))
    layered = Air.standard(500.0, stratified=True)
    np.testing.assert_allclose(layered.density_at(p), [standard_density(500.0), standard_density(1000.0)], rtol=1e-9)


@pytest.mark.parametrize(
    "wind",
    [
        PowerLawWind(jnp.array([3.0, 4.0, 0.0])),
        LogWind(jnp.array([3.0, 4.0, 0.0])),
        ProfileWind(jnp.array([0.0, 10.0, 30.0]), jnp.array([[0.0, 0, 0], [5.0, 1, 0], [6.0, -1, 0]])),
        Gust(jnp.array([1.0, 2.0, 3.0]), 1.0, 2.0, 0.5),
        GustFront(jnp.ones(3), jnp.zeros(3), jnp.array([1.0, 1.0, 0.0]), 30.0, 1.0, jnp.array([0.3, 0.0, 0.0])),
        TabulatedWind.create([0.0, 1.1, 3.0], [[0.0, 0, 0], [1.0, 0, 0], [1.0, 2, 3]]),
    ],
    ids=lambda w: type(w).__name__,
)
def test_gradients(wind):
    t, p = jnp.asarray(1.7), jnp.array([3.0, 1.0, 7.0])
    f = lambda w, t, p: w.velocity_W(t, Vec3.of(p)).array() @ jnp.array([1.0, -2.0, 0.5])  # noqa: E731
    leaves, tree = jax.tree.flatten((wind, t, p))
    leaves = [jnp.asarray(x, float) for x in leaves]
    g = jax.grad(lambda leaves: f(*jax.tree.unflatten(tree, leaves)))(leaves)
    rng = np.random.default_rng(1)
    direction = [rng.normal(size=x.shape) for x in leaves]
    h = 1e-6
    ends = [f(*jax.tree.unflatten(tree, [x + s * h * d for x, d in zip(leaves, direction, strict=True)])) for s in (1, -1)]
    analytic = sum(float(jnp.sum(a * d)) for a, d in zip(g, direction, strict=True))
    assert analytic == pytest.approx(float(ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-8)
    # Points below the ground, where the shear laws are cut off, have finite derivatives too.
    low = jax.grad(f, argnums=2)(wind, t, jnp.array([0.0, 0.0, -1.0]))
    assert np.isfinite(low).all()
