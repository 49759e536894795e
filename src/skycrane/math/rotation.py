"""Rotations of ordinary arrays: quaternions ``(..., 4)`` scalar first, body to world, and matrices ``(..., 3, 3)``.

For set-up, analysis and plots; the integration step uses :mod:`skycrane.math.components`.  Euler angles are named by their sequence of
intrinsic (body-fixed) axes: ``"zyx"`` is yaw, pitch, roll.  Every function broadcasts over leading axes and differentiates, also at the
identity.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from skycrane.math.components import Quat, safe_sqrt


def multiply(p: ArrayLike, q: ArrayLike) -> Array:
    """Quaternion product ``p * q``: first rotate by q, then by p.  Shapes (..., 4)."""
    (a, b, c, d), (w, x, y, z) = Quat.of(jnp.asarray(p)).components(), Quat.of(jnp.asarray(q)).components()
    return Quat(
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    ).array()


def conjugate(q: ArrayLike) -> Array:
    """The inverse rotation of a unit quaternion (..., 4)."""
    return jnp.asarray(q) * jnp.array([1.0, -1.0, -1.0, -1.0])


def normalize(q: ArrayLike) -> Array:
    """Scale to unit length."""
    return Quat.of(jnp.asarray(q)).normalized().array()


def to_matrix(q: ArrayLike) -> Array:
    """Rotation matrix R_WB (..., 3, 3) of a quaternion of any non-zero length."""
    return Quat.of(jnp.asarray(q)).matrix().array()


def rotate(q: ArrayLike, v: ArrayLike) -> Array:
    """Turn body-axis vectors v (..., 3) into world axes."""
    return jnp.einsum("...ij,...j->...i", to_matrix(q), jnp.asarray(v))


def from_matrix(R: ArrayLike) -> Array:
    """Unit quaternion with ``w >= 0`` of rotation matrices (..., 3, 3).

    Of the four classical formulas the one with the largest divisor is taken, so the result is accurate for every rotation.
    """
    R = jnp.asarray(R)
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    a, b, c = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    d, e, f = R[..., 1, 0] + R[..., 0, 1], R[..., 0, 2] + R[..., 2, 0], R[..., 2, 1] + R[..., 1, 2]
    squares = jnp.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], -1)
    rows = jnp.stack(
        [
            jnp.stack([squares[..., 0], a, b, c], -1),
            jnp.stack([a, squares[..., 1], d, e], -1),
            jnp.stack([b, d, squares[..., 2], f], -1),
            jnp.stack([c, e, f, squares[..., 3]], -1),
        ],
        -2,
    )
    best = jnp.argmax(squares, -1)[..., None, None]
    q = normalize(jnp.take_along_axis(rows, best, axis=-2)[..., 0, :])
    return jnp.where(q[..., :1] < 0, -q, q)


def exp(v: ArrayLike) -> Array:
    """Unit quaternion of a rotation vector (..., 3) [rad]; smooth through zero."""
    v = jnp.asarray(v)
    square = jnp.sum(v * v, -1, keepdims=True)
    small = square < 1e-8
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    # sin(a/2)/a and cos(a/2), by their Taylor series near zero so that value and derivative stay finite.
    s = jnp.where(small, 0.5 - square / 48.0, jnp.sin(angle / 2) / angle)
    c = jnp.where(small, 1.0 - square / 8.0 + square * square / 384.0, jnp.cos(angle / 2))
    return jnp.concatenate([c, s * v], -1)


def log(q: ArrayLike) -> Array:
    """Rotation vector (..., 3) [rad], length at most pi, of a unit quaternion; smooth through the identity."""
    q = jnp.asarray(q)
    q = jnp.where(q[..., :1] < 0, -q, q)
    w, v = q[..., :1], q[..., 1:]
    square = jnp.sum(v * v, -1, keepdims=True)
    small = square < 1e-10
    s = jnp.sqrt(jnp.where(small, 1.0, square))
    factor = jnp.where(
        small, 2.0 / jnp.where(small, w, 1.0) * (1 - square / (3 * jnp.where(small, w, 1.0) ** 2)), 2 * jnp.arctan2(s, w) / s
    )
    return factor * v


def angle_between(p: ArrayLike, q: ArrayLike) -> Array:
    """Smallest rotation angle [rad] from attitude p to q (..., 4)."""
    d = multiply(conjugate(p), q)
    return 2 * jnp.arctan2(safe_sqrt(jnp.sum(d[..., 1:] ** 2, -1)), jnp.abs(d[..., 0]))


def _axis_quaternion(axis: str, angle: Array) -> Array:
    half, zero = angle / 2, jnp.zeros_like(angle)
    parts = [jnp.cos(half), zero, zero, zero]
    parts["xyz".index(axis) + 1] = jnp.sin(half)
    return jnp.stack(parts, -1)


def _check_sequence(sequence: str) -> None:
    if len(sequence) != 3 or any(a not in "xyz" for a in sequence) or sequence[0] == sequence[1] or sequence[1] == sequence[2]:
        raise ValueError(f"Euler sequence {sequence!r}: expected three of x, y, z without neighbours alike, such as 'zyx'")


def from_euler(sequence: str, angles: ArrayLike) -> Array:
    """Quaternion of intrinsic Euler angles (..., 3) [rad], in the order of ``sequence``: ``from_euler("zyx", [yaw, pitch, roll])``.

    Raises:
        ValueError: if the sequence is not one of the twelve.
    """
    _check_sequence(sequence)
    angles = jnp.asarray(angles, dtype=jnp.result_type(float))
    q = _axis_quaternion(sequence[0], angles[..., 0])
    for k in (1, 2):
        q = multiply(q, _axis_quaternion(sequence[k], angles[..., k]))
    return q


def from_roll_pitch_yaw(angles: ArrayLike) -> Array:
    """Quaternion (..., 4) of R = Rz(yaw) Ry(pitch) Rx(roll) from roll, pitch, yaw (..., 3) rad: ``from_euler("zyx", ...)`` written out, for
    references that are evaluated in every control tick."""
    roll, pitch, yaw = jnp.moveaxis(0.5 * jnp.asarray(angles), -1, 0)
    (cr, cp, cy), (sr, sp, sy) = (jnp.cos(a) for a in (roll, pitch, yaw)), (jnp.sin(a) for a in (roll, pitch, yaw))
    return jnp.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        -1,
    )


def to_euler(sequence: str, q: ArrayLike) -> Array:
    """Intrinsic Euler angles (..., 3) [rad] of a quaternion; the inverse of :func:`from_euler` away from gimbal lock.

    Source: Bernardes and Viollet, "Quaternion to Euler angles conversion: a direct, general and computationally efficient method",
    PLOS ONE 17(11), 2022.

    Raises:
        ValueError: if the sequence is not one of the twelve.
    """
    _check_sequence(sequence)
    # The method is written for extrinsic axes: read the sequence backwards.
    k, j, i = ("xyz".index(a) for a in sequence)
    proper = i == k
    last = 3 - i - j if proper else k
    sign = (i - j) * (j - last) * (last - i) // 2
    w, v = jnp.asarray(q)[..., 0], jnp.asarray(q)[..., 1:]
    if proper:
        a, b, c, d = w, v[..., i], v[..., j], sign * v[..., last]
    else:
        a, b = w - v[..., j], v[..., i] + sign * v[..., last]
        c, d = v[..., j] + w, sign * v[..., last] - v[..., i]
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    plus, minus = jnp.arctan2(b, a), jnp.arctan2(d, c)
    first, third = plus - minus, plus + minus
    if not proper:
        third, middle = sign * third, middle - jnp.pi / 2
    wrap = lambda x: jnp.mod(x + jnp.pi, 2 * jnp.pi) - jnp.pi  # noqa: E731
    return jnp.stack([wrap(third), middle, wrap(first)], -1)


def euler_rates(sequence: str, angles: ArrayLike, w_B: ArrayLike) -> Array:
    """Rates (..., 3) [rad/s] of intrinsic Euler angles for a body-axis angular velocity w_B (..., 3) [rad/s].

    Singular at gimbal lock.  Raises ValueError for an unknown sequence.
    """
    _check_sequence(sequence)
    angles = jnp.asarray(angles, dtype=jnp.result_type(float))
    axes = [jnp.eye(3)["xyz".index(a)] for a in sequence]
    last = _axis_quaternion(sequence[2], angles[..., 2])
    tail = multiply(_axis_quaternion(sequence[1], angles[..., 1]), last)
    columns = jnp.stack(
        [rotate(conjugate(tail), axes[0]), rotate(conjugate(last), axes[1]), jnp.broadcast_to(axes[2], last[..., 1:].shape)], -1
    )
    return jnp.linalg.solve(columns, jnp.asarray(w_B)[..., None])[..., 0]


def scipy_order(q: ArrayLike) -> Array:
    """Move the scalar last: what ``scipy.spatial.transform.Rotation.from_quat``, ROS and RotorPy expect."""
    return jnp.roll(jnp.asarray(q), -1, axis=-1)
