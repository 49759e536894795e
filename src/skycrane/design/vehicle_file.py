"""A finished layout as a vehicle file that `skycrane run` takes at once."""

from __future__ import annotations

import numpy as np

from skycrane.control.reach import positive_null
from skycrane.design.machine import effectiveness
from skycrane.design.problem import Problem
from skycrane.design.verify import Verified
from skycrane.environment.environment import GRAVITY

SPEED_MAX = 1837.83  # rad/s: 17550 rpm, at which the paper's motor gives 28 N
SPEED_MIN = 150.0  # rad/s
DAMPING = 12.0  # 1/s, rate gain over inertia: below half of the motors' 33/s
ADAPTATION = 3.0  # rad/s, of each loop that an adaptation closes; together with the others still slower than damping and motors allow


def vehicle_toml(problem: Problem, position: np.ndarray, direction: np.ndarray, tip: np.ndarray, facts: Verified, name: str) -> str:
    """The text of the file: vehicle, controller and a hover."""
    F = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    k = problem.thrust_max / SPEED_MAX**2
    speeds = np.sqrt(np.maximum(hover_thrusts(problem, position, F, facts, k * SPEED_MIN**2), 0.0) / k)
    inertia = ",\n".join("    " + _row(row) for row in facts.inertia)
    parts = problem.parts
    lines = [
        f"# A fully actuated vehicle of {problem.rotors} rotors, found by `skycrane design manipulator`.",
        f"# Size {facts.size:.4f} m, condition number {facts.condition:.3f}, wakes {1e3 * facts.clearance_min:.2f} mm apart or more.",
        f"# Masses: {parts.rotor:g} kg at every rotor, arms of {parts.arm_density:g} kg/m, a ball of {parts.structure:g} kg and"
        f" {parts.structure_radius:g} m radius at the origin,",
        f"# battery and electronics {parts.battery:g} kg at {_row(facts.battery)} m.",
        "# A scenario that flies it: [vehicle] with model = the name of this file.",
        "",
        'schema_version = "1"',
        f'name = "{name}"',
        f'title = "Designed vehicle with {problem.rotors} rotors, {facts.mass:.2f} kg"',
        "",
        "[run]",
        "duration = 10.0                       # s",
        "step = 0.002                          # s",
        "control_period = 0.004                # s",
        "",
        "[vehicle]",
        f"mass = {facts.mass:.9g}                            # kg",
        f"com = {_row(facts.com)}  # m",
        "inertia = [                           # kg m^2, about the centre of mass",
        inertia + ",",
        "]",
        "",
        "[vehicle.rotor]",
        f"thrust_coefficient = {k:.9g}      # N s^2: {problem.thrust_max:g} N at 17550 rpm",
        f"moment_ratio = {problem.moment_ratio:g}                 # m",
        f"speed_max = {SPEED_MAX}                  # rad/s",
        f"speed_min = {SPEED_MIN:g}                       # rad/s, at which the motors idle: stopped ones would take too long to start",
        "time_constant = 0.03                  # s, assumed",
        f"radius = {problem.disk_radius:g}                       # m",
        "",
    ]
    for r, f, spin in zip(position, F, problem.spin, strict=True):
        lines += ["[[vehicle.rotors]]", f"position = {_row(r)}", f"axis = {_row(f)}", f'spin = "{"ccw" if spin > 0 else "cw"}"', ""]
    lines += [
        "[vehicle.end_effector]",
        f"position = {_row(tip)}  # m",
        "",
        "[vehicle.initial]",
        "position = [0.0, 0.0, 2.0]            # m",
        f"rotors = [{', '.join(f'{w:.6f}' for w in np.clip(speeds, SPEED_MIN, SPEED_MAX))}]  # rad/s, level hover",
        "",
        "[vehicle.visual]",
        "color = [0.62, 0.22, 0.32]",
        "size = [0.12, 0.12, 0.12]",
        "",
        "[control]",
        'kind = "backstepping"',
        "",
        *gains(facts, tip),
        "",
    ]
    return "\n".join(lines)


def hover_thrusts(problem: Problem, position: np.ndarray, direction: np.ndarray, facts: Verified, least: float) -> np.ndarray:
    """Thrusts (n,) N of level hover as the controller shares them out (:class:`skycrane.control.redistribution.Shift`), so that a flight
    begins in balance; those of smallest peak where no positive thrusts cancel."""
    null = positive_null(effectiveness(position, direction, problem.spin, problem.moment_ratio))
    if null is None:
        return facts.hover_thrust
    about_com = effectiveness(position, direction, problem.spin, problem.moment_ratio, facts.com)
    thrust = np.linalg.pinv(about_com) @ np.array([0.0, 0.0, facts.mass * GRAVITY, 0.0, 0.0, 0.0])
    return thrust + ((least - thrust) / null).max() * null


def gains(facts: Verified, tip: np.ndarray) -> list[str]:
    """Gains of the backstepping law for the inertia that the layout has.

    Turning, with inertia I and the end-effector at r, obeys about  T s^3 + s^2 + d s + k = 0  with the motors' lag T, d = K / I and

        k = d K_R + (1 + r^2 + Gamma_w (torque) + Gamma_f r^2 + Gamma_c g^2) / I

    (errors of attitude and place, and the adaptations of torque, force and first moment).  It is damped where T k is well below d, so that
    the adaptations, whose usual values suit an inertia of 0.1 kg m^2, have to shrink with I.
    """
    principal = np.linalg.eigvalsh(facts.inertia)
    least, mean = float(principal[0]), float(principal.mean())
    square = ADAPTATION**2
    force = min(8.0, square / (1.0 / facts.mass + float(tip @ tip) / least))
    lines = [
        "[control.gains]                       # from the inertia: the usual ones make so light a vehicle swing",
        f"rate = {_row(np.full(3, DAMPING * mean))}  # N m s",
    ]
    values = {"force": force, "torque": min(0.8, square * least), "moment": min(0.05, square * least / GRAVITY**2)}
    return lines + [f"{name} = {value:.4g}" for name, value in values.items()]


def _row(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{float(v):.9g}" if abs(v) > 1e-15 else "0.0" for v in values) + "]"
