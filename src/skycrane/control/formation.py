"""Formation control of a team that carries a load: the three loops of arXiv 2305.09175 (section 4).

With r, v of the n vehicles, r_l, v_l of the load and r_d, v_d where it should be (world axes, z up):

    navigation   r_L = r_l + K_r (r_d - r_l) + K_i int(r_d - r_l),   v_L = v_l + K_v (v_d - v_l)               (13)-(17)
    formation    E = (Lap + B)(r - H) - B r_L,   E_v = (Lap + B) v - B v_L                                     (25), (26)
                 S = Lambda E + E_v                                                                            (29)
                 U = -(Lap + B)^-1 { Lambda E_v + [(Lap + B) K + M] sat(S / phi) }                             (31)
    attitude     tau = k_p (Theta_d - Theta) - k_d w + k_i int(Theta_d - Theta)                                (35)-(37)

Lap is the Laplacian of the communication graph, B the diagonal of who sees the leader point r_L, H the places relative to it (offset_i
plus the cable's height); ``sat(S/phi)`` is the boundary layer that stands for sgn.  The wanted force of vehicle i is ``m_i (U_i + g
e_z)`` with ``m_i = m_vehicle + m_cable + share_i m_load``, and the wanted roll and pitch follow from it with yaw 0,

    phi_d = -asin(F_y / |F|),   theta_d = atan2(F_x, F_z),

each limited to ``tilt_max``.  The seed maps with the vehicle's mass alone, which leaves the load to the sliding mode; ``carried = 0``
does so.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.control.team import Agents
from skycrane.core.controller import AbstractController, Measurement
from skycrane.math.components import Mat3, Scalar, Vec3


class FormationGains(eqx.Module):
    """``position`` K_r, ``integral`` K_i [1/s], ``velocity`` K_v; ``surface`` Lambda [1/s]; ``bound`` K and ``reach`` M [m/s^2];
    ``layer`` phi [m/s]: (3,) along world axes.  ``attitude`` k_p [N m/rad], ``rate`` k_d [N m s/rad], ``attitude_integral`` k_i [N m/(rad
    s)]: (n, 3) body axes."""

    position: Array
    integral: Array
    velocity: Array
    surface: Array
    bound: Array
    reach: Array
    layer: Array
    attitude: Array
    rate: Array
    attitude_integral: Array


class FormationMemory(eqx.Module):
    """Time of the last tick [s], integral of the load's error (3,) m s, of the attitude errors (n, 3) rad s."""

    time: Array
    position_integral: Array
    attitude_integral: Array


