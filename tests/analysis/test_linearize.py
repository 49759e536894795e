import control
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.analysis.coordinates import Chart, Steady
from skycrane.analysis.linear_model import LinearModel, mode_table
from skycrane.analysis.linearize import linearize
from skycrane.core.bodies import BodyState, State
from skycrane.math.rotation import from_euler
from skycrane.simulation.integrators import SecondOrder
from tests.analysis.models import LAG, LOAD, UAV, multirotor, slung

PITCH, SPEED = np.radians(6.412298), 702.558112
COMMAND = {"rotors": jnp.full((1, 4), SPEED)}


def level_flight(system, **memory):
    return system.initial_state(attitude=[from_euler("zyx", [0.0, PITCH, 0.0])], velocity=[[10.0, 0, 0]], memory=memory)


def assert_tutorial_blocks(model):
    """Blocks of the tutorial in NED/FRD, rotors clockwise from front right; here FLU, rotors clockwise from front left."""
    S = np.diag([-1.0, 1, -1, -1])
    A = [[0, 0, 0, 1], [-9.748628, -0.219125, 0.012236, 1.116822], [1.095603, 0.012236, -0.111625, 9.93744], [0, 0, 0, 0]]
    B = [[0] * 4, [0] * 4, [-0.007026] * 4, [0.198713, -0.198713, -0.198713, 0.198713]]
    shift = [3, 0, 1, 2]  # our first rotor, front left, is the tutorial's fourth
    pitching = model.block(["pitch", "vx", "vz", "q"])
    np.testing.assert_allclose(pitching.A, S @ A @ S, atol=1e-6)
    np.testing.assert_allclose(pitching.B, (S @ B)[:, shift], atol=1e-6)
    S = np.diag([1.0, -1, 1, -1])
    A = [[0, 0, 1, -0.112385], [9.748628, -0.11025, -1.116822, -9.93744], [0] * 4, [0] * 4]
    B = [[0] * 4, [0] * 4, [-0.198713, -0.198713, 0.198713, 0.198713], [0.006245, -0.006245, 0.006245, -0.006245]]
    rolling = model.block(["roll", "vy", "p", "r"])
    np.testing.assert_allclose(rolling.A, S @ A @ S, atol=1e-6)
    np.testing.assert_allclose(rolling.B, (S @ B)[:, shift], atol=1e-6)


def test_blocks_of_the_tutorial_at_10_m_s():
    system = multirotor()
    model = linearize(system, level_flight(system), COMMAND, attitude="euler")
    assert model.inputs == ("rotors[uav/1]", "rotors[uav/2]", "rotors[uav/3]", "rotors[uav/4]")
    assert np.abs(model.residual).max() < 1e-6
    assert_tutorial_blocks(model)


def test_blocks_of_the_tutorial_with_motor_lag_that_follows_at_once():
    system = multirotor(**LAG)
    state = level_flight(system, rotors=COMMAND["rotors"])
    model = linearize(system, state, COMMAND, attitude="euler")
    assert "rotors[uav/3]" in model.states
    np.testing.assert_allclose(model.block(["rotors[uav/1]"], ["rotors[uav/1]"]).A, -20.0)
    assert_tutorial_blocks(model.settle([s for s in model.states if s.startswith("rotors")]))
    again = linearize(system, state, COMMAND, attitude="euler", quasi_static=["rotors"])
    assert again.states == model.states[:12]
    assert_tutorial_blocks(again)


# -- against central differences ---------------------------------------------------------------------------------------------------------


def random_state(system, seed):
    random = np.random.default_rng(seed)
    q = random.normal(size=(2, 4))
    return system.initial_state(
        position=random.normal(size=(2, 3)), attitude=q / np.linalg.norm(q, axis=1, keepdims=True), velocity=random.normal(size=(2, 3)),
        angular_velocity=random.normal(size=(2, 3)), memory={"rotors": jnp.asarray(random.uniform(300, 900, (1, 4)))},
    ), {"rotors": jnp.asarray(random.uniform(300, 900, (1, 4)))}  # fmt: skip


