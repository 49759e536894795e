"""Aerodynamic drag of bodies at a centre of pressure.

    F_B = -1/2 rho |v| (C_D A) v,   v = R^T (v_point - v_wind) the airspeed of the centre of pressure in body axes

with one area C_D A for each body axis.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3


class Drag(AbstractElement):
    """Quadratic drag of ``bodies`` (static).

    ``cd_area_B`` (k, 3) m^2, drag coefficient times area along each body axis; ``center_B`` (k, 3) m, centre of pressure from B.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    cd_area_B: Array
    center_B: Array

    outputs_info: ClassVar[dict[str, Output]] = {"airspeed": Output("m/s", ("vehicle",), "airspeed of the centre of pressure")}

    def __check_init__(self):
        if jnp.shape(self.cd_area_B)[-2:] != (len(self.bodies), 3) or jnp.shape(self.center_B)[-2:] != (len(self.bodies), 3):
            raise ValueError(
                f"drag on {len(self.bodies)} bodies: cd_area_B {jnp.shape(self.cd_area_B)} and center_B {jnp.shape(self.center_B)} "
                f"must be ({len(self.bodies)}, 3)"
            )

    def _airspeed(self, t, kin: Kinematics):
        point = kin.points(self.bodies, Vec3.of(self.center_B))
        v_B = point.R_WB.T @ (point.v_W - kin.environment.air.velocity_W(t, point.p_W))
        return point, v_B

    def wrench(self, t, kin: Kinematics, memory, command):
        point, v_B = self._airspeed(t, kin)
        pressure = 0.5 * kin.environment.air.density * v_B.norm()
        force_B = -pressure * Vec3.of(self.cd_area_B).times(v_B)
        moment_B = Vec3.of(self.center_B).cross(force_B)
        return (Wrench(self.bodies, point.R_WB @ force_B, moment_B),), ()

    def outputs(self, t, kin: Kinematics, memory, command):
        return {"airspeed": self._airspeed(t, kin)[1].norm()}
