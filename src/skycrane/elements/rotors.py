"""Rotors: motor lag, gyroscopic and spin-up torque of any rotor model, and the quadratic model with its options.

For rotor i with unit thrust axis a, position r, spin s (+1 counter-clockwise seen against a, i.e. from above), speed W >= 0:

    T = k_F W^2,   f = T a - k_D W v_p,   m = r x f - s k_M W^2 a - s J_r (W' a + W w x a)
    W' = (W_target - W) / tau,   tau = tau_up while the target is above, tau_down while it is below

with v_p the part of the hub's airspeed that lies in the disc.  The reaction torque opposes the spin; the gyroscopic torque does no
work; rotor drag (k_D, "H-force"; Mahony, Kumar, Corke 2012, eq. 13) opposes the motion through the air.  All aerodynamic
coefficients scale with the density of the air over ``reference_density``, where that is given.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.elements.motors import Battery, PoweredMemory, ThrottleCurve
from skycrane.elements.rotor_effects import AxialFlow, GroundEffect, at_speed, in_vortex_ring
from skycrane.elements.rotor_jets import Jet
from skycrane.environment.jets import Jets
from skycrane.math.checks import concrete, filled, known, placed
from skycrane.math.components import Scalar, Vec3, safe_sqrt, take

ROTOR = ("vehicle", "rotor")


class HubAir(NamedTuple):
    """What the hubs meet: airspeed ``velocity_B`` (body axes, components (k, n)) and its parts ``climb`` along the thrust axis and
    ``in_plane_B``; ``density`` [kg/m^3]."""

    velocity_B: Vec3
    climb: Array
    in_plane_B: Vec3
    density: Scalar


class RotorLoads(NamedTuple):
    """Loads of the air on each rotor (k, n): ``thrust`` [N] and ``torque`` [N m] along and about the thrust axis, ``side_B`` any
    further force at the hub and ``hub_B`` any further moment about it, body axes."""

    thrust: Array
    torque: Array
    side_B: Vec3 | None = None
    hub_B: Vec3 | None = None


class AbstractRotors(AbstractElement):
    """n rotors on each of k ``bodies`` (static).  The command is the wanted speed (k, n) rad/s, or with a throttle curve a number
    from 0 to 1.

    Attributes:
        position_B: (k, n, 3) m, hub from B.
        axis_B: (k, n, 3) unit thrust directions.
        spin: (k, n) +1 counter-clockwise, -1 clockwise, seen from above (against the thrust axis).
        speed_min, speed_max: (k, n) rad/s, limits of the command.
        time_up, time_down: (k, n) s, or both None: the speed follows the command at once and there is no memory.
        inertia: (k, n) J_r, kg m^2, of rotor and motor bell, or None to leave gyroscopic and spin-up torque out.
        speed_initial: (k, n) rad/s.
        speed_fraction: (k, n), 1 for a sound rotor, 0 for a stopped motor; multiplies the wanted speed.
        throttle: curve from the command to the wanted speed, or None.
        battery: limits the speed by its voltage, or None.  With a battery the memory is :class:`PoweredMemory`.
        jet: what the rotors' jets do to other bodies, or None.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    position_B: Array
    axis_B: Array
    spin: Array
    speed_min: Array
    speed_max: Array
    time_up: Array | None
    time_down: Array | None
    inertia: Array | None
    speed_initial: Array
    speed_fraction: Array
    throttle: ThrottleCurve | None
    battery: Battery | None
    jet: Jet | None

    outputs_info: ClassVar[dict[str, Output]] = {
        "speed": Output("rad/s", ROTOR, "rotor speed"),
        "speed_command": Output("rad/s", ROTOR, "commanded rotor speed"),
        "thrust": Output("N", ROTOR, "rotor thrust"),
        "shaft_power": Output("W", ROTOR, "mechanical power at the shaft"),
        "vortex_ring": Output("1", ROTOR, "1 while the rotor descends in its own wake, where the model does not hold"),
        "battery_voltage": Output("V", ("vehicle",), "battery voltage under load"),
        "battery_current": Output("A", ("vehicle",), "battery current"),
        "state_of_charge": Output("1", ("vehicle",), "state of charge of the battery"),
    }

    @property
    def count(self) -> int:
        """Rotors on each body."""
        return self.position_B.shape[-2]

    # -- speed ------------------------------------------------------------------------------------------------------------------------

    def init(self):
        if self.time_up is None:
            return ()
        if self.battery is None:
            return self.speed_initial
        charge = jnp.broadcast_to(self.battery.charge_initial, self.speed_initial.shape[:1])
        return PoweredMemory(self.speed_initial, charge)

    def target(self, command: Array, power_supply: Array | float = 1.0) -> Array:
        """Wanted speed (k, n) rad/s, with ``power_supply`` the voltage over the nominal one, (k,)."""
        low, high = self.speed_min, self.speed_max
        if self.battery is not None:
            high = high * jnp.asarray(power_supply)[..., None]
            low = jnp.minimum(low, high)
        if self.throttle is not None:
            # The speed controller passes on a share of the voltage that it has.
            command = self.throttle.speed_of(command)
            command = command if self.battery is None else command * jnp.asarray(power_supply)[..., None]
        # Negative speeds never reach the rotor: it cannot turn backwards.
        return self.speed_fraction * jnp.clip(command, low, high)

    def speed(self, memory: Any, command: Array) -> Array:
        """Speed (k, n) rad/s now."""
        if self.time_up is None:
            return self.target(command)
        return memory if self.battery is None else memory.speed

    def _speed_rate(self, speed, target):
        if self.time_up is None:
            return jnp.zeros_like(speed)
        return (target - speed) / jnp.where(target > speed, self.time_up, self.time_down)

    def _supply(self, memory, speed, loads: RotorLoads) -> tuple[Array, Array]:
        # The aerodynamic power alone: speeding up and slowing down cancel over any time that matters to a battery.
        assert self.battery is not None
        shaft = (loads.torque * speed).sum(-1)
        return self.battery.voltage_and_current(memory.charge, jnp.maximum(shaft, 0.0))

    # -- loads ------------------------------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def loads(self, t: Array, kin: Kinematics, speed: Array) -> RotorLoads:
        """Loads of the air on the rotors at speeds (k, n) rad/s; ``torque`` is that which the motor overcomes, positive."""

    def hub_air(self, t: Array, kin: Kinematics) -> HubAir:
        """The air that the hubs meet; the wind over one vehicle is that at its reference point."""
        p_W, v_W, R_WB, w_B = take((kin.p_WB, kin.v_W, kin.R_WB, kin.w_B), self.bodies)
        air = kin.environment.air
        v_B = (R_WB.T @ (v_W - air.velocity_W(t, p_W))).map(lambda x: x[..., None])
        met_B = self._met_B(kin)
        if met_B is not None:
            v_B = v_B - met_B
        v_B = v_B + w_B.map(lambda x: x[..., None]).cross(Vec3.of(self.position_B))
        a = Vec3.of(self.axis_B)
        climb = a.dot(v_B)
        density = jnp.asarray(air.density_at(p_W))
        return HubAir(v_B, climb, v_B - climb * a, density[..., None] if density.ndim else density)

    def _met_B(self, kin: Kinematics) -> Vec3 | None:
        return None if self.jet is None else self.jet.met_B(kin, self.bodies, Vec3.of(self.position_B))

    def jets(self, t, kin: Kinematics, memory, command) -> Jets | None:
        if self.jet is None:
            return None
        # Of a rotor that itself stands in a jet, as if it did not: jets are found before any is felt.
        thrust = self.loads(t, kin, self.speed(memory, command)).thrust
        return self.jet.sent(t, kin, self.bodies, Vec3.of(self.position_B), Vec3.of(self.axis_B), thrust)

    def height(self, kin: Kinematics) -> tuple[Array, Array]:
        """Heights (k, n) m of the hubs above ground, and the vertical parts of their thrust axes.

        Raises:
            ValueError: in a world without ground.
        """
        if kin.environment.ground is None:
            raise ValueError("ground effect needs a ground: give the environment one")
        p_W, R_WB = take((kin.p_WB, kin.R_WB), self.bodies)
        up = R_WB.z.map(lambda x: x[..., None])  # the world's vertical in body axes
        return p_W.z[..., None] + up.dot(Vec3.of(self.position_B)) - kin.environment.ground.height, up.dot(Vec3.of(self.axis_B))

    def wrench(self, t, kin: Kinematics, memory, command):
        speed = self.speed(memory, command)
        loads = self.loads(t, kin, speed)
        memory_rate: Any = ()
        if self.battery is not None:
            voltage, current = self._supply(memory, speed, loads)
            rate = self._speed_rate(speed, self.target(command, voltage / self.battery.nominal))
            memory_rate = PoweredMemory(rate, -current / self.battery.capacity)
        else:
            rate = self._speed_rate(speed, self.target(command))
            memory_rate = () if self.time_up is None else rate
        r, a = Vec3.of(self.position_B), Vec3.of(self.axis_B)
        along = -self.spin * loads.torque  # moment along the rotor's axis
        if self.inertia is not None:
            along = along - self.spin * self.inertia * rate
        push_B = loads.thrust * a
        each_B = loads.thrust * r.cross(a) + along * a  # the lever r x a does not change: it is computed once, not in every step
        if loads.side_B is not None:
            push_B = push_B + loads.side_B
            each_B = each_B + r.cross(loads.side_B)
        if loads.hub_B is not None:
            each_B = each_B + loads.hub_B
        moment_B = each_B.map(lambda m: m.sum(-1))
        if self.inertia is not None:
            momentum_B = ((self.spin * self.inertia * speed) * a).map(lambda h: h.sum(-1))
            moment_B = moment_B - take(kin.w_B, self.bodies).cross(momentum_B)
        force_B = push_B.map(lambda f: f.sum(-1))
        return (Wrench(self.bodies, take(kin.R_WB, self.bodies) @ force_B, moment_B),), memory_rate

    def outputs(self, t, kin, memory, command):
        speed = self.speed(memory, command)
        loads = self.loads(t, kin, speed)
        wanted = command if self.throttle is None else self.throttle.speed_of(command)
        log = {"speed": speed, "speed_command": wanted, "thrust": loads.thrust, "shaft_power": loads.torque * speed}
        if self.battery is not None:
            voltage, current = self._supply(memory, speed, loads)
            log.update(battery_voltage=voltage, battery_current=current, state_of_charge=memory.charge)
        return log

    def rate_bound(self, prepared) -> float:
        if self.time_up is None:
            return 0.0
        return 1.0 / float(min(np.min(np.asarray(self.time_up)), np.min(np.asarray(self.time_down))))


