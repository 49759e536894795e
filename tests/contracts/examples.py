"""One example of every element and every controller, at generic numbers: no zero, no kink, no symmetry.

A new class has to be added here; the tests of this folder then run over it, and fail while it is missing.
"""

import importlib
import inspect
import pkgutil

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import skycrane
from skycrane.control.backstepping import Backstepping, BacksteppingGains
from skycrane.control.model import VehicleModel
from skycrane.control.pid import CascadedPid
from skycrane.control.pose import FullPoseControl, GeometricControl
from skycrane.control.redistribution import Shift
from skycrane.control.rigid_regressor import Inertial
from skycrane.control.surge_incremental import IncrementalSurgeControl
from skycrane.control.timing import Delayed, EveryNth, RotorSpeeds
from skycrane.core.bodies import Bodies
from skycrane.core.chain import WORLD
from skycrane.core.controller import Constant, Team
from skycrane.core.system import System
from skycrane.elements.cables import CableDrag, CableGround, Cables, Winch
from skycrane.elements.contact import GroundContact
from skycrane.elements.deck import DeckContact
from skycrane.elements.downwash import Downwash, Screens, Slabs
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.elements.rotor_aero import Blade, BladeElementRotors
from skycrane.elements.rotor_jets import Jet
from skycrane.elements.rotors import Rotors
from skycrane.elements.slaved import SlavedBuoy, SourceAzimuth
from skycrane.elements.surface import SurfaceContact
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground
from skycrane.environment.water import Current, Water
from skycrane.environment.waves import Waves
from skycrane.loads.buoy import friction_of, twin_buoy
from skycrane.scenario import loads
from skycrane.scenario.build import build
from skycrane.systems.tethered_buoy import record_uav, surge_control
from skycrane.vehicles.layout import Layout, ring
from skycrane.vehicles.multirotor import Multirotor

RNG = np.random.default_rng(3)
TWO = (1, 0)


def normal(*shape):
    return jnp.asarray(RNG.normal(size=shape))


def _hubs(count):
    return {"position_B": normal(2, count, 3), "axis_B": normal(2, count, 3), "spin": RNG.choice([-1.0, 1.0], (2, count))}


_LAG = {"time_up": 0.02, "time_down": 0.05, "inertia": 1e-5}

