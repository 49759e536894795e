"""The linearly implicit method: the same step by a dense solve, its order, and the cables of arXiv 2305.09175 at ten times RK4's step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.spatial.transform import Rotation

from skycrane.core.bodies import Bodies, SecondOrder
from skycrane.core.chain import WORLD
from skycrane.core.system import System
from skycrane.elements.cables import Cables, Winch
from skycrane.elements.gravity import Gravity
from skycrane.loads.rope import Rope
from skycrane.simulation.chain_solve import Factors, solved, stiff_rate
from skycrane.simulation.implicit import GAMMA, LinearlyImplicit, LinearlyImplicit3
from skycrane.simulation.integrators import RK4
from tests.cable_models import advance, hung, jit_once, lift, lift_start, measured

H = 2e-3
RNG = np.random.default_rng(5)  # every test seeds it again


def normal(*shape):
    return jnp.asarray(RNG.normal(size=shape))


def uniform(low, high, *shape):
    return jnp.asarray(RNG.uniform(low, high, shape))


def random_cables(upper, lower, m, offsets=True):
    k = len(upper)
    ends = [normal(k, 3) * float(offsets) for _ in range(2)]
    numbers = uniform(5e3, 2e4, m, k), uniform(5, 20, m, k), uniform(0.05, 0.2, m, k)
    return Cables(upper, lower, *ends, *numbers, uniform(0.01, 0.05, m - 1, k), normal(m - 1, k, 3), jnp.ones((m, k)))


def random_system(count, cables, principal=False):
    a = RNG.normal(size=(count, 3, 3))
    inertia = uniform(0.5, 1, count, 3) if principal else a @ a.swapaxes(1, 2) + np.eye(3)
    com = None if principal else 0.1 * normal(count, 3)
    bodies = Bodies.create([f"b{i}" for i in range(count)], uniform(0.5, 2, count), inertia, com)
    system = System(bodies, {"gravity": Gravity(), **cables})
    memory = {n: {"nodes": SecondOrder(c.nodes, normal(*c.nodes.shape))} for n, c in cables.items()}
    return system, system.initial_state(normal(count, 3), normal(count, 4), normal(count, 3), normal(count, 3), memory)


SYSTEMS = {
    # Vehicles on one cable each, a load on all.
    "lift": lambda: random_system(4, {"cables": random_cables((0, 1, 3), (2, 2, 2), 3)}, principal=True),
    # A body with two cables, two loads with a cable between them, ends in the world at the top and at the bottom, one segment.
    "net": lambda: random_system(4, {
        "three": random_cables((0, 0, 3, WORLD), (1, 2, 1, 2), 3),
        "one": random_cables((1, 2), (2, WORLD), 1),
    }),
    # No body where cables meet.
    "tether": lambda: random_system(1, {"cables": random_cables((0,), (WORLD,), 4)}),
}  # fmt: skip


def dense_step(system, state, h):
    """ROS2 with ``(I - gamma h A) k = f`` solved as one matrix in numpy; A of the springs, dampers and the motion of their ends."""
    prepared = system.prepare()
    eye = jnp.eye(3)
    along = lambda c, size: size[..., None, None] * c.direction.array()[..., None] * c.direction.array()[..., None, :]  # noqa: E731
    f = jit_once(lambda s: system.dynamics(0.0, s, {}, prepared))

    @jit_once
    def segment_matrices(s):
        kin = system.kinematics(s, prepared)
        chains = {n: e.chains(0.0, kin, s.memory[n], h) for n, e in system.elements.items()}
        return {
            n: (along(c, c.stiffness - c.swing) + eye * c.swing[..., None, None], along(c, c.damping))
            for n, c in chains.items()
            if c is not None
        }

    matrices = segment_matrices(state)
    nb, b = system.bodies.count, state.bodies
    R = Rotation.from_quat(np.asarray(b.q_WB), scalar_first=True).as_matrix()
    T = np.zeros((6 * nb, 6 * nb))  # from body axes to the mixed axes of (v_W, w_B)
    mass = np.zeros((6 * nb, 6 * nb))
    for i, own in enumerate(np.asarray(system.bodies.matrix())):
        at = slice(6 * i, 6 * i + 6)
        T[at, at] = np.block([[R[i], np.zeros((3, 3))], [np.zeros((3, 3)), np.eye(3)]])
        mass[at, at] = T[at, at] @ own @ T[at, at].T
    where, size = {}, 6 * nb
    for name in matrices:
        m, k = system.elements[name].length.shape
        where[name] = size
        size += 3 * (m - 1) * k
    M, K, C = (np.zeros((size, size)) for _ in range(3))
    M[: 6 * nb, : 6 * nb] = mass
    skew = lambda v: np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])  # noqa: E731
    for name, (stiffness, damping) in matrices.items():
        c = system.elements[name]
        m, k = c.length.shape
        for i in range(k):
            G = np.zeros((3 * (m + 1), size))  # velocities of the ends and nodes
            for row, body, point in ((0, c.upper[i], c.upper_B[i]), (m, c.lower[i], c.lower_B[i])):
                if body != WORLD:
                    G[3 * row : 3 * row + 3, 6 * body : 6 * body + 6] = np.hstack([np.eye(3), -R[body] @ skew(point)])
            for j in range(1, m):
                at = where[name] + 3 * ((j - 1) * k + i)
                G[3 * j : 3 * j + 3, at : at + 3] = np.eye(3)
                M[at : at + 3, at : at + 3] = np.eye(3) * float(c.node_mass[j - 1, i])
            for j in range(m):
                D = G[3 * j + 3 : 3 * j + 6] - G[3 * j : 3 * j + 3]
                K += D.T @ np.asarray(stiffness)[j, i] @ D
                C += D.T @ np.asarray(damping)[j, i] @ D
    gh = GAMMA * h

    def apart(rate):
        """A state's rate as position and velocity vectors, attitude as a twist."""
        q = Rotation.from_quat(np.asarray(b.q_WB), scalar_first=True)
        w = 2 * quat_product(q.inv().as_quat(scalar_first=True), np.asarray(rate.bodies.q_WB))[:, 1:]
        nodes = [np.asarray(x).reshape(-1) for n in matrices for x in [rate.memory[n]["nodes"].position]]
        moving = [np.asarray(x).reshape(-1) for n in matrices for x in [rate.memory[n]["nodes"].velocity]]
        both = lambda v, w: np.hstack([np.asarray(v), np.asarray(w)]).reshape(-1)  # noqa: E731
        return np.concatenate([both(rate.bodies.p_WB, w), *nodes]), np.concatenate([both(rate.bodies.v_W, rate.bodies.w_B), *moving])

    def together(like, r_q, k_q, k_v):
        bodies_q, bodies_v = k_q[: 6 * nb].reshape(nb, 6), k_v[: 6 * nb].reshape(nb, 6)
        turned = 0.5 * quat_product(np.asarray(b.q_WB), np.hstack([np.zeros((nb, 1)), bodies_v[:, 3:]]))
        rate = jax.tree.map(np.asarray, like)
        new = type(rate.bodies)(bodies_q[:, :3], rate.bodies.q_WB + gh * turned, bodies_v[:, :3], bodies_v[:, 3:])
        memory = dict(rate.memory)
        for n in matrices:
            shape = rate.memory[n]["nodes"].position.shape
            part = slice(where[n], where[n] + int(np.prod(shape)))
            memory[n] = {"nodes": SecondOrder(k_q[part].reshape(shape), k_v[part].reshape(shape))}
        return type(rate)(new, memory)

    def solved(rate):
        r_q, r_v = apart(rate)
        k_v = np.linalg.solve(M + gh * C + gh**2 * K, M @ r_v - gh * K @ r_q)
        return together(rate, r_q, r_q + gh * k_v, k_v)

    axpy = lambda a, x, y: jax.tree.map(lambda u, v: np.asarray(v + a * u), x, y)  # noqa: E731
    k1 = solved(f(state))
    k2 = solved(axpy(-2.0, k1, f(axpy(h, k1, state))))
    return axpy(1.5 * h, k1, axpy(0.5 * h, k2, state))


