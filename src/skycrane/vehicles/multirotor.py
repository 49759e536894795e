"""A multirotor in numbers, and the bodies and elements that it is made of.

The body axes' origin B is wherever its user puts it: rotors, centre of mass and centre of pressure are given from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.bodies import Bodies
from skycrane.core.element import AbstractElement
from skycrane.core.system import System
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.environment.environment import GRAVITY, Environment
from skycrane.math.checks import concrete, filled, known, placed, stacked
from skycrane.vehicles.layout import Layout

Numbers = Any  # what jnp.asarray takes


class Multirotor(eqx.Module):
    """One vehicle of n rotors; every number may be traced, batched and differentiated.

    Attributes:
        mass: scalar, kg, of everything.
        com_B: (3,) m, centre of mass from B.
        inertia_B: (3, 3) kg m^2 about the centre of mass.
        position_B, axis_B: (n, 3) hubs [m] from B and unit thrust directions; ``spin`` (n,) +1 counter-clockwise, -1 clockwise
            seen from above.
        thrust_coefficient, torque_coefficient: (n,) k_F, N s^2, and k_M, N m s^2.
        speed_min, speed_max: (n,) rad/s.
        time_up, time_down: (n,) s, lag of rising and falling speed, or both None.
        rotor_inertia: (n,) kg m^2 of the turning parts, or None to leave gyroscopic and spin-up torque out.
        cd_area_B: (3,) m^2, drag coefficient times area along each body axis, or None for no drag.
        drag_center_B: (3,) m, centre of pressure from B, or None where it is B.
    """

    mass: Array
    com_B: Array
    inertia_B: Array
    position_B: Array
    axis_B: Array
    spin: Array
    thrust_coefficient: Array
    torque_coefficient: Array
    speed_min: Array
    speed_max: Array
    time_up: Array | None
    time_down: Array | None
    rotor_inertia: Array | None
    cd_area_B: Array | None
    drag_center_B: Array | None

    @classmethod
    def create(
        cls,
        mass: Numbers,
        inertia_B: Numbers,
        layout: Layout,
        thrust_coefficient: Numbers,
        torque_coefficient: Numbers,
        *,
        speed_max: Numbers,
        speed_min: Numbers = 0.0,
        time_up: Numbers | None = None,
        time_down: Numbers | None = None,
        rotor_inertia: Numbers | None = None,
        com_B: Numbers = (0.0, 0.0, 0.0),
        cd_area_B: Numbers | None = None,
        drag_center_B: Numbers | None = None,
    ) -> Multirotor:
        """Broadcast what is given for one rotor to all of ``layout`` (:mod:`skycrane.vehicles.layout`); ``inertia_B`` may be a
        (3,) diagonal.

        Bad numbers are refused where the vehicle is put to use (:class:`Bodies`, :class:`Rotors`).

        Raises:
            ValueError: for shapes that do not fit.
        """
        dtype = jnp.result_type(float)
        position_B = known(layout.position_B, dtype)
        count = len(position_B)

        def full(value: Numbers, *shape: int) -> Array:
            return filled(value, shape, dtype)

        def perhaps(value: Numbers | None, *shape: int) -> Array | None:
            return None if value is None else full(value, *shape)

        inertia = known(inertia_B, dtype)
        if inertia.shape not in ((3,), (3, 3)):
            raise ValueError(f"inertia_B has shape {inertia.shape}, expected (3,) or (3, 3)")
        if inertia.ndim == 1:
            inertia = inertia[:, None] * np.eye(3, dtype=dtype)
        if (time_up is None) != (time_down is None):
            raise ValueError("give both time_up and time_down, or neither")
        return cls(
            full(mass), full(com_B, 3), placed(inertia), placed(position_B), full(layout.axis_B, count, 3), full(layout.spin, count),
            full(thrust_coefficient, count), full(torque_coefficient, count), full(speed_min, count), full(speed_max, count),
            perhaps(time_up, count), perhaps(time_down, count), perhaps(rotor_inertia, count), perhaps(cd_area_B, 3),
            perhaps(drag_center_B, 3),
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Number of rotors."""
        return self.position_B.shape[-2]

    def effectiveness(self) -> Array:
        """(6, n): force over moment about the centre of mass, body axes, for each newton of thrust."""
        if concrete(self):
            with np.errstate(all="ignore"):
                return placed(_effectiveness(jax.tree.map(np.asarray, self), np))
        return _effectiveness(self, jnp)

    def hover_speeds(self, gravity: Numbers = GRAVITY) -> Array:
        """Rotor speeds (n,) rad/s that carry the weight without moment, level: of smallest norm, as nearly as the layout can,
        clipped to the limits.

        A start for a run, not a trim: sideways force is left free.
        """
        if concrete(self, gravity):  # by NumPy: nothing is compiled for building a vehicle
            numbers = jax.tree.map(lambda x: np.asarray(x, float), self)
            with np.errstate(all="ignore"):
                return placed(_hover_speeds(numbers, gravity, np).astype(self.mass.dtype))
        return _hover_speeds(self, gravity, jnp)


