"""What controllers of a team share: several models as one row of agents, load shares, and from wanted forces to commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.control.attitude import attitude_along, geometric_acceleration
from skycrane.control.model import VehicleModel, VehicleState
from skycrane.core.controller import Measurement
from skycrane.math.components import Vec3


class Agents(eqx.Module):
    """The vehicles of a team as agents 0 to n - 1, in the order of the groups.

    ``groups``: models of vehicles with equally many rotors each; ``level`` (static), one for each group: whether its vehicles push every
    way and stay level, instead of tilting to move.
    """

    groups: tuple[VehicleModel, ...]
    level: tuple[bool, ...] = eqx.field(static=True)

    @property
    def bodies(self) -> tuple[int, ...]:
        return tuple(b for g in self.groups for b in g.bodies)

    @property
    def mass(self) -> Array:
        return jnp.concatenate([jnp.atleast_1d(g.mass) for g in self.groups])

    def read(self, measurement: Measurement) -> VehicleState:
        """State of all agents, components (n,)."""
        return _joined([g.read(measurement) for g in self.groups])

    def split(self, tree: Any) -> list[Any]:
        """Trees of components (n,) taken apart by group."""
        out, first = [], 0
        for g in self.groups:
            k = len(g.bodies)
            out.append(_sliced(tree, first, first + k))
            first += k
        return out

    def command(self, state: VehicleState, force_W: Vec3, moment_B: Vec3) -> dict[str, Array]:
        """Rotor speeds for wanted forces [N] in world axes and moments [N m] in body axes; of vehicles that tilt, the force along body
        z."""
        out: dict[str, Array] = {}
        for g, level, (R_WB, f_W, m_B) in zip(self.groups, self.level, self.split((state.R_WB, force_W, moment_B)), strict=True):
            f_B = R_WB.T @ f_W
            zero = jnp.zeros_like(f_B.z)
            out.update(g.command(g.allocation(f_B if level else Vec3(zero, zero, f_B.z), m_B)))
        return out

    def moments(self, state: VehicleState, force_W: Vec3, attitude_gain: Vec3, rate_gain: Vec3) -> Vec3:
        """Moments [N m] of the geometric attitude law towards the force (of vehicles that tilt), heading along world x."""
        n = len(self.bodies)
        ones, zero = jnp.ones(n, force_W.x.dtype), jnp.zeros(n, force_W.x.dtype)
        level = jnp.asarray(np.concatenate([[flat] * len(g.bodies) for g, flat in zip(self.groups, self.level, strict=True)]))
        up = Vec3(*(jnp.where(level, a, b) for a, b in zip((zero, zero, ones), force_W.components(), strict=True)))
        still = Vec3(zero, zero, zero)
        alpha = geometric_acceleration(state.R_WB, state.w_B, attitude_along(up, Vec3(ones, zero, zero)), still, attitude_gain, rate_gain)
        pieces = self.split((state.w_B, alpha))
        return _joined([g.moment(w_B, a_B) for g, (w_B, a_B) in zip(self.groups, pieces, strict=True)])


def _joined(trees: Sequence[Any]) -> Any:
    import jax

    if len(trees) == 1:
        return trees[0]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *trees)


def _sliced(tree: Any, first: int, last: int) -> Any:
    import jax

    return jax.tree.map(lambda x: x[first:last], tree)


def load_shares(attachment: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Share of a load's weight that each of n vertical cables carries, least squares where the equations leave a choice.

    ``sum share = 1`` and ``sum share_i (d_i - c)_xy = 0`` (moments about the centre of mass c); attachments (n, 3) m in load axes.
    """
    d = np.asarray(attachment, dtype=float) - np.asarray(center, dtype=float)
    A = np.vstack([np.ones(len(d)), d[:, 0], d[:, 1]])
    return np.linalg.lstsq(A, np.array([1.0, 0.0, 0.0]), rcond=None)[0]


def laplacian(count: int, edges: Sequence[tuple[int, int]], weights: Sequence[float] | None = None) -> np.ndarray:
    """Graph Laplacian (n, n) of undirected edges between agents 0 to n - 1.

    Raises:
        ValueError: for an edge to an agent that does not exist, or from one to itself.
    """
    out = np.zeros((count, count))
    for (i, j), w in zip(edges, weights or [1.0] * len(edges), strict=True):
        if not (0 <= i < count and 0 <= j < count and i != j):
            raise ValueError(f"edge ({i}, {j}) does not join two of {count} agents")
        out[i, i] += w
        out[j, j] += w
        out[i, j] -= w
        out[j, i] -= w
    return out


def ring_edges(count: int) -> list[tuple[int, int]]:
    """Edges of the ring 0-1-...-(n-1)-0; a single edge for two agents, none for one."""
    return [] if count < 2 else [(0, 1)] if count == 2 else [(i, (i + 1) % count) for i in range(count)]
