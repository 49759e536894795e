"""Control of a UAV that tows a buoy on a tether by its surge speed: the directional surge-velocity control system of Kourani and Daher.

The tether runs from the buoy to the UAV with length r, elevation al and azimuth ph, along ``e_r``, with ``e_al`` and ``e_ph`` across
(r_b'' the buoy's acceleration, m the UAV's mass, psi the buoy's yaw, nu its velocity along its axes).  With
``fb = k_p e + int(k_i e) + k_d e'`` of each error e, the wanted force on the UAV is u = u_r e_r + u_al e_al + u_ph e_ph:

    u_al = m r (al_d'' - fb_al) + m [ 2 r' al' + r s_al c_al ph'^2 + e_al . r_b'' + g c_al ]
    u_ph = m r c_al (ph_d'' - fb_ph) + m [ 2 r' ph' c_al - 2 r al' ph' s_al + e_ph . r_b'' ]
    u_r  = m (r_d'' - fb_r) - m [ r (al'^2 + c_al^2 ph'^2) - e_r . r_b'' - g s_al ]                             slack
    u_r  = m c_al cos(ph - psi) (V' - fb_nu) - c_p m [ L (al'^2 + c_al^2 ph'^2) - c_al sin(ph - psi) nu_y' - s_al z_b'' ]
           + m g s_al + T                                                                                         pulling

(Kourani and Daher, "A tethered quadrotor UAV-buoy system for marine locomotion" and its three-dimensional sequel; the feed-forward of r_b''
in u_al has the factor that their program lacks.)  V is the filtered speed reference, c_p the filtered taut flag, and T the least tension,
``D0 |V - nu_x| / cos al`` and at least 5 N, D0 the buoy's friction at V.  Thrust along body z and the attitude (roll, pitch, yaw of Rz Rx
Ry) follow from u; the attitude loop is ``tau = J (-k_p e - int(k_i e) - k_d e' + Theta_d'') + w x J w`` with e' against the rate of the
reference.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.control.filters import curvature, low_pass, share, slope
from skycrane.control.model import VehicleModel
from skycrane.control.surge_plans import AbstractSurgePlan
from skycrane.core.controller import AbstractController, Measurement
from skycrane.elements.skin import friction_coefficient
from skycrane.elements.slaved import yaw_of
from skycrane.math.components import Mat3, Quat, Vec3, safe_sqrt

QUARTER = jnp.pi / 4


Gain = Any  # a number, or three


class Loop(eqx.Module):
    """Gains of one loop, and bounds of its error, of its error's rate and of its integral term."""

    kp: Gain
    ki: Gain = 0.0
    kd: Gain = 0.0
    error_max: Array | float = jnp.inf
    rate_max: Array | float = jnp.inf
    integral_max: Gain = jnp.inf

    def __call__(self, integral: Array, error: Array, rate: Array | float, dt: Array | float) -> tuple[Array, Array]:
        """Feedback, and the integral term a period later."""
        e = jnp.clip(error, -self.error_max, self.error_max)
        new = jnp.clip(integral + self.ki * e * dt, -self.integral_max, self.integral_max)
        return self.kp * e + new + self.kd * jnp.clip(rate, -self.rate_max, self.rate_max), new


class SurgeGains(eqx.Module):
    """The loops of the source: tether length, elevation, azimuth, surge speed, attitude (roll, pitch, yaw)."""

    length: Loop = Loop(45.0, 9.0, 19.5, 2.0, jnp.inf, 10.0)
    elevation: Loop = Loop(9.6, 1.6, 5.6, 0.524, 7.0, 2.0)
    azimuth: Loop = Loop(9.6, 1.6, 5.6, 0.175, 7.0, 2.0)
    surge: Loop = Loop(25.0, 12.0, 0.0, jnp.inf, jnp.inf, 10.0)
    attitude: Loop = Loop((20.0, 20.0, 30.0), (0.4, 0.4, 0.6), (10.0, 10.0, 15.0), jnp.inf, jnp.inf, (0.26, 0.26, 0.79))


class TowedBuoy(eqx.Module):
    """What the controller believes about the buoy and the tether.

    ``body``: static index; ``length`` m of the tether; ``hook_B`` (3,) m where it is hooked, or None at the reference point; ``mass`` kg
    with the surge added mass; ``friction_length`` m and ``friction_area`` m^2 of the hull at rest; ``density``, ``viscosity`` of the water.
    """

    body: int = eqx.field(static=True)
    length: Array | float
    mass: Array | float
    friction_length: Array | float
    friction_area: Array | float
    hook_B: Array | None = None
    density: Array | float = 1000.0
    viscosity: Array | float = 1.787e-6

    def drag_coefficient(self, speed: Array) -> Array:
        """Friction over speed [N s/m] at a speed [m/s]."""
        return 0.5 * self.density * friction_coefficient(speed, self.friction_length, self.viscosity) * self.friction_area * jnp.abs(speed)


