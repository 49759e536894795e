"""Unilateral constraints: rows ``gap(q) >= 0`` with multiplier ``>= 0``, solved together in every call of the dynamics.

With J the row's Jacobian (``gap' = J v``), M the mass matrix and a the acceleration without constraints, the multipliers T satisfy

    0 <= T   perpendicular to   J M^-1 J^T T + J a + drift - target >= 0      for the active rows,

``drift`` = J' v and ``target`` = the wanted gap'' (mild stabilisation).  One row is closed form; several are a fixed number of projected
Gauss-Seidel sweeps.  After the step, rows that are active and closing receive a plastic impulse, which keeps momentum and never
raises energy.  It is given where the bodies were when the gap closed: their positions go back along their velocities by the time
``gap/gap'`` since then (:func:`time_since_contact`), and forth again with the velocities after the impulse.  So a gap that the step
overshot is nearly closed again, without work.

A source of this library's models applies its constraint force with a moment that no ideal constraint would have; ``Row.extra`` carries it.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from skycrane.core.element import Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3, put


class Row(NamedTuple):
    """One scalar constraint.

    ``wrenches``: the generalised force of a unit multiplier (this is J^T); ``gap`` [m] (kept >= 0), ``rate`` = gap' [m/s],
    ``drift`` = J' v [m/s^2], ``target`` = wanted gap'' [m/s^2], ``active`` bool.  All scalars.  ``extra``: more wrenches of a unit
    multiplier, which do not belong to J.
    """

    wrenches: tuple[Wrench, ...]
    gap: Array
    rate: Array
    drift: Array
    target: Array
    active: Array
    extra: tuple[Wrench, ...] = ()


class AbstractConstraint(eqx.Module):
    """Ties bodies together; may remember something that its multipliers change (whether it broke)."""

    def init(self) -> Any:
        """Memory at the start; None where there is none."""
        return None

    @abc.abstractmethod
    def rows(self, t: Array, kin: Kinematics, memory: Any) -> tuple[Row, ...]:
        """The constraint's rows at this instant; their number never changes."""

    def rate(self, memory: Any, multipliers: tuple[Array, ...]) -> Any:
        """Time derivative of the memory."""
        return jax.tree.map(jnp.zeros_like, memory)


def rows_of(constraints: dict[str, AbstractConstraint], t: Array, kin: Kinematics, memory: dict) -> tuple[Row, ...]:
    """The rows of named constraints, in the order of their names; ``memory`` is that of the system."""
    return tuple(row for name, c in sorted(constraints.items()) for row in c.rows(t, kin, memory.get(name)))


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
    pushes = [assemble(r.wrenches + r.extra, count) if r.extra else j for r, j in zip(rows, jacobians, strict=True)]
    motions = [kin.prepared.solve(kin.R_WB, *push) for push in pushes]
    return jacobians, motions, [[_work(j, x) for x in motions] for j in jacobians]


def _projected_gauss_seidel(A, b, active, sweeps: int, unilateral: bool = True) -> list[Array]:
    """Solve ``0 <= T perpendicular to A T - b >= 0``, or A T = b, on the active rows; exact at once for one row."""
    n = len(b)
    T = [jnp.zeros_like(b[0])] * n
    for _ in range(1 if n == 1 else sweeps):
        for i in range(n):
            others = sum((A[i][j] * T[j] for j in range(n) if j != i), 0.0)
            value = (b[i] - others) / A[i][i]
            T[i] = jnp.where(active[i], jnp.maximum(value, 0.0) if unilateral else value, 0.0)
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


LONGEST = 0.01  # s, bound of the time since contact
CREEP = 1e-6  # m/s, a row that closes more slowly has none


def time_since_contact(rows: tuple[Row, ...]) -> Array:
    """How long ago the gap of the active, closing rows closed [s]: the longest of them, 0 where there is none."""
    times = []
    for r in rows:
        closing = r.active & (r.rate < -CREEP) & (r.gap < 0)
        times.append(jnp.where(closing, jnp.minimum(r.gap / jnp.where(closing, r.rate, -1.0), LONGEST), 0.0))
    latest = times[0]
    for time in times[1:]:
        latest = jnp.maximum(latest, time)
    return latest


def plastic_impact(rows: tuple[Row, ...], kin: Kinematics, closing: list[Array], unilateral: bool = True) -> tuple[Vec3, Vec3]:
    """Velocity jumps (linear world, angular body) that stop the rows that are ``closing``; also opening ones of them where not
    ``unilateral``."""
    _, motions, A = _responses(rows, kin)
    P = _projected_gauss_seidel(A, [-r.rate for r in rows], closing, SWEEPS, unilateral)
    dv = sum((p * x[0] for p, x in zip(P[1:], motions[1:], strict=True)), P[0] * motions[0][0])
    dw = sum((p * x[1] for p, x in zip(P[1:], motions[1:], strict=True)), P[0] * motions[0][1])
    return dv, dw
