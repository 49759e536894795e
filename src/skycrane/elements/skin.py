"""Friction of water along a hull (ITTC 1957 line): ``C_S = 0.075/(log10 Re - 2)^2``, Re = |v| l/nu, at least 5e4."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.math.components import Scalar, Vec3

LEAST_REYNOLDS = 5e4


def friction_coefficient(speed: Scalar, length: Scalar, viscosity: Scalar) -> Scalar:
    """C_S of the module for a speed [m/s] of any sign."""
    reynolds = jnp.maximum(jnp.abs(speed) * length / viscosity, LEAST_REYNOLDS)
    return 0.075 / (jnp.log(reynolds) * (1.0 / jnp.log(10.0)) - 2.0) ** 2


class Skin(eqx.Module):
    """Wetted surface of a hull: ``length`` [m] of its Reynolds number, ``bottom`` [m^2], and ``girth`` [m], side area for each metre of
    immersion."""

    length: Array | float
    bottom: Array | float
    girth: Array | float

    def area(self, depth: Scalar, bottom_part: Scalar) -> Scalar:
        """Wet area [m^2] at an immersion [m], with ``bottom_part`` of the bottom in the water."""
        return self.bottom * bottom_part + self.girth * depth

    def force(self, area: Scalar, relative: Vec3, density: Scalar, viscosity: Scalar) -> Vec3:
        """Friction [N] along each axis of the velocity relative to the water, ``-1/2 rho C_S A |v_i| v_i``."""
        return relative.map(lambda v: -0.5 * density * area * friction_coefficient(v, self.length, viscosity) * jnp.abs(v) * v)
