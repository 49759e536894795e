"""Surge control by incremental inversion.

In place of the pulling law of :mod:`skycrane.control.surge`, this one measures the tension (from thrust and acceleration of the UAV) and
the acceleration of the buoy, and asks for

    F = T c_al cos(ph - psi) - (m_b + a_11) nu_x'                                          the water's force, filtered
    T_d = [ (m_b + a_11) (V' - k_p e - int(k_i e)) + F ] / (c_al cos(ph - psi)),      u_r = T_d + m [ e_r . r_b'' + g s_al - L(...) ]

so that no model of the water's forces is needed (incremental inversion: Smeur, Chu, de Croon, JGCD 39, 2016).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from skycrane.control.filters import low_pass
from skycrane.control.surge import Loop, SurgeControl, SurgeGains
from skycrane.math.components import Vec3


class IncrementalSurgeControl(SurgeControl):
    """The improved law of the module: incremental inversion of the surge dynamics in place of the pulling law.

    ``water_time``: s, of the filter of the water's force.
    """

    gains: SurgeGains = SurgeGains(surge=Loop(20.0, 8.0, 0.0, jnp.inf, jnp.inf, 10.0))
    water_time: Array | float = 0.3

    def _thrust(self, measurement, R_u):
        model = self.model
        speed = measurement.memory[model.rotors]
        speed = (speed.speed if hasattr(speed, "speed") else speed)[0]
        thrust = model.allocation.thrust_coefficient[0] * speed**2
        return R_u @ Vec3(*((model.allocation.effectiveness[0, i] * thrust).sum() for i in range(3)))

    def _pull(self, tow, memory, error, rate, speed):
        m, g = self.model.mass[0], self.model.gravity
        fb, integral = self.gains.surge(memory.integral[3], error, 0.0, self.period)
        fb = jnp.clip(fb, -self.surge_limit, self.surge_limit)
        a_u, thrust_W = Vec3.of(memory.uav[1]), Vec3.of(memory.uav[2])
        tension = jnp.maximum(tow.e_r.dot(thrust_W - m * a_u) - m * g * tow.sin_al, 0.0)
        c, s = jnp.cos(tow.psi), jnp.sin(tow.psi)
        nu_rate = c * tow.a_b.x + s * tow.a_b.y
        mass = self.buoy.mass * self.share
        known = low_pass(memory.water, tension * tow.along - mass * nu_rate, self.period, self.water_time)
        wanted = (mass * (rate - fb) + known[0]) / tow.along
        floor = self.tension_least + 3.0
        wanted = jnp.where(wanted < floor, 3.0 * jnp.tanh((wanted - floor) / 3.0) + floor, wanted)
        return wanted + m * (tow.e_r.dot(tow.a_b) + g * tow.sin_al - self.buoy.length * tow.turning), integral, known
