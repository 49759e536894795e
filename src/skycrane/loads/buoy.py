"""Buoys: mass, shape, added mass and damping of floating bodies, and the bodies and elements that they are made of.

Estimates of added mass, where none is given (frequency-independent, rho that of the water, d the draft, for long waves):

    sphere, lying cylinder      1/2 rho V and rho V of the immersed volume     (Lamb 1932, arts. 92 and 71)
    upright cylinder            surge rho pi R^2 d, heave 4/3 rho R^3          (half of that of a disc in unbounded water)
    box                         surge rho pi/4 w d^2, sway rho pi/4 l d^2, heave rho pi/8 w^2 l   (half of a plate's: DNV-RP-C205, app. D)

and about roll and pitch those of the heave added mass spread over the waterplane.  Free-surface effects can double them or halve them: give
numbers, or tables of a panel code (:mod:`skycrane.loads.coefficients`), where it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.elements.buoyancy import Columns, FloatingHull
from skycrane.elements.skin import Skin
from skycrane.environment.water import FRESH_DENSITY
from skycrane.loads.columns import box_columns, cylinder_columns, joined, lying_cylinder_columns, moved, sphere_columns
from skycrane.loads.hydrostatics import Hydrostatics, hydrostatics
from skycrane.loads.rigid import Rigid, box, composite, cylinder, sphere
from skycrane.math.checks import filled, known, placed

Numbers = Any  # what jnp.asarray takes


class Buoy(eqx.Module):
    """A floating body in numbers; every number may be traced.

    Attributes:
        rigid: mass, centre of mass and inertia.
        columns: its shape, from the same reference point.
        added, linear: (6, 6) added mass and linear damping; ``quadratic`` (6,); see :class:`FloatingHull`.
        displacement: m^3, immersed volume at rest.
        skin: friction, or None.
    """

    rigid: Rigid
    columns: Columns
    added: Array
    linear: Array
    quadratic: Array
    displacement: Array | float
    skin: Skin | None = None

    @classmethod
    def create(
        cls,
        rigid: Rigid,
        columns: Columns,
        added: Numbers,
        linear: Numbers = 0.0,
        quadratic: Numbers = 0.0,
        skin: Skin | None = None,
        density: float = FRESH_DENSITY,
    ) -> Buoy:
        """From its parts; ``added`` and ``linear`` may be (6,) diagonals.

        Raises:
            ValueError: for a matrix of another shape, with the row that is wrong.
        """  # fmt: skip
        return cls(
            rigid, columns, six_by_six(added, "added mass"), six_by_six(linear, "linear damping"),
            filled(quadratic, (6,), jnp.result_type(float)), rigid.mass / density, skin,
        )  # fmt: skip

    def element(self, body: int, local: str = "columns") -> FloatingHull:
        """The element that floats body number ``body``."""
        return FloatingHull(body, self.columns, self.displacement, self.added, self.linear, self.quadratic, self.skin, local)

    def hydrostatics(self, density: float = FRESH_DENSITY, gravity: float = 9.81) -> Hydrostatics:
        """How it floats at rest."""
        return hydrostatics(self.rigid, self.columns, self.added, density, gravity)


def six_by_six(value: Numbers, what: str) -> Array:
    """A (6, 6) matrix from a number, a diagonal (6,) or rows.

    Raises:
        ValueError: names the row that has another length.
    """
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        for i, row in enumerate(value):
            if len(row) != 6:
                raise ValueError(f"{what}: row {i + 1} of the matrix has {len(row)} numbers, expected 6")
        if len(value) != 6:
            raise ValueError(f"{what}: the matrix has {len(value)} rows, expected 6")
    array = known(value, jnp.result_type(float))
    if array.shape in ((), (6,)):
        return placed(array * np.eye(6, dtype=array.dtype))
    if array.shape != (6, 6):
        raise ValueError(f"{what} has shape {array.shape}, expected (6, 6), a diagonal (6,) or one number")
    return placed(array)


def _with_ballast(rigid: Rigid, center_height: float | None) -> Rigid:
    """The same body with its centre of mass at a height [m] above the reference point."""
    if center_height is None:
        return rigid
    return Rigid.create(rigid.mass, rigid.inertia_B, (0.0, 0.0, center_height))


def box_buoy(
    mass: float,
    size: Sequence[float],
    *,
    center_height: float | None = None,
    added: Numbers | None = None,
    density: float = FRESH_DENSITY,
    count: tuple[int, int] = (4, 4),
    **options,
) -> Buoy:
    """A box l, w, h with its mass spread evenly and its centre of mass at ``center_height`` [m] above its middle (ballast)."""  # fmt: skip
    length, width, _ = size
    d = mass / (density * length * width)
    if added is None:
        heave = density * np.pi / 8 * width**2 * length
        surge, sway = (density * np.pi / 4 * side * d**2 for side in (width, length))
        added = [surge, sway, heave, heave * width**2 / 12, heave * length**2 / 12, 0.0]
    rigid = _with_ballast(box(mass, size), center_height)
    return Buoy.create(rigid, box_columns(size, count), added, density=density, **options)


def cylinder_buoy(
    mass: float,
    radius: float,
    height: float,
    *,
    center_height: float | None = None,
    added: Numbers | None = None,
    density: float = FRESH_DENSITY,
    count: tuple[int, int] = (2, 8),
    **options,
) -> Buoy:
    """An upright cylinder (a can, or a spar with low ballast)."""  # fmt: skip
    d = mass / (density * np.pi * radius**2)
    if added is None:
        surge, heave = density * np.pi * radius**2 * d, 4 / 3 * density * radius**3
        middle = -0.5 * height + 0.5 * d  # of the immersed part
        tilt = heave * radius**2 / 4 + surge * (d**2 / 12 + middle**2)
        added = np.diag([surge, surge, heave, tilt, tilt, 0.0])
        added[0, 4] = added[4, 0] = surge * middle
        added[1, 3] = added[3, 1] = -surge * middle
    rigid = _with_ballast(cylinder(mass, radius, height), center_height)
    return Buoy.create(rigid, cylinder_columns(radius, height, count), added, density=density, **options)


def sphere_buoy(
    mass: float,
    radius: float,
    *,
    center_height: float | None = None,
    added: Numbers | None = None,
    density: float = FRESH_DENSITY,
    count: tuple[int, int] = (5, 6),
    **options,
) -> Buoy:
    """A ball."""  # fmt: skip
    if added is None:
        added = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]) * 0.5 * mass
    rigid = _with_ballast(sphere(mass, radius), center_height)
    return Buoy.create(rigid, sphere_columns(radius, count), added, density=density, **options)


def twin_buoy(
    mass: float,
    hull: Sequence[float],
    spacing: float,
    *,
    center_height: float | None = None,
    added: Numbers | None = None,
    density: float = FRESH_DENSITY,
    count: tuple[int, int] = (4, 3),
    round_hulls: bool = False,
    **options,
) -> Buoy:
    """Two equal hulls l, w, h side by side, their middles ``spacing`` [m] apart; lying cylinders of diameter w if ``round_hulls``."""
    length, width, _ = hull
    if round_hulls:
        turn = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # z to x
        one, shape = (
            cylinder(0.5 * mass, 0.5 * width, length).moved((0.0, 0.0, 0.0), turn),
            lying_cylinder_columns(0.5 * width, length, count),
        )
    else:
        one, shape = box(0.5 * mass, hull), box_columns(hull, count)
    sides = [(0.0, 0.5 * spacing, 0.0), (0.0, -0.5 * spacing, 0.0)]
    rigid = _with_ballast(composite([one.moved(s) for s in sides]), center_height)
    if added is None:
        d = mass / (2 * density * length * width)
        heave = density * np.pi / 4 * width**2 * length
        surge, sway = (density * np.pi / 2 * side * d**2 for side in (width, length))
        roll = heave * ((0.5 * spacing) ** 2 + width**2 / 12)
        yaw = sway * length**2 / 12 + surge * (0.5 * spacing) ** 2
        added = [surge, sway, heave, roll, heave * length**2 / 12, yaw]
    return Buoy.create(rigid, joined(*(moved(shape, s) for s in sides)), added, density=density, **options)


def friction_of(columns: Columns, length: float, bottom: float | None = None, girth: float | None = None) -> Skin:
    """Skin of a hull: the bottom is its waterplane, the girth that of a box of this length and area."""
    area = float(columns.area.sum())
    return Skin(length, area if bottom is None else bottom, 2.0 * (length + area / length) if girth is None else girth)
