"""Section polars: coefficients of lift, drag and pitching moment of a blade section over its angle of attack, any angle from -pi to pi.

The default blends thin-airfoil behaviour with that of a flat plate, stalling at the angle a_0 (Beard and McLain, "Small Unmanned
Aircraft", 2012, eqs. 4.9 and 4.10; the sigmoid and the drag of a plate are theirs, the parabolic drag ours):

    C_l = (1 - g) c_a a + g 2 sgn(a) sin^2 a cos a,      C_d = C_d0 + (1 - g) k a^2 + g 2 sin^2 a
    g = (1 + e^-M(a - a_0) + e^M(a + a_0)) / ((1 + e^-M(a - a_0)) (1 + e^M(a + a_0)))

The part 1 - g that is attached equals ``1 / (1 + e^(-2 M a_0) + 2 e^(-M a_0) cosh(M a))``, which needs one exponential and does not
overflow.
"""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from skycrane.math.components import Scalar


def _arctangent_polynomial() -> tuple[float, ...]:
    # atan(t) / t as a polynomial in t^2 for |t| <= tan(pi/8), interpolated at Chebyshev nodes: exact to rounding in float64.
    z = 0.5 * (np.tan(np.pi / 8) ** 2) * (1.0 + np.cos(np.pi * (np.arange(400) + 0.5) / 400))
    fit = np.polynomial.chebyshev.Chebyshev.fit(z, np.arctan(np.sqrt(z)) / np.sqrt(z), 11, domain=[0.0, z.max()])
    return tuple(float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_ARCTANGENT = _arctangent_polynomial()


def angle_of(sine: Array, cosine: Array) -> Array:
    """Angle [rad] of a unit vector, ``arctan2(sine, cosine)`` to rounding.

    Halving the angle three times and a polynomial: twice as fast as the library's arctangent, the dearest function of a blade element.
    """
    backwards = cosine < 0
    edge = jnp.where(jnp.abs(sine) < 1e-12, jnp.where(sine < 0, -1e-12, 1e-12), sine)
    t = jnp.where(backwards, 1.0 - cosine, sine) / jnp.where(backwards, edge, 1.0 + cosine)  # tan(a/2)
    t = t / (1.0 + jnp.sqrt(1.0 + t * t))  # tan(a/4)
    t = t / (1.0 + jnp.sqrt(1.0 + t * t))  # tan(a/8)
    z = t * t
    p = _ARCTANGENT[-1] * z + _ARCTANGENT[-2]
    for c in _ARCTANGENT[-3::-1]:
        p = p * z + c
    return 8.0 * t * p


class AbstractPolar(eqx.Module):
    """Coefficients of a section.  ``stall_angle`` [rad] is where the flow separates: the flag of the rotor's validity uses it."""

    stall_angle: eqx.AbstractVar[Array | float]

    @abc.abstractmethod
    def __call__(self, alpha: Array, sine: Array, cosine: Array) -> tuple[Scalar, Scalar, Scalar | None]:
        """C_l, C_d and C_m (nose up, about the quarter chord; None for zero) at angles of attack [rad] with their sines and cosines."""


class AnalyticPolar(AbstractPolar):
    """The polar of the module; a symmetric section.  ``sharpness`` is M [1/rad], ``drag_rise`` k [1/rad^2]."""

    lift_slope: Array | float = 5.7
    stall_angle: Array | float = 0.25
    sharpness: Array | float = 40.0
    drag_zero: Array | float = 0.023
    drag_rise: Array | float = 0.5

    def __call__(self, alpha, sine, cosine):
        # Beyond this cut-off the attached part is below 1e-13 and its exponential would overflow in float32.
        growth = jnp.exp(jnp.minimum(self.sharpness * jnp.abs(alpha), 40.0))
        small = jnp.exp(-self.sharpness * jnp.asarray(self.stall_angle, growth.dtype))
        attached = 1.0 / (1.0 + small * small + small * (growth + 1.0 / growth))
        plate = 2.0 * (1.0 - attached) * jnp.abs(sine)
        lift = attached * self.lift_slope * alpha + plate * sine * cosine
        drag = self.drag_zero + attached * self.drag_rise * alpha * alpha + plate * jnp.abs(sine)
        return lift, drag, None


class LinearPolar(AbstractPolar):
    """Lift proportional to the angle, constant drag, no stall: the section of textbook theory."""

    lift_slope: Array | float = 2 * np.pi
    drag: Array | float = 0.0
    stall_angle: Array | float = np.inf

    def __call__(self, alpha, sine, cosine):
        return self.lift_slope * alpha, self.drag, None


class ConstantPolar(AbstractPolar):
    """The same coefficients at every angle, for tests against closed forms."""

    lift: Array | float = 0.0
    drag: Array | float = 0.0
    moment: Array | float = 0.0
    stall_angle: Array | float = np.inf

    def __call__(self, alpha, sine, cosine):
        return self.lift, self.drag, self.moment


class TabulatedPolar(AbstractPolar):
    """Coefficients (m, 3) in the order C_l, C_d, C_m at m angles equally spaced from -pi to pi, linear between."""

    coefficients: Array
    stall_angle: Array | float

    @classmethod
    def create(
        cls, angle: ArrayLike, lift: ArrayLike, drag: ArrayLike, moment: ArrayLike | None = None, *, points: int = 721
    ) -> TabulatedPolar:
        """From measured values over rising angles [rad].  Outside them the section behaves as a flat plate, joined over 0.1 rad.

        The stall angle is that of the greatest lift.

        Raises:
            ValueError: for columns of different length, or angles that do not rise or leave -pi to pi.
        """
        angle, lift, drag = (np.asarray(x, dtype=float) for x in (angle, lift, drag))
        moment = np.zeros_like(angle) if moment is None else np.asarray(moment, dtype=float)
        if angle.ndim != 1 or any(x.shape != angle.shape for x in (lift, drag, moment)):
            raise ValueError(f"polar: columns of shapes {angle.shape}, {lift.shape}, {drag.shape}, {moment.shape}, expected equal rows")
        if not (np.diff(angle) > 0).all() or abs(angle[0]) > np.pi or abs(angle[-1]) > np.pi:
            raise ValueError("polar: the angles must rise and lie between -pi and pi")
        grid = np.linspace(-np.pi, np.pi, points)
        plate = 2 * np.abs(np.sin(grid))[:, None] * np.stack([np.sin(grid) * np.cos(grid), np.abs(np.sin(grid)), 0 * grid], -1)
        inside = np.stack([np.interp(grid, angle, x) for x in (lift, drag, moment)], -1)
        outside = np.clip(np.maximum(angle[0] - grid, grid - angle[-1]) / 0.1, 0.0, 1.0)[:, None]
        table = (1 - outside) * inside + outside * plate
        return cls(stall_angle=float(angle[int(np.argmax(lift))]), coefficients=jnp.asarray(table, jnp.result_type(float)))

    def __call__(self, alpha, sine, cosine):
        last = self.coefficients.shape[0] - 1
        x = jnp.clip((alpha + jnp.pi) * (last / (2 * jnp.pi)), 0.0, float(last))
        index = jnp.minimum(x.astype(jnp.int32), last - 1)
        f = x - index
        low, high = self.coefficients[index], self.coefficients[index + 1]
        row = low + f[..., None] * (high - low)
        return row[..., 0], row[..., 1], row[..., 2]
