"""Mean winds, gusts, winds from tables, and sums of them; all pure functions of time and place.

    power law   v(h) = v_ref (h / h_ref)^a                          open country a = 1/7 (Manwell, McGowan, Rogers 2009, eq. 2.3.36)
    log law     v(h) = v_ref ln(h / z_0) / ln(h_ref / z_0)          roughness length z_0 (same, eq. 2.3.33); zero below z_0
    1-cos gust  v(s) = v_m / 2 (1 - cos(pi s / d)) for 0 <= s <= d, v_m after        (MIL-F-8785C, 3.7.3)

with h the height above ground, and s the time or the distance into the gust.  After ``hold`` the gust fades as it came; ``hold = 0`` is the
single bump of the airworthiness codes (CS-25.341).
"""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from skycrane.environment.air import AbstractWind
from skycrane.environment.series import Series
from skycrane.math.components import Scalar, Vec3

CSV_COLUMNS = ("time", "wind_x", "wind_y", "wind_z")


class Superposed(AbstractWind):
    """Sum of winds, such as a sheared mean wind with turbulence and a gust."""

    parts: tuple[AbstractWind, ...]

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        first, *others = (part.velocity_W(t, p_W) for part in self.parts)
        return sum(others, first)


class PowerLawWind(AbstractWind):
    """Mean wind that grows with a power of the height.

    ``velocity`` (3,) m/s, world axes, at ``reference_height`` [m] above ``ground`` [m, world z]; ``exponent`` a.  Below ``lowest``
    [m] above ground the wind no longer falls: the law's slope at the ground is infinite.
    """

    velocity: Array
    reference_height: Array | float = 10.0
    exponent: Array | float = 1.0 / 7.0
    ground: Array | float = 0.0
    lowest: Array | float = 0.1

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        height = jnp.maximum(p_W.z - self.ground, self.lowest)
        return Vec3.of(jnp.asarray(self.velocity)) * (height / self.reference_height) ** self.exponent


class LogWind(AbstractWind):
    """Mean wind that grows with the logarithm of the height.

    ``velocity`` (3,) m/s, world axes, at ``reference_height`` [m] above ``ground`` [m, world z]; ``roughness`` z_0 [m]: 0.01 mown grass,
    0.03 fields, 0.5 suburbs.
    """

    velocity: Array
    reference_height: Array | float = 10.0
    roughness: Array | float = 0.03
    ground: Array | float = 0.0

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        height = jnp.maximum(p_W.z - self.ground, self.roughness)
        factor = jnp.log(height / self.roughness) / jnp.log(self.reference_height / self.roughness)
        return Vec3.of(jnp.asarray(self.velocity)) * factor


class ProfileWind(AbstractWind):
    """Mean wind from a table over height: ``height`` (m,) m, world z, rising, and ``velocity`` (m, 3) m/s; linear between, constant
    outside."""

    height: Array
    velocity: Array

    def __check_init__(self):
        if jnp.ndim(self.height) == 1 and jnp.shape(self.velocity) != (*jnp.shape(self.height), 3):
            raise ValueError(f"wind profile: velocity has shape {jnp.shape(self.velocity)}, expected ({jnp.shape(self.height)[0]}, 3)")

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        wind = Vec3.of(jnp.asarray(self.velocity))

        def along(values: Array) -> Array:
            # A sum of ramps: the number of heights is small and static, so no search is needed.
            total = values[0] + jnp.zeros_like(p_W.z)
            for k in range(values.shape[0] - 1):
                low, high = self.height[k], self.height[k + 1]
                total = total + (values[k + 1] - values[k]) * (jnp.clip(p_W.z, low, high) - low) / (high - low)
            return total

        return wind.map(along)


def one_minus_cosine(s: Scalar, rise: Scalar, hold: Scalar | None) -> Scalar:
    """The gust's shape: from 0 at s = 0 to 1 at s = ``rise``; back to 0 after ``hold`` unless that is None."""

    def ramp(x: Scalar) -> Scalar:
        return 0.5 * (1.0 - jnp.cos(jnp.pi * jnp.clip(x / rise, 0.0, 1.0)))

    return ramp(s) if hold is None else ramp(s) - ramp(s - rise - hold)


