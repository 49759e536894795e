"""Vehicles on long paths are drawn larger, and nothing else changes."""

import numpy as np
import pytest

from skycrane.viz.enlarge import enlarged
from skycrane.viz.frames import Frames

SHAPES = [
    {"kind": "box", "size": [0.2, 0.2, 0.1], "position": [0.0, 0.0, 0.0]},
    {"kind": "rotor", "radius": 0.1, "position": [0.4, 0.0, 0.0], "axis": [0.0, 0.0, 1.0], "spin": 1, "name": "uav/1"},
]


def frames(length, bodies=("uav",)):
    position = np.zeros((2, len(bodies), 3))
    position[1, :, 0] = length
    none = np.zeros((2, 0, 3))
    scene = {"bodies": {name: {"color": [0, 0, 1], "shapes": SHAPES} for name in bodies}, "ground": None}
    attitude = np.zeros((2, len(bodies), 4))
    return Frames(
        "", "finished", np.arange(2.0), tuple(bodies), position, attitude, (), none, ("uav/1",), np.ones((2, 1)),
        np.zeros((2, 0, 0, 3)), np.zeros((2, 0, 0)), (), scene,
    )  # fmt: skip


def test_a_speck_becomes_visible():
    larger, factor = enlarged(frames(150.0))
    assert factor == 10.0
    assert larger.body_radius("uav") == pytest.approx(10.0 * 0.5)
    rotor = larger.scene["bodies"]["uav"]["shapes"][1]
    assert (rotor["axis"], rotor["spin"], rotor["name"]) == ([0.0, 0.0, 1.0], 1, "uav/1")
    np.testing.assert_array_equal(larger.position_W, frames(150.0).position_W)


@pytest.mark.parametrize("given", [frames(50.0), frames(150.0, ("uav", "other"))], ids=["short path", "two bodies"])
def test_else_it_stays_as_it_is(given):
    same, factor = enlarged(given)
    assert factor == 1.0
    assert same is given
