"""Instruments with noise and bias, and an estimator that flies on them.  Without these a controller sees the true state.

What an accelerometer at r from B measures is the specific force there, in body axes:

    f = R^T (a_B - g) + w' x r + w x (w x r) + bias + noise,      a_B the acceleration of B, g = (0, 0, -9.81) m/s^2

Random numbers depend on the seed, the control tick and the instrument's name only, so runs repeat bit for bit and restart
exactly.

Estimator (M.-D. Hua, "Attitude estimation for accelerated vehicles using GPS/INS measurements", Control Engineering Practice 18,
2010, with the bias and compass terms of R. Mahony, T. Hamel, J.-M. Pflimlin, "Nonlinear complementary filters on the special
orthogonal group", IEEE TAC 53, 2008).  Estimates carry a ^, m is the compass reading:

    R^' = R^ S(w_m - b^ + s),      s = k_t f x R^T (v_m - v^) + k_c m x R^T m_W,      b^' = -k_b s
    v^' = R^ f + g + k_v (v_m - v^) + k_pv (p_m - p^),      p^' = v^ + k_p (p_m - p^)

The velocity terms find the tilt also while the vehicle accelerates, when the accelerometer alone points along the thrust.
"""

from __future__ import annotations

import abc
import zlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from skycrane.core.bodies import BodyState, State
from skycrane.core.controller import AbstractSensors, Measurement
from skycrane.math import rotation
from skycrane.math.components import Mat3, Quat, Vec3

Reading = dict[str, Array]


class AbstractInstrument(eqx.Module):
    """Something on each of ``bodies`` that reads a state every ``period`` control ticks (both static), with noise from a key."""

    bodies: tuple[int, ...] = eqx.field(static=True)
    period: int = eqx.field(static=True, default=1)

    @abc.abstractmethod
    def read(self, key: Array, state: State, rates: State, gravity: Array | float) -> Reading:
        """Readings by name; ``rates`` is the time derivative of the state, ``gravity`` in m/s^2."""


def _picked(bodies: tuple[int, ...], b: BodyState) -> tuple[Vec3, Mat3, Vec3, Vec3]:
    index = list(bodies)
    p, q, v, w = (jnp.stack([x[i] for i in index]) for x in (b.p_WB, b.q_WB, b.v_W, b.w_B))
    return Vec3.of(p), Quat.of(q).matrix(), Vec3.of(v), Vec3.of(w)


def _noise(key: Array, std: ArrayLike, like: Array) -> Array:
    return jnp.asarray(std, like.dtype) * jax.random.normal(key, like.shape, like.dtype)


class Imu(AbstractInstrument):
    """Accelerometer and gyroscope on each body.

    ``position_B`` (k, 3) m from B, axes parallel to the body's; biases (k, 3) m/s^2 and rad/s; noise: standard deviation of each
    sample. Readings ``specific_force`` (k, 3) m/s^2 and ``angular_velocity`` (k, 3) rad/s.
    """

    position_B: Array | tuple = (0.0, 0.0, 0.0)
    accelerometer_bias: Array | tuple = (0.0, 0.0, 0.0)
    gyro_bias: Array | tuple = (0.0, 0.0, 0.0)
    accelerometer_noise: Array | float = 0.0
    gyro_noise: Array | float = 0.0

    def read(self, key, state, rates, gravity):
        _, R_WB, _, w_B = _picked(self.bodies, state.bodies)
        index = list(self.bodies)
        a_W, alpha_B = (Vec3.of(jnp.stack([x[i] for i in index])) for x in (rates.bodies.v_W, rates.bodies.w_B))
        r = Vec3.of(jnp.broadcast_to(jnp.asarray(self.position_B, state.bodies.p_WB.dtype), (len(index), 3)))
        f = R_WB.T @ (a_W + Vec3(0.0, 0.0, gravity)) + alpha_B.cross(r) + w_B.cross(w_B.cross(r))
        first, second = jax.random.split(key)
        force, rate = f.array() + jnp.asarray(self.accelerometer_bias), w_B.array() + jnp.asarray(self.gyro_bias)
        return {
            "specific_force": force + _noise(first, self.accelerometer_noise, force),
            "angular_velocity": rate + _noise(second, self.gyro_noise, rate),
        }


class Positioning(AbstractInstrument):
    """Satellite or motion-capture positioning of B of each body.

    Noise: standard deviations along world axes, (3,) or one number, m and m/s.  Readings ``position`` and ``velocity`` (k, 3).
    """

    position_noise: Array | float | tuple = 0.0
    velocity_noise: Array | float | tuple = 0.0

    def read(self, key, state, rates, gravity):
        p_WB, _, v_W, _ = _picked(self.bodies, state.bodies)
        p, v = p_WB.array(), v_W.array()
        first, second = jax.random.split(key)
        return {"position": p + _noise(first, self.position_noise, p), "velocity": v + _noise(second, self.velocity_noise, v)}


class Compass(AbstractInstrument):
    """Direction of north (world y) in the axes of each body: reading ``north`` (k, 3), ``noise`` the deviation
    of each component."""

    noise: Array | float = 0.0

    def read(self, key, state, rates, gravity):
        north = _picked(self.bodies, state.bodies)[1].y.array()  # R^T e_y is the second row of R
        return {"north": north + _noise(key, self.noise, north)}


