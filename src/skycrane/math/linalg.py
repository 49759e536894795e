"""Small symmetric positive definite systems for the arithmetic inside the integration step, without calls into LAPACK.

:func:`solve_spd` works in components, unrolled at trace time: the fastest to run.  A matrix is a list of rows of scalars (arrays
of any one shape, or Python floats): m^3/3 multiplications for m unknowns, all
    elementwise, so XLA
fuses them; ``jnp.linalg.solve`` would be a call into LAPACK that stops it from compiling a loop into one function. 
:func:`eliminate_spd` works on arrays: the fastest to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

Scalar = Any  # an array of any shape, or a Python float


def solve_spd(matrix: Sequence[Sequence[Scalar]], rhs: Sequence[Scalar]) -> list[Scalar]:
    """Solve ``matrix x = rhs`` for a symmetric positive definite matrix, of which only the lower triangle is read.

    The factorisation ``matrix = L D L^T`` (L with unit diagonal) needs no square root and has a derivative wherever the matrix
    is regular.
    """
    size = len(rhs)
    lower: list[list[Scalar]] = [[0.0] * size for _ in range(size)]
    inverse: list[Scalar] = [0.0] * size  # of the diagonal D
    for j in range(size):
        scaled = [lower[j][k] for k in range(j)]  # L_jk D_k; divided by D_k below
        pivot = matrix[j][j]
        for k in range(j):
            factor = scaled[k] * inverse[k]
            pivot = pivot - scaled[k] * factor
            lower[j][k] = factor
        inverse[j] = 1.0 / pivot
        for i in range(j + 1, size):
            entry = matrix[i][j]
            for k in range(j):
                entry = entry - lower[i][k] * lower[j][k]
            lower[i][j] = entry  # L_ij D_j until row i is factored
    x = list(rhs)
    for i in range(size):
        for k in range(i):
            x[i] = x[i] - lower[i][k] * x[k]
    x = [x[i] * inverse[i] for i in range(size)]
    for i in reversed(range(size)):
        for k in range(i + 1, size):
            x[i] = x[i] - lower[k][i] * x[k]
    return x


def eliminate_spd(matrix: Array, rhs: Array) -> Array:
    """Solve ``matrix x = rhs`` for a symmetric positive definite matrix (..., m, m) and rhs (..., m) by Gauss-Jordan elimination.

    Such a matrix needs no pivoting (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., sections 10.1 and 14.4).
    """
    size = rhs.shape[-1]
    system = jnp.concatenate([matrix, rhs[..., None]], -1)
    for j in range(size):
        row = system[..., j : j + 1, :] / system[..., j : j + 1, j : j + 1]
        others = (jnp.arange(size) != j)[:, None]
        system = jnp.where(others, system - system[..., :, j : j + 1] * row, row)
    return system[..., -1]
