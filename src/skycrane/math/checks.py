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
    return jnp.asarray(np.stack([np.asarray(a) for a in arrays])) if concrete(*arrays) else jnp.stack(arrays)
