"""The lift that every contender of the open-loop comparison flies: four quadrotors, a box, four cables of five springs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from skycrane.core.bodies import Bodies, SecondOrder, State
from skycrane.core.controller import Constant
from skycrane.core.system import System
from skycrane.elements.cables import Cables
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.environment.environment import Environment

STEP = 4e-4
HOOKS = np.array([[0.3, 0.2, 0.05], [-0.3, 0.2, 0.05], [-0.3, -0.2, 0.05], [0.3, -0.2, 0.05]])
QUAD_MASS, BOX_MASS, NODE_MASS, SEGMENTS, REST = 0.5, 2.0, 0.01, 5, 0.1
THRUST = (4 * QUAD_MASS + BOX_MASS + 4 * (SEGMENTS - 1) * NODE_MASS) * 9.81 / 4
SPEED = 500.0
COMMAND = Constant({"rotors": jnp.full((4, 1), SPEED)})


def lift() -> tuple[System, State]:
    """The system, and its state at the start: cables straight at their rest length, the box moving."""
    quads, box = tuple(range(4)), (4, 4, 4, 4)
    bodies = Bodies.create(
        ["uav1", "uav2", "uav3", "uav4", "box"], [QUAD_MASS] * 4 + [BOX_MASS], [(3.65e-3, 3.68e-3, 7.03e-3)] * 4 + [(0.03, 0.06, 0.08)]
    )
    rotors = Rotors.create(quads, np.zeros((1, 3)), [0.0, 0.0, 1.0], [1.0], THRUST / SPEED**2, 0.0)
    below = REST * np.arange(SEGMENTS + 1)[::-1, None, None] * np.array([0.0, 0.0, 1.0])
    chain = np.array([0.0, 0.0, 2.0]) + HOOKS + below  # (segments + 1, 4, 3), from the quadrotors down
    each = jnp.ones((SEGMENTS, 4))
    cables = Cables(
        quads, box, jnp.zeros((4, 3)), jnp.asarray(HOOKS), 2e4 * each, 20.0 * each, REST * each,
        NODE_MASS * each[1:], jnp.asarray(chain[1:-1]), each, names=("1", "2", "3", "4"),
    )  # fmt: skip
    system = System(bodies, {"gravity": Gravity(), "rotors": rotors, "cables": cables}, environment=Environment(9.81))
    velocity = [[0.0, 0.0, 0.0]] * 4 + [[0.5, 0.3, 0.0]]
    return system, system.initial_state(position=[*chain[0], [0.0, 0.0, 2.0]], velocity=velocity)


def as_c(state: State) -> np.ndarray:
    """The state in the order of ``lift.c``."""
    b, nodes = state.bodies, state.memory["cables"]["nodes"]
    assert isinstance(nodes, SecondOrder)
    bodies = np.concatenate([b.p_WB, b.q_WB, b.v_W, b.w_B], -1)
    chain = [np.asarray(x).transpose(0, 2, 1).ravel() for x in (nodes.position, nodes.velocity)]
    return np.concatenate([bodies[4], bodies[:4].T.ravel(), *chain])