def quat_product(p, q):
    w = p[:, :1] * q[:, :1] - (p[:, 1:] * q[:, 1:]).sum(-1, keepdims=True)
    return np.hstack([w, p[:, :1] * q[:, 1:] + q[:, :1] * p[:, 1:] + np.cross(p[:, 1:], q[:, 1:])])


def test_the_solution_meets_its_equation_and_so_does_its_derivative():
    """``k - gamma h A k = rate`` on chains of every kind at once, and derivatives by all numbers of the system against differences."""
    RNG.bit_generator.state = np.random.default_rng(8).bit_generator.state
    system, state = SYSTEMS["net"]()
    numbers, fixed = eqx.partition((system, state), eqx.is_inexact_array)
    flat, unravel = ravel_pytree(numbers)
    # Numbers that are zero stay what they are, inertias symmetric, and cables whole (one that is not has a corner there).
    along = jnp.asarray(RNG.normal(size=flat.shape)) * jnp.abs(flat)
    inertia = lambda numbers: numbers[0].bodies.inertia_B  # noqa: E731
    whole = lambda numbers: [numbers[0].elements[n].intact for n in ("one", "three")]  # noqa: E731
    along = eqx.tree_at(whole, unravel(along), [jnp.zeros_like(x) for x in whole(numbers)])
    along = ravel_pytree(eqx.tree_at(inertia, along, 0.3 * inertia(numbers)))[0]
    flat, along = jnp.append(flat, GAMMA * H), jnp.append(along, 0.5 * GAMMA * H)

    def problem(flat):
        (system, state), gh = eqx.combine(unravel(flat[:-1]), fixed), flat[-1]
        prepared = system.prepare()
        kin = system.kinematics(state, prepared)
        chains = {n: c for n, e in system.elements.items() if (c := e.chains(0.0, kin, state.memory[n], H)) is not None}
        rate = system.dynamics(0.0, state, {}, prepared)
        return rate, chains, kin, gh, solved(rate, chains, kin, Factors.of(chains, kin, gh), gh)

    @jit_once
    def residual(flat):
        rate, chains, kin, gh, k = problem(flat)
        return ravel_pytree(jax.tree.map(lambda k, a, r: k - a - r, k, stiff_rate(k, chains, kin, gh), rate))[0], ravel_pytree(k)[0]

    left, k = residual(flat)
    assert np.abs(left).max() < 1e-9 * np.abs(k).max()

    solution = lambda flat: ravel_pytree(problem(flat)[-1])[0]  # noqa: E731
    value = jit_once(solution)
    weights = jnp.asarray(RNG.normal(size=k.shape)) / (1.0 + jnp.abs(k))
    h = 1e-7
    by_difference = weights @ (value(flat + h * along) - value(flat - h * along)) / (2 * h)
    backward = jit_once(jax.grad(lambda flat: weights @ solution(flat)))(flat)
    assert float(backward @ along) == pytest.approx(float(by_difference), rel=1e-5)