ELEMENTS = {
    "gravity": Gravity(),
    "drag": Drag(TWO, jnp.asarray(RNG.uniform(0, 0.1, (2, 3))), normal(2, 3)),
    "push": Push(TWO, normal(2, 3), normal(2, 3), normal(2, 3)),
    "contact": GroundContact((0, 0, 1, 1), normal(4, 3)),
    "rotors": Rotors.create(
        TWO,
        **_hubs(5),
        thrust_coefficient=1e-5,
        torque_coefficient=1e-7,
        drag_coefficient=1e-4,
        reference_density=1.2,
        speed_max=900.0,
        speed_initial=RNG.uniform(100, 500, (2, 5)),
        jet=Jet(jnp.asarray(1.1), spread=0.5),
        **_LAG,
    ),
    "blades": BladeElementRotors.create(
        TWO,
        **_hubs(3),
        blade=Blade(0.15, np.array([0.1, 1.0]), np.array([0.03, 0.01]), np.radians([20.0, 10.0])),
        speed_max=900.0,
        speed_initial=RNG.uniform(300, 600, (2, 3)),
        **_LAG,
    ),
}
ELEMENTS["cables"] = Cables(
    (0, WORLD, 1),
    (1, 0, 0),
    normal(3, 3),
    normal(3, 3),
    *(jnp.asarray(RNG.uniform(low, high, (4, 3))) for low, high in ((50, 90), (0.5, 2.0), (0.2, 0.9))),
    jnp.asarray(RNG.uniform(0.2, 0.4, (3, 3))),
    normal(3, 3, 3) * 0.7,
    jnp.ones((4, 3)).at[2, 1].set(0.0),
    bending=jnp.array([0.4, 0.3, 0.2]),
    drag=CableDrag(jnp.array([0.3, 0.2, 0.4]), jnp.array([0.05, 0.06, 0.07]), jnp.array([1e-4, 2e-4, 3e-4])),
    ground=CableGround(20.0),
    winch=Winch(jnp.array([0.5, 0.7, 0.9]), jnp.array([5.0, 5.0, 5.0]), jnp.array([2.0, 2.0, 2.0])),
)
_BUOY = twin_buoy(9.0, (1.0, 0.3, 0.4), 0.8, center_height=-0.05, linear=normal(6, 6), quadratic=[1.0, 2, 3, 0.1, 0.2, 0.3], count=(2, 2))
ELEMENTS["hull"] = eqx.tree_at(lambda h: h.skin, _BUOY.element(1), friction_of(_BUOY.columns, 1.0), is_leaf=lambda x: x is None)
ELEMENTS["deck"] = DeckContact(1, (0, 0), normal(2, 3), 4.0, jnp.array([40.0, 40.0]), reach=50.0)
ELEMENTS["slaved_buoy"] = SlavedBuoy(1, jnp.array([0.8, 0.3, 6.0]), jnp.array([1.0, 2.0, 30.0]), 1.5)
ELEMENTS["source_azimuth"] = SourceAzimuth(Push((0,), normal(1, 3), normal(1, 3), normal(1, 3)), 1, 0, 0.1)
# Alone it finds no jets; among all together it meets those of the rotors.
ELEMENTS["downwash"] = Downwash(
    (0, 1),
    Slabs((0, 1), normal(2, 3), *(jnp.asarray(np.eye(3)[[i, i]]) for i in range(3)), jnp.asarray(RNG.uniform(0.2, 1.0, (2, 3)))),
    Screens((1,), normal(1, 3), jnp.array([[0.6, 0.0, 0.8]]), *(jnp.array([x]) for x in (0.5, 0.7, 0.2, 1.0, 0.6))),
)
ELEMENTS["surface"] = SurfaceContact(
    (0, 1), jnp.array([[0.3, -0.2, 0.1], [-0.1, 0.4, 0.2]]), jnp.array([3.0, -2.0, 4.0]), jnp.array([0.6, 0.0, -0.8]), stiffness=50.0
)
COMMANDS = {
    "cables": jnp.array([2.0, 2.5, 3.0]),
    "rotors": jnp.asarray(RNG.uniform(100, 600, (2, 5))),
    "blades": jnp.asarray(RNG.uniform(300, 700, (2, 3))),
}


def two_bodies(elements):
    """Two bodies with offset centres of mass, one with added mass, in wind over ground."""
    added = np.zeros((2, 6, 6))
    a = RNG.normal(size=(6, 6))
    added[1] = a @ a.T
    bodies = Bodies.create(["a", "b"], [1.0, 2.0], [[0.1, 0.2, 0.25], [0.3, 0.3, 0.5]], RNG.normal(size=(2, 3)) * 0.2, added)
    waves = Waves.create([0.3, 0.2], [1.1, 1.7], [0.3, -0.8], [0.4, 2.0], depth=20.0)
    water = Water(jnp.array(0.4), jnp.array(1010.0), jnp.array(1.2e-6), waves, Current(jnp.array([0.5, -0.3, 0.0]), 5.0))
    wind = SteadyWind(jnp.array([3.0, -1.0, 0.5]))
    environment = Environment(jnp.array(9.7), Air(jnp.array(1.1), wind), Ground(0.3), water)
    return System(bodies, elements, environment=environment)


def random_state(system):
    return system.initial_state(normal(2, 3), normal(2, 4), normal(2, 3), normal(2, 3))


def _hexarotor(cant):
    layout = ring(6, 0.3, torsional=np.radians(cant) * np.array([1, -1, 1, -1, 1, -1]), height=0.03)
    return Multirotor.create(
        1.4, (0.02, 0.022, 0.035), layout, 8e-6, 1.2e-7, speed_max=1100.0, time_up=0.02, time_down=0.03, com_B=(0.01, -0.005, 0.02),
        cd_area_B=(0.02, 0.02, 0.03),
    )  # fmt: skip


