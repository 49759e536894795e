"""Jets of air below rotors: what a rotor's thrust leaves behind, as a field of momentum.

A rotor of radius R with thrust T in air of density rho leaves a jet whose momentum flux is the thrust.  Momentum theory (Leishman,
"Principles of Helicopter Aerodynamics", 2nd ed. 2006, section 2.2) gives the induced velocity at the disc and the flow further down,

    v_i = sqrt(T / (2 rho pi R^2)),     v(z) = v_i (1 + z / sqrt(z^2 + R^2)),     R_c(z)^2 = R^2 v_i / v(z)  ->  R^2 / 2,

the second from the vortex cylinder of the wake (McCormick, "Aerodynamics of V/STOL Flight", 1967, section 4), the third by continuity.
Turbulence widens the jet: far below, its velocity falls off as exp(-r^2 / (2 (0.081 z)^2)) (Albertson, Dai, Jensen and Rouse, "Diffusion
of submerged jets", Trans. ASCE 115, 1950), its momentum flux per area therefore as a Gaussian of standard deviation 0.081 z / sqrt 2.
Momentum flux diffuses linearly (Reichardt's hypothesis; Schlichting, "Boundary-Layer Theory", 7th ed. 1979, section 24), so that
variances add and neighbouring jets add up:

    s(r, z) = T / (2 pi sigma^2) exp(-r^2 / (2 sigma^2)),     sigma^2 = R_c^2 / 4 + (k z)^2,     k = 0.057,     |u| = sqrt(sum_j s_j / rho),

R_c^2 / 4 being the variance of a uniform disc.  At every distance s integrates to T: near the rotor the pressure of its wake makes up
for the speed that the air has yet to gain.  It is the flow of a steady rotor: changes of thrust are felt below at once.  A rotor that
moves through the air leaves its jet behind: the jet leaves along ``-2 v_i a + wind - v_hub`` (a the thrust axis).  Above the disc there
is none.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.math.components import Scalar, Vec3, safe_sqrt

SPREAD = 0.081 / 2**0.5
"""Growth of the standard deviation of the momentum flux with distance, Albertson et al. (1950)."""


class Jets(eqx.Module):
    """n jets.

    Attributes:
        sources: static, the body that each jet comes from.
        spared: static, bodies that do not feel it through :meth:`velocity_W` (their faces take its momentum instead).
        origin_W: components (n,) m, hubs.
        direction_W: components (n,), unit, downstream.
        thrust, radius: (n,) N and m.
        density: kg/m^3, scalar or (n,).
        spread: k above.
    """

    sources: tuple[int, ...] = eqx.field(static=True)
    spared: tuple[int, ...] = eqx.field(static=True)
    origin_W: Vec3
    direction_W: Vec3
    thrust: Array
    radius: Array
    density: Scalar
    spread: Array | float = SPREAD

    def variance(self, z: Array) -> Array:
        """sigma^2 [m^2] at distances z >= 0 downstream (..., n)."""
        return variance(self.radius, z, self.spread)

    def strength(self, z: Array) -> Array:
        """Thrust [N] that the jet carries at distances z (..., n): all of it from one radius on, none above the disc."""
        return self.thrust * jnp.clip(z / self.radius, 0.0, 1.0)

    def flux(self, p_W: Vec3) -> Array:
        """s [N/m^2] of each jet at points with components (..., 1)."""
        arm = p_W - self.origin_W
        z = arm.dot(self.direction_W)
        aside = arm - self.direction_W * z
        spread = self.variance(jnp.maximum(z, 0.0))
        return self.strength(z) / (2.0 * jnp.pi * spread) * jnp.exp(-aside.dot(aside) / (2.0 * spread))

    def velocity_W(self, p_W: Vec3, bodies: tuple[int, ...]) -> Vec3:
        """Velocity [m/s] of the air at points (k, ...) of k bodies, from the jets of all other bodies."""
        felt = np.array([[b not in self.spared and b != source for source in self.sources] for b in bodies], dtype=float)
        if not felt.any():
            zero = jnp.zeros_like(p_W.x)
            return Vec3(zero, zero, zero)
        felt = felt.reshape(len(bodies), *(1,) * (jnp.ndim(p_W.x) - 1), -1).astype(np.dtype(jnp.result_type(p_W.x)))
        share = felt * self.flux(p_W.map(lambda x: x[..., None])) / self.density
        # The direction of the sum of momenta, its size the root of the sum (Reichardt).
        whole = self.direction_W.map(lambda d: (share * d).sum(-1))
        return whole.unit() * safe_sqrt(whole.norm())


def variance(radius: Scalar, z: Scalar, spread: Scalar = SPREAD) -> Scalar:
    """sigma^2 [m^2] of a jet's momentum flux at distance ``z`` >= 0 below a rotor; numbers or arrays of either kind."""
    contraction = 1.0 + z / (z * z + radius * radius) ** 0.5
    return 0.25 * radius * radius / contraction + (spread * z) ** 2
