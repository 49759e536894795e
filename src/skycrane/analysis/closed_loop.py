"""The closed loop as a linear discrete-time model, by differentiating one control tick.

One tick takes plant state s, controller memory m and sensor memory n to

    y, n+ = sensors(s, u-, n)      c, m+ = controller(y, m)      s+ = flow of the plant over one period with the command u held

and u = c closes the loop.  With the chart of :mod:`skycrane.analysis.coordinates` around s and the same chart around s+ (at an
equilibrium both are the same), all Jacobians are exact for the integrator and step in use.  Leaving u free breaks the loop at the plant
input: the transfer from u to c is ``G(z) = K (z I - A)^-1 B``, and the loop gain of negative feedback is ``L = -G``.

Stability margins of a single loop: gain margin 1/|L| where L is real and negative, phase margin where |L| = 1, delay margin (phase
margin over frequency), and the disk margin ``alpha = 2 / max |S - T|``, ``S = 1/(1+L)``, ``T = 1-S``: gain and phase may change
together within a disk around 1 (Seiler, Packard and Gahinet, "An introduction to disk margins", IEEE Control Systems 40(5), 2020).  The
multivariable disk margin uses the largest singular value: the same change bound in all inputs at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from skycrane.analysis.coordinates import Chart, entry_names, without_account
from skycrane.analysis.linear_model import LinearModel
from skycrane.analysis.precision import double_precision, to_double
from skycrane.core.bodies import State
from skycrane.core.controller import AbstractController, AbstractSensors, Constant, TrueState
from skycrane.core.system import System
from skycrane.simulation.integrators import AbstractIntegrator
from skycrane.simulation.rollout import Checkpoint, simulate, start


@dataclass(frozen=True)
class ClosedLoop:
    """``closed``: the loop as it flies (inputs: disturbances added to the commands, outputs: the commands); ``broken``: the loop cut at
    the plant input (inputs: commands to the plant, outputs: commands from the controller)."""

    closed: LinearModel
    broken: LinearModel

    def margins(self, measure: np.ndarray | str, inject: np.ndarray | None = None) -> Margins:
        """Margins of one loop, all others closed.

        Args:
            measure: name of one input, or weights l (m,) of the commands: the loop's signal is ``l . c``.
            inject: direction r (m,) in which the signal acts on the plant, with ``l . r = 1``; by default l / |l|^2.

        Raises:
            ValueError: where l . r is not one.
        """
        m = len(self.broken.inputs)
        if isinstance(measure, str):
            measure = np.eye(m)[self.broken.index([measure], self.broken.inputs)[0]]
        row = np.asarray(measure, float)
        column = row / (row @ row) if inject is None else np.asarray(inject, float)
        if abs(row @ column - 1.0) > 1e-9:
            raise ValueError(f"measure . inject is {row @ column:.6g}, expected 1")
        # All of the command is fed back, except its part along the loop that is cut.
        b = self.broken
        others = np.eye(m) - np.outer(column, row)
        A = b.A + b.B @ others @ b.C
        return _margins(A, b.B @ column[:, None], row[None] @ b.C, b.dt)

    def disk_margin(self) -> float:
        """Multivariable disk margin with all inputs changed at once."""
        b = self.broken
        return _disk_margin(_response(b.A, b.B, b.C, b.dt, _grid(b.dt)))


@dataclass(frozen=True)
class Margins:
    """Margins of one loop.

    ``gain_up`` and ``gain_down``: factors by which the gain may grow (> 1) or shrink (< 1); infinity and 0 where it may do so without
    end. ``phase_deg``: phase that may be lost (infinite without a crossover); ``crossover`` [rad/s] there; ``delay_s``: dead time that
    may be added; ``disk``: disk margin.  ``stable``: whether the closed loop is stable or neutral; without that the other numbers mean
    nothing.
    """

    gain_up: float
    gain_down: float
    phase_deg: float
    crossover: float
    delay_s: float
    disk: float
    stable: bool


def closed_loop(
    system: System,
    controller: AbstractController,
    reference: Any,
    initial: State | Checkpoint,
    *,
    step: float,
    control_period: float | None = None,
    integrator: AbstractIntegrator | None = None,
    sensors: AbstractSensors | None = None,
    settle: float = 0.0,
    turn_rate: float = 0.0,
    attitude: str = "rotation_vector",
    velocity: str = "body",
) -> ClosedLoop:
    """Linearise the loop about a state, or about where it settles.

    Args:
        system, controller, reference, step, control_period, integrator, sensors: as for ``simulate``.
        initial: a state near equilibrium, or a checkpoint (``run.final``) with the memories of controller and sensors.
        settle: time [s] to fly first, so that motors and integrators come to rest.
        turn_rate: [rad/s] of the steady motion about the vertical.
        attitude, velocity: as for :func:`skycrane.analysis.linearize.linearize`.

    Returns:
        Discrete models, ``dt`` the control period, in double precision; ``closed.residual`` is the change over one period, zero at rest.
    """
    period = step if control_period is None else control_period
    sensors = TrueState() if sensors is None else sensors
    with double_precision():
        system, controller, reference, sensors, initial = to_double((system, controller, reference, sensors, initial))
        options: dict = {"step": step, "control_period": period, "integrator": integrator}
        if settle:
            initial = simulate(system, controller, reference, initial, duration=settle, sensors=sensors, **options).final
        begin = initial if isinstance(initial, Checkpoint) else start(system, controller, reference, initial, sensors)
        system, state = without_account(system, begin.state)
        begin = eqx.tree_at(lambda c: c.state, begin, state)
        chart = Chart(state, attitude, velocity)
        keep_command = not isinstance(sensors, TrueState)
        tick = _Tick(step, period, keep_command)
        out = _tick_jacobians(tick, chart, system, controller, reference, sensors, integrator, begin, jnp.asarray(float(turn_rate)))
        A, B, K, change = jax.tree.map(np.asarray, out)
        command = dict(sorted(begin.command.items()))
        names = (
            *chart.names(system),
            *_memory_names("controller", begin.controller_memory),
            *_memory_names("sensors", begin.sensor_memory),
        )
        inputs = tuple(n for element, value in command.items() for n in entry_names(system, element, "", np.shape(value)))
        if keep_command:
            names = (*names, *(f"held/{n}" for n in inputs))
    zero = np.zeros((len(inputs), len(inputs)))
    broken = LinearModel(A, B, K, zero, names, inputs, inputs, period, change)
    closed = LinearModel(A + B @ K, B, K, zero, names, inputs, inputs, period, change)
    return ClosedLoop(closed, broken)


class _Tick(eqx.Module):
    step: float = eqx.field(static=True)
    period: float = eqx.field(static=True)
    keep_command: bool = eqx.field(static=True)


@eqx.filter_jit
def _tick_jacobians(tick: _Tick, chart: Chart, system, controller, reference, sensors, integrator, c: Checkpoint, turn_rate: Array):
    """A, B, K of the loop cut at the plant input, and the change of the closed loop over one period."""
    prepared = system.prepare()
    t = c.tick.astype(jnp.float64) * tick.period
    memory = (c.controller_memory, c.sensor_memory, c.command if tick.keep_command else ())
    moving, fixed = eqx.partition(memory, eqx.is_inexact_array)
    m0, unravel = ravel_pytree(moving)
    u0, unravel_command = ravel_pytree(dict(sorted(c.command.items())))
    x0 = chart.local(chart.about)
    n = x0.size

    def decide(z):
        """Command and new memory at coordinates z = (plant, memory)."""
        state = chart.state(z[:n])
        controller_memory, sensor_memory, held = eqx.combine(unravel(z[n:]), fixed)
        held = held if tick.keep_command else c.command
        measurement, sensor_memory = sensors(c.tick, t, system, state, held, prepared, sensor_memory)
        command, controller_memory = controller(t, measurement, reference, controller_memory)
        new = eqx.filter((controller_memory, sensor_memory, command if tick.keep_command else ()), eqx.is_inexact_array)
        return ravel_pytree(dict(sorted(command.items())))[0], ravel_pytree(new)[0]

    def flow(x, u):
        at = Checkpoint(c.tick, chart.state(x), (), (), unravel_command(u), jnp.asarray(-1))
        held = Constant(unravel_command(u))
        return simulate(
            system, held, None, at, duration=tick.period, step=tick.step, control_period=tick.period, integrator=integrator
        ).final.state  # fmt: skip

    z0 = jnp.concatenate([x0, m0])
    u, m1 = decide(z0)
    after = flow(x0, u)
    # The chart of the next tick moves along: where the motion is steady it gives the same coordinates again.
    yaw = turn_rate * tick.period
    ahead = Chart(after, chart.attitude, chart.velocity, chart.yaw + yaw)
    Fx, Fu = jax.jacfwd(lambda x, u: ahead.local(flow(x, u)), (0, 1))(x0, u)
    Kz, Mz = jax.jacfwd(decide)(z0)
    A = jnp.concatenate([jnp.concatenate([Fx, jnp.zeros((n, m0.size))], 1), Mz])
    B = jnp.concatenate([Fu, jnp.zeros((m0.size, u0.size))])
    return A, B, Kz, jnp.concatenate([chart.local(after), m1 - m0])


def _memory_names(owner: str, memory: Any) -> list[str]:
    names = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(memory)[0]:
        if eqx.is_inexact_array(leaf):
            where = "".join(f"/{getattr(k, 'key', getattr(k, 'name', getattr(k, 'idx', k)))}" for k in path)
            names += [f"{owner}{where}[{','.join(map(str, i))}]" if leaf.shape else f"{owner}{where}" for i in np.ndindex(*leaf.shape)]
    return [n.replace(".", "/") for n in names]


# -- frequency response ------------------------------------------------------------------------------------------------------------------


def _grid(dt: float, points: int = 3000) -> np.ndarray:
    """Frequencies [rad/s] up to just below half the sampling frequency."""
    return np.geomspace(1e-3, 0.9999 * np.pi / dt, points)


def _response(A, B, C, dt: float, frequency: np.ndarray) -> np.ndarray:
    """``C (z I - A)^-1 B`` at ``z = exp(i w dt)``, (w, p, m)."""
    z = np.exp(1j * np.atleast_1d(frequency) * dt)
    return C @ np.linalg.solve(z[:, None, None] * np.eye(len(A)) - A, np.broadcast_to(B + 0j, (len(z), *B.shape)))


def _margins(A, B, C, dt: float) -> Margins:
    from scipy.optimize import brentq

    def loop(w):
        return -_response(A, B, C, dt, w)[:, 0, 0]

    w = _grid(dt)
    L = loop(w)
    gains = []
    for k in np.flatnonzero((L.imag[:-1] * L.imag[1:] < 0) & (L.real[:-1] < 0)):
        at = brentq(lambda x: loop(x)[0].imag, w[k], w[k + 1], xtol=1e-12 * w[k])
        gains.append(1.0 / abs(loop(at)[0].real))
    half_rate = -_response(A, B, C, dt, np.array([np.pi / dt]))[0, 0, 0].real
    if half_rate < 0:
        gains.append(-1.0 / half_rate)
    phase, crossover, delay = np.inf, np.nan, np.inf
    for k in np.flatnonzero((abs(L[:-1]) - 1) * (abs(L[1:]) - 1) < 0):
        at = brentq(lambda x: abs(loop(x)[0]) - 1, w[k], w[k + 1], xtol=1e-12 * w[k])
        lost = np.mod(np.pi + np.angle(loop(at)[0]), 2 * np.pi)  # phase that may be lost; the rest of the turn may be gained
        delay = min(delay, lost / at)
        nearest = min(lost, 2 * np.pi - lost)
        if nearest < phase:
            phase, crossover = nearest, at
    stable = bool(np.abs(np.linalg.eigvals(A + B @ C)).max(initial=0.0) < 1 + 1e-7)
    return Margins(
        min([g for g in gains if g > 1], default=np.inf),
        max([g for g in gains if g < 1], default=0.0),
        float(np.degrees(phase)), float(crossover), float(delay), _disk_margin(-L[:, None, None]), stable,
    )  # fmt: skip


def _disk_margin(G: np.ndarray) -> float:
    """``2 / max sigma(S - T)`` from the response G (w, m, m) of the broken loop, L = -G."""
    eye = np.eye(G.shape[-1])
    # S - T = (I - L)(I + L)^-1
    difference = np.linalg.solve(np.swapaxes(eye - G, 1, 2), np.swapaxes(eye + G, 1, 2))
    return float(2.0 / np.linalg.norm(difference, 2, axis=(1, 2)).max())
