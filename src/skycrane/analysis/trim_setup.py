"""From a question about steady motion to unknowns, bounds and starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from skycrane.analysis.trim_problem import MOST_PITCH, MOST_SPIN, Layout, Problem, length_scales, quasi_static, rotor_elements
from skycrane.core.bodies import BodyState, State
from skycrane.core.constraint import rows_of
from skycrane.core.system import System
from skycrane.math.rotation import from_euler, multiply, rotate, to_euler
from skycrane.simulation.integrators import SecondOrder

FREE_AIR = 100.0  # m above ground, where a trim is looked for by default
TRIAL_SPEED = 100.0  # rad/s, at which thrust is asked for to know its size
MOST_DRIFT = 50.0  # m/s, of a spinning vehicle around its circle


def lifted(system: System) -> State:
    """The initial state, moved up into free air where there is ground."""
    state = system.initial_state()
    ground = system.environment.ground
    if ground is None:
        return state
    dtype = state.bodies.p_WB.dtype
    shift = jnp.array([0.0, 0.0, 1.0], dtype) * (ground.height + FREE_AIR)
    return _moved(state, shift, jnp.array([1.0, 0, 0, 0], dtype), jnp.zeros(3, dtype))


@eqx.filter_jit
def turned(state: State, main: int, heading: Array) -> State:
    """The whole state turned about the vertical through the main body until that has the heading [rad]."""
    now = to_euler("zyx", state.bodies.q_WB[main])[0]
    return _moved(state, jnp.zeros(3), from_euler("zyx", jnp.stack([heading - now, 0.0 * now, 0.0 * now])), state.bodies.p_WB[main])


def _moved(state: State, shift, q, centre) -> State:
    place = lambda p: centre + rotate(q, p - centre) + shift  # noqa: E731
    b = state.bodies
    bodies = BodyState(place(b.p_WB), multiply(q, b.q_WB), rotate(q, b.v_W), b.w_B)
    node = lambda x: SecondOrder(place(x.position), rotate(q, x.velocity)) if _is_nodes(x) else x  # noqa: E731
    return State(bodies, jax.tree.map(node, state.memory, is_leaf=_is_nodes))


def _is_nodes(x: Any) -> bool:
    return isinstance(x, SecondOrder) and x.position.ndim > 0 and x.position.shape[-1] == 3


class _Survey(NamedTuple):
    """Of the guess: ``angles`` (nb, 3) roll, pitch, yaw; ``thrust`` (k, n) [N] at 100 rad/s by rotor element; ``gaps`` of constraint
    rows."""

    angles: Array
    thrust: dict[str, Array]
    gaps: list[Array]


@eqx.filter_jit
def _survey(system: System, constraints: dict, guess: State, t: Array) -> _Survey:
    kin = system.kinematics(guess, system.prepare())
    thrust = {name: e.loads(t, kin, jnp.full_like(e.speed_max, TRIAL_SPEED)).thrust for name, e in rotor_elements(system).items()}
    gaps = [row.gap for row in rows_of(constraints, t, kin, guess.memory)]
    return _Survey(to_euler("zyx", guess.bodies.q_WB)[:, ::-1], thrust, gaps)


def set_up(
    system: System,
    guess: State,
    bodies: tuple[int, ...],
    velocity: np.ndarray,
    turn_rate: float,
    angles: np.ndarray | None,
    command: dict,
    t: float,
    supply: dict[str, np.ndarray],
    *,
    spin: bool,
    free_speed: bool,
) -> tuple[Problem, np.ndarray, np.ndarray, np.ndarray]:
    """Problem, lower and upper bounds and first start.

    Args:
        system, guess: in double precision, without ledger; the guess already has its heading.
        bodies: those with rotors, the main one first.
        angles: roll, pitch, yaw [rad] of the main body if its attitude is given.
        supply: battery voltage over nominal (k,) by rotor element.
    """  # fmt: skip
    nb, main = system.bodies.count, bodies[0]
    rotors, still = rotor_elements(system), quasi_static(system)
    memory = {name: () if name in rotors else value for name, value in guess.memory.items()}
    rest = jnp.asarray(np.zeros((nb, 3)))
    guess = State(BodyState(guess.bodies.p_WB, guess.bodies.q_WB, rest, rest), memory)
    survey = jax.tree.map(np.asarray, _survey(still, system.constraints, guess, jnp.asarray(float(t))))
    rows = len(survey.gaps)
    own = np.array(survey.angles)
    own[main, :2] = 0.0
    if angles is not None:
        own[main] = angles
    unknown = jax.tree.map(lambda x: x.position if _is_nodes(x) else x, memory, is_leaf=_is_nodes)
    size = ravel_pytree(eqx.filter(unknown, eqx.is_inexact_array))[0].size
    layout = Layout(bodies, tuple(k for k in range(nb) if k not in bodies), tuple(rotors), spin, free_speed, size, rows)
    mass = np.asarray(system.bodies.mass)
    weight = mass * max(float(system.environment.gravity), 1e-3 * 9.81)
    share = weight.sum() / len(bodies)

    scales, low_s, high_s, start_s = {}, [], [], []
    for name, e in rotors.items():
        thrust = np.maximum(survey.thrust[name], 1e-30)
        carried = np.array([sum(int(x == y) for y in _all_bodies(rotors)) for x in e.bodies])[:, None]
        hover = TRIAL_SPEED * np.sqrt(share / carried / thrust.sum(-1, keepdims=True)) * np.ones_like(thrust)
        most = np.asarray(e.speed_max) * supply.get(name, np.ones(thrust.shape[0]))[:, None]
        scale = np.where(np.isfinite(most) & (most > 0), most, 2.0 * hover)
        sound = np.asarray(e.speed_fraction) > 0
        low_s.append((np.where(sound, (np.minimum(np.asarray(e.speed_min), most) / scale) ** 2, 0.0)).ravel())
        high_s.append((np.where(sound, (most / scale) ** 2, 0.0)).ravel())
        start_s.append(((hover / scale) ** 2).ravel())
        scales[name] = jnp.asarray(scale)

    inf = np.inf
    low: list[Any] = [[0.0] if free_speed else [], [-MOST_SPIN, -MOST_DRIFT, -MOST_DRIFT] if spin else []]
    high: list[Any] = [[1.0] if free_speed else [], [MOST_SPIN, MOST_DRIFT, MOST_DRIFT] if spin else []]
    start = [[0.05] if free_speed else [], [3.0, 0.0, 0.0] if spin else []]
    for x in bodies:
        # A given attitude is a fixed unknown, so that the same compiled equations serve.
        given = list(own[x, :2]) if x == main and angles is not None else None
        low, high, start = [*low, given or [-np.pi, -MOST_PITCH]], [*high, given or [np.pi, MOST_PITCH]], [*start, given or [0.0, 0.0]]
    low += [[-inf] * 6 for _ in layout.passive_bodies]
    high += [[inf] * 6 for _ in layout.passive_bodies]
    start += [[0.0] * 6 for _ in layout.passive_bodies]
    low = [*low, *low_s, [-inf] * size, [0.0] * rows]
    high = [*high, *high_s, [inf] * size, [inf] * rows]
    start = [*start, *start_s, [0.0] * size, [0.1] * rows]
    lo, hi, z = (np.concatenate([np.asarray(part, float) for part in parts]) for parts in (low, high, start))
    problem = Problem(
        layout, still, system.constraints, guess, command, jnp.asarray(velocity), jnp.asarray(float(turn_rate)), jnp.asarray(own), scales,
        jnp.asarray(weight), jnp.asarray(length_scales(system)), jnp.ones(6 * nb + size + rows), jnp.asarray(float(t)),
    )  # fmt: skip
    return problem, lo, hi, np.clip(z, lo, hi)


def _all_bodies(rotors: dict) -> list[int]:
    return [body for e in rotors.values() for body in e.bodies]


def further_starts(layout: Layout, first: np.ndarray, low: np.ndarray, high: np.ndarray, count: int) -> list[np.ndarray]:
    """More starts: tilted forwards, then at random over growing tilts, spins and rotor speeds; always the same ones."""
    random = np.random.default_rng(20)
    at = int(layout.free_speed) + 3 * layout.spin
    angles = slice(at, at + 2 * len(layout.rotor_bodies))
    rotors = slice(at + 2 * len(layout.rotor_bodies) + 6 * len(layout.passive_bodies), len(first) - layout.memory_size - layout.rows)
    out = []
    for k in range(count):
        z = first.copy()
        if k < 2:
            z[angles] = np.tile([0.0, 0.4 * (k + 1)], len(layout.rotor_bodies))
        else:
            widest = min(1.0, k / 6)
            z[angles] = (random.uniform(-1, 1, (len(layout.rotor_bodies), 2)) * widest * [np.pi, MOST_PITCH]).ravel()
            z[rotors] = first[rotors] * random.uniform(0.2, 1.8, rotors.stop - rotors.start)
        if layout.spin:
            z[at - 3] = random.choice([-1.0, 1.0]) * random.uniform(1.0, 30.0)
        if layout.free_speed:
            z[0] = random.uniform(0.0, 0.5)
        out.append(np.clip(z, low, high))
    return out