class Tow(eqx.Module):
    """The tether in polar coordinates, and the buoy, as scalars: what both laws start from."""

    r: Array
    al: Array
    ph: Array
    dr: Array
    dal: Array
    dph: Array
    e_r: Vec3
    e_al: Vec3
    e_ph: Vec3
    sin_al: Array
    cos_al: Array
    psi: Array
    nu: tuple[Array, Array]
    p_b: Vec3
    a_b: Vec3
    turning: Array
    """al'^2 + cos^2(al) ph'^2."""
    along: Array
    """cos(al) cos(ph - psi), at least 0.2 in size."""
    across: Array
    """cos(al) sin(ph - psi)."""


class SurgeMemory(eqx.Module):
    """Filters (chains), integral terms and logic of the law."""

    started: Array
    speed: Array
    azimuth: Array
    length: Array
    height: Array
    climb: Array
    elevation: Array
    taut: Array
    mode: Array
    integral: Array
    attitude: Array
    active: Array
    turns: Array
    buoy: Array
    uav: Array
    water: Array


LOGGED = ("surge_reference", "surge_error", "elevation_reference", "elevation_error", "azimuth_reference", "azimuth_error", "pulling")
"""What the controller adds to its commands for logs and metrics: m/s, rad, and 1 while pulling."""