class FormationControl(AbstractController):
    """Sliding-mode formation control.

    Attributes:
        agents: the team's n vehicles.
        load: static, the load's body index.
        graph: (n, n) Lap + B, and ``graph_inverse`` its inverse; ``pinning`` (n,) diagonal of B.
        offset_W: (n, 3) m, place of each vehicle from the leader point, world axes.
        carried: (n,) kg that each vehicle is taken to carry besides itself.
        gains: see :class:`FormationGains`.
        tilt_max: rad.
        integral_max: m, largest shift of the leader point by the integral.
    """

    agents: Agents
    load: int = eqx.field(static=True)
    graph: Array
    graph_inverse: Array
    pinning: Array
    offset_W: Array
    carried: Array
    gains: FormationGains
    tilt_max: Array | float = 0.5235987755982988
    integral_max: Array | float = 2.0

    def init(self) -> FormationMemory:
        n = self.offset_W.shape[0]
        dtype = self.offset_W.dtype
        return FormationMemory(jnp.asarray(-1.0, dtype), jnp.zeros(3, dtype), jnp.zeros((n, 3), dtype))

    def __call__(self, t: Array, measurement: Measurement, reference: Any, memory: FormationMemory):
        """Rotor speeds of all vehicles; ``reference(t)`` is where the load should be."""
        g, target = self.gains, reference(t)
        dt = jnp.where(memory.time >= 0, t - memory.time, 0.0)
        state, b = self.agents.read(measurement), measurement.bodies
        r_l, v_l = b.p_WB[self.load], b.v_W[self.load]
        error = target.p_W[0] - r_l
        most = self.integral_max / jnp.maximum(g.integral, 1e-9)
        integral = jnp.clip(memory.position_integral + dt * error, -most, most)
        r_L = r_l + g.position * error + g.integral * integral
        v_L = v_l + g.velocity * (target.v_W[0] - v_l)
        U = self._formation(state.p_WB, state.v_W, r_L, v_L)
        mass, gravity = self.agents.mass + self.carried, self.agents.groups[0].gravity
        force_W, angles = self._tilted(Vec3(U.x, U.y, U.z + gravity) * mass)
        off = angles - _euler(state.R_WB)
        attitude_integral = memory.attitude_integral + dt * off.array()
        moment_B = (
            Vec3.of(g.attitude).times(off) - Vec3.of(g.rate).times(state.w_B)
            + Vec3.of(g.attitude_integral).times(Vec3.of(attitude_integral))
        )  # fmt: skip
        new = FormationMemory(jnp.asarray(t, memory.time.dtype), integral, attitude_integral)
        return self._command(state, force_W, moment_B), new

    def _formation(self, r: Vec3, v: Vec3, r_L: Array, v_L: Array) -> Vec3:
        """Wanted accelerations U (n,), eq. (31) with the boundary layer."""
        out, ones = [], self.graph.sum(-1)
        for axis, (p, rate, H) in enumerate(zip(r.components(), v.components(), Vec3.of(self.offset_W).components(), strict=True)):
            g = self.gains
            E = _times(self.graph, p - H) - self.pinning * r_L[axis]
            E_v = _times(self.graph, rate) - self.pinning * v_L[axis]
            S = g.surface[axis] * E + E_v
            sat = jnp.clip(S / g.layer[axis], -1.0, 1.0)
            drive = g.surface[axis] * E_v + (ones * g.bound[axis] + g.reach[axis]) * sat
            out.append(-_times(self.graph_inverse, drive))
        return Vec3(*out)

    def _tilted(self, force_W: Vec3) -> tuple[Vec3, Vec3]:
        """The force, and the roll, pitch and yaw that give it, within the tilt limit."""
        size = jnp.maximum(force_W.norm(), 1e-6)
        roll = -jnp.arcsin(jnp.clip(force_W.y / size, -1.0 + 1e-9, 1.0 - 1e-9))
        # Below the horizon the angle is that of a level wish: no vehicle turns over to push downwards.
        pitch = jnp.arctan2(force_W.x, jnp.maximum(force_W.z, 1e-3 * size))
        level = jnp.concatenate([jnp.full(len(m.bodies), flat) for m, flat in zip(self.agents.groups, self.agents.level, strict=True)])
        roll, pitch = (jnp.where(level, 0.0, jnp.clip(angle, -self.tilt_max, self.tilt_max)) for angle in (roll, pitch))
        return force_W, Vec3(roll, pitch, jnp.zeros_like(roll))

    def _command(self, state, force_W: Vec3, moment_B: Vec3) -> dict[str, Array]:
        """The seed gives the size of the wish as thrust, whatever the attitude is by now; level vehicles push as they are told."""
        n, zero = force_W.norm(), jnp.zeros_like(force_W.z)
        out: dict[str, Array] = {}
        for model, level, (R_WB, f_W, size, none, m_B) in zip(
            self.agents.groups, self.agents.level, self.agents.split((state.R_WB, force_W, n, zero, moment_B)), strict=True
        ):
            out.update(model.command(model.allocation(R_WB.T @ f_W if level else Vec3(none, none, size), m_B)))
        return out


def _times(matrix: Array, x: Scalar) -> Array:
    return (matrix * x).sum(-1)


def _euler(R_WB: Mat3) -> Vec3:
    """Roll, pitch, yaw of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    return Vec3(
        jnp.arctan2(R_WB.z.y, R_WB.z.z),
        -jnp.arcsin(jnp.clip(R_WB.z.x, -1.0 + 1e-12, 1.0 - 1e-12)),
        jnp.arctan2(R_WB.y.x, R_WB.x.x),
    )
