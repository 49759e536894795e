"""Discrete low-pass filters for controllers, as arrays that a memory keeps.

A chain of n equal first-order filters with time constant T has the state (n,), the last number being its output; its derivatives need no
differences: ``y' = (x_(n-1) - x_n)/T``, ``y'' = ((x_(n-2) - x_(n-1))/T - y')/T``.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


def share(period: ArrayLike, time: ArrayLike) -> Array:
    """How much of the way a filter of time constant ``time`` goes in one period, both in s."""
    return -jnp.expm1(-jnp.asarray(period) / time)


def low_pass(chain: Array, value: ArrayLike, period: ArrayLike, time: ArrayLike) -> Array:
    """The chain one period later."""
    a = share(period, time)
    out = []
    for k in range(chain.shape[0]):
        value = chain[k] + a * (value - chain[k])
        out.append(value)
    return jnp.stack(out)


def slope(chain: Array, time: ArrayLike) -> Array:
    """First derivative of the output."""
    return (chain[-2] - chain[-1]) / time


def curvature(chain: Array, time: ArrayLike) -> Array:
    """Second derivative of the output."""
    return ((chain[-3] - chain[-2]) / time - slope(chain, time)) / time
