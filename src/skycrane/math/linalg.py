"""Small symmetric positive definite systems for the arithmetic inside the integration step.

Plain array arithmetic, unrolled over the unknowns: ``jnp.linalg.solve`` would be a call into LAPACK, which stops XLA from
    compiling a loop over
time into one function.  Such matrices need no pivoting (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed.,
sections 10.1 and 14.4).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def eliminate_spd(matrix: Array, rhs: Array) -> Array:
    """Solve ``matrix x = rhs`` for a symmetric positive definite matrix (..., m, m) and rhs (..., m) by Gauss-Jordan
    elimination."""
    return _eliminated(jnp.concatenate([matrix, rhs[..., None]], -1))[..., -1]


def invert_spd(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix (..., m, m), by the same elimination."""
    size = matrix.shape[-1]
    eye = jnp.broadcast_to(jnp.eye(size, dtype=matrix.dtype), matrix.shape)
    return _eliminated(jnp.concatenate([matrix, eye], -1))[..., size:]


def _eliminated(system: Array) -> Array:
    size = system.shape[-2]
    for j in range(size):
        row = system[..., j : j + 1, :] / system[..., j : j + 1, j : j + 1]
        others = (jnp.arange(size) != j)[:, None]
        system = jnp.where(others, system - system[..., :, j : j + 1] * row, row)
    return system
