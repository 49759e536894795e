"""Control allocation: from a wanted force and moment to the thrust and speed of every rotor.

A rotor i at r_i from the chosen point (normally the centre of mass) with axis a_i, spin s_i and thrust T_i pushes with

    force T_i a_i,   moment T_i (r_i x a_i - s_i (k_M / k_F) a_i),   T_i = k_F W_i^2

so the wrench is ``w = B T``.  In scaled numbers u_i = T_i / T_max,i and with the rows of B scaled to unit length (A = P D^-1 B
T_max, b = P D^-1 w, P the priority of each axis) the thrusts are the unique solution of

    min 1/2 |A u - b|^2 + eps/2 |u - u_0|^2   subject to  lo <= u <= hi                                          (1)

where u_0 is the exact solution of smallest norm, clipped to the limits: where it is within them it is the answer, exactly.
Otherwise (1) is solved through its dual, which has only six unknowns y however many rotors there are:

    u(y) = clip(u_0 - A^T y, lo, hi),      g(y) = eps y - (A u(y) - b) = 0                                       (2)

g is the gradient of a strongly convex, piecewise quadratic function, so Newton's method with its generalised Jacobian eps I +
A_F A_F^T (F: the rotors within their limits) and a search along the line reaches the exact solution in a few steps (Qi and Sun,
"A nonsmooth version of Newton's method", Math. Programming 58, 1993; the dual of a bounded least-squares problem: Li and
Swetits, SIAM J. Optim. 7, 1997).  Its derivative is implicit, that of one more Newton step.  The constrained formulation of
allocation: Johansen and Fossen, "Control allocation - a survey", Automatica 49, 2013.

Priority.  Where not everything can be had, errors count, relative to what each axis can do, by :data:`PRIORITY`: roll and pitch
moment first, then thrust, then force in the plane, then yaw.  A demand beyond what all rotors could give in one axis
counts as that much, so that no axis outshouts the others: an upset vehicle that wants to push downwards, which it cannot, still
    turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from skycrane.elements.rotors import Rotors
from skycrane.math.checks import concrete, known, placed
from skycrane.math.components import Vec3, safe_sqrt
from skycrane.math.linalg import eliminate_spd, invert_spd

AXES = ("force x", "force y", "force z", "moment x (roll)", "moment y (pitch)", "moment z (yaw)")
PRIORITY = (0.1, 0.1, 0.3, 1.0, 1.0, 0.03)  # each step of a third makes an error weigh a tenth
INDEPENDENCE = 0.05  # smallest sine of the angle between an axis and those of higher priority for which it is still controlled
AUTHORITY = 2e-3  # smallest part of the total thrust (times the arm for moments) that counts as control of an axis
MAX_ITERATIONS = 40  # never seen above 15; the bound keeps a run going where rounding makes the active set flicker


class Allocated(NamedTuple):
    """``thrust`` (k, n) N, ``speed`` (k, n) rad/s, and the part of the demand that is not met: N and N m, body axes, components
    of shape (k,)."""

    thrust: Array
    speed: Array
    unmet_force_B: Vec3
    unmet_moment_B: Vec3


class Allocation(eqx.Module):
    """Allocation for k vehicles of n rotors each.

    Nothing is cached: change a limit, a coefficient or a weight, also by an event during a run, and the next call obeys.

    Attributes:
        effectiveness: (k, 6, n) force (N) over moment (N m) about the chosen point, body axes, for each newton of thrust.
        thrust_min, thrust_max: (k, n) N.
        thrust_coefficient: (k, n) k_F, N s^2.
        weight: (k, 6) priority of each of :data:`AXES`; 0 for an axis that is not controlled.
    """

    effectiveness: Array
    thrust_min: Array
    thrust_max: Array
    thrust_coefficient: Array
    weight: Array

    @classmethod
    def create(
        cls,
        position_B: ArrayLike,
        axis_B: ArrayLike,
        spin: ArrayLike,
        thrust_coefficient: ArrayLike,
        torque_coefficient: ArrayLike,
        *,
        speed_max: ArrayLike,
        speed_min: ArrayLike = 0.0,
        center_B: ArrayLike | Sequence[float] = (0.0, 0.0, 0.0),
        available: ArrayLike = 1.0,
        priority: ArrayLike | Sequence[float] = PRIORITY,
        independence: float = INDEPENDENCE,
    ) -> Allocation:
        """From rotors as in :class:`skycrane.elements.rotors.Rotors`; everything broadcasts to k vehicles and n rotors, and
        differentiates.

        Axes are kept in the order of their priority: one without authority, or within ``independence`` (sine of the angle) of
        being a combination of those kept before, gets weight 0, so that the others keep ordinary gains.
        :func:`skycrane.control.reach.analyse` says which and why.

        Args:
            position_B: (k, n, 3) or (n, 3) m; ``axis_B`` (k, n, 3), (n, 3) or (3,), of unit length; the rest (k, n), (n,) or
                scalar.
            center_B: (k, 3) or (3,) m, the point about which moments count.
            available: 1 for a sound rotor, 0 for one that is not to be used.
            priority: (k, 6) or (6,).

        Raises:
            ValueError: for shapes that do not fit, or a fastest speed that is infinite or not above the slowest.
        """
        hubs = known(position_B, jnp.result_type(float))
        hubs = hubs[None] if hubs.ndim == 2 else hubs
        if hubs.ndim != 3 or hubs.shape[-1] != 3:
            raise ValueError(f"rotor positions have shape {hubs.shape}, expected (k, n, 3) or (n, 3)")
        shape, dtype = hubs.shape[:2], hubs.dtype
        numbers = hubs, axis_B, spin, thrust_coefficient, torque_coefficient, speed_min, speed_max, center_B, available, priority
        xp: Any = np if concrete(numbers) else jnp  # known numbers need no compilation

        def full(value: Any, shape: tuple[int, ...] = shape) -> Any:
            return xp.broadcast_to(xp.asarray(value, dtype), shape)

        _check_speeds(speed_min, speed_max)
        axes = full(axis_B, hubs.shape)
        k_F, lever = full(thrust_coefficient), hubs - xp.asarray(center_B, dtype).reshape(-1, 1, 3)
        reaction = full(spin) * full(torque_coefficient) / k_F
        moment = xp.cross(lever, axes) - reaction[..., None] * axes
        effectiveness = xp.swapaxes(xp.concatenate([axes, moment], -1), -1, -2)
        thrust_max = full(available) * k_F * full(speed_max) ** 2
        thrust_min = full(available) * k_F * full(speed_min) ** 2
        weights = full(priority, (shape[0], 6))
        kept = _independent(effectiveness * thrust_max[:, None], lever, weights, independence)
        made = effectiveness, thrust_min, thrust_max, k_F, xp.where(kept, weights, 0.0)
        return cls(*(placed(np.array(x) if xp is np else x) for x in made))

    @classmethod
    def of_rotors(cls, rotors: Rotors, center_B: ArrayLike | Sequence[float] = (0.0, 0.0, 0.0), **options) -> Allocation:
        """For a :class:`Rotors` element, about the point ``center_B`` (3,) or (k, 3); options as in :meth:`create`."""
        return cls.create(
            rotors.position_B, rotors.axis_B, rotors.spin, rotors.thrust_coefficient, rotors.torque_coefficient,
            speed_min=rotors.speed_min, speed_max=rotors.speed_max, center_B=center_B, **options,
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Rotors on each vehicle."""
        return self.effectiveness.shape[-1]

    def wrench(self, thrust: Array) -> tuple[Vec3, Vec3]:
        """Force and moment (components of shape (k,)) of thrusts (k, n)."""
        w = (self.effectiveness * thrust[:, None]).sum(-1)
        return Vec3.of(w[:, :3]), Vec3.of(w[:, 3:])

    def __call__(self, force_B: Vec3, moment_B: Vec3) -> Allocated:
        """Thrusts and speeds for a wanted force [N] and moment about the chosen point [N m], body axes, components of shape
        (k,)."""
        problem = self.problem(force_B, moment_B)
        thrust = problem.scale * problem.minimizer()
        have_force, have_moment = self.wrench(thrust)
        speed = safe_sqrt(thrust / self.thrust_coefficient)
        return Allocated(thrust, speed, force_B - have_force, moment_B - have_moment)

    def problem(self, force_B: Vec3, moment_B: Vec3) -> Problem:
        """Problem (1) for a demand, in scaled numbers."""
        demand = jnp.stack(jnp.broadcast_arrays(*force_B.components(), *moment_B.components()), -1)
        usable = self.thrust_max > 0
        scale = jnp.where(usable, self.thrust_max, 1.0)
        hi = jnp.where(usable, 1.0, 0.0)
        lo = jnp.minimum(self.thrust_min / scale, hi)
        rows = jnp.where(usable[:, None], self.effectiveness * scale[:, None], 0.0)
        square = (rows * rows).sum(-1)
        controlled = (self.weight > 0) & (square > 0)
        inverse = jnp.where(controlled, 1.0 / jnp.sqrt(jnp.where(controlled, square, 1.0)), 0.0)
        rows = rows * inverse[..., None]
        ends = rows * lo[:, None], rows * hi[:, None]
        goals = _clip(demand * inverse, jnp.minimum(*ends).sum(-1), jnp.maximum(*ends).sum(-1))
        return Problem(rows, goals, self.weight, lo, hi, scale)


