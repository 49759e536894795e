"""Exact linear models of any system about a state: ``x' = A x + B u`` in the coordinates of :mod:`skycrane.analysis.coordinates`.

With the chart c around the state and F the system's rates less those of the steady motion (a turn, say):

    x' = Dc(s) F(t, s, u),  s = c^-1(x)      A = d x'/dx,  B = d x'/du,  C = dy/dx,  D = dy/du   at x = 0

all by forward-mode differentiation, so exact to rounding.  Inputs are the commands (rotor speeds, rad/s).  A tether that is taut at the
state is a two-sided constraint of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from skycrane.analysis.coordinates import Chart, Steady, entry_names, without_account
from skycrane.analysis.linear_model import LinearModel
from skycrane.analysis.precision import double_precision, to_double
from skycrane.core.bodies import State
from skycrane.core.constraint import rows_of
from skycrane.core.system import System

Outputs = Callable[[Array, State, dict], dict[str, Array]]


def linearize(
    system: System,
    state: State,
    command: dict[str, Array],
    *,
    t: float = 0.0,
    turn_rate: float = 0.0,
    attitude: str = "rotation_vector",
    velocity: str = "body",
    quasi_static: bool | Sequence[str] = False,
    outputs: Outputs | None = None,
) -> LinearModel:
    """Linearise the open loop.

    Args:
        system, state, command: where.  ``command`` by element name, as a controller gives it.
        t: time [s], for wind and water that depend on it.
        turn_rate: [rad/s] about the vertical, of the steady motion that counts as rest (of a trimmed turn or spin).
        attitude: ``"rotation_vector"`` (body axes) or ``"euler"`` (roll, pitch, yaw).
        velocity: ``"body"`` or ``"world"`` axes.
        quasi_static: names of elements whose memory follows at once (``("rotors",)``: rotor speeds become inputs), or True for all.
        outputs: ``f(t, state, command)`` returning arrays by name; by default the outputs are the states.

    Returns:
        The model in double precision.  ``residual`` tells whether the state is an equilibrium.

    Raises:
        ValueError: for an unknown kind of attitude or velocity.
        FloatingPointError: where a derivative is not finite; the rates concerned are named.
    """
    with double_precision():
        system, state, command = to_double((system, state, command))
        system, state = without_account(system, state)
        chart = Chart(state, attitude, velocity)
        command = {name: jnp.asarray(value) for name, value in sorted(command.items())}
        out = _jacobians(chart, system, command, jnp.asarray(t, jnp.float64), jnp.asarray(turn_rate, jnp.float64), outputs)
        rate, A, B, G, output = jax.tree.map(np.asarray, out)
        states = chart.names(system)
        inputs = tuple(n for element, value in command.items() for n in entry_names(system, element, "", np.shape(value)))
        if output is None:
            names, C, D = states, np.eye(len(states)), np.zeros((len(states), len(inputs)))
        else:
            y, C, D = output
            names = tuple(n for name, value in sorted(y.items()) for n in entry_names(system, name, "", np.shape(value)))
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        bad = [states[k] for k in np.flatnonzero(~np.isfinite(np.concatenate([A, B], 1)).all(1))]
        raise FloatingPointError(f"the rates of {', '.join(bad)} have no finite derivative at this state")
    model = LinearModel(A, B, C, D, states, inputs, names, 0.0, rate, G if G.size else None)
    if quasi_static:
        elements = [e for e in state.memory if quasi_static is True or e in quasi_static]
        fast = [s for s in states if any(s == e or s.startswith((f"{e}[", f"{e}/")) for e in elements)]
        model = model.settle(fast)
    return model


@eqx.filter_jit
def _jacobians(chart: Chart, system: System, command: dict, t: Array, turn_rate: Array, outputs: Outputs | None) -> Any:
    """Rate, A, B, constraint rows, and (outputs, C, D) or None."""
    prepared = system.prepare()
    u0, unravel = ravel_pytree(command)
    x0 = chart.local(chart.about)
    n = x0.size
    steady = Steady.of(chart.about, turn_rate)

    def everything(z):
        # One function of states and inputs together, so that it is traced and compiled once.
        state, u = chart.state(z[:n]), unravel(z[n:])
        rates = system.dynamics(t, state, u, prepared)
        rate = chart.rate(state, jax.tree.map(lambda a, b: a - b, rates, steady.rates(state)))
        rows = rows_of(system.constraints, t, system.kinematics(state, prepared), state.memory)
        gaps = jnp.stack([jnp.where(r.active, value, 0.0) for r in rows for value in (r.gap, r.rate)]) if rows else jnp.zeros(0)
        y = {} if outputs is None else dict(sorted(outputs(t, state, u).items()))
        parts = (rate, gaps, ravel_pytree(y)[0])
        return parts, (rate, y)

    (AB, G, CD), (rate, y) = jax.jacfwd(everything, has_aux=True)(jnp.concatenate([x0, u0]))
    output = None if outputs is None else (y, CD[:, :n], CD[:, n:])
    return rate, AB[:, :n], AB[:, n:], G[:, :n], output
