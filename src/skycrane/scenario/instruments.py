"""The sensors of a scenario."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from skycrane.control.sensors import Compass, Estimator, Imu, Instruments, Positioning
from skycrane.core.controller import AbstractSensors, TrueState

from .scenario import Scenario

STREAM = 0x5E50
"""Keeps the noise apart from turbulence with the same seed."""


def sensors_of(scenario: Scenario) -> AbstractSensors:
    """An estimator on all instruments for all vehicles, or the true state where there is no table of sensors."""
    given = scenario.sensors
    if given is None:
        return TrueState()
    bodies, tick = tuple(range(len(scenario.bodies))), scenario.run.tick

    def rows(values: tuple[float, ...]) -> jnp.ndarray:
        return jnp.broadcast_to(jnp.array(values, dtype=float), (len(bodies), 3))

    imu, fix, compass = given.imu, given.positioning, given.compass
    instruments = {
        "imu": Imu(
            bodies, 1, rows(imu.position), rows(imu.accelerometer_bias), rows(imu.gyro_bias), imu.accelerometer_noise, imu.gyro_noise
        ),
        "positioning": Positioning(bodies, max(1, round(fix.period / tick)), fix.position_noise, fix.velocity_noise),
        "compass": Compass(bodies, max(1, round(compass.period / tick)), compass.noise),
    }
    seed = scenario.run.seed if given.seed is None else given.seed
    gains = {name: getattr(given.estimator, name) for name in ("tilt", "course", "bias", "velocity", "position", "drift")}
    tilt = jnp.array(np.deg2rad(given.estimator.initial_tilt_deg), dtype=float)
    return Estimator(Instruments(instruments, jnp.asarray((seed + STREAM) % 2**32, jnp.uint32)), **gains, initial_tilt=tilt)
