"""Dryden turbulence of MIL-F-8785C at low altitude (3.7.2.1 and 3.7.3.4), as one realisation on a table over time.

With heights h and lengths in feet, W_20 the wind 20 ft above ground:

    L_w = h,    L_u = L_v = h / (0.177 + 0.000823 h)^1.2,    s_w = 0.1 W_20,    s_u = s_v = s_w / (0.177 + 0.000823 h)^0.4

u blows along the horizontal mean wind, v to its left, w up.  At airspeed V, tau = L / V, unit white noise (two-sided density 1) is
shaped by

    H_u = s sqrt(2 tau) / (1 + tau p),    H_v = H_w = s sqrt(tau) (1 + sqrt(3) tau p) / (1 + tau p)^2

so that the variance is s^2, the one-sided spectra are (per rad/s)

    Phi_u = s^2 (2 tau / pi) / (1 + (tau w)^2),    Phi_v = s^2 (tau / pi) (1 + 3 (tau w)^2) / (1 + (tau w)^2)^2

and the autocorrelations ``s^2 e^-x`` and ``s^2 e^-x (1 - x/2)``, x = |lag| / tau.  The filters are discretised exactly (the samples
have the statistics of the continuous process, whatever the step) and start in their stationary state.

The realisation is made once, from a seed; the step of the simulation only interpolates.  So the wind is a pure function of time: a
Runge-Kutta stage may ask at any time, and a run restarted from a checkpoint meets the same gusts.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from skycrane.environment.air import AbstractWind
from skycrane.environment.series import MIRRORED, Series
from skycrane.math.components import Scalar, Vec3

FOOT = 0.3048  # m
LOWEST, HIGHEST = 10 * FOOT, 1000 * FOOT  # m, where the low-altitude model holds
SLOWEST = 1.0  # m/s, least airspeed: a hovering vehicle in still air would never pass through the turbulence


def low_altitude_parameters(height: Scalar, wind_20ft: Scalar) -> tuple[Array, Array]:
    """Standard deviations (3,) m/s and scale lengths (3,) m of (u, v, w) at a height [m] above ground and a wind [m/s] at 20 ft (6.096 m).

    Below 10 ft (3.05 m), where the model ends, the values there are kept; it ends for good at 1000 ft.
    """
    h = jnp.maximum(height, LOWEST) / FOOT
    shape = 0.177 + 0.000823 * h
    length_u, length_w = h / shape**1.2 * FOOT, h * FOOT
    sigma_w = 0.1 * wind_20ft
    sigma_u = sigma_w / shape**0.4
    return jnp.stack([sigma_u, sigma_u, sigma_w]), jnp.stack([length_u, length_u, length_w])


@partial(jax.jit, static_argnames="count")
def realisation(key: Array, sigma: Array, tau: Array, count: int, step: Scalar) -> Array:
    """Samples (count, 3) of (u, v, w) [m/s] at a time step [s], for standard deviations (3,) and time constants L/V (3,) s."""
    d = step / tau
    a = jnp.exp(-d)
    # u: first order.  v, w: second order with a double pole; its two states, scaled to unit variance, are y_1 = x 2 sqrt(tau) and
    # y_2 = x' 2 tau^1.5 of the filter x'' + 2 x'/tau + x/tau^2 = n/tau^2, and the output is s (y_1 + sqrt(3) y_2) / 2.
    decay, drive = a[0], jnp.sqrt(-jnp.expm1(-2 * d[0]))
    d2, a2 = d[1:], a[1:]
    # Covariance of what the noise adds in one step, by Gauss quadrature: the closed form loses all digits for short steps.
    nodes, weights = (jnp.asarray(x, d.dtype) for x in np.polynomial.legendre.leggauss(8))
    z = 0.5 * d2[:, None] * (nodes + 1.0)
    dz = 0.5 * d2[:, None] * weights * 4.0 * jnp.exp(-2 * z)
    q11, q12, q22 = ((dz * f).sum(-1) for f in (z * z, z * (1 - z), (1 - z) ** 2))
    l11 = jnp.sqrt(q11)
    l21 = q12 / l11
    l22 = jnp.sqrt(q22 - l21 * l21)

    noise = jax.random.normal(key, (count, 5), sigma.dtype)
    start = (noise[0, 0], noise[0, 1:3], noise[0, 3:5])

    def advance(carry, n):
        u, y1, y2 = carry
        out = jnp.concatenate([u[None], 0.5 * (y1 + 3**0.5 * y2)])
        new_u = decay * u + drive * n[0]
        new_y1 = a2 * ((1 + d2) * y1 + d2 * y2) + l11 * n[1:3]
        new_y2 = a2 * ((1 - d2) * y2 - d2 * y1) + l21 * n[1:3] + l22 * n[3:5]
        return (new_u, new_y1, new_y2), out

    (u, y1, y2), rows = lax.scan(advance, start, noise[1:])
    last = jnp.concatenate([u[None], 0.5 * (y1 + 3**0.5 * y2)])
    return sigma * jnp.concatenate([rows, last[None]])


class Dryden(AbstractWind):
    """Turbulence: one realisation, the same over the whole space or carried along by the mean wind.

    Attributes:
        series: (u, v, w) turned to world axes [m/s]; beyond its duration it is read backwards, which has the same statistics and no jump.
        scale: multiplies it; an event or a sweep may change the strength.
        slowness_W: (3,) s/m, or None.  With it, a point p meets at time t what the origin meets at ``t - slowness . p`` (Taylor's frozen
            turbulence): vehicles one behind the other meet the same gusts one after the other.
    """

    series: Series
    scale: Array | float = 1.0
    slowness_W: Array | None = None

    @classmethod
    def create(
        cls,
        sigma: ArrayLike,
        length: ArrayLike,
        airspeed: float | Array,
        *,
        duration: float,
        seed: int | Array,
        step: float | None = None,
        heading: float | Array = 0.0,
        frozen: bool = False,
    ) -> Dryden:
        """A realisation for standard deviations (3,) m/s and scale lengths (3,) m of (u, v, w).

        Args:
            airspeed: V [m/s] at which the turbulence passes, or is passed through; at least 1 m/s is taken.
            duration: s, that of the run.
            seed: of the random numbers; the same seed gives the same wind.
            step: of the table, s; by default a fiftieth of the shortest time constant, at most 0.05 s (to be given under ``vmap``).
                Between samples the interpolated wind lacks the part ``step/(4 tau)`` or less of its variance.
            heading: direction towards which the mean wind blows, rad from x (east) to y (north).
            frozen: whether the pattern moves along ``heading`` at V past the vehicles, instead of being the same everywhere.

        Raises:
            ValueError: for a duration or a step that is not positive, or a table of more than 10 million samples.
        """
        sigma, length = (jnp.broadcast_to(jnp.asarray(x, jnp.result_type(float)), (3,)) for x in (sigma, length))
        airspeed = jnp.maximum(jnp.asarray(airspeed, sigma.dtype), SLOWEST)
        tau = length / airspeed
        if step is None:
            step = min(0.05, float(tau.min()) / 50)
        if not (duration > 0 and step > 0):
            raise ValueError(f"turbulence: duration is {duration} s and step {step} s; both must be positive")
        count = int(np.ceil(duration / step)) + 1
        if count > 10_000_000:
            raise ValueError(f"turbulence: {duration} s at a step of {step:.3g} s are {count} samples; give a longer step")
        u, v, w = realisation(jax.random.key(seed), sigma, tau, count, step).T
        cos, sin = jnp.cos(heading), jnp.sin(heading)
        world = jnp.stack([cos * u - sin * v, sin * u + cos * v, w], axis=-1)
        slowness = jnp.stack([cos, sin, jnp.zeros_like(cos)]) / airspeed if frozen else None
        return cls(Series.create(world, step, smooth=True, outside=MIRRORED), 1.0, slowness)

    @classmethod
    def low_altitude(
        cls,
        height: float,
        wind_20ft: float | Array,
        *,
        duration: float,
        seed: int | Array,
        airspeed: float | Array = 0.0,
        step: float | None = None,
        heading: float | Array = 0.0,
        frozen: bool = False,
    ) -> Dryden:
        """A realisation for a height [m] above ground and the mean wind [m/s] at 20 ft; further arguments as :meth:`create`.

        The airspeed is at least the mean wind: a vehicle that hovers is passed by the turbulence at that speed.

        Raises:
            ValueError: for a height above 1000 ft (304.8 m), where the low-altitude model ends, and as :meth:`create`.
        """
        if not height <= HIGHEST:
            raise ValueError(f"turbulence: height is {height} m; the low-altitude Dryden model ends at {HIGHEST:.1f} m")
        sigma, length = low_altitude_parameters(height, jnp.asarray(wind_20ft, jnp.result_type(float)))
        airspeed = jnp.maximum(airspeed, wind_20ft)
        return cls.create(sigma, length, airspeed, duration=duration, seed=seed, step=step, heading=heading, frozen=frozen)

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        if self.slowness_W is not None:
            t = t - Vec3.of(self.slowness_W).dot(p_W)
        return Vec3(*self.series(t)) * self.scale
