"""Shapes of hulls as vertical columns at Gauss points, so that area, volume and second moments of the waterplane come out exactly.

A box's plan is a product Gauss-Legendre rule.  A disc's takes equal angles, and radii whose squares are Gauss-Legendre points.  A ball's
columns have the chord's height, scaled a little (by less than 1 % from 4 rings on) to the ball's volume.  A lying cylinder has ribs of the
chord's height, scaled likewise.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from skycrane.elements.buoyancy import Columns


def _gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in (-1/2, 1/2) and weights that sum to 1."""
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * x, 0.5 * w


def _columns(x: np.ndarray, y: np.ndarray, bottom: np.ndarray, height: np.ndarray, area: np.ndarray) -> Columns:
    base = np.stack(np.broadcast_arrays(x, y, bottom), -1).reshape(-1, 3)
    return Columns(jnp.asarray(base), jnp.asarray(np.ravel(height)), jnp.asarray(np.ravel(area)))


def box_columns(size: Sequence[float], count: tuple[int, int] = (4, 4)) -> Columns:
    """A box with edges ``size`` about the reference point, in ``count`` columns along and across."""
    (x, wx), (y, wy) = _gauss(count[0]), _gauss(count[1])
    X, Y = np.meshgrid(x * size[0], y * size[1], indexing="ij")
    area = np.outer(wx, wy) * size[0] * size[1]
    return _columns(X, Y, np.full_like(X, -0.5 * size[2]), np.full_like(X, size[2]), area)


def _disc(radius: float, rings: int, angles: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y and area of points in a disc."""
    u, w = _gauss(rings)
    r = radius * np.sqrt(u + 0.5)
    a = 2 * np.pi * (np.arange(angles)[None, :] + 0.5 * (np.arange(rings)[:, None] % 2)) / angles
    area = np.repeat(w[:, None] * np.pi * radius**2 / angles, angles, 1)
    return r[:, None] * np.cos(a), r[:, None] * np.sin(a), area


def cylinder_columns(radius: float, height: float, count: tuple[int, int] = (2, 8)) -> Columns:
    """An upright cylinder about the reference point, in rings of columns."""
    x, y, area = _disc(radius, *count)
    return _columns(x, y, np.full_like(x, -0.5 * height), np.full_like(x, height), area)


def lying_cylinder_columns(radius: float, length: float, count: tuple[int, int] = (4, 6)) -> Columns:
    """A cylinder along x about the reference point, in columns along and across."""
    (x, wx), (y, wy) = _gauss(count[0]), _gauss(count[1])
    X, Y = np.meshgrid(x * length, y * 2 * radius, indexing="ij")
    chord = 2 * np.sqrt(radius**2 - Y**2)
    area = np.outer(wx, wy) * length * 2 * radius
    chord = chord * (np.pi * radius**2 * length / (chord * area).sum())
    return _columns(X, Y, -0.5 * chord, chord, area)


def sphere_columns(radius: float, count: tuple[int, int] = (5, 6)) -> Columns:
    """A ball about the reference point, in rings of columns."""
    x, y, area = _disc(radius, *count)
    chord = 2 * np.sqrt(radius**2 - x**2 - y**2)
    chord = chord * (4 / 3 * np.pi * radius**3 / (chord * area).sum())
    return _columns(x, y, -0.5 * chord, chord, area)


def joined(*parts: Columns) -> Columns:
    """Several shapes as one."""
    arrays = zip(*((p.base_B, p.height, p.area) for p in parts), strict=True)
    return Columns(*(jnp.concatenate(a) for a in arrays))


def moved(columns: Columns, offset: Sequence[float]) -> Columns:
    """The same shape at an offset [m]."""
    return Columns(columns.base_B + jnp.asarray(offset, columns.base_B.dtype), columns.height, columns.area)
