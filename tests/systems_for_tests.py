"""Small systems that many tests share."""

import jax.numpy as jnp
import numpy as np

from skycrane.core.bodies import Bodies
from skycrane.core.system import System
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.environment.environment import Environment

QUAD_MASS = 0.5
QUAD_INERTIA = (0.00365, 0.00368, 0.00703)
K_F, K_M = 5.57e-6, 1.36e-7
ARM = 0.17 * np.sqrt(0.5)
POSITIONS = np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]]) * ARM
SPINS = np.array([1.0, -1, 1, -1])
HOVER_SPEED = float(np.sqrt(QUAD_MASS * 9.81 / 4 / K_F))


def free_body(mass=1.0, inertia=(1.0, 2.0, 3.0), com=None, added=None, elements=None, environment=None, **options):
    bodies = Bodies.create(["body"], [mass], [inertia], None if com is None else [com], None if added is None else [added])
    return System(bodies, elements or {}, environment=environment or Environment(), **options)


def quadrotor(lag=True, com=None, center=None, inertia_rotor=None, keep_ledger=False, environment=None):
    rotors = Rotors.create(
        (0,),
        POSITIONS,
        [0.0, 0.0, 1.0],
        SPINS,
        K_F,
        K_M,
        time_up=0.03 if lag else None,
        time_down=0.05 if lag else None,
        inertia=inertia_rotor,
        speed_initial=HOVER_SPEED,
        speed_max=1500.0,
    )
    drag = Drag((0,), jnp.array([[0.01, 0.012, 0.02]]), None if center is None else jnp.array([center]))
    elements = {"gravity": Gravity(), "rotors": rotors, "drag": drag}
    return free_body(QUAD_MASS, QUAD_INERTIA, com, elements=elements, keep_ledger=keep_ledger, environment=environment)


def quad_command(factors=(1.01, 1.0, 1.0, 1.01)):
    return {"rotors": jnp.full((1, 4), HOVER_SPEED) * jnp.asarray(factors)}
