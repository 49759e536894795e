"""Rotors with quadratic thrust and torque, motor lag, and the gyroscopic and spin-up torque of their inertia.

For rotor i with unit thrust axis a, position r, spin s (+1 counter-clockwise seen against a, i.e. from above), speed W >= 0:

    T = k_F W^2,   f = T a,   m = r x f - s k_M W^2 a - s J_r (W' a + W w x a)
    W' = (W_target - W) / tau,   tau = tau_up while the target is above, tau_down while it is below

The reaction torque opposes the spin; the gyroscopic torque does no work.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Vec3, take


class Rotors(AbstractElement):
    """n rotors on each of k ``bodies`` (static).  The command is the wanted speed (k, n) rad/s.

    Attributes:
        position_B: (k, n, 3) m, hub from B.
        axis_B: (k, n, 3) unit thrust directions.
        spin: (k, n) +1 counter-clockwise, -1 clockwise, seen from above (against the thrust axis).
        thrust_coefficient: (k, n) k_F, N s^2.
        torque_coefficient: (k, n) k_M, N m s^2.
        speed_min, speed_max: (k, n) rad/s, limits of the command.
        time_up, time_down: (k, n) s, or both None: the speed follows the command at once and there is no memory.
        inertia: (k, n) J_r, kg m^2, of rotor and motor bell, or None to leave gyroscopic and spin-up torque out.
        speed_initial: (k, n) rad/s.
        speed_fraction: (k, n), 1 for a sound rotor, 0 for a stopped motor; multiplies the wanted speed.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    position_B: Array
    axis_B: Array
    spin: Array
    thrust_coefficient: Array
    torque_coefficient: Array
    speed_min: Array
    speed_max: Array
    time_up: Array | None
    time_down: Array | None
    inertia: Array | None
    speed_initial: Array
    speed_fraction: Array

    outputs_info: ClassVar[dict[str, Output]] = {
        "speed": Output("rad/s", ("vehicle", "rotor"), "rotor speed"),
        "speed_command": Output("rad/s", ("vehicle", "rotor"), "commanded rotor speed"),
        "thrust": Output("N", ("vehicle", "rotor"), "rotor thrust"),
        "shaft_power": Output("W", ("vehicle", "rotor"), "mechanical power at the shaft"),
    }

    @classmethod
    def create(
        cls, bodies, position_B, axis_B, spin, thrust_coefficient, torque_coefficient, *, speed_min=0.0, speed_max=jnp.inf,
        time_up=None, time_down=None, inertia=None, speed_initial=0.0, speed_fraction=1.0,
    ) -> Rotors:
        """Broadcast all parameters to (k, n) and check them; axes are normalised.

        Raises:
            ValueError: for shapes that do not fit, an axis of zero length, a spin that is not +1 or -1, or only one of the two time constants.
        """
        bodies = tuple(bodies)
        position_B = jnp.asarray(position_B, dtype=jnp.result_type(float))
        if position_B.ndim == 2:
            position_B = jnp.broadcast_to(position_B, (len(bodies), *position_B.shape))
        if position_B.ndim != 3 or position_B.shape[0] != len(bodies) or position_B.shape[2] != 3:
            raise ValueError(f"rotor positions have shape {position_B.shape}, expected ({len(bodies)}, n, 3) or (n, 3)")
        shape = position_B.shape[:2]
        axis_B = jnp.broadcast_to(jnp.asarray(axis_B, dtype=position_B.dtype), position_B.shape)
        length = jnp.linalg.norm(axis_B, axis=-1, keepdims=True)
        if not bool(jnp.all(length > 0)):
            raise ValueError("a rotor axis has zero length")
        if not bool(jnp.all(jnp.abs(jnp.asarray(spin)) == 1)):
            raise ValueError(f"rotor spin must be +1 or -1, not {spin}")
        if (time_up is None) != (time_down is None):
            raise ValueError("give both time_up and time_down, or neither")

        def full(value):
            return None if value is None else jnp.broadcast_to(jnp.asarray(value, dtype=position_B.dtype), shape)

        return cls(
            bodies, position_B, axis_B / length, full(spin), full(thrust_coefficient), full(torque_coefficient), full(speed_min), full(speed_max),
            full(time_up), full(time_down), full(inertia), full(speed_initial), full(speed_fraction),
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Rotors on each body."""
        return self.position_B.shape[-2]

    def init(self):
        return self.speed_initial if self.time_up is not None else ()

    def _target(self, command):
        # Negative speeds never reach the rotor: it cannot turn backwards.
        return self.speed_fraction * jnp.clip(command, self.speed_min, self.speed_max)

    def _speed(self, memory, command):
        return self._target(command) if self.time_up is None else memory

    def _speed_rate(self, speed, command):
        if self.time_up is None:
            return jnp.zeros_like(speed)
        target = self._target(command)
        return (target - speed) / jnp.where(target > speed, self.time_up, self.time_down)

    def wrench(self, t, kin: Kinematics, memory, command):
        speed = self._speed(memory, command)
        rate = self._speed_rate(speed, command)
        r, a = Vec3.of(self.position_B), Vec3.of(self.axis_B)
        square = speed * speed
        thrust_B = (self.thrust_coefficient * square) * a
        along = -self.spin * self.torque_coefficient * square  # moment along the rotor's axis
        if self.inertia is not None:
            along = along - self.spin * self.inertia * rate
        moment_B = (r.cross(thrust_B) + along * a).map(lambda m: m.sum(-1))
        if self.inertia is not None:
            momentum_B = ((self.spin * self.inertia * speed) * a).map(lambda h: h.sum(-1))
            moment_B = moment_B - take(kin.w_B, self.bodies).cross(momentum_B)
        force_B = thrust_B.map(lambda f: f.sum(-1))
        push = Wrench(self.bodies, take(kin.R_WB, self.bodies) @ force_B, moment_B)
        return (push,), (() if self.time_up is None else rate)

    def outputs(self, t, kin, memory, command):
        speed = self._speed(memory, command)
        return {
            "speed": speed,
            "speed_command": command,
            "thrust": self.thrust_coefficient * speed**2,
            "shaft_power": self.torque_coefficient * speed**3,
        }

    def rate_bound(self, prepared) -> float:
        if self.time_up is None:
            return 0.0
        return 1.0 / float(min(np.min(np.asarray(self.time_up)), np.min(np.asarray(self.time_down))))
