"""The worst-direction radius of the attainable wrench set as a differentiable function, for design.

The same half-spaces as in :mod:`skycrane.analysis.zonotope`, with their normals as generalised cross products: for five generators
``g_1..g_5`` in six dimensions

    a_k = (-1)^k det [g_1 .. g_5 without row k],        a . g_i = 0,

which has a derivative wherever the generators are independent.  The radius is a minimum of smooth functions of the layout: it has a
derivative almost everywhere, and ``sharpness`` replaces the minimum by a smooth one from below, ``-log(sum exp(-s r_j)) / s``.
"""

from __future__ import annotations

from itertools import combinations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp


def worst_direction_radius(
    matrix: Array, lower: Array, upper: Array, at: Array, free: tuple[int, ...], *, arm: Array | float = 1.0, sharpness: float | None = None
) -> Array:
    """How far the free components can move in the worst direction, the others staying as they are in ``at``.

    Args:
        matrix: (6, n) wrench for each newton of thrust, of rank 6 (n >= 6).
        lower, upper: (n,) N.
        at: (6,) wrench from which to move.
        free: which components: ``(0, 1, 2)`` for forces, ``(3, 4, 5)`` for moments.
        arm: m, the length that makes moments comparable with forces inside; does not change the result.
        sharpness: 1/N or 1/(N m); None for the exact minimum.

    Returns:
        Scalar; negative where ``at`` is out of reach.
    """
    scale = jnp.repeat(jnp.stack([jnp.asarray(1.0, matrix.dtype), jnp.asarray(arm, matrix.dtype)]), 3, total_repeat_length=6)
    generators = matrix / scale[:, None]
    generators = generators / jnp.linalg.norm(generators, axis=0)
    subsets = np.array(list(combinations(range(matrix.shape[1]), 5)))
    chosen = jnp.moveaxis(generators[:, subsets], 1, 0)  # (subsets, 6, 5)
    minors = jnp.stack([jnp.delete(chosen, k, axis=1, assume_unique_indices=True) for k in range(6)], 1)
    normals = jnp.linalg.det(minors) * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    size2 = jnp.sum(normals * normals, -1, keepdims=True)
    independent = size2[:, 0] > 1e-20
    normals = normals / jnp.sqrt(jnp.where(size2 > 1e-20, size2, 1.0)) / scale
    normals = jnp.concatenate([normals, -normals])
    along = normals @ matrix
    slack = jnp.maximum(along * lower, along * upper).sum(-1) - normals @ at
    part = normals[:, np.array(free)]
    length2 = jnp.sum(part * part, -1)
    counts = jnp.concatenate([independent, independent]) & (length2 > 1e-18 * jnp.max(length2))
    radius = jnp.where(counts, slack / jnp.sqrt(jnp.where(counts, length2, 1.0)), jnp.inf)
    if sharpness is None:
        return jnp.min(radius)
    return -logsumexp(jnp.where(counts, -sharpness * radius, -jnp.inf)) / sharpness
