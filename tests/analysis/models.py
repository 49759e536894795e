"""Systems that the analysis tests share: the tutorial's quadrotor, other layouts, a load on a spring or a tether."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from skycrane.core.bodies import Bodies
from skycrane.core.constraint import AbstractConstraint, Row
from skycrane.core.element import AbstractElement, Wrench
from skycrane.core.system import System
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.math.components import Vec3, take
from skycrane.vehicles.layout import ring

QUAD = ring(4, 0.3, first_angle=np.pi / 4, clockwise=True, spin=np.array([-1.0, 1, -1, 1]))
K_F, K_M = 1e-5, 1e-7
LAG = {"time_up": 0.05, "time_down": 0.05}


def multirotor(
    layout=QUAD,
    mass=2.0,
    inertia=(0.015, 0.015, 0.0225),
    speed_max=1500.0,
    stopped=(),
    cd_area=0.036,
    wind=(0.0, 0.0, 0.0),
    **rotor_options,
):
    """A body with rotors of k_F = 1e-5, k_M = 1e-7; by default the quadrotor of the multirotor tutorial.

    All of them have wind and rotor drag, of size zero unless given, so that they share compiled functions.
    """
    sound = np.ones(len(layout.spin))
    sound[list(stopped)] = 0.0
    rotors = Rotors.create(
        (0,), layout.position_B, layout.axis_B, layout.spin, K_F, K_M, speed_max=speed_max, speed_fraction=sound,
        **{"drag_coefficient": 0.0, **rotor_options},
    )  # fmt: skip
    elements = {"rotors": rotors, "gravity": Gravity(), "drag": Drag((0,), jnp.full((1, 3), cd_area))}
    environment = Environment(air=Air(wind=SteadyWind(jnp.asarray(wind))))
    return System(Bodies.create(["uav"], [mass], [inertia]), elements, environment=environment)


class Spring(AbstractElement):
    """A damped spring from a point of body ``a`` to the reference point of body ``b``."""

    a: int = eqx.field(static=True)
    b: int = eqx.field(static=True)
    offset_B: jax.Array
    stiffness: float = 2000.0
    damping: float = 5.0
    length: float = 1.0

    def wrench(self, t, kin, memory, command):
        offset = Vec3.of(self.offset_B)
        top, bottom = kin.points((self.a,), offset), kin.points((self.b,), Vec3(0.0, 0.0, 0.0))
        d, v = bottom.p_W - top.p_W, bottom.v_W - top.v_W
        n = d.unit()
        tension = self.stiffness * (d.norm() - self.length) + self.damping * n.dot(v)
        return (Wrench.at((self.a,), offset, top.R_WB, tension * n), Wrench((self.b,), -(tension * n), None)), ()


class Tether(AbstractConstraint):
    """The same without stretch."""

    a: int = eqx.field(static=True)
    b: int = eqx.field(static=True)
    offset_B: jax.Array
    length: float = 1.0

    def rows(self, t, kin, memory):
        offset = Vec3.of(self.offset_B)
        top, bottom = kin.points((self.a,), offset), kin.points((self.b,), Vec3(0.0, 0.0, 0.0))
        d, v = bottom.p_W - top.p_W, bottom.v_W - top.v_W
        n, w_B = d.unit(), take(kin.w_B, (self.a,))
        centripetal = top.R_WB @ w_B.cross(w_B.cross(offset))
        gap, rate = self.length - d.norm()[0], -n.dot(v)[0]
        drift = (n.dot(centripetal) - (v.dot(v) - n.dot(v) ** 2) / d.norm())[0]
        wrenches = (Wrench.at((self.a,), offset, top.R_WB, n), Wrench((self.b,), -n, None))
        return (Row(wrenches, gap, rate, drift, -10.0 * rate - 25.0 * gap, gap <= 1e-6),)


LOAD, UAV = 0.5, 2.0


def slung(kind="spring", offset=(0.0, 0.0, 0.0), cd_area=0.036, carriers=1, **rotor_options):
    """One or several quadrotors with a load of 0.5 kg on a spring or tether of 1 m each."""
    names = [*(f"uav{i}" for i in range(carriers)), "load"]
    bodies = Bodies.create(names, [UAV] * carriers + [LOAD], [(0.015, 0.015, 0.0225)] * carriers + [(0.001,) * 3])
    everyone = tuple(range(carriers))
    rotors = Rotors.create(everyone, QUAD.position_B, QUAD.axis_B, QUAD.spin, K_F, K_M, speed_max=1500.0, **rotor_options)
    elements = {"rotors": rotors, "gravity": Gravity(), "drag": Drag((*everyone, carriers), jnp.full((carriers + 1, 3), cd_area))}
    ties = {f"tie{i}": (Spring if kind == "spring" else Tether)(i, carriers, jnp.array([offset])) for i in everyone}
    return System(bodies, {**elements, **(ties if kind == "spring" else {})}, {} if kind == "spring" else ties)
