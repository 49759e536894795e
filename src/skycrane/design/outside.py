"""Signed distances of points to the bodies that wakes must clear, smooth enough to be differentiated."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from skycrane.design.clearance import Boom, Box, Solid, Sphere


def bar(start: Array, end: Array, radius: float) -> Callable[[Array], Array]:
    """Signed distance of points (..., 3) to a straight bar with round ends."""

    def value(p: Array) -> Array:
        along = end - start
        t = jnp.clip(((p - start) * along).sum(-1) / ((along * along).sum() + 1e-12), 0.0, 1.0)
        apart = p - start - t[..., None] * along
        return jnp.sqrt((apart * apart).sum(-1) + 1e-24) - radius

    return value


def outside(body: Solid) -> Callable[[Array], Array]:
    """Signed distance of points (..., 3) to a ball, a bar or a box."""
    if isinstance(body, Sphere):
        return lambda p: jnp.sqrt(((p - body.centre) ** 2).sum(-1) + 1e-24) - body.radius
    if isinstance(body, Boom):
        return bar(jnp.asarray(body.start, float), jnp.asarray(body.end, float), body.radius)
    if isinstance(body, Box):
        R, half = jnp.asarray(body.rotation, float), 0.5 * jnp.asarray(body.size, float)

        def value(p: Array) -> Array:
            over = jnp.abs((p - body.centre) @ R) - half
            beyond = jnp.maximum(over, 0.0)
            return jnp.sqrt((beyond * beyond).sum(-1) + 1e-24) + jnp.minimum(over.max(-1), 0.0)

        return value
    raise TypeError(f"a body that wakes must clear is a Sphere, a Boom or a Box, found {type(body).__name__}")