def _effectiveness(v: Multirotor, xp: Any) -> Any:
    reaction = v.spin * v.torque_coefficient / v.thrust_coefficient
    moment = xp.cross(v.position_B - v.com_B, v.axis_B) - reaction[:, None] * v.axis_B
    return xp.concatenate([v.axis_B, moment], -1).T


def _hover_speeds(v: Multirotor, gravity: Numbers, xp: Any) -> Any:
    B = _effectiveness(v, xp)[2:]
    size = xp.linalg.norm(B, axis=1)
    size = xp.where(size > 0, size, 1.0)
    rows = B / size[:, None]
    demand = xp.array([1.0, 0.0, 0.0, 0.0]) * (v.mass * gravity / size)
    gram = rows @ rows.T + 1e-10 * xp.eye(4)
    thrust = rows.T @ xp.linalg.solve(gram, demand)
    return xp.clip(xp.sqrt(xp.maximum(thrust, 1e-12) / v.thrust_coefficient), v.speed_min, v.speed_max)


def stack(vehicles: Sequence[Multirotor]) -> Multirotor:
    """k vehicles with the same number of rotors as one Multirotor whose arrays have a leading axis k.

    Raises:
        ValueError: where rotor counts differ, or one vehicle has a lag, rotor inertia or drag and another has not.
    """
    kinds = {(v.count, *(x is None for x in (v.time_up, v.rotor_inertia, v.cd_area_B, v.drag_center_B))) for v in vehicles}
    if len(kinds) != 1:
        raise ValueError("vehicles that share one Rotors element need as many rotors each, and the same of lag, rotor inertia and drag")
    return jax.tree.map(lambda *leaves: stacked(leaves), *vehicles)


def bodies_for(names: Sequence[str], vehicles: Sequence[Multirotor]) -> Bodies:
    """The bodies of vehicles, in order."""
    mass, inertia_B, com_B = (stacked([getattr(v, what) for v in vehicles]) for what in ("mass", "inertia_B", "com_B"))
    return Bodies.create(names, mass, inertia_B, com_B)


def rotors_for(vehicles: Sequence[Multirotor], bodies: Sequence[int] | None = None, speed_initial: Numbers | None = None) -> Rotors:
    """The rotors of k vehicles on ``bodies`` (0 to k - 1 by default), at first at ``speed_initial`` (k, n) or that of hover."""
    v = stack(vehicles)
    if speed_initial is None:
        speed_initial = stacked([one.hover_speeds() for one in vehicles])
    return Rotors.create(
        range(len(vehicles)) if bodies is None else bodies, v.position_B, v.axis_B, v.spin, v.thrust_coefficient, v.torque_coefficient,
        speed_min=v.speed_min, speed_max=v.speed_max, time_up=v.time_up, time_down=v.time_down, inertia=v.rotor_inertia,
        speed_initial=speed_initial,
    )  # fmt: skip


def drag_for(vehicles: Sequence[Multirotor], bodies: Sequence[int] | None = None) -> Drag | None:
    """The drag of k vehicles, None where they have none."""
    v = stack(vehicles)
    if v.cd_area_B is None:
        return None
    return Drag(tuple(range(len(vehicles)) if bodies is None else bodies), v.cd_area_B, v.drag_center_B)


def elements_for(
    vehicles: Sequence[Multirotor],
    bodies: Sequence[int] | None = None,
    speed_initial: Numbers | None = None,
    name: str = "rotors",
    drag_name: str = "drag",
) -> dict[str, AbstractElement]:
    """Rotors, called ``name``, and drag, where there is any, of k vehicles with equally many rotors."""
    elements: dict[str, AbstractElement] = {name: rotors_for(vehicles, bodies, speed_initial)}
    drag = drag_for(vehicles, bodies)
    return elements if drag is None else {**elements, drag_name: drag}


def system_for(
    vehicles: Multirotor | Sequence[Multirotor],
    names: Sequence[str] | None = None,
    environment: Environment | None = None,
    keep_ledger: bool = False,
    speed_initial: Numbers | None = None,
) -> System:
    """A system of one vehicle, called ``uav``, or of k vehicles with equally many rotors (``uav1``, ``uav2``, ...), under
    gravity."""
    vehicles = [vehicles] if isinstance(vehicles, Multirotor) else list(vehicles)
    if names is None:
        names = ["uav"] if len(vehicles) == 1 else [f"uav{i + 1}" for i in range(len(vehicles))]
    elements = {"gravity": Gravity(), **elements_for(vehicles, speed_initial=speed_initial)}
    return System(bodies_for(names, vehicles), elements, environment=environment or Environment(), keep_ledger=keep_ledger)
