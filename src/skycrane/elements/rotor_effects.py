"""Corrections of a rotor's thrust, each an option: ground effect and axial flow; and where momentum theory stops being valid.

**Ground effect** (Cheeseman and Bennett, "The effect of the ground on a helicopter rotor in forward flight", ARC R&M 3021, 1955): at
equal power

    T / T_inf = 1 / (1 - g),    g = (R a_z / 4 z)^2 / (1 + (V_x / v)^2)

with the height z of the hub, the induced velocity v and the airspeed V_x along the disc.  The source is for level discs (a_z = 1); the
vertical part a_z of the thrust axis is our extension, so that a disc that pushes sideways has none.  The formula grows without bound
below z = R/4; it is used down to ``lowest`` radii (0.5 by default: a third more thrust), and no lower.

**Axial flow** at climb speed V_c through the disc: blade elements with uniform inflow give, at equal speed (Leishman 2006, eq. 3.23,
of which the hover value is subtracted), and momentum gives (eq. 2.86),

    T = T_h - S (V_c + v - v_h),   S = 1/4 rho A (sigma a) W R,        T = 2 rho A (V_c + v) v

with T_h = k_F W^2 and v_h the hover values: a quadratic for v.  The torque changes by the induced and climb power,
``Q = Q_h + (T (V_c + v) - T_h v_h) / W``.  V_c is taken from -v_h/2 (below, the flow is that of the vortex-ring state, which this
theory does not describe) to where the thrust has fallen to zero.

**Vortex ring**: descent at 0.5 to 1.5 v_h with less than v_h along the disc (Leishman 2006, section 2.13; Johnson 2013, section 4.2).
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from skycrane.math.components import Scalar, safe_sqrt

VORTEX_RING = (0.5, 1.5)  # descent speed over hover induced velocity


class GroundEffect(eqx.Module):
    """More thrust near the ground of the environment; ``lowest`` is the smallest height, in radii, that the formula is used at."""

    lowest: Array | float = 0.5

    def strength(self, radius: Array, height: Array, axis_z: Array) -> Array:
        """(R a_z / 4 z)^2 for hubs at heights [m] above ground whose thrust axes have the vertical part ``axis_z``."""
        ratio = 0.25 * radius * jnp.maximum(axis_z, 0.0) / jnp.maximum(height, self.lowest * radius)
        return ratio * ratio


def at_speed(strength: Array, in_plane: Array, induced: Array) -> Array:
    """g: the ground effect's ``strength`` at a squared airspeed along the disc and a squared induced velocity [m^2/s^2]."""
    total = in_plane + induced
    still = total <= 0
    return strength * jnp.where(still, 1.0, induced / jnp.where(still, 1.0, total))


class AxialFlow(eqx.Module):
    """Change of thrust and torque in climb and descent; ``loading_slope`` = sigma a, solidity times lift slope of the blades [1/rad]."""

    loading_slope: Array | float = 0.5

    def correct(
        self, thrust: Array, torque: Array, speed: Array, climb: Array, density: Scalar, radius: Array
    ) -> tuple[Array, Array, Array]:
        """Thrust [N], torque [N m] and induced velocity [m/s], from those of hover at the same ``speed`` [rad/s] and the axial airspeed
        ``climb`` [m/s]."""
        area = jnp.pi * radius * radius
        k = 2.0 * density * area
        hover = safe_sqrt(thrust / k)
        turning = speed > 0
        S = 0.125 * k * self.loading_slope * radius * speed
        none = hover + jnp.where(turning, thrust / jnp.where(turning, S, 1.0), 0.0)  # climb speed at which the thrust is gone
        climb = jnp.clip(climb, -0.5 * hover, none)
        b = k * climb + S
        induced = (safe_sqrt(b * b + 4.0 * k * (thrust - S * (climb - hover))) - b) / (2.0 * k)
        new = thrust - S * (climb + induced - hover)
        extra = jnp.where(turning, (new * (climb + induced) - thrust * hover) / jnp.where(turning, speed, 1.0), 0.0)
        return new, torque + extra, induced


def in_vortex_ring(climb: Array, in_plane: Array, hover_induced: Array) -> Array:
    """Whether a rotor descends in its own wake; all arguments in m/s, ``climb`` the axial airspeed, positive upwards."""
    low, high = VORTEX_RING
    return (-climb > low * hover_induced) & (-climb < high * hover_induced) & (in_plane < hover_induced)
