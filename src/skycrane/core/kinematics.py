"""What elements see of the bodies: poses and velocities as components, computed once per call of the dynamics."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
from jax import Array

from skycrane.core.bodies import BodyState, Prepared
from skycrane.environment.environment import Environment
from skycrane.environment.jets import Jets
from skycrane.math.components import Mat3, Quat, Vec3, take
from skycrane.math.outline import settled


class Points(NamedTuple):
    """Points fixed in bodies: position and velocity in world axes, and the attitude of their body."""

    p_W: Vec3
    v_W: Vec3
    R_WB: Mat3


class Kinematics(eqx.Module):
    """Poses and velocities of all bodies; the trailing axis of every component runs over bodies.  ``jets``: air that rotors drive."""

    p_WB: Vec3
    q_WB: Quat
    R_WB: Mat3
    v_W: Vec3
    v_B: Vec3
    w_B: Vec3
    prepared: Prepared
    environment: Environment
    jets: tuple[Jets, ...] = ()

    @classmethod
    def of(cls, state: BodyState, prepared: Prepared, environment: Environment) -> Kinematics:
        q_WB, v_W = Quat.of(state.q_WB), Vec3.of(state.v_W)
        R_WB = settled(q_WB.matrix())
        return cls(Vec3.of(state.p_WB), q_WB, R_WB, v_W, settled(R_WB.T @ v_W), Vec3.of(state.w_B), prepared, environment)

    def points(self, bodies: tuple[int, ...], offset_B: Vec3) -> Points:
        """Points at ``offset_B`` (body axes, trailing axis len(bodies)) from B of the given bodies."""
        R_WB, w_B = take(self.R_WB, bodies), take(self.w_B, bodies)
        p_W, v_W = settled((take(self.p_WB, bodies) + R_WB @ offset_B, take(self.v_W, bodies) + R_WB @ settled(w_B.cross(offset_B))))
        return Points(p_W, v_W, R_WB)

    def air_velocity_W(self, t: Array, p_W: Vec3, bodies: tuple[int, ...]) -> Vec3:
        """Velocity [m/s] of the air at points (k, ...) of k bodies: wind, and jets of other bodies' rotors."""
        return sum((jets.velocity_W(p_W, bodies) for jets in self.jets), start=self.environment.air.velocity_W(t, p_W))
