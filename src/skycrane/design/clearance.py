"""Certified distances between wakes, spheres, boxes and booms (problem P1 of the paper).

A body of revolution is not convex, but every part of it between two stations lies in the convex hull of its disks, and where its outline
is nowhere hollow the part *is* that hull.  So the distance of two bodies is bounded by branch and bound over pairs of parts: hulls give
lower bounds by the separating planes of :mod:`skycrane.design.convex`, points of the bodies themselves give upper bounds, and a part whose
hull is not exact is split where its outline is hollowest.  At the end every pair of parts has been excluded by a plane: nothing rests on
samples.  The wakes' ``excess`` (outline against table) is taken off the lower bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skycrane.design.convex import Gap, gap
from skycrane.design.profile import WAKE, Profile

TOLERANCE = 1e-7  # m, between the two bounds
MOST_PAIRS = 20_000


@dataclass(frozen=True)
class Sphere:
    """A ball: ``center`` (3,) m, ``radius`` m (0 for a point)."""

    center: Any
    radius: float = 0.0

    @property
    def centre(self) -> np.ndarray:
        return np.asarray(self.center, float)

    def support(self, direction: np.ndarray) -> np.ndarray:
        return self.centre  # the ball's radius is taken off the distance: a point converges at once

    @property
    def padding(self) -> float:
        return self.radius


@dataclass(frozen=True)
class Boom:
    """A round bar with round ends from ``start`` to ``end`` (3,) m, of a radius [m]."""

    start: Any
    end: Any
    radius: float = 0.0

    @property
    def centre(self) -> np.ndarray:
        return 0.5 * (np.asarray(self.start, float) + np.asarray(self.end, float))

    def support(self, direction: np.ndarray) -> np.ndarray:
        start, end = np.asarray(self.start, float), np.asarray(self.end, float)
        return start if direction @ start >= direction @ end else end

    @property
    def padding(self) -> float:
        return self.radius


@dataclass(frozen=True)
class Box:
    """A box with edges ``size`` (3,) m along the columns of ``rotation`` (3, 3), around ``center`` (3,) m."""

    center: Any
    size: Any
    rotation: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

    @property
    def centre(self) -> np.ndarray:
        return np.asarray(self.center, float)

    def support(self, direction: np.ndarray) -> np.ndarray:
        R = np.asarray(self.rotation, float)
        return self.centre + R @ (0.5 * np.asarray(self.size, float) * np.where(R.T @ direction >= 0, 1.0, -1.0))

    @property
    def padding(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Wake:
    """The stream around a rotor at ``position`` (3,) m that pushes along ``direction`` (3,)."""

    position: Any
    direction: Any
    profile: Profile = WAKE

    @cached_property
    def axis(self) -> np.ndarray:
        F = np.asarray(self.direction, float)
        return -F / np.linalg.norm(F)

    @cached_property
    def origin(self) -> np.ndarray:
        return np.asarray(self.position, float)


@dataclass(frozen=True)
class Part:
    """The convex hull of a wake between two of its stations, ``first`` and ``last``."""

    wake: Wake
    first: int
    last: int

    @cached_property
    def _hull(self) -> tuple[np.ndarray, float, int]:
        """Stations (k, 2) on the upper hull, how far the outline lies below it at most [m], and where."""
        s = self.wake.profile.stations[self.first : self.last + 1]
        keep = [0]
        for k in range(1, len(s)):
            while len(keep) > 1:
                (xa, ra), (xb, rb) = s[keep[-2]], s[keep[-1]]
                if (rb - ra) * (s[k, 0] - xa) <= (s[k, 1] - ra) * (xb - xa):
                    keep.pop()
                else:
                    break
            keep.append(k)
        hollow = np.interp(s[:, 0], s[keep, 0], s[keep, 1]) - s[:, 1]
        deepest = int(np.argmax(hollow))
        return s[keep], float(hollow[deepest]), self.first + deepest

    @property
    def hollow(self) -> float:
        """How far [m] the hull stands out from the outline at most."""
        return self._hull[1]

    @property
    def centre(self) -> np.ndarray:
        x = self.wake.profile.stations
        return self.wake.origin + 0.5 * (x[self.first, 0] + x[self.last, 0]) * self.wake.axis

    @property
    def padding(self) -> float:
        return self.wake.profile.excess

    def support(self, direction: np.ndarray) -> np.ndarray:
        along = float(direction @ self.wake.axis)
        across = direction - along * self.wake.axis
        size = float(np.linalg.norm(across))
        x, r = self._hull[0].T
        k = int(np.argmax(along * x + size * r))
        return self.wake.origin + x[k] * self.wake.axis + (r[k] / size * across if size > 1e-300 else 0.0)

    def split(self) -> tuple[Part, Part]:
        """Cut where the outline is hollowest."""
        at = min(max(self._hull[2], self.first + 1), self.last - 1)
        return Part(self.wake, self.first, at), Part(self.wake, at, self.last)

    def inside(self, point: np.ndarray) -> np.ndarray:
        """The point of the hull pulled towards the axis until it belongs to the wake."""
        offset = point - self.wake.origin
        x = float(offset @ self.wake.axis)
        radial = offset - x * self.wake.axis
        rho = float(np.linalg.norm(radial))
        most = float(self.wake.profile.at(np.array(x)))
        return point if rho <= most else point - (1 - most / rho) * radial


Solid = Sphere | Boom | Box | Wake


def distance(a: Solid, b: Solid, tolerance: float = TOLERANCE, enough: float = np.inf) -> Gap:
    """Certified bounds of the distance [m] between two bodies; 0 where they meet.

    ``lower`` allows for the excess of the profiles. Stops early once the distance is known to be ``enough`` or more.

    Raises:
        RuntimeError: where more than 20,000 pairs of parts are not enough for the tolerance.
    """
    whole_a, whole_b = _whole(a), _whole(b)
    padding = whole_a.padding + whole_b.padding
    first = gap(whole_a, whole_b, 0.1 * tolerance)
    best = Gap(0.0, *_real(whole_a, whole_b, first))
    queue = [(first.lower, 0, whole_a, whole_b, first)]
    count = 1
    excess = sum(body.padding for body in (whole_a, whole_b) if isinstance(body, Part))
    radius = padding - excess
    settled = np.inf
    while queue:
        lower, _, part_a, part_b, found = heapq.heappop(queue)
        if lower >= best.upper - tolerance or lower - padding >= enough or best.upper <= radius:
            heapq.heappush(queue, (lower, 0, part_a, part_b, found))
            break
        split_a = isinstance(part_a, Part) and part_a.hollow > 0 and part_a.last - part_a.first > 1
        split_b = isinstance(part_b, Part) and part_b.hollow > 0 and part_b.last - part_b.first > 1
        if split_a and split_b:
            split_a = part_a.hollow >= part_b.hollow
        elif not split_a and not split_b:
            settled = min(settled, lower)  # both hulls are exact: there is nothing to split
            continue
        pairs = [(p, part_b) for p in part_a.split()] if split_a else [(part_a, p) for p in part_b.split()]
        for p, q in pairs:
            enclosed = gap(p, q, 0.1 * tolerance, enough=best.upper)
            real = _real(p, q, enclosed)
            if real[0] < best.upper:
                best = Gap(0.0, *real)
            count += 1
            if enclosed.lower < best.upper - tolerance:
                heapq.heappush(queue, (enclosed.lower, count, p, q, enclosed))
        if count > MOST_PAIRS:
            raise RuntimeError(f"no distance to within {tolerance:g} m from {MOST_PAIRS} pairs of parts")
    lower = min([best.upper - tolerance, settled, *(item[0] for item in queue[:1])])
    return Gap(max(lower - padding, 0.0), max(best.upper - radius, 0.0), best.first, best.second)


def _whole(body: Solid):
    return Part(body, 0, len(body.profile.x) - 1) if isinstance(body, Wake) else body


def _real(a, b, found: Gap) -> tuple[float, np.ndarray, np.ndarray]:
    """The points of two hulls moved into the bodies themselves, and their distance."""
    p = a.inside(found.first) if isinstance(a, Part) else found.first
    q = b.inside(found.second) if isinstance(b, Part) else found.second
    return float(np.linalg.norm(p - q)), p, q


def clearances(bodies: Sequence[Solid], others: Sequence[Solid] | None = None) -> dict[tuple[int, int], Gap]:
    """Distances between all pairs of ``bodies``, or of each with each of ``others``, by their indices."""
    if others is None:
        return {(i, j): distance(bodies[i], bodies[j]) for i in range(len(bodies)) for j in range(i)}
    return {(i, j): distance(a, b) for i, a in enumerate(bodies) for j, b in enumerate(others)}
