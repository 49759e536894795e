"""Batches in blocks: equal to vmap, however many lanes, and told what is wrong."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.controller import Constant
from skycrane.simulation.batch import differing, lane_structure, map_lanes, stack_lanes
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import quad_command, quadrotor

SYSTEM = quadrotor()
STATE = SYSTEM.initial_state()


@jax.jit
def heights(factors):
    def one(factor):
        command = {"rotors": factor * quad_command()["rotors"]}
        return simulate(SYSTEM, Constant(command), None, STATE, duration=0.1, step=2e-3, save_every=50).state.bodies.p_WB[-1, 0, 2]

    return map_lanes(one, factors, block=4), jax.vmap(one)(factors)


def test_blocks_equal_vmap_and_the_number_of_lanes_changes_no_bit():
    factors = jnp.linspace(0.9, 1.1, 10)
    blocks, together = heights(factors)
    np.testing.assert_allclose(blocks, together, rtol=1e-12)
    assert len(set(np.asarray(blocks).tolist())) == 10
    np.testing.assert_array_equal(heights(factors[:7])[0], blocks[:7])


def test_over_two_devices():
    code = """
import jax
jax.config.update("jax_num_cpu_devices", 2)
import jax.numpy as jnp, numpy as np
from skycrane.simulation.batch import map_lanes
x = {"a": jnp.arange(11.0), "b": jnp.arange(22.0).reshape(11, 2)}
one = lambda lane: {"sum": lane["a"] + lane["b"].sum(), "twice": 2 * lane["b"]}
f = jax.jit(lambda x: map_lanes(one, x, block=2, devices=2))
out, want = f(x), jax.vmap(one)(x)
for k in want: np.testing.assert_array_equal(out[k], want[k])
assert len(jax.jit(lambda x: map_lanes(one, x, block=3, devices=2))({k: v[:6] for k, v in x.items()})["sum"].sharding.device_set) == 2
g = jax.jit(jax.grad(lambda a: map_lanes(lambda v: v**3, a, block=2, devices=2).sum()))(x["a"])
np.testing.assert_allclose(g, 3 * x["a"] ** 2)
"""
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("batch", "options", "message"),
    [
        ({"a": np.ones(3), "b": np.ones(4)}, {}, "same leading axis"),
        ({"a": np.ones(3), "b": 1.0}, {}, "same leading axis"),
        ({}, {}, "same leading axis"),
        ({"a": np.ones(3)}, {"block": 0}, "at least 1"),
        ({"a": np.ones(3)}, {"devices": 99}, "jax_num_cpu_devices"),
    ],
)
def test_mistakes_are_named(batch, options, message):
    with pytest.raises(ValueError, match=message):
        map_lanes(lambda x: x, batch, **options)


def test_stacking_separates_what_varies():
    a, b = ({"m": np.ones(2), "g": 9.81, "k": 3, "x": x} for x in (0.0, 1.0))
    assert differing(a, b) == {"['x']"}
    stacked, shared = stack_lanes([a, b], ("['m']",))
    assert (shared["g"], shared["k"], shared["m"], shared["x"]) == (9.81, 3, None, None)
    np.testing.assert_array_equal(stacked["x"], [0.0, 1.0])
    assert stacked["m"].shape == (2, 2)
    assert lane_structure(a) == lane_structure(b) != lane_structure(a | {"k": 4})
    with pytest.raises(ValueError, match="different structure"):
        stack_lanes([a, b | {"m": np.ones(3)}])
