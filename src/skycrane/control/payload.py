"""Geometric control of the pose of a load that hangs on n cables, with an optimal distribution of the tensions.

After T. Lee, "Geometric control of quadrotor UAVs transporting a cable-suspended rigid body", IEEE Trans. Control Syst. Technol. 26(1),
2018, written for z up and with e_i the direction from the load's attachment to vehicle i.  Wanted force and moment on the load (e_R of
the attitude, c its centre of mass):

    F = m (a_d - k_x e_x - k_v e_v - k_i int e_x + g e_z),   M = J (-k_R e_R - k_w e_w - k_I int e_R) + w x J w

They are shared out as pulls f_i (vectors) with ``sum f_i = F``, ``sum (d_i - c) x R^T f_i = M``: of all solutions the one nearest to a
reference pull (each cable's share of the weight, leaning outwards far enough to keep the vehicles apart), that is f = f_0 + P^+ (w - P
f_0), and, where a cable would pull less upwards than ``tension_min``, moved within the null space of P by alternating projections.  With
n = f/|f| the wanted direction of a cable, its rate w_i and the mass m_i of vehicle and cable, the vehicle's force is

    u_i = (f_i . e_i - M_i k_s s_i') e_i + m_i (g e_z + a_i) - m_i l |w_i|^2 e_i + m_i l (k_q e_i x n_i - k_u w_i) x e_i,   a_i = F/m - g
    e_z

of which the part along the cable holds the tension and the part across it turns the cable.  s_i' is the rate at which the cable is
stretched and M_i the mass of vehicle and share of the load: feedback of the load's velocity alone acts through the cable's spring and
would excite it; with k_s = k_v the velocity that is fed back is that of the vehicle itself, which the force acts on.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.control.attitude import attitude_error, limit_tilt
from skycrane.control.team import Agents, load_shares
from skycrane.core.controller import AbstractController, Measurement
from skycrane.math.components import Mat3, Quat, Vec3

TAUT_TURN, SLACK_TURN = 6.0, 1.5  # m/s^2, largest sideways acceleration for turning a cable
PROJECTIONS = 6  # alternating projections; two or three suffice where the bound is active at all


class PayloadGains(eqx.Module):
    """Of the load: ``position`` k_x [1/s^2], ``velocity`` k_v [1/s], ``integral`` k_i [1/s^3], ``attitude`` k_R [1/s^2], ``rate`` k_w
    [1/s], ``attitude_integral`` k_I [1/s^3], each (3,); of the cables ``direction`` k_q [1/s^2], ``swing`` k_u [1/s] and ``stretch`` k_s
    [1/s]; of the vehicles' attitude ``vehicle_attitude`` [1/s^2] and ``vehicle_rate`` [1/s], (n, 3)."""

    position: Array
    velocity: Array
    integral: Array
    attitude: Array
    rate: Array
    attitude_integral: Array
    direction: Array
    swing: Array
    stretch: Array
    vehicle_attitude: Array
    vehicle_rate: Array


class PayloadMemory(eqx.Module):
    """Time of the last tick [s], integrals of the load's position error (3,) m s and attitude error (3,) rad s."""

    time: Array
    position_integral: Array
    attitude_integral: Array