@pytest.mark.parametrize(("attitude", "velocity", "turn_rate"), [("rotation_vector", "body", 0.3), ("euler", "world", 0.0)])
def test_two_bodies_with_lag_against_central_differences(attitude, velocity, turn_rate):
    system = slung(offset=(0.1, 0.05, -0.1), time_up=0.05, time_down=0.08, inertia=1e-4)
    state, command = random_state(system, 3)
    model = linearize(system, state, command, attitude=attitude, velocity=velocity, turn_rate=turn_rate, outputs=tension_like)
    chart, steady, prepared = Chart(state, attitude, velocity), Steady.of(state, turn_rate), system.prepare()

    @jax.jit
    def slope(x, u):
        # The derivative along the flow, by differentiating the chart itself.
        at, u = chart.state(x), {"rotors": u.reshape(1, 4)}
        rates = jax.tree.map(lambda a, b: a - b, system.dynamics(0.0, at, u, prepared), steady.rates(at))
        return jax.jvp(chart.local, (at,), (rates,))[1], tension_like(0.0, at, u)["stretch"]

    n = len(model.states)
    x0, u0 = np.zeros(n), np.asarray(command["rotors"]).ravel()

    def differences(function, size, step):
        columns = [[(p - m) / (2 * step) for p, m in zip(function(e), function(-e), strict=True)] for e in step * np.eye(size)]
        return [np.stack(part, -1) for part in zip(*columns, strict=True)]

    A, C = differences(lambda e: [np.asarray(x) for x in slope(x0 + e, u0)], n, 1e-6)
    B, D = differences(lambda e: [np.asarray(x) for x in slope(x0, u0 + e)], 4, 1e-3)
    for exact, approximate in ((model.A, A), (model.B, B), (model.C, C), (model.D, D)):
        np.testing.assert_allclose(exact, approximate, atol=3e-8 * np.abs(exact).max() + 1e-9)
    np.testing.assert_allclose(model.residual, slope(x0, u0)[0], rtol=1e-12, atol=1e-9)
    assert model.outputs == ("stretch[0]", "stretch[1]", "stretch[2]")


def tension_like(t, state, command):
    b = state.bodies
    return {"stretch": (b.p_WB[1] - b.p_WB[0]) * command["rotors"][0, 0] + b.v_W[0]}


@pytest.mark.parametrize("attitude", ["rotation_vector", "euler"])
@pytest.mark.parametrize("velocity", ["body", "world"])
def test_charts_go_there_and_back_and_turn_with_the_heading(attitude, velocity):
    system = slung(**LAG)
    state, _ = random_state(system, 5)
    nodes = SecondOrder(jnp.arange(6.0).reshape(2, 3), jnp.ones((2, 3)))
    state = State(state.bodies, {**state.memory, "nodes": nodes, "count": jnp.array(3)})
    chart = Chart(state, attitude, velocity, yaw=0.4)
    x = jnp.asarray(np.random.default_rng(1).normal(size=24 + 4 + 12) * 0.3)
    there = chart.state(x)
    np.testing.assert_allclose(chart.local(there), x, atol=1e-12)
    assert int(there.memory["count"]) == 3
    # Forwards in the turned axes is a step along the heading 0.4.
    step = chart.state(jnp.zeros(40).at[0].set(1.0)).bodies.p_WB[0] - state.bodies.p_WB[0]
    np.testing.assert_allclose(step, [np.cos(0.4), np.sin(0.4), 0.0], atol=1e-15)
    # At rest in the moving axes means no rate, for bodies and nodes.
    steady = Steady(jnp.array([1.0, 2.0, 0.5]), jnp.array([3.0, 1.0, 0.0]), 0.7)
    rest = steady.rates(there)
    difference = jax.tree.map(lambda a, b: a - b, rest, steady.rates(there))
    np.testing.assert_allclose(chart.rate(there, difference), 0.0, atol=1e-15)
    np.testing.assert_allclose(rest.memory["nodes"].position, steady.velocities(there.memory["nodes"].position))


def test_unknown_coordinates_are_refused():
    system = multirotor()
    with pytest.raises(ValueError, match="expected one of rotation_vector, euler"):
        linearize(system, system.initial_state(), COMMAND, attitude="quaternion")


def test_a_rate_without_derivative_is_named():
    system = multirotor()
    bad = eqx.tree_at(lambda s: s.elements["drag"].cd_area_B, system, jnp.full((1, 3), jnp.nan))
    with pytest.raises(FloatingPointError, match="uav/vx, uav/vy, uav/vz"):
        linearize(bad, level_flight(bad), COMMAND)


