"""Flying in single calls is the flight that `simulate` flies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import skycrane
from skycrane.core.chain import WORLD
from skycrane.elements.cables import Cables
from skycrane.simulation import rows

HEXA = skycrane.Multirotor.create(
    1.2, (0.012, 0.012, 0.022), skycrane.ring(6, 0.28), 8.5e-6, 1.4e-7, speed_max=1000.0, time_up=0.03, time_down=0.03
)
SYSTEM = skycrane.system_for(HEXA)
START = SYSTEM.initial_state(velocity=[[1.0, 0.5, 0.0]], angular_velocity=[[0.1, 0.2, 0.3]])
STEP = 0.004


def command_of(lane: int):
    return np.full((1, 6), 480.0) + 3.0 * np.arange(6) * (lane + 1)


def flown(lane: int, steps: int, start=START):
    constant = skycrane.Constant({"rotors": jnp.asarray(command_of(lane))})
    return skycrane.simulate(SYSTEM, constant, None, start, duration=steps * STEP, step=STEP, save_every=steps).final.state


def close(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12), a, b)


@pytest.mark.parametrize("budget", [rows.BUDGET, 0], ids=["number by number", "arrays"])
def test_one_vehicle(budget, monkeypatch):
    monkeypatch.setattr(rows, "BUDGET", budget)
    stepper = skycrane.Stepper(SYSTEM, START, step=STEP)
    for _ in range(6):
        stepper.step({"rotors": command_of(0)})
    assert stepper.time == pytest.approx(6 * STEP)
    close(stepper.state, flown(0, 6))


@pytest.mark.parametrize("budget", [rows.BUDGET, 0], ids=["number by number", "arrays"])
def test_lanes_and_reset(budget, monkeypatch):
    monkeypatch.setattr(rows, "BUDGET", budget)
    count = 70  # more than a block
    stepper = skycrane.Stepper(SYSTEM, START, step=STEP, substeps=3, count=count)
    commands = {"rotors": np.stack([command_of(i) for i in range(count)])}
    stepper.step(commands)
    stepper.step(commands)
    for lane in (0, 65):
        close(jax.tree.map(lambda x, lane=lane: x[lane], stepper.state), flown(lane, 6))
    elsewhere = SYSTEM.initial_state(position=[[1.0, 2.0, 3.0]])
    stepper.reset(elsewhere, np.arange(count) == 65)
    stepper.step(commands)
    close(jax.tree.map(lambda x: x[65], stepper.state), flown(65, 3, elsewhere))
    close(jax.tree.map(lambda x: x[0], stepper.state), flown(0, 9))
    stepper.reset(stepper.state)
    close(jax.tree.map(lambda x: x[0], stepper.state), flown(0, 9))


def test_refusals():
    with pytest.raises(ValueError, match="step is 0"):
        skycrane.Stepper(SYSTEM, START, step=0)
    for wrong in ({"step": float("inf")}, {"step": STEP, "count": 0}, {"step": STEP, "substeps": 1.5}, {"step": STEP, "count": True}):
        with pytest.raises(ValueError, match="expected a"):
            skycrane.Stepper(SYSTEM, START, **wrong)
    other = skycrane.system_for(skycrane.Multirotor.create(1.0, (0.01, 0.01, 0.02), skycrane.ring(4, 0.2), 8e-6, 1e-7, speed_max=900.0))
    with pytest.raises(ValueError, match="expected those of the system"):
        skycrane.Stepper(SYSTEM, other.initial_state(), step=STEP)
    stepper = skycrane.Stepper(SYSTEM, START, step=STEP, count=3)
    for command, said in (
        ({"rotors": command_of(0)}, r"expected \(3, 1, 6\)"),
        ({"rotor": np.zeros((3, 1, 6))}, "commands for rotor, but the elements are"),
        ({}, "no command for the rotors"),
        ({"rotors": np.zeros((3, 1, 6)), "drag": np.zeros(2)}, "commands for drag|one entry for each lane"),
    ):
        with pytest.raises(ValueError, match=said):
            stepper.step(command)
    for mask in ([True], np.arange(3)):
        with pytest.raises(ValueError, match="mask of lanes"):
            stepper.reset(START, mask)


@pytest.mark.parametrize("count", [None, 2])
def test_a_memory_without_numbers(count):
    """Of a cable of one segment, that has no nodes."""
    one = np.ones((1, 1))
    cable = Cables((0,), (WORLD,), np.zeros((1, 3)), np.zeros((1, 3)), 50.0 * one, one, one, one[1:], np.zeros((0, 1, 3)), one)
    system = skycrane.System(skycrane.Bodies.create(["ball"], [1.0], [(0.1, 0.1, 0.1)]), {"cable": cable})
    stepper = skycrane.Stepper(system, system.initial_state(position=[[0.0, 0.0, 1.5]]), step=STEP, count=count)
    stepper.step({})
    z = np.ravel(stepper.state.bodies.p_WB[..., 2])
    # 25 N of spring on 1 kg
    np.testing.assert_allclose(z, 1.5 - 0.5 * 25.0 * STEP**2, atol=2e-6)
    assert stepper.state.memory["cable"]["nodes"].position.shape == ((0, 1, 3) if count is None else (2, 0, 1, 3))
