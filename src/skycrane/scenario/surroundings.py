"""The environment of a scenario: air, wind and ground as the elements meet them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.environment import wind as winds
from skycrane.environment.air import AbstractWind, Air, NoWind, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground
from skycrane.environment.turbulence import Dryden

from . import environment as spec
from .events import GustEvent
from .scenario import Scenario
from .sea import water_of

WIND = "system.environment.air.wind"


def environment_of(scenario: Scenario) -> Environment:
    """Gravity, air and ground. Several winds, and gusts among the events, are a sum."""
    given = scenario.environment
    parts = [_wind(part, scenario) for part in given.winds]
    parts += [_gust(event.velocity, event.time, event.rise, event.hold) for event in _gusts(scenario)]
    wind = parts[0] if len(parts) == 1 else winds.Superposed(tuple(parts))
    ground = None if given.ground is None else Ground(given.ground.height)
    water = water_of(scenario)
    if given.altitude is None:
        return Environment(given.gravity, Air(given.air_density, wind), ground, water)
    air = Air.standard(given.altitude, given.temperature_offset, wind, given.stratified)
    return Environment(given.gravity, air, ground, water)


def mean_wind_path(scenario: Scenario) -> str:
    """Where the velocity is that a `wind` event changes."""
    alone = len(scenario.environment.winds) == 1 and not _gusts(scenario)
    return f"{WIND}.velocity" if alone else f"{WIND}.parts.{scenario.environment.mean_wind}.velocity"


def _gusts(scenario: Scenario) -> list[GustEvent]:
    return [event for event in scenario.events if isinstance(event, GustEvent)]


def _gust(velocity: tuple[float, float, float], start: float, rise: float, hold: float) -> winds.Gust:
    return winds.Gust(_vector(velocity), start, rise, hold)


def _vector(values: tuple[float, float, float]) -> Array:
    return jnp.array(values, dtype=float)


def _wind(given: object, scenario: Scenario) -> AbstractWind:
    ground = 0.0 if scenario.environment.ground is None else scenario.environment.ground.height
    if isinstance(given, spec.SteadyWind):
        return SteadyWind(_vector(given.velocity))
    if isinstance(given, spec.ShearWind):
        velocity, height = _vector(given.velocity), given.reference_height
        if given.law == "power":
            return winds.PowerLawWind(velocity, height, given.exponent, ground)
        return winds.LogWind(velocity, height, given.roughness, ground)
    if isinstance(given, spec.GustWind):
        return _gust(given.velocity, given.start, given.rise, given.hold)
    if isinstance(given, spec.DrydenWind):
        return Dryden.low_altitude(
            given.height, given.wind_20ft,
            duration=max(scenario.run.duration, 1.0),
            seed=scenario.run.seed if given.seed is None else given.seed,
            airspeed=given.airspeed,
            heading=float(np.deg2rad(given.heading_deg)),
            frozen=given.frozen,
        )  # fmt: skip
    if isinstance(given, spec.RecordWind):
        samples = np.array(given.samples)
        record = winds.TabulatedWind.create(samples[:, 0], samples[:, 1:])
        return winds.TabulatedWind(record.series, given.scale)
    return NoWind()
