import control
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.analysis.closed_loop import closed_loop
from skycrane.analysis.coordinates import Chart
from skycrane.core.controller import AbstractController, AbstractSensors, Measurement
from skycrane.core.element import AbstractElement, Wrench
from skycrane.math.components import Vec3
from skycrane.simulation.rollout import simulate
from tests.simulation.test_rollout import CONTROLLER, REFERENCE
from tests.systems_for_tests import free_body, quadrotor

PERIOD, MASS, KP, KD = 0.1, 2.0, 8.0, 6.0


class Jets(AbstractElement):
    """Forces along world x and y as commanded."""

    def wrench(self, t, kin, memory, command):
        return (Wrench((0,), Vec3(command[:1], command[1:], jnp.zeros(1)), None),), ()


class PD(AbstractController):
    """Proportional and derivative action on both axes, on y after a delay of one tick."""

    gain: float

    def init(self):
        return jnp.zeros(2)

    def __call__(self, t, measurement, reference, memory):
        b = measurement.bodies
        pull = -self.gain * (KP * b.p_WB[0, :2] + KD * b.v_W[0, :2])
        return {"jets": jnp.stack([pull[0], memory[0]])}, jnp.stack([pull[1], 0.0])


class LastCommand(AbstractSensors):
    """The true state, and a memory of the command before: it must become a state of the linear model."""

    def init(self, state):
        return jnp.zeros(2)

    def __call__(self, tick, t, system, state, command, prepared, memory):
        return Measurement(state.bodies, state.memory, {"held": memory}), command["jets"]


SYSTEM = free_body(MASS, elements={"jets": Jets()})


@pytest.fixture(scope="module")
def loop():
    return closed_loop(SYSTEM, PD(jnp.array(1.0)), None, SYSTEM.initial_state(), step=0.05, control_period=PERIOD, velocity="world")


def plant_and_gains():
    return np.array([[1, PERIOD], [0, 1]]), np.array([[PERIOD**2 / 2], [PERIOD]]) / MASS, np.array([[-KP, -KD]])


def test_sampled_double_integrator_is_exact(loop):
    A, B, K = plant_and_gains()
    np.testing.assert_allclose(loop.closed.block(["x", "vx_W"]).A, A + B @ K, atol=1e-14)
    delayed = loop.closed.block(["y", "vy_W", "controller[0]"])
    np.testing.assert_allclose(delayed.A, np.block([[A, B], [K, np.zeros((1, 1))]]), atol=1e-14)
    np.testing.assert_allclose(loop.closed.residual, 0.0, atol=1e-15)
    assert (loop.closed.dt, loop.closed.inputs) == (PERIOD, ("jets[0]", "jets[1]"))


def test_eigenvalues_are_mapped_to_continuous_time(loop):
    A, B, K = plant_and_gains()
    expected = np.log(np.linalg.eigvals(A + B @ K)[0]) / PERIOD
    mode = next(m for m in loop.closed.modes() if "body/x" in m.participation and m.oscillates)
    np.testing.assert_allclose([mode.eigenvalue.real, mode.eigenvalue.imag], [expected.real, abs(expected.imag)], rtol=1e-12)
    assert mode.stable


def test_margins_of_one_loop_against_python_control_and_a_gain_sweep(loop):
    A, B, K = plant_and_gains()
    margins = loop.margins("jets[0]")
    ours = control.ss(A, B, -K, 0, PERIOD)
    _, phase, _, _, crossover, _ = control.stability_margins(ours)
    np.testing.assert_allclose([margins.phase_deg, margins.crossover], [phase, crossover], rtol=1e-9)
    np.testing.assert_allclose(margins.delay_s, np.radians(phase) / crossover, rtol=1e-9)
    np.testing.assert_allclose(margins.disk, control.disk_margins(ours, np.geomspace(1e-2, np.pi / PERIOD * 0.9999, 3000))[0], rtol=1e-4)
    # The gain margin moves an eigenvalue onto the unit circle.
    np.testing.assert_allclose(np.abs(np.linalg.eigvals(A + margins.gain_up * B @ K)).max(), 1.0, rtol=1e-9)
    assert (margins.gain_down, margins.stable) == (0.0, True)  # the other axes of the free body are neutral, which counts as stable
    # The delayed axis has lost one tick of phase at nearly the same crossover.
    assert loop.margins("jets[1]").delay_s == pytest.approx(margins.delay_s - PERIOD, abs=1e-6)
    assert loop.disk_margin() <= min(margins.disk, loop.margins("jets[1]").disk) + 1e-12


def test_margins_along_a_direction(loop):
    both = loop.margins(np.array([0.0, 2.0]), inject=np.array([0.3, 0.5]))
    assert both.gain_up == pytest.approx(loop.margins("jets[1]").gain_up)
    with pytest.raises(ValueError, match="expected 1"):
        loop.margins(np.array([1.0, 0.0]), inject=np.array([0.0, 1.0]))


def test_an_unstable_loop_is_called_unstable():
    slow = closed_loop(SYSTEM, PD(jnp.array(40.0)), None, SYSTEM.initial_state(), step=0.05, control_period=PERIOD, velocity="world")
    assert not slow.closed.stable()


def test_sensors_with_memory_become_states():
    loop = closed_loop(
        SYSTEM, PD(jnp.array(1.0)), None, SYSTEM.initial_state(), step=0.05, control_period=PERIOD, sensors=LastCommand(), velocity="world"
    )
    assert loop.closed.states[-4:] == ("sensors[0]", "sensors[1]", "held/jets[0]", "held/jets[1]")
    sensed = loop.closed.block(["held/jets[0]", "sensors[0]"])
    np.testing.assert_allclose(sensed.A, [[0, 0], [1, 0]], atol=1e-14)


def test_quadrotor_with_lag_and_integrator_against_the_simulation():
    """The linear model predicts what the nonlinear loop does to a small disturbance, five ticks later."""
    system = quadrotor(inertia_rotor=1e-5, keep_ledger=True)
    options = {"step": 2e-3, "control_period": 1e-2}
    start = system.initial_state(velocity=[[0.0, 0.0, 0.5]])
    rest = simulate(system, CONTROLLER, REFERENCE, start, duration=2.0, **options).final
    model = closed_loop(system, CONTROLLER, REFERENCE, rest, **options).closed
    assert "controller" in model.states
    chart = Chart(eqx.tree_at(lambda s: s.memory, rest.state, {k: v for k, v in rest.state.memory.items() if k != "energy_ledger"}))
    x = np.zeros(len(model.states))
    x[model.index(["vx", "z", "vz", "p", "q", "rotors[body/2]"], model.states)] = np.array([1, 3, -2, 1, 2, 50]) * 1e-6
    moved = chart.state(jnp.asarray(x[:-1]))
    moved = eqx.tree_at(lambda s: s.memory, moved, {**rest.state.memory, **moved.memory})
    ends = [
        simulate(system, CONTROLLER, REFERENCE, eqx.tree_at(lambda c: c.state, rest, state), duration=0.05, **options).final
        for state in (rest.state, moved)
    ]
    plain = [Chart(eqx.tree_at(lambda s: s.memory, e.state, {"rotors": e.state.memory["rotors"], "gravity": (), "drag": ()})) for e in ends]
    found = np.append(plain[0].local(plain[1].about), ends[1].controller_memory - ends[0].controller_memory)
    expected = np.linalg.matrix_power(model.A, 5) @ x
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
