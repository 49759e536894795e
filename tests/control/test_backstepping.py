"""The end-effector controller: the regressor against the rigid-body equations of the core, and the fall of the Lyapunov function."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.control.backstepping import Backstepping, BacksteppingGains, Estimates
from skycrane.control.model import VehicleModel
from skycrane.control.redistribution import Shift
from skycrane.control.rigid_regressor import Inertial, Motion
from skycrane.control.tip_paths import AtTip, Sweep
from skycrane.core.bodies import Bodies, BodyState
from skycrane.core.kinematics import Kinematics
from skycrane.environment.environment import Environment
from skycrane.math.components import Quat, Vec3
from skycrane.vehicles.layout import Layout
from skycrane.vehicles.multirotor import Multirotor

RNG = np.random.default_rng(7)
TIP = jnp.array([[0.32, -0.17, -0.35]])
# The layout of the paper's problem in the catalogue, and a mass model with its centre of gravity off the origin.
ROWS = np.array([
    [-0.216, -0.104, -0.091, 0.27511, -0.82592, 0.49211], [0.064, 0.039, 0.331, -0.09200, 0.96623, -0.24071],
    [-0.060, 0.238, -0.141, -0.13870, 0.51611, 0.84522], [0.296, 0.163, -0.329, -0.55189, -0.36379, -0.75038],
    [0.212, -0.246, 0.156, -0.78989, -0.18080, 0.58599], [-0.064, 0.283, 0.201, 0.99851, 0.05410, 0.00760],
    [-0.506, -0.594, -0.062, 0.29885, -0.16592, -0.93977],
])  # fmt: skip
AXES = ROWS[:, 3:] / np.linalg.norm(ROWS[:, 3:], axis=1, keepdims=True)
K_F = 28.0 / 1837.83**2
CRAFT = Multirotor.create(
    1.9, [[0.1124, -0.0352, -0.0003], [-0.0352, 0.095, 0.0013], [-0.0003, 0.0013, 0.1277]], Layout(ROWS[:, :3], AXES, -np.ones(7)), K_F,
    0.0147 * K_F, speed_max=1837.83, com_B=(-0.0173, -0.0140, 0.0041),
)  # fmt: skip
MODEL = VehicleModel.of(CRAFT)
TRUE = Inertial.of(MODEL.mass, MODEL.com_B, MODEL.inertia_B)
GAINS = BacksteppingGains(jnp.full(3, 1.5), jnp.full(3, 3.0), jnp.full(3, 8.0), jnp.full(3, 0.8))
PATH = AtTip(
    Sweep(
        jnp.zeros((1, 3)), jnp.array([0.5]), jnp.array([0.52]), jnp.array([[0.5, 0.2, 0.3]]), jnp.array([[0.63, 0.52, 0.52]]),
        jnp.array([1.0]), jnp.array([1e9]),
    ),
    TIP,
)  # fmt: skip
PREPARED = Bodies.create(["uav"], MODEL.mass, MODEL.inertia_B, MODEL.com_B).prepare()
ENVIRONMENT = Environment()


def random_state():
    q = RNG.normal(size=(1, 4))
    return BodyState(
        *(jnp.asarray(v) for v in (RNG.normal(size=(1, 3)), q / np.linalg.norm(q), RNG.normal(size=(1, 3)), RNG.normal(size=(1, 3))))
    )


def vehicle_state(state):
    from skycrane.control.model import VehicleState

    return VehicleState(Vec3.of(state.p_WB), Vec3.of(state.v_W), Quat.of(state.q_WB).matrix(), Vec3.of(state.w_B))


def accelerations(state, force_B, moment_B):
    """From a wrench about B: v_W' and w_B', by the equations of motion of the core."""
    kin = Kinematics.of(state, PREPARED, ENVIRONMENT)
    weight = Vec3(0.0, 0.0, -1.0) * (MODEL.mass * MODEL.gravity)
    bias_f, bias_m = PREPARED.bias(kin.R_WB, kin.v_B, kin.w_B)
    pull = PREPARED.com_B.cross(kin.R_WB.T @ weight)
    return PREPARED.solve(kin.R_WB, kin.R_WB @ force_B + weight + bias_f, moment_B + pull + bias_m)


def test_the_regressor_is_the_equation_of_motion():
    """With a = nu and b = nu', Y theta is the wrench that causes nu'."""
    state = random_state()
    R, w = Quat.of(state.q_WB).matrix(), Vec3.of(state.w_B)
    force, moment = Vec3(*RNG.normal(size=(3, 1))), Vec3(*RNG.normal(size=(3, 1)))
    v_rate, w_rate = accelerations(state, force, moment)
    v_B = R.T @ Vec3.of(state.v_W)
    b_v = R.T @ v_rate - w.cross(v_B)
    got = Motion.of(w, v_B, w, b_v, w_rate, R.z * MODEL.gravity).times(TRUE)
    np.testing.assert_allclose(got[0].array(), force.array(), atol=1e-12)
    np.testing.assert_allclose(got[1].array(), moment.array(), atol=1e-12)


def test_the_transposed_regressor():
    motion = Motion.of(*(Vec3(*RNG.normal(size=(3, 1))) for _ in range(6)))
    z = Vec3(*RNG.normal(size=(3, 1))), Vec3(*RNG.normal(size=(3, 1)))
    _, pull_back = jax.vjp(motion.times, TRUE)
    for got, want in zip(jax.tree.leaves(motion.transposed(*z)), jax.tree.leaves(pull_back(z)[0]), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("euler", [False, True])
def test_the_lyapunov_function_falls_as_the_proof_says(euler):
    """V' along the true motion, by differentiating V itself, equals -e_p K_p e_p - e_R K_R e_R - z K z, with wrong estimates."""
    controller = Backstepping(MODEL, GAINS, TIP, TRUE, euler=euler)
    wrench = jnp.asarray(RNG.normal(size=(1, 6)))
    theta = jax.tree.map(lambda x: x * (1 + 0.2 * RNG.normal(size=x.shape)), TRUE)
    memory = Estimates(jnp.zeros(()), theta, jnp.asarray(RNG.normal(size=(1, 6))), jnp.zeros(1))
    g, zero = GAINS, (Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))

    def lyapunov(t, state, memory):
        e = controller.errors(t, vehicle_state(state), PATH, memory)
        if euler:
            first = 0.5 * e.attitude.dot(e.attitude)
        else:
            Q = Quat.of(PATH(t).q_WB).matrix().T @ Quat.of(state.q_WB).matrix()
            first = 0.5 * (3.0 - Q.x.x - Q.y.y - Q.z.z)
        linear, angular = PREPARED.momentum_B(e.z_v, e.z_w)
        wrong = jax.tree.map(jnp.subtract, memory.theta, TRUE)
        off = memory.wrench - wrench
        learned = (wrong.mass**2 / g.mass).sum() + (wrong.moment**2 / g.moment).sum() + (wrong.inertia**2 / g.inertia).sum()
        learned += (off[:, :3] ** 2 / g.force).sum() + (off[:, 3:] ** 2 / g.torque).sum()
        return (0.5 * e.position.dot(e.position) + first + 0.5 * (e.z_v.dot(linear) + e.z_w.dot(angular))).sum() + 0.5 * learned

    @jax.jit
    def both(t, state, memory):
        s = vehicle_state(state)
        force, moment, theta_rate, wrench_rate = controller.law(t, s, PATH, memory, zero, jnp.zeros(1))
        outside, r = s.R_WB.T @ Vec3.of(wrench[:, :3]), Vec3.of(TIP)
        given = force + outside, moment + r.cross(outside) + s.R_WB.T @ Vec3.of(wrench[:, 3:])
        v_rate, w_rate = accelerations(state, *given)
        state_rate = BodyState(state.v_W, Quat.of(state.q_WB).rate(s.w_B).array(), v_rate.array(), w_rate.array())
        memory_rate = eqx.tree_at(lambda m: (m.theta, m.wrench), jax.tree.map(jnp.zeros_like, memory), (theta_rate, wrench_rate))
        slope = jax.jvp(lyapunov, (t, state, memory), (jnp.ones(()), state_rate, memory_rate))[1]
        e = controller.errors(t, s, PATH, memory)
        pairs = ((g.position, e.position), (g.attitude, e.attitude), (g.velocity, e.z_v), (g.rate, e.z_w))
        return slope, -sum((gain * v.array() ** 2).sum() for gain, v in pairs)

    for t in (0.7, 3.3, 11.0):
        slope, wanted = both(jnp.asarray(t), random_state(), memory)
        assert wanted < -1
        np.testing.assert_allclose(slope, wanted, rtol=1e-9)


