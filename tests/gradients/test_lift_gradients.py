"""Derivatives of a whole closed-loop lift by load mass, cable stiffness and gains, against differences: taut, and through slack cables.

The differences are so small that no step changes sides between slack and taut; see :mod:`skycrane.elements.cables` on that moment itself.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.scenario import load, loads
from skycrane.scenario.build import build
from skycrane.scenario.fly import options
from skycrane.simulation.rollout import simulate
from tests.cable_models import jit_once

PAIR = """
schema_version = "1"
name = "pair"
[run]
step = 0.002
[environment]
downwash = "off"
[vehicles.left]
model = "lift-quad"
initial = { over = "one", position = [0.1, 0.05, HEIGHT] }
[vehicles.right]
model = "lift-quad"
initial = { over = "two", position = [-0.05, 0.1, HEIGHT] }
[loads.bar]
mass = 1.0
shape = { kind = "box", size = [1.6, 0.1, 0.1] }
points = { a = [-0.7, 0.0, 0.05], b = [0.7, 0.0, 0.05] }
initial = { attitude_deg = [0.0, 5.0, 0.0] }
[cables.one]
upper = "left"
lower = "bar"
lower_point = "a"
length = 1.0
segments = 2
material = { kind = "segments", stiffness = 1500.0, damping = 4.0, mass = 0.02 }
[cables.two]
like = "one"
upper = "right"
lower_point = "b"
[team]
kind = "formation"
load = "bar"
[team.reference]
kind = "waypoints"
points = [[0.0, 0.0, 0.0], [1.0, 0.5, 0.8]]
times = [0.0, 3.0]
"""
WHAT = ("load mass", "stiffness", "K_r", "K_v", "Lambda", "layer", "k_p", "k_d")
GAINS = ("position", "velocity", "surface", "layer", "attitude", "rate")


def numbers(pair):
    system, law = pair
    return system.bodies.mass, system.elements["cables"].stiffness, *(getattr(law.gains, name) for name in GAINS)


def outcome(built, seconds):
    """Place and speed of the load at the end and in the middle, by factors on the numbers of ``WHAT``; its value and derivative."""
    (name,) = built.controller.members
    last = np.arange(built.system.bodies.count) == built.system.bodies.count - 1

    def end(factors, initial):
        pair = (built.system, built.controller.members[name])
        old = numbers(pair)
        each = [jnp.where(last, factors[0], 1.0), *factors[1:]]
        system, law = eqx.tree_at(numbers, pair, tuple(x * f for x, f in zip(old, each, strict=True)))
        controller = eqx.tree_at(lambda c: c.members[name], built.controller, law)
        ticks = round(seconds / built.scenario.run.tick)
        run = simulate(
            system,
            controller,
            built.reference,
            initial,
            duration=seconds,
            save_every=round(ticks**0.5),
            bounded_memory=True,
            **options(built),
        )
        p, v = run.state.bodies.p_WB[:, -1], run.state.bodies.v_W[:, -1]
        nodes = run.state.memory["cables"]["nodes"].position
        return p[-1] @ jnp.array([1.0, 0.7, 0.4]) + v[-1] @ jnp.array([0.5, 0.3, 0.9]) + (p**2).mean(), (run.state.bodies, nodes)

    return jit_once(jax.value_and_grad(end, has_aux=True)), jit_once(end)


def compare(gradient_of, value_of, initial, tolerance):
    one = jnp.ones(len(WHAT))
    (_, flown), gradient = gradient_of(one, initial)
    gradient = np.asarray(gradient)
    assert np.isfinite(gradient).all()
    assert (np.abs(gradient) > 1e-7).all()
    h = 1e-6
    numeric = np.array([(value_of(one + h * d, initial)[0] - value_of(one - h * d, initial)[0]) / (2 * h) for d in np.eye(len(WHAT))])
    np.testing.assert_allclose(gradient, numeric, rtol=tolerance, atol=tolerance * np.abs(numeric).max())
    return flown


@pytest.fixture(scope="module")
def five_seconds():
    return outcome(build(loads(PAIR.replace("HEIGHT", "0.0")).scenario), 5.0)


@pytest.mark.parametrize("height", [0.0, -0.2], ids=["taut", "from slack"])
def test_through_five_seconds(five_seconds, height):
    """From slack: the load falls 20 cm until its cables catch it, and bounces."""
    built = build(loads(PAIR.replace("HEIGHT", str(height))).scenario)
    bodies, nodes = compare(*five_seconds, built.initial, 1e-5)
    top = np.asarray(bodies.p_WB)[:, :2]  # the cables hang from the vehicles' reference points
    slack = np.linalg.norm(np.asarray(nodes)[:, 0] - top, axis=-1) <= 0.5  # m, a segment's length
    assert slack.any() == (height < 0)
    assert not slack[-1].any()


@pytest.mark.slow
def test_through_five_seconds_of_the_seeds_lift():
    """Stiff cables, linearly implicit at 2 ms."""
    built = build(load("lift-box").scenario)
    compare(*outcome(built, 5.0), built.initial, 1e-4)
