"""Flat ground."""

from __future__ import annotations

import equinox as eqx
from jax import Array


class Ground(eqx.Module):
    """A horizontal surface at ``height`` [m], world z."""

    height: Array | float = 0.0
