"""A run in a few numbers: flat, each name with its unit.

position error   e(t) = |p - p_ref| of each tracked body: root of the mean square, largest and last value
attitude error   smallest angle between attitude and wanted attitude for a body that can hold any attitude; for a body whose rotors
                 cannot push in every direction (it must tilt to move) the heading error: the angle about world z of
                 q q_ref^-1 = (swing) (twist about z)
energy drift     max |E(t) - E(0) - W(t)| / max(max |E|, integral of |P|),   W = integral of the non-conservative power P
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skycrane.analysis.trim_problem import rotor_elements
from skycrane.core.events import Timeline
from skycrane.core.system import System
from skycrane.simulation.rollout import Run
from skycrane.simulation.samples import Samples, Tracked, sample

SETTLE_BAND = 0.05  # m


def metrics(
    run: Run,
    system: System,
    reference: Any = None,
    *,
    tracked: Tracked = None,
    events: Timeline | None = None,
    control_period: float | None = None,
    settle_band: float = SETTLE_BAND,
    samples: Samples | None = None,
) -> dict[str, float]:
    """Figures of merit of one run, over its good samples.

    Args:
        run, system, reference, tracked, events, control_period: see :func:`skycrane.simulation.samples.sample`.
        settle_band: [m]; the run has settled once every position error stays below it.
        samples: what ``sample`` returned for this run, to save evaluating it again.

    Returns:
        By name: ``duration_s``, ``speed_max_m_s``, ``tilt_max_deg``; with a reference ``position_error_rms_m``, ``position_error_max_m``,
        ``position_error_final_m``, ``attitude_error_max_deg``, ``settle_time_s`` (left out if the run never settles); with a ledger
        ``energy_drift_rel`` and ``work_j``; with rotors ``thrust_max_n``, ``thrust_min_n``, ``rotor_speed_max_rad_s``,
        ``rotor_saturation_fraction`` (share of commands at or beyond a limit), ``shaft_energy_j``; with tensions ``tension_max_n``.
        Every value is a finite float.
    """
    if samples is None:
        samples = sample(run, system, reference, tracked=tracked, events=events, control_period=control_period)
    time, b = samples.time, samples.state.bodies
    out = {"duration_s": time[-1] - time[0], "speed_max_m_s": np.linalg.norm(b.v_W, axis=-1).max()}
    carried = _rotor_bodies(system)
    if carried:
        up = 1 - 2 * (b.q_WB[:, carried, 1] ** 2 + b.q_WB[:, carried, 2] ** 2)  # z of the body's z axis, for unit quaternions
        out["tilt_max_deg"] = np.degrees(np.arccos(np.clip(up, -1, 1))).max()
    if samples.target is not None:
        out.update(_tracking(samples, system, settle_band))
    if samples.work is not None and samples.throughput is not None:
        out["energy_drift_rel"] = energy_drift(samples.energy, samples.work, samples.throughput)
        out["work_j"] = samples.work[-1] - samples.work[0]
    out.update(_rotors(samples, system))
    tensions = [log["tension"] for log in samples.outputs.values() if "tension" in log and log["tension"].size]
    if tensions:
        out["tension_max_n"] = max(np.nanmax(T) for T in tensions)
    return {name: float(value) for name, value in out.items() if np.isfinite(value)}


def energy_drift(energy: np.ndarray, work: np.ndarray, throughput: np.ndarray) -> float:
    """Relative energy error of a run, from its energy, work and integral of |power| (n,) J; 0 where there is no energy at all."""
    unexplained = np.abs(energy - energy[0] - (work - work[0])).max()
    scale = max(np.abs(energy).max(), throughput[-1] - throughput[0])
    return float(unexplained / scale) if scale > 0 else 0.0


def heading_error(q_WB: np.ndarray, q_ref: np.ndarray) -> np.ndarray:
    """Angle [rad] about world z that turns the wanted attitude's heading into the actual one, quaternions (..., 4); in [-pi, pi]."""
    (a, b, c, d), (w, x, y, z) = np.moveaxis(q_WB, -1, 0), np.moveaxis(q_ref, -1, 0)
    # Scalar and z part of q_WB * conj(q_ref): the twist about z of the rotation from wanted to actual, in world axes.
    scalar, about_z = a * w + b * x + c * y + d * z, -a * z + d * w - b * y + c * x
    angle = 2 * np.arctan2(about_z, scalar)
    return np.mod(angle + np.pi, 2 * np.pi) - np.pi


