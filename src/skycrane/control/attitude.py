"""Attitude: errors, wanted attitudes, and the geometric law of Lee, Leok and McClamroch.

    e_R = 1/2 (Rd^T R - R^T Rd)^vee,   e_w = w - R^T Rd w_d                              (Lee et al. 2010, eqs. 10 and 11)
    alpha = -k_R e_R - k_w e_w - w x (R^T Rd w_d) + R^T Rd w_d'                       (eq. 16, divided by the inertia)

T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", CDC 2010.  Sign: an attitude that is
ahead of the wanted one by an angle c about a body axis has the error sin(c) about it, so a yaw of 90 degrees too much is (0, 0,
1).
"""

from __future__ import annotations

import jax.numpy as jnp

from skycrane.math.components import Mat3, Scalar, Vec3, safe_sqrt


def attitude_error(R_WB: Mat3, R_WD: Mat3) -> Vec3:
    """e_R in body axes: attitude ``R_WB`` against the wanted ``R_WD``."""
    return (R_WD.T @ R_WB).vee()


def geometric_acceleration(
    R_WB: Mat3, w_B: Vec3, R_WD: Mat3, w_D: Vec3, attitude_gain: Vec3, rate_gain: Vec3, alpha_D: Vec3 | None = None
) -> Vec3:
    """Angular acceleration [rad/s^2], body axes, of the law above; ``w_D`` and ``alpha_D`` = w_d' in the wanted body axes."""
    R_BD = R_WB.T @ R_WD
    w_wanted = R_BD @ w_D
    alpha = -attitude_gain.times(attitude_error(R_WB, R_WD)) - rate_gain.times(w_B - w_wanted) - w_B.cross(w_wanted)
    return alpha if alpha_D is None else alpha + R_BD @ alpha_D


def attitude_along(axis_W: Vec3, heading_W: Vec3) -> Mat3:
    """The attitude whose z axis is along ``axis_W`` (any length), its x axis in the plane of that and ``heading_W`` (Lee 2010,
    eq. 23).

    Where the two are nearly parallel the y axis is taken to the left of the heading, so that the result stays a rotation.
    """
    b3 = axis_W.unit()
    across = b3.cross(heading_W)
    parallel = across.dot(across) < 1e-4
    b2 = Vec3(jnp.where(parallel, -heading_W.y, across.x), jnp.where(parallel, heading_W.x, across.y), jnp.where(parallel, 0.0, across.z))
    b2 = (b2 - b2.dot(b3) * b3).unit()
    return Mat3(b2.cross(b3), b2, b3).T


def limit_tilt(specific_W: Vec3, tilt_max: Scalar, least: Scalar) -> Vec3:
    """A wanted specific force [m/s^2] with at least ``least`` upwards and at most ``tilt_max`` [rad] from the vertical; height
    comes first."""
    up = jnp.maximum(specific_W.z, least)
    sideways = safe_sqrt(specific_W.x * specific_W.x + specific_W.y * specific_W.y)
    most = jnp.tan(tilt_max) * up
    over = sideways > most
    factor = jnp.where(over, most / jnp.where(over, sideways, 1.0), 1.0)
    return Vec3(factor * specific_W.x, factor * specific_W.y, up)


def turn_towards(R_WD: Mat3, axis_W: Vec3, within: Scalar) -> Mat3:
    """The attitude nearest to ``R_WD`` whose z axis is at most ``within`` [rad] from ``axis_W``."""
    b3, goal = R_WD.T.z, axis_W.unit()
    normal = b3.cross(goal)
    angle = jnp.arctan2(normal.norm(), b3.dot(goal))
    turn = jnp.maximum(angle - within, 0.0)
    S = Mat3.skew(normal.unit())
    S_R = S @ R_WD
    return R_WD + jnp.sin(turn) * S_R + (1.0 - jnp.cos(turn)) * (S @ S_R)


def quaternion_error(R_WB: Mat3, R_WD: Mat3) -> Vec3:
    """Twice the vector part of the quaternion from body to wanted axes, scalar part not negative: a rotation vector for small
    angles.

    Found from the matrix: with E = R^T Rd, (E - E^T)^vee = 2 w (x, y, z) and 4 w^2 = 1 + tr E, so 2 (x, y, z) = (E - E^T)^vee /
        w.  At half a turn, where
    w = 0, the axis is undefined; w is bounded below, so the result stays finite.
    """
    E = R_WB.T @ R_WD
    trace = E.x.x + E.y.y + E.z.z
    w = 0.5 * jnp.sqrt(jnp.maximum(1.0 + trace, 1e-4))
    return E.vee() * (1.0 / w)
