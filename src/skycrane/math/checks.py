"""What can only be done where numbers are known: checks of them, and arithmetic without compiling a program for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def concrete(*trees: Any) -> bool:
    """Whether every number is known now: False inside ``jit``, ``vmap`` or ``grad``, where a check by value is impossible."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def stacked(arrays: Sequence[Any]) -> Array:
    """Arrays stacked along a new first axis; by NumPy where they are known, since JAX would compile a program for every shape."""
    return placed(np.stack([np.asarray(a) for a in arrays])) if concrete(*arrays) else jnp.stack(arrays)


def placed(value: Any) -> Array:
    """``value`` as an array of JAX. ``jnp.asarray`` would compile a program for every shape of a NumPy array."""
    if not concrete(value):
        return jnp.asarray(value)
    with jax.ensure_compile_time_eval():
        return jax.device_put(np.asarray(value) if not isinstance(value, jax.Array) else value)


def known(value: Any, dtype: Any = None) -> Any:
    """``value`` as an array: NumPy's where its numbers are known, so that arithmetic with it compiles no program; else JAX's."""
    return np.asarray(value, dtype) if concrete(value) else jnp.asarray(value, dtype)


def filled(value: Any, shape: Sequence[int], dtype: Any = None) -> Array:
    """``value`` broadcast to ``shape``, as an array of JAX; where its numbers are known without compiling a program for it."""
    if concrete(value):
        return placed(np.array(np.broadcast_to(np.asarray(value, dtype), shape), order="C"))
    return jnp.broadcast_to(jnp.asarray(value, dtype), shape)