def _omni():
    """Seven rotors, the seventh of which balances six in a cubic arrangement."""
    place = 0.3 * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]])
    axis = np.array([[0, 0.2, 1], [0.2, 0, 1], [1, 0.1, 0.2], [1, 0, -0.2], [0, 1, 0.1], [-0.1, 1, 0]])
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    push, turn = -axis.sum(0), -np.cross(place, axis).sum(0)
    # A force and a moment along it would need a screw: reaction torque of the right size makes the seventh rotor one.
    ratio = -(push @ turn) / (push @ push)
    place = np.concatenate([place, [np.cross(push, turn) / (push @ push)]])
    axis = np.concatenate([axis, [push / np.linalg.norm(push)]])
    k_F = np.full(7, 8e-6)
    k_M = np.concatenate([np.zeros(6), [abs(ratio) * 8e-6]])
    layout = Layout(place, axis, np.concatenate([np.ones(6), [np.sign(ratio)]]))
    return Multirotor.create(
        1.4,
        (0.06, 0.07, 0.08),
        layout,
        k_F,
        k_M,
        speed_min=300.0,
        speed_max=2500.0,
        time_up=0.02,
        time_down=0.03,
        com_B=(0.01, -0.005, 0.02),
    )


def _backstepping(craft):
    model = VehicleModel.of(craft)
    gains = BacksteppingGains(*(jnp.full((1, 3), v) for v in (1.5, 3.0, 6.0, 0.5)))
    start = Inertial.of(model.mass, model.com_B, model.inertia_B)
    return Backstepping(model, gains, jnp.array([[0.2, -0.1, -0.3]]), start, Shift.of(model.allocation))


OMNI = _omni()
FLAT, CANTED, TOWING = _hexarotor(0.0), _hexarotor(25.0), record_uav()
_HELD = {"rotors": jnp.full((1, 6), 600.0)}
# Controller, the vehicle that it flies, and whether it brings it back to a hover.
CONTROLLERS = {
    "constant": (Constant(_HELD), FLAT, False),
    "rotor_speeds": (RotorSpeeds(_HELD), FLAT, False),
    "geometric": (GeometricControl.of(FLAT), FLAT, True),
    "cascaded_pid": (CascadedPid.of(FLAT), FLAT, True),
    "full_pose": (FullPoseControl.of(CANTED), CANTED, True),
    "backstepping": (_backstepping(OMNI), OMNI, True),
    "delayed": (Delayed(GeometricControl.of(FLAT), _HELD, 2), FLAT, True),
    "every_nth": (EveryNth(GeometricControl.of(FLAT), _HELD, 2), FLAT, True),
    "team": (Team({"uav": GeometricControl.of(FLAT)}), FLAT, True),
    "surge": (surge_control(TOWING, 4e-3, share=jnp.array(0.9), speed_time=jnp.array(2.5)), TOWING, False),
    "incremental_surge": (surge_control(TOWING, 4e-3, IncrementalSurgeControl, water_time=jnp.array(0.2)), TOWING, False),
}


_LIFT = """
schema_version = "1"
name = "lift"
[vehicles.left]
model = "lift-quad"
initial = {{ over = "one", position = [0.1, 0.05, 0] }}
[vehicles.right]
model = "lift-quad"
initial = {{ over = "two", position = [-0.05, 0.1, 0] }}
[loads.beam]
mass = 0.5
inertia = [0.05, 0.3, 0.3]
points = {{ left = [0.8, 0, 0.1], right = [-0.7, 0, 0.1] }}
[cables.one]
upper = "left"
lower = "beam"
lower_point = "left"
length = 1.0
segments = 2
material = {{ kind = "numbers", axial_stiffness = 150, linear_density = 0.05, damping = 3 }}
[cables.two]
like = "one"
upper = "right"
lower_point = "right"
[team]
kind = "{kind}"
load = "beam"
"""
LIFTS = {kind: build(loads(_LIFT.format(kind=kind)).scenario) for kind in ("formation", "payload")}
CONTROLLERS.update({kind: (lift.controller.members["beam"], lift, True) for kind, lift in LIFTS.items()})


def concrete_subclasses(base):
    """Every public class of the package, outside the scenario layer, that can be instantiated from ``base``."""
    found = set()
    for module in pkgutil.walk_packages(skycrane.__path__, "skycrane."):
        if module.name.startswith(("skycrane.scenario", "skycrane.cli")):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(kind, base) and not inspect.isabstract(kind) and not kind.__name__.startswith(("_", "Abstract")):
                found.add(kind)
    return found