class Problem(NamedTuple):
    """Problem (1) of the module: unit ``rows`` (k, 6, n), ``goals`` and priorities ``weights`` (k, 6), limits ``lo``, ``hi`` of
    u (k, n), and ``scale`` (k, n) N = thrust / u.  Rows of axes that are not controlled are zero."""

    rows: Array
    goals: Array
    weights: Array
    lo: Array
    hi: Array
    scale: Array

    @property
    def weighted(self) -> tuple[Array, Array]:
        """A (k, 6, n) and b (k, 6) of problem (1)."""
        return self.weights[..., None] * self.rows, self.weights * self.goals

    def unlimited(self) -> Array:
        """The exact solution (k, n) of smallest norm, limits aside."""
        gram = (self.rows[:, :, None] * self.rows[:, None]).sum(-1)
        eye = jnp.eye(6, dtype=gram.dtype)
        # A one on the diagonal leaves the multiplier of an axis that is not controlled at 0; a trace on the others survives that
        # limits changed during a run make them dependent.
        empty = (self.rows * self.rows).sum(-1) == 0
        gram = gram + jnp.where(empty, 1.0, 8.0 * float(jnp.finfo(gram.dtype).eps))[..., None] * eye
        # The inverse does not depend on the demand, so that XLA computes it once, ahead of the loop over time.
        multipliers = (invert_spd(gram) * self.goals[:, None]).sum(-1)
        return (self.rows * multipliers[..., None]).sum(-2)

    def minimizer(self) -> Array:
        """The solution u (k, n)."""
        A, b = self.weighted
        unlimited = self.unlimited()
        y = _dual(A, b, unlimited, self.lo, self.hi)
        return _clip(_clip(unlimited, self.lo, self.hi) + _pull(A, y), self.lo, self.hi)


