"""Contact of points on bodies with compliant flat ground.

Hunt-Crossley normal force and regularised Coulomb friction (Hunt and Crossley 1975; parameters named as in Drake):

    N = k x max(0, 1 + d x'),   x = max(0, h_ground - z_point),      F_t = -mu N v_t / sqrt(|v_t|^2 + v_s^2)

Both are continuous at touch-down, so a Runge-Kutta step across it stays accurate; N never pulls.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3


class GroundContact(AbstractElement):
    """Contact points against ``environment.ground``.

    ``bodies`` (static), one entry for each point; ``points_B`` (m, 3) m from B; ``stiffness`` k [N/m]; ``dissipation`` d [s/m];
    ``friction`` mu; ``slip_speed`` v_s [m/s], below which friction acts like a damper.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    points_B: Array
    stiffness: Array | float = 5e3
    dissipation: Array | float = 0.5
    friction: Array | float = 0.8
    slip_speed: Array | float = 0.02

    outputs_info: ClassVar[dict[str, Output]] = {"normal_force": Output("N", ("contact_point",), "normal force of the ground")}

    def _contact(self, t, kin: Kinematics):
        if kin.environment.ground is None:
            raise ValueError("GroundContact needs environment.ground")
        point = kin.points(self.bodies, Vec3.of(self.points_B))
        depth = jnp.maximum(kin.environment.ground.height - point.p_W.z, 0.0)
        normal = self.stiffness * depth * jnp.maximum(1.0 - self.dissipation * point.v_W.z, 0.0)
        return point, depth, normal

    def wrench(self, t, kin: Kinematics, memory, command):
        point, _, normal = self._contact(t, kin)
        v = point.v_W
        drag = self.friction * normal / jnp.sqrt(v.x * v.x + v.y * v.y + self.slip_speed**2)
        force_W = Vec3(-drag * v.x, -drag * v.y, normal)
        return (Wrench.at(self.bodies, Vec3.of(self.points_B), point.R_WB, force_W),), ()

    def energy(self, t, kin: Kinematics, memory):
        return (0.5 * self.stiffness * self._contact(t, kin)[1] ** 2).sum()

    def power(self, t, kin: Kinematics, memory, command, wrenches):
        point, depth, _ = self._contact(t, kin)
        stored = (-self.stiffness * depth * point.v_W.z).sum()
        return sum(w.power(kin) for w in wrenches) + stored

    def outputs(self, t, kin, memory, command):
        return {"normal_force": self._contact(t, kin)[2]}

    def rate_bound(self, prepared) -> float:
        lightest = np.asarray(prepared.mass)[list(self.bodies)].min()
        points = max(self.bodies.count(b) for b in set(self.bodies))
        sliding = float(np.max(self.friction)) * 2 * 9.81 / float(np.min(self.slip_speed))
        return max(float(np.sqrt(points * np.max(self.stiffness) / lightest)), sliding)
