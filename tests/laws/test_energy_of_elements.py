"""One law for every element: d/dt (kinetic energy + stored energies) = sum of the powers.

The left side comes from the derivative of the total energy along the equations of motion, the right side from what the elements report; so
the test also holds gyroscopic terms, added mass and frames to account."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.core.system import System
from skycrane.elements.contact import GroundContact
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.elements.rotors import Rotors
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground

RNG = np.random.default_rng(3)
TWO = (1, 0)

ELEMENTS = {
    "gravity": Gravity(),
    "drag": Drag(TWO, jnp.asarray(RNG.uniform(0, 0.1, (2, 3))), jnp.asarray(RNG.normal(size=(2, 3)))),
    "push": Push(TWO, *(jnp.asarray(RNG.normal(size=(2, 3))) for _ in range(3))),
    "contact": GroundContact((0, 0, 1, 1), jnp.asarray(RNG.normal(size=(4, 3)))),
    "rotors": Rotors.create(
        TWO, RNG.normal(size=(2, 5, 3)), RNG.normal(size=(2, 5, 3)), RNG.choice([-1.0, 1.0], (2, 5)), 1e-5, 1e-7,
        time_up=0.02, time_down=0.05, inertia=1e-5, speed_initial=RNG.uniform(0, 500, (2, 5)),
    ),
}  # fmt: skip


def two_bodies(elements):
    added = np.zeros((2, 6, 6))
    a = RNG.normal(size=(6, 6))
    added[1] = a @ a.T
    bodies = Bodies.create(["a", "b"], [1.0, 2.0], [[0.1, 0.2, 0.25], [0.3, 0.3, 0.5]], RNG.normal(size=(2, 3)) * 0.2, added)
    environment = Environment(air=Air(wind=SteadyWind(jnp.array([3.0, -1.0, 0.5]))), ground=Ground(0.3))
    return System(bodies, elements, environment=environment)


@pytest.mark.parametrize("name", [*ELEMENTS, "all together"])
def test_energy_rate_equals_power(name):
    system = two_bodies(dict(ELEMENTS) if name == "all together" else {name: ELEMENTS[name]})
    prepared = system.prepare()
    command = {"rotors": jnp.asarray(RNG.uniform(0, 600, (2, 5)))}
    for _ in range(5):
        state = system.initial_state(RNG.normal(size=(2, 3)), RNG.normal(size=(2, 4)), RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3)))
        rate = system.dynamics(0.0, state, command, prepared)
        _, energy_rate = jax.jvp(lambda s: system.energy(0.0, s, prepared), (state,), (rate,))
        kin = system.kinematics(state, prepared)
        wrenches = system.wrenches(0.0, state, command, prepared)
        power = sum(e.power(0.0, kin, state.memory[n], command.get(n), wrenches[n]) for n, e in system.elements.items())
        np.testing.assert_allclose(energy_rate, power, rtol=1e-9, atol=1e-9)
