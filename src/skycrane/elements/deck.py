"""Contact of points on bodies with the flat deck of another body, which moves.

As with the ground (:mod:`skycrane.elements.contact`), in the axes of the deck's body: with x the depth of a point below the deck and v its
velocity relative to the deck,

    N = k x max(0, 1 + d x'),      F_t = -mu N v_t / sqrt(|v_t|^2 + v_s^2)

within the deck's edges; the opposite force acts on the deck's body.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3, take


class DeckContact(AbstractElement):
    """Points against the top of body ``deck`` (static).

    ``bodies`` (static), one entry for each point; ``points_B`` (m, 3) m; ``height`` m of the deck above its reference point; ``half`` (2,)
    m, half its length and width; ``stiffness`` k [N/m], ``dissipation`` d [s/m], ``friction`` mu, ``slip_speed`` v_s [m/s]; a point
    deeper than ``reach`` [m] is below the deck, not on it.
    """

    deck: int = eqx.field(static=True)
    bodies: tuple[int, ...] = eqx.field(static=True)
    points_B: Array
    height: Array | float
    half: Array
    stiffness: Array | float = 3e3
    dissipation: Array | float = 1.0
    friction: Array | float = 0.6
    slip_speed: Array | float = 0.05
    reach: Array | float = 0.15

    outputs_info: ClassVar[dict[str, Output]] = {"normal_force": Output("N", ("deck_point",), "force of the deck on each point")}

    def _contact(self, kin: Kinematics):
        point = kin.points(self.bodies, Vec3.of(self.points_B))
        p_D, R_D, v_D, w_D = take((kin.p_WB, kin.R_WB, kin.v_W, kin.w_B), (self.deck,))
        at = R_D.T @ (point.p_W - p_D)
        slip = R_D.T @ (point.v_W - v_D) - w_D.cross(at)
        depth = self.height - at.z
        over = (jnp.abs(at.x) <= self.half[0]) & (jnp.abs(at.y) <= self.half[1]) & (depth < self.reach)
        depth = jnp.where(over, jnp.maximum(depth, 0.0), 0.0)
        normal = self.stiffness * depth * jnp.maximum(1.0 - self.dissipation * slip.z, 0.0)
        return point, at, R_D, slip, normal

    def wrench(self, t, kin: Kinematics, memory, command):
        point, at, R_D, slip, normal = self._contact(kin)
        rub = self.friction * normal / jnp.sqrt(slip.x * slip.x + slip.y * slip.y + self.slip_speed**2)
        force_D = Vec3(-rub * slip.x, -rub * slip.y, normal)
        force_W = R_D @ force_D
        pushed = Wrench.at(self.bodies, Vec3.of(self.points_B), point.R_WB, force_W)
        below = Wrench((self.deck,) * len(self.bodies), -force_W, at.cross(-force_D))
        return (pushed, below), ()

    def outputs(self, t, kin: Kinematics, memory, command):
        return {"normal_force": self._contact(kin)[-1]}

    def rate_bound(self, prepared) -> float:
        lightest = np.asarray(prepared.mass)[list(self.bodies)].min()
        points = max(self.bodies.count(b) for b in set(self.bodies))
        return float(np.sqrt(points * np.max(self.stiffness) / lightest))
