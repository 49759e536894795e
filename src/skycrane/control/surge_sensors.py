"""Instruments of a UAV that tows a buoy, with the noise and rates of Kourani and Daher, and an estimator of positions and velocities.

The buoy has satellite positioning (20 Hz, variance 5e-4 m^2) and an accelerometer (1e-4 m^2/s^4, every tick), the UAV an accelerometer and
a camera that sees the buoy: angles (100 Hz, 1e-5 rad^2) and range (1e-3 m^2).  Attitudes count as known.  With a_m the measured
acceleration of the buoy, or that of the UAV relative to it, and p_m the position of the buoy, or of the UAV relative to it, at the ticks
where it is new

    v^' = a_m + w^2 (p_m - p^) period,       p^' = v^ + 2 w (p_m - p^) period

with one bandwidth w [rad/s] for the satellites and one for the camera.  (The source filters the camera alone, with 15 rad/s.)
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from skycrane.core.bodies import BodyState, State
from skycrane.core.controller import AbstractSensors, Measurement


class TowEstimate(eqx.Module):
    """Estimated (2, 3) positions and velocities: of the buoy, and of the UAV relative to it; true velocities a tick before."""

    position: Array
    velocity: Array
    before: Array


class TowSensors(AbstractSensors):
    """The sensors and the estimator of the module.

    ``uav``, ``buoy``: static body indices; ``period`` s between control ticks; standard deviations ``position_noise`` m,
    ``acceleration_noise`` m/s^2, ``angle_noise`` rad, ``range_noise`` m; ``satellite_every``, ``camera_every``: static, ticks between
    readings; ``satellite_bandwidth``, ``camera_bandwidth`` rad/s.
    """

    uav: int = eqx.field(static=True)
    buoy: int = eqx.field(static=True)
    period: Array | float
    seed: Array | int = 0
    position_noise: Array | float = 5e-4**0.5
    acceleration_noise: Array | float = 1e-2
    angle_noise: Array | float = 1e-5**0.5
    range_noise: Array | float = 1e-3**0.5
    satellite_every: int = eqx.field(static=True, default=25)
    camera_every: int = eqx.field(static=True, default=5)
    satellite_bandwidth: Array | float = 1.0
    camera_bandwidth: Array | float = 4.0

    def _pair(self, x: Array) -> Array:
        """(2, 3): of the buoy, and of the UAV relative to it."""
        return jnp.stack([x[self.buoy], x[self.uav] - x[self.buoy]])

    def init(self, state: State) -> TowEstimate:
        position, velocity = self._pair(state.bodies.p_WB), self._pair(state.bodies.v_W)
        return TowEstimate(position, velocity, velocity)

    def __call__(self, tick, t, system, state, command, prepared, memory: TowEstimate):
        b = state.bodies
        key = jax.random.fold_in(jax.random.key(self.seed), tick)
        noise = jax.random.normal(key, (4, 3), b.p_WB.dtype)
        p, v = self._pair(b.p_WB), self._pair(b.v_W)
        d = p[1]
        r = jnp.sqrt(jnp.sum(d * d) + 1e-12)
        flat = jnp.sqrt(d[0] ** 2 + d[1] ** 2 + 1e-12)
        e_al, e_ph = jnp.stack([-d[2] * d[0] / flat, -d[2] * d[1] / flat, flat]) / r, jnp.stack([-d[1], d[0], 0.0 * r]) / flat
        seen = d + self.range_noise * noise[1, 0] * d / r
        seen = seen + self.angle_noise * (r * noise[1, 1] * e_al + flat * noise[1, 2] * e_ph)
        read = jnp.stack([p[0] + self.position_noise * noise[0], seen])
        # What the accelerometers read over the last tick; the relative one has the noise of both.
        rates = (v - memory.before) / self.period + self.acceleration_noise * jnp.stack([noise[2], noise[3] - noise[2]])
        every = jnp.array([self.satellite_every, self.camera_every])
        due = jnp.where(tick % every == 0, 1.0, 0.0)[:, None].astype(p.dtype)
        bandwidth = jnp.stack([jnp.asarray(self.satellite_bandwidth, p.dtype), jnp.asarray(self.camera_bandwidth, p.dtype)])
        w, held = bandwidth[:, None], every[:, None] * self.period
        position = memory.position + self.period * memory.velocity + 0.5 * self.period**2 * rates
        miss = due * (read - position)
        velocity = memory.velocity + self.period * rates + w * w * held * miss
        position = position + 2 * w * held * miss

        def placed(x: Array, y: Array) -> Array:
            rows = [x[k] for k in range(x.shape[0])]
            rows[self.buoy], rows[self.uav] = y[0], y[0] + y[1]
            return jnp.stack(rows)

        bodies = BodyState(placed(b.p_WB, position), b.q_WB, placed(b.v_W, velocity), b.w_B)
        return Measurement(bodies, state.memory), TowEstimate(position, velocity, v)
