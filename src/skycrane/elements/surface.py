"""Contact of points on bodies with a compliant plane, such as a wall, and the force that a sensor at the point feels.

The plane goes through a place, its unit normal n points into the open.  Normal force of Hunt and Crossley (1975) and regularised Coulomb
friction, as for the ground (:mod:`skycrane.elements.contact`):

    x = max(0, -n . (p - p_0)),    N = k x max(0, 1 + d x'),    F_t = -mu N v_t / sqrt(|v_t|^2 + v_s^2),    v_t = v - n (n . v)

The force sensor lags by ``sensor_time`` tau: F_s' = (F - F_s) / tau; controllers read F_s as the element's memory.
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


class SurfaceContact(AbstractElement):
    """Points against one plane.

    ``bodies`` (static), one entry for each of m points; ``points_B`` (m, 3) m from B; ``place_W`` (3,) m and unit ``normal_W`` (3,) of the
    plane; ``stiffness`` k [N/m]; ``dissipation`` d [s/m]; ``friction`` mu; ``slip_speed`` v_s [m/s]; ``sensor_time`` tau [s].
    Memory: the felt forces (m, 3) N, world axes.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    points_B: Array
    place_W: Array
    normal_W: Array
    stiffness: Array | float = 1e3
    dissipation: Array | float = 0.5
    friction: Array | float = 0.3
    slip_speed: Array | float = 0.02
    sensor_time: Array | float = 0.02

    outputs_info: ClassVar[dict[str, Output]] = {
        "normal_force": Output("N", ("tool",), "normal force of the surface on the tool"),
        "force": Output("N", ("tool", "axis"), "force of the surface on the tool, world axes"),
    }

    def init(self) -> Array:
        return jnp.zeros_like(self.points_B)

    def _contact(self, kin: Kinematics):
        point = kin.points(self.bodies, Vec3.of(self.points_B))
        n = Vec3.of(self.normal_W)
        depth = jnp.maximum(-n.dot(point.p_W - Vec3.of(self.place_W)), 0.0)
        leaving = n.dot(point.v_W)
        normal = self.stiffness * depth * jnp.maximum(1.0 - self.dissipation * leaving, 0.0)
        along = point.v_W - n * leaving
        drag = self.friction * normal / jnp.sqrt(along.dot(along) + self.slip_speed**2)
        return point, depth, leaving, normal, n * normal - along * drag

    def wrench(self, t, kin: Kinematics, memory, command):
        point, _, _, _, force_W = self._contact(kin)
        return (Wrench.at(self.bodies, Vec3.of(self.points_B), point.R_WB, force_W),), (force_W.array() - memory) / self.sensor_time

    def energy(self, t, kin: Kinematics, memory):
        return (0.5 * self.stiffness * self._contact(kin)[1] ** 2).sum()

    def power(self, t, kin: Kinematics, memory, command, wrenches):
        _, depth, leaving, _, _ = self._contact(kin)
        return sum(w.power(kin) for w in wrenches) + (-self.stiffness * depth * leaving).sum()

    def outputs(self, t, kin, memory, command):
        _, _, _, normal, force_W = self._contact(kin)
        return {"normal_force": normal, "force": force_W.array()}

    def rate_bound(self, prepared) -> float:
        lightest = np.asarray(prepared.mass)[list(self.bodies)].min()
        points = max(self.bodies.count(b) for b in set(self.bodies))
        # A tool away from the centre of mass moves more easily than the mass alone: turning counts about as much.
        pressing = 2.0 * float(np.sqrt(points * np.max(self.stiffness) / lightest))
        return max(pressing, 1.0 / float(np.min(self.sensor_time)))