def shared_fields(
    bodies,
    position_B,
    axis_B,
    spin,
    *,
    speed_min,
    speed_max,
    time_up,
    time_down,
    inertia,
    speed_initial,
    speed_fraction,
    throttle,
    battery,
    jet=None,
) -> dict[str, Any]:
    """The fields of :class:`AbstractRotors`, broadcast to (k, n) and checked; axes are normalised.

    Raises:
        ValueError: for shapes that do not fit, an axis of zero length, a spin that is not +1 or -1, only one of the two time
        constants, or a
            battery on rotors without motor lag or with a speed limit that is not finite.
    """
    bodies = tuple(bodies)
    dtype = jnp.result_type(float)
    position_B = known(position_B, dtype)
    if position_B.ndim == 2:
        position_B = filled(position_B, (len(bodies), *position_B.shape))
    if position_B.ndim != 3 or position_B.shape[0] != len(bodies) or position_B.shape[2] != 3:
        raise ValueError(f"rotor positions have shape {position_B.shape}, expected ({len(bodies)}, n, 3) or (n, 3)")
    axis_B = known(filled(axis_B, position_B.shape, dtype))
    length = (np if concrete(axis_B) else jnp).linalg.norm(axis_B, axis=-1, keepdims=True)
    if concrete(length) and not bool(np.all(length > 0)):
        raise ValueError("a rotor axis has zero length")
    if concrete(spin) and not bool(np.all(np.abs(np.asarray(spin)) == 1)):
        raise ValueError(f"rotor spin must be +1 or -1, not {spin}")
    if (time_up is None) != (time_down is None):
        raise ValueError("give both time_up and time_down, or neither")
    if battery is not None and time_up is None:
        raise ValueError("a battery needs rotors with motor lag: give time_up and time_down")
    if battery is not None and concrete(speed_max) and not bool(np.all(np.isfinite(np.asarray(speed_max)))):
        raise ValueError("a battery needs rotors with a finite speed_max, which it scales")

    def full(value):
        return None if value is None else filled(value, position_B.shape[:2], dtype)

    numbers = {
        "spin": spin, "speed_min": speed_min, "speed_max": speed_max, "time_up": time_up, "time_down": time_down, "inertia": inertia,
        "speed_initial": speed_initial, "speed_fraction": speed_fraction,
    }  # fmt: skip
    arrays = {name: full(value) for name, value in numbers.items()}
    arrays |= {"position_B": placed(position_B), "axis_B": placed(axis_B / length)}
    return dict(bodies=bodies, throttle=throttle, battery=battery, jet=jet, **arrays)


