"""The tethered UAV and buoy of Kourani and Daher, with the numbers of their record C1: bodies ``uav`` and ``buoy``, tether ``tether``.

The record's UAV weighs 5.0 kg with inertia diag(0.160, 0.160, 0.220) and four rotors of 30 N with a lag of 0.05 s; arm, torque coefficient
and rotor speed are this library's choice, the record does not tell them.  The buoy is a box of 0.8 x 0.25 x 0.25 m and 12.5 kg with added
mass (0.05 m, 0.05 m, m; yaw 12.5 kg m^2), the tether 7 m long.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.control.model import VehicleModel
from skycrane.control.surge import SurgeControl, TowedBuoy
from skycrane.core.bodies import Bodies, State
from skycrane.core.constraint import AbstractConstraint
from skycrane.core.element import AbstractElement
from skycrane.core.system import System
from skycrane.elements.gravity import Gravity
from skycrane.elements.slaved import SlavedBuoy, SourceAzimuth
from skycrane.elements.tether import LeverTether, Tether
from skycrane.environment.environment import Environment
from skycrane.environment.water import Water
from skycrane.vehicles.layout import ring
from skycrane.vehicles.multirotor import Multirotor, elements_for

SIZE = (0.8, 0.25, 0.25)
BUOY_MASS, TETHER, LEVER, ROTOR_THRUST = 12.5, 7.0, 0.4, 30.0
SOURCE_COUPLING = 0.0932  # m, fitted to the record: 0.0073353 kg^-1 m^-1 times 12.708 kg m^2
UAV, BUOY = 0, 1


def record_uav() -> Multirotor:
    """The UAV of the record."""
    speed = 700.0
    return Multirotor.create(
        5.0, (0.16, 0.16, 0.22), ring(4, 0.3, first_angle=np.pi / 4), ROTOR_THRUST / speed**2, 0.05 * ROTOR_THRUST / speed**2,
        speed_max=speed, time_up=0.05, time_down=0.05,
    )  # fmt: skip


def tethered_buoy(
    uav: Multirotor | None = None,
    water: Water | None = None,
    heave_damping: float = 22.87,
    compat: bool = False,
    keep_ledger: bool = False,
) -> System:
    """The system of the module; ``compat`` switches the errors of the source's program on."""  # fmt: skip
    uav = record_uav() if uav is None else uav
    added = np.zeros((2, 6, 6))
    added[BUOY] = np.diag([0.05 * BUOY_MASS, 0.05 * BUOY_MASS, BUOY_MASS, 0.0, 0.0, 12.5])
    # Roll and pitch are imposed: moments must not turn the buoy within a step.
    yaw = 0.208 if compat else BUOY_MASS * (SIZE[0] ** 2 + SIZE[1] ** 2) / 12
    inertia = np.stack([np.asarray(uav.inertia_B), np.diag([1e4, 1e4, yaw])])
    bodies = Bodies.create(["uav", "buoy"], [float(uav.mass), BUOY_MASS], inertia, [np.asarray(uav.com_B), [0, 0, 0]], added)
    parts: dict[str, AbstractElement] = {"gravity": Gravity(), **elements_for([uav], speed_initial=uav.hover_speeds()[None])}
    if compat:
        parts["rotors"] = SourceAzimuth(parts["rotors"], BUOY, UAV, TETHER)
    parts["buoy"] = SlavedBuoy(BUOY, jnp.array(SIZE), jnp.array([0.0, 0.0, heave_damping]), 1.0, compat)
    tether: AbstractConstraint = LeverTether(Tether((BUOY, UAV), TETHER), LEVER, SOURCE_COUPLING if compat else 0.0)
    return System(bodies, parts, {"tether": tether}, Environment(water=water or Water()), keep_ledger)


def surge_control(uav: Multirotor, period: float = 0.002, kind: type[SurgeControl] = SurgeControl, **options: Any) -> SurgeControl:
    """The source's controller for this system."""
    buoy = TowedBuoy(BUOY, TETHER, 1.05 * BUOY_MASS, SIZE[0], 2 * SIZE[0] * 0.0625 + SIZE[0] * SIZE[1])
    defaults: dict[str, Any] = {"thrust_max": 0.9 * 4 * ROTOR_THRUST, "torque_max": jnp.array([8.0, 8.0, 4.0])}
    return kind(VehicleModel.of(uav, (UAV,)), buoy, period, **{**defaults, **options})


def at_rest(
    system: System, current: tuple[float, float, float] = (0.0, 0.0, 0.0), distance: float = 3.5, elevation: float = np.pi / 4
) -> State:
    """Buoy afloat with the water, UAV hovering at a distance from it."""
    water = system.environment.water
    level = 0.0 if water is None else float(np.asarray(water.level))
    z = level + 0.5 * SIZE[2] - BUOY_MASS / (1000.0 * SIZE[0] * SIZE[1])
    buoy = np.array([0.0, 0.0, z])
    uav = buoy + distance * np.array([np.cos(elevation), 0.0, np.sin(elevation)])
    return system.initial_state([uav, buoy], velocity=[current, current])
