"""Which way up: where nothing ties a layout to the vertical, the attitude from which it can push hardest in its worst direction.

Size, condition number, wakes and balance are the same however a layout is turned; the force that is left beside the weight is not.
With the facets ``a . w <= h`` of the attainable set about the centre of mass, a_f the force part of a normal and d the unit vector that
is to point up, the force in the worst direction is

    min over the facets of (h - m g a_f . d) / |a_f|,

and the best d is looked for among points spread over the sphere, then among ever closer ones around the best.
"""

from __future__ import annotations

import numpy as np

from skycrane.analysis.zonotope import Zonotope
from skycrane.design.machine import effectiveness, masses
from skycrane.design.problem import Problem
from skycrane.environment.environment import GRAVITY

SPREAD, AROUND, ROUNDS = 2000, 200, 8
ANY_WAY_UP = frozenset({"size", "condition", "sigma", "mass"})


def turns_freely(problem: Problem) -> bool:
    """Whether the problem asks for nothing that changes when the layout is turned about the origin."""
    tied = problem.bodies or problem.fixed or problem.mirrored or problem.tasks or problem.one_failed or problem.box is not None
    return problem.objective in ANY_WAY_UP and not tied


def levelled(problem: Problem, x: np.ndarray) -> np.ndarray:
    """The unknowns of a layout, turned so that the force in the worst direction of level hover is largest; ``x`` where it is not free."""
    if not turns_freely(problem):
        return x
    at = problem.layout
    r, F, tip = at.layout_of(x)
    m = masses(problem.parts, r)
    B = effectiveness(r, F, problem.spin, problem.moment_ratio, m.com)
    normals, offsets = Zonotope(B, np.zeros(at.n), np.full(at.n, problem.thrust_max)).half_spaces
    length = np.linalg.norm(normals[:, :3], axis=1)
    facet = length > 1e-9 * length.max()
    up = best_direction(normals[facet, :3] / length[facet, None], offsets[facet] / length[facet], m.mass * GRAVITY)
    R = turn_to_z(up)
    turned = x.copy()
    turned[at.r], turned[at.f], turned[at.e] = (r @ R.T).ravel(), (F @ R.T).ravel(), R @ tip
    return turned


def best_direction(normals: np.ndarray, offsets: np.ndarray, weight: float) -> np.ndarray:
    """The unit vector d (3,) with the largest ``min (offsets - weight normals @ d)``."""
    k = np.arange(SPREAD) + 0.5
    z, angle = 1 - 2 * k / SPREAD, np.pi * (1 + 5**0.5) * k  # points of a spiral, evenly spread
    points = np.stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z], -1)
    rng, reach = np.random.default_rng(0), 0.06
    for _ in range(ROUNDS + 1):
        best = points[np.argmax((offsets - weight * points @ normals.T).min(1))]
        points = np.concatenate([best[None], best + reach * rng.normal(size=(AROUND, 3))])
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        reach *= 0.5
    return best


def turn_to_z(up: np.ndarray) -> np.ndarray:
    """The shortest rotation (3, 3) that takes a unit vector to the z axis."""
    x, y, z = up
    if z < -1 + 1e-9:
        return np.diag([1.0, -1.0, -1.0])
    # Rodrigues' formula about up x e_z.
    K = np.array([[0, 0, -x], [0, 0, -y], [x, y, 0]], float)
    return np.eye(3) + K + K @ K / (1 + z)