class Gust(AbstractWind):
    """1-cos gust over time, at the same time everywhere.

    ``velocity`` (3,) m/s, world axes, at its height; ``start`` [s]; ``rise`` [s], the time d from nothing to all; ``hold`` [s] at
    full strength, None for ever.
    """

    velocity: Array
    start: Array | float
    rise: Array | float
    hold: Array | float | None = None

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        return Vec3.of(jnp.asarray(self.velocity)) * one_minus_cosine(t - self.start, self.rise, self.hold)


class GustFront(AbstractWind):
    """1-cos gust over distance: it begins at a plane in space and moves with it.

    s = direction . (p - origin - drift t)

    Attributes:
        velocity: (3,) m/s, world axes, where the gust is full.
        origin: (3,) m, a point of the plane where the gust begins, at time 0.
        direction: (3,) along which one goes into the gust, of any length but zero.
        rise: length d [m].
        hold: length at full strength [m], None for ever.
        drift: (3,) m/s of the whole pattern; for a gust that blows over a hovering vehicle, the mean wind with ``direction`` against it.
    """

    velocity: Array
    origin: Array
    direction: Array
    rise: Array | float
    hold: Array | float | None = None
    drift: Array | tuple = (0.0, 0.0, 0.0)

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        origin = Vec3.of(jnp.asarray(self.origin)) + t * Vec3.of(jnp.asarray(self.drift, jnp.result_type(float)))
        s = Vec3.of(jnp.asarray(self.direction)).unit().dot(p_W - origin)
        return Vec3.of(jnp.asarray(self.velocity)) * one_minus_cosine(s, self.rise, self.hold)


class TabulatedWind(AbstractWind):
    """Wind from a record over time, the same everywhere: linear between the samples, constant before the first and after the last.

    ``scale`` multiplies it.
    """

    series: Series
    scale: Array | float = 1.0

    @classmethod
    def create(cls, time: ArrayLike, velocity: ArrayLike, step: float | None = None) -> TabulatedWind:
        """From times (n,) s, rising, and velocities (n, 3) m/s in world axes.

        The step of the simulation wants equal spacing: other records are resampled, linearly, at ``step`` [s], by default their
        shortest interval.

        Raises:
            ValueError: for shapes that do not fit, fewer than two samples, times that do not rise, or a number that is not finite.
        """
        time, velocity = np.asarray(time, dtype=float), np.asarray(velocity, dtype=float)
        if time.ndim != 1 or velocity.shape != (*time.shape, 3):
            raise ValueError(f"wind record: times of shape {time.shape} and velocities of shape {velocity.shape}, expected (n,) and (n, 3)")
        if len(time) < 2:
            raise ValueError("wind record: expected at least two samples; for a steady wind use SteadyWind")
        if not (np.isfinite(time).all() and np.isfinite(velocity).all()):
            raise ValueError("wind record: a number is not finite")
        intervals = np.diff(time)
        if not (intervals > 0).all():
            raise ValueError(f"wind record: time does not rise after {time[int(np.argmin(intervals > 0))]} s")
        if step is None:
            step = float(intervals.min())
        if not np.allclose(intervals, step, rtol=1e-6, atol=0.0):
            count = int(np.ceil((time[-1] - time[0]) / step)) + 1
            even = time[0] + step * np.arange(count)
            velocity = np.stack([np.interp(even, time, column) for column in velocity.T], axis=-1)
        return cls(Series.create(velocity, step, start=float(time[0])))

    @classmethod
    def from_csv(cls, path: str | Path, step: float | None = None) -> TabulatedWind:
        """From a file with the header ``time,wind_x,wind_y,wind_z`` (s, m/s, world axes), columns in any order and further ones ignored.

        Raises:
            ValueError: for a missing column, with those that the file has, and as :meth:`create`.
        """
        with open(path, encoding="utf-8") as file:
            names = [name.strip() for name in file.readline().lstrip("\ufeff# ").split(",")]
            missing = [name for name in CSV_COLUMNS if name not in names]
            if missing:
                raise ValueError(f"{path}: no column {', '.join(missing)}; the first line names {', '.join(names)}")
            try:
                rows = np.loadtxt(file, delimiter=",", usecols=[names.index(name) for name in CSV_COLUMNS], ndmin=2)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
        return cls.create(rows[:, 0], rows[:, 1:], step)

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        return Vec3(*self.series(t)) * self.scale


__all__ = [
    "CSV_COLUMNS",
    "Gust",
    "GustFront",
    "LogWind",
    "PowerLawWind",
    "ProfileWind",
    "Superposed",
    "TabulatedWind",
    "one_minus_cosine",
]
