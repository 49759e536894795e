"""Thrusts of one sign for a wrench, by a shift along a positive null vector.

With n > 0 and ``B n = 0`` any solution of ``B lambda = W`` stays one when c n is added.  A. Nikou, G. Gavridis and K. Kyriakopoulos (ICRA
2015), eqs. (16), (17), solve for the first six rotors and add the sum of all negative thrusts; the smallest shift that leaves no thrust
below its lower limit has the smallest total, since n is positive.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.control.allocation import Allocation
from skycrane.control.reach import positive_null
from skycrane.math.components import Vec3, safe_sqrt


class Shift(eqx.Module):
    """Redistribution for k vehicles of n rotors.

    Attributes:
        inverse: (k, n, 6) from a wrench to thrusts, N: the pseudo-inverse, or the inverse of the first six rotors' map.
        null: (k, n) positive thrusts that cancel, mean 1.
        low, high: (k, n) N, limits; ``thrust_coefficient`` (k, n) N s^2.
        rule_17: static; the paper's shift instead of the smallest.
    """

    inverse: Array
    null: Array
    low: Array
    high: Array
    thrust_coefficient: Array
    rule_17: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(cls, allocation: Allocation, rule: Literal["minimal_shift", "rule_17"] = "minimal_shift") -> Shift:
        """For the rotors of an allocation, about its point (concrete numbers).

        Raises:
            ValueError: where no positive thrusts cancel, or (for ``rule_17``) the first six rotors do not span all directions.
        """
        B = np.asarray(allocation.effectiveness, float)
        nulls = [positive_null(rows) for rows in B]
        if any(null is None for null in nulls):
            raise ValueError("no positive thrusts of these rotors cancel: redistribution along a null vector needs such rotors")
        if rule == "rule_17":
            if max(np.linalg.cond(rows[:, :6]) for rows in B) > 1e8:
                raise ValueError("rule 17 needs first six rotors that span all directions of force and moment")
            inverse = np.concatenate([np.linalg.inv(B[..., :6]), np.zeros((len(B), B.shape[-1] - 6, 6))], 1)
        else:
            inverse = np.linalg.pinv(B)
        return cls(
            jnp.asarray(inverse), jnp.asarray(np.stack([n for n in nulls if n is not None])), allocation.thrust_min, allocation.thrust_max,
            allocation.thrust_coefficient, rule == "rule_17",
        )  # fmt: skip

    def __call__(self, force_B: Vec3, moment_B: Vec3) -> tuple[Array, Any]:
        """Rotor speeds (k, n) rad/s for a wrench about the allocation's point; and whether (k,) a limit stood in the way."""
        wrench = jnp.stack(jnp.broadcast_arrays(*force_B.components(), *moment_B.components()), -1)
        thrust = (self.inverse * wrench[:, None]).sum(-1)
        if self.rule_17:
            shift = jnp.maximum(-thrust, 0.0).sum(-1, keepdims=True)
        else:
            shift = ((self.low - thrust) / self.null).max(-1, keepdims=True)
        thrust = thrust + shift * self.null
        limited = jnp.clip(thrust, self.low, self.high)
        return safe_sqrt(limited / self.thrust_coefficient), jnp.any(jnp.abs(limited - thrust) > 1e-6 * self.high, -1)
