"""The contracts carry cables, tethers and floating bodies: rough versions of them, here only, on the same core.

Elastic cables (nodes as second-order memory), an inextensible tether (a constraint) and a box in water (columns of buoyancy, added mass)
are put together freely; momentum, energy and derivatives must hold.  The real
elements live in the package; these stay as the contract's test.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies, SecondOrder
from skycrane.core.constraint import AbstractConstraint, Row
from skycrane.core.controller import Constant
from skycrane.core.element import AbstractElement, Wrench
from skycrane.core.system import System
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.environment.environment import Environment
from skycrane.math.components import Vec3, take
from skycrane.simulation.integrators import RK4, SemiImplicitEuler
from skycrane.simulation.rollout import simulate


class Cables(AbstractElement):
    """k cables of m segments from the origin of bodies ``upper`` to points of bodies ``lower``; node arrays (m-1, k, 3)."""

    upper: tuple[int, ...] = eqx.field(static=True)
    lower: tuple[int, ...] = eqx.field(static=True)
    offset_B: jax.Array
    stiffness: jax.Array
    damping: jax.Array
    length: jax.Array
    node_mass: jax.Array
    nodes: jax.Array

    def init(self):
        return SecondOrder(self.nodes, jnp.zeros_like(self.nodes))

    def _segments(self, kin, memory):
        low = kin.points(self.lower, Vec3.of(self.offset_B))
        ends = take((kin.p_WB, kin.v_W), self.upper), (low.p_W, low.v_W)
        chain = lambda a, x, b: jnp.concatenate([a.array()[None], x, b.array()[None]])  # noqa: E731
        p, v = chain(ends[0][0], memory.position, ends[1][0]), chain(ends[0][1], memory.velocity, ends[1][1])
        d, dv = p[1:] - p[:-1], v[1:] - v[:-1]
        stretched = jnp.sqrt(jnp.sum(d * d, -1))
        rate = jnp.sum(d * dv, -1) / stretched
        return low, d / stretched[..., None], stretched - self.length, rate

    def _tension(self, extension, rate):
        return jnp.where(extension > 0, jnp.maximum(self.stiffness * extension + self.damping * rate, 0.0), 0.0)

    def wrench(self, t, kin, memory, command):
        low, unit, extension, rate = self._segments(kin, memory)
        pull = self._tension(extension, rate)[..., None] * unit
        weight = jnp.array([0.0, 0.0, -1.0]) * kin.environment.gravity
        acceleration = (pull[1:] - pull[:-1]) / self.node_mass + weight
        down = Wrench.at(self.lower, Vec3.of(self.offset_B), low.R_WB, -Vec3.of(pull[-1]))
        return (Wrench(self.upper, Vec3.of(pull[0]), None), down), SecondOrder(memory.velocity, acceleration)

    def energy(self, t, kin, memory):
        _, _, extension, _ = self._segments(kin, memory)
        kinetic = 0.5 * self.node_mass * jnp.sum(memory.velocity**2)
        height = self.node_mass * kin.environment.gravity * jnp.sum(memory.position[..., 2])
        return kinetic + height + 0.5 * jnp.sum(self.stiffness * jnp.maximum(extension, 0.0) ** 2)

    def power(self, t, kin, memory, command, wrenches):
        _, _, extension, rate = self._segments(kin, memory)
        elastic = jnp.where(extension > 0, self.stiffness * extension, 0.0)
        return jnp.sum((elastic - self._tension(extension, rate)) * rate)


class Tether(AbstractConstraint):
    """Inextensible: length - distance >= 0 between points of two bodies."""

    bodies: tuple[int, int] = eqx.field(static=True)
    offset_B: jax.Array
    length: jax.Array

    def rows(self, t, kin, memory):
        (a, b), wn = self.bodies, 50.0
        A = kin.points((a,), Vec3.of(self.offset_B[:1]))
        B = kin.points((b,), Vec3.of(self.offset_B[1:]))
        d, v = B.p_W - A.p_W, B.v_W - A.v_W
        r, e = d.norm(), d.unit()
        rate = e.dot(v)

        def centripetal(points, body, offset):
            w = take(kin.w_B, (body,))
            return points.R_WB @ w.cross(w.cross(offset))

        turn = e.dot(centripetal(B, b, Vec3.of(self.offset_B[1:])) - centripetal(A, a, Vec3.of(self.offset_B[:1])))
        drift = -((v.dot(v) - rate * rate) / jnp.where(r > 0, r, 1.0) + turn)
        gap = self.length - r
        wrenches = (Wrench.at((a,), Vec3.of(self.offset_B[:1]), A.R_WB, e), Wrench.at((b,), Vec3.of(self.offset_B[1:]), B.R_WB, -e))
        scalar = lambda x: x[0]  # noqa: E731
        return (
            Row(
                wrenches,
                scalar(gap),
                scalar(-rate),
                scalar(drift),
                scalar(-(wn**2) * jnp.maximum(gap, 0) + 2 * wn * jnp.minimum(rate, 0)),
                scalar(gap <= 1e-6),
            ),
        )


class Columns(AbstractElement):
    """Buoyancy of one body as vertical columns against the plane z = 0."""

    body: int = eqx.field(static=True)
    base_B: jax.Array
    area: float = eqx.field(static=True)
    height: float = eqx.field(static=True)

    def _wet(self, kin):
        n = self.base_B.shape[0]
        point = kin.points((self.body,) * n, Vec3.of(self.base_B))
        return n, point, jnp.clip(-point.p_W.z, 0.0, self.height)

    def wrench(self, t, kin, memory, command):
        n, point, wet = self._wet(kin)
        lift = Vec3(0.0 * wet, 0.0 * wet, 1000 * 9.81 * self.area * wet)
        return (Wrench.at((self.body,) * n, Vec3.of(self.base_B), point.R_WB, lift),), ()

    def energy(self, t, kin, memory):
        _, point, wet = self._wet(kin)
        below = jnp.maximum(-point.p_W.z - self.height, 0.0)
        return 1000 * 9.81 * self.area * jnp.sum(0.5 * wet**2 + below * self.height)

    def power(self, t, kin, memory, command, wrenches):
        return 0.0


G = 9.81


def pendulum_lift(damping=0.0):
    """Two weightless-rotor 'vehicles' (held up by constant forces) carry a bar on two cables of four segments."""
    offsets = np.array([[-0.5, 0.0, 0.05], [0.5, 0.0, 0.05]])
    bodies = Bodies.create(["bar", "left", "right"], [2.0, 1.0, 1.0], [[0.01, 0.2, 0.2], [0.01] * 3, [0.01] * 3])
    total = 2.0 + 2 * 1.0 + 6 * 0.05
    nodes = np.stack([[[o[0], 0.0, 0.05 + 0.27 * k] for o in offsets] for k in (3, 2, 1)])
    # A little more than the rest length: always taut.
    tops = np.array([[o[0], 0.0, 1.05 + 0.08] for o in offsets])
    cables = Cables(
        (1, 2), (0, 0), jnp.asarray(offsets), jnp.array(800.0), jnp.array(damping), jnp.array(0.25), jnp.array(0.05), jnp.asarray(nodes)
    )
    lift = Push((1, 2), jnp.tile(jnp.array([0.0, 0.0, total * G / 2]), (2, 1)), jnp.zeros((2, 3)), jnp.zeros((2, 3)))
    system = System(bodies, {"gravity": Gravity(), "cables": cables, "lift": lift}, environment=Environment(G), keep_ledger=True)
    return system, system.initial_state(np.vstack([[0, 0, 0], tops]), velocity=[[0.3, 0.2, 0], [0, 0, 0], [0, 0, 0]])


def momentum(system, state):
    prepared = system.prepare()
    kin = system.kinematics(state, prepared)
    h_lin, h_ang = prepared.momentum_B(kin.v_B, kin.w_B)
    linear = kin.R_WB @ h_lin
    angular = kin.R_WB @ h_ang + kin.p_WB.cross(linear)
    total, turning = linear.array().sum(0), angular.array().sum(0)
    for name, memory in state.memory.items():
        if isinstance(memory, SecondOrder):
            m = system.elements[name].node_mass
            total = total + m * memory.velocity.sum((0, 1))
            turning = turning + m * jnp.cross(memory.position, memory.velocity).sum((0, 1))
    return total, turning


@pytest.mark.parametrize(
    ("integrator", "step", "tolerance", "turning"),
    [(RK4(), 5e-4, 1e-9, 1e-11), (SemiImplicitEuler(), 1e-4, 1e-3, 1e-6)],  # Euler turns bodies to first order only
)
def test_cables_keep_momentum_and_energy(integrator, step, tolerance, turning):
    system, state = pendulum_lift()
    run = simulate(system, Constant({}), None, state, duration=1.0, step=step, integrator=integrator, save_every=round(0.1 / step))
    p, L = jax.vmap(lambda s: momentum(system, s))(run.state)
    # Weight and lift balance in total, so linear momentum stays; about the world's z axis nothing turns the system.
    np.testing.assert_allclose(p, np.broadcast_to(p[0], p.shape), atol=1e-11)
    np.testing.assert_allclose(L[:, 2], float(L[0, 2]), atol=turning)
    energy = jax.vmap(lambda s: system.energy(0.0, s, system.prepare()))(run.state)
    drift = np.asarray(energy - run.state.memory["energy_ledger"].work - energy[0])
    assert np.abs(drift).max() < tolerance * float(run.state.memory["energy_ledger"].throughput[-1] + abs(energy[0]))


def test_damped_cables_lose_what_the_ledger_says():
    system, state = pendulum_lift(damping=5.0)
    run = simulate(system, Constant({}), None, state, duration=1.0, step=1e-3, save_every=100)
    energy = jax.vmap(lambda s: system.energy(0.0, s, system.prepare()))(run.state)
    np.testing.assert_allclose(energy - energy[0], run.state.memory["energy_ledger"].work, atol=1e-7)


def test_order_of_a_taut_system_is_four():
    system, state = pendulum_lift(damping=2.0)
    end = lambda h: simulate(system, Constant({}), None, state, duration=0.5, step=h, save_every=round(0.5 / h)).state.bodies.p_WB[-1]  # noqa: E731
    exact = end(2.5e-4)
    errors = [float(jnp.abs(end(h) - exact).max()) for h in (4e-3, 2e-3)]
    assert abs(np.log2(errors[0] / errors[1]) - 4) < 0.35


def thrown(keep_ledger=False, in_water=True):
    """Two bodies in free space, one with added mass and the tether at a corner of it; they fly apart until the tether jerks."""
    added, com = np.zeros((2, 6, 6)), [[0, 0, -0.05], [0, 0, 0]]
    added[0] = np.diag([0.5, 0.7, 3.0, 0.02, 0.05, 0.05])
    fluid = (com, added) if in_water else (None, None)
    bodies = Bodies.create(["hull", "craft"], [4.0, 1.0], [[0.05, 0.1, 0.12], [0.02, 0.02, 0.03]], *fluid)
    tether = Tether((0, 1), jnp.array([[0.3, 0.1, 0.0], [0.0, 0.0, 0.0]]), jnp.array(2.0))
    system = System(bodies, {}, {"tether": tether}, Environment(0.0), keep_ledger)
    state = system.initial_state(
        [[0, 0, 0], [1.2, 0.3, 1.0]], velocity=[[0, 0, 0], [1.5, 0.5, 2.0]], angular_velocity=[[0, 0.2, 0.1], [0, 0, 0]]
    )
    return system, state


@pytest.mark.parametrize(
    ("in_water", "tolerance"),
    [
        (False, 1e-9),  # linear momentum is linear in the state: Runge-Kutta keeps it to rounding, angular momentum nearly
        (True, 1e-4),  # the moment of an added mass during the step of the jerk is that before it
    ],
)
def test_re_tensioning_keeps_momentum_and_never_raises_energy(in_water, tolerance):
    system, state = thrown(True, in_water)
    run = simulate(system, Constant({}), None, state, duration=1.5, step=1e-3, save_every=10)
    p, L = jax.vmap(lambda s: momentum(system, s))(run.state)
    np.testing.assert_allclose(p, np.broadcast_to(p[0], p.shape), atol=1e-10)
    np.testing.assert_allclose(L, np.broadcast_to(L[0], L.shape), atol=tolerance)
    prepared = system.prepare()
    energy, gaps = jax.jit(
        jax.vmap(
            lambda s: (system.energy(0.0, s, prepared), system.constraints["tether"].rows(0.0, system.kinematics(s, prepared), None)[0].gap)
        )
    )(run.state)
    energy = np.asarray(energy)
    assert energy[-1] < 0.99 * energy[0]  # the jerk cost something
    assert np.diff(energy).max() < 1e-12
    np.testing.assert_allclose(energy - energy[0], run.state.memory["energy_ledger"].work, atol=2e-5)
    assert float(gaps.min()) > -1e-3  # the overshoot of the step that a turning hook did not take back


def test_the_jerk_itself_never_raises_kinetic_energy():
    system, state = thrown()
    prepared = system.prepare()
    tether = system.constraints["tether"]
    rng = np.random.default_rng(5)
    for _ in range(10):
        state = system.initial_state(
            [[0, 0, 0], rng.normal(size=3) * 3], rng.normal(size=(2, 4)), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
        )
        kin = system.kinematics(state, prepared)
        # A tether that has just become too short.
        reach = tether.length - tether.rows(0.0, kin, None)[0].gap
        system = eqx.tree_at(lambda s: s.constraints["tether"].length, system, reach * (1 - 1e-4))
        tether = system.constraints["tether"]
        before = prepared.kinetic_energy(kin.v_B, kin.w_B)
        after_state = system.post_step(0.0, state, prepared)
        kin = system.kinematics(after_state, prepared)
        assert float(prepared.kinetic_energy(kin.v_B, kin.w_B)) <= float(before) * (1 + 1e-12)
        (row,) = tether.rows(0.0, kin, None)
        assert not bool(row.active) or float(row.rate) > -1e-12


def test_tension_of_a_hanging_weight_and_none_when_slack():
    bodies = Bodies.create(["roof", "weight"], [1e9, 3.0], [[1e9] * 3, [0.1] * 3])
    tether = Tether((0, 1), jnp.zeros((2, 3)), jnp.array(2.0))
    hold = Push((0,), jnp.array([[0.0, 0, 1e9 * G]]), jnp.zeros((1, 3)), jnp.zeros((1, 3)))
    system = System(bodies, {"gravity": Gravity(), "hold": hold}, {"tether": tether}, Environment(G))
    prepared = system.prepare()
    taut = system.initial_state([[0, 0, 0], [0, 0, -2.0]])
    np.testing.assert_allclose(system.tensions(0.0, taut, {}, prepared)["tether"], [3.0 * G], rtol=1e-7)
    slack = system.initial_state([[0, 0, 0], [0, 0, -1.9]])
    assert float(system.tensions(0.0, slack, {}, prepared)["tether"][0]) == 0.0
    # Above the roof at full length under its own weight, the weight falls freely: a tether never pushes.
    above = system.initial_state([[0, 0, 0], [0, 0, 2.0]])
    assert float(system.tensions(0.0, above, {}, prepared)["tether"][0]) == 0.0


def test_heave_period_of_a_floating_box_with_added_mass():
    """2 pi sqrt((m + a33) / (rho g A)), closed form."""
    x, y = np.meshgrid((np.arange(4) - 1.5) * 0.2, (np.arange(4) - 1.5) * 0.0625)
    base = np.stack([x.ravel(), y.ravel(), np.full(16, -0.125)], -1)
    added = np.zeros((1, 6, 6))
    added[0] = np.diag([0.6, 0.6, 12.5, 0.6, 0.6, 1.2])
    bodies = Bodies.create(["hull"], [12.5], [[0.13, 0.73, 0.73]], [[0, 0, -0.06]], added)
    system = System(
        bodies, {"gravity": Gravity(), "water": Columns(0, jnp.asarray(base), 0.8 * 0.25 / 16, 0.25)}, environment=Environment(G)
    )
    rest = 0.125 - 12.5 / (1000 * 0.2)
    run = simulate(system, Constant({}), None, system.initial_state([[0, 0, rest + 0.02]]), duration=5.0, step=1e-3)
    z = np.asarray(run.state.bodies.p_WB[:, 0, 2]) - rest
    crossings = np.asarray(run.time)[:-1][(z[:-1] > 0) & (z[1:] <= 0)]
    np.testing.assert_allclose(np.diff(crossings).mean(), 2 * np.pi * np.sqrt(25.0 / (1000 * 9.81 * 0.2)), rtol=2e-3)


def test_everything_at_once_differentiates():
    """Cables, tether, water and added mass in one system: derivatives by parameters are finite, and right where no impact happens."""
    lift_system, lift_state = pendulum_lift(damping=1.0)

    def end(system, stiffness):
        changed = eqx.tree_at(lambda s: s.elements["cables"].stiffness, system, stiffness)
        run = simulate(changed, Constant({}), None, lift_state, duration=0.3, step=1e-3, save_every=300)
        return jnp.sum(run.state.bodies.p_WB[-1, 0] ** 2)

    k, h = 800.0, 0.1
    exact = jax.jacfwd(lambda k: end(lift_system, k))(k)
    numeric = (end(lift_system, jnp.array(k + h)) - end(lift_system, jnp.array(k - h))) / (2 * h)
    np.testing.assert_allclose(exact, numeric, rtol=1e-6)

    system, state = thrown()

    def after_impact(length):
        changed = eqx.tree_at(lambda s: s.constraints["tether"].length, system, length)
        return simulate(changed, Constant({}), None, state, duration=0.4, step=1e-3, save_every=400).state.bodies.p_WB[-1].sum()

    assert np.isfinite(jax.jacfwd(after_impact)(2.0))
