"""Closed loops: recovery, steps, tracking, symmetry, derivatives.  Bounds are a little above what was measured when they were written."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skycrane.control.model import VehicleModel, default_gains
from skycrane.control.pose import FullPoseControl, GeometricControl
from skycrane.control.references import Circle, FigureEight, Hover
from skycrane.core.bodies import BodyState
from skycrane.core.controller import AbstractReference, Measurement, Target
from skycrane.math import rotation
from skycrane.simulation.rollout import simulate
from skycrane.vehicles.multirotor import Multirotor, system_for
from tests.control.fleet import (
    CANTED,
    CRAZYFLIE,
    HEPTA,
    HEXA,
    OCTO,
    QUADS,
    TUTORIAL,
    X500,
    about_x,
    distance,
    fly,
    rms,
    without_lag,
)  # fmt: skip

FLEETS = {"quads": QUADS, "hexas": [HEXA, CANTED], "octo": [OCTO]}


@pytest.fixture(scope="module", params=FLEETS)
def fleet(request):
    """System of some vehicles of equal rotor count, and one geometric controller for all of them."""
    vehicles = FLEETS[request.param]
    system = system_for(vehicles)
    return system, GeometricControl.of(vehicles), Hover.create(np.zeros((len(vehicles), 3)))


def test_a_step_settles_with_less_than_half_a_percent_of_overshoot(fleet):
    system, controller, hover = fleet
    run = fly(system, controller, hover, position=[[1.0, 0.0, 0.5]])
    p = np.asarray(run.state.bodies.p_WB)
    assert run.status_name == "finished"
    assert np.all(p[..., 0].min(0) > -0.005)
    assert np.all(p[..., 2].min(0) > -0.0025)
    assert np.all(distance(run, hover, 5.9) < 0.01)


@pytest.mark.parametrize(("tilt", "most"), [(60.0, 1.7), (170.0, 36.0)])
def test_recovery_from_any_tilt(fleet, tilt, most):
    system, controller, hover = fleet
    run = fly(system, controller, hover, duration=8.0, attitude=about_x(tilt))
    assert run.status_name == "finished"
    assert np.all(distance(run, hover).max(0) < most)
    # At the end every vehicle is upright again and on its way back or there.
    R = rotation.to_matrix(run.final.state.bodies.q_WB)
    assert np.all(np.asarray(R)[:, 2, 2] > 0.9)
    if tilt == 60.0:
        assert np.all(distance(run, hover, 5.9) < 0.02)


def test_a_figure_of_eight_is_followed(fleet):
    system, controller, _ = fleet
    reference = FigureEight.create(np.zeros((system.bodies.count, 3)), 6.0, 3.0, 8.0, ramp=2.0, heading="forward")
    start = reference(jnp.asarray(0.0))
    run = fly(system, controller, reference, duration=8.0, position=start.p_W, attitude=start.q_WB)
    # Motor lags of 0.025 s (x500, hexarotors), 0.04 s (octorotor), 0.05 s (tutorial) and 0.065 s (Crazyflie).
    slow = np.array([{0.025: 0.02, 0.04: 0.035, 0.05: 0.06, 0.0647: 0.12}[float(v)] for v in system.elements["rotors"].time_down[:, 0]])
    assert np.all(rms(run, reference) < slow)


def test_a_circle_is_followed_looking_ahead():
    system = system_for(QUADS)
    reference = Circle.create(np.zeros((3, 3)), 3.0, 5.0, ramp=2.0, heading="forward")
    start = reference(jnp.asarray(0.0))
    run = fly(system, GeometricControl.of(QUADS), reference, duration=8.0, position=start.p_W, attitude=start.q_WB)
    assert np.all(rms(run, reference, 6.0) < [0.01, 0.001, 0.012])
    # The nose points along the path, to the lean that the turn needs.
    wanted = jax.vmap(reference)(run.time)
    nose = np.asarray(rotation.to_matrix(run.state.bodies.q_WB))[..., 0]
    along = np.asarray(wanted.v_W) / np.linalg.norm(wanted.v_W, axis=-1, keepdims=True).clip(1e-9)
    assert np.all(np.sum(nose * along, -1)[np.asarray(run.time) > 6.0] > 0.98)


def test_full_pose_keeps_level_within_its_sideways_force_and_tilts_beyond_it():
    system, controller = system_for(CANTED), FullPoseControl.of(CANTED)
    hover = Hover.create([0.0, 0.0, 0.0])
    gentle = fly(system, controller, hover, position=[[0.1, -0.1, 0.05]])
    tilt = 1 - np.asarray(rotation.to_matrix(gentle.state.bodies.q_WB))[:, 0, 2, 2]
    assert tilt.max() < 1e-6
    assert np.all(distance(gentle, hover, 5.9) < 1e-4)
    large = fly(system, controller, hover, position=[[3.0, 0.0, 0.0]])
    assert np.asarray(large.state.bodies.p_WB)[:, 0, 0].min() > -0.01
    assert np.all(distance(large, hover, 5.9) < 1e-3)
    tilt = np.arccos(np.asarray(rotation.to_matrix(large.state.bodies.q_WB))[:, 0, 2, 2])
    assert np.deg2rad(10) < tilt.max() < np.deg2rad(60)


def test_full_pose_of_a_flat_vehicle_is_geometric_control():
    system, hover = system_for(X500), Hover.create([0.0, 0.0, 0.0])
    runs = [fly(system, c.of(X500), hover, position=[[1.0, 0.5, 0.0]], duration=3.0) for c in (FullPoseControl, GeometricControl)]
    first, second = (np.asarray(r.state.bodies.p_WB) for r in runs)
    assert np.abs(first - second).max() < 0.02


class Tumble(AbstractReference):
    """Turn about a fixed axis in place."""

    axis: jax.Array
    rate: float

    def __call__(self, t):
        zero, w = jnp.zeros((1, 3)), self.rate * self.axis
        return Target(zero, zero, zero, rotation.exp(t * w)[None], w[None])


def test_an_omnidirectional_vehicle_turns_over_in_place():
    controller = FullPoseControl.of(HEPTA)
    assert controller.lateral_force is None
    reference = Tumble(jnp.array([0.6, 0.8, 0.0]), 1.2)
    start = reference(jnp.asarray(0.0))
    run = fly(system_for(HEPTA), controller, reference, duration=6.0, angular_velocity=start.w_B)
    assert run.status_name == "finished"
    # The thrust turns through the body at 1.2 rad/s, so it lags by the motors' time constant: g w tau over k_p, 0.1 m.
    assert distance(run, reference, 3.0).max() < 0.15
    wanted = jax.vmap(reference)(run.time).q_WB
    assert np.asarray(rotation.angle_between(run.state.bodies.q_WB, wanted))[np.asarray(run.time) > 3.0].max() < np.deg2rad(3)


@pytest.mark.parametrize("control", [GeometricControl, FullPoseControl])
def test_on_the_reference_the_command_gives_the_references_acceleration(control):
    # Independent of any loop: force and moment of the commanded speeds, by Newton and Euler about the centre of mass.
    vehicle = without_lag(CANTED)
    vehicle = eqx.tree_at(lambda v: v.com_B, vehicle, jnp.array([0.03, -0.02, 0.04])) if control is FullPoseControl else vehicle
    reference = Circle.create([0.0, 0.0, 1.0], 2.0, 8.0, yaw=0.3)  # within the sideways force that keeps the attitude
    t = jnp.asarray(0.7)
    target = reference(t)
    com_B = np.asarray(vehicle.com_B)
    R = Rotation.from_quat(np.roll(np.asarray(target.q_WB[0]), -1)).as_matrix()
    if control is GeometricControl:  # leaning as the acceleration needs, nose as wanted
        b3 = np.asarray(target.a_W[0]) + np.array([0, 0, 9.81])
        b3 /= np.linalg.norm(b3)
        b2 = np.cross(b3, R[:, 0])
        b2 /= np.linalg.norm(b2)
        R = np.stack([np.cross(b2, b3), b2, b3], 1)
    q_WB = np.roll(Rotation.from_matrix(R).as_quat(), 1)
    controller = control.of(vehicle)
    bodies = BodyState(target.p_W, jnp.asarray(q_WB)[None], target.v_W, target.w_B)
    command, _ = controller(t, Measurement(bodies, {}), reference, controller.init())
    thrust = np.asarray(vehicle.thrust_coefficient * command["rotors"][0] ** 2)
    force_W = R @ (np.asarray(vehicle.axis_B).T @ thrust)
    np.testing.assert_allclose(force_W / 2.8414 - [0, 0, 9.81], target.a_W[0], atol=1e-9)
    if control is FullPoseControl:
        arm = np.asarray(vehicle.position_B) - com_B
        drag = -np.asarray(vehicle.spin * vehicle.torque_coefficient)[:, None] * np.asarray(vehicle.axis_B)
        moment_B = np.sum(np.cross(arm, thrust[:, None] * np.asarray(vehicle.axis_B)), 0) + drag.T @ np.asarray(command["rotors"][0]) ** 2
        np.testing.assert_allclose(moment_B, 0.0, atol=1e-9)


def test_a_centre_of_mass_off_the_origin_is_flown_to_its_place():
    offset = eqx.tree_at(lambda v: v.com_B, X500, jnp.array([0.05, -0.03, 0.1]))
    hover = Hover.create([1.0, 2.0, 3.0], yaw=0.5)
    run = fly(system_for(offset), GeometricControl.of(offset), hover, position=[[1.5, 2.0, 3.0]])
    assert np.all(distance(run, hover, 5.9) < 1e-3)


def test_integrals_remove_what_a_wrong_model_leaves():
    heavy = eqx.tree_at(lambda v: (v.mass, v.com_B), X500, (X500.mass * 1.1, jnp.array([0.01, 0.005, 0.0])))
    hover = Hover.create([0.0, 0.0, 0.0])
    system, plain = system_for(heavy), GeometricControl.of(X500)
    gains = default_gains(X500)
    integral = eqx.tree_at(
        lambda g: (g.position_integral, g.attitude_integral), gains, (3.0 * jnp.ones((1, 3)), 60.0 * jnp.ones((1, 3))),
        is_leaf=lambda x: x is None,
    )  # fmt: skip
    left = distance(fly(system, plain, hover), hover, 5.9)[-1, 0]
    # Without integrals: 0.1 g / k_p below.
    assert left > 0.09 * 9.81 / 9.0
    run = fly(system, GeometricControl.of(X500, gains=integral), hover, duration=12.0)
    assert distance(run, hover, 11.9)[-1, 0] < 0.25 * left
    # Bounded while the demand cannot be met: fly to a place far away, and the integral asks for no more than its bound.
    far = fly(system, GeometricControl.of(X500, gains=integral), Hover.create([200.0, 0.0, 0.0]), duration=12.0)
    assert np.all(3.0 * np.abs(far.final.controller_memory.position_integral) <= 3.0 + 1e-9)


def test_a_slower_position_loop_still_flies():
    system, hover = system_for(X500), Hover.create([0.0, 0.0, 0.0])
    slow = GeometricControl.of(X500, outer_every=10)
    run = fly(system, slow, hover, position=[[1.0, 0.0, 0.5]])
    assert np.asarray(run.state.bodies.p_WB)[:, 0, 0].min() > -0.01
    assert np.all(distance(run, hover, 5.9) < 1e-3)


# -- symmetry: one command, no loop -------------------------------------------------------------------------------------------------------


@eqx.filter_jit
def command_of(controller, bodies, reference):
    return controller(jnp.asarray(0.4), Measurement(bodies, {}), reference, controller.init())[0]["rotors"]


def some_state(rng, tilt=0.5):
    q = Rotation.from_rotvec(tilt * rng.normal(size=3))
    return rng.normal(size=3), q, rng.normal(size=3), rng.normal(size=3)


def as_bodies(p, q, v, w):
    return BodyState(*(jnp.asarray(x)[None] for x in (p, np.roll(q.as_quat(), 1), v, w)))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(-3.0, 3.0))
def test_turning_the_scene_turns_nothing_else(seed, angle):
    rng = np.random.default_rng(seed)
    p, q, v, w = some_state(rng)
    turn = Rotation.from_rotvec([0, 0, angle])
    goal, controller = rng.normal(size=3), GeometricControl.of(OCTO)
    here = command_of(controller, as_bodies(p, q, v, w), Hover.create(goal, 0.3))
    there = command_of(controller, as_bodies(turn.apply(p), turn * q, turn.apply(v), w), Hover.create(turn.apply(goal), 0.3 + angle))
    np.testing.assert_allclose(here, there, rtol=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.permutations(range(8)))
def test_the_order_of_rotors_changes_the_order_of_commands(seed, order):
    order = np.array(order)
    shuffled = Multirotor(
        *(x[order] if x is not None and x.shape[:1] == (8,) else x for x in jax.tree.leaves(OCTO, is_leaf=lambda x: x is None))
    )
    rng = np.random.default_rng(seed)
    bodies, hover = as_bodies(*some_state(rng)), Hover.create(rng.normal(size=3))
    first = command_of(GeometricControl.of(OCTO), bodies, hover)
    np.testing.assert_allclose(np.asarray(first)[:, order], command_of(GeometricControl.of(shuffled), bodies, hover), rtol=1e-6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_a_mirrored_vehicle_in_a_mirrored_scene_does_the_same(seed):
    flip = jnp.array([1.0, -1.0, 1.0])
    mirrored = eqx.tree_at(
        lambda v: (v.position_B, v.axis_B, v.com_B, v.spin),
        OCTO,
        (OCTO.position_B * flip, OCTO.axis_B * flip, OCTO.com_B * flip, -OCTO.spin),
    )
    rng = np.random.default_rng(seed)
    p, q, v, w = some_state(rng)
    goal, flip = rng.normal(size=3), np.asarray(flip)
    opposite = Rotation.from_rotvec(-flip * q.as_rotvec())  # rotation vectors and rates are axial
    here = command_of(GeometricControl.of(OCTO), as_bodies(p, q, v, w), Hover.create(goal, 0.3))
    there = command_of(GeometricControl.of(mirrored), as_bodies(flip * p, opposite, flip * v, -flip * w), Hover.create(flip * goal, -0.3))
    np.testing.assert_allclose(here, there, rtol=1e-6)


# -- derivatives, batches, precision ------------------------------------------------------------------------------------------------------


def short(controller, vehicle, start):
    system = system_for(vehicle)
    state = system.initial_state(position=start, velocity=jnp.array([[0.3, -0.2, 0.1]]))
    run = simulate(system, controller, Hover.create([0.0, 0.0, 0.0]), state, duration=0.2, step=0.005)
    b = run.final.state.bodies
    return jnp.sum(b.p_WB * jnp.array([1.0, 2.0, 3.0])) + jnp.sum(b.w_B * 0.1) + jnp.sum(b.q_WB[:, 1:])


def test_derivatives_of_a_flight_by_gains_plant_and_start():
    controller, vehicle = GeometricControl.of(X500), X500

    def flight(gain_factor, mass_factor, arm_factor, start):
        c = eqx.tree_at(lambda c: c.gains, controller, jax.tree.map(lambda g: g * gain_factor, controller.gains))
        v = eqx.tree_at(lambda v: (v.mass, v.position_B), vehicle, (vehicle.mass * mass_factor, vehicle.position_B * arm_factor))
        return short(c, v, start)

    at = (*tuple(jnp.asarray(x) for x in (1.0, 1.05, 0.95)), jnp.array([[0.2, 0.1, -0.3]]))
    flight = jax.jit(flight)
    gradient = jax.jit(jax.grad(flight, (0, 1, 2, 3)))(*at)
    for k in range(3):
        ahead, behind = (flight(*(x + s * 1e-5 if i == k else x for i, x in enumerate(at))) for s in (1, -1))
        assert float(gradient[k]) == pytest.approx(float(ahead - behind) / 2e-5, rel=1e-6, abs=1e-8)
    for axis in np.eye(3):
        ahead, behind = (flight(*at[:3], at[3] + s * 1e-5 * axis) for s in (1, -1))
        assert float((gradient[3] @ axis)[0]) == pytest.approx(float(ahead - behind) / 2e-5, rel=1e-6, abs=1e-8)


def test_vmap_over_gains_equals_a_loop():
    controller = GeometricControl.of(TUTORIAL)
    start = jnp.array([[0.2, 0.1, -0.3]])

    def flight(factor):
        return short(eqx.tree_at(lambda c: c.gains, controller, jax.tree.map(lambda g: g * factor, controller.gains)), TUTORIAL, start)

    factors = jnp.linspace(0.5, 1.5, 5)
    np.testing.assert_allclose(jax.jit(jax.vmap(flight))(factors), [jax.jit(flight)(f) for f in factors], rtol=1e-10)


def test_single_precision_flies_as_double_does():
    system, controller, hover = system_for(X500), GeometricControl.of(X500), Hover.create([0.0, 0.0, 0.0])
    cast = lambda tree: jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, tree)  # noqa: E731
    double = fly(system, controller, hover, position=[[1.0, 0.0, 0.5]], duration=3.0)
    state = cast(system.initial_state(position=[[1.0, 0.0, 0.5]]))
    single = simulate(cast(system), cast(controller), cast(hover), state, duration=3.0, step=0.004, save_every=5)
    assert single.state.bodies.p_WB.dtype == jnp.float32
    np.testing.assert_allclose(single.state.bodies.p_WB, double.state.bodies.p_WB, atol=2e-4)


def test_the_model_refuses_shapes_that_do_not_fit():
    model = VehicleModel.of(X500)
    with pytest.raises(ValueError, match="a model of 2 vehicles"):
        VehicleModel((0, 1), "rotors", model.mass, None, model.inertia_B, model.allocation)


def test_default_gains_put_the_poles_where_they_say():
    for vehicle in QUADS:
        g = default_gains(vehicle)
        tau = float(max(vehicle.time_up[0], vehicle.time_down[0])) + 0.015
        poles = np.roots([tau, 1.0, float(g.rate[0, 0]), float(g.attitude[0, 0])])
        np.testing.assert_allclose(np.abs(poles), 1 / (2.6 * tau), rtol=1e-6)
        assert np.sort(-poles.real / np.abs(poles))[0] == pytest.approx(0.8, rel=1e-6)
    assert CRAZYFLIE.count == 4
