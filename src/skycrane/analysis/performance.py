"""Hover power, endurance and thrust over weight.

shaft power      P = sum Q_i W_i                       (from the rotors' torque)
ideal power      P_i = sum T_i v_i,  v_i = sqrt(T_i / (2 rho A_i))      (momentum theory, hover; Leishman 2006, eq. 2.15)
figure of merit  P_i / P,     disc loading T / A,     power loading T / P
endurance        usable energy x drive efficiency / (shaft power + efficiency x payload power)
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from skycrane.analysis.precision import double_precision, to_double
from skycrane.analysis.trim import NoTrim, Trim, trim
from skycrane.analysis.trim_problem import rotor_elements
from skycrane.core.system import System


@dataclass(frozen=True)
class Performance:
    """Power and endurance in a steady motion; NaN where something needed is not known.

    ``thrust`` [N] of all rotors; ``weight`` [N] of all bodies; ``thrust_to_weight``: full thrust of all rotors over the weight;
    ``shaft_power``, ``induced_power``, ``electric_power`` [W]; ``figure_of_merit``; ``disc_loading`` [N/m^2]; ``power_loading`` [N/W] at
    the shaft; ``endurance`` [s].
    """

    thrust: float
    weight: float
    thrust_to_weight: float
    shaft_power: float
    induced_power: float
    electric_power: float
    figure_of_merit: float
    disc_loading: float
    power_loading: float
    endurance: float


def performance(
    system: System,
    steady: Trim | NoTrim | None = None,
    *,
    radius: float | None = None,
    battery_energy: float | None = None,
    usable: float = 0.8,
    drive_efficiency: float = 0.75,
    payload_power: float = 0.0,
    t: float = 0.0,
) -> Performance:
    """Performance in a trim, by default hover.

    Args:
        steady: a trim of this system.
        radius: of every rotor [m]; by default what the rotors say.
        battery_energy: J (1 Wh = 3600 J); by default that of the rotors' batteries, at their mean open-circuit voltage.
        usable: share of that energy that may be used.
        drive_efficiency: shaft power over electric power of motors and speed controllers; a battery's own number wins.
        payload_power: W, of everything else; a battery's own number wins.

    Raises:
        ValueError: where there is no such trim.
    """
    steady = trim(system, t=t) if steady is None else steady
    if not steady.converged:
        raise ValueError(steady.sentence)
    with double_precision():
        system, state, command = to_double((system, steady.state, steady.command))
        prepared = system.prepare()
        kin = system.kinematics(state, prepared)
        logs = system.outputs(jnp.asarray(t), state, command, prepared)
        thrust = power = induced = area = full = electric = stored = 0.0
        for name, e in rotor_elements(system).items():
            T, W = np.asarray(logs[name]["thrust"]), np.asarray(logs[name]["speed"])
            shaft = np.asarray(e.loads(jnp.asarray(t), kin, jnp.asarray(W)).torque) * W
            full += float(np.asarray(e.loads(jnp.asarray(t), kin, e.speed_fraction * e.speed_max).thrust).sum())
            size = getattr(e, "radius", None) if radius is None else radius
            discs = np.pi * np.broadcast_to(np.nan if size is None else np.asarray(size, float), T.shape) ** 2
            density = np.asarray(e.hub_air(jnp.asarray(t), kin).density)
            thrust, power, area = thrust + T.sum(), power + shaft.sum(), area + discs.sum()
            induced += (np.maximum(T, 0.0) ** 1.5 / np.sqrt(2 * density * discs)).sum()
            if e.battery is None:
                electric += shaft.sum() / drive_efficiency
            else:
                b = e.battery
                electric += float(jnp.sum(jnp.asarray(shaft.sum(-1)) / b.efficiency + b.payload_power))
                stored += float(jnp.sum(jnp.broadcast_to(b.capacity * jnp.mean(b.open_circuit), shaft.shape[:1])))
        electric += payload_power if all(e.battery is None for e in rotor_elements(system).values()) else 0.0
        weight = float(np.asarray(system.bodies.mass).sum()) * float(system.environment.gravity)
    energy = battery_energy if battery_energy is not None else stored if stored else float("nan")
    return Performance(
        float(thrust), weight, full / weight if weight else float("inf"), float(power), float(induced), float(electric),
        float(induced / power) if power else float("nan"), float(thrust / area), float(thrust / power) if power else float("nan"),
        float(usable * energy / electric) if electric else float("inf"),
    )  # fmt: skip
