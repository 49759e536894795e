"""Vehicles that the control tests fly, and a short way to fly them."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from skycrane.control.allocation import Allocation
from skycrane.simulation.rollout import simulate
from skycrane.vehicles.layout import Layout, coaxial, ring
from skycrane.vehicles.multirotor import Multirotor, system_for

X = dict(first_angle=-np.pi / 4, clockwise=True)
ALTERNATING = np.array([-1.0, 1.0] * 3)

# The Archimedes tutorial's quadrotor, PX4's x500 and the Crazyflie (sources: skycrane/vehicles/catalogue).
TUTORIAL = Multirotor.create(2.0, [0.015, 0.015, 0.0225], ring(4, 0.3, **X), 1e-5, 1e-7, speed_max=1200.0, time_up=0.05, time_down=0.05)
X500 = Multirotor.create(
    2.064, [0.02389, 0.02389, 0.044], ring(4, 0.246, **X), 8.54858e-6, 8.54858e-6 * 0.016, speed_max=1000.0, time_up=0.0125, time_down=0.025
)
CRAZYFLIE = Multirotor.create(
    0.028, [16.57e-6, 16.65e-6, 29.26e-6], ring(4, 0.046, **X), 1.9e-8, 1.177e-10, speed_max=2899.0, time_up=0.0647, time_down=0.0647
)
HEXA = Multirotor.create(
    2.8414, [0.0702, 0.0685, 0.1239], ring(6, 0.36, first_angle=np.pi / 6), 2.61e-5, 2.61e-5 * 0.0185, speed_max=822.0,
    time_up=0.0125, time_down=0.025,
)  # fmt: skip
CANTED = Multirotor.create(
    2.8414, [0.0702, 0.0685, 0.1239], ring(6, 0.36, first_angle=np.pi / 6, height=0.0376, torsional=np.deg2rad(25) * ALTERNATING),
    2.61e-5, 2.61e-5 * 0.0185, speed_max=822.0, time_up=0.0125, time_down=0.025,
)  # fmt: skip
OCTO = Multirotor.create(
    4.0, [0.12, 0.12, 0.2], coaxial(4, 0.4, 0.1, first_angle=np.pi / 4), 2e-5, 2e-5 * 0.017, speed_max=900.0, time_up=0.03, time_down=0.04,
    com_B=[0.01, -0.02, -0.03],
)  # fmt: skip
QUADS = [TUTORIAL, X500, CRAZYFLIE]


def without_lag(vehicle):
    return eqx.tree_at(lambda v: (v.time_up, v.time_down), vehicle, (None, None), is_leaf=lambda x: x is None)


@functools.lru_cache
def team(*names):
    """System of the named vehicles."""
    return system_for([globals()[name] for name in names])


def fly(system, controller, reference, duration=6.0, step=0.004, sensors=None, save_every=5, events=None, **initial):
    """Run from an initial state whose arrays are broadcast to all vehicles."""
    k = system.bodies.count
    spread = {name: jnp.broadcast_to(jnp.asarray(value, float), (k, np.shape(value)[-1])) for name, value in initial.items()}
    state = system.initial_state(**spread)
    return simulate(
        system, controller, reference, state, duration=duration, step=step, sensors=sensors, save_every=save_every, events=events
    )


def distance(run, reference, after=0.0):
    """Distance (samples, vehicles) from the target from a time on."""
    wanted = jax.vmap(reference)(run.time).p_W
    far = np.linalg.norm(np.asarray(run.state.bodies.p_WB) - np.asarray(wanted), axis=-1)
    return far[np.asarray(run.time) >= after]


def rms(run, reference, after=0.0):
    return np.sqrt((distance(run, reference, after) ** 2).mean(0))


def about_x(angle_deg):
    """Quaternion (1, 4) of a turn about x."""
    half = np.deg2rad(angle_deg) / 2
    return np.array([[np.cos(half), np.sin(half), 0.0, 0.0]])


def random_allocation(rng, k, n, speed_min=0.0):
    """k random layouts of n rotors, from flat to every which way."""
    axis = rng.normal(size=(k, n, 3)) * rng.choice([0.0, 0.3, 1.0], (k, 1, 1)) + [0.0, 0.0, 1.0]
    axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
    position = rng.normal(size=(k, n, 3)) * [0.3, 0.3, 0.05]
    k_F = 1e-5 * rng.uniform(0.5, 2.0, (k, n))
    return Allocation.create(position, axis, rng.choice([-1.0, 1.0], (k, n)), k_F, 1.5e-7, speed_min=speed_min, speed_max=1000.0)


# Seven one-way rotors that reach every direction: catalogue vehicle omnidirectional-heptarotor (source there).
HEPTA = Multirotor.create(
    1.9,
    [[0.1129747, -0.0368873, 0.00022164], [-0.0368873, 0.09688552, 0.00165438], [0.00022164, 0.00165438, 0.13142521]],
    Layout(
        np.array([[-0.216, -0.104, -0.091], [0.064, 0.039, 0.331], [-0.060, 0.238, -0.141], [0.296, 0.163, -0.329],
                  [0.212, -0.246, 0.156], [-0.064, 0.283, 0.201], [-0.506, -0.594, -0.062]]),
        np.array([[0.27511, -0.82592, 0.49211], [-0.09200, 0.96623, -0.24071], [-0.13870, 0.51611, 0.84522],
                  [-0.55189, -0.36379, -0.75038], [-0.78989, -0.18080, 0.58599], [0.99851, 0.05410, 0.00760],
                  [0.29885, -0.16592, -0.93977]]),
        np.full(7, -1.0),
    ),
    8.289848e-6, 8.289848e-6 * 0.0147, speed_max=1837.83, time_up=0.03, time_down=0.03,
)  # fmt: skip
