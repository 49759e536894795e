"""Spectra of wind seas, and waves drawn from them.

One-sided, in frequency w [rad/s], with significant height H = 4 sqrt(m0) [m] and peak frequency w_p [rad/s]:

    Pierson-Moskowitz (modified, two parameters):  S = 5/16 H^2 w_p^4 w^-5 exp(-1.25 (w_p/w)^4)
    JONSWAP:                                       S = C S_PM gamma^exp(-(w/w_p - 1)^2 / (2 sigma^2)),   sigma = 0.07, above w_p 0.09

(DNV-RP-C205, 3.5.5).  C makes 4 sqrt(m0) = H exactly, where the usual 1 - 0.287 ln(gamma) is 1 % off.  Directions spread with the density
``cos^(2s)(theta - theta_0)`` over half a turn around the mean one.

A sea is drawn as n waves of equal energy: each stands for an nth part of m0, at a random frequency of its band, with a random phase and a
random direction.  So H holds exactly, few waves carry the peak well, and the sea does not repeat.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skycrane.environment.waves import Waves

Spectrum = Callable[[np.ndarray], np.ndarray]
RANGE = (0.5, 3.0)  # of w/w_p that a drawn sea covers: shorter waves than a ninth of the longest strong ones hardly move a hull
PARTS = 20_000  # of the quadrature over frequency


def pierson_moskowitz(significant_height: float, peak_period: float) -> Spectrum:
    """S(w) [m^2 s/rad] of a fully developed sea."""
    wp = 2 * np.pi / peak_period

    def density(w: np.ndarray) -> np.ndarray:
        w = np.asarray(w, dtype=float)
        safe = np.where(w > 0, w, 1.0)
        return np.where(w > 0, 5 / 16 * significant_height**2 * wp**4 * safe**-5.0 * np.exp(-1.25 * (wp / safe) ** 4), 0.0)

    return density


def jonswap(significant_height: float, peak_period: float, gamma: float = 3.3) -> Spectrum:
    """S(w) [m^2 s/rad] of a growing sea; ``gamma`` is how much higher the peak is than that of Pierson and Moskowitz."""
    wp = 2 * np.pi / peak_period

    def shape(w: np.ndarray) -> np.ndarray:
        sigma = np.where(w <= wp, 0.07, 0.09)
        return base(w) * gamma ** np.exp(-((w / wp - 1.0) ** 2) / (2 * sigma**2))

    base = pierson_moskowitz(significant_height, peak_period)
    # In u = (w_p/w)^4 the tail is short: the integral over all frequencies converges with few points.
    edges = wp * np.concatenate([np.linspace(0.2, 3.0, PARTS), np.geomspace(3.0, 100.0, PARTS)[1:]])
    m0 = np.trapezoid(shape(edges), edges)
    scale = significant_height**2 / 16 / m0 if m0 > 0 else 0.0
    return lambda w: scale * shape(np.asarray(w, dtype=float))


def spreading(exponent: float, angles: np.ndarray) -> np.ndarray:
    """Density [1/rad] of directions at ``angles`` from the mean one: proportional to cos^(2 exponent) up to a quarter turn, 0 beyond."""
    grid = np.linspace(-np.pi / 2, np.pi / 2, 4001)
    total = np.trapezoid(np.cos(grid) ** (2 * exponent), grid)
    angles = np.asarray(angles, dtype=float)
    return np.where(np.abs(angles) < np.pi / 2, np.maximum(np.cos(angles), 0.0) ** (2 * exponent) / total, 0.0)


def draw(
    spectrum: Spectrum,
    peak_period: float,
    *,
    count: int = 40,
    seed: int = 0,
    direction_deg: float = 0.0,
    spreading_exponent: float | None = None,
    **options,
) -> Waves:
    """A sea of ``count`` waves from a spectrum.

    Args:
        spectrum: S(w); what lies outside 0.5 to 3 times the peak frequency is added to the waves within.
        seed: the same seed gives the same sea.
        direction_deg: where the waves run to on the whole, from east counter-clockwise.
        spreading_exponent: s of the spreading cos^(2s); all waves in one direction where None.
        options: of :meth:`Waves.create`.
    """  # fmt: skip
    if count < 1:
        raise ValueError(f"a sea of {count} waves: expected at least 1")
    rng = np.random.default_rng(seed)
    wp = 2 * np.pi / peak_period
    w = wp * np.geomspace(*RANGE, PARTS)
    density = spectrum(w)
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(w))])
    inside = below[-1]
    far = np.concatenate([np.linspace(0.01, RANGE[0], 400)[:-1], w / wp, np.geomspace(RANGE[1], 100.0, 2000)[1:]]) * wp
    total = np.trapezoid(spectrum(far), far)
    share = (np.arange(count) + rng.uniform(size=count)) / count
    frequency = np.interp(share * inside, below, w)
    amplitude = np.full(count, np.sqrt(2 * total / count))
    phase = rng.uniform(0, 2 * np.pi, count)
    direction = np.full(count, np.deg2rad(direction_deg))
    if spreading_exponent is not None:
        grid = np.linspace(-np.pi / 2, np.pi / 2, 4001)
        parts = np.concatenate([[0.0], np.cumsum(spreading(spreading_exponent, 0.5 * (grid[1:] + grid[:-1])) * np.diff(grid))])
        direction = direction + np.interp(rng.uniform(size=count) * parts[-1], parts, grid)
    return Waves.create(amplitude, frequency, direction, phase, **options)
