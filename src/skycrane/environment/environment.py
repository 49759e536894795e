"""The surroundings: gravity, air, water and ground, as pure functions of time and place."""

from __future__ import annotations

import equinox as eqx
from jax import Array

from skycrane.environment.air import AbstractWind, Air, NoWind
from skycrane.environment.ground import Ground
from skycrane.environment.water import Water

GRAVITY = 9.81  # m/s^2


class Environment(eqx.Module):
    """What surrounds the bodies; elements reach it through ``kin.environment``.

    ``gravity`` [m/s^2], along minus z; ``ground`` and ``water`` None where there is none.
    """

    gravity: Array | float = GRAVITY
    air: Air = Air()
    ground: Ground | None = None
    water: Water | None = None


__all__ = ["GRAVITY", "AbstractWind", "Air", "Environment", "Ground", "NoWind", "Water"]
