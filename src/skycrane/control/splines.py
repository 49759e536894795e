"""Smooth paths through given points: waypoints by minimum jerk or snap, and sampled paths.

The curve of least integral of |p'''|^2 (jerk) through points at given times that starts and ends at rest is the quintic spline
with four continuous derivatives, that of least |p''''|^2 (snap) the spline of degree seven with six (Schoenberg, "Spline
functions and the problem of graduation", PNAS 52, 1964; for multirotors: Mellinger and Kumar, ICRA 2011).  Both are linear in
the points, through which they differentiate.
"""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from skycrane.control.references import level_target
from skycrane.core.controller import AbstractReference, Target
from skycrane.math.components import Vec3

DEGREES = {"jerk": 5, "snap": 7}


class Spline(eqx.Module):
    """A piecewise polynomial of several components over time; before its first and after its last knot it stands still.

    ``knots`` (m + 1,) s; ``coefficients`` (m, degree + 1, c), of powers of (t - knot) / (length of the piece), lowest first.
    """

    knots: Array
    coefficients: Array

    @classmethod
    def through(cls, times: np.ndarray, values: ArrayLike, degree: int, at_rest: bool) -> Spline:
        """Interpolate ``values`` (m + 1, c) at concrete increasing ``times`` (m + 1,); differentiates by the values.

        ``at_rest``: whether as many derivatives as the degree allows vanish at both ends; otherwise the ends are free
        (not-a-knot).
        """
        values = jnp.asarray(values, jnp.result_type(float))
        if at_rest:
            pieces = _pieces(times, np.eye(len(times)), degree, True)  # (m, degree + 1, m + 1): linear map from the values
            coefficients = jnp.einsum("mdi,ic->mdc", jnp.asarray(pieces, values.dtype), values)
        else:
            coefficients = jnp.asarray(_pieces(times, np.asarray(values), degree, False), values.dtype)
        return cls(jnp.asarray(times, values.dtype), coefficients)

    def __call__(self, t: Array) -> Array:
        """Values (c,) at time t."""
        last = len(self.coefficients) - 1
        piece = jnp.clip(jnp.searchsorted(self.knots, t, side="right", method="scan_unrolled") - 1, 0, last)
        start, end = self.knots[piece], self.knots[piece + 1]
        # Written out, since the derivative of jnp.clip at a knot would be half of it.
        inside = (t > self.knots[0]) & (t < self.knots[-1])
        s = (jnp.where(inside, t, jnp.where(t >= self.knots[-1], self.knots[-1], self.knots[0])) - start) / (end - start)
        polynomial = self.coefficients[piece]
        value = polynomial[-1]
        for row in range(polynomial.shape[0] - 2, -1, -1):
            value = value * s + polynomial[row]
        return value


