"""How fast cables are: the bound that limits the step of an explicit integrator.

The fastest motion of a taut chain is along it.  With all segments taut it obeys ``M x'' + C x' + K x = 0`` on a line, M of the nodes and
of the ends; its eigenvalues are those of the companion matrix.  An end has the largest mobility that its point has in any direction,
times the number of cable ends on that body, which bounds every configuration of several cables on one body.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skycrane.core.chain import WORLD


def fastest_rate(cables: Any, prepared: Any) -> float:
    """Largest modulus [1/s] of the eigenvalues of any of the cables along itself."""
    ends = cables.upper + cables.lower
    rates = []
    k = np.shape(cables.length)[-1]
    stiffness, damping, node_mass = (np.asarray(x, dtype=float) for x in (cables.stiffness, cables.damping, cables.node_mass))
    for i in range(k):
        mobility = [
            0.0 if body == WORLD else ends.count(body) * _mobility(prepared, body, np.asarray(point[i], dtype=float))
            for body, point in ((cables.upper[i], cables.upper_B), (cables.lower[i], cables.lower_B))
        ]
        inverse = np.array([mobility[0], *(1.0 / node_mass[:, i]), mobility[1]])
        rates.append(_chain_rate(inverse, stiffness[:, i], damping[:, i]))
    return float(max(rates))


def other_rate(cables: Any) -> float:
    """Bound [1/s] of bending and of the ground's bed, 0 where there is neither."""
    rates = [0.0]
    length, node_mass = np.asarray(cables.length, dtype=float), np.asarray(cables.node_mass, dtype=float)
    if cables.bending is not None and len(node_mass):
        rates.append(float(np.sqrt(16.0 * np.asarray(cables.bending) / (length.min(0) ** 3 * node_mass.min(0))).max()))
    if cables.ground is not None and len(node_mass):
        g = cables.ground
        rates += [float(g.rate), 2.0 * 9.81 * float(g.friction) / float(g.slip_speed)]
    return max(rates)


def _chain_rate(inverse_mass: np.ndarray, stiffness: np.ndarray, damping: np.ndarray) -> float:
    n = len(inverse_mass)

    def matrix(each: np.ndarray) -> np.ndarray:
        difference = np.diff(np.eye(n), axis=0)
        return inverse_mass[:, None] * (difference.T * each) @ difference

    companion = np.block([[np.zeros((n, n)), np.eye(n)], [-matrix(stiffness), -matrix(damping)]])
    return float(np.abs(np.linalg.eigvals(companion)).max())


def _mobility(prepared: Any, body: int, point_B: np.ndarray) -> float:
    """Largest acceleration of a point of a body for a unit force there [1/kg]."""
    x, y, z = point_B
    arm = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    G = np.hstack([np.eye(3), -arm])  # velocity of the point from (v, w), body axes
    if prepared.inverse is None:
        moments = [float(np.asarray(c)[body]) for c in prepared.moments.components()]
        inverse = np.diag([1.0 / float(prepared.mass[body])] * 3 + [1.0 / m for m in moments])
    else:
        inverse = np.block([[np.asarray(block.array())[body] for block in row] for row in prepared.inverse])
    return float(np.linalg.eigvalsh(G @ inverse @ G.T).max())
