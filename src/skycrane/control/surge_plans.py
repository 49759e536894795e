"""What a UAV that tows a buoy should do: speed of the buoy, azimuth and height of the UAV, over time or towards a place."""

from __future__ import annotations

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.math.components import Vec3


class SurgeTarget(NamedTuple):
    """``speed`` m/s of the buoy over ground along its bow, 0 for a slack tether; ``azimuth`` rad of the tether from east;
    ``height`` m of the UAV in the world."""

    speed: Array
    azimuth: Array
    height: Array


class AbstractSurgePlan(eqx.Module):
    """A wanted motion of buoy and UAV."""

    @abc.abstractmethod
    def __call__(self, t: Array, p_W: Vec3, azimuth: Array) -> SurgeTarget:
        """The target at time t [s], with the buoy at ``p_W`` [m] and the tether at ``azimuth`` [rad, without jumps] now."""


class StepPlan(AbstractSurgePlan):
    """Steps: from ``times`` (n,) s on, ``speeds`` (n,) m/s and ``azimuths`` (n,) rad; 0 and the first azimuth before.

    ``height`` m of the UAV, ``turn_rate`` rad/s: the azimuth keeps turning from the last step on.
    """

    times: Array
    speeds: Array
    azimuths: Array
    height: Array | float
    turn_rate: Array | float = 0.0

    @classmethod
    def create(cls, times, speeds, azimuths_deg, height: float, turn_rate_deg: float = 0.0) -> StepPlan:
        """From lists.

        Raises:
            ValueError: for lists of different length, or times that do not rise.
        """
        times, speeds, azimuths = (np.atleast_1d(np.asarray(v, dtype=float)) for v in (times, speeds, azimuths_deg))
        if not times.shape == speeds.shape == azimuths.shape or times.ndim != 1:
            raise ValueError(
                f"steps: {times.shape[0]} times, {speeds.shape[0]} speeds, {azimuths.shape[0]} azimuths; expected as many of each"
            )
        if not (np.diff(times) > 0).all():
            raise ValueError(f"steps: times {times.tolist()} do not rise")
        return cls(jnp.asarray(times), jnp.asarray(speeds), jnp.asarray(np.deg2rad(azimuths)), height, np.deg2rad(turn_rate_deg))

    def __call__(self, t, p_W, azimuth):
        speed, wanted = 0.0 * self.speeds[0], self.azimuths[0]
        for k in range(self.times.shape[0]):
            begun = t >= self.times[k] - 1e-9
            speed, wanted = jnp.where(begun, self.speeds[k], speed), jnp.where(begun, self.azimuths[k], wanted)
        return SurgeTarget(speed, wanted + self.turn_rate * jnp.maximum(t - self.times[-1], 0.0), jnp.asarray(self.height))


class TowPlan(AbstractSurgePlan):
    """From ``start`` s on, tow the buoy to ``goal`` (2,) m at ``speed`` m/s, slower within ``slowing`` m; within ``arrived`` m of it the
    tether goes slack.

    The tether points at the goal, plus ``offset`` rad for one UAV of several; ``height`` m of the UAV.
    """

    goal: Array
    speed: Array | float
    height: Array | float
    start: Array | float = 0.0
    slowing: Array | float = 15.0
    arrived: Array | float = 1.5
    slowest: Array | float = 1.5
    offset: Array | float = 0.0

    def __call__(self, t, p_W, azimuth):
        x, y = self.goal[0] - p_W.x, self.goal[1] - p_W.y
        far = jnp.sqrt(x * x + y * y + 1e-12)
        bearing = jnp.arctan2(y, jnp.where(far > 1e-5, x, 1.0)) + self.offset
        bearing = azimuth + jnp.mod(bearing - azimuth + jnp.pi, 2 * jnp.pi) - jnp.pi
        speed = jnp.clip(self.speed * far / self.slowing, self.slowest, self.speed)
        towing = (t >= self.start) & (far > self.arrived)
        # Where it has arrived the bearing means nothing.
        return SurgeTarget(jnp.where(towing, speed, 0.0), jnp.where(far > self.arrived, bearing, azimuth), jnp.asarray(self.height))