def test_redistribution_of_a_weight_in_any_attitude():
    """Exact wrenches, no negative thrust; the rule of the paper asks for up to 41 N, the smallest shift for 17.5 N."""
    centered = eqx.tree_at(lambda c: c.com_B, CRAFT, jnp.zeros(3))
    allocation = VehicleModel.of(centered).allocation
    free = eqx.tree_at(lambda a: a.thrust_max, allocation, 1e3 * jnp.ones_like(allocation.thrust_max))
    u = RNG.normal(size=(2000, 3))
    weight = jnp.asarray(1.9 * 9.81 * u / np.linalg.norm(u, axis=1, keepdims=True))
    largest = {}
    for rule in ("minimal_shift", "rule_17"):
        shift = Shift.of(free, rule)
        speed, blocked = jax.vmap(lambda w, shift=shift: shift(Vec3.of(w[None]), Vec3(*jnp.zeros((3, 1)))))(weight)
        thrust = np.asarray(K_F * speed[:, 0] ** 2)
        assert rule == "rule_17" or not blocked.any()  # the rule leaves thrusts of exactly 0, rounded to either side
        assert thrust.min() >= 0
        have = thrust @ np.asarray(allocation.effectiveness[0]).T
        np.testing.assert_allclose(have[:, :3], weight, atol=2e-2)  # the printed directions balance to 1e-4
        largest[rule] = thrust.max()
    assert 16 < largest["minimal_shift"] < 18
    assert 36 < largest["rule_17"] < 43


def test_layouts_that_cannot_shift_are_refused():
    flat = Multirotor.create(
        1.0, (0.01, 0.01, 0.02), Layout(ROWS[:, :3], np.tile([0.0, 0, 1], (7, 1)), -np.ones(7)), K_F, 1e-7, speed_max=1e3
    )
    with pytest.raises(ValueError, match="cancel"):
        Shift.of(VehicleModel.of(flat).allocation)
