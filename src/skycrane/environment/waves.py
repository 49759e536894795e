"""Linear (Airy) waves: many plane waves over a flat bottom or in deep water, and the drift that they carry along.

Wave i runs towards (c_i, s_i) with amplitude A_i, frequency w_i and number k_i; h is the depth below the mean level, z the height above it:

    f_i = w_i t - k_i (x c_i + y s_i) + eps_i,        w_i^2 = g k_i tanh(k_i h)
    zeta = sum A_i sin f_i
    (u, v) = sum w_i A_i C_i sin f_i (c_i, s_i),      w = sum w_i A_i S_i cos f_i
    C_i = cosh k_i(z + h) / sinh k_i h,               S_i = sinh k_i(z + h) / sinh k_i h         (both e^(k_i z) in deep water)

(Dean and Dalrymple 1991, ch. 3.)  The accelerations are those at a fixed point, as the linear theory has them.  Linear theory holds up to
the mean level; above it the profile is stretched: ``"wheeler"`` puts the mean level's value at the surface, z' = h (z - zeta)/(h + zeta)
(z - zeta in deep water; Wheeler 1970), ``"vertical"`` keeps the mean level's value in the crests, z' = min(z, 0), and ``"none"``
extrapolates.  The Stokes drift (the mean velocity of water particles) is ``sum A^2 w k cosh 2k(z+h) / (2 sinh^2 kh)``, in deep water
``sum A^2 w k e^(2kz)``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.math.checks import concrete
from skycrane.math.components import Scalar, Vec3

Stretching = Literal["wheeler", "vertical", "none"]
STRETCHINGS = ("wheeler", "vertical", "none")


def wave_number(frequency, depth: float | None = None, gravity: float = 9.81) -> np.ndarray:
    """Wave number k [1/m] of ``w^2 = g k tanh(k h)`` for frequencies [rad/s]; deep water where ``depth`` is None.  By Newton's method."""
    w = np.asarray(frequency, dtype=float)
    deep = w**2 / gravity
    if depth is None:
        return deep
    # The start of Guo (2002) is within 1 %; Newton doubles the digits.
    x = w * np.sqrt(depth / gravity)
    kh = x**2 / (1.0 - np.exp(-(x**2.4908))) ** (1 / 2.4908)
    for _ in range(6):
        th = np.tanh(kh)
        kh = kh - (kh * th - x**2) / (th + kh * (1.0 - th**2))
    return kh / depth


class Motion(NamedTuple):
    """Height of the surface above the mean level [m], velocity [m/s] and acceleration [m/s^2] of the water (waves alone)."""

    zeta: Scalar
    velocity_W: Vec3
    acceleration_W: Vec3


