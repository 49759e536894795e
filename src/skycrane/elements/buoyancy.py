"""A floating hull, cut into columns along its body z axis, on the local water surface.

Each column is wet over a length h from its lower end, up to where it meets the surface, and pushes at the middle of the wet part:

    F_i = rho A_i h_i (g e_z + a_w)

rho g A h is the hydrostatic force under the local surface.  Its error against the wave's pressure, which fades with depth, and the
horizontal Froude-Krylov force are both rho V a_w, a_w being the water's acceleration (Faltinsen 1990, ch. 3).  So heave, roll and pitch
stiffness and the wave's excitation come from the same sum, at any attitude.

With nu = (v, w) in body axes, v_c the water's velocity and a_c its acceleration there, nu_r = (v - v_c, w), h = M_A nu and h_r = M_A nu_r,
the core moves the hull by ``(M + M_A) nu' + C(nu) nu = W``, in which the added mass sees still water.  The moving water adds

    W_A = M_A (a_c - w x v_c, 0) + [ w x (h - h_r)_lin ; w x (h - h_r)_ang + v x h_lin - (v - v_c) x h_r,lin ]

so that ``M_A nu_r' + C_A(nu_r) nu_r`` holds (Fossen 2011, ch. 8) with the Munk moment.  Damping is ``-s (D nu_r + Q |nu_r| nu_r)`` with s
the immersed volume over that at rest, at most 1, and friction as in :mod:`skycrane.elements.skin`.  The water's velocity and acceleration
are those at the reference point: the hull is short beside the waves.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.elements.skin import Skin
from skycrane.environment.water import Water, WaterMotion
from skycrane.math.components import Mat3, Vec3, take

FLATTEST = 0.05  # least |cosine| of the columns' slope: lying columns count as steeper

FLOAT_OUTPUTS = {
    "immersed_volume": Output("m3", (), "volume under the surface"),
    "immersed_fraction": Output("1", (), "immersed part of the whole volume"),
    "water_level": Output("m", (), "world height of the surface at the reference point"),
    "water_velocity": Output("m/s", ("axis",), "velocity of the water there, world axes"),
}


class Columns(eqx.Module):
    """n columns parallel to body z: lower ends ``base_B`` (n, 3) m, ``height`` (n,) m, ``area`` (n,) m^2 of the cross-section."""

    base_B: Array
    height: Array
    area: Array

    @property
    def volume(self) -> Array:
        """Volume of all columns [m^3]."""
        return (self.height * self.area).sum(-1)


class _Wet(NamedTuple):
    """Of each column: middle of the wet part from B, and wet volume."""

    middle_B: Vec3
    volume: Array


class FloatingHull(AbstractElement):
    """A hull on ``body`` (static) in ``environment.water``.

    Attributes:
        columns: its shape.
        displacement: m^3, immersed volume at rest.
        added: (6, 6) added mass about B, that of ``Bodies.added``.
        linear: (6, 6) damping D, N s/m and N m s; ``quadratic``: (6,) Q, N s^2/m^2 and N m s^2.
        skin: friction along the hull, or None.
        local: static; whether each column meets the surface itself (``"columns"``) or the surface's tangent plane at B (``"plane"``),
            which needs the waves at one point only.
    """

    body: int = eqx.field(static=True)
    columns: Columns
    displacement: Array | float
    added: Array
    linear: Array
    quadratic: Array
    skin: Skin | None = None
    local: str = eqx.field(static=True, default="columns")

    outputs_info: ClassVar[dict[str, Output]] = FLOAT_OUTPUTS

    def __check_init__(self):
        n = self.columns.base_B.shape[-2]
        shapes = {"added": (6, 6), "linear": (6, 6), "quadratic": (6,)}
        for name, shape in shapes.items():
            if jnp.shape(getattr(self, name)) != shape:
                raise ValueError(f"floating hull: {name} has shape {jnp.shape(getattr(self, name))}, expected {shape}")
        if self.columns.height.shape[-1] != n or self.columns.area.shape[-1] != n:
            raise ValueError(f"floating hull: {n} columns, but {self.columns.height.shape} heights and {self.columns.area.shape} areas")
        if self.local not in ("columns", "plane"):
            raise ValueError(f"floating hull: local is {self.local!r}, expected 'columns' or 'plane'")

    def _wet(self, t, kin: Kinematics, water: Water, level) -> _Wet:
        count = self.columns.base_B.shape[-2]
        base_B, height = Vec3.of(self.columns.base_B), self.columns.height
        base = kin.points((self.body,) * count, base_B)
        if self.local == "columns":
            surface = water.surface(t, base.p_W.x, base.p_W.y)
        else:
            x, y = (take(c, (self.body,)) for c in (kin.p_WB.x, kin.p_WB.y))
            _, slope_x, slope_y = water.tangent(t, x, y)
            surface = level + slope_x * (base.p_W.x - x) + slope_y * (base.p_W.y - y)
        up = base.R_WB.z.z
        lowest = base.p_W.z + jnp.minimum(height * up, 0.0)
        wet = jnp.clip((surface - lowest) / jnp.maximum(jnp.abs(up), FLATTEST), 0.0, height)
        middle = jnp.where(up >= 0, 0.5 * wet, height - 0.5 * wet)
        return _Wet(Vec3(base_B.x, base_B.y, base_B.z + middle), self.columns.area * wet)

    def _water(self, t, kin: Kinematics) -> tuple[Water, WaterMotion]:
        water = kin.environment.water
        if water is None:
            raise ValueError("FloatingHull needs environment.water")
        return water, water.motion(t, take(kin.p_WB, (self.body,)))

    def wrench(self, t, kin: Kinematics, memory, command):
        water, sea = self._water(t, kin)
        wet = self._wet(t, kin, water, sea.level)
        count = wet.volume.shape[-1]
        push = Vec3(0.0, 0.0, kin.environment.gravity) + sea.acceleration_W
        lift_W = push.map(lambda a: water.density * a * wet.volume)
        R_WB, v_B, w_B = take((kin.R_WB, kin.v_B, kin.w_B), (self.body,))
        buoyancy = Wrench.at((self.body,) * count, wet.middle_B, R_WB, lift_W)

        volume = wet.volume.sum(-1, keepdims=True)
        part = jnp.minimum(volume / self.displacement, 1.0)
        v_c, a_c = R_WB.T @ sea.velocity_W, R_WB.T @ sea.acceleration_W
        v_r = v_B - v_c
        (A11, A12), (A21, _) = _blocks(self.added)
        h_lin, moved = A11 @ v_B + A12 @ w_B, A11 @ v_c
        pull = a_c - w_B.cross(v_c)
        force_B = A11 @ pull + w_B.cross(moved)
        moment_B = A21 @ pull + w_B.cross(A21 @ v_c) + v_B.cross(h_lin) - v_r.cross(h_lin - moved)
        (D11, D12), (D21, D22) = _blocks(self.linear)
        Q = self.quadratic
        force_B = force_B - part * (D11 @ v_r + D12 @ w_B + _squared(Vec3(Q[0], Q[1], Q[2]), v_r))
        moment_B = moment_B - part * (D21 @ v_r + D22 @ w_B + _squared(Vec3(Q[3], Q[4], Q[5]), w_B))
        if self.skin is not None:
            depth = volume / self.columns.area.sum(-1)
            force_B = force_B + self.skin.force(self.skin.area(depth, part), v_r, water.density, water.viscosity)
        return (buoyancy, Wrench((self.body,), R_WB @ force_B, moment_B)), ()

    def outputs(self, t, kin: Kinematics, memory, command):
        water, sea = self._water(t, kin)
        volume = self._wet(t, kin, water, sea.level).volume.sum(-1)
        velocity = Vec3(*(jnp.broadcast_to(v, (1,)) for v in sea.velocity_W.components())).array()[0]
        return {
            "immersed_volume": volume,
            "immersed_fraction": volume / self.columns.volume,
            "water_level": sea.level[0],
            "water_velocity": velocity,
        }


def _blocks(matrix: Array) -> tuple[tuple[Mat3, Mat3], tuple[Mat3, Mat3]]:
    m = [[Mat3.of(matrix[3 * i : 3 * i + 3, 3 * j : 3 * j + 3]) for j in range(2)] for i in range(2)]
    return (m[0][0], m[0][1]), (m[1][0], m[1][1])


def _squared(gain: Vec3, v: Vec3) -> Vec3:
    return gain.times(v.map(lambda x: jnp.abs(x) * x))
