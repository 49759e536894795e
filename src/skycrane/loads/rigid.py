"""Rigid loads: mass, centre of mass and inertia of solid shapes, of composites, and of bodies with point masses.

Closed forms of homogeneous solids about their own centre of mass (for instance Goldstein, "Classical Mechanics", ch. 5); the axis of a
cylinder and a cone is the body's z.  Parts are joined by the parallel-axis theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.math.checks import concrete

Numbers = Any  # what jnp.asarray takes


class Rigid(eqx.Module):
    """Mass properties of a rigid body: ``mass`` kg, ``com_B`` (3,) m from the reference point, ``inertia_B`` (3, 3) kg m^2 about the
    centre of mass."""

    mass: Array
    com_B: Array
    inertia_B: Array

    @classmethod
    def create(cls, mass: Numbers, inertia_B: Numbers, com_B: Numbers = (0.0, 0.0, 0.0)) -> Rigid:
        """From numbers; ``inertia_B`` may be a (3,) diagonal."""
        xp = np if concrete(mass, inertia_B, com_B) else jnp
        inertia = xp.asarray(inertia_B, dtype=float)
        return cls(xp.asarray(mass, dtype=float), xp.asarray(com_B, dtype=float), inertia * xp.eye(3) if inertia.ndim == 1 else inertia)

    def moved(self, offset: Numbers, R: Numbers | None = None) -> Rigid:
        """The same body turned by the rotation matrix ``R`` (3, 3) about its reference point and then moved by ``offset`` (3,) m."""
        xp = np if concrete(self, offset, R) else jnp
        R = xp.eye(3) if R is None else xp.asarray(R, dtype=float)
        return Rigid(self.mass, R @ self.com_B + xp.asarray(offset, dtype=float), R @ self.inertia_B @ R.T)

    def with_points(self, masses: Numbers, points_B: Numbers) -> Rigid:
        """With point masses (k,) kg at points (k, 3) m fixed to it."""
        xp = np if concrete(self, masses, points_B) else jnp
        masses, points = xp.atleast_1d(xp.asarray(masses, dtype=float)), xp.reshape(xp.asarray(points_B, dtype=float), (-1, 3))
        return composite([self, *(Rigid(masses[i], points[i], xp.zeros((3, 3))) for i in range(len(points)))])


def _require_positive(solid: str, **sizes: Any) -> None:
    """Raises ValueError for a mass or a length that is not positive, as far as numbers are known."""
    for name, value in sizes.items():
        if concrete(value) and not np.all(np.asarray(value) > 0):
            raise ValueError(f"{solid}: {name} is {value}, expected positive numbers")


def box(mass: Numbers, size: Sequence[float]) -> Rigid:
    """A box with edges ``size`` (3,) m along x, y, z; the reference point is its centre."""
    _require_positive("box", mass=mass, size=size)
    x, y, z = size
    return Rigid.create(mass, mass * np.array([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0)


def cylinder(mass: Numbers, radius: float, height: float) -> Rigid:
    """A cylinder about z; the reference point is its centre."""
    _require_positive("cylinder", mass=mass, radius=radius, height=height)
    across = (3 * radius**2 + height**2) / 12.0
    return Rigid.create(mass, mass * np.array([across, across, 0.5 * radius**2]))


def sphere(mass: Numbers, radius: float) -> Rigid:
    """A ball about its centre."""
    _require_positive("sphere", mass=mass, radius=radius)
    return Rigid.create(mass, mass * 0.4 * radius**2 * np.ones(3))


def cone(mass: Numbers, radius: float, height: float) -> Rigid:
    """A cone about z with its tip up; the reference point is its centre of mass, a quarter of the height above the base."""
    _require_positive("cone", mass=mass, radius=radius, height=height)
    across = 3.0 / 80.0 * (4 * radius**2 + height**2)
    return Rigid.create(mass, mass * np.array([across, across, 0.3 * radius**2]))


def composite(parts: Sequence[Rigid]) -> Rigid:
    """Several bodies with the same reference point, rigidly joined."""
    xp = np if concrete(list(parts)) else jnp
    mass = sum(p.mass for p in parts)
    com = sum(p.mass * p.com_B for p in parts) / mass
    inertia = xp.zeros((3, 3))
    for p in parts:
        d = p.com_B - com
        inertia = inertia + p.inertia_B + p.mass * (xp.dot(d, d) * xp.eye(3) - xp.outer(d, d))
    return Rigid(xp.asarray(mass), xp.asarray(com), inertia)