class Waves(eqx.Module):
    """n plane waves.

    Attributes:
        amplitude, frequency, number, phase: (n,) m, rad/s, 1/m, rad.
        east, north: (n,) cosine and sine of the direction that each wave runs to.
        depth: m below the mean level, or None for deep water.
        stretching: static, see the module.
        drift: static, whether the Stokes drift is part of the velocity.
    """

    amplitude: Array
    frequency: Array
    number: Array
    phase: Array
    east: Array
    north: Array
    depth: Array | float | None = None
    stretching: str = eqx.field(static=True, default="wheeler")
    drift: bool = eqx.field(static=True, default=True)

    @classmethod
    def create(
        cls,
        amplitude,
        frequency,
        direction=0.0,
        phase=0.0,
        *,
        depth: float | None = None,
        gravity: float = 9.81,
        stretching: Stretching = "wheeler",
        drift: bool = True,
    ) -> Waves:
        """From amplitudes [m], frequencies [rad/s], directions [rad, from east, counter-clockwise] and phases [rad] of n waves.

        Raises:
            ValueError: for shapes that do not fit, or numbers out of range.
        """  # fmt: skip
        amplitude, frequency, direction, phase = (
            np.atleast_1d(np.asarray(v, dtype=float)) for v in (amplitude, frequency, direction, phase)
        )
        amplitude, frequency, direction, phase = np.broadcast_arrays(amplitude, frequency, direction, phase)
        if amplitude.ndim != 1:
            raise ValueError(f"amplitudes of waves have shape {amplitude.shape}, expected (n,)")
        if not (frequency > 0).all():
            raise ValueError(f"a wave has frequency {frequency.min():g} rad/s, expected a positive one")
        if depth is not None and not depth > 0:
            raise ValueError(f"depth is {depth:g} m, expected a positive one")
        k = wave_number(frequency, depth, gravity)
        A, w, number, eps, c, s = (jnp.asarray(a) for a in (amplitude, frequency, k, phase, np.cos(direction), np.sin(direction)))
        return cls(A, w, number, eps, c, s, depth, stretching, drift)

    def __check_init__(self):
        if self.stretching not in STRETCHINGS:
            raise ValueError(f"stretching is {self.stretching!r}, expected one of {', '.join(STRETCHINGS)}")

    @property
    def count(self) -> int:
        """Number of waves."""
        return self.amplitude.shape[-1]

    @property
    def significant_height(self) -> Array:
        """4 times the standard deviation of the surface [m]."""
        return 4.0 * jnp.sqrt(0.5 * jnp.sum(self.amplitude**2, -1))

    def _columns(self, like: Scalar) -> tuple[Array, ...]:
        """The waves' numbers with axes added for the points."""
        shape = (self.count, *(1,) * jnp.ndim(like))
        return tuple(a.reshape(shape) for a in (self.amplitude, self.frequency, self.number, self.phase, self.east, self.north))

    def elevation(self, t: Array, x: Scalar, y: Scalar) -> Scalar:
        """Height of the surface above the mean level [m] at points (x, y)."""
        A, w, k, eps, c, s = self._columns(x)
        return (A * jnp.sin(w * t - k * (x * c + y * s) + eps)).sum(0)

    def tangent(self, t: Array, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The height above the mean level [m], and its slopes along x and y."""
        A, w, k, eps, c, s = self._columns(x)
        f = w * t - k * (x * c + y * s) + eps
        steep = -k * A * jnp.cos(f)
        return (A * jnp.sin(f)).sum(0), (steep * c).sum(0), (steep * s).sum(0)

    def motion(self, t: Array, x: Scalar, y: Scalar, z: Scalar) -> Motion:
        """Surface and water at points; ``z`` is the height above the mean level, taken as that of the surface where it is above it."""
        A, w, k, eps, c, s = self._columns(x)
        f = w * t - k * (x * c + y * s) + eps
        sin, cos = jnp.sin(f), jnp.cos(f)
        zeta = (A * sin).sum(0)
        z = jnp.minimum(z, zeta)
        if self.stretching == "wheeler":
            z = z - zeta if self.depth is None else self.depth * (z - zeta) / (self.depth + zeta)
        elif self.stretching == "vertical":
            z = jnp.minimum(z, 0.0)
        along, up = self._profile(k, z)
        speed = w * A * along
        flow, lift = speed * sin, w * A * up * cos
        slow, sink = w * speed * cos, w * w * A * up * sin
        if self.drift:
            flow = flow + self._stokes(A * A * w * k, k, z, along)
        velocity_W = Vec3((flow * c).sum(0), (flow * s).sum(0), lift.sum(0))
        return Motion(zeta, velocity_W, Vec3((slow * c).sum(0), (slow * s).sum(0), -sink.sum(0)))

    def _profile(self, k: Array, z: Scalar) -> tuple[Array, Array]:
        """C and S of the module, without overflow in deep water."""
        decay = jnp.exp(k * z)
        if self.depth is None:
            return decay, decay
        below = jnp.exp(-2.0 * k * (z + self.depth))
        scale = decay / -jnp.expm1(-2.0 * k * self.depth)
        return scale * (1.0 + below), scale * (1.0 - below)

    def _stokes(self, strength: Array, k: Array, z: Scalar, along: Array) -> Array:
        if self.depth is None:
            return strength * along * along
        # cosh 2a = 2 cosh^2 a - 1
        return strength * (along * along - 0.5 / jnp.sinh(jnp.minimum(k * self.depth, 300.0)) ** 2)


def airy(height: float, period: float, direction_deg: float = 0.0, phase_deg: float = 0.0, **options) -> Waves:
    """One regular wave of a height [m] (twice the amplitude) and a period [s]."""
    if concrete(height, period) and not (height >= 0 and period > 0):
        raise ValueError(f"regular wave of height {height} m and period {period} s: expected a height of at least 0 and a positive period")
    return Waves.create(0.5 * height, 2 * np.pi / period, np.deg2rad(direction_deg), np.deg2rad(phase_deg), **options)
