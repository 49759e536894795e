"""Download: the jets of rotors that meet the surfaces of a load.

A face with outward normal n turns the jet that meets it along itself, and takes the part of its momentum that points into it:

    dF = -n s (d . n)^2 dA   where d . n < 0

with s the momentum flux and d the direction of the jet (:mod:`skycrane.environment.jets`).  A plate far wider than the jet, level below a
hovering rotor, takes all of it: the two together do not rise.  For a bluff body that is small beside the jet it is Newton's law of
resistance, drag coefficient 2 for a face.

**Boxes** are slabs: three pairs of opposite faces, of each pair the one towards the rotor.  Where the jet's axis meets its plane, the
footprint is a Gaussian of variance ``sigma^2 (1 + (d . e)^2 / (d . n)^2)`` along either edge e, whose part on the face and centre follow in
closed form from the error function (its slant between the edges is left out; the whole is right for every angle).

**Other solids** are screens across the jet: with c the cosine of the jet's angle to their axis, area
``A = A_end c^2 + A_side (1 - c^2)`` and force ``s (k_end A_end c^2 + k_side A_side (1 - c^2))`` along d, k the mean of (d . n)^2 by
Newton's law: 1/2 for a ball, 2/3 for the side of a cylinder, 1 for its ends, r^2/(r^2 + h^2) for a cone from its tip.  It acts at the
reference point.

The rotors' thrust is not changed by what the jet meets: it has left its momentum to the air already, and the load takes it from there.
Surfaces in the shadow of others are not known to be so.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import erf

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.environment.jets import Jets
from skycrane.math.components import Vec3

GRAZING = 0.02
"""Least cosine between a jet and a face's normal with which the jet's way to the face is computed."""


class Slabs(eqx.Module):
    """Pairs of opposite faces; components (s,) over slabs.

    ``center_B`` m from B, unit ``normal_B``, edges along ``first_B`` and ``second_B`` (right-handed in this order after the normal), and
    the ``half`` lengths along these three, m.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    center_B: Array
    normal_B: Array
    first_B: Array
    second_B: Array
    half: Array

    def push(self, kin: Kinematics, jets: Jets) -> Wrench:
        at = kin.points(self.bodies, Vec3.of(self.center_B))
        first_B, second_B = Vec3.of(self.first_B), Vec3.of(self.second_B)
        n, e1, e2 = (_column(at.R_WB @ v) for v in (Vec3.of(self.normal_B), first_B, second_B))
        thick, half1, half2 = (x[:, None] for x in (self.half[:, 0], self.half[:, 1], self.half[:, 2]))
        arm, d = jets.origin_W - _column(at.p_W), jets.direction_W
        above = arm.dot(n)
        side = jnp.where(above < 0, -1.0, 1.0)
        facing = -side * d.dot(n)
        cosine = jnp.maximum(facing, GRAZING)
        way = (side * above - thick) / cosine
        z = jnp.maximum(way, 0.0)
        variance = jets.variance(z)
        on1, mean1 = _caught(arm.dot(e1) + z * d.dot(e1), variance, d.dot(e1) / cosine, half1)
        on2, mean2 = _caught(arm.dot(e2) + z * d.dot(e2), variance, d.dot(e2) / cosine, half2)
        force = -side * jets.strength(way) * jnp.maximum(facing, 0.0)  # along n
        total = (force * on1 * on2).sum(-1)
        # r x F with F along n: e1 x n = -e2 and e2 x n = e1.
        turn = first_B * (force * on1 * mean2).sum(-1) - second_B * (force * mean1 * on2).sum(-1)
        push_B = Vec3.of(self.normal_B) * total
        return Wrench(self.bodies, at.R_WB @ push_B, Vec3.of(self.center_B).cross(push_B) + turn)


class Screens(eqx.Module):
    """Balls, cylinders and cones; components (s,).

    ``center_B`` m from B, unit ``axis_B``; ``end`` and ``side`` m^2, areas seen along and across the axis; ``along``, ``against`` and
    ``across``: k of the end that looks along the axis, of the other one, and of the side.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    center_B: Array
    axis_B: Array
    end: Array
    side: Array
    along: Array
    against: Array
    across: Array

    def push(self, kin: Kinematics, jets: Jets) -> Wrench:
        at = kin.points(self.bodies, Vec3.of(self.center_B))
        a = _column(at.R_WB @ Vec3.of(self.axis_B))
        arm, d = _column(at.p_W) - jets.origin_W, jets.direction_W
        c = d.dot(a)
        way = arm.dot(d)
        z = jnp.maximum(way, 0.0)
        ends, sides = self.end[:, None] * c * c, self.side[:, None] * jnp.maximum(1.0 - c * c, 0.0)
        area = ends + sides
        k_end = jnp.where(c < 0, self.along[:, None], self.against[:, None])
        resistance = (k_end * ends + self.across[:, None] * sides) / area
        variance, half = jets.variance(z), 0.5 * jnp.sqrt(area)
        aside = (arm - d * way).norm()
        # A square of that area, one edge towards the jet's axis.
        on = _caught(aside, variance, 0.0, half)[0] * _caught(jnp.zeros_like(aside), variance, 0.0, half)[0]
        each = jets.strength(way) * resistance * on
        force_W = d.map(lambda x: (each * x).sum(-1))
        return Wrench.at(self.bodies, Vec3.of(self.center_B), at.R_WB, force_W)


class Downwash(AbstractElement):
    """What the jets of all rotors that have some (:attr:`~skycrane.elements.rotors.AbstractRotors.jet`) do to the surfaces of ``bodies``
    (static), those that slabs and screens belong to."""

    bodies: tuple[int, ...] = eqx.field(static=True)
    slabs: Slabs | None = None
    screens: Screens | None = None

    outputs_info: ClassVar[dict[str, Output]] = {"download": Output("N", ("vehicle",), "downward force of the rotors' jets")}

    def wrench(self, t, kin: Kinematics, memory, command):
        if not kin.jets:
            zero = kin.p_WB.map(lambda x: jnp.zeros_like(x[:1]))
            return (Wrench(self.bodies[:1], zero, zero),), ()
        surfaces = [x for x in (self.slabs, self.screens) if x is not None]
        return tuple(surface.push(kin, jets) for jets in kin.jets for surface in surfaces), ()

    def outputs(self, t, kin: Kinematics, memory, command):
        zero = jnp.zeros((), kin.p_WB.x.dtype)
        down = [zero] * len(self.bodies)
        for w in self.wrench(t, kin, memory, command)[0]:
            assert w.force_W is not None
            for i, body in enumerate(w.bodies):
                down[self.bodies.index(body)] = down[self.bodies.index(body)] - w.force_W.z[i]
        return {"download": jnp.stack(down)}


def _column(v: Vec3) -> Vec3:
    return v.map(lambda x: x[:, None])


def _caught(place: Array, variance: Array, slant: Array | float, half: Array) -> tuple[Array, Array]:
    """Part of a Gaussian about ``place`` that lies between -half and half, and the mean of the coordinate over it, times that part."""
    sigma = jnp.sqrt(variance * (1.0 + slant * slant))
    low, high = (-half - place) / sigma, (half - place) / sigma
    part = 0.5 * (erf(high * 2**-0.5) - erf(low * 2**-0.5))
    density = (jnp.exp(-0.5 * high * high) - jnp.exp(-0.5 * low * low)) * (2.0 * jnp.pi) ** -0.5
    return part, place * part - sigma * density
