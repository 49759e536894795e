"""What a controller believes about its vehicles: mass, inertia, centre of mass and rotors.  It may differ from the plant.

Also the default gains, which follow from it.  With a motor lag tau the attitude obeys ``tau s^3 + s^2 + k_w s + k_R = 0``: its
three poles have the sum -1/tau whatever the gains, and are put at the same distance w = 1/(tau (1 + 2 zeta)) from the origin,
one real and a pair of damping ratio zeta:

    k_w = (1 + 2 zeta) w^2 tau = w,      k_R = w^3 tau = w^2 / (1 + 2 zeta)

w is bounded so that an error of one radian asks for no more than the moment that the rotors can add in hover.  The position loop
is slower than the attitude loop by a fixed ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.control.allocation import Allocated, Allocation
from skycrane.core.controller import Measurement
from skycrane.environment.environment import GRAVITY
from skycrane.math.checks import concrete, placed, stacked
from skycrane.math.components import Mat3, Quat, Vec3
from skycrane.vehicles.multirotor import Multirotor

DAMPING = 0.8
OTHER_DELAY = 0.015  # s, of computer, sensors and air, added to the motor lag
SEPARATION = 0.4  # natural frequency of the position loop over that of the attitude loop
FASTEST_POSITION = 3.0  # rad/s


class VehicleState(eqx.Module):
    """Position and velocity of the centre of mass and of B (world axes), attitude, angular velocity; components (k,)."""

    p_WB: Vec3
    v_W: Vec3
    R_WB: Mat3
    w_B: Vec3


class VehicleModel(eqx.Module):
    """The controller's own model of k vehicles.

    Attributes:
        bodies: static, their indices in the measurement.
        rotors: static, name of the element that takes the command.
        mass: (k,) kg; ``com_B`` (k, 3) m from B, or None where it is B; ``inertia_B`` (k, 3, 3) kg m^2 about the centre of mass.
        allocation: about the centre of mass.
        gravity: m/s^2.
    """

    bodies: tuple[int, ...] = eqx.field(static=True)
    rotors: str = eqx.field(static=True)
    mass: Array
    com_B: Array | None
    inertia_B: Array
    allocation: Allocation
    gravity: Array | float = GRAVITY

    @classmethod
    def of(
        cls,
        vehicles: Multirotor | Sequence[Multirotor],
        bodies: Sequence[int] | None = None,
        rotors: str = "rotors",
        gravity: Array | float = GRAVITY,
        **options,
    ) -> VehicleModel:
        """From vehicles with equally many rotors, on ``bodies`` (0 to k - 1 by default); options go to
        :meth:`Allocation.create`."""
        vehicles = [vehicles] if isinstance(vehicles, Multirotor) else list(vehicles)

        def each(name: str) -> Array:
            return stacked([getattr(v, name) for v in vehicles])

        com_B = each("com_B")
        allocation = Allocation.create(
            each("position_B"), each("axis_B"), each("spin"), each("thrust_coefficient"), each("torque_coefficient"),
            speed_min=each("speed_min"), speed_max=each("speed_max"), center_B=com_B, **options,
        )  # fmt: skip
        centered = not isinstance(com_B, jax.core.Tracer) and not np.any(np.asarray(com_B))
        bodies = tuple(range(len(vehicles)) if bodies is None else bodies)
        return cls(bodies, rotors, each("mass"), None if centered else com_B, each("inertia_B"), allocation, gravity)

    def __check_init__(self):
        k = len(self.bodies)
        for name in ("mass", "com_B", "inertia_B"):
            value = getattr(self, name)
            if value is not None and jnp.ndim(value) and value.shape[-{"mass": 1, "com_B": 2, "inertia_B": 3}[name]] != k:
                raise ValueError(f"a model of {k} vehicles: {name} has shape {value.shape}")

    def read(self, measurement: Measurement) -> VehicleState:
        """The vehicles' part of a measurement."""
        first, count = self.bodies[0], len(self.bodies)
        b = measurement.bodies
        if self.bodies == tuple(range(first, first + count)):
            p, q, v, w = (x[first : first + count] for x in (b.p_WB, b.q_WB, b.v_W, b.w_B))
        else:
            p, q, v, w = (jnp.stack([x[i] for i in self.bodies]) for x in (b.p_WB, b.q_WB, b.v_W, b.w_B))
        return VehicleState(Vec3.of(p), Vec3.of(v), Quat.of(q).matrix(), Vec3.of(w))

    def moment(self, w_B: Vec3, alpha_B: Vec3) -> Vec3:
        """Moment about the centre of mass [N m] that gives the angular acceleration ``alpha_B``: J alpha + w x J w."""
        J = Mat3.of(self.inertia_B)
        return J @ alpha_B + w_B.cross(J @ w_B)

    def command(self, allocated: Allocated) -> dict[str, Array]:
        """The command with these rotor speeds."""
        return {self.rotors: allocated.speed}


class Gains(eqx.Module):
    """Gains (k, 3) or (3,) as accelerations: of position along world axes, of attitude about body axes.

    ``position`` 1/s^2, ``velocity`` 1/s, ``attitude`` 1/s^2 (per unit of 1/2 (Rd^T R - R^T Rd)^vee), ``rate`` 1/s; the integral
    terms ``position_integral`` 1/s^3 and ``attitude_integral`` 1/s^3 are left out where None.
    """

    position: Array
    velocity: Array
    attitude: Array
    rate: Array
    position_integral: Array | None = None
    attitude_integral: Array | None = None


def default_gains(vehicles: Multirotor | Sequence[Multirotor], gravity: Array | float = GRAVITY) -> Gains:
    """Gains (k, 3) that motor lag, inertia and rotor limits allow, see the module; without integral terms."""
    vehicles = [vehicles] if isinstance(vehicles, Multirotor) else list(vehicles)
    with np.errstate(all="ignore"):  # speeds without limit
        each = [_gains_of_one(v, gravity) for v in vehicles]
    return jax.tree.map(lambda *x: stacked(x), *each)


def _gains_of_one(vehicle: Multirotor, gravity: Array | float) -> Gains:
    """By NumPy where the numbers are known, so that nothing is compiled for it."""
    known = concrete(vehicle, gravity)
    xp: Any = np if known else jnp
    speeds, effectiveness = vehicle.hover_speeds(gravity), vehicle.effectiveness()
    if known:
        vehicle, speeds, effectiveness = jax.tree.map(np.asarray, (vehicle, speeds, effectiveness))
    # The slower of the mean time constants of rising and falling rotor speed.
    slowest = 0.0 if vehicle.time_up is None or vehicle.time_down is None else xp.maximum(vehicle.time_up.mean(), vehicle.time_down.mean())
    tau = slowest + OTHER_DELAY
    hover = vehicle.thrust_coefficient * speeds**2
    low, high = (vehicle.thrust_coefficient * w**2 for w in (vehicle.speed_min, vehicle.speed_max))
    spare = xp.maximum(xp.minimum(hover - low, high - hover), 0.02 * high)
    moment = (xp.abs(effectiveness[3:]) * spare).sum(-1)
    alpha = moment / xp.diagonal(vehicle.inertia_B)
    shape = 1.0 + 2.0 * DAMPING
    frequency = xp.minimum(1.0 / (shape * tau), xp.sqrt(alpha))
    attitude = frequency**2 / shape
    slow = xp.minimum(frequency[0], frequency[1])
    position = xp.minimum(SEPARATION * slow, FASTEST_POSITION) * xp.ones(3, vehicle.mass.dtype)
    return jax.tree.map(placed, Gains(position**2, 2.0 * position, attitude, frequency))
