"""The buoy of Kourani and Daher: a box that heaves, surges, sways and yaws, with roll and pitch taken from the slope of the sea.

    h_im = clip(zeta - z + h/2, 0, h),    F = rho g l w h_im e_z - R D R^T (v - v_w)
    D_ii = 1/2 rho C_S (2 l h_im + l w) |v_i| + b_ii,    C_S = 0.075/(log10 Re - 2)^2,    Re = max(|v_i| l/nu, 5e4)
    J psi'' = (moment of the tether) - b_r psi'

v relative to the water, in body axes.  Roll is ``atan`` of the slope across the buoy and pitch ``-atan`` of the slope along it, both within
0.15 rad; they are imposed after each step.  The added mass (``Bodies.added``) turns with them, and no terms follow from
its turning: as in the source.

Under ``source_friction`` C_S takes the world components of the velocity, as the source's program does.  :class:`SourceAzimuth` adds the
other error of its equations, see there.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.core.bodies import BodyState
from skycrane.core.constraint import assemble
from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.elements.buoyancy import FLOAT_OUTPUTS
from skycrane.elements.skin import friction_coefficient
from skycrane.environment.environment import Environment
from skycrane.math.components import Mat3, Quat, Vec3, take

STEEPEST = 0.15  # rad, of the slaved roll and pitch


def yaw_of(R_WB: Mat3) -> Array:
    """Yaw psi of ``R = Rz(psi) Rx(phi) Ry(theta)``."""
    return jnp.arctan2(-R_WB.x.y, R_WB.y.y)


def on_the_slope(yaw: Array, slope_x: Array, slope_y: Array) -> Quat:
    """Attitude ``Rz(yaw) Rx Ry`` of something that lies on a surface with these slopes along world x and y, within 0.15 rad."""
    c, s = jnp.cos(yaw), jnp.sin(yaw)
    roll = jnp.clip(jnp.arctan(c * slope_y - s * slope_x), -STEEPEST, STEEPEST)
    pitch = jnp.clip(-jnp.arctan(c * slope_x + s * slope_y), -STEEPEST, STEEPEST)
    (cz, cx, cy), (sz, sx, sy) = ([f(0.5 * a) for a in (yaw, roll, pitch)] for f in (jnp.cos, jnp.sin))
    # q = q_z(yaw) q_x(roll) q_y(pitch)
    return Quat(
        cz * cx * cy - sz * sx * sy, cz * sx * cy - sz * cx * sy, cz * cx * sy + sz * sx * cy, cz * sx * sy + sz * cx * cy,
    )  # fmt: skip


class SlavedBuoy(AbstractElement):
    """The buoy of the module on ``body`` (static) in ``environment.water``.

    Attributes:
        size: (3,) m: l, w, h; the reference point is the centre.
        damping: (3,) N s/m, b_ii of surge, sway and heave (radiation); ``yaw_damping`` N m s.
        source_friction: static, see the module.
    """

    body: int = eqx.field(static=True)
    size: Array
    damping: Array
    yaw_damping: Array | float
    source_friction: bool = eqx.field(static=True, default=False)

    outputs_info: ClassVar[dict[str, Output]] = FLOAT_OUTPUTS

    def _float(self, t, kin: Kinematics):
        water = kin.environment.water
        if water is None:
            raise ValueError("SlavedBuoy needs environment.water")
        p_WB = take(kin.p_WB, (self.body,))
        sea = water.motion(t, p_WB)
        height = self.size[2]
        return water, sea, jnp.clip(sea.level - p_WB.z + 0.5 * height, 0.0, height)

    def wrench(self, t, kin: Kinematics, memory, command):
        water, sea, wet = self._float(t, kin)
        length, width = self.size[0], self.size[1]
        R_WB, v_W, w_B = take((kin.R_WB, kin.v_W, kin.w_B), (self.body,))
        relative_W = v_W - sea.velocity_W
        relative_B = R_WB.T @ relative_W
        area = 2.0 * length * wet + length * width
        seen = relative_W if self.source_friction else relative_B

        def drag(v, u, b):
            return -(0.5 * water.density * area * friction_coefficient(u, length, water.viscosity) * jnp.abs(v) + b) * v

        force_B = Vec3(
            *(drag(v, u, self.damping[k]) for k, (v, u) in enumerate(zip(relative_B.components(), seen.components(), strict=True)))
        )
        force_W = R_WB @ force_B
        lift = water.density * kin.environment.gravity * length * width * wet
        zero = jnp.zeros_like(lift)
        total_W = Vec3(force_W.x, force_W.y, force_W.z + lift)
        return (Wrench((self.body,), total_W, Vec3(zero, zero, -self.yaw_damping * w_B.z)),), ()

    def imposed(self, t, bodies: BodyState, environment: Environment) -> BodyState:
        water, b = environment.water, self.body
        assert water is not None  # wrench has complained already
        q = Quat.of(bodies.q_WB[b : b + 1])
        p = bodies.p_WB[b : b + 1]
        _, slope_x, slope_y = water.tangent(t, p[:, 0], p[:, 1])
        slaved = on_the_slope(yaw_of(q.matrix()), slope_x, slope_y).array()
        turning = bodies.w_B[b : b + 1] * jnp.array([0.0, 0.0, 1.0], bodies.w_B.dtype)

        def replaced(all_: Array, one: Array) -> Array:
            return jnp.concatenate([all_[:b], one, all_[b + 1 :]])

        return BodyState(bodies.p_WB, replaced(bodies.q_WB, slaved), bodies.v_W, replaced(bodies.w_B, turning))

    def outputs(self, t, kin: Kinematics, memory, command):
        _, sea, wet = self._float(t, kin)
        velocity = Vec3(*(jnp.broadcast_to(v, (1,)) for v in sea.velocity_W.components())).array()[0]
        return {
            "immersed_volume": wet[0] * self.size[0] * self.size[1],
            "immersed_fraction": wet[0] / self.size[2],
            "water_level": sea.level[0],
            "water_velocity": velocity,
        }


class SourceAzimuth(AbstractElement):
    """An element's push on a tethered vehicle, with the error of Kourani and Daher's eq. (D17), for comparison with its records.

    There the azimuth of a taut tether is driven by ``L e_ph . F`` instead of ``L cos(al) e_ph . F``, F being the thrust.  The excess is a
    pair of forces ``+-(1/cos(al) - 1) (e_ph . F) e_ph`` on vehicle and buoy, while the tether is taut.

    ``pushing``: the element that makes F on ``vehicle``; ``buoy``, ``vehicle`` (static): the bodies; ``length`` m of the tether.
    """

    pushing: AbstractElement
    buoy: int = eqx.field(static=True)
    vehicle: int = eqx.field(static=True)
    length: Array | float

    def init(self) -> Any:
        return self.pushing.init()

    def wrench(self, t, kin: Kinematics, memory, command):
        wrenches, rate = self.pushing.wrench(t, kin, memory, command)
        force_W, _ = assemble(wrenches, kin.prepared.mass.shape[-1])
        push = take(force_W, (self.vehicle,))
        d = take(kin.p_WB, (self.vehicle,)) - take(kin.p_WB, (self.buoy,))
        level = Vec3(-d.y, d.x, 0.0 * d.z).unit()
        across = jnp.sqrt(d.x * d.x + d.y * d.y + 1e-12)
        taut = d.norm() >= self.length - 1e-6
        excess = jnp.where(taut, (d.norm() / across - 1.0) * level.dot(push), 0.0)
        return (*wrenches, Wrench((self.vehicle, self.buoy), _pair(excess * level), None)), rate

    def energy(self, t, kin, memory):
        return self.pushing.energy(t, kin, memory)

    def power(self, t, kin, memory, command, wrenches):
        return self.pushing.power(t, kin, memory, command, wrenches[:-1]) + wrenches[-1].power(kin)

    def rate_bound(self, prepared) -> float:
        return self.pushing.rate_bound(prepared)


def _pair(force_W: Vec3) -> Vec3:
    return force_W.map(lambda f: jnp.concatenate([f, -f], -1))