def regularisation(dtype) -> float:
    """eps of problem (1): as small as the precision lets the dual be solved well."""
    return 1e-7 if jnp.finfo(dtype).bits > 32 else 3e-5


def _clip(z: Array, lo: Array, hi: Array) -> Array:
    # By hand: the derivative of jnp.clip at a tie is 1/2, here a rotor at its limit does not move.
    return jnp.where(z >= hi, hi, jnp.where(z <= lo, lo, z))


def _pull(A: Array, y: Array) -> Array:
    """-A^T y, (k, n)."""
    return -(A * y[..., None]).sum(-2)


def _jacobian(A: Array, free: Array, eps: float) -> Array:
    """eps I + A_F A_F^T, (k, 6, 6)."""
    gram = (jnp.where(free[:, None], A, 0.0)[:, :, None] * A[:, None]).sum(-1)
    return gram + eps * jnp.eye(6, dtype=A.dtype)


def _gradient(A: Array, b: Array, u: Array, y: Array, eps: float) -> Array:
    """g of (2), (k, 6)."""
    return eps * y - ((A * u[:, None]).sum(-1) - b)


@jax.custom_jvp
def _dual(A: Array, b: Array, unlimited: Array, lo: Array, hi: Array) -> Array:
    """The root y (k, 6) of (2); zero at once where ``unlimited`` is within the limits."""
    u_0 = _clip(unlimited, lo, hi)
    eps = regularisation(u_0.dtype)
    close = 1e3 * float(jnp.finfo(u_0.dtype).eps)

    def newton(carry):
        y, z, iteration, _ = carry
        u = _clip(z, lo, hi)
        free = (z > lo) & (z < hi)
        d = -eliminate_spd(_jacobian(A, free, eps), _gradient(A, b, u, y, eps))
        t = _line_search(eps, y, d, b, z, _pull(A, d), lo, hi)
        new_y = y + t[:, None] * d
        new_z = u_0 + _pull(A, new_y)
        same = ((new_z >= hi) == (z >= hi)) & ((new_z <= lo) == (z <= lo))
        small = jnp.abs(_clip(new_z, lo, hi) - u) <= close
        done = jnp.all((same | small) & (jnp.abs(t - 1.0) < 0.5)[:, None])
        return new_y, new_z, iteration + 1, done

    done = jnp.all((unlimited >= lo) & (unlimited <= hi))
    start = (jnp.zeros_like(b), u_0, jnp.zeros((), jnp.int32), done)
    return lax.while_loop(lambda c: ~c[3] & (c[2] < MAX_ITERATIONS), newton, start)[0]


@_dual.defjvp
def _dual_jvp(primals, tangents):
    A, _, unlimited, lo, hi = primals
    y = _dual(*primals)
    eps = regularisation(lo.dtype)

    def gradient(A, b, unlimited, lo, hi):
        return _gradient(A, b, _clip(_clip(unlimited, lo, hi) + _pull(A, y), lo, hi), y, eps)

    _, rate = jax.jvp(gradient, primals, tangents)
    z = _clip(unlimited, lo, hi) + _pull(A, y)
    matrix = _jacobian(A, (z > lo) & (z < hi), eps)
    inverse = invert_spd(matrix)

    def times(M: Array, v: Array) -> Array:
        return (M * v[:, None]).sum(-1)

    step = times(inverse, rate)
    step = step + times(inverse, rate - times(matrix, step))  # one refinement: the condition of the matrix is up to 1/eps
    return y, -step


