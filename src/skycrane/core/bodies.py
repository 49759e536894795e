"""Rigid bodies with full spatial inertia: centre of mass off the reference point, and added mass of a surrounding fluid.

Newton-Euler equations of one body about its reference point B, in body axes, with nu = (v_B, w_B) and the constant 6x6 matrix
``M = [[m I, -m S(c)], [m S(c), J_B]] + M_added``, ``J_B = J_com - m S(c)^2`` (c = centre of mass from B; Fossen 2011, eqs. 3.27 and 6.43):

    M nu' = W - [ w x h_lin ; w x h_ang + v x h_lin ],   (h_lin, h_ang) = M nu

State and forces are kept in mixed axes: velocity and force in world axes, angular velocity and moment in body axes.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.math.checks import concrete, known, placed
from skycrane.math.components import Mat3, Vec3
from skycrane.math.linalg import invert_spd
from skycrane.math.outline import settled


class BodyState(eqx.Module):
    """Pose and velocity of the reference point B of every body.

    ``p_WB`` (nb, 3) m, world axes; ``q_WB`` (nb, 4) body to world, scalar first; ``v_W`` (nb, 3) m/s, velocity of B in world axes;
    ``w_B`` (nb, 3) rad/s, angular velocity in body axes.
    """

    p_WB: Array
    q_WB: Array
    v_W: Array
    w_B: Array


class State(eqx.Module):
    """State of a system, or its time derivative: bodies, and what each element remembers, by element name."""

    bodies: BodyState
    memory: dict


class SecondOrder(eqx.Module):
    """Memory of second-order dynamics (cable nodes): its time derivative is a SecondOrder of (velocity, acceleration)."""

    position: Array
    velocity: Array


class Prepared(eqx.Module):
    """Mass properties in the form that the step needs: components with trailing axis nb.

    ``mass`` (nb,) and ``com_B`` are of the rigid body alone (gravity acts on these); ``matrix`` and ``inverse`` hold the 2x2 blocks (Mat3)
    of M and its inverse, or, where every body is ``principal``, None with the diagonal moments of inertia in ``moments``.
    """

    mass: Array
    com_B: Vec3
    moments: Vec3
    matrix: tuple[tuple[Mat3, Mat3], tuple[Mat3, Mat3]] | None
    inverse: tuple[tuple[Mat3, Mat3], tuple[Mat3, Mat3]] | None

    @property
    def principal(self) -> bool:
        return self.matrix is None

    def solve(self, R_WB: Mat3, force_W: Vec3, moment_B: Vec3) -> tuple[Vec3, Vec3]:
        """Accelerations (linear, world axes; angular, body axes) or velocity jumps that a wrench or an impulse about B causes."""
        if self.inverse is None:
            m = self.moments
            return force_W / self.mass, Vec3(moment_B.x / m.x, moment_B.y / m.y, moment_B.z / m.z)
        (A, B), (C, D) = self.inverse
        force_B = settled(R_WB.T @ force_W)
        return R_WB @ settled(A @ force_B + B @ moment_B), C @ force_B + D @ moment_B

    def spatial(self, R_WB: Mat3) -> tuple[tuple[Mat3, Mat3], tuple[Mat3, Mat3]]:
        """Blocks of the matrix that :meth:`solve` inverts: from accelerations (linear world, angular body) to force and moment."""
        if self.matrix is None:
            zero = Mat3.diagonal(0.0 * self.moments)
            return (Mat3.diagonal(Vec3(self.mass, self.mass, self.mass)), zero), (zero, Mat3.diagonal(self.moments))
        (A, B), (C, D) = self.matrix
        return (R_WB @ A @ R_WB.T, R_WB @ B), (C @ R_WB.T, D)

    def momentum_B(self, v_B: Vec3, w_B: Vec3) -> tuple[Vec3, Vec3]:
        """Linear and angular momentum about B, body axes, added mass included."""
        if self.matrix is None:
            return self.mass * v_B, self.moments.times(w_B)
        (A, B), (C, D) = self.matrix
        return A @ v_B + B @ w_B, C @ v_B + D @ w_B

    def bias(self, R_WB: Mat3, v_B: Vec3, w_B: Vec3) -> tuple[Vec3 | None, Vec3]:
        """Gyroscopic force (world) and moment (body) to add to the wrench, so that ``solve`` yields d v_W/dt and d w_B/dt.

        With ``v_W = R v_B``: ``v_W' = R (v_B' + w x v_B)``, so ``M [w x v_B; 0]`` is added to the right-hand side of the equation above.
        """
        if self.matrix is None:
            return None, -w_B.cross(self.moments.times(w_B))
        h_lin, h_ang = self.momentum_B(v_B, w_B)
        transport = w_B.cross(v_B)
        (A, _), (C, _) = self.matrix
        return R_WB @ settled(A @ transport - w_B.cross(h_lin)), C @ transport - w_B.cross(h_ang) - v_B.cross(h_lin)

    def kinetic_energy(self, v_B: Vec3, w_B: Vec3) -> Array:
        """Total kinetic energy [J], scalar, with that of the added mass."""
        h_lin, h_ang = self.momentum_B(v_B, w_B)
        return 0.5 * (v_B.dot(h_lin) + w_B.dot(h_ang)).sum()


class Bodies(eqx.Module):
    """Mass properties of nb rigid bodies.

    Attributes:
        names: static, one per body.
        mass: (nb,) kg.
        com_B: (nb, 3) m, centre of mass from the reference point B.
        inertia_B: (nb, 3, 3) kg m^2, about the centre of mass, body axes.
        added: (nb, 6, 6) added mass about B, body axes, order (linear, angular), or None.
        principal: static; True promises that every ``com_B`` is zero, every ``inertia_B`` diagonal and ``added`` None, which makes a
            single vehicle three times as fast.  :meth:`create` finds it out.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    mass: Array
    com_B: Array
    inertia_B: Array
    added: Array | None
    principal: bool = eqx.field(static=True)

    @classmethod
    def create(cls, names, mass, inertia_B, com_B=None, added=None, principal: bool | None = None) -> Bodies:
        """Build from arrays or nested lists; ``inertia_B`` may be (nb, 3) diagonals.

        Inside ``jit``, ``vmap`` or ``grad`` only shapes are checked, and ``principal`` is False unless it is given.

        Raises:
            ValueError: for a shape that does not fit, a mass that is not positive, or an inertia or mass matrix that is not
                symmetric positive definite; the body is named.
        """
        names = tuple(names)
        nb = len(names)
        dtype = jnp.result_type(float)
        mass, inertia_B = known(mass, dtype), known(inertia_B, dtype)
        com_B = np.zeros((nb, 3), dtype) if com_B is None else known(com_B, dtype)
        if inertia_B.shape == (nb, 3):
            inertia_B = inertia_B[:, :, None] * np.eye(3, dtype=dtype)
        added = None if added is None else known(added, dtype)
        for what, array, shape in (
            ("mass", mass, (nb,)),
            ("com_B", com_B, (nb, 3)),
            ("inertia_B", inertia_B, (nb, 3, 3)),
            ("added", added, (nb, 6, 6)),
        ):
            if array is not None and array.shape != shape:
                raise ValueError(f"bodies {names}: {what} has shape {array.shape}, expected {shape}")
        # Inside a transformation numbers are unknown: no checks by value, and nothing is known to be zero.
        if concrete(mass, com_B, inertia_B, added):
            if principal is None:
                off_diagonal = inertia_B - inertia_B * np.eye(3)
                principal = added is None and not com_B.any() and not off_diagonal.any()
            for k, name in enumerate(names):
                if not float(mass[k]) > 0:
                    raise ValueError(f"body {name!r}: mass is {float(mass[k])}, expected a positive number of kg")
                _require_positive_definite(inertia_B[k], f"body {name!r}: inertia_B")
                if added is not None:
                    _require_symmetric(added[k], f"body {name!r}: added mass")
        mass, com_B, inertia_B, added = jax.tree.map(placed, (mass, com_B, inertia_B, added))
        return cls(names, mass, com_B, inertia_B, added, bool(principal))

    def __check_init__(self):
        if self.principal and self.added is not None:
            raise ValueError("principal bodies cannot have added mass")

    @property
    def count(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Position of a body by name.  Raises KeyError that lists the names."""
        if name not in self.names:
            raise KeyError(f"no body {name!r}; the bodies are {', '.join(self.names)}")
        return self.names.index(name)

    def matrix(self) -> Array:
        """The constant spatial inertia (nb, 6, 6) about B in body axes, added mass included."""
        m = self.mass[:, None, None]
        S = Mat3.skew(Vec3.of(self.com_B)).array()
        eye = jnp.eye(3, dtype=self.mass.dtype)
        rows = [jnp.concatenate([m * eye, -m * S], -1), jnp.concatenate([m * S, self.inertia_B - m * (S @ S)], -1)]
        M = jnp.concatenate(rows, -2)
        return M if self.added is None else M + self.added

    def prepare(self) -> Prepared:
        """Mass matrix and inverse as components; once per rollout, differentiable, never inside the step."""
        com_B = Vec3.of(self.com_B)
        moments = Vec3(*(self.inertia_B[:, k, k] for k in range(3)))
        if self.principal:
            return Prepared(self.mass, com_B, moments, None, None)
        M = self.matrix()
        # Not jnp.linalg.inv: two batches of it in one program can block each other for ever on the CPU (jaxlib 0.10.1).
        return Prepared(self.mass, com_B, moments, _blocks(M), _blocks(invert_spd(M)))


def _blocks(M: Array):
    return tuple(tuple(Mat3.of(M[:, 3 * i : 3 * i + 3, 3 * j : 3 * j + 3]) for j in range(2)) for i in range(2))


def _require_symmetric(matrix: np.ndarray, what: str) -> None:
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-9 * max(1.0, float(np.abs(matrix).max()))):
        raise ValueError(f"{what} is not symmetric:\n{matrix}")


def _require_positive_definite(matrix: np.ndarray, what: str) -> None:
    _require_symmetric(matrix, what)
    smallest = float(np.linalg.eigvalsh(matrix).min())
    if not smallest > 0:
        raise ValueError(f"{what} is not positive definite (smallest eigenvalue {smallest:.3g})")
