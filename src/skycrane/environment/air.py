"""Air: density and wind."""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.math.components import Vec3

SEA_LEVEL_DENSITY = 1.225  # kg/m^3, ISA


class AbstractWind(eqx.Module):
    """Velocity of the air over ground."""

    @abc.abstractmethod
    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        """Air velocity [m/s], world axes, at points p_W [m]."""


class NoWind(AbstractWind):
    """Still air."""

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        zero = jnp.zeros_like(p_W.x)
        return Vec3(zero, zero, zero)


class SteadyWind(AbstractWind):
    """The same velocity everywhere and always, ``velocity`` (3,) m/s in world axes: where the air goes to."""

    velocity: Array

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        return Vec3.of(jnp.asarray(self.velocity))


class Air(eqx.Module):
    """Air of constant ``density`` [kg/m^3] moved by a ``wind``."""

    density: Array | float = SEA_LEVEL_DENSITY
    wind: AbstractWind = NoWind()

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        """Air velocity [m/s], world axes, at points p_W [m]."""
        return self.wind.velocity_W(t, p_W)
