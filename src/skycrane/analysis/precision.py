"""Analysis is done in double precision, whatever JAX is set to, and without changing the setting for others."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp


def double_precision() -> AbstractContextManager:
    """A context in which JAX computes in float64."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # type: ignore[attr-defined]  # JAX 0.7

    return enable_x64(True)


def to_double(tree: Any) -> Any:
    """Every floating-point array of a tree in float64; call it inside :func:`double_precision`.  Python numbers stay as they are."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float64) if _is_float_array(x) else x, tree)


def like(tree: Any, model: Any) -> Any:
    """A tree with the floating-point precision of the first float array of ``model``: results in the precision of what came in."""
    dtype = next((x.dtype for x in jax.tree.leaves(model) if _is_float_array(x)), jnp.result_type(float))
    return jax.tree.map(lambda x: jnp.asarray(x, dtype) if _is_float_array(x) else x, tree)


def _is_float_array(x: Any) -> bool:
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