def _line_search(eps: float, y: Array, d: Array, b: Array, z: Array, q: Array, lo: Array, hi: Array) -> Array:
    """Step t (k,) along d to the minimum of the dual, exactly; q = -A^T d.

    Its slope ``m(t) = d . g(y + t d)`` is increasing and linear between the breakpoints at which a rotor meets one of its
    limits: evaluate it at all of them and interpolate where it changes sign.
    """
    constant = ((eps * y + b) * d).sum(-1)
    linear = eps * (d * d).sum(-1)
    moving = q != 0
    rate = jnp.where(moving, q, 1.0)
    ahead = [jnp.where(moving, (limit - z) / rate, 0.0) for limit in (lo, hi)]
    t = jnp.maximum(jnp.concatenate([jnp.zeros_like(z[:, :1]), *ahead], -1), 0.0)  # (k, 1 + 2 n)
    at = z[:, None] + t[:, :, None] * q[:, None]
    m = constant[:, None] + linear[:, None] * t + (q[:, None] * _clip(at, lo[:, None], hi[:, None])).sum(-1)
    before, infinite = m < 0, jnp.inf
    t_0, t_1 = jnp.where(before, t, 0.0).max(-1), jnp.where(before, infinite, t).min(-1)
    m_0, m_1 = jnp.where(before, m, -infinite).max(-1), jnp.where(before, infinite, m).min(-1)
    inside = (t_1 > t_0) & (t_1 < infinite)
    between = t_0 - m_0 * jnp.where(inside, t_1 - t_0, 0.0) / jnp.where(inside, m_1 - m_0, 1.0)
    beyond = t_0 - m_0 / jnp.where(linear > 0, linear, 1.0)
    # A slope that is not negative at the start is rounding at the solution: the whole step changes nothing.
    return jnp.where(before[:, 0], jnp.where(t_1 < infinite, between, beyond), 1.0)


def _check_speeds(speed_min: ArrayLike, speed_max: ArrayLike) -> None:
    if isinstance(speed_min, jax.core.Tracer) or isinstance(speed_max, jax.core.Tracer):
        return
    low, high = np.broadcast_arrays(np.asarray(speed_min), np.asarray(speed_max))
    if not np.all(np.isfinite(high)):
        raise ValueError("allocation needs a finite speed_max of every rotor: that is what a demand is measured against")
    if np.any(low < 0) or np.any(high <= low):
        raise ValueError(f"rotor speeds from {low.min()} to {high.max()} rad/s: expected 0 <= speed_min < speed_max")


def _independent(rows: Array, lever: Array, priority: Array, independence: float) -> Array:
    """Which of the axes (k, 6) can be controlled: Gram-Schmidt on unit rows (k, 6, n) in the order of priority."""
    xp: Any = jnp
    if concrete(rows, lever, priority):  # known numbers need no compilation
        xp = np
        rows, lever, priority = (np.asarray(x) for x in (rows, lever, priority))  # type: ignore[assignment]
    total = xp.linalg.norm(rows[:, :3], axis=(-2, -1))
    arm = xp.maximum(xp.linalg.norm(lever, axis=-1).max(-1), 1e-9)
    size = xp.linalg.norm(rows, axis=-1)
    reference = xp.stack([total] * 3 + [total * arm] * 3, -1)
    strong = size > AUTHORITY * reference
    unit = xp.where(strong[..., None], rows / xp.where(strong, size, 1.0)[..., None], 0.0)
    # The priority decides the order only; it is compared as numbers, so that it may be traced.
    order = xp.argsort(-priority, axis=-1, stable=True)
    kept = xp.zeros(order.shape, bool)
    basis: list[Array] = []
    vehicles = xp.arange(len(order))
    for rank in range(6):
        axis = order[:, rank]
        rest = unit[vehicles, axis]
        for _ in range(2):  # twice is enough (Kahan): the second pass removes what rounding left
            for b in basis:
                rest = rest - (rest * b).sum(-1, keepdims=True) * b
        length = xp.linalg.norm(rest, axis=-1)
        good = (length > independence) & (priority[vehicles, axis] > 0)
        kept = kept | (good[:, None] & (xp.arange(6) == axis[:, None]))
        basis.append(xp.where(good[:, None], rest / xp.where(good, length, 1.0)[:, None], 0.0))
    return kept if xp is np else lax.stop_gradient(kept)
