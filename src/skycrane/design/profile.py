"""Wakes as bodies of revolution: the outline of the stream around a rotor.

In the rotor's own axes, x along the exhaust (against the thrust, ``x = -F . (p - r)``) and rho from the axis of rotation, the wake is

    a <= x <= b,   rho <= R(x)

For an 8-inch propeller (A. Nikou, G. Gavridis and K. Kyriakopoulos, "Mechanical design, modelling and control of a novel aerial
manipulator", ICRA 2015, eq. 20; from experiments): a = -0.06 m, b = 0.91 m, R(x) = -1.1 x^3 + 1.56 x^2 - 0.3 x + 0.11 m.

A profile is kept as a table with straight lines between its entries.  ``excess`` bounds how far the true outline can lie outside of
these lines, so that distances computed with the table minus the excess are safe: for a cubic at n equal intervals h it is
h^2 max|R''| / 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

FINE = 1024  # intervals of a cubic outline: excess 4e-7 m for that of the paper


@dataclass(frozen=True)
class Profile:
    """Outline of a body of revolution: ``radius`` [m] at stations ``x`` [m] along the axis, increasing; ``excess`` [m] see the module."""

    x: tuple[float, ...]
    radius: tuple[float, ...]
    excess: float = 0.0

    def __post_init__(self):
        x, radius = np.asarray(self.x, float), np.asarray(self.radius, float)
        if x.ndim != 1 or x.shape != radius.shape or len(x) < 2:
            raise ValueError(f"a profile needs two or more stations with a radius each, found {x.shape} and {radius.shape}")
        if not (np.isfinite(x).all() and np.isfinite(radius).all()):
            raise ValueError("a profile needs finite numbers")
        if (np.diff(x) <= 0).any():
            raise ValueError("the stations of a profile must increase")
        if (radius < 0).any() or not radius.any():
            raise ValueError("the radii of a profile must be 0 or more, and not all 0")

    @classmethod
    def table(cls, rows: Sequence[Sequence[float]]) -> Profile:
        """From rows (x, radius) in m, taken as exact."""
        for row in rows:
            if len(row) != 2:
                raise ValueError(f"a row of a profile is (x, radius), found {tuple(row)}")
        return cls(tuple(float(row[0]) for row in rows), tuple(float(row[1]) for row in rows))

    @classmethod
    def cubic(cls, coefficients: Sequence[float], start: float, end: float, intervals: int = FINE) -> Profile:
        """From a polynomial of third order, highest power first, between ``start`` and ``end`` [m]."""
        if len(coefficients) != 4:
            raise ValueError(f"a cubic has four coefficients, found {len(coefficients)}")
        if not start < end:
            raise ValueError(f"a profile from {start} to {end} m: the start must lie before the end")
        x = np.linspace(start, end, intervals + 1)
        bend = max(abs(6 * coefficients[0] * edge + 2 * coefficients[1]) for edge in (start, end))
        excess = ((end - start) / intervals) ** 2 * bend / 8
        return cls(tuple(x.tolist()), tuple(np.polyval(np.asarray(coefficients, float), x).tolist()), float(excess))

    @classmethod
    def disk(cls, radius: float, thickness: float = 0.02) -> Profile:
        """A rotor disk."""
        return cls((-0.5 * thickness, 0.5 * thickness), (radius, radius))

    @cached_property
    def stations(self) -> np.ndarray:
        """(k, 2) rows x, radius."""
        return np.stack([np.asarray(self.x, float), np.asarray(self.radius, float)], -1)

    @property
    def start(self) -> float:
        return self.x[0]

    @property
    def end(self) -> float:
        return self.x[-1]

    def at(self, x: np.ndarray) -> np.ndarray:
        """Radius [m] at ``x`` [m]; that of the nearer end beyond the ends."""
        return np.interp(x, self.stations[:, 0], self.stations[:, 1])

    def sampled(self, count: int) -> np.ndarray:
        """(count, 2) stations, evenly along the outline: a coarser table."""
        s = self.stations
        length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(s, axis=0).T))])
        x = np.interp(np.linspace(0.0, length[-1], count), length, s[:, 0])
        return np.stack([x, self.at(x)], -1)


WAKE = Profile.cubic((-1.1, 1.56, -0.3, 0.11), -0.06, 0.91)
"""The wake of the paper's propeller."""
