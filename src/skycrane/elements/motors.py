"""What limits a rotor's speed besides its own limits: the throttle curve of its speed controller and the battery's voltage.

Battery with state of charge c (1 full), open-circuit voltage E(c), internal resistance R and electric power P:

    U = E - R I,   P = U I   so   U = (E + sqrt(E^2 - 4 R P)) / 2,       c' = -I / C

A motor turns at most as fast as its share of the voltage lets it: the speed limits hold at the voltage ``nominal`` and scale with U.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from skycrane.math.components import safe_sqrt


def piecewise_linear(x: Array, nodes: Array, values: Array) -> Array:
    """Linear interpolation in a short table, constant outside: a sum of ramps, without a search."""
    total = values[0] + jnp.zeros_like(x)
    for k in range(values.shape[0] - 1):
        total = total + (values[k + 1] - values[k]) * (jnp.clip(x, nodes[k], nodes[k + 1]) - nodes[k]) / (nodes[k + 1] - nodes[k])
    return total


class ThrottleCurve(eqx.Module):
    """Speed of a rotor over a normalised command: ``throttle`` (m,) from 0 to 1 and ``speed`` (m,) rad/s, both rising; linear between."""

    throttle: Array
    speed: Array

    @classmethod
    def create(cls, throttle: ArrayLike, speed: ArrayLike) -> ThrottleCurve:
        """From the points of the curve.

        Raises:
            ValueError: for fewer than two points, shapes that differ, or values that do not rise.
        """
        throttle, speed = np.asarray(throttle, dtype=float), np.asarray(speed, dtype=float)
        if throttle.ndim != 1 or throttle.shape != speed.shape or len(throttle) < 2:
            raise ValueError(f"throttle curve: {throttle.shape} commands and {speed.shape} speeds, expected two rows of equal length")
        if not ((np.diff(throttle) > 0).all() and (np.diff(speed) > 0).all()):
            raise ValueError("throttle curve: commands and speeds must rise from point to point")
        return cls(jnp.asarray(throttle, jnp.result_type(float)), jnp.asarray(speed, jnp.result_type(float)))

    @classmethod
    def quadratic(cls, speed_max: float, linear: float, points: int = 11) -> ThrottleCurve:
        """The curve behind PX4's ``THR_MDL_FAC`` f: thrust / greatest thrust = f u^2 + (1 - f) u, with ``linear`` = 1 - f.

        Raises:
            ValueError: for a part outside 0 to 1.
        """
        if not 0 <= linear <= 1:
            raise ValueError(f"throttle curve: the linear part is {linear}, expected 0 to 1")
        u = np.linspace(0.0, 1.0, points)
        return cls.create(u, speed_max * np.sqrt((1 - linear) * u**2 + linear * u))

    def speed_of(self, command: Array) -> Array:
        """Speed [rad/s] that a command asks for at the nominal voltage."""
        return piecewise_linear(command, self.throttle, self.speed)

    def command_for(self, speed: Array) -> Array:
        """The command that asks for a speed [rad/s]: what a controller that thinks in speeds has to send."""
        return piecewise_linear(speed, self.speed, self.throttle)


class Battery(eqx.Module):
    """One battery for each of k vehicles; numbers of shape () or (k,).

    Attributes:
        capacity: A s (1 Ah = 3600 A s).
        resistance: R, ohm, with wiring.
        open_circuit: (m,) V, E at m states of charge equally spaced from 0 to 1.
        nominal: V at which the rotors' limits and throttle curves hold.
        efficiency: mechanical power at the shafts over electric power of motors and speed controllers.
        payload_power: W, of everything else.
        charge_initial: state of charge at the start.
    """

    capacity: Array
    resistance: Array
    open_circuit: Array
    nominal: Array
    efficiency: Array
    payload_power: Array
    charge_initial: Array

    @classmethod
    def create(
        cls,
        capacity: ArrayLike,
        resistance: ArrayLike,
        open_circuit: ArrayLike,
        *,
        nominal: ArrayLike | None = None,
        efficiency: ArrayLike = 0.75,
        payload_power: ArrayLike = 0.0,
        charge_initial: ArrayLike = 1.0,
    ) -> Battery:
        """``nominal`` is the voltage of the full battery by default.

        Raises:
            ValueError: for numbers out of range or an open-circuit voltage that falls with the charge.
        """  # fmt: skip
        curve = np.asarray(open_circuit, dtype=float)
        if curve.ndim != 1 or len(curve) < 2 or not (curve > 0).all() or (np.diff(curve) < 0).any():
            wanted = "expected at least two positive voltages that do not fall with the charge"
            raise ValueError(f"battery: open_circuit is {curve.tolist()}, {wanted}")
        values = {
            "capacity": capacity, "resistance": resistance, "nominal": curve[-1] if nominal is None else nominal,
            "efficiency": efficiency, "payload_power": payload_power, "charge_initial": charge_initial,
        }  # fmt: skip
        limits = {
            "capacity": (1e-9, np.inf), "resistance": (0.0, np.inf), "nominal": (1e-9, np.inf), "efficiency": (1e-9, 1.0),
            "payload_power": (0.0, np.inf), "charge_initial": (0.0, 1.0),
        }  # fmt: skip
        for name, (low, high) in limits.items():
            value = np.asarray(values[name], dtype=float)
            if not ((value >= low) & (value <= high)).all():
                raise ValueError(f"battery: {name} is {value.tolist()}, expected {low:g} to {high:g}")
        arrays = {name: jnp.asarray(value, jnp.result_type(float)) for name, value in values.items()}
        return cls(open_circuit=jnp.asarray(curve, jnp.result_type(float)), **arrays)

    def voltage_and_current(self, charge: Array, shaft_power: Array) -> tuple[Array, Array]:
        """Voltage [V] and current [A] (k,) at a state of charge (k,) under a mechanical power (k,) [W].

        More power than the battery can give (E^2 / 4 R) is not met: the voltage stays at E / 2.  An empty battery gives nothing.
        """
        count = self.open_circuit.shape[0]
        nodes = jnp.linspace(0.0, 1.0, count, dtype=self.open_circuit.dtype)
        E = piecewise_linear(charge, nodes, self.open_circuit)
        power = shaft_power / self.efficiency + self.payload_power
        voltage = 0.5 * (E + safe_sqrt(E * E - 4.0 * self.resistance * power))
        live = charge > 0
        return jnp.where(live, voltage, 0.0), jnp.where(live, power / voltage, 0.0)


class PoweredMemory(eqx.Module):
    """Memory of rotors with a battery: ``speed`` (k, n) rad/s and ``charge`` (k,), the state of charge."""

    speed: Array
    charge: Array
