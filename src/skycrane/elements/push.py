"""Forces given from outside."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
from jax import Array

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3


class Push(AbstractElement):
    """A given force on each of ``bodies`` (static), constant in world axes until an event changes it.

    ``force_W`` (k, 3) N; ``offset_B`` (k, 3) m, point of attack from B; ``moment_B`` (k, 3) N m in body
    axes, and ``moment_W`` (k, 3) N m in world axes or None for none.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    force_W: Array
    offset_B: Array
    moment_B: Array
    moment_W: Array | None = None

    outputs_info: ClassVar[dict[str, Output]] = {"force": Output("N", ("pushed", "axis"), "external force, world axes")}

    def wrench(self, t, kin: Kinematics, memory, command):
        point = kin.points(self.bodies, Vec3.of(self.offset_B))
        push = Wrench.at(self.bodies, Vec3.of(self.offset_B), point.R_WB, Vec3.of(self.force_W))
        moment_B = Vec3.of(self.moment_B)
        if self.moment_W is not None:
            moment_B = moment_B + point.R_WB.T @ Vec3.of(self.moment_W)
        return (push, Wrench(self.bodies, None, moment_B)), ()

    def outputs(self, t, kin, memory, command):
        return {"force": self.force_W}