def _pieces(times: np.ndarray, values: np.ndarray, degree: int, at_rest: bool) -> np.ndarray:
    """Coefficients (m, degree + 1, c) of the spline, in powers of the part of each piece that is done."""
    from math import factorial

    from scipy.interpolate import make_interp_spline

    # Time is measured in mean pieces, so that high derivatives stay of order one.
    knots = (times - times[0]) * ((len(times) - 1) / (times[-1] - times[0]))
    lengths = np.diff(knots)[:, None]
    if at_rest:
        ends = [(order, np.zeros(values.shape[1])) for order in range(1, (degree + 1) // 2)]
        spline = make_interp_spline(knots, values, k=degree, bc_type=(ends, ends))
    else:
        spline = make_interp_spline(knots, values, k=min(degree, len(times) - 1))
    # The Taylor series at the start of each piece; scipy evaluates to the right of a knot.
    return np.stack([spline(knots[:-1], nu=order) * lengths**order / factorial(order) for order in range(degree + 1)], axis=1)


class _SplineReference(AbstractReference):
    """Position (3 k components) and yaw (k components) from a spline."""

    path: Spline
    fixed_yaw: Array | None

    def _position(self, t: Array) -> Vec3:
        values = self.path(t)
        k = values.shape[0] // (3 if self.fixed_yaw is not None else 4)
        return Vec3(values[:k], values[k : 2 * k], values[2 * k : 3 * k])

    def _yaw(self, t: Array) -> Array:
        if self.fixed_yaw is not None:
            return self.fixed_yaw
        values = self.path(t)
        return values[3 * (values.shape[0] // 4) :]

    def __call__(self, t: Array) -> Target:
        return level_target(self._position, self._yaw, t)


def _columns(points_W: Array, yaw: ArrayLike) -> tuple[Array, Array | None]:
    """Spline values (m, 3 k or 4 k) of points (k, m, 3), and the yaw (k,) where it is fixed."""
    k, m, _ = points_W.shape
    yaw = jnp.asarray(yaw, points_W.dtype)
    values = jnp.transpose(points_W, (1, 2, 0)).reshape(m, 3 * k)
    if yaw.ndim == 0 or yaw.shape == (k,):
        return values, jnp.broadcast_to(yaw, (k,))
    if yaw.shape not in ((m,), (k, m)):
        raise ValueError(f"yaw has shape {yaw.shape}, expected a number, ({k},), ({m},) or ({k}, {m})")
    return jnp.concatenate([values, jnp.broadcast_to(yaw, (k, m)).T], -1), None


class Waypoints(_SplineReference):
    """Through points at given times, at rest at the first and the last; before and after it hovers there."""

    @classmethod
    def create(cls, points_W: ArrayLike, times: ArrayLike, *, minimize: str = "jerk", yaw: ArrayLike = 0.0) -> Waypoints:
        """Args:
            points_W: (m, 3) or (k, m, 3) m, at least two; differentiable.
            times: (m,) s, increasing, concrete.
            minimize: ``"jerk"`` or ``"snap"``.
            yaw: rad, one or one for each vehicle (k,), or one for each point, (m,) or (k, m), which is interpolated like the
                position (unwrap it).

        Raises:
            ValueError: for fewer than two points, times that do not increase, an unknown ``minimize`` or shapes that do not fit.
        """
        if minimize not in DEGREES:
            raise ValueError(f"minimize = {minimize!r}: expected 'jerk' or 'snap'")
        points_W = jnp.asarray(points_W, jnp.result_type(float))
        points_W = points_W[None] if points_W.ndim == 2 else points_W
        times = _checked(times, points_W.shape[1])
        values, fixed = _columns(points_W, yaw)
        return cls(Spline.through(times, values, DEGREES[minimize], True), fixed)

    @classmethod
    def at_speed(cls, points_W: ArrayLike, speed: float, *, start: float = 0.0, minimize: str = "jerk", yaw: ArrayLike = 0.0) -> Waypoints:
        """With the mean ``speed`` [m/s] from point to point of (m, 3) concrete points, from time ``start`` on.

        Raises:
            ValueError: for a speed that is not positive or two equal points in a row.
        """
        points = np.asarray(points_W, float)
        length = np.linalg.norm(np.diff(points, axis=0), axis=1)
        if not speed > 0 or np.any(length == 0):
            raise ValueError("waypoints at a speed need a positive speed and no two equal points in a row; give times instead")
        return cls.create(points, start + np.r_[0.0, np.cumsum(length / speed)], minimize=minimize, yaw=yaw)


class Sampled(_SplineReference):
    """A recorded path, interpolated by a cubic spline with two continuous derivatives; before and after it the vehicle should
    stand at its ends."""

    @classmethod
    def create(cls, times: ArrayLike, positions_W: ArrayLike, yaw: ArrayLike = 0.0) -> Sampled:
        """From times (m,) s, positions (m, 3) or (k, m, 3) m, and a yaw [rad] as in :meth:`Waypoints.create`; concrete numbers.

        Raises:
            ValueError: for fewer than two samples, times that do not increase, or shapes that do not fit.
        """
        positions_W = jnp.asarray(positions_W, jnp.result_type(float))
        positions_W = positions_W[None] if positions_W.ndim == 2 else positions_W
        values, fixed = _columns(positions_W, yaw)
        return cls(Spline.through(_checked(times, positions_W.shape[1]), values, 3, False), fixed)

    @classmethod
    def from_csv(cls, path: str | Path) -> Sampled:
        """From a file with a header naming the columns ``time``, ``x``, ``y``, ``z`` and, if wanted, ``yaw`` [rad], in any order.

        Raises:
            ValueError: where a column is missing or a number is not finite; the line is named.
        """
        table = np.atleast_1d(np.genfromtxt(path, delimiter=",", names=True, dtype=float))
        names = table.dtype.names or ()
        missing = [name for name in ("time", "x", "y", "z") if name not in names]
        if missing:
            raise ValueError(f"{path}: column {', '.join(missing)} is missing; found {', '.join(names)}")
        used = np.stack([table[name] for name in ("time", "x", "y", "z", *(["yaw"] if "yaw" in names else []))], -1)
        bad = np.flatnonzero(~np.isfinite(used).all(1))
        if len(bad):
            raise ValueError(f"{path}: line {bad[0] + 2} has a number that is not finite")
        return cls.create(used[:, 0], used[:, 1:4], np.unwrap(used[:, 4]) if used.shape[1] > 4 else 0.0)


def _checked(times: ArrayLike, count: int) -> np.ndarray:
    times = np.asarray(times, float)
    if times.shape != (count,) or count < 2:
        raise ValueError(f"{count} points and times of shape {times.shape}: expected at least two, and one time for each")
    if not np.all(np.diff(times) > 0):
        raise ValueError(f"times must increase, got {times.tolist()}")
    return times
