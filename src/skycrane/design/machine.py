"""From a layout to a machine: mass, centre of gravity, inertia, and the map from thrusts to force and moment.

Mass model: rotors with their motors as points at their places, arms as thin bars from the origin to them, a structure that is a solid
sphere at the origin, and a battery with electronics that is a point, placed where it brings the centre of gravity to the origin as nearly
as its longest distance from there allows.  The defaults are the mass budget of A. Nikou, G. Gavridis and K. Kyriakopoulos (ICRA 2015):
7 x 0.12 + 0.66 + 0.25 + 0.15 = 1.90 kg.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Components:
    """Masses [kg]: each ``rotor``, ``structure`` (a ball of ``structure_radius`` m), ``battery`` with electronics at most
    ``battery_reach`` m from the origin, and arms of ``arm_density`` kg/m."""

    rotor: float = 0.12
    structure: float = 0.66
    structure_radius: float = 0.1
    battery: float = 0.40
    battery_reach: float = 0.15
    arm_density: float = 0.0


@dataclass(frozen=True)
class Masses:
    """``mass`` kg, ``com`` (3,) m from the origin, ``inertia`` (3, 3) kg m^2 about it, ``battery`` (3,) m where it lies."""

    mass: Any
    com: Any
    inertia: Any
    battery: Any


def masses(parts: Components, position: Any, xp: Any = np) -> Masses:
    """Mass properties of a machine with rotors at ``position`` (n, 3) m; ``xp`` is NumPy or ``jax.numpy``."""
    length = xp.sqrt((position * position).sum(-1) + 1e-30)
    arm = parts.arm_density * length
    mass = parts.rotor * len(position) + arm.sum() + parts.structure + parts.battery
    moment = ((parts.rotor + 0.5 * arm)[:, None] * position).sum(0)
    wanted = -moment / parts.battery
    distance = xp.sqrt((wanted * wanted).sum() + 1e-30)
    battery = wanted * xp.minimum(1.0, parts.battery_reach / distance)
    com = (moment + parts.battery * battery) / mass
    eye = xp.eye(3)

    def point(r: Any) -> Any:
        return (r * r).sum(-1)[..., None, None] * eye - r[..., :, None] * r[..., None, :]

    about_origin = (
        ((parts.rotor + arm / 3)[:, None, None] * point(position)).sum(0)
        + parts.battery * point(battery)
        + 0.4 * parts.structure * parts.structure_radius**2 * eye
    )
    return Masses(mass, com, about_origin - mass * point(com), battery)


def effectiveness(position: Any, direction: Any, spin: Any, moment_ratio: float, center: Any = None, xp: Any = np) -> Any:
    """Force and moment about ``center`` (3,) m for each newton of thrust: (6, n) = [F ; (r - c) x F - s mu F]."""
    lever = position if center is None else position - center
    moment = xp.cross(lever, direction) - moment_ratio * xp.asarray(spin)[:, None] * direction
    return xp.concatenate([direction.T, moment.T])


def plain_map(position: Any, direction: Any, xp: Any = np) -> Any:
    """D (6, n) = [F ; r x F], the paper's map, in metres and without reaction torque."""
    return xp.concatenate([direction.T, xp.cross(position, direction).T])
