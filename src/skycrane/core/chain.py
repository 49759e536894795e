"""Stiff chains: what an element tells a linearly implicit integrator about its nodes and segments.

An element whose memory holds nodes (:class:`~skycrane.core.bodies.SecondOrder`) joined in chains between points of bodies gives, for each
segment with direction e, the matrices by which its force changes when its ends are moved apart (N/m) or move apart (N s/m):

    K = k e e^T + s (I - e e^T),   C = c e e^T

with s the tension over the length.  That is all of the Jacobian that is stiff, and it has the structure of the chains: block-tridiagonal,
tied to the bodies at the ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.bodies import SecondOrder
from skycrane.core.kinematics import Kinematics, Points
from skycrane.math.components import Vec3

WORLD = -1
"""In place of a body's index: a point fixed in the world."""


class Chains(NamedTuple):
    """k chains of m segments.

    ``upper``, ``lower`` (static): the bodies at the ends, :data:`WORLD` for a fixed point; ``upper_B``, ``lower_B`` (k,) the points [m];
    ``node_mass`` (m-1, k) kg; ``direction`` e (m, k) in world axes, ``stiffness`` k, ``swing`` s and ``damping`` c of each segment (m, k);
    ``nodes`` finds the nodes' part of the element's memory and ``replaced`` returns a memory with other nodes; ``rest_rate``, of a memory's
    rate, that of the segments' unstretched lengths (m, k) where they change (winches).
    """

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    upper_B: Vec3
    lower_B: Vec3
    node_mass: Array
    direction: Vec3
    stiffness: Array
    swing: Array
    damping: Array
    nodes: Callable[[Any], SecondOrder]
    replaced: Callable[[Any, SecondOrder], Any]
    rest_rate: Callable[[Any], Array] | None = None


def end_points(kin: Kinematics, bodies: tuple[int, ...], offset_B: Vec3) -> Points:
    """Points at ``offset_B`` from B of the bodies; of :data:`WORLD`, the point ``offset_B`` of the world at rest."""
    on = kin.points(tuple(max(b, 0) for b in bodies), offset_B)
    if WORLD not in bodies:
        return on
    fixed = np.array(bodies) == WORLD
    p_W, v_W = (Vec3(*(jnp.where(fixed, a, b) for a, b in zip(still.components(), moving.components(), strict=True)))
                for still, moving in ((offset_B, on.p_W), (0.0 * on.v_W, on.v_W)))  # fmt: skip
    return Points(p_W, v_W, on.R_WB)