def attitude_error(q_WB: np.ndarray, q_ref: np.ndarray) -> np.ndarray:
    """Smallest rotation angle [rad] between attitudes (..., 4)."""
    cosine = np.abs(np.sum(q_WB * q_ref, axis=-1))
    # The chord is accurate for small angles, where the arc cosine is not.
    chord = np.minimum(np.linalg.norm(q_WB - q_ref, axis=-1), np.linalg.norm(q_WB + q_ref, axis=-1))
    return np.where(cosine > 0.9, 4 * np.arcsin(np.clip(chord / 2, 0, 1)), 2 * np.arccos(np.clip(cosine, 0, 1)))


def _tracking(samples: Samples, system: System, settle_band: float) -> dict[str, float]:
    assert samples.target is not None
    index = [system.bodies.index(name) for name in samples.tracked]
    b = samples.state.bodies
    error = np.linalg.norm(b.p_WB[:, index] - samples.target.p_W, axis=-1)
    out = {
        "position_error_rms_m": np.sqrt(np.mean(error**2)),
        "position_error_max_m": error.max(),
        "position_error_final_m": error[-1].max(),
    }
    outside = np.flatnonzero(error.max(axis=1) > settle_band)
    if not outside.size:
        out["settle_time_s"] = 0.0
    elif outside[-1] + 1 < len(samples.time):
        out["settle_time_s"] = samples.time[outside[-1] + 1] - samples.time[0]
    worst = 0.0
    for k, body in enumerate(index):
        compare = heading_error if must_tilt(system, body) else attitude_error
        wanted = np.asarray(samples.target.q_WB[:, k])
        worst = max(worst, float(np.abs(compare(np.asarray(b.q_WB[:, body]), wanted)).max()))
    out["attitude_error_max_deg"] = np.degrees(worst)
    return out


def _rotor_bodies(system: System) -> list[int]:
    return sorted({body for e in rotor_elements(system).values() for body in e.bodies})


def must_tilt(system: System, body: int) -> bool:
    """Whether the body has rotors that cannot push it in every direction at a held attitude (force and moment map of rank below 6)."""
    columns = []
    for e in rotor_elements(system).values():
        if body in e.bodies:
            k = e.bodies.index(body)
            r, a = np.asarray(e.position_B[k]), np.asarray(e.axis_B[k])
            size = max(np.abs(r).max(), 1e-3)
            # Any ratio of torque to thrust gives the same rank, except a few that no rotor has.
            moment = np.cross(r, a) / size - 0.05 * np.asarray(e.spin[k])[:, None] * a
            columns.append(np.concatenate([a, moment], axis=1))
    return bool(columns) and bool(np.linalg.matrix_rank(np.concatenate(columns), tol=1e-3) < 6)


def _rotors(samples: Samples, system: System) -> dict[str, float]:
    elements = rotor_elements(system)
    if not elements:
        return {}
    logs = [samples.outputs[name] for name in elements]
    out = {
        "thrust_max_n": max(log["thrust"].max() for log in logs),
        "thrust_min_n": min(log["thrust"].min() for log in logs),
        "rotor_speed_max_rad_s": max(log["speed"].max() for log in logs if "speed" in log),
    }
    at_limit = []
    for name, e in elements.items():
        wanted = samples.outputs[name].get("speed_command")
        if wanted is not None:
            at_limit.append((wanted >= np.asarray(e.speed_max)) | (wanted <= np.asarray(e.speed_min)))
    if at_limit:
        out["rotor_saturation_fraction"] = np.mean([np.mean(x) for x in at_limit])
    powers = [log["shaft_power"].reshape(len(samples.time), -1).sum(1) for log in logs if "shaft_power" in log]
    if powers:
        out["shaft_energy_j"] = np.trapezoid(sum(powers), samples.time)
    return out
