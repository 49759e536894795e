"""Weight of every body."""

from __future__ import annotations

import jax.numpy as jnp

from skycrane.core.element import AbstractElement, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3


class Gravity(AbstractElement):
    """``-m g e_z`` at the centre of mass of every body's rigid part; the added mass of a fluid has no weight."""

    def wrench(self, t, kin: Kinematics, memory, command):
        mass = kin.prepared.mass
        weight_W = Vec3(jnp.zeros_like(mass), jnp.zeros_like(mass), -kin.environment.gravity * mass)
        bodies = tuple(range(mass.shape[-1]))
        if kin.prepared.principal:
            return (Wrench(bodies, weight_W, None),), ()
        return (Wrench.at(bodies, kin.prepared.com_B, kin.R_WB, weight_W),), ()

    def energy(self, t, kin: Kinematics, memory):
        height = kin.p_WB.z if kin.prepared.principal else (kin.p_WB + kin.R_WB @ kin.prepared.com_B).z
        return (kin.environment.gravity * kin.prepared.mass * height).sum()

    def power(self, t, kin, memory, command, wrenches):
        return 0.0