class Instruments(AbstractSensors):
    """Named instruments; the controller still sees the true state, and their readings beside it.

    A reading that is not due keeps its last value.  ``readings[name]["fresh"]`` tells.
    """

    instruments: dict[str, AbstractInstrument]
    seed: Array | int = 0

    def init(self, state: State) -> dict[str, Reading]:
        # Nothing has been read yet: zeros of the right shapes, which the first tick replaces.
        def first():
            return {n: i.read(jax.random.key(0), state, state, 0.0) for n, i in self.instruments.items()}

        return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(first))

    def __call__(self, tick, t, system, state, command, prepared, memory):
        rates = system.dynamics(t, state, command, prepared)
        root = jax.random.fold_in(jax.random.key(self.seed), tick)
        held, readings = {}, {}
        for name, instrument in sorted(self.instruments.items()):
            due = tick % instrument.period == 0
            key = jax.random.fold_in(root, zlib.crc32(name.encode()) & 0x7FFFFFFF)
            new = instrument.read(key, state, rates, system.environment.gravity)
            held[name] = jax.tree.map(lambda x, old, due=due: jnp.where(due, x, old), new, memory[name])
            readings[name] = {**held[name], "fresh": due}
        return Measurement(state.bodies, state.memory, readings), held


class Estimate(eqx.Module):
    """Last time [s], estimated pose and velocity (k, ...) and gyro bias (k, 3)."""

    time: Array
    bodies: BodyState
    gyro_bias: Array


class Estimator(AbstractSensors):
    """The observer of the module on the instruments ``imu``, ``positioning`` and ``compass``; the controller sees its estimates
    for their bodies.

    Gains: ``tilt`` k_t s/m^2, ``course`` k_c 1/s, ``bias`` k_b 1/s, ``velocity`` k_v 1/s, ``position`` k_p 1/s, ``drift`` k_pv
        1/s^2.  It starts from the
    true state with ``initial_tilt`` (3,) rad of error about body axes.
    """

    instruments: Instruments
    tilt: Array | float = 0.06
    course: Array | float = 1.0
    bias: Array | float = 0.1
    velocity: Array | float = 4.0
    position: Array | float = 3.0
    drift: Array | float = 2.0
    initial_tilt: Array | tuple = (0.0, 0.0, 0.0)

    def __check_init__(self):
        missing = [n for n in ("imu", "positioning", "compass") if n not in self.instruments.instruments]
        if missing:
            raise ValueError(f"the estimator needs instruments called imu, positioning and compass; missing: {', '.join(missing)}")

    @property
    def bodies(self) -> tuple[int, ...]:
        """The bodies that are estimated: those that carry the IMU."""
        imu = self.instruments.instruments["imu"]
        assert isinstance(imu, Imu)
        return imu.bodies

    def init(self, state: State) -> tuple[Any, Estimate]:
        index = jnp.array(self.bodies)
        b = jax.tree.map(lambda x: x[index], state.bodies)
        error = rotation.exp(jnp.asarray(self.initial_tilt, b.p_WB.dtype))
        b = eqx.tree_at(lambda s: s.q_WB, b, rotation.multiply(b.q_WB, error))
        return self.instruments.init(state), Estimate(jnp.asarray(-jnp.inf, b.p_WB.dtype), b, jnp.zeros_like(b.w_B))

    def __call__(self, tick, t, system, state, command, prepared, memory):
        held, old = memory
        measurement, held = self.instruments(tick, t, system, state, command, prepared, held)
        estimate = self._advance(t, measurement.readings, old, system.environment.gravity)
        bodies = measurement.bodies
        for k, body in enumerate(self.bodies):
            bodies = jax.tree.map(lambda x, e, k=k, body=body: x.at[body].set(e[k]), bodies, estimate.bodies)
        return Measurement(bodies, measurement.memory, measurement.readings), (held, estimate)

    def _advance(self, t: Array, readings: dict, old: Estimate, gravity: Array | float) -> Estimate:
        begun = old.time >= 0
        dt = jnp.where(begun, t - old.time, 0.0)
        imu, fix, compass = (readings[n] for n in ("imu", "positioning", "compass"))
        b = old.bodies
        R = Quat.of(b.q_WB).matrix()
        f_B, w = Vec3.of(imu["specific_force"]), Vec3.of(imu["angular_velocity"] - old.gyro_bias)
        # A fix that comes every so many ticks counts for as many; in between the inertial readings carry on alone.
        fixed = jnp.where(fix["fresh"], self.instruments.instruments["positioning"].period * dt, 0.0)
        seen = jnp.where(compass["fresh"], self.instruments.instruments["compass"].period * dt, 0.0)
        slip, off = fix["velocity"] - b.v_W, fix["position"] - b.p_WB
        north_B = Vec3.of(compass["north"])
        turn = fixed * self.tilt * f_B.cross(R.T @ Vec3.of(slip)) + seen * self.course * north_B.cross(R.y)
        a_W = (R @ f_B + Vec3(0.0, 0.0, -gravity)).array()
        v_W = b.v_W + dt * a_W + fixed * (self.velocity * slip + self.drift * off)
        p_WB = b.p_WB + dt * (b.v_W + 0.5 * dt * a_W) + fixed * self.position * off
        q_WB = rotation.normalize(rotation.multiply(b.q_WB, rotation.exp((dt * w + turn).array())))
        bias = old.gyro_bias - self.bias * turn.array()
        return Estimate(jnp.asarray(t, old.time.dtype), BodyState(p_WB, q_WB, v_W, w.array()), bias)
