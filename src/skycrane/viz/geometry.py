"""The little mathematics that the viewer needs, on NumPy arrays.

Quaternions are scalar first and map body axes to world axes; a trailing axis of 3 or 4 holds the components.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def bracket(time: Array, at: Array) -> tuple[NDArray[np.intp], Array]:
    """Index of the sample before each time and the fraction of the interval passed, both of shape (N,).

    Times outside the record are clamped to it; a repeated sample time counts as a jump, not as an interval.
    """
    if len(time) == 1:
        return np.zeros(len(at), dtype=np.intp), np.zeros(len(at))
    before = np.clip(np.searchsorted(time, at, side="right") - 1, 0, len(time) - 2)
    width = time[before + 1] - time[before]
    fraction = np.where(width > 0.0, (at - time[before]) / np.where(width > 0.0, width, 1.0), 1.0)
    return before, np.clip(fraction, 0.0, 1.0)


def interpolate(time: Array, values: Array, at: Array) -> Array:
    """Linear interpolation of values (T, ...) at times (N,): shape (N, ...). NaN spreads to its neighbours."""
    before, fraction = bracket(time, at)
    after = np.minimum(before + 1, len(time) - 1)
    weight = fraction.reshape((-1,) + (1,) * (values.ndim - 1))
    # `where` at the ends: a NaN on the far side of an interval must not leak through a weight of zero.
    blend = values[before] * (1.0 - weight) + values[after] * weight
    return np.where(weight == 0.0, values[before], np.where(weight == 1.0, values[after], blend))


def slerp(time: Array, q: Array, at: Array) -> Array:
    """Spherical interpolation of unit quaternions (T, ..., 4) at times (N,), by the shorter way: (N, ..., 4)."""
    before, fraction = bracket(time, at)
    after = np.minimum(before + 1, len(time) - 1)
    weight = fraction.reshape((-1,) + (1,) * (q.ndim - 1))
    start = q[before] / np.linalg.norm(q[before], axis=-1, keepdims=True)
    end = q[after] / np.linalg.norm(q[after], axis=-1, keepdims=True)
    cosine = np.sum(start * end, axis=-1, keepdims=True)
    end = np.where(cosine < 0.0, -end, end)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    sine = np.sin(angle)
    # Below 1e-6 rad the ratio of sines is the linear weight to machine precision.
    small = angle < 1e-6
    safe = np.where(small, 1.0, sine)
    a = np.where(small, 1.0 - weight, np.sin((1.0 - weight) * angle) / safe)
    b = np.where(small, weight, np.sin(weight * angle) / safe)
    blended = a * start + b * end
    return blended / np.linalg.norm(blended, axis=-1, keepdims=True)


def euler_zyx(q: Array) -> Array:
    """Roll, pitch and yaw in rad, shape (..., 3), of quaternions (..., 4): R_WB = Rz(yaw) Ry(pitch) Rx(roll)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.stack([roll, pitch, yaw], axis=-1)


def z_axis_to(direction: ArrayLike) -> Array:
    """Unit quaternion (4,) of the shortest rotation from the z axis to `direction` (3,), which need not be unit."""
    x, y, z = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    if z < -1.0 + 1e-12:
        return np.array([0.0, 1.0, 0.0, 0.0])
    q = np.array([1.0 + z, -y, x, 0.0])
    return q / np.linalg.norm(q)


def shape_radius(shape: Mapping[str, Any]) -> float:
    """Radius in m of the sphere about the body's reference point that holds a scene shape."""
    if shape["kind"] == "rod":
        return max(float(np.linalg.norm(shape[end])) for end in ("from", "to")) + float(shape["radius"])
    offset = float(np.linalg.norm(shape.get("position", (0.0, 0.0, 0.0))))
    if shape["kind"] == "box":
        return offset + 0.5 * float(np.linalg.norm(shape["size"]))
    if shape["kind"] in ("cylinder", "cone"):
        return offset + float(np.hypot(shape["radius"], 0.5 * shape["height"]))
    return offset + float(shape["radius"])


