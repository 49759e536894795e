"""Dryden turbulence: parameters, variance, spectrum and autocorrelation against the closed forms, seeds, restarts, batches."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.environment.turbulence import Dryden, low_altitude_parameters, realisation
from skycrane.math.components import Vec3


@partial(jax.jit, static_argnames="count")
def many(seed, sigma, tau, count, step):
    keys = jax.random.split(jax.random.key(seed), 4096 if count == 64 else 64)
    return jax.vmap(lambda k: realisation(k, sigma, tau, count, step))(keys)


ORIGIN = Vec3(jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))


@pytest.fixture(scope="module")
def record():
    """Many hours of turbulence: 64 realisations of 8192 samples, with tau = 0.4, 0.4, 0.15 s and a step of 0.05 s."""
    sigma, tau = jnp.array([1.5, 1.5, 0.7]), jnp.array([0.4, 0.4, 0.15])
    return np.asarray(many(7, sigma, tau, 8192, 0.05)), np.asarray(sigma), np.asarray(tau), 0.05


def test_low_altitude_parameters():
    # At 100 ft: L_w = 100 ft, L_u = 100 / 0.2593^1.2 ft = 505.1 ft, sigma_u = 0.1 W / 0.2593^0.4 (MIL-F-8785C, figures 10 and 11).
    sigma, length = low_altitude_parameters(100 * 0.3048, 20.0)
    np.testing.assert_allclose(length, np.array([505.11, 505.11, 100.0]) * 0.3048, rtol=2e-4)
    np.testing.assert_allclose(sigma, [2.0 / 0.2593**0.4, 2.0 / 0.2593**0.4, 2.0], rtol=1e-12)
    # At 1000 ft everything is isotropic: the formula ends at L = 1000 ft and sigma_u = sigma_w.
    sigma, length = low_altitude_parameters(304.8, 20.0)
    np.testing.assert_allclose(length, 304.8, rtol=1e-9)
    np.testing.assert_allclose(sigma, 2.0, rtol=1e-9)
    np.testing.assert_array_equal(low_altitude_parameters(0.5, 5.0)[1], low_altitude_parameters(3.048, 5.0)[1])


def test_variance_is_exact_and_stationary(record):
    x, sigma, *_ = record
    np.testing.assert_allclose(x.mean((0, 1)) / sigma, 0.0, atol=0.02)
    np.testing.assert_allclose(x.std((0, 1)), sigma, rtol=0.006)
    # The first samples have the same spread as the rest: the filters start in their stationary state.
    early = np.asarray(many(1, jnp.ones(3), jnp.full(3, 9.0), 64, 0.05))
    np.testing.assert_allclose(early.std(0), 1.0, rtol=0.05)


def test_autocorrelation(record):
    x, sigma, tau, step = record
    for lag in (1, 3, 8, 16):
        got = (x[:, lag:] * x[:, :-lag]).mean((0, 1)) / sigma**2
        z = lag * step / tau
        expected = np.exp(-z) * np.array([1.0, 1 - z[1] / 2, 1 - z[2] / 2])
        np.testing.assert_allclose(got, expected, atol=0.012)


def test_components_are_independent(record):
    x, sigma, *_ = record
    scaled = (x / sigma).reshape(-1, 3)
    np.testing.assert_allclose(scaled.T @ scaled / len(scaled), np.eye(3), atol=0.015)


def dryden_spectrum(w, sigma, tau):
    y = np.outer(w, tau)
    shape = [2 / (1 + y[:, 0] ** 2), *((1 + 3 * y[:, k] ** 2) / (1 + y[:, k] ** 2) ** 2 for k in (1, 2))]
    return sigma**2 * tau / np.pi * np.stack(shape, -1)


def test_spectrum(record):
    x, sigma, tau, step = record
    n = x.shape[1]
    window = np.hanning(n)[:, None]
    power = (np.abs(np.fft.rfft(x * window, axis=1)) ** 2).mean(0) * 2 * step / (2 * np.pi * (window**2).sum())
    w = 2 * np.pi * np.fft.rfftfreq(n, step)
    # Sampling folds the spectrum of the continuous process at multiples of the sampling frequency; the tail of the sum is 1/k^2.
    expected = sum(dryden_spectrum(np.abs(w + 2 * np.pi * k / step), sigma, tau) for k in range(-40, 41))
    for low, high in ((0.1, 1.0), (1.0, 3.0), (3.0, 8.0), (8.0, 20.0), (20.0, 60.0)):
        band = (w > low) & (w < high)
        np.testing.assert_allclose(power[band].mean(0), expected[band].mean(0), rtol=0.05)
    # The closed form itself: its integral over all frequencies is the variance.
    grid = np.logspace(-6, 6, 200001)
    total = np.trapezoid(dryden_spectrum(grid, sigma, tau), grid, axis=0)
    np.testing.assert_allclose(total, sigma**2, rtol=1e-4)


@pytest.mark.parametrize("step", [0.01, 0.1, 0.5])
def test_discretisation_is_exact_for_any_step(step):
    tau = np.array([0.5, 0.5, 0.2])
    x = np.asarray(many(3, jnp.ones(3), jnp.asarray(tau), 64, step))
    np.testing.assert_allclose(x.std((0, 1)), 1.0, rtol=0.03)
    z = step / tau
    expected = np.exp(-z) * np.array([1.0, 1 - z[1] / 2, 1 - z[2] / 2])
    correlation = (x[:, 1:] * x[:, :-1]).mean((0, 1)) / (x**2).mean((0, 1))
    np.testing.assert_allclose(correlation, expected, atol=0.01)


def test_single_precision_keeps_short_steps():
    x = realisation(jax.random.key(0), jnp.ones(3, jnp.float32), jnp.full(3, 5.0, jnp.float32), 2000, jnp.float32(0.002))
    assert x.dtype == jnp.float32
    d = np.diff(np.asarray(x, float), axis=0)
    # Mean square step of u: 2 (1 - e^-d); of v, w: 3 d - ..., from the autocorrelation.
    s = 0.002 / 5.0
    np.testing.assert_allclose((d**2).mean(0), [2 * s, 3 * s, 3 * s], rtol=0.12)


def test_same_seed_same_wind_and_restart():
    make = lambda seed: Dryden.low_altitude(20.0, 6.0, duration=10.0, seed=seed)  # noqa: E731
    a, b, c = make(1), make(1), make(2)
    np.testing.assert_array_equal(a.series.values, b.series.values)
    assert not np.array_equal(a.series.values, c.series.values)
    # A pure function of time: any order of evaluation gives the same numbers, bit for bit.
    t = np.linspace(0.0, 25.0, 101)  # beyond the table too
    f = jax.jit(lambda t: a.velocity_W(t, ORIGIN).array())
    forward = [np.asarray(f(x)) for x in t]
    backward = [np.asarray(f(x)) for x in t[::-1]][::-1]
    np.testing.assert_array_equal(forward, backward)
    assert np.isfinite(forward).all()


def test_heading_and_slow_air():
    east = Dryden.low_altitude(20.0, 6.0, duration=5.0, seed=4)
    north = Dryden.low_altitude(20.0, 6.0, duration=5.0, seed=4, heading=np.pi / 2)
    e, n = np.asarray(east.series.values), np.asarray(north.series.values)
    np.testing.assert_allclose(n, np.stack([-e[:, 1], e[:, 0], e[:, 2]], -1), atol=1e-12)
    calm = Dryden.create(1.0, 10.0, 0.0, duration=5.0, seed=4)
    np.testing.assert_array_equal(calm.series.values, Dryden.create(1.0, 10.0, 1.0, duration=5.0, seed=4).series.values)


def test_frozen_turbulence_travels_with_the_wind():
    wind = Dryden.low_altitude(20.0, 8.0, duration=20.0, seed=4, heading=0.3, frozen=True)
    ahead = 12.0 * np.array([np.cos(0.3), np.sin(0.3), 0.0])
    points = Vec3.of(jnp.stack([jnp.zeros(3), jnp.asarray(ahead), jnp.array([0.0, 0.0, 50.0])]))
    there = wind.velocity_W(9.0, points).array()
    np.testing.assert_allclose(there[1], wind.velocity_W(9.0 - 12.0 / 8.0, points).array()[0], atol=1e-12)
    np.testing.assert_allclose(there[2], there[0], atol=1e-12)


def test_batches_of_seeds_and_strength():
    seeds = jnp.arange(3)

    def gust(seed):
        return Dryden.low_altitude(20.0, 6.0, duration=5.0, step=0.02, seed=seed).velocity_W(1.234, ORIGIN).array()

    batch, one = jax.jit(jax.vmap(gust))(seeds), jax.jit(gust)
    for k, s in enumerate(seeds):
        np.testing.assert_allclose(batch[k], one(s), rtol=1e-12)


def test_gradient_by_the_wind():
    @jax.jit
    def gust(v):
        wind = Dryden.low_altitude(20.0, v, duration=2.0, step=0.02, seed=1, airspeed=9.0)
        return wind.velocity_W(1.2, ORIGIN).z.sum()

    h = 1e-5
    assert jax.jit(jax.grad(gust))(6.0) == pytest.approx(float(gust(6 + h) - gust(6 - h)) / (2 * h), rel=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match=r"ends at 304.8 m"):
        Dryden.low_altitude(400.0, 5.0, duration=5.0, seed=1)
    with pytest.raises(ValueError, match="must be positive"):
        Dryden.low_altitude(40.0, 5.0, duration=0.0, seed=1)
    with pytest.raises(ValueError, match="give a longer step"):
        Dryden.create(1.0, 10.0, 1.0, duration=1e6, seed=1, step=0.001)
