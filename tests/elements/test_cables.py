"""Cables one property at a time: no push, shares of a load, bending, drag, cut, winch, waves, the bound of the rate."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from skycrane.core.bodies import Bodies, SecondOrder
from skycrane.core.chain import WORLD
from skycrane.core.controller import Constant
from skycrane.core.events import Event, Timeline
from skycrane.core.system import LEDGER, System
from skycrane.elements.cables import CableDrag, CableGround, Winch
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground
from skycrane.environment.water import Current, Water
from skycrane.loads.rope import Rope
from skycrane.simulation.integrators import RK4
from skycrane.simulation.rollout import simulate
from tests.cable_models import advance, chain, hung, jit_once, lift, lift_start, measured

rates = jit_once(lambda system, state: system.dynamics(0.0, state, {}, system.prepare()))


def test_a_cable_never_pushes():
    """Case 31: a mass above the vehicle at full length falls at g, the vehicle, whose thrust is its weight, stays."""
    bodies = Bodies.create(["vehicle", "mass"], [2.0, 0.5], np.full((2, 3), 0.1))
    thrust = Push((0,), jnp.array([[0.0, 0.0, 2.0 * 9.81]]), jnp.zeros((1, 3)), jnp.zeros((1, 3)))
    cable = chain(0, 1, np.zeros(3), np.zeros(3), [[0.0, 0, 0], [0.0, 0, 1.0]], 1e4, 20.0, 1.0, 1.0)
    system = System(bodies, {"gravity": Gravity(), "cables": cable, "push": thrust})
    rate = rates(system, system.initial_state([[0.0, 0, 0], [0.0, 0, 1.0]]))
    np.testing.assert_array_equal(rate.bodies.v_W, [[0, 0, 0], [0, 0, -9.81]])
    # Moving together inside the rest length; and stretched, but closing so fast that the damper would push.
    for height, speed in ((0.7, [3.0, 3.0]), (1.001, [0.0, -2.0])):
        velocity = [[0.0, 0, v] for v in speed]
        assert float(measured(system, system.initial_state([[0.0, 0, 0], [0.0, 0, height]], velocity=velocity))["tension"].max()) == 0.0
    stretched = measured(system, system.initial_state([[0.0, 0, 0], [0.0, 0, 1.001]], velocity=[[0.0, 0, 0], [0.0, 0, 0.1]]))
    np.testing.assert_allclose(stretched["tension"], 1e4 * 0.001 + 20.0 * 0.1, rtol=1e-9)


def test_three_cables_over_the_centroid_carry_a_third_each():
    """Case 34: at rest nothing accelerates, the tensions are the weight, and their moments about the centre of mass vanish."""
    points = np.array([[0.9, 0.1, 0.3], [-0.2, 0.7, 0.3], [-0.7, -0.8, 0.3]])
    rope = Rope.of_segments(3, 0.5, 2e4, 20.0, 0.01, lumps="half")
    system = lift(rope, points)
    state = lift_start(system, swing=(0.0, 0.0, 0.0))
    for x in jax.tree.leaves(rates(system, state)):
        np.testing.assert_allclose(x, 0, atol=1e-7)
    tension = np.asarray(measured(system, state)["tension"])[:, -1]
    weight = float(system.bodies.mass[3]) * 9.81
    np.testing.assert_allclose(tension, weight / 3, rtol=1e-9)
    arms = points - np.asarray(system.bodies.com_B[3])
    np.testing.assert_allclose(np.cross(arms, tension[:, None] * [0, 0, 1.0]).sum(0), 0, atol=1e-9)


def straight(points, **options):
    """A cable of given nodes between a heavy body at the origin and the world, without weight."""
    body = Bodies.create(["anchor"], [1e9], [[1e9] * 3])
    m = len(points) - 1
    numbers = {"stiffness": 1e-9, "damping": 0.0, "length": np.full(m, 1.0 / m), "node_mass": 1.0} | options
    cable = chain(0, WORLD, points[0], points[-1], points, **numbers)
    return System(body, {"cables": cable}, environment=Environment(0.0))


def test_bending_of_a_pinned_beam():
    """Nodes on a half sine of small height: force per length -EI y'''' = -EI (pi/L)^4 y, and energy EI/4 (pi/L)^4 h^2 L; second order."""
    EI, height = 3.0, 1e-4
    errors = []
    for m in (8, 16):
        s = np.linspace(0, 1, m + 1)
        y = height * np.sin(np.pi * s)
        system = straight(np.stack([s, 0 * s, y], -1), bending=jnp.array([EI]))
        state = system.initial_state()
        force = np.asarray(rates(system, state).memory["cables"]["nodes"].velocity)[:, 0, 2]
        expected = -EI * np.pi**4 * y[1:-1] / m
        energy = float(measured(system, state)["energy"])
        errors.append([np.abs(force / expected - 1).max(), abs(energy / (EI / 4 * np.pi**4 * height**2) - 1)])
    assert max(errors[-1]) < 0.01
    np.testing.assert_allclose(np.array(errors[0]) / errors[1], 4.0, rtol=0.05)


def test_energy_of_a_bent_circle():
    """A quarter of a circle of length 1: EI/2 (pi/2)^2; end segments are bent on one side only, which leaves 1/m."""
    m = 16
    angle, radius = np.linspace(0, np.pi / 2, m + 1), 2 / np.pi
    system = straight(radius * np.stack([np.sin(angle), 0 * angle, 1 - np.cos(angle)], -1), bending=jnp.array([3.0]))
    energy = float(measured(system, system.initial_state())["energy"])
    np.testing.assert_allclose(energy, 1.5 * (np.pi / 2) ** 2 * (m - 1) / m, rtol=2e-3)


def test_drag_across_and_along():
    """A straight cable in wind at 30 degrees to it: 1/2 rho C d v^2 per length, of each component by itself; ends get half a segment."""
    m, wind = 5, np.array([8.0, 0.0, 3.0])
    s = np.linspace(0, 1, m + 1)
    system = straight(np.stack([s, 0 * s, 0 * s], -1), drag=CableDrag(jnp.array([0.012]), jnp.array([0.001])))
    system = eqx.tree_at(lambda x: x.environment, system, Environment(0.0, Air(1.2, SteadyWind(jnp.asarray(wind)))))
    force = np.asarray(rates(system, system.initial_state()).memory["cables"]["nodes"].velocity)[:, 0]
    expected = 0.5 * 1.2 / m * np.array([0.001 * 8.0**2, 0.0, 0.012 * 3.0**2])
    np.testing.assert_allclose(force, np.tile(expected, (m - 1, 1)), atol=1e-8)


def test_in_water():
    """Below the surface water carries and drags, above it air does; the segment that crosses is wet up to the surface."""
    m, section, across, current = 5, 2e-4, 0.012, 1.5
    z = np.linspace(0, -1, m + 1)
    system = straight(np.stack([0 * z, 0 * z, z], -1), drag=CableDrag(jnp.array([across]), jnp.array([0.001]), jnp.array([section])))
    water = Water(-0.45, 1025.0, current=Current(jnp.array([current, 0.0, 0.0])))
    system = eqx.tree_at(lambda x: x.environment, system, Environment(9.81, Air(1.2), water=water), is_leaf=lambda x: x is None)
    force = np.asarray(rates(system, system.initial_state()).memory["cables"]["nodes"].velocity)[:, 0] + [0, 0, 9.81]
    wet = np.array([0.0, 0, 0.75, 1, 1])  # of the segments 0..0.2, 0.2..0.4, 0.4..0.6 m and so on
    each = 1025.0 / m * np.array([0.5 * across * current**2, 0.0, 9.81 * section])
    np.testing.assert_allclose(force, (0.5 * (wet[1:] + wet[:-1]))[:, None] * each, rtol=2e-3, atol=1e-8)


def test_winch_then_cut():
    """The winch pays out and reels in at its speed with the energy account closed; cut, the ball falls freely, the rest hangs on."""
    points = np.linspace([0.0, 0, 0], [0.0, 0, -1.002], 4)
    system = hung(
        points, 0.5, stiffness=2000.0, damping=2.0, length=1.0 / 3, node_mass=0.02, bending=jnp.array([1e-3]),
        winch=Winch(jnp.array([0.1]), jnp.array([0.5]), jnp.array([1.0])),
    )  # fmt: skip
    state = system.initial_state([points[-1]])
    cut = Timeline((Event("system.elements.cables.intact[2, 0]", jnp.asarray(1.5), jnp.asarray(0.0)),))
    run = simulate(system, Constant({"cables": jnp.array([1.6])}), None, state, duration=1.8, step=5e-4, save_every=100, events=cut)
    paid = np.asarray(run.state.memory["cables"]["paid_out"])[:, 0]
    time = np.asarray(run.time)
    np.testing.assert_allclose(paid[:20], 1.0 + 0.5 * time[:20], atol=1e-9)  # at full speed up to 1.1 s or so
    np.testing.assert_allclose(paid[30], 1.6, atol=0.03)
    prepared = system.prepare()
    energy = np.asarray(jit_once(jax.vmap(lambda s: system.energy(0.0, s, prepared)))(run.state))
    account = energy - np.asarray(run.state.memory[LEDGER].work)
    np.testing.assert_allclose(account[:31], account[0], atol=1e-6)
    ball = np.asarray(run.state.bodies.v_W)[30:, 0, 2]
    np.testing.assert_allclose(np.diff(ball), -9.81 * 0.05, atol=1e-12)


def test_a_rope_that_falls_on_the_ground():
    """Energy only goes down, nothing sinks, and at the end it lies still."""
    m = 4
    points = np.linspace([0.0, 0, 1.0], [1.0, 0, 1.0], m + 1)
    system = hung(points, 0.2, stiffness=500.0, damping=1.0, length=0.3, node_mass=0.05, ground=CableGround(100.0))
    push = Push((0,), jnp.array([[0.0, 0.0, 0.2 * 9.81]]), jnp.zeros((1, 3)), jnp.zeros((1, 3)))  # the ball hovers at its end
    surroundings = Environment(9.81, ground=Ground(0.8))
    system = System(system.bodies, {**system.elements, "push": push}, environment=surroundings, keep_ledger=True)
    state = system.initial_state([points[-1]])
    lowest = last = np.inf
    start = float(measured(system, state)["energy"])
    for _ in range(20):
        state = advance(RK4(), system, state, 5e-4, 200)
        lowest = min(lowest, float(state.memory["cables"]["nodes"].position[..., 2].min()) - 0.8)
        log = measured(system, state)
        np.testing.assert_allclose(float(log["energy"]) - float(log["work"]), start, atol=5e-3)
        last = float(jnp.abs(state.memory["cables"]["nodes"].velocity).max())
    assert -0.02 < lowest < 0.0
    assert last < 0.02


def test_wave_speed_of_a_long_taut_cable():
    """A pulse across a string runs at sqrt(T/mu), mu of the stretched cable, and keeps its shape."""
    m, stretched, tension, mu = 120, 1.05, 40.0, 0.1
    s = np.linspace(0, 12.0, m + 1)  # unstretched places; the string is 12.6 m long
    a = 12.0 / m
    EA = tension / (stretched - 1)
    speed = np.sqrt(tension / (mu / stretched))
    pulse = lambda x: 1e-3 * np.exp(-(((x - 4.0) / 0.7) ** 2))  # noqa: E731
    x = stretched * s
    points = np.stack([x, 0 * x, pulse(x)], -1)
    system = straight(points, stiffness=EA / a, length=a, node_mass=mu * a)
    slope = -(x - 4.0) * 2 / 0.7**2 * pulse(x)
    velocity = np.zeros((m - 1, 1, 3))
    velocity[:, 0, 2] = (-speed * slope)[1:-1]  # runs to the right
    nodes = SecondOrder(system.elements["cables"].nodes, jnp.asarray(velocity))
    state = system.initial_state(memory={"cables": {"nodes": nodes}})
    time = 0.2
    end = advance(RK4(), system, state, 5e-4, 400).memory["cables"]["nodes"].position
    np.testing.assert_allclose(end[:, 0, 2], pulse(x[1:-1] - speed * time), atol=3e-5)
    peak = np.asarray(end)[np.asarray(end)[:, 0, 2].argmax(), 0, 0]
    assert abs(peak - 4.0 - speed * time) < a  # after 4.1 m


def test_the_rate_bound_holds():
    """The bound is not below any eigenvalue of the whole linearised system, and for arXiv 2305.09175's cables not 20 % above."""
    system = lift()
    still = lift_start(system, swing=(0.0, 0.0, 0.0))

    @jit_once
    def differences(system, state):  # central ones: accurate to 1e-8 of the largest entry, and cheaper to compile than a Jacobian
        flat, unravel = ravel_pytree(state)
        prepared = system.prepare()
        rate = lambda x: ravel_pytree(system.dynamics(0.0, unravel(x), {}, prepared))[0]  # noqa: E731
        steps = 1e-6 * jnp.eye(flat.size)
        return jax.vmap(lambda d: (rate(flat + d) - rate(flat - d)) / 2e-6)(steps).T

    def fastest(system, state):
        return np.abs(np.linalg.eigvals(np.asarray(differences(system, state)))).max()

    bound = system.rate_bound(system.prepare())
    true = fastest(system, still)
    assert true <= bound < 1.2 * true
    assert 4.2e-4 < RK4.stability_radius / bound < 4.8e-4
    rng = np.random.default_rng(2)
    for _ in range(3):
        # Taut in random directions, with random stiffness, damping and masses.
        step = rng.normal(size=(5, 4, 3))
        step *= rng.uniform(0.501, 0.52, (5, 4, 1)) / np.linalg.norm(step, axis=-1, keepdims=True)
        places = np.asarray(still.bodies.p_WB)[:4] * rng.uniform(0.5, 1.5)
        nodes = places + np.cumsum(step, 0)
        c = system.elements["cables"]
        scale = lambda x: x * jnp.asarray(rng.uniform(0.3, 3.0, x.shape))  # noqa: E731
        cables = eqx.tree_at(
            lambda c: (c.lower_B, c.stiffness, c.damping, c.node_mass, c.nodes), c,
            (jnp.asarray(nodes[-1]), scale(c.stiffness), scale(c.damping), scale(c.node_mass), jnp.asarray(nodes[:-1])),
        )  # fmt: skip
        other = eqx.tree_at(lambda s: s.elements["cables"], system, cables)
        state = other.initial_state(np.vstack([places, np.zeros((1, 3))]))
        assert float(measured(other, state)["tension"].min()) > 0
        assert fastest(other, state) <= other.rate_bound(other.prepare())


def test_mistakes_are_refused():
    points = np.linspace([0.0, 0, 0], [0.0, 0, -1], 4)
    numbers = {"stiffness": 100.0, "damping": 1.0, "length": 0.3, "node_mass": 0.1}
    with pytest.raises(ValueError, match="both ends in the world"):
        chain(WORLD, WORLD, points[0], points[-1], points, **numbers)
    with pytest.raises(ValueError, match="same body"):
        chain(0, 0, points[0], points[-1], points, **numbers)
    with pytest.raises(ValueError, match=r"bending has shape \(3,\), expected \(1,\)"):
        chain(0, WORLD, points[0], points[-1], points, **numbers, bending=jnp.ones(3))
    system = hung(points, **numbers, ground=CableGround())
    with pytest.raises(ValueError, match=r"environment\.ground"):
        system.dynamics(0.0, system.initial_state(), {}, system.prepare())
