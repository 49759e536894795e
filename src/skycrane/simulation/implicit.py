"""Linearly implicit methods for stiff cables, whose cost is linear in the number of segments.

W-methods: of full order for every matrix A, and L-stable where A is the Jacobian.  With a lower triangular Gamma whose diagonal is gamma

    (I - gamma h A) v_i = gamma [ f(t + c_i h, y + h sum_j a_ij v_j) + sum_j d_ij v_j ],    y+ = y + h sum_i m_i v_i
    a = alpha Gamma^-1,  d = I/gamma - Gamma^-1,  m = b Gamma^-1

(Hairer and Wanner, "Solving Ordinary Differential Equations II", 2nd ed., eq. IV.7.25).  A holds what is stiff and no more: the springs
and dampers of the chains that the elements give, and how their ends move with the bodies (:mod:`skycrane.simulation.chain_solve`).
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from skycrane.simulation.chain_solve import Factors, solved
from skycrane.simulation.integrators import AbstractIntegrator, axpy

GAMMA = 1.0 - math.sqrt(0.5)


class Tableau(NamedTuple):
    """Coefficients of a W-method in the form above."""

    gamma: float
    c: np.ndarray
    a: np.ndarray
    d: np.ndarray
    m: np.ndarray

    @classmethod
    def of(cls, alpha: list[list[float]], Gamma: list[list[float]], b: list[float]) -> Tableau:
        A, inverse = np.array(alpha), np.linalg.inv(np.array(Gamma))
        gamma = Gamma[0][0]
        return cls(gamma, A.sum(1), A @ inverse, np.eye(len(b)) / gamma - inverse, np.array(b) @ inverse)


# Verwer, Spee, Blom and Hundsdorfer, SIAM J. Sci. Comput. 20 (1999), eq. 2.1.
ROS2 = Tableau.of([[0, 0], [1, 0]], [[GAMMA, 0], [-2 * GAMMA, GAMMA]], [0.5, 0.5])

# Rang and Angermann, BIT Numerical Mathematics 45 (2005), table 4.1.
_G = 0.43586652150845907
ROS34PW2 = Tableau.of(
    [[0, 0, 0, 0], [0.87173304301691801, 0, 0, 0], [0.84457060015369423, -0.11299064236484185, 0, 0], [0, 0, 1, 0]],
    [
        [_G, 0, 0, 0],
        [-0.87173304301691801, _G, 0, 0],
        [-0.90338057013044082, 0.054180672388095326, _G, 0],
        [0.24212380706095346, -1.2232505839045147, 0.54526025533510214, _G],
    ],
    [0.24212380706095346, -1.2232505839045147, 1.5452602553351020, 0.43586652150845900],
)


class AbstractLinearlyImplicit(AbstractIntegrator):
    """A W-method with the chains of the system implicit and everything else explicit."""

    tableau: ClassVar[Tableau]
    implicit_chains: ClassVar[bool] = True

    def step(self, system, t, state, command, prepared, h):
        method = self.tableau
        stages = len(method.m)
        kin = system.kinematics(state, prepared)
        every = {n: e.chains(t, kin, state.memory[n], h) for n, e in sorted(system.elements.items())}
        chains = {n: c for n, c in every.items() if c is not None}
        factors = Factors.of(chains, kin, method.gamma * h)
        c, a, d = (jnp.asarray(x, jnp.result_type(t)) for x in (method.c, method.a, method.d))
        # The stages are one scan, so that the dynamics and the solve are compiled once; v_j of later stages are zero.
        rows = (jnp.eye(stages, dtype=a.dtype), c, a, d)

        def mixed(weights, v):
            return jax.tree.map(lambda *x: sum(weights[j] * x[j] for j in range(stages)), *v)

        def stage(v, row):
            here, ci, ai, di = row
            rate = system.dynamics(t + ci * h, axpy(h, mixed(ai, v), state), command, prepared)
            new = solved(axpy(1.0, mixed(di, v), rate), chains, kin, factors, method.gamma * h)
            return [axpy(method.gamma * here[j], new, v[j]) for j in range(stages)], None

        # In reverse mode a stage is computed again from its beginning, which costs less than to keep its hundreds of small arrays.
        stage = jax.checkpoint(stage, prevent_cse=False)
        v, _ = lax.scan(stage, [jax.tree.map(jnp.zeros_like, state)] * stages, rows)
        return axpy(h, mixed(method.m, v), state)


class LinearlyImplicit(AbstractLinearlyImplicit):
    """ROS2: two stages, order 2."""

    tableau: ClassVar[Tableau] = ROS2
    order: ClassVar[int] = 2
    stability_radius: ClassVar[float] = 2.0  # of what stays explicit


class LinearlyImplicit3(AbstractLinearlyImplicit):
    """ROS34PW2: four stages, order 3; a step costs not quite two of ROS2's, and is the better choice where long swinging is to be
    exact: undamped waves across the cables keep their phase."""

    tableau: ClassVar[Tableau] = ROS34PW2
    order: ClassVar[int] = 3
    stability_radius: ClassVar[float] = 2.0  # of what stays explicit
