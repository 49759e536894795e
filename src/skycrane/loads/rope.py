"""Ropes by their material, and the cables that are made of them.

A rope of length L in m segments: each has the stiffness k = EA m/L, and its mass is lumped at nodes.  ``lumps = "half"`` puts half a
segment's mass on either end of it, so both bodies carry half a segment; ``"lower"`` puts all of it on the lower end, as in arXiv 2305.09175
(arXiv 2305.09175), so that the lower body carries a whole segment's mass.

A damping ratio zeta is that of two segments' masses swinging against each other at the rate sqrt(4 k/m_s) of the fastest mode of a long
chain: ``c = zeta sqrt(k m_s)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.chain import WORLD
from skycrane.elements.cables import CableDrag, CableGround, Cables, Winch
from skycrane.loads.hanging import hanging_nodes
from skycrane.loads.rigid import Rigid
from skycrane.math.checks import concrete, filled, known, stacked

Lumps = Literal["half", "lower"]


class Rope(eqx.Module):
    """One rope.

    Attributes:
        length: m, unstretched.
        segments: static, their number.
        axial_stiffness: EA, N.
        damping: N s/m of one segment.
        linear_density: kg/m.
        bending_stiffness: EI, N m^2, or None.
        drag_normal, drag_tangential: m, drag coefficient times diameter, or None without drag.
        section: m^2, area of the cross-section, for buoyancy in water; None without.
        lumps: static, which end of a segment carries its mass.
    """

    length: Array | float
    axial_stiffness: Array | float
    damping: Array | float
    linear_density: Array | float
    bending_stiffness: Array | float | None = None
    drag_normal: Array | float | None = None
    drag_tangential: Array | float | None = None
    section: Array | float | None = None
    segments: int = eqx.field(static=True, default=5)
    lumps: Lumps = eqx.field(static=True, default="half")

    def __check_init__(self):
        if self.segments < 1:
            raise ValueError(f"a rope has {self.segments} segments, expected at least 1")
        if self.section is not None and self.drag_normal is None:
            raise ValueError("rope: a section, for buoyancy, needs drag_normal (0 for none) too")
        for name in ("length", "axial_stiffness", "linear_density"):
            value = getattr(self, name)
            if concrete(value) and not np.all(np.asarray(value) > 0):
                raise ValueError(f"rope: {name} is {value}, expected a positive number")
        for name in ("damping", "bending_stiffness", "drag_normal", "drag_tangential", "section"):
            value = getattr(self, name)
            if value is not None and concrete(value) and not np.all(np.asarray(value) >= 0):
                raise ValueError(f"rope: {name} is {value}, expected a number that is not negative")

    @classmethod
    def of_material(
        cls, length: float, diameter: float, density: float, youngs_modulus: float, damping_ratio: float = 0.05, segments: int = 5,
        *, bending: bool = False, normal_drag: float | None = 1.1, tangential_drag: float = 0.05,
    ) -> Rope:  # fmt: skip
        """A round rope: diameter [m], density [kg/m^3], Young's modulus [Pa], damping ratio; drag coefficients across and along it."""
        area = 0.25 * np.pi * diameter**2
        k, m = youngs_modulus * area * segments / length, density * area * length / segments
        return cls(
            length,
            youngs_modulus * area,
            damping_ratio * np.sqrt(k * m),
            density * area,
            youngs_modulus * np.pi * diameter**4 / 64 if bending else None,
            None if normal_drag is None else normal_drag * diameter,
            None if normal_drag is None else tangential_drag * diameter,
            None if normal_drag is None else area,
            segments=segments,
        )

    @classmethod
    def of_segments(cls, segments: int, length: float, stiffness: float, damping: float, mass: float, lumps: Lumps = "lower") -> Rope:
        """From the numbers of one segment, as arXiv 2305.09175 gives them: length [m], stiffness [N/m], damping [N s/m], mass [kg]."""
        return cls(segments * length, stiffness * length, damping, mass / length, segments=segments, lumps=lumps)

    @property
    def segment_mass(self) -> Array | float:
        return self.linear_density * self.length / self.segments

    @property
    def segment_stiffness(self) -> Array | float:
        return self.axial_stiffness * self.segments / self.length

    @property
    def end_masses(self) -> tuple[Any, Any]:
        """Mass that the upper and the lower body carry [kg]."""
        return (0.5 * self.segment_mass, 0.5 * self.segment_mass) if self.lumps == "half" else (0.0 * self.segment_mass, self.segment_mass)


def with_end_lumps(
    bodies: Sequence[Any], ropes: Sequence[Rope], upper: Sequence[int], lower: Sequence[int], upper_B: Any, lower_B: Any
) -> list[Any]:
    """Mass properties of bodies (anything with ``mass``, ``com_B``, ``inertia_B``) with the rope ends that they carry."""
    out = list(bodies)
    for i, rope in enumerate(ropes):
        for body, point, mass in zip((upper[i], lower[i]), (upper_B[i], lower_B[i]), rope.end_masses, strict=True):
            if body != WORLD and not (concrete(mass) and float(mass) == 0.0):
                now = out[body]
                out[body] = Rigid(now.mass, now.com_B, now.inertia_B).with_points(mass, point)
    return out


def cables_of(
    ropes: Sequence[Rope], upper: Sequence[int], lower: Sequence[int], upper_B: Any, lower_B: Any, upper_W: Any, lower_W: Any,
    *, gravity: float = 9.81, ground: CableGround | None = None, ground_height: float = 0.0, winch: Winch | None = None,
    names: Sequence[str] = (),
) -> Cables:  # fmt: skip
    """The element of k ropes with equally many segments, at rest between points ``upper_W``, ``lower_W`` (k, 3) of the world.

    The nodes start on the static shape that these ends allow, so that tensions at the start do not depend on any time step.

    Raises:
        ValueError: where ropes differ in the number of segments or in what they have.
    """
    kinds = {(r.segments, r.bending_stiffness is None, r.drag_normal is None, r.section is None) for r in ropes}
    if len(kinds) != 1:
        raise ValueError("ropes of one element need equally many segments, and the same of bending stiffness, drag and section")
    m = ropes[0].segments

    def each(value: Any, rows: int) -> Array:
        column = [value(r) for r in ropes]
        return filled(stacked([known(v, float) for v in column]), (rows, len(ropes)))

    stiffness, length = each(lambda r: r.segment_stiffness, m), each(lambda r: r.length / r.segments, m)
    node_mass = each(lambda r: r.segment_mass, m - 1)
    places = hanging_nodes(
        upper_W, lower_W, length, stiffness, node_mass, gravity,
        None if ground is None else (ground_height, ground.rate),
    )  # fmt: skip
    ones = jnp.ones((m, len(ropes)))
    return Cables(
        tuple(upper), tuple(lower), jnp.asarray(upper_B, dtype=float), jnp.asarray(lower_B, dtype=float),
        stiffness, each(lambda r: r.damping, m), length, node_mass, jnp.asarray(places), ones,
        bending=None if ropes[0].bending_stiffness is None else each(lambda r: r.bending_stiffness, 1)[0],
        drag=None if ropes[0].drag_normal is None else CableDrag(
            each(lambda r: r.drag_normal, 1)[0], each(lambda r: r.drag_tangential or 0.0, 1)[0],
            None if ropes[0].section is None else each(lambda r: r.section, 1)[0],
        ),
        ground=ground,
        winch=winch,
        names=tuple(names),
    )  # fmt: skip
