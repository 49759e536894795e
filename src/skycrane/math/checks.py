"""Checks of numbers that can only be made where the numbers are known."""

from __future__ import annotations

from typing import Any

import jax


def concrete(*trees: Any) -> bool:
    """Whether every number is known now: False inside ``jit``, ``vmap`` or ``grad``, where a check by value is impossible."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))