class Rotors(AbstractRotors):
    """Rotors with quadratic thrust and torque; what they share with other rotors is in :class:`AbstractRotors`.

    Attributes:
        thrust_coefficient: (k, n) k_F, N s^2.
        torque_coefficient: (k, n) k_M, N m s^2.
        drag_coefficient: (k, n) k_D, N s^2/(rad m) = kg/rad, or None.
        reference_density: (k, n) kg/m^3, the density that the coefficients belong to, or None: then the density of the air does not count.
        radius: (k, n) m, or None; ground effect, axial flow and the flag ``vortex_ring`` need it.
        ground_effect, axial_flow: options, or None.
    """

    thrust_coefficient: Array
    torque_coefficient: Array
    drag_coefficient: Array | None
    reference_density: Array | None
    radius: Array | None
    ground_effect: GroundEffect | None
    axial_flow: AxialFlow | None

    @classmethod
    def create(
        cls,
        bodies,
        position_B,
        axis_B,
        spin,
        thrust_coefficient,
        torque_coefficient,
        *,
        speed_min=0.0,
        speed_max=jnp.inf,
        time_up=None,
        time_down=None,
        inertia=None,
        speed_initial=0.0,
        speed_fraction=1.0,
        drag_coefficient=None,
        reference_density=None,
        radius=None,
        ground_effect: GroundEffect | None = None,
        axial_flow: AxialFlow | None = None,
        throttle: ThrottleCurve | None = None,
        battery: Battery | None = None,
        jet: Jet | None = None,
    ) -> Rotors:
        """Broadcast all parameters to (k, n) and check them; axes are normalised.

        Raises:
            ValueError: as :func:`shared_fields`, or for an option that lacks the radius.
        """  # fmt: skip
        fields = shared_fields(
            bodies, position_B, axis_B, spin, speed_min=speed_min, speed_max=speed_max, time_up=time_up, time_down=time_down,
            inertia=inertia, speed_initial=speed_initial, speed_fraction=speed_fraction, throttle=throttle, battery=battery, jet=jet,
        )  # fmt: skip
        if radius is None and not (ground_effect is None and axial_flow is None):
            raise ValueError("ground effect and axial flow need the radius of the rotors")
        like = fields["spin"]

        def full(value):
            return None if value is None else filled(value, like.shape, like.dtype)

        return cls(
            **fields, thrust_coefficient=full(thrust_coefficient), torque_coefficient=full(torque_coefficient),
            drag_coefficient=full(drag_coefficient), reference_density=full(reference_density), radius=full(radius),
            ground_effect=ground_effect, axial_flow=axial_flow,
        )  # fmt: skip

    def loads(self, t, kin: Kinematics, speed) -> RotorLoads:
        square = speed * speed
        thrust, torque = self.thrust_coefficient * square, self.torque_coefficient * square
        met_B = self._met_B(kin)
        if self.jet is not None and met_B is not None and self.axial_flow is None:
            thrust, torque = self.jet.slowed(kin, self.bodies, Vec3.of(self.axis_B), met_B, thrust, torque, speed)
        options = (self.drag_coefficient, self.reference_density, self.ground_effect, self.axial_flow)
        if all(option is None for option in options):
            return RotorLoads(thrust, torque)
        air = self.hub_air(t, kin)
        relative = 1.0 if self.reference_density is None else air.density / self.reference_density
        thrust, torque = thrust * relative, torque * relative
        if self.axial_flow is not None:
            assert self.radius is not None
            thrust, torque, _ = self.axial_flow.correct(thrust, torque, speed, air.climb, air.density, self.radius)
        if self.ground_effect is not None:
            assert self.radius is not None
            strength = self.ground_effect.strength(self.radius, *self.height(kin))
            induced = thrust / (2.0 * jnp.pi * air.density * self.radius * self.radius)
            thrust = thrust / (1.0 - at_speed(strength, air.in_plane_B.dot(air.in_plane_B), induced))
        side_B = None if self.drag_coefficient is None else (-self.drag_coefficient * relative * speed) * air.in_plane_B
        return RotorLoads(thrust, torque, side_B)

    def outputs(self, t, kin, memory, command):
        log = super().outputs(t, kin, memory, command)
        if self.radius is not None:
            air = self.hub_air(t, kin)
            induced = safe_sqrt(log["thrust"] / (2.0 * jnp.pi * air.density * self.radius * self.radius))
            log["vortex_ring"] = in_vortex_ring(air.climb, air.in_plane_B.norm(), induced).astype(log["thrust"].dtype)
        return log
