"""Unilateral constraints: rows ``gap(q) >= 0`` with multiplier ``>= 0``, solved together in every call of the dynamics.

With J the row's Jacobian (``gap' = J v``), M the mass matrix and a the acceleration without constraints, the multipliers T satisfy

    0 <= T   perpendicular to   J M^-1 J^T T + J a + drift - target >= 0      for the active rows,

``drift`` = J' v and ``target`` = the wanted gap'' (mild stabilisation).  One row is closed form; several are a fixed number of projected
Gauss-Seidel sweeps.  After the step, rows that are active and closing receive a plastic impulse, which keeps momentum and never
raises energy.
"""

from __future__ import annotations

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.core.element import Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3, put


class Row(NamedTuple):
    """One scalar constraint.

    ``wrenches``: the generalised force of a unit multiplier (this is J^T); ``gap`` [m] (kept >= 0), ``rate`` = gap' [m/s],
    ``drift`` = J' v [m/s^2], ``target`` = wanted gap'' [m/s^2], ``active`` bool.  All scalars.
    """

    wrenches: tuple[Wrench, ...]
    gap: Array
    rate: Array
    drift: Array
    target: Array
    active: Array


class AbstractConstraint(eqx.Module):
    """Ties bodies together."""

    @abc.abstractmethod
    def rows(self, t: Array, kin: Kinematics) -> tuple[Row, ...]:
        """The constraint's rows at this instant; their number never changes."""


def assemble(wrenches: tuple[Wrench, ...], count: int) -> tuple[Vec3, Vec3]:
    """Sum wrenches into a force (world) and a moment (body) of every body, trailing axis ``count``."""
    forces = [put(w.force_W, w.bodies, count) for w in wrenches if w.force_W is not None]
    moments = [put(w.moment_B, w.bodies, count) for w in wrenches if w.moment_B is not None]
    zero = Vec3(jnp.zeros(count), jnp.zeros(count), jnp.zeros(count))
    return sum(forces[1:], forces[0]) if forces else zero, sum(moments[1:], moments[0]) if moments else zero


def _work(force: tuple[Vec3, Vec3], motion: tuple[Vec3, Vec3]) -> Array:
    return (force[0].dot(motion[0]) + force[1].dot(motion[1])).sum()


def _responses(rows: tuple[Row, ...], kin: Kinematics):
    """Jacobians J^T, the motions M^-1 J^T that a unit multiplier causes, and the matrix A = J M^-1 J^T as nested lists."""
    count = kin.prepared.mass.shape[-1]
    jacobians = [assemble(r.wrenches, count) for r in rows]
    motions = [kin.prepared.solve(kin.R_WB, *j) for j in jacobians]
    return jacobians, motions, [[_work(j, x) for x in motions] for j in jacobians]


def _projected_gauss_seidel(A, b, active, sweeps: int) -> list[Array]:
    """Solve ``0 <= T perpendicular to A T - b >= 0`` on the active rows; exact at once for one row."""
    n = len(b)
    T = [jnp.zeros_like(b[0])] * n
    for _ in range(1 if n == 1 else sweeps):
        for i in range(n):
            others = sum((A[i][j] * T[j] for j in range(n) if j != i), 0.0)
            T[i] = jnp.where(active[i], jnp.maximum((b[i] - others) / A[i][i], 0.0), 0.0)
    return T


SWEEPS = 12  # of Gauss-Seidel: couples of tethers on one body converge by a factor of about 5 per sweep


def constrained_acceleration(rows: tuple[Row, ...], kin: Kinematics, a_W: Vec3, alpha_B: Vec3) -> tuple[Vec3, Vec3, list[Array]]:
    """Add the constraint forces to the free accelerations; also returns the multipliers (tensions, N)."""
    jacobians, motions, A = _responses(rows, kin)
    b = [r.target - r.drift - _work(j, (a_W, alpha_B)) for r, j in zip(rows, jacobians, strict=True)]
    T = _projected_gauss_seidel(A, b, [r.active for r in rows], SWEEPS)
    for t, (dv, dw) in zip(T, motions, strict=True):
        a_W, alpha_B = a_W + t * dv, alpha_B + t * dw
    return a_W, alpha_B, T


def plastic_impact(rows: tuple[Row, ...], kin: Kinematics) -> tuple[Vec3, Vec3]:
    """Velocity jumps (linear world, angular body) that stop every active row from closing further."""
    _, motions, A = _responses(rows, kin)
    P = _projected_gauss_seidel(A, [-r.rate for r in rows], [r.active & (r.rate < 0) for r in rows], SWEEPS)
    dv = sum((p * x[0] for p, x in zip(P[1:], motions[1:], strict=True)), P[0] * motions[0][0])
    dw = sum((p * x[1] for p, x in zip(P[1:], motions[1:], strict=True)), P[0] * motions[0][1])
    return dv, dw
