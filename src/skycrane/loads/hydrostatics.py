"""How a hull floats at rest: draft, stiffness, metacentric heights, natural periods, stability.

With the waterplane area A and its second moments I_x, I_y over the columns that the surface cuts, the immersed volume V = m/rho, and the
centres of buoyancy and of mass at heights z_b, z_g from B:

    C33 = rho g A,   C44 = rho g I_x + m g (z_b - z_g),   C55 = rho g I_y + m g (z_b - z_g),   GM = C/(m g)

(Newman 1977, 6.16.)  The hull capsizes where C44 or C55 is negative.  Periods are those of the modes of ``C x = w^2 (M + M_A) x`` over all
six degrees of freedom without damping, so that the axis of roll is where mass and added mass put it.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import numpy as np

from skycrane.core.bodies import Bodies
from skycrane.elements.buoyancy import Columns
from skycrane.loads.rigid import Rigid


@dataclass(frozen=True)
class Hydrostatics:
    """A hull at rest, upright.

    ``draft`` m, from its lowest point to the surface; ``height`` m, of the reference point B above the surface; ``volume`` m^3 immersed and
    ``whole_volume``; ``waterplane`` m^2; ``center_of_buoyancy``, ``center_of_mass`` m, heights above B; ``gm_roll``, ``gm_pitch`` m, the
    metacentric heights; ``stiffness`` (6, 6) about B; ``period_heave``, ``period_roll``, ``period_pitch`` s, infinite where there is no
    oscillation.
    """

    draft: float
    height: float
    volume: float
    whole_volume: float
    waterplane: float
    center_of_buoyancy: float
    center_of_mass: float
    gm_roll: float
    gm_pitch: float
    stiffness: np.ndarray
    period_heave: float
    period_roll: float
    period_pitch: float

    @property
    def stable(self) -> bool:
        """Whether it floats upright."""
        return self.gm_roll > 0 and self.gm_pitch > 0

    @property
    def verdict(self) -> str:
        """One line."""
        if self.stable:
            return "floats upright"
        axes = " and ".join(name for name, gm in (("roll", self.gm_roll), ("pitch", self.gm_pitch)) if not gm > 0)
        worst = min(self.gm_roll, self.gm_pitch)
        return f"this hull capsizes in {axes} (GM {worst:.3f} m): lower its centre of mass, or make it wider"


def hydrostatics(rigid: Rigid, columns: Columns, added, density: float, gravity: float) -> Hydrostatics:
    """How a body of this shape floats.

    Raises:
        ValueError: where it is too heavy to float.
    """
    mass = float(rigid.mass)
    base, height, area = (np.asarray(a, dtype=float) for a in (columns.base_B, columns.height, columns.area))
    whole = float((height * area).sum())
    if mass >= density * whole:
        raise ValueError(f"this hull sinks: its mass is {mass:g} kg, and all of it displaces {density * whole:g} kg of water")

    def wet(level: float) -> np.ndarray:
        return np.clip(level - base[:, 2], 0.0, height)

    # The volume below a level is linear from one end of a column to the next.
    levels = np.unique([base[:, 2], base[:, 2] + height])
    lowest = levels[0]
    level = float(np.interp(mass / density, [float((wet(z) * area).sum()) for z in levels], levels))
    h = wet(level)
    volume = float((h * area).sum())
    cut = (h > 0) & (h < height)
    plane = np.where(cut, area, 0.0)
    z_b = float((area * h * (base[:, 2] + 0.5 * h)).sum()) / volume
    z_g = float(rigid.com_B[2])
    A = float(plane.sum())
    Sx, Sy = float((plane * base[:, 0]).sum()), float((plane * base[:, 1]).sum())
    Ix, Iy, Ixy = (float((plane * v).sum()) for v in (base[:, 1] ** 2, base[:, 0] ** 2, base[:, 0] * base[:, 1]))
    lever = mass * gravity * (z_b - z_g)
    k = density * gravity
    C = np.zeros((6, 6))
    C[2:5, 2:5] = [[k * A, k * Sy, -k * Sx], [k * Sy, k * Ix + lever, -k * Ixy], [-k * Sx, -k * Ixy, k * Iy + lever]]
    periods = _periods(C, rigid, np.asarray(added, dtype=float))
    weight = mass * gravity
    return Hydrostatics(
        level - lowest, -level, volume, whole, A, z_b, z_g, C[3, 3] / weight, C[4, 4] / weight, C, *periods,
    )  # fmt: skip


def _periods(C: np.ndarray, rigid: Rigid, added: np.ndarray) -> list[float]:
    """Heave, roll and pitch [s]: each mode belongs to the motion of the three in which it has the most of its stiffness energy."""
    hull = Bodies.create(["hull"], [rigid.mass], [rigid.inertia_B], [rigid.com_B], added[None])
    M = np.asarray(eqx.filter_jit(Bodies.matrix)(hull)[0])  # one program instead of one for every operation
    half = np.linalg.inv(np.linalg.cholesky(M))  # C x = w^2 M x as a symmetric problem
    squares, modes = np.linalg.eigh(half @ C @ half.T)
    modes = half.T @ modes
    share = np.abs(modes * (C @ modes))[2:5]
    periods = []
    for row in share:
        n = int(np.argmax(row))
        periods.append(2 * np.pi / np.sqrt(squares[n]) if squares[n] > 1e-9 else np.inf)
    return periods
