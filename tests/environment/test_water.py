"""Waves against Airy theory written out by itself, the stream-function package's linear solution, and the spectra's moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from skycrane.environment.spectra import draw, jonswap, pierson_moskowitz, spreading
from skycrane.environment.water import Current, Water
from skycrane.environment.waves import Waves, airy, wave_number
from skycrane.math.components import Vec3


def at(water, t, *point):
    sea = water.motion(t, Vec3(*(jnp.array([float(c)]) for c in point)))
    return float(sea.level[0]), sea.velocity_W.array()[0], sea.acceleration_W.array()[0]


def test_a_regular_wave_in_deep_water():
    """Case 42: T = 6 s, H = 2 m."""
    wave = airy(2.0, 6.0)
    k = float(wave.number[0])
    np.testing.assert_allclose([2 * np.pi / k, 2 * np.pi / 6 / k], [56.2, 9.37], rtol=1e-3)
    mean = np.mean([at(Water(waves=wave), t, 0, 0, 0)[1] for t in np.arange(24) * 0.25], 0)
    # At the mean level the wave itself averages to A^2 w k / 2 with a stretched profile; the drift is what the switch adds.
    still = np.mean([at(Water(waves=airy(2.0, 6.0, drift=False)), t, 0, 0, 0)[1] for t in np.arange(24) * 0.25], 0)
    surface = airy(2.0, 6.0, stretching="none")
    dry = airy(2.0, 6.0, stretching="none", drift=False)
    low = min(np.arange(24) * 0.25, key=lambda t: abs(float(wave.elevation(t, jnp.zeros(()), jnp.zeros(())))))
    drift = at(Water(waves=surface), low, 0, 0, 0)[1] - at(Water(waves=dry), low, 0, 0, 0)[1]
    np.testing.assert_allclose(drift, [0.117, 0, 0], atol=5e-4)
    assert mean[0] > still[0]


def test_particles_drift_as_stokes_says():
    """A particle that linear theory moves for one period goes as far as the Stokes drift, to second order in the steepness."""
    wave = airy(0.4, 5.0, stretching="none", drift=False)
    water = Water(waves=wave)
    k, w, A = float(wave.number[0]), 2 * np.pi / 5.0, 0.2

    @jax.jit
    def step(p, i):
        h = 5.0 / 200
        f = lambda t, q: water.motion(t, Vec3(q[:1], q[1:2], q[2:])).velocity_W.array()[0]  # noqa: E731
        k1 = f(i * h, p)
        k2 = f((i + 0.5) * h, p + 0.5 * h * k1)
        k3 = f((i + 0.5) * h, p + 0.5 * h * k2)
        return p + h / 6 * (k1 + 2 * k2 + 2 * k3 + f((i + 1) * h, p + h * k3))

    p = jnp.array([0.0, 0.0, -2.0])
    for i in range(200):
        p = step(p, float(i))
    np.testing.assert_allclose(p[0] / 5.0, A * A * w * k * np.exp(-4 * k), rtol=0.1)


@pytest.mark.parametrize("depth", [None, 3.0, 12.0])
def test_velocity_and_acceleration_follow_from_a_potential(depth):
    """phi = sum A g/w cosh k(z+h)/cosh kh cos f: its gradient is the velocity, and the surface moves with the water."""
    waves = Waves.create([0.3, 0.2], [1.1, 1.7], [0.3, -0.8], [0.4, 2.0], depth=depth, stretching="none", drift=False)
    table = np.stack([np.asarray(a) for a in (waves.amplitude, waves.frequency, waves.number, waves.phase, waves.east, waves.north)], -1)

    def potential(t, x, y, z):
        total = 0.0
        for A, w, k, eps, c, s in table:
            fade = jnp.exp(k * z) if depth is None else jnp.cosh(k * (z + depth)) / np.cosh(k * depth)
            total = total + A * 9.81 / w * fade * jnp.cos(w * t - k * (x * c + y * s) + eps)
        return total

    point = (0.7, 1.2, -0.4, -0.8)
    _, v, a = at(Water(waves=waves), *point)
    slope = jax.grad(potential, (1, 2, 3))
    np.testing.assert_allclose(v, slope(*point), rtol=1e-9)
    np.testing.assert_allclose(a, jax.jacfwd(lambda t: jnp.stack(slope(t, *point[1:])))(point[0]), rtol=1e-9)
    # Kinematic and dynamic conditions at the mean level: zeta' = dphi/dz and g zeta = -dphi/dt.
    rise = jax.grad(lambda t: waves.elevation(t, point[1], point[2]))(point[0])
    at_mean = (*point[:3], 0.0)
    np.testing.assert_allclose(slope(*at_mean)[2], rise, rtol=1e-9)
    np.testing.assert_allclose(-jax.grad(potential)(*at_mean) / 9.81, waves.elevation(0.7, 1.2, -0.4), rtol=1e-9)
    # No water is made, and none of it spins.
    field = lambda p: waves.motion(0.7, p[0:1], p[1:2], p[2:3]).velocity_W.array()[0]  # noqa: E731
    jacobian = jax.jacfwd(field)(jnp.array(point[1:]))
    np.testing.assert_allclose(jnp.trace(jacobian), 0.0, atol=1e-12)
    np.testing.assert_allclose(jacobian - jacobian.T, 0.0, atol=1e-12)


def test_against_raschii():
    """An outside package: its Airy wave exactly, and its Fenton wave (stream function, order 5) within the square of a small steepness."""
    import raschii

    x, z, t = np.array([3.0, 11.0, 20.0]), np.array([1.0, 9.0, 11.5]), 0.7
    for model, options, tolerance in (("Airy", {}, 1e-9), ("Fenton", {"N": 5}, 2e-3)):
        kind = raschii.get_wave_model(model)[0]
        theirs = kind(height=0.1, depth=12.0, length=30.0, **options)
        ours = airy(0.1, 30.0 / float(theirs.c), phase_deg=90.0, depth=12.0, stretching="none", drift=False)
        np.testing.assert_allclose(2 * np.pi / float(ours.number[0]), 30.0, rtol=max(tolerance, 1e-9))
        sea = ours.motion(t, *(jnp.asarray(a) for a in (x, 0.0 * x, z - 12.0)))
        velocity = theirs.velocity(x, z, t, all_points_wet=True)
        np.testing.assert_allclose(sea.velocity_W.array()[:, [0, 2]], velocity, atol=0.1 * tolerance)
        np.testing.assert_allclose(np.asarray(sea.zeta) + 12.0, np.ravel(theirs.surface_elevation(x, t)), atol=tolerance)


def test_slopes_are_the_derivatives_of_the_surface():
    waves = draw(jonswap(2.0, 7.0), 7.0, count=12, seed=3, spreading_exponent=1.0)
    zeta, sx, sy = waves.tangent(3.0, jnp.array([2.0]), jnp.array([5.0]))
    exact = jax.grad(lambda p: waves.elevation(3.0, p[0], p[1]))(jnp.array([2.0, 5.0]))
    np.testing.assert_allclose([sx[0], sy[0]], exact, rtol=1e-9)
    np.testing.assert_allclose(zeta[0], waves.elevation(3.0, jnp.array(2.0), jnp.array(5.0)))


def test_wave_numbers_solve_the_dispersion_relation():
    w = np.geomspace(0.05, 20, 60)
    for depth in (0.5, 5.0, 80.0):
        k = wave_number(w, depth)
        np.testing.assert_allclose(9.81 * k * np.tanh(k * depth), w**2, rtol=1e-12)
    np.testing.assert_allclose(wave_number(w, 1e5)[20:], wave_number(w)[20:], rtol=1e-12)


def test_stretching():
    flat, crest = airy(2.0, 6.0, stretching="wheeler"), 1.5
    assert float(flat.elevation(crest, jnp.zeros(()), jnp.zeros(()))) == pytest.approx(1.0)
    speed = {
        s: float(at(Water(waves=airy(2.0, 6.0, stretching=s, drift=False)), crest, 0, 0, 5.0)[1][0])
        for s in ("wheeler", "vertical", "none")
    }
    mean = 2 * np.pi / 6 * 1.0
    np.testing.assert_allclose([speed["wheeler"], speed["vertical"]], mean)
    np.testing.assert_allclose(speed["none"], mean * np.exp(float(flat.number[0])))
    shallow = airy(1.0, 6.0, depth=4.0, drift=False)
    bottom = at(Water(waves=shallow), 1.5, 0, 0, -4.0)[1]
    assert abs(bottom[2]) < 1e-12  # stretched or not, no water passes the bottom


@pytest.mark.parametrize("spectrum", [pierson_moskowitz(2.5, 8.0), jonswap(2.5, 8.0), jonswap(2.5, 8.0, 7.0), jonswap(2.5, 8.0, 1.0)])
def test_spectra_have_their_height_and_their_peak(spectrum):
    """Case 43."""
    m0 = sum(
        quad(lambda w: float(spectrum(np.array(w))), a, b, limit=200)[0] for a, b in ((1e-3, 0.6), (0.6, 1.0), (1.0, 3.0), (3.0, 80.0))
    )
    np.testing.assert_allclose(4 * np.sqrt(m0), 2.5, rtol=2e-4)
    w = np.linspace(0.3, 3, 20001)
    np.testing.assert_allclose(w[np.argmax(spectrum(w))], 2 * np.pi / 8.0, rtol=1e-3)


def test_gamma_is_the_height_of_the_peak():
    wp = np.array([2 * np.pi / 8.0])
    ratio = jonswap(2.0, 8.0, 5.0)(wp) / jonswap(2.0, 8.0, 1.0)(wp)

    def raised(w):
        width = 0.07 if w < wp[0] else 0.09
        return float(jonswap(2.0, 8.0, 1.0)(np.array(w)) * 5.0 ** np.exp(-((w / wp[0] - 1) ** 2) / (2 * width**2)))

    area = quad(raised, 0.2, 20, limit=400, points=[wp[0]])[0]
    np.testing.assert_allclose(ratio, 5.0 * (2.0**2 / 16) / area, rtol=1e-3)
    np.testing.assert_allclose(jonswap(2.0, 8.0, 1.0)(wp), pierson_moskowitz(2.0, 8.0)(wp), rtol=1e-5)


def test_spreading_integrates_to_one_and_is_applied_once():
    angles = np.linspace(-np.pi, np.pi, 20001)
    for s in (1.0, 4.0, 15.0):
        np.testing.assert_allclose(np.trapezoid(spreading(s, angles), angles), 1.0, rtol=1e-6)
    np.testing.assert_allclose(spreading(1.0, np.array([0.4])), 2 / np.pi * np.cos(0.4) ** 2, rtol=1e-6)
    sea = draw(jonswap(2.0, 8.0), 8.0, count=4000, seed=1, direction_deg=30.0, spreading_exponent=1.0)
    theta = np.arctan2(sea.north, sea.east) - np.deg2rad(30.0)
    np.testing.assert_allclose(np.var(theta), np.pi**2 / 12 - 0.5, rtol=0.05)  # of (2/pi) cos^2
    assert abs(theta.mean()) < 0.03


def test_a_drawn_sea_has_its_height_in_numbers_and_in_time():
    sea = draw(jonswap(2.0, 8.0), 8.0, count=60, seed=4, depth=30.0)
    np.testing.assert_allclose(sea.significant_height, 2.0, rtol=1e-3)
    t = np.arange(0.0, 8000.0, 0.5)
    record = jax.jit(jax.vmap(lambda t: sea.elevation(t, jnp.zeros(()), jnp.zeros(()))))(jnp.asarray(t))
    np.testing.assert_allclose(4 * np.std(np.asarray(record)), 2.0, rtol=0.05)
    again = draw(jonswap(2.0, 8.0), 8.0, count=60, seed=4, depth=30.0)
    other = draw(jonswap(2.0, 8.0), 8.0, count=60, seed=5, depth=30.0)
    assert (np.asarray(sea.phase) == np.asarray(again.phase)).all()
    assert not np.isclose(np.asarray(sea.phase), np.asarray(other.phase)).any()


def test_currents():
    water = Water(level=3.0, current=Current(jnp.array([1.0, -0.5, 0.0]), 10.0, 1 / 7))
    np.testing.assert_allclose(at(water, 0, 5, 5, 3.0)[1], [1.0, -0.5, 0.0])
    np.testing.assert_allclose(at(water, 0, 5, 5, -2.0)[1], 0.5 ** (1 / 7) * np.array([1.0, -0.5, 0.0]))
    np.testing.assert_allclose(at(water, 0, 5, 5, -9.0)[1], 0.0)
    slope = jax.grad(lambda z: water.motion(0.0, Vec3(jnp.zeros(1), jnp.zeros(1), z[None])).velocity_W.x[0])
    assert np.isfinite([slope(z) for z in (-9.0, -7.0, 2.0, 3.0, 5.0)]).all()


def test_bad_numbers_are_refused():
    for make, words in (
        (lambda: airy(1.0, -1.0), "positive period"),
        (lambda: Waves.create([1.0], [0.0]), "frequency"),
        (lambda: Waves.create([1.0], [1.0], depth=-3.0), "depth"),
        (lambda: airy(1.0, 5.0, stretching="wheler"), "wheeler"),
        (lambda: draw(jonswap(1.0, 5.0), 5.0, count=0), "at least 1"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
