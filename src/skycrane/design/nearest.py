"""Distances between wakes for the optimiser: fast, with gradients, not certified (:mod:`skycrane.design.clearance` certifies).

Each wake is cut in two at its middle, and every half of one is compared with every half of the other, because the shapes have two
bulges: near where the distance jumps from one to the other both are constraints of their own, each smooth.  For a pair of halves

    d = min {sd(p) : p on the surface of the first},   sd = signed distance to the second, negative inside

p runs over the generating line (front or back face, and outline) and round the axis: a grid, then finer grids round its best point.
The gradient is that of the two nearest points held in their bodies (the envelope theorem): with n the unit vector from q on j to p on i,
p = r_i - x_i F_i + rho_i u_i and q likewise,

    dd = n . dp - n . dq,     dp = dr_i - x_i dF_i - rho_i (u_i . dF_i) F_i
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.design.profile import Profile

LINE, ROUND = 9, 14  # first grid: along the generating line and round the axis
ZOOM, LEVELS, SHRINK = 5, 9, 0.45  # finer grids: points a side, how many of them, and how much smaller each is
FACE, CURVE = 64, 193  # rows of the fine generating line: its face and its outline
SEGMENTS = 15  # straight pieces of the outline of a half


class Foot(NamedTuple):
    """A point of a body of revolution."""

    x: Array
    rho: Array
    u: Array


class Nearest(NamedTuple):
    """The nearest points of w pairs of halves, each in its own body: p = r - x F + rho u, ``u`` (w, 3) a unit vector perpendicular to F,
    and ``normal`` (w, 3) from the second to the first; ``distance`` (w,) m."""

    first: Foot
    second: Foot
    normal: Array
    distance: Array


def halves(profile: Profile) -> tuple[np.ndarray, np.ndarray]:
    """Generating lines (2, k, 2) and outlines (2, m, 2) of the two halves."""
    x = profile.sampled(401)
    middle = profile.start + 0.5 * (profile.end - profile.start)
    lines, outlines = [], []
    for front in (True, False):
        part = x[x[:, 0] < middle] if front else x[x[:, 0] > middle]
        edge = np.array([[middle, profile.at(np.array(middle))]])
        part = np.concatenate([part, edge]) if front else np.concatenate([edge, part])
        face = np.linspace(0.0, 1.0, FACE, endpoint=False)[:, None]
        rim = part[0] if front else part[-1]
        curve = _even(part, CURVE)
        # The rim is a row of the table, so that it is met exactly.
        lines.append(
            np.concatenate(
                [face * rim + (1 - face) * [rim[0], 0.0], curve]
                if front
                else [curve, (face * [rim[0], 0.0] + (1 - face) * rim)[1:], [[rim[0], 0.0]]]
            )
        )
        outline = _even(part, SEGMENTS)
        outlines.append(np.concatenate([[[profile.start, 0.0]], outline]) if front else np.concatenate([outline, [[profile.end, 0.0]]]))
    return np.stack(lines), np.stack(outlines)


def _even(points: np.ndarray, count: int) -> np.ndarray:
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    at = np.linspace(0.0, length[-1], count)
    return np.stack([np.interp(at, length, points[:, k]) for k in (0, 1)], -1)


def _frame(F: Array) -> tuple[Array, Array]:
    """Two unit vectors (..., 3) perpendicular to F and to each other."""
    helper = jnp.where(jnp.abs(F[..., :1]) < 0.6, jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    a = jnp.cross(F, helper)
    a = a / jnp.sqrt((a * a).sum(-1, keepdims=True))
    return a, jnp.cross(F, a)


def _interpolate(table: Array, s: Array) -> Array:
    """Rows of table (w, k, 2) at s (w, m) in 0..1."""
    k = table.shape[1]
    at = jnp.clip(s, 0.0, 1.0) * (k - 1)
    low = jnp.clip(at.astype(int), 0, k - 2)
    part = (at - low)[..., None]
    below = jnp.take_along_axis(table, low[..., None], 1)
    above = jnp.take_along_axis(table, low[..., None] + 1, 1)
    return below + part * (above - below)


def _to_outline(x: Array, rho: Array, outline: Array) -> Array:
    """Signed distance (w, m) from points x, rho (w, m) to halves with outlines (w, k, 2)."""
    a, b = outline[:, :-1], outline[:, 1:]
    dx, dr = (b - a)[..., 0], (b - a)[..., 1]
    # For each segment c: nearest point of it.
    px, pr = x[..., None] - a[:, None, :, 0], rho[..., None] - a[:, None, :, 1]
    t = jnp.clip((px * dx[:, None] + pr * dr[:, None]) / (dx * dx + dr * dr)[:, None], 0.0, 1.0)
    square = ((px - t * dx[:, None]) ** 2 + (pr - t * dr[:, None]) ** 2).min(-1)
    # Inside the half: beyond no end and below the outline (a hat function for each of its stations would do; the crossing test is cheaper).
    spans = (jnp.minimum(a[..., 0], b[..., 0])[:, None] <= x[..., None]) & (x[..., None] < jnp.maximum(a[..., 0], b[..., 0])[:, None])
    flat = jnp.abs(dx) < 1e-12
    slope = dr / jnp.where(flat, 1.0, dx)
    height = jnp.where(spans & ~flat[:, None], a[:, None, :, 1] + slope[:, None] * px, -1.0).max(-1)
    inside = rho < height
    # The cut itself is no surface: from there the way out is past the other half; outside of it the cut's face counts.
    cut_front = outline[:, 0, 1] == 0.0
    cut = jnp.where(cut_front, outline[:, -1, 0], outline[:, 0, 0])[:, None]
    cut_radius = jnp.where(cut_front, outline[:, -1, 1], outline[:, 0, 1])[:, None]
    to_cut = (x - cut) ** 2 + jnp.maximum(rho - cut_radius, 0.0) ** 2
    return jnp.where(inside, -jnp.sqrt(square + 1e-30), jnp.sqrt(jnp.minimum(square, to_cut) + 1e-30))


def search(r: Array, F: Array, line: Array, value: Callable[[Array], Array]) -> Foot:
    """The points of w generating lines (w, k, 2), turned round their axes, with the smallest ``value`` of p (w, m, 3) -> (w, m)."""
    w = len(r)
    a, b = _frame(F)

    def best(s: Array, angle: Array) -> tuple[Array, Array]:
        at = _interpolate(line, s)
        u = jnp.cos(angle)[..., None] * a[:, None] + jnp.sin(angle)[..., None] * b[:, None]
        k = jnp.argmin(value(r[:, None] - at[..., :1] * F[:, None] + at[..., 1:] * u), 1)[:, None]
        return jnp.take_along_axis(s, k, 1), jnp.take_along_axis(angle, k, 1)

    def grid(s: Array, angle: Array) -> tuple[Array, Array]:
        s, angle = jnp.broadcast_to(s[:, None], (len(s), len(angle))), jnp.broadcast_to(angle, (len(s), len(angle)))
        return jnp.broadcast_to(s.ravel(), (w, s.size)), jnp.broadcast_to(angle.ravel(), (w, s.size))

    s, angle = best(*grid(jnp.linspace(0.0, 1.0, LINE), jnp.arange(ROUND) * (2 * jnp.pi / ROUND)))
    ds, da = grid(jnp.linspace(-1.0, 1.0, ZOOM), jnp.linspace(-1.0, 1.0, ZOOM))

    def zoom(carry, size):
        s, angle = carry
        return best(jnp.clip(s + ds * size / (LINE - 1), 0.0, 1.0), angle + da * size * (2 * jnp.pi / ROUND)), None

    (s, angle), _ = jax.lax.scan(zoom, (s, angle), SHRINK ** jnp.arange(LEVELS))
    at = _interpolate(line, s)[:, 0]
    return Foot(at[:, 0], at[:, 1], jnp.cos(angle) * a + jnp.sin(angle) * b)


def cylindrical(p: Array, r: Array, F: Array) -> tuple[Array, Array]:
    """x and rho of points p in the axes of rotors at r that push along F; shapes broadcast."""
    rel = p - r
    x = -(rel * F).sum(-1)
    radial = rel + x[..., None] * F
    return x, jnp.sqrt((radial * radial).sum(-1) + 1e-30)


def nearest(r_i: Array, F_i: Array, r_j: Array, F_j: Array, line_i: Array, line_j: Array, outline_j: Array) -> Nearest:
    """Nearest points of w pairs of halves: places r and unit directions F (w, 3), tables (w, k, 2)."""
    first = search(r_i, F_i, line_i, lambda p: _to_outline(*cylindrical(p, r_j[:, None], F_j[:, None]), outline_j))
    p = point_of(first, r_i, F_i)
    second, normal, distance = foot_of(p, r_j, F_j, line_j)
    return Nearest(first, second, normal, distance)


def foot_of(p: Array, r: Array, F: Array, line: Array) -> tuple[Foot, Array, Array]:
    """For points p (w, 3): the nearest point of a half each, unit vector (w, 3) from there outwards, and signed distance (w,)."""
    x, rho = cylindrical(p, r, F)
    foot, normal, distance = _foot(x, rho, line)
    radial = p - r + x[:, None] * F
    u = radial / jnp.maximum(rho, 1e-12)[:, None]
    return Foot(foot[:, 0], foot[:, 1], u), -normal[:, :1] * F + normal[:, 1:] * u, distance


def _foot(x: Array, rho: Array, line: Array) -> tuple[Array, Array, Array]:
    """Nearest point (w, 2), unit vector (w, 2) from it outwards through the point x, rho (w,), and signed distance, on the fine line."""
    a, b = line[:, :-1], line[:, 1:]
    d = b - a
    p = jnp.stack([x, rho], -1)
    to = p[:, None] - a
    t = jnp.clip((to * d).sum(-1) / (d * d).sum(-1), 0.0, 1.0)
    q = a + t[..., None] * d
    square = ((p[:, None] - q) ** 2).sum(-1)
    k = jnp.argmin(square, 1)
    take = lambda v: jnp.take_along_axis(v, k[:, None, None], 1)[:, 0]  # noqa: E731
    foot, tangent = take(q), take(d)
    sign = jnp.sign(_to_outline(x[:, None], rho[:, None], line))[:, 0]
    # Outside, the face of the cut may be nearer.
    front = line[:, 0, 1] == 0.0
    end = jnp.where(front[:, None], line[:, -1], line[:, 0])
    cut = jnp.stack([end[:, 0], jnp.minimum(rho, end[:, 1])], -1)
    nearer = (sign > 0) & (((p - cut) ** 2).sum(-1) < square.min(1))
    foot = jnp.where(nearer[:, None], cut, foot)
    apart = p - foot
    size = jnp.sqrt((apart * apart).sum(-1) + 1e-30)
    outward = jnp.stack([-tangent[:, 1], tangent[:, 0]], -1) / jnp.sqrt((tangent * tangent).sum(-1))[:, None]
    normal = jnp.where((size > 1e-7)[:, None], sign[:, None] * apart / size[:, None], outward)
    return foot, normal, sign * size


def point_of(foot: Foot, r: Array, F: Array) -> Array:
    """Where a foot is (w, 3), with derivatives: ``u`` follows F as little as it can."""
    u = foot.u - (foot.u * F).sum(-1, keepdims=True) * F
    u = u / jnp.sqrt((u * u).sum(-1, keepdims=True))
    return r - foot.x[:, None] * F + foot.rho[:, None] * u
