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
from skycrane.math.components import Mat3, Scalar, Vec3, take


class Drag(AbstractElement):
    """Quadratic drag of ``bodies`` (static).

    ``cd_area_B`` (k, 3) m^2, drag coefficient times area along each body axis; ``center_B`` (k, 3) m, centre of pressure from B, or None
    where it is B itself (which saves a third of a single vehicle's arithmetic).
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    cd_area_B: Array
    center_B: Array | None = None

    outputs_info: ClassVar[dict[str, Output]] = {"airspeed": Output("m/s", ("vehicle",), "airspeed of the centre of pressure")}

    def __check_init__(self):
        for name, value in (("cd_area_B", self.cd_area_B), ("center_B", self.center_B)):
            if value is not None and jnp.shape(value)[-2:] != (len(self.bodies), 3):
                raise ValueError(
                    f"drag on {len(self.bodies)} bodies: {name} has shape {jnp.shape(value)}, expected ({len(self.bodies)}, 3)"
                )

    def _airspeed_B(self, t, kin: Kinematics) -> tuple[Mat3, Vec3, Scalar]:
        air = kin.environment.air
        if self.center_B is not None:
            point = kin.points(self.bodies, Vec3.of(self.center_B))
            return point.R_WB, point.R_WB.T @ (point.v_W - kin.air_velocity_W(t, point.p_W, self.bodies)), air.density_at(point.p_W)
        R_WB, p_W, v_W = take((kin.R_WB, kin.p_WB, kin.v_W), self.bodies)
        return R_WB, R_WB.T @ (v_W - kin.air_velocity_W(t, p_W, self.bodies)), air.density_at(p_W)

    def wrench(self, t, kin: Kinematics, memory, command):
        R_WB, v_B, density = self._airspeed_B(t, kin)
        pressure = 0.5 * density * v_B.norm()
        force_B = -pressure * Vec3.of(self.cd_area_B).times(v_B)
        moment_B = None if self.center_B is None else Vec3.of(self.center_B).cross(force_B)
        return (Wrench(self.bodies, R_WB @ force_B, moment_B),), ()

    def outputs(self, t, kin: Kinematics, memory, command):
        return {"airspeed": self._airspeed_B(t, kin)[1].norm()}
