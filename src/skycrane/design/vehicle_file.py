"""A finished layout as a vehicle file that `skycrane run` takes at once."""

from __future__ import annotations

import numpy as np

from skycrane.design.problem import Problem
from skycrane.design.verify import Verified

SPEED_MAX = 1837.83  # rad/s: 17550 rpm, at which the paper's motor gives 28 N
IDLE = 0.5  # N, on the rotor that has least to do in hover


def vehicle_toml(problem: Problem, position: np.ndarray, direction: np.ndarray, tip: np.ndarray, facts: Verified, name: str) -> str:
    """The text of the file: vehicle, controller and a hover."""
    F = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    k = problem.thrust_max / SPEED_MAX**2
    thrust = facts.hover_thrust
    lift = max(IDLE - float(thrust.min()), 0.0) if not problem.mixed else 0.0
    null = np.abs(facts.null_vector)
    speeds = np.sqrt(np.maximum(thrust + lift * null / null.min(), 0.0) / k)
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
        "speed_min = 150                       # rad/s, at which the motors idle: stopped ones would take too long to start",
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
        f"rotors = [{', '.join(f'{w:.6f}' for w in np.clip(speeds, 150.0, SPEED_MAX))}]  # rad/s, level hover",
        "",
        "[vehicle.visual]",
        "color = [0.62, 0.22, 0.32]",
        "size = [0.12, 0.12, 0.12]",
        "",
        "[control]",
        'kind = "backstepping"',
        "",
    ]
    return "\n".join(lines)


def _row(values: np.ndarray) -> str:
    return "[" + ", ".join(f"{float(v):.9g}" if abs(v) > 1e-15 else "0.0" for v in values) + "]"
