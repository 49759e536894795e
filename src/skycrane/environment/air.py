"""Air: density and wind.

Density of the international standard atmosphere (ISO 2533:1975, troposphere, h up to 11 km), with an offset of the temperature at unchanged
pressure for hot and cold days:

    T(h) = T_0 - L h,    p(h) = p_0 (T/T_0)^(g_0 / (R L)),    rho = p / (R (T + dT))
"""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.math.components import Scalar, Vec3

SEA_LEVEL_DENSITY = 1.225  # kg/m^3, ISA
SEA_LEVEL_TEMPERATURE = 288.15  # K
SEA_LEVEL_PRESSURE = 101325.0  # Pa
LAPSE_RATE = 0.0065  # K/m
GAS_CONSTANT = 287.05287  # J/(kg K), dry air
STANDARD_GRAVITY = 9.80665  # m/s^2
PRESSURE_EXPONENT = STANDARD_GRAVITY / (GAS_CONSTANT * LAPSE_RATE)


def standard_temperature(altitude: Scalar) -> Scalar:
    """Temperature [K] of the standard atmosphere at an altitude [m] above sea level, up to 11 km."""
    return SEA_LEVEL_TEMPERATURE - LAPSE_RATE * altitude


def standard_density(altitude: Scalar, temperature_offset: Scalar = 0.0) -> Scalar:
    """Density [kg/m^3] at an altitude [m] above sea level, up to 11 km, on a day ``temperature_offset`` [K] warmer than standard."""
    temperature = standard_temperature(altitude)
    pressure = SEA_LEVEL_PRESSURE * (temperature / SEA_LEVEL_TEMPERATURE) ** PRESSURE_EXPONENT
    return pressure / (GAS_CONSTANT * (temperature + temperature_offset))


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
    """Air of a ``density`` [kg/m^3] moved by a ``wind``.

    The density is the same everywhere, unless ``temperature`` [K], of the air at world height 0, is given: then it falls with height
    as in the troposphere, starting from ``density``.
    """

    density: Array | float = SEA_LEVEL_DENSITY
    wind: AbstractWind = NoWind()
    temperature: Array | float | None = None

    @classmethod
    def standard(
        cls, altitude: Scalar = 0.0, temperature_offset: Scalar = 0.0, wind: AbstractWind | None = None, stratified: bool = False
    ) -> Air:
        """Standard atmosphere with world height 0 at ``altitude`` [m] above sea level, ``temperature_offset`` [K] warmer than standard.

        ``stratified``: whether the density changes with height above that level.
        """
        temperature = standard_temperature(altitude) + temperature_offset if stratified else None
        return cls(standard_density(altitude, temperature_offset), NoWind() if wind is None else wind, temperature)

    def velocity_W(self, t: Array, p_W: Vec3) -> Vec3:
        """Air velocity [m/s], world axes, at points p_W [m]."""
        return self.wind.velocity_W(t, p_W)

    def density_at(self, p_W: Vec3) -> Scalar:
        """Density [kg/m^3] at points p_W [m]; a scalar where it is the same everywhere."""
        if self.temperature is None:
            return self.density
        # Hydrostatic with a constant lapse rate: rho is proportional to T^(g / (R L) - 1).
        return self.density * (1.0 - LAPSE_RATE * p_W.z / self.temperature) ** (PRESSURE_EXPONENT - 1.0)