def test_segment_matrices_are_the_derivatives_of_the_forces():
    """Of random taut segments: what the element calls stiff is all of its forces' Jacobian by its nodes."""
    RNG.bit_generator.state = np.random.default_rng(6).bit_generator.state
    system, state = random_system(1, {"cables": random_cables((0,), (WORLD,), 3)})
    prepared, cables = system.prepare(), system.elements["cables"]
    nodes = state.memory["cables"]["nodes"]
    slow = SecondOrder(nodes.position, 1e-9 * nodes.velocity)  # so that no damper force turns with its segment

    @jit_once
    def derivatives(nodes):
        def force(position, velocity):
            memory = {"cables": {"nodes": SecondOrder(position, velocity)}}
            still = system.initial_state(state.bodies.p_WB, state.bodies.q_WB, memory=memory)
            return cables.node_mass[..., None] * system.dynamics(0.0, still, {}, prepared).memory["cables"]["nodes"].velocity

        still = system.initial_state(state.bodies.p_WB, state.bodies.q_WB, memory={"cables": {"nodes": nodes}})
        chains = cables.chains(0.0, system.kinematics(still, prepared), still.memory["cables"], H)
        return jax.jacfwd(force, (0, 1))(nodes.position, nodes.velocity), chains[5:9]

    (by_place, by_speed), (e, stiffness, swing, damping) = derivatives(slow)
    e = np.asarray(e.array())[:, 0]
    outer = e[:, :, None] * e[:, None]
    K = np.asarray(stiffness - swing)[..., None] * outer + np.asarray(swing)[..., None] * np.eye(3)
    C = np.asarray(damping)[..., None] * outer
    for found, S in ((by_place, K), (by_speed, C)):
        expected = -np.block([[S[0] + S[1], -S[1]], [-S[1], S[1] + S[2]]])
        np.testing.assert_allclose(np.asarray(found).reshape(6, 6), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", SYSTEMS)
def test_one_step_equals_a_dense_solve(name):
    RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state
    system, state = SYSTEMS[name]()
    step = jit_once(lambda s: LinearlyImplicit().step(system, 0.0, s, {}, system.prepare(), H))
    expected = dense_step(system, state, H)
    for a, b in zip(jax.tree.leaves(step(state)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.fixture(scope="module")
def swinging():
    """arXiv 2305.09175's lift with the load swinging, and the truth every 0.5 s for 20 s: RK4 at a twentieth of the step."""
    system = lift()
    start = lift_start(system)
    states, state = [start], start
    for _ in range(40):
        state = advance(RK4(), system, state, 1e-4, 5000)
        states.append(state)
    return system, states


def errors(integrator, system, truth, h, each):
    """Largest error of the last body's place [m] and of a tension, over the mean tension, at the saved times."""
    state, place, tension = truth[0], [], []
    for true in truth[1:]:
        state = advance(integrator, system, state, h, round(each / h))
        place.append(float(jnp.linalg.norm(state.bodies.p_WB[-1] - true.bodies.p_WB[-1])))
        a, b = (np.asarray(measured(system, s)["tension"]) for s in (state, true))
        tension.append(np.abs(a - b).max() / b.mean())
    return max(place), max(tension)


@pytest.mark.parametrize(("integrator", "metres", "share"), [(LinearlyImplicit(), 5e-5, 0.01), (LinearlyImplicit3(), 1e-5, 1e-3)])
def test_the_seeds_cables_at_2_ms(swinging, integrator, metres, share):
    """20 s of swinging, with waves across the cables that nothing damps; RK4 needs less than 0.46 ms there."""
    system, truth = swinging
    place, tension = errors(integrator, system, truth, 2e-3, 0.5)
    assert place < metres
    assert tension < share
    # The order, where all cables are taut throughout.
    found = np.array([errors(integrator, system, truth[:5], h, 0.5)[0] for h in (4e-3, 2e-3, 1e-3)])
    assert (np.log2(found[:-1] / found[1:]) > integrator.order - 0.4).all()


def hundred(duration, parts):
    """A ball on a cable of 100 segments, 100 times as stiff as the seed's, drawn aside, and the truth by RK4."""
    L, EA = 2.5, 100 * 2e4 * 0.5
    rope = Rope(L, EA, 0.05 * np.sqrt(EA * 100 / L * 0.05 / 100), 0.05 / L, segments=100)
    points = np.linspace([0.0, 0, 0], [0.3, 0.0, -np.sqrt(L**2 - 0.09)], 101) * (1 + 10.0 / EA)
    system = hung(points, 1.0, stiffness=rope.segment_stiffness, damping=rope.damping, length=L / 100, node_mass=rope.segment_mass)
    state = system.initial_state([points[-1]])
    steps = int(np.ceil(duration / parts / (2.0 / system.rate_bound(system.prepare()))))
    truth = [state]
    for _ in range(parts):
        state = advance(RK4(), system, state, duration / parts / steps, steps)
        truth.append(state)
    return system, truth


def test_a_hundred_stiff_segments_at_1_ms():
    system, truth = hundred(0.4, 4)
    place, tension = errors(LinearlyImplicit(), system, truth, 1e-3, 0.1)
    assert place < 1e-4
    assert tension < 0.01


@pytest.mark.slow
def test_a_hundred_stiff_segments_at_1_ms_for_20_s():
    system, truth = hundred(20.0, 40)
    place, tension = errors(LinearlyImplicit3(), system, truth, 1e-3, 0.5)
    assert place < 1e-4
    assert tension < 5e-3


@pytest.mark.parametrize("integrator", [LinearlyImplicit(), LinearlyImplicit3()])
def test_a_cable_that_is_reeled_in_slackens_and_tightens_at_2_ms(integrator):
    """A winch jerks a ball up so that it flies freely and is caught again: segments close within a step because they are reeled in."""
    rope = Rope.of_material(2.0, 0.004, 970.0, 1e9, segments=8)
    k, mass = float(rope.segment_stiffness), float(rope.segment_mass)
    lengths = 0.25 + 9.81 * (1.0 + mass * np.arange(7, -1, -1)) / k
    points = np.outer(np.concatenate([[0.0], np.cumsum(lengths)]), [0.0, 0.0, -1.0])
    winch = Winch(jnp.array([0.1]), jnp.array([0.5]), jnp.array([1.8]))
    cable = {"stiffness": k, "damping": rope.damping, "length": 0.25, "node_mass": mass, "winch": winch}
    system = hung(points, **cable)
    truth = found = system.initial_state([points[-1]], velocity=[[0.2, 0.0, 0.0]])
    slack = False
    for _ in range(10):
        truth = advance(RK4(), system, truth, 1e-4, 200)
        found = advance(integrator, system, found, 2e-3, 10)
        slack |= float(measured(system, truth)["tension"].max()) == 0.0
        np.testing.assert_allclose(found.bodies.p_WB, truth.bodies.p_WB, atol=4e-4)
    assert slack
    assert truth.bodies.p_WB[0, 2] > points[-1, 2] + 0.05
