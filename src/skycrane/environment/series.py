"""A table over time at equal steps, read between its samples inside the integration step."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

# How a series goes on before its first and after its last sample.
CONSTANT, MIRRORED = "constant", "mirrored"


class Series(eqx.Module):
    """m numbers over time.

    Attributes:
        values: (n + 3, m), the n samples with what lies just outside them, one before and two after.
        start: time [s] of the first sample.
        step: time [s] between samples.
        smooth: static; a cubic through the samples with continuous slope (Catmull and Rom 1974), or straight lines.
        outside: static; ``"constant"``, or ``"mirrored"``: read backwards, then forwards again, and so on without a jump.
    """

    values: Array
    start: Array | float
    step: Array | float
    smooth: bool = eqx.field(static=True)
    outside: str = eqx.field(static=True)

    @classmethod
    def create(cls, values: ArrayLike, step: float, *, start: float = 0.0, smooth: bool = False, outside: str = CONSTANT) -> Series:
        """From samples (n, m), n at least 2.

        Raises:
            ValueError: for another shape or an unknown ``outside``.
        """
        values = jnp.asarray(values, jnp.result_type(float))
        if values.ndim != 2 or values.shape[0] < 2:
            raise ValueError(f"series of shape {values.shape}, expected (n, m) with n at least 2")
        if outside not in (CONSTANT, MIRRORED):
            raise ValueError(f"outside is {outside!r}, expected {CONSTANT!r} or {MIRRORED!r}")
        before, after = (0, -1) if outside == CONSTANT else (1, -2)
        padded = [values[before][None], values, values[after][None], values[after][None]]
        return cls(jnp.concatenate(padded), start, step, smooth, outside)

    @property
    def count(self) -> int:
        """Number of samples n."""
        return self.values.shape[0] - 3

    @property
    def duration(self) -> Array | float:
        """Time [s] from the first to the last sample."""
        return (self.count - 1) * self.step

    def __call__(self, t: Array) -> tuple[Array, ...]:
        """The m numbers at times t, each of the shape of t."""
        last = self.count - 1
        x = (t - self.start) / self.step
        if self.outside == MIRRORED:
            x = last - jnp.abs(jnp.mod(x, 2.0 * last) - last)
        x = jnp.clip(x, 0.0, float(last))
        index = jnp.minimum(x.astype(jnp.int32), last)
        f = x - index
        if jnp.ndim(x) == 0:  # a slice is faster than a gather
            a, b, c, d = lax.dynamic_slice_in_dim(self.values, index, 4)
        else:
            a, b, c, d = (self.values[index + k] for k in range(4))
            f = f[..., None]
        out = b + 0.5 * f * (c - a + f * (2 * a - 5 * b + 4 * c - d + f * (3 * (b - c) + d - a))) if self.smooth else b + f * (c - b)
        return tuple(out[..., k] for k in range(self.values.shape[1]))