def arrow_mesh(sides: int = 10, head: float = 0.3) -> tuple[Array, Any]:
    """Vertices (V, 3) and faces (F, 3) of an arrow of unit length along z; the head has unit radius.

    A mesh of its own, because viser's arrows keep the length of their head: a rotor at rest would still show one.
    """
    profile = [(0.0, 0.0), (0.45, 0.0), (0.45, 1.0 - head), (1.0, 1.0 - head), (0.0, 1.0)]
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    rings = [np.stack([r * np.cos(angle), r * np.sin(angle), np.full(sides, z)], axis=-1) for r, z in profile]
    faces = []
    for ring in range(len(profile) - 1):
        for side in range(sides):
            a, b = ring * sides + side, ring * sides + (side + 1) % sides
            faces += [(a, b, b + sides), (a, b + sides, a + sides)]
    return np.concatenate(rings), np.array(faces, dtype=np.uint32)


def cone_mesh(radius: float, height: float, sides: int = 24) -> tuple[Array, Any]:
    """Vertices (n, 3) and triangles (m, 3) of a cone about z, its tip up, the origin in the middle of its axis."""
    angle = 2.0 * np.pi * np.arange(sides) / sides
    rim = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(sides, -0.5 * height)], axis=1)
    vertices = np.vstack([rim, [[0.0, 0.0, 0.5 * height], [0.0, 0.0, -0.5 * height]]])
    first = np.arange(sides)
    second = (first + 1) % sides
    faces = np.vstack([np.stack([first, second, np.full(sides, sides)], 1), np.stack([second, first, np.full(sides, sides + 1)], 1)])
    return vertices, faces.astype(np.uint32)


def round_step(length: float) -> float:
    """Largest of 1, 2, 5 times a power of ten that does not exceed `length` (> 0)."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= length * (1.0 + 1e-9)))


def dashes(path: Array, length: float, most: int = 1500) -> Array:
    """Dashes (D, 2, 3) along a path (N, 3), about `length` m long and as far apart; D is `most` at most.

    Samples that are not finite are left out; a path that does not move has no dashes.
    """
    path = path[np.all(np.isfinite(path), axis=-1)]
    if len(path) < 2:
        return np.empty((0, 2, 3))
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=-1))])
    if arc[-1] < 1e-6:
        return np.empty((0, 2, 3))
    count = int(np.clip(0.5 * arc[-1] / length, 1, most))
    at = np.linspace(0.0, arc[-1], 2 * count)
    points = np.stack([np.interp(at, arc, path[:, axis]) for axis in range(3)], axis=-1)
    return points.reshape(count, 2, 3)


def camera_for(points: Array, view_direction: ArrayLike, fov: float, aspect: float) -> tuple[Array, Array]:
    """Camera position and look-at point, each (3,), that frame all points (N, 3) seen along `view_direction` (3,).

    `fov` is the vertical field of view in rad, `aspect` width over height; z is up.
    """
    forward = np.asarray(view_direction, dtype=float) / np.linalg.norm(view_direction)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    frame = np.stack([right, up, forward])
    local = points @ frame.T
    low, high = local.min(axis=0), local.max(axis=0)
    # The upper part of the picture is used more than the lower one, where the time bar lies.
    half = np.array([0.88 * aspect, 0.82]) * np.tan(0.5 * fov)
    centre = 0.5 * (low + high)
    distance = 0.0
    # Perspective enlarges what is near: aim between the outermost rays rather than at the middle of the box.
    for _ in range(8):
        offset = local - centre
        distance = max(float(np.max(np.max(np.abs(offset[:, :2]) / half, axis=1) - offset[:, 2])), 1e-3)
        rays = offset[:, :2] / (offset[:, 2] + distance)[:, None]
        centre[:2] += 0.5 * (rays.min(axis=0) + rays.max(axis=0)) * distance
    target = centre @ frame
    return target - distance * forward, target
