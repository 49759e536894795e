"""The jets that rotors send out and meet: from thrusts to :class:`~skycrane.environment.jets.Jets`, and their flow at hubs."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from skycrane.core.kinematics import Kinematics
from skycrane.elements.rotor_effects import AxialFlow
from skycrane.environment.jets import SPREAD, Jets
from skycrane.math.components import Vec3, safe_sqrt, take


class Jet(eqx.Module):
    """The jets of rotors as others feel them.

    ``radius`` (k, n) m of the rotors; ``spared`` (static): bodies whose surfaces take the jets' momentum, so that their drag does not;
    ``felt`` (static): whether these rotors feel the jets of others, and ``loading_slope`` = sigma a by which those without a model of
    axial flow of their own do (:class:`~skycrane.elements.rotor_effects.AxialFlow`); ``spread``: how fast the jets widen.
    """

    radius: Array
    spared: tuple[int, ...] = eqx.field(static=True, default=())
    felt: bool = eqx.field(static=True, default=True)
    loading_slope: Array | float = 0.5
    spread: Array | float = SPREAD

    def sent(self, t, kin: Kinematics, bodies: tuple[int, ...], position_B: Vec3, axis_B: Vec3, thrust: Array) -> Jets:
        """The jets of rotors on ``bodies`` with hubs and axes (k, n) and thrusts (k, n) N; a rotor that brakes sends none."""
        thrust = jnp.maximum(thrust, 0.0)
        p_W, v_W, R_WB, w_B = take((kin.p_WB, kin.v_W, kin.R_WB, kin.w_B), bodies)
        air = kin.environment.air
        density = _beside(jnp.asarray(air.density_at(p_W)))
        radius = jnp.broadcast_to(self.radius, thrust.shape)
        speed = safe_sqrt(2.0 * thrust / (jnp.pi * density * radius * radius))  # 2 v_i
        drift_W, R_WB, w_B, p_W = jax.tree.map(_beside, (air.velocity_W(t, p_W) - v_W, R_WB, w_B, p_W))
        leaving_W = drift_W - R_WB @ (w_B.cross(position_B) + axis_B * speed)

        def flat(x):
            return jnp.broadcast_to(x, thrust.shape).reshape(-1)

        origin_W, direction_W = (p_W + R_WB @ position_B).map(flat), leaving_W.unit().map(flat)
        sources = tuple(b for b in bodies for _ in range(thrust.shape[1]))
        return Jets(sources, self.spared, origin_W, direction_W, flat(thrust), flat(radius), flat(density), self.spread)

    def met_B(self, kin: Kinematics, bodies: tuple[int, ...], position_B: Vec3) -> Vec3 | None:
        """Velocity [m/s] of other bodies' jets at the hubs (k, n), body axes; None where none are felt."""
        if not self.felt or not kin.jets:
            return None
        p_W, R_WB = jax.tree.map(_beside, take((kin.p_WB, kin.R_WB), bodies))
        hub_W = p_W + R_WB @ position_B
        first, *others = (jets.velocity_W(hub_W, bodies) for jets in kin.jets)
        return R_WB.T @ sum(others, start=first)

    def slowed(self, kin: Kinematics, bodies: tuple[int, ...], axis_B: Vec3, met_B: Vec3, thrust, torque, speed) -> tuple[Array, Array]:
        """Thrust and torque of rotors that have no model of axial flow themselves, in jets ``met_B``."""
        density = _beside(jnp.asarray(kin.environment.air.density_at(take(kin.p_WB, bodies))))
        radius = jnp.broadcast_to(self.radius, speed.shape)
        return AxialFlow(self.loading_slope).correct(thrust, torque, speed, -axis_B.dot(met_B), density, radius)[:2]


def _beside(x: Array) -> Array:
    """A number of each body, for all its rotors."""
    return x[..., None] if x.ndim else x