class PayloadControl(AbstractController):
    """Pose control of a suspended load.

    Attributes:
        agents: the n vehicles; ``load`` (static) the load's body index.
        attachment_B: (n, 3) m, from the load's reference point; ``com_B`` (3,) m.
        mass: kg, and ``inertia_B`` (3, 3) kg m^2 of the load with what it carries.
        cable_length: (n,) m; ``cable_mass`` (n,) kg.
        sharing: (3 n, 6) pseudo-inverse P^+ in load axes; ``map`` (6, 3 n) P.
        reference_pull: (n, 3) N, f_0 in world axes.
        carrying: (n,), 1, and 0 for a cable that has been let go.
        tighten_speed: m/s, about as fast as a slack cable is tightened.
        tension_min: N, least upward pull of a cable.
        gains: see :class:`PayloadGains`; ``tilt_max`` rad; ``integral_max`` m/s^2 and rad/s^2.
    """

    agents: Agents
    load: int = eqx.field(static=True)
    attachment_B: Array
    com_B: Array
    mass: Array
    inertia_B: Array
    cable_length: Array
    cable_mass: Array
    sharing: Array
    map: Array
    reference_pull: Array
    gains: PayloadGains
    carrying: Array
    tighten_speed: Array | float = 0.3
    tension_min: Array | float = 0.5
    tilt_max: Array | float = 0.6
    integral_max: Array | float = 2.0

    def init(self) -> PayloadMemory:
        dtype = self.attachment_B.dtype
        return PayloadMemory(jnp.asarray(-1.0, dtype), jnp.zeros(3, dtype), jnp.zeros(3, dtype))

    def __call__(self, t: Array, measurement: Measurement, reference: Any, memory: PayloadMemory):
        """Rotor speeds of all vehicles; ``reference(t)`` is the wanted pose of the load."""
        g, target, b = self.gains, reference(t), measurement.bodies
        gravity = self.agents.groups[0].gravity
        dt = jnp.where(memory.time >= 0, t - memory.time, 0.0)
        R_WB = Quat.of(b.q_WB[self.load]).matrix()
        w_B, v_W, p_W = Vec3.of(b.w_B[self.load]), Vec3.of(b.v_W[self.load]), Vec3.of(b.p_WB[self.load])
        R_WD = Quat.of(target.q_WB[0]).matrix()
        e_x, e_v = p_W - Vec3.of(target.p_W[0]), v_W - Vec3.of(target.v_W[0])
        e_R, e_w = attitude_error(R_WB, R_WD), w_B - R_WB.T @ (R_WD @ Vec3.of(target.w_B[0]))
        position_integral = self._bounded(memory.position_integral + dt * e_x.array(), g.integral)
        attitude_integral = self._bounded(memory.attitude_integral + dt * e_R.array(), g.attitude_integral)
        a_W = (
            Vec3.of(target.a_W[0]) - Vec3.of(g.position).times(e_x) - Vec3.of(g.velocity).times(e_v)
            - Vec3.of(g.integral * position_integral)
        )  # fmt: skip
        alpha_B = -Vec3.of(g.attitude).times(e_R) - Vec3.of(g.rate).times(e_w) - Vec3.of(g.attitude_integral * attitude_integral)
        J = Mat3.of(self.inertia_B)
        pull_W = self._distribution(R_WB, Vec3(a_W.x, a_W.y, a_W.z + gravity) * self.mass, J @ alpha_B + w_B.cross(J @ w_B))
        state = self.agents.read(measurement)
        arm_W = R_WB @ Vec3.of(self.attachment_B)
        cable = state.p_WB - (p_W + arm_W)
        e = cable.unit()
        relative = state.v_W - (v_W + R_WB @ w_B.cross(Vec3.of(self.attachment_B)))
        lever = jnp.maximum(cable.norm(), 0.2 * self.cable_length)
        slack = cable.norm() < 0.998 * self.cable_length
        swing = e.cross(relative) / lever
        # A cable far from its direction, as before it is tight, is turned at a bounded pace.
        aim = e.cross(pull_W.unit()) * g.direction
        most = jnp.where(slack, SLACK_TURN, TAUT_TURN) / lever
        turn = aim * (most / jnp.maximum(aim.norm(), most)) - swing * g.swing
        m = self.agents.mass + self.cable_mass
        lift = Vec3(a_W.x * m, a_W.y * m, (a_W.z + gravity) * m)
        centripetal = m * lever * swing.dot(swing)
        along = self.carrying * jnp.maximum(pull_W.dot(e), 0.0)
        along = jnp.where(slack, jnp.minimum(along, m * g.stretch * self.tighten_speed), along)
        calm = (m + jnp.where(slack, 0.0, along / gravity)) * g.stretch * relative.dot(e)
        force_W = e * (along - centripetal - calm) + lift + turn.cross(e) * (m * lever)
        force_W = limit_tilt(force_W, self.tilt_max, 0.1 * m * gravity)
        moment_B = self.agents.moments(state, force_W, Vec3.of(g.vehicle_attitude), Vec3.of(g.vehicle_rate))
        new = PayloadMemory(jnp.asarray(t, memory.time.dtype), position_integral, attitude_integral)
        return self.agents.command(state, force_W, moment_B), new

    def _bounded(self, integral: Array, gain: Array) -> Array:
        most = self.integral_max / jnp.maximum(gain, 1e-9)
        return jnp.clip(integral, -most, most)

    def _distribution(self, R_WB: Mat3, force_W: Vec3, moment_B: Vec3) -> Vec3:
        """Pulls of the cables on the load (n,) N, world axes."""
        n = self.attachment_B.shape[0]
        wrench = jnp.concatenate([(R_WB.T @ force_W).array(), moment_B.array()])
        up_B = (R_WB.T @ Vec3(0.0, 0.0, 1.0)).array()

        def nearest(f_B: Array) -> Array:
            flat = f_B.reshape(-1)
            return f_B + (self.sharing * (wrench - (self.map * flat).sum(-1))).sum(-1).reshape(n, 3)

        f_B = nearest((R_WB.T @ Vec3.of(self.reference_pull)).array())
        for _ in range(PROJECTIONS):
            short = jnp.maximum(self.tension_min - (f_B * up_B).sum(-1), 0.0)
            f_B = nearest(f_B + short[:, None] * up_B)
        return R_WB @ Vec3.of(f_B)


def sharing_maps(attachment_B: np.ndarray, com_B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P (6, 3 n), from pulls in load axes to force and moment about the centre of mass, and its pseudo-inverse (3 n, 6)."""
    columns = []
    for x, y, z in np.asarray(attachment_B, dtype=float) - np.asarray(com_B, dtype=float):
        columns.append(np.vstack([np.eye(3), [[0, -z, y], [z, 0, -x], [-y, x, 0]]]))
    P = np.hstack(columns)
    return P, np.linalg.pinv(P, rcond=1e-9)


def reference_pulls(attachment_B: np.ndarray, com_B: np.ndarray, weight: float, cable_length: np.ndarray, clearance: float) -> np.ndarray:
    """Pulls (n, 3) N of a load at rest that lean outwards by the least angle that keeps the vehicles ``clearance`` [m] apart.

    Raises:
        ValueError: where no lean up to 45 degrees does.
    """
    shares = load_shares(attachment_B, com_B)
    out = np.asarray(attachment_B, dtype=float) - np.asarray(com_B, dtype=float)
    out[:, 2] = 0.0
    reach = np.linalg.norm(out, axis=1, keepdims=True)
    outward = out / np.where(reach > 1e-9, reach, 1.0)
    if len(out) > 1 and np.all(reach < 1e-9):
        angle = 2 * np.pi * np.arange(len(out)) / len(out)
        outward = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    for lean in np.radians(np.arange(0.0, 45.5, 0.5)):
        direction = np.tan(lean) * outward + [0.0, 0.0, 1.0]
        place = attachment_B + cable_length[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        apart = np.linalg.norm(place[:, None] - place[None], axis=-1)[np.triu_indices(len(place), 1)]
        if not apart.size or apart.min() >= clearance:
            return weight * np.maximum(shares, 0.05 / len(shares))[:, None] * direction
    raise ValueError(
        f"vehicles cannot be {clearance:g} m apart with cables that lean up to 45 degrees: give longer cables or less clearance"
    )
