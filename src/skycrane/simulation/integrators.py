"""Integrators: one step of a system under a command that is held constant.

Fixed-step methods trace the dynamics once per step (Runge-Kutta stages are a scan over the tableau), which keeps compile time low.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

from skycrane.core.bodies import BodyState, Prepared, SecondOrder, State
from skycrane.core.system import System
from skycrane.math.components import Quat, Vec3
from skycrane.simulation.rows import axpy


class AbstractIntegrator(eqx.Module):
    """A method that advances a system by one step."""

    order: ClassVar[int]
    stability_radius: ClassVar[float]  # h * |fastest eigenvalue| it tolerates on the negative real axis
    implicit_chains: ClassVar[bool] = False  # whether chains of elements do not count for that

    @abc.abstractmethod
    def step(self, system: System, t: Array, state: State, command: dict, prepared: Prepared, h: float) -> State:
        """State at t + h, before ``system.post_step``."""


class RK4(AbstractIntegrator):
    """The classical fourth-order Runge-Kutta method; order 4 in attitude too.

    ``unroll`` (static): whether the compiled step repeats the stages instead of looping over them; by default only for a single vehicle
    (up to 24 state numbers), which gets a third faster and still compiles in about a second.
    """

    unroll: bool | None = eqx.field(static=True, default=None)

    order: ClassVar[int] = 4
    stability_radius: ClassVar[float] = 2.785

    def step(self, system, t, state, command, prepared, h):
        # Stage i starts from state + c_i h k_(i-1): only the last slope is needed, so the four stages are one scan.
        c = jnp.array([0.0, 0.5, 0.5, 1.0], jnp.result_type(t))
        b = jnp.array([1 / 6, 1 / 3, 1 / 3, 1 / 6], jnp.result_type(t))

        def stage(carry, weights):
            k, total = carry
            ci, bi = weights
            k = system.dynamics(t + ci * h, axpy(ci * h, k, state), command, prepared)
            return (k, axpy(bi * h, k, total)), None

        zero = jax.tree.map(jnp.zeros_like, state)
        size = sum(x.size for x in jax.tree.leaves(state))
        unroll = size <= 24 if self.unroll is None else self.unroll
        if not unroll:  # in reverse mode a stage is computed again, which costs less than to keep its hundreds of small arrays
            stage = jax.checkpoint(stage, prevent_cse=False)
        (_, total), _ = lax.scan(stage, (zero, state), (c, b), unroll=4 if unroll else 1)
        return total


class SemiImplicitEuler(AbstractIntegrator):
    """Symplectic Euler: velocities first, then positions with the new velocities.  Order 1, one evaluation a step."""

    order: ClassVar[int] = 1
    stability_radius: ClassVar[float] = 2.0

    def step(self, system, t, state, command, prepared, h):
        rate = system.dynamics(t, state, command, prepared)
        b, r = state.bodies, rate.bodies
        v_W, w_B = b.v_W + h * r.v_W, b.w_B + h * r.w_B
        q_WB = b.q_WB + h * Quat.of(b.q_WB).rate(Vec3.of(w_B)).array()
        bodies = BodyState(b.p_WB + h * v_W, q_WB, v_W, w_B)

        def advance(x, dx):
            if isinstance(x, SecondOrder):
                velocity = x.velocity + h * dx.velocity
                return SecondOrder(x.position + h * velocity, velocity)
            return x + h * dx

        memory = jax.tree.map(advance, state.memory, rate.memory, is_leaf=lambda x: isinstance(x, SecondOrder))
        return State(bodies, memory)


class Adaptive(AbstractIntegrator):
    """Dormand-Prince 8(7) with error control through diffrax: the reference that fixed steps are judged by.

    Every control period is integrated by itself to ``rtol``, ``atol``; a period that needs more than ``max_steps`` steps yields NaN, which
    the run reports.
    """

    rtol: float = 1e-9
    atol: float = 1e-11
    max_steps: int = eqx.field(static=True, default=4096)
    order: ClassVar[int] = 8
    stability_radius: ClassVar[float] = float("inf")

    def step(self, system, t, state, command, prepared, h):
        import diffrax
        from jax.flatten_util import ravel_pytree

        flat, unravel = ravel_pytree(state)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: ravel_pytree(system.dynamics(t, unravel(y), command, prepared))[0]),
            diffrax.Dopri8(),
            t,
            t + h,
            None,
            flat,
            stepsize_controller=diffrax.PIDController(rtol=self.rtol, atol=self.atol),
            max_steps=self.max_steps,
            throw=False,
        )
        good = solution.result == diffrax.RESULTS.successful
        return unravel(jnp.where(good, solution.ys[-1], jnp.nan))


class Substeps(AbstractIntegrator):
    """``count`` (static) equal steps of an ``inner`` method in place of one, projections of the system between them."""

    inner: AbstractIntegrator
    count: int = eqx.field(static=True)

    @property
    def order(self) -> int:  # type: ignore[override]
        return self.inner.order

    @property
    def stability_radius(self) -> float:  # type: ignore[override]
        return self.count * self.inner.stability_radius

    @property
    def implicit_chains(self) -> bool:  # type: ignore[override]
        return self.inner.implicit_chains

    def step(self, system, t, state, command, prepared, h):
        part = h / self.count

        def substep(state, i):
            now = t + i * part
            new = self.inner.step(system, now, state, command, prepared, part)
            return system.post_step(now + part, new, prepared), None

        return lax.scan(substep, state, jnp.arange(self.count, dtype=jnp.result_type(t)))[0]


INTEGRATORS = {"rk4": RK4, "semi_implicit_euler": SemiImplicitEuler, "adaptive": Adaptive}
