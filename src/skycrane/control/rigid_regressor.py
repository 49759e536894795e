"""Newton-Euler equations of a rigid body about a point that is not its centre of mass, linear in its ten inertial parameters.

With nu = (v, w) in body axes at B and the parameters theta = (m, m r_G, I_B),

    M nu' + C(nu) nu + g = W

and for any vectors a = (a_v, a_w), b = (b_v, b_w), M symmetric and C skew,

    M b + C(nu) a + g = Y theta,     force   m q + b_w x c + w x (a_w x c)
                                     moment  c x q + I b_w + a_w x (I w)

with q = b_v + w x a_v + g R^T e_3 and c = m r_G (A. Nikou, G. Gavridis and K. Kyriakopoulos, "Mechanical design, modelling and control of
a novel aerial manipulator", ICRA 2015, eqs. 26 to 34, in the form of an adaptive law: J.-J. Slotine and W. Li, "On the adaptive control of
robot manipulators", Int. J. Robotics Research 6, 1987).
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.math.components import Mat3, Vec3

PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # of the six inertia parameters


class Inertial(eqx.Module):
    """Inertial parameters of k bodies: ``mass`` (k,) kg, ``moment`` (k, 3) kg m of mass about B, ``inertia`` (k, 6) kg m^2 about B, order
    xx, yy, zz, xy, xz, yz."""

    mass: Array
    moment: Array
    inertia: Array

    @classmethod
    def of(cls, mass: Array, com_B: Array, inertia_B: Array) -> Inertial:
        """From masses (k,), centres of mass (k, 3), and inertias (k, 3, 3) about these."""
        S = Mat3.skew(Vec3.of(com_B)).array()
        about_B = inertia_B - mass[:, None, None] * (S @ S)
        return cls(mass, mass[:, None] * com_B, jnp.stack([about_B[:, i, j] for i, j in PAIRS], -1))

    @property
    def tensor(self) -> Mat3:
        xx, yy, zz, xy, xz, yz = (self.inertia[:, i] for i in range(6))
        return Mat3(Vec3(xx, xy, xz), Vec3(xy, yy, yz), Vec3(xz, yz, zz))


class Motion(eqx.Module):
    """What the regressor is made of, components (k,) in body axes: rates ``w``, and q, a_w, b_w of the module."""

    w: Vec3
    q: Vec3
    a_w: Vec3
    b_w: Vec3

    @classmethod
    def of(cls, w: Vec3, a_v: Vec3, a_w: Vec3, b_v: Vec3, b_w: Vec3, gravity_B: Vec3) -> Motion:
        """``gravity_B`` is g R^T e_3, upwards."""
        return cls(w, b_v + w.cross(a_v) + gravity_B, a_w, b_w)

    def times(self, theta: Inertial) -> tuple[Vec3, Vec3]:
        """Y theta: force and moment."""
        c, I = Vec3.of(theta.moment), theta.tensor  # noqa: E741
        force = theta.mass * self.q + self.b_w.cross(c) + self.w.cross(self.a_w.cross(c))
        return force, c.cross(self.q) + I @ self.b_w + self.a_w.cross(I @ self.w)

    def transposed(self, z_v: Vec3, z_w: Vec3) -> Inertial:
        """Y^T z."""
        c = z_v.cross(self.b_w) + z_v.cross(self.w).cross(self.a_w) + self.q.cross(z_w)
        rows = (Mat3.outer(z_w, self.b_w) + Mat3.outer(z_w.cross(self.a_w), self.w)).array()
        parts = [rows[..., i, j] if i == j else rows[..., i, j] + rows[..., j, i] for i, j in PAIRS]
        return Inertial(z_v.dot(self.q), c.array(), jnp.stack(parts, -1))
