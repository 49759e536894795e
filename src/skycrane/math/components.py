"""Vectors, matrices and quaternions as components, for the arithmetic inside the integration step.

Each component is an array (or a Python float) of any shape; its trailing axis usually runs over bodies, rotors or cables.  Written so, an
equation reads as in the paper and compiles to plain multiplications and additions that XLA fuses into one loop, several times faster
on the CPU than einsum or dot on arrays of 3-vectors.  All three types are pytrees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Scalar = Any  # an array of any shape, or a Python float


class _Components:
    """Shared behaviour: a fixed tuple of named components, elementwise linear algebra."""

    __slots__: tuple[str, ...] = ()
    __array_ufunc__ = None  # NumPy arrays hand `array * vector` over to the vector
    __hash__ = None  # type: ignore[assignment]

    def components(self) -> tuple[Scalar, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def map(self, function: Callable[[Scalar], Scalar]):
        """Apply ``function`` to every component."""
        return type(self)(*map(function, self.components()))

    def array(self) -> Array:
        """Stack the components along a new last axis."""
        return jnp.stack(jnp.broadcast_arrays(*self.components()), axis=-1)

    def __add__(self, other):
        return type(self)(*(a + b for a, b in zip(self.components(), other.components(), strict=True)))

    def __sub__(self, other):
        return type(self)(*(a - b for a, b in zip(self.components(), other.components(), strict=True)))

    def __mul__(self, factor: Scalar):
        return self.map(lambda a: a * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Scalar):
        return self.map(lambda a: a / divisor)

    def __neg__(self):
        return self.map(lambda a: -a)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.components()))})"


class Vec3(_Components):
    """A 3-vector by components ``x, y, z``."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Scalar, y: Scalar, z: Scalar):
        self.x, self.y, self.z = x, y, z

    @classmethod
    def of(cls, array: Array) -> Vec3:
        """Take the last axis (length 3) of an array apart."""
        return cls(*unstack(array))

    def dot(self, other: Vec3) -> Scalar:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec3) -> Vec3:
        return Vec3(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def times(self, other: Vec3) -> Vec3:
        """Component by component product."""
        return Vec3(self.x * other.x, self.y * other.y, self.z * other.z)

    def norm(self) -> Scalar:
        """Length; its derivative at the zero vector is zero, not NaN."""
        return safe_sqrt(self.dot(self))

    def unit(self) -> Vec3:
        """Direction; the zero vector stays zero, with zero derivative."""
        square = self.dot(self)
        positive = square > 0
        return self * jnp.where(positive, 1.0 / jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)

    def sum(self) -> Vec3:
        """Sum over the trailing axis, kept with length 1."""
        return self.map(lambda a: a.sum(-1, keepdims=True))


class Mat3(_Components):
    """A 3x3 matrix by its rows ``x, y, z``, each a :class:`Vec3`."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Vec3, y: Vec3, z: Vec3):
        self.x, self.y, self.z = x, y, z

    @classmethod
    def of(cls, array: Array) -> Mat3:
        """Take the last two axes (3, 3) of an array apart."""
        return cls(*map(Vec3.of, unstack(array, -2)))

    @classmethod
    def diagonal(cls, d: Vec3) -> Mat3:
        return cls(Vec3(d.x, 0.0, 0.0), Vec3(0.0, d.y, 0.0), Vec3(0.0, 0.0, d.z))

    @classmethod
    def outer(cls, a: Vec3, b: Vec3) -> Mat3:
        """The matrix a b^T."""
        return cls(b * a.x, b * a.y, b * a.z)

    @classmethod
    def skew(cls, a: Vec3) -> Mat3:
        """The matrix S(a) with ``S(a) b = a x b``."""
        return cls(Vec3(0.0, -a.z, a.y), Vec3(a.z, 0.0, -a.x), Vec3(-a.y, a.x, 0.0))

    @property
    def T(self) -> Mat3:
        return Mat3(Vec3(self.x.x, self.y.x, self.z.x), Vec3(self.x.y, self.y.y, self.z.y), Vec3(self.x.z, self.y.z, self.z.z))

    def __matmul__(self, other):
        if isinstance(other, Vec3):
            return Vec3(self.x.dot(other), self.y.dot(other), self.z.dot(other))
        columns = other.T
        return Mat3(columns @ self.x, columns @ self.y, columns @ self.z)

    def array(self) -> Array:
        """An array with the two matrix axes last."""
        return jnp.stack(jnp.broadcast_arrays(self.x.array(), self.y.array(), self.z.array()), axis=-2)

    def inverse(self) -> Mat3:
        """Inverse, by cofactors."""
        x, y, z = self.x, self.y, self.z
        columns = (y.cross(z), z.cross(x), x.cross(y))
        return Mat3(*columns).T * (1.0 / x.dot(columns[0]))

    def vee(self) -> Vec3:
        """The vector a of the skew part: ``(M - M^T)/2 = S(a)``."""
        return 0.5 * Vec3(self.z.y - self.y.z, self.x.z - self.z.x, self.y.x - self.x.y)


class Quat(_Components):
    """A rotation from body to world axes as quaternion ``w, x, y, z`` (scalar first), of any non-zero length."""

    __slots__ = ("w", "x", "y", "z")

    def __init__(self, w: Scalar, x: Scalar, y: Scalar, z: Scalar):
        self.w, self.x, self.y, self.z = w, x, y, z

    @classmethod
    def of(cls, array: Array) -> Quat:
        return cls(*unstack(array))

    def norm2(self) -> Scalar:
        return self.w * self.w + self.x * self.x + self.y * self.y + self.z * self.z

    def matrix(self) -> Mat3:
        """Rotation matrix; a scaled quaternion gives the same matrix, so that Runge-Kutta stages off the unit sphere stay rotations."""
        w, x, y, z = self.components()
        s = 2.0 / self.norm2()
        return Mat3(
            Vec3(1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)),
            Vec3(s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)),
            Vec3(s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)),
        )

    def rate(self, w_B: Vec3) -> Quat:
        """Time derivative for the angular velocity ``w_B`` in body axes: ``q' = 1/2 q * (0, w_B)``."""
        w, x, y, z = self.components()
        p, q, r = 0.5 * w_B.x, 0.5 * w_B.y, 0.5 * w_B.z
        return Quat(-x * p - y * q - z * r, w * p + y * r - z * q, w * q + z * p - x * r, w * r + x * q - y * p)

    def normalized(self) -> Quat:
        return self * (1.0 / jnp.sqrt(self.norm2()))


def _register(kind: type) -> None:
    jax.tree_util.register_pytree_node(kind, lambda v: (v.components(), None), lambda _, children: kind(*children))


for _kind in (Vec3, Mat3, Quat):
    _register(_kind)


def safe_sqrt(square: Scalar) -> Scalar:
    """Square root whose derivative at zero is zero instead of infinite (the double-``where`` guard)."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)


def unstack(array: Array, axis: int = -1) -> tuple[Array, ...]:
    """The entries along an axis.  Its derivative is one stack, where that of indexing is a padded array for every entry, and their sum."""
    if isinstance(array, jax.Array):
        return jnp.unstack(array, axis=axis)
    return tuple(np.moveaxis(np.asarray(array), axis, 0))


def take(tree: Any, bodies: tuple[int, ...]) -> Any:
    """Select entries of the trailing axis of every leaf by static indices, with slices only (a gather is 2 to 3 times slower)."""

    def one(x: Array) -> Array:
        if all(b == bodies[0] for b in bodies):
            return x[..., bodies[0] : bodies[0] + 1]
        if bodies == tuple(range(bodies[0], bodies[0] + len(bodies))):
            return x if len(bodies) == x.shape[-1] else x[..., bodies[0] : bodies[-1] + 1]
        return jnp.concatenate([x[..., b : b + 1] for b in bodies], axis=-1)

    return jax.tree.map(one, tree)


def put(tree: Any, bodies: tuple[int, ...], count: int) -> Any:
    """Transpose of :func:`take`: add the entries of the trailing axis into ``count`` bodies, with sums and pads only (no scatter)."""

    def one(x: Array) -> Array:
        x = jnp.broadcast_to(x, (*jnp.shape(x)[:-1], len(bodies))) if jnp.ndim(x) else jnp.full(len(bodies), x)
        first = bodies[0]
        if all(b == first for b in bodies):
            x = x.sum(-1, keepdims=True)
        elif bodies != tuple(range(first, first + len(bodies))):
            return sum(put(x[..., k : k + 1], (b,), count) for k, b in enumerate(bodies))
        before, after = first, count - first - x.shape[-1]
        if before == after == 0:
            return x
        edges = [(0, 0, 0)] * (x.ndim - 1) + [(before, after, 0)]
        return jax.lax.pad(x, jnp.zeros((), x.dtype), edges)

    return jax.tree.map(one, tree)
