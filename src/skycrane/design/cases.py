"""What an allocation must do on any layout, tried on a design: the flaws that other people's allocations were reported to have.

Every case compares the controllers' own allocation (:mod:`skycrane.control.allocation`), in float64, with plain linear algebra on a
map that is built here from places and directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import equinox as eqx
import jax
import numpy as np

from skycrane.control.allocation import AXES, Allocation
from skycrane.control.reach import analyse
from skycrane.design.machine import effectiveness
from skycrane.design.problem import Problem
from skycrane.design.verify import ARM, Verified
from skycrane.environment.environment import GRAVITY
from skycrane.math.components import Vec3

SPEED = 1837.83  # rad/s at full thrust
PART = 0.1  # of what can be had in the worst direction
CLOSE = 1e-4  # of the thrust of all rotors: where some are at their limits, the allocation's regularisation costs the yaw moment most
SCALE = np.array([1.0, 1.0, 1.0, ARM, ARM, ARM])


@dataclass(frozen=True)
class Case:
    """``number`` and ``name`` of a case, whether it ``holds``, and what was ``found``."""

    number: int
    name: str
    holds: bool
    found: str


@eqx.filter_jit
def _allocate(allocation: Allocation, demand: jax.Array):
    force, moment = Vec3.of(demand[:, :3]), Vec3.of(demand[:, 3:])
    done = allocation(force, moment)
    problem = allocation.problem(force, moment)
    unmet = jax.numpy.concatenate([done.unmet_force_B.array(), done.unmet_moment_B.array()], -1)
    return done.thrust, done.speed, unmet, problem.scale * problem.unlimited()


def allocation_cases(problem: Problem, position: np.ndarray, direction: np.ndarray, facts: Verified, seed: int = 0) -> list[Case]:
    """Cases 24 to 30 of a layout (n, 3), (n, 3) that was verified."""
    n, most = problem.rotors, problem.thrust_max
    rng = np.random.default_rng(seed)
    F = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    B = effectiveness(position, F, problem.spin, problem.moment_ratio, facts.com)
    hover = np.array([0.0, 0.0, facts.mass * GRAVITY, 0.0, 0.0, 0.0])
    close = CLOSE * n * most
    spread = PART * np.repeat([max(facts.force_radius, 0.0), max(facts.torque_radius, 0.0)], 3)
    near = [hover, *(hover + s * spread * e for e in np.eye(6) for s in (1, -1))]
    far = [2 * u * _support(B, u, most) / (u @ u) for u in rng.normal(size=(12, 6)) / SCALE]
    failed: list[tuple[int, ...]] = [(k,) for k in range(n)] + [min(combinations(range(n), 2), key=lambda p: _cosine(*position[list(p)]))]
    lanes = [((), w) for w in (*near, *far)] + [(f, np.zeros(6)) for f in failed] + [(f, hover) for f in failed]
    available = np.ones((len(lanes), n))
    for lane, (idle, _) in enumerate(lanes):
        available[lane, list(idle)] = 0.0
    demand = np.array([w for _, w in lanes])
    k_F = most / SPEED**2
    with jax.enable_x64(True):
        allocation = Allocation.create(
            np.broadcast_to(position, (len(lanes), n, 3)), F, problem.spin, k_F, problem.moment_ratio * k_F, speed_max=SPEED,
            center_B=facts.com, available=available,
        )  # fmt: skip
        first = [np.asarray(v) for v in _allocate(allocation, jax.numpy.asarray(demand))]
        weaker = eqx.tree_at(lambda a: a.thrust_max, allocation, 0.5 * allocation.thrust_max)
        halved = np.asarray(_allocate(weaker, jax.numpy.asarray(demand))[0])
        again = [np.asarray(v) for v in _allocate(allocation, jax.numpy.asarray(demand))]
        lost = {len(f): analyse(allocation, len(near) + len(far) + failed.index(f)) for f in failed}
        reach = analyse(allocation, 0)
    thrust, speed, unmet, unlimited = first
    off = np.abs((demand - thrust @ B.T) / SCALE)
    at_near, at_far = slice(0, len(near)), slice(len(near), len(near) + len(far))
    stopped, idle_lanes = slice(at_far.stop, None), slice(at_far.stop, at_far.stop + len(failed))
    zero, obeyed = float(np.abs(thrust[idle_lanes]).max()), float(np.abs(thrust[stopped] * (1 - available[stopped])).max())
    inverse = float(np.abs(unlimited[at_near] - demand[at_near] @ np.linalg.pinv(B).T).max())
    turned = float(np.abs((thrust[7 : len(near)] - thrust[0]) @ B[:3].T).max())
    inside = bool((thrust >= 0).all() and (thrust <= available * most * (1 + 1e-9)).all())
    limits = int(((thrust[at_far] <= 1e-6 * most) | (thrust[at_far] >= (1 - 1e-6) * most)).sum(1).min())
    reported = float(np.abs((unmet[at_far] - (demand - thrust @ B.T)[at_far]) / SCALE).max())
    sound = all(np.isrealobj(v) and np.isfinite(v).all() for v in first) and bool((speed >= 0).all())
    obeys = bool((halved <= 0.5 * available * most * (1 + 1e-9)).all())
    fresh = obeys and all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    pair = failed[-1]
    gone = lost[2].dropped
    said = "; ".join(f"{axis} ({why})" for axis, why in gone.items()) or "none"
    rank = int(np.linalg.matrix_rank(B / SCALE[:, None], tol=1e-6))
    given = float(off[at_near].max())
    cases = [
        Case(24, f"{n} rotors give level hover and a tenth more on any axis", given < close, f"off by {given:.1e} N"),
        Case(
            25, "with rotors stopped these rest, no demand gives no thrust, and what is lost is named",
            zero == 0.0 and obeyed == 0.0 and len(gone) >= 6 - (n - 2) and len(lost[2].kept) + len(gone) == len(AXES),
            f"rotors {pair[0] + 1} and {pair[1] + 1} stopped, lost: {said}",
        ),
        Case(26, "its inverse is the pseudo-inverse of the map", inverse < close, f"largest difference {inverse:.1e} N"),
        Case(27, "a moment alone changes the total force by nothing", turned < close, f"changes it by {turned:.1e} N"),
        Case(
            28, "twice what can be had: all but five rotors or fewer at a limit, what is missing reported",
            inside and limits >= n - 5 and reported < 1e-9 and bool(off[at_far].max(1).min() > close),
            f"{limits} or more of {n} at a limit",
        ),
        Case(
            29, "every direction of force and moment: rank 6 and thrusts, none of them 0, that cancel",
            rank == 6 and reach.omnidirectional, f"rank {rank}, margin {reach.positive_margin:.3g}",
        ),
        Case(30, "no negative, complex or stale numbers", inside and sound and fresh, f"{3 * len(lanes)} demands, limits changed between"),
    ]  # fmt: skip
    return [replace(case, holds=bool(case.holds)) for case in cases]  # no types of NumPy: it is written as JSON


def _support(B: np.ndarray, direction: np.ndarray, most: float) -> float:
    return float(most * np.maximum(direction @ B, 0.0).sum())


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-12))
