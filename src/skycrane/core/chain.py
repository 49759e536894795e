"""Stiff chains: what an element tells a linearly implicit integrator about its nodes and segments.

An element whose memory holds nodes (:class:`~skycrane.core.bodies.SecondOrder`) joined in chains between points of bodies gives, for each
segment, the symmetric matrices by which its force falls back when its ends are moved apart (K, N/m) or move apart (C, N s/m).  That is all
of the Jacobian that is stiff, and it has the structure of the chains: block-tridiagonal, tied to the bodies at the ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.bodies import SecondOrder
from skycrane.core.kinematics import Kinematics, Points
from skycrane.math.components import Mat3, Vec3

WORLD = -1
"""In place of a body's index: a point fixed in the world."""


class Chains(NamedTuple):
    """k chains of m segments.

    ``upper``, ``lower`` (static): the bodies at the ends, :data:`WORLD` for a fixed point; ``upper_B``, ``lower_B`` (k,) the points [m];
    ``node_mass`` (m-1, k) kg; ``stiffness``, ``damping`` (m, k) the matrices of each segment in world axes; ``nodes`` finds the nodes' part
    of the element's memory and ``replaced`` returns a memory with other nodes.
    """

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    upper_B: Vec3
    lower_B: Vec3
    node_mass: Array
    stiffness: Mat3
    damping: Mat3
    nodes: Callable[[Any], SecondOrder]
    replaced: Callable[[Any, SecondOrder], Any]


def end_points(kin: Kinematics, bodies: tuple[int, ...], offset_B: Vec3) -> Points:
    """Points at ``offset_B`` from B of the bodies; of :data:`WORLD`, the point ``offset_B`` of the world at rest."""
    on = kin.points(tuple(max(b, 0) for b in bodies), offset_B)
    if WORLD not in bodies:
        return on
    fixed = np.array(bodies) == WORLD
    p_W, v_W = (Vec3(*(jnp.where(fixed, a, b) for a, b in zip(still.components(), moving.components(), strict=True)))
                for still, moving in ((offset_B, on.p_W), (0.0 * on.v_W, on.v_W)))  # fmt: skip
    return Points(p_W, v_W, on.R_WB)
