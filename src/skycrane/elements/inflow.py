"""Induced velocity of a rotor: where the thrust of the blades equals the change of momentum of the air.

    T_blades(w) = 2 rho A v sqrt(V_x^2 + (V_c + v)^2),      w = V_c + v (1 - g)

for the induced velocity v, with g the ground effect (0 without).  The momentum side grows with v and the blades' thrust falls with
w, so the solution is bracketed.  Steep descent has several; the search starts where the flow passes the disc downwards and ends at that
solution where there is one.  In the vortex-ring state, where none of them means much, a fixed number of evaluations may not reach any: the
residual tells.

Newton's method with the momentum side exact and the blades' side linear: the slope of the thrust is that between the last two evaluations
of the blades, and the equation with that line instead of the blades is solved by itself, which costs nothing next to an evaluation.  A step
that leaves the bracket is replaced by its middle.  The number of evaluations is fixed.  Derivatives come from the implicit function
theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from skycrane.elements.rotor_effects import at_speed
from skycrane.math.components import Scalar, safe_sqrt

INNER = 5  # Newton steps on the equation with the linear blades; the guess is close from the second evaluation on


class Flow(NamedTuple):
    """What a rotor meets: ``climb`` V_c [m/s], squared airspeed ``across`` V_x^2 along the disc [m^2/s^2], ``mass`` rho A [kg/m],
    ``tip_speed`` [m/s], strength of the ``ground`` effect or None."""

    climb: Array
    across: Array
    mass: Scalar
    tip_speed: Array
    ground: Array | None

    def through(self, v: Array) -> Array:
        """Flow through the disc w [m/s] at an induced velocity v [m/s]."""
        if self.ground is None:
            return self.climb + v
        return self.climb + v * (1.0 - at_speed(self.ground, self.across, v * v))

    def momentum(self, v: Array) -> Array:
        """Thrust [N] that momentum theory gives an induced velocity v [m/s]."""
        w = self.climb + v
        return 2.0 * self.mass * v * safe_sqrt(self.across + w * w)

    def momentum_slope(self, v: Array) -> Array:
        """Derivative of :meth:`momentum` [N s/m]."""
        w = self.climb + v
        root = safe_sqrt(self.across + w * w)
        still = root <= 0
        return 2.0 * self.mass * (root + jnp.where(still, 0.0, v * w / jnp.where(still, 1.0, root)))

    def residual(self, thrust: Array, v: Array) -> Array:
        """Error of the momentum equation over rho A (W R)^2, the unit of thrust coefficients."""
        scale = self.mass * self.tip_speed**2
        turning = scale > 0
        return jnp.where(turning, (thrust - self.momentum(v)) / jnp.where(turning, scale, 1.0), 0.0)


class Line(NamedTuple):
    """Thrust ``slope (w - zero)`` of the blades over the flow w through the disc; zero in m/s, slope in N s/m, negative."""

    zero: Array
    slope: Array


def solve_induced_velocity(thrust_at: Callable[[Array], Array], flow: Flow, guess: Line, iterations: int) -> Array:
    """Induced velocity v [m/s].

    Args:
        thrust_at: thrust [N] of the blades at a flow through the disc w [m/s].
        flow: what the rotor meets.
        guess: of the thrust over w, for the start.
        iterations: evaluations of the blades.
    """

    def error(v: Array) -> Array:
        return thrust_at(flow.through(v)) - flow.momentum(v)

    def solve(_, start: Array) -> Array:
        reach = flow.tip_speed + safe_sqrt(flow.across + flow.climb**2)

        def with_line(v0, T0, slope, low, high):
            """Solve for v with the thrust T0 + slope (v - v0) instead of that of the blades."""

            def newton(_, pair):
                v, _ = pair
                value = T0 + slope * (v - v0) - flow.momentum(v)
                rate = slope - flow.momentum_slope(v)
                good = rate < 0
                wanted = jnp.where(good, v - value / jnp.where(good, rate, 1.0), 0.5 * (low + high))
                return jnp.clip(wanted, low, high), wanted

            v, wanted = lax.fori_loop(0, INNER, newton, (v0, v0))
            # Rounding may put a converged solution a hair outside the bracket.
            slack = 1e-9 * reach
            return jnp.where((wanted >= low - slack) & (wanted <= high + slack), v, 0.5 * (low + high))

        def refine(_, carry):
            v, before, T_before, slope, low, high = carry
            T = thrust_at(flow.through(v))
            positive = flow.momentum(v) < T
            low, high = jnp.where(positive, v, low), jnp.where(positive, high, v)
            step = v - before
            clear = jnp.abs(step) > 1e-7 * reach  # closer points give a slope of rounding errors
            slope = jnp.where(clear, (T - T_before) / jnp.where(clear, step, 1.0), slope)
            return with_line(v, T, slope, low, high), v, T, slope, low, high

        low, high = -reach, start + reach
        none = guess.zero - flow.climb  # induced velocity at which the line has no thrust
        v = with_line(none, jnp.zeros_like(none), guess.slope, low, high)
        return lax.fori_loop(0, iterations, refine, (v, none, jnp.zeros_like(v), guess.slope, low, high))[0]

    def tangent(linear, y):
        rate = linear(jnp.ones_like(y))
        regular = rate != 0
        return jnp.where(regular, y / jnp.where(regular, rate, 1.0), 0.0)

    start = lax.stop_gradient(jnp.maximum(-flow.climb, 0.0))  # where the flow through the disc turns
    return lax.custom_root(error, start, solve, tangent)