# -- modes -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spring", "tether"])
def test_pendulum_of_a_slung_load(kind):
    system = slung(kind, cd_area=0.0)
    stretch = LOAD * 9.81 / 2000.0 if kind == "spring" else 0.0
    state = system.initial_state(position=[[0, 0, 0], [0, 0, -1.0 - stretch]])
    hover = np.sqrt((LOAD + UAV) * 9.81 / 4 / 1e-5)
    model = linearize(system, state, {"rotors": jnp.full((1, 4), hover)})
    assert np.abs(model.residual).max() < 1e-9
    modes = model.modes()
    swinging = [m for m in modes if m.oscillates and m.frequency < 10]
    # Load and vehicle swing against each other: w^2 = g/L (1 + m/M).
    assert [m.frequency for m in swinging] == pytest.approx([np.sqrt(9.81 / (1 + stretch) * (1 + LOAD / UAV))] * 2, rel=1e-9)
    assert all(set(m.participation) <= {f"{b}/{s}" for b in ("uav0", "load") for s in ("x", "y", "vx", "vy")} for m in swinging)
    if kind == "spring":
        bounce = modes[-1]
        assert bounce.frequency == pytest.approx(np.sqrt(2000.0 * (1 / LOAD + 1 / UAV)), rel=1e-9)
        assert bounce.damping == pytest.approx(0.5 * 5.0 * (1 / LOAD + 1 / UAV) / bounce.frequency, rel=1e-9)
        assert set(bounce.participation) == {"load/z", "load/vz", "uav0/z", "uav0/vz"}
    # Everything else is exactly neutral: heading, attitudes, and the motion of the whole.
    assert all(m.eigenvalue == 0 for m in modes if m not in swinging and m.frequency < 1)
    assert "± 3.5" in mode_table(modes) or "± 3.4975" in mode_table(modes)
    assert model.stable()


def test_modes_of_a_known_matrix():
    A = np.array([[0.0, 1.0, 0.0], [-25.0, -3.0, 0.0], [0.0, 0.0, -7.0]])
    model = LinearModel(A, np.zeros((3, 1)), np.eye(3), np.zeros((3, 1)), ("x", "v", "lag"), ("u",), ("x", "v", "lag"))
    pair, lag = model.modes()
    assert (pair.frequency, pair.damping) == pytest.approx((5.0, 0.3))
    assert pair.participation == pytest.approx({"x": 0.5, "v": 0.5})
    assert (lag.eigenvalue, lag.stable, lag.oscillates) == (pytest.approx(-7.0), True, False)
    assert not LinearModel(-A, np.zeros((3, 1)), np.eye(3), np.zeros((3, 1)), ("x", "v", "lag"), ("u",), ("x", "v", "lag")).stable()


# -- names and python-control ------------------------------------------------------------------------------------------------------------


def test_python_control_round_trip():
    A, B = np.array([[-1.0, 0.2], [0.0, -3.0]]), np.array([[0.0], [2.0]])
    names = ("uav/vx", "rotors[uav/1]")
    model = LinearModel(A, B, np.eye(2), np.zeros((2, 1)), names, ("rotors[uav/1]",), names, dt=0.1)
    system = model.to_control("quad")
    assert (system.state_labels, system.input_labels, system.output_labels) == ([*names], ["rotors[uav/1]"], [*names])
    np.testing.assert_array_equal(system.A, A)
    assert (system.name, system.dt) == ("quad", 0.1)
    z = np.exp(0.3j)
    np.testing.assert_allclose(system(z), (np.linalg.inv(z * np.eye(2) - A) @ B), rtol=1e-12)
    assert control.ss(system.A, system.B, system.C, system.D, 0.1).nstates == 2


def test_blocks_by_short_names_and_errors():
    A, names = np.arange(16.0).reshape(4, 4), ("a/vx", "a/q", "b/vx", "lag")
    model = LinearModel(A, np.ones((4, 2)), np.eye(4), np.zeros((4, 2)), names, ("one", "two"), names)
    part = model.block(["q", "b/vx"], ["two"], outputs=["lag", "q"])
    np.testing.assert_array_equal(part.A, [[5, 6], [9, 10]])
    np.testing.assert_array_equal(part.C, [[0, 0], [1, 0]])
    assert (part.states, part.inputs, part.outputs) == (("a/q", "b/vx"), ("two",), ("lag", "a/q"))
    with pytest.raises(KeyError, match="fits 2 signals: a/vx, b/vx"):
        model.block(["vx"])
    with pytest.raises(KeyError, match="the names are a/vx, a/q"):
        model.block(["theta"])


def test_single_precision_input_gives_the_same_model():
    with jax.enable_x64(False):
        system = multirotor()
        state = level_flight(system)
        assert state.bodies.p_WB.dtype == jnp.float32
        model = linearize(system, state, {"rotors": jnp.full((1, 4), SPEED)}, attitude="euler")
        assert jnp.zeros(1).dtype == jnp.float32
    assert model.A.dtype == np.float64
    np.testing.assert_allclose(model.block(["pitch", "vx", "vz", "q"]).A[1], [9.748628, -0.219125, -0.012236, -1.116822], atol=1e-5)
    assert isinstance(state.bodies, BodyState)