class SurgeControl(AbstractController):
    """The law of the source for one UAV.

    Attributes:
        model: the UAV; one vehicle.
        buoy: what it tows.
        period: s between control ticks.
        gains: see :class:`SurgeGains`.
        slack_length: m, tether length (distance) that is kept while not towing; ``shortest`` m, below which towing stops.
        switch_on, switch_off: m/s; towing begins when the buoy is slower than the wanted speed by more than the first, and ends when it
            is faster by more than the second.
        speed_time, azimuth_time, length_time, height_time, elevation_time: s, of the reference filters (3, 3, 4, 2 and 3 of
            them); the UAV's height goes with the length.
        flag_time: s, of the filters of the taut flag and of the mode.
        acceleration_time: s, of the derivatives of measured velocities.
        tension_least: N. ``surge_limit``: m/s^2, bound of the surge feedback.
        thrust_max: N; ``torque_max`` (3,) N m; ``feedforward_max`` rad/s^2, bound of Theta_d''.
        share: part of the towing force that this UAV takes, of several.
        taut_margin: m, how much shorter than the tether the distance may be for it to count as taut.
        log: static; the command of this name holds :data:`LOGGED`.
    """

    model: VehicleModel
    buoy: TowedBuoy
    period: Array | float
    thrust_max: Array | float
    torque_max: Array
    gains: SurgeGains = SurgeGains()
    slack_length: Array | float = 6.7
    shortest: Array | float = 4.81
    switch_on: Array | float = 0.75
    switch_off: Array | float = 1.0
    speed_time: Array | float = 3.0
    azimuth_time: Array | float = 8.0
    length_time: Array | float = 0.5
    height_time: Array | float = 0.05
    elevation_time: Array | float = 0.05
    flag_time: Array | float = 0.1
    attitude_times: tuple = (1 / 40, 1 / 60)
    acceleration_time: Array | float = 0.02
    tension_least: Array | float = 5.0
    surge_limit: Array | float = 22.2
    feedforward_max: Array | float = 60.0
    share: Array | float = 1.0
    taut_margin: Array | float = 0.01
    log: str = eqx.field(static=True, default="surge")

    def __check_init__(self):
        if len(self.model.bodies) != 1:
            raise ValueError(f"surge control of {len(self.model.bodies)} vehicles: expected one; give each its own")

    def init(self) -> SurgeMemory:
        z = lambda *shape: jnp.zeros(shape, self.model.mass.dtype)  # noqa: E731
        off = jnp.zeros((), bool)
        return SurgeMemory(off, z(3), z(3), z(4), z(2), z(4), z(3), z(2), z(2), z(4), z(3, 3), off, z(), z(2, 3), z(3, 3), z(1))

    # -- measurement ------------------------------------------------------------------------------------------------------------------

    def _tow(self, measurement: Measurement, memory: SurgeMemory) -> tuple[Tow, SurgeMemory, Vec3, Mat3, Vec3]:
        """The tether and the buoy, the filtered accelerations, and velocity, attitude and rate of the UAV."""
        b, body, uav = measurement.bodies, self.buoy.body, self.model.bodies[0]
        p_b, v_b, R_b, w_b = Vec3.of(b.p_WB[body]), Vec3.of(b.v_W[body]), Quat.of(b.q_WB[body]).matrix(), Vec3.of(b.w_B[body])
        p_u, v_u, R_u = Vec3.of(b.p_WB[uav]), Vec3.of(b.v_W[uav]), Quat.of(b.q_WB[uav]).matrix()
        hook, v_h = p_b, v_b
        if self.buoy.hook_B is not None:
            at = Vec3.of(self.buoy.hook_B)
            hook, v_h = p_b + R_b @ at, v_b + R_b @ w_b.cross(at)
        d, v = p_u - hook, v_u - v_h
        flat = jnp.maximum(safe_sqrt(d.x * d.x + d.y * d.y), 1e-3)
        r = safe_sqrt(flat * flat + d.z * d.z)
        sa, ca, cp, sp = d.z / r, flat / r, d.x / flat, d.y / flat
        ph = jnp.arctan2(d.y, jnp.where(flat > 1e-3, d.x, 1.0))
        ph = ph + 2 * jnp.pi * jnp.round((memory.turns - ph) / (2 * jnp.pi))
        e_r, e_al, e_ph = Vec3(ca * cp, ca * sp, sa), Vec3(-sa * cp, -sa * sp, ca), Vec3(-sp, cp, 0.0 * cp)
        dal, dph = e_al.dot(v) / r, e_ph.dot(v) / flat
        psi = yaw_of(R_b)
        c, s = jnp.cos(psi), jnp.sin(psi)
        buoy = self._differentiated(v_b, memory.buoy, memory.started)
        thrust = self._thrust(measurement, R_u).array()
        known = jnp.where(memory.started, memory.uav[2], thrust)
        smooth = known + share(self.period, self.acceleration_time) * (thrust - known)
        uav_state = jnp.concatenate([self._differentiated(v_u, memory.uav[:2], memory.started), smooth[None]])
        along, across = ca * (cp * c + sp * s), ca * (sp * c - cp * s)
        tow = Tow(
            r, jnp.arctan2(d.z, flat), ph, e_r.dot(v), dal, dph, e_r, e_al, e_ph, sa, ca, psi,
            (c * v_b.x + s * v_b.y, c * v_b.y - s * v_b.x), p_b, Vec3.of(buoy[1]), dal**2 + ca**2 * dph**2,
            jnp.where(jnp.abs(along) < 0.2, jnp.where(along < 0, -0.2, 0.2), along), across,
        )  # fmt: skip
        memory = eqx.tree_at(lambda m: (m.turns, m.buoy, m.uav), memory, (ph, buoy, uav_state))
        return tow, memory, v_u, R_u, Vec3.of(b.w_B[uav])

    def _differentiated(self, v: Vec3, state: Array, started: Array) -> Array:
        """(2, 3): the velocity, and its filtered rate."""
        now = v.array()
        rate = jnp.where(started, (now - state[0]) / self.period, 0.0)
        a = share(self.period, self.acceleration_time)
        return jnp.stack([now, state[1] + a * (rate - state[1])])

    # -- the law ----------------------------------------------------------------------------------------------------------------------

    def _pull(self, tow: Tow, memory: SurgeMemory, error: Array, rate: Array, speed: Array) -> tuple[Array, Array, Array]:
        """u_r while pulling, the integral term of the surge loop and the estimate of the water's force (1,) a period later."""
        m, g, c_p = self.model.mass[0], self.model.gravity, memory.taut[-1]
        loop = self.gains.surge
        fb, integral = loop(memory.integral[3], error, 0.0, self.period)
        fb = jnp.clip(fb * (0.5 + 0.5 * c_p) * jnp.clip(speed, 1.0, 5.0), -self.surge_limit, self.surge_limit)
        slow = jnp.maximum(speed, 0.1)
        least = self.buoy.drag_coefficient(slow) * jnp.abs(slow - tow.nu[0]) / jnp.maximum(tow.cos_al, 0.2)
        c, s = jnp.cos(tow.psi), jnp.sin(tow.psi)
        sway_rate = c * tow.a_b.y - s * tow.a_b.x
        u = self.share * m * tow.along * (rate - fb)
        u = u - c_p * m * (self.buoy.length * tow.turning - tow.across * sway_rate - tow.sin_al * tow.a_b.z)
        u = u + m * g * tow.sin_al + jnp.maximum(self.tension_least, self.share * least)
        return jnp.where(u < 8.0, 3.0 * jnp.tanh((u - 8.0) / 3.0) + 8.0, u), integral, memory.water

    def __call__(self, t: Array, measurement: Measurement, reference: AbstractSurgePlan, memory: SurgeMemory):
        """Rotor speeds that tow as ``reference`` says."""
        tow, memory, _, R_u, w_B = self._tow(measurement, memory)
        plan = reference(t, tow.p_b, tow.ph)
        memory = self._begun(tow, plan.azimuth, R_u, memory)
        dt, L, m, g = self.period, self.buoy.length, self.model.mass[0], self.model.gravity

        # Logic and references.
        taut = tow.r >= L - self.taut_margin
        nu_x = tow.nu[0]
        wanted = plan.speed > 0
        on = memory.active | (nu_x <= plan.speed - self.switch_on)
        active = wanted & on & (nu_x < plan.speed + self.switch_off) & (tow.r > self.shortest)
        released = active & (L - tow.r < 0.05)
        speed = low_pass(memory.speed, jnp.where(released, plan.speed, 0.0), dt, self.speed_time)
        length = low_pass(memory.length, jnp.where(active, L, self.slack_length), dt, self.length_time)
        azimuth = low_pass(memory.azimuth, plan.azimuth, dt, self.azimuth_time)
        height = low_pass(memory.height, tow.p_b.z, dt, self.height_time)
        climb = low_pass(memory.climb, plan.height, dt, self.length_time)
        sine = (climb[-1] - height[-1]) / jnp.maximum(length[-1], 0.7 * L)
        elevation = low_pass(memory.elevation, jnp.arcsin(jnp.clip(sine, -0.95, 0.95)), dt, self.elevation_time)
        flag = low_pass(memory.taut, jnp.where(taut, 1.0, 0.0), dt, self.flag_time)
        pulling = active & (taut | (tow.r >= L - 0.1))
        mode = low_pass(memory.mode, jnp.where(pulling, 1.0, 0.0), dt, self.flag_time)
        memory = eqx.tree_at(
            lambda k: (k.speed, k.length, k.azimuth, k.height, k.climb, k.elevation, k.taut, k.mode, k.active), memory,
            (speed, length, azimuth, height, climb, elevation, flag, mode, active),
        )  # fmt: skip

        # Wanted force on the UAV.
        k, I = self.gains, memory.integral  # noqa: E741
        e_r, e_al, e_ph = tow.r - length[-1], tow.al - elevation[-1], tow.ph - azimuth[-1]
        fb_r, I_r = k.length(I[0], e_r, tow.dr - slope(length, self.length_time), dt)
        fb_al, I_al = k.elevation(I[1], e_al, tow.dal - slope(elevation, self.elevation_time), dt)
        fb_ph, I_ph = k.azimuth(I[2], e_ph, tow.dph - slope(azimuth, self.azimuth_time), dt)
        a = tow.a_b
        u_al = m * tow.r * (curvature(elevation, self.elevation_time) - fb_al)
        u_al = u_al + m * (2 * tow.dr * tow.dal + tow.r * tow.sin_al * tow.cos_al * tow.dph**2 + tow.e_al.dot(a) + g * tow.cos_al)
        u_ph = m * tow.r * tow.cos_al * (curvature(azimuth, self.azimuth_time) - fb_ph)
        u_ph = u_ph + m * (2 * tow.dr * tow.dph * tow.cos_al - 2 * tow.r * tow.dal * tow.dph * tow.sin_al + tow.e_ph.dot(a))
        slack = m * (curvature(length, self.length_time) - fb_r) - m * (tow.r * tow.turning - tow.e_r.dot(a) - g * tow.sin_al)
        slack = jnp.maximum(slack, 0.35 * m * g)
        surge_error = nu_x - speed[-1]
        pull, I_nu, water = self._pull(tow, memory, surge_error, slope(speed, self.speed_time), speed[-1])
        u_r = mode[-1] * pull + (1.0 - mode[-1]) * slack
        new = jnp.stack([jnp.where(pulling, I[0], I_r), I_al, I_ph, jnp.where(pulling, I_nu, I[3])])
        u_al, u_ph = jnp.clip(u_al, -2 * m * g, 5 * m * g), jnp.clip(u_ph, -0.2 * m * g, 0.2 * m * g)
        u = u_r * tow.e_r + u_al * tow.e_al + u_ph * tow.e_ph
        u = Vec3(u.x, u.y, jnp.maximum(u.z, 0.5 * m * g))

        command, attitude = self._attitude(u, tow.ph, R_u, w_B, memory)
        memory = eqx.tree_at(lambda k: (k.integral, k.attitude, k.water), memory, (new, attitude, water))
        log = jnp.stack([speed[-1], surge_error, elevation[-1], e_al, azimuth[-1], e_ph, mode[-1]])
        return {**command, self.log: log}, memory

    def _begun(self, tow: Tow, azimuth: Array, R_u: Mat3, memory: SurgeMemory) -> SurgeMemory:
        """At the first tick the filters start from what is measured."""
        full = lambda old, value: jnp.where(memory.started, old, jnp.full_like(old, 1.0) * value)  # noqa: E731
        angles = jnp.stack((*_roll_pitch(R_u.z), tow.ph))
        attitude = jnp.where(memory.started, memory.attitude, jnp.stack([0.0 * angles, angles, 0.0 * angles]))
        yes = jnp.ones((), bool)
        z_b = tow.p_b.z
        begun = (
            yes, full(memory.azimuth, tow.ph), full(memory.length, tow.r), full(memory.height, z_b),
            full(memory.climb, z_b + tow.r * tow.sin_al), full(memory.elevation, tow.al), attitude,
        )  # fmt: skip
        return eqx.tree_at(lambda m: (m.started, m.azimuth, m.length, m.height, m.climb, m.elevation, m.attitude), memory, begun)

    def _thrust(self, measurement: Measurement, R_u: Mat3) -> Vec3:
        """Force of the rotors on the UAV now [N, world axes]; only where a law needs it."""
        return Vec3(*(jnp.zeros(()) for _ in range(3)))

    def _attitude(self, u: Vec3, yaw: Array, R_u: Mat3, w_B: Vec3, memory: SurgeMemory):
        """Rotor speeds, and the attitude loop's memory: integral terms, filtered angles, filtered rates (3, 3)."""
        k, dt = self.gains.attitude, self.period
        c, s = jnp.cos(yaw), jnp.sin(yaw)
        size = jnp.maximum(u.norm(), 1e-6)
        roll = jnp.arctan((u.x * s - u.y * c) / u.z)
        pitch = jnp.arcsin(jnp.clip((u.x * c + u.y * s) / size, -0.999, 0.999))
        wanted = jnp.stack([*(QUARTER * jnp.tanh(x / QUARTER) for x in (roll, pitch)), yaw])
        integral, before, rate_before = memory.attitude
        first, second = self.attitude_times
        rate = (wanted - before) / first
        filtered = before + share(dt, first) * (wanted - before)
        bend = (rate - rate_before) / second
        rate_filtered = rate_before + share(dt, second) * (rate - rate_before)
        # Euler angles and their rates of Rz Rx Ry.
        phi, theta = _roll_pitch(R_u.z)
        psi = yaw_of(R_u)
        psi = psi + 2 * jnp.pi * jnp.round((yaw - psi) / (2 * jnp.pi))
        c_th, s_th, c_ph = jnp.cos(theta), jnp.sin(theta), jnp.maximum(jnp.cos(phi), 0.2)
        spin = (c_th * w_B.z - s_th * w_B.x) / c_ph
        rates = jnp.stack([c_th * w_B.x + s_th * w_B.z, w_B.y - spin * jnp.sin(phi), spin])
        error = jnp.stack([phi, theta, psi]) - wanted
        kp, ki, kd, most = (jnp.asarray(x) for x in (k.kp, k.ki, k.kd, k.integral_max))
        integral = jnp.clip(integral + ki * error * dt, -most, most)
        angular = -kp * error - integral - kd * (rates - rate_filtered) + jnp.clip(bend, -self.feedforward_max, self.feedforward_max)
        lane = lambda v: v.map(lambda x: x[None])  # noqa: E731
        w = lane(w_B)
        moment = self.model.moment(w, lane(Vec3.of(angular)))
        moment = Vec3(*(jnp.clip(x, -self.torque_max[i], self.torque_max[i]) for i, x in enumerate(moment.components())))
        zero = jnp.zeros(1, size.dtype)
        thrust = jnp.minimum(size, self.thrust_max)[None]
        allocated = self.model.allocation(Vec3(zero, zero, thrust), moment)
        return self.model.command(allocated), jnp.stack([integral, filtered, rate_filtered])


def _roll_pitch(down_row: Vec3) -> tuple[Array, Array]:
    """Roll and pitch of ``Rz Rx Ry`` from the last row of the matrix."""
    return jnp.arcsin(jnp.clip(down_row.y, -0.999, 0.999)), jnp.arctan2(-down_row.x, down_row.z)


__all__ = ["LOGGED", "Loop", "SurgeControl", "SurgeGains", "SurgeMemory", "TowedBuoy"]
