"""Rotor downwash: momentum of the jet, what plates and solids take of it, frames, derivatives, vehicles below others."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.spatial.transform import Rotation

from skycrane.core.bodies import Bodies
from skycrane.core.system import System
from skycrane.elements.downwash import Downwash, Screens, Slabs
from skycrane.elements.drag import Drag
from skycrane.elements.rotor_jets import Jet
from skycrane.elements.rotors import Rotors
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.environment.jets import Jets
from skycrane.math.components import Vec3
from skycrane.scenario import ScenarioError, load, loads
from skycrane.scenario.build import build
from skycrane.scenario.downwash import is_active, thrust_shares
from tests.cable_models import jit_once

RADIUS, THRUST = 0.15, 3.0
RATES = jit_once(lambda system, state, command: system.dynamics(0.0, state, command, system.prepare()))
PUSHES = jit_once(lambda system, state, command: system.wrenches(0.0, state, command, system.prepare()))
NO_RADIUS = """
schema_version = "1"
name = "blown"
[environment]
downwash = "on"
[vehicle]
mass = 1.0
inertia = [0.01, 0.01, 0.02]
[vehicle.layout]
kind = "ring"
rotors = 4
arm = 0.2
[vehicle.rotor]
thrust_coefficient = 1e-5
torque_coefficient = 1e-7
speed_max = 900.0
"""
COMMAND = {"rotors": jnp.full((1, 2), 500.0)}


def jet(z_axis=(0.0, 0.0, -1.0)):
    one = lambda v: Vec3(*(jnp.array([x]) for x in v))  # noqa: E731
    return Jets((0,), (), one((0.0, 0.0, 0.0)), one(z_axis), jnp.array([THRUST]), jnp.array([RADIUS]), 1.2)


def slabs(half, body=1):
    eye = np.eye(3)
    rows = [jnp.asarray(np.roll(eye, -k, 0)) for k in range(3)]
    return Slabs((body,) * 3, jnp.zeros((3, 3)), *rows, jnp.asarray([np.roll(half, -i) for i in range(3)], dtype=float))


def above(half, **environment):
    """Two rotors of 2.5 N on a vehicle, and a box."""
    bodies = Bodies.create(["uav", "box"], [0.5, 2.0], np.full((2, 3), 0.1))
    rotors = Rotors.create((0,), [[0.2, 0, 0], [-0.2, 0, 0]], [0, 0, 1.0], [1, -1], 1e-5, 0.0, jet=Jet(jnp.asarray(RADIUS), (1,)))
    elements = {"rotors": rotors, "downwash": Downwash((1,), slabs(half))}
    return System(bodies, elements, environment=Environment(9.81, **environment))


@pytest.mark.parametrize("distance", [0.15, 0.6, 6.0])
def test_the_jet_carries_the_thrust(distance):
    """Its momentum flux through a wide level plane, by a sum over a grid, at every distance; and far below, Albertson's velocity."""
    side = np.linspace(-4, 4, 801)
    x, y = np.meshgrid(side, side)
    points = Vec3(*(jnp.asarray(a.reshape(-1, 1)) for a in (x, y, np.full_like(x, -distance))))
    flux = np.asarray(jet().flux(points))
    np.testing.assert_allclose(flux.sum() * (side[1] - side[0]) ** 2, THRUST, rtol=1e-6)
    v = np.asarray(jet().velocity_W(Vec3(*(jnp.asarray([a]) for a in (0.0, 0.0, -distance))), (1,)).z)
    if distance == 6.0:
        # 6.2 (D / x) U_0 in the middle, D and U_0 those of the contracted wake: R sqrt 2 and twice the induced velocity.
        wake = 2 * np.sqrt(THRUST / (2 * 1.2 * np.pi * RADIUS**2))
        np.testing.assert_allclose(v, -6.2 * np.sqrt(2) * RADIUS / distance * wake, rtol=0.03)
    assert np.asarray(jet().flux(Vec3(0.0, 0.0, jnp.array([0.3]))))[0] == 0.0  # none above the disc


def test_a_wide_plate_takes_all_of_the_thrust():
    """A hovering vehicle and a plate far wider than its jets, whatever the distance: no net lift; nothing aside of a small one."""
    for half, at, share in (([5, 5, 0.1], (0, 0, 1.5), 1.0), ([5, 5, 0.1], (0.3, 0.2, 6), 1.0), ([0.3, 0.3, 0.1], (2.0, 0, 1.5), 0.0)):
        push = PUSHES(above(half), above(half).initial_state([at, (0, 0, 0)]), COMMAND)
        down = sum(float(w.force_W.z.sum()) for w in push["downwash"])
        up = sum(float(w.force_W.z.sum()) for w in push["rotors"])
        np.testing.assert_allclose(up, 5.0)
        np.testing.assert_allclose(down, -5.0 * share, atol=1e-5)


def test_the_force_on_a_face_is_the_integral_of_the_flux():
    """Of a small, tilted plate beside the jet, in force and moment, by a sum over its area: within what the closed form leaves out."""
    half, R = np.array([0.5, 0.4, 0.02]), Rotation.from_euler("XYZ", [0.2, -0.15, 0.4])
    system = above(half)
    state = system.initial_state([(0, 0, 0), (0.25, -0.2, -1.6)], [[1, 0, 0, 0], R.as_quat(scalar_first=True)])
    push = PUSHES(system, state, COMMAND)["downwash"][0]
    n = R.as_matrix()[:, 2]
    u, v = (np.linspace(-h, h, 201)[:-1] + h / 200 for h in half[:2])
    local = np.stack([*np.meshgrid(u, v), np.full((200, 200), half[2])], -1).reshape(-1, 3)
    world = R.apply(local) + np.array([0.25, -0.2, -1.6])
    pressure = 0.0
    for hub in (0.2, -0.2):
        one = jet()
        moved = world - [hub, 0, 0]
        flux = np.asarray(one.flux(Vec3(*(jnp.asarray(moved[:, i : i + 1]) for i in range(3)))))[:, 0]
        pressure = pressure + flux * 2.5 / THRUST * n[2] ** 2
    area = 4 * half[0] * half[1] / len(local)
    force_B = np.array([0, 0, -pressure.sum() * area])
    moment_B = np.cross(local, pressure[:, None] * [0, 0, -area]).sum(0)
    top = 2  # the slab whose normal is z
    np.testing.assert_allclose(R.inv().apply([float(c[top]) for c in push.force_W.components()]), force_B, atol=0.03 * -force_B[2])
    np.testing.assert_allclose([float(c[top]) for c in push.moment_B.components()], moment_B, atol=0.05 * np.abs(moment_B).max())


def test_a_ball_in_a_wide_jet():
    """Newton's resistance of a small ball: drag coefficient 1 in the jet's middle."""
    r, z = 0.05, 5.0
    one = jnp.ones(1)
    screens = Screens((1,), jnp.zeros((1, 3)), jnp.array([[0.0, 0, 1]]), one * np.pi * r**2, one * np.pi * r**2, *(one * 0.5,) * 3)
    system = eqx.tree_at(lambda s: s.elements["downwash"], above([1, 1, 1]), Downwash((1,), None, screens))
    push = PUSHES(system, system.initial_state([(0, 0, z), (0, 0, 0)]), COMMAND)["downwash"][0]
    flux = sum(float(jet().flux(Vec3(jnp.array([x]), 0.0, -z))[0]) * 2.5 / THRUST for x in (0.2, -0.2))
    np.testing.assert_allclose(float(push.force_W.z[0]), -0.5 * flux * np.pi * r**2, rtol=0.02)


def test_forces_do_not_depend_on_the_frame():
    """Everything, the air too, moves at the same velocity; and everything is turned about the vertical and moved."""
    system = above([0.6, 0.4, 0.05], air=Air(1.2, SteadyWind(jnp.array([1.0, 0.5, 0.0]))))
    place, v = np.array([(0.3, 0.2, 1.8), (0, 0, 0.1)]), np.array([[0.4, -0.3, 0.2], [0.1, 0, 0]])
    base = RATES(system, system.initial_state(place, velocity=v), COMMAND).bodies
    moving = eqx.tree_at(lambda s: s.environment.air.wind.velocity, system, jnp.array([3.0, -0.5, 0.7]))
    other = RATES(moving, moving.initial_state(place + 4.0, velocity=v + np.array([2.0, -1.0, 0.7])), COMMAND).bodies
    for a, b in ((base.v_W, other.v_W), (base.w_B, other.w_B)):
        np.testing.assert_allclose(a, b, atol=1e-12)
    R = Rotation.from_euler("z", 0.7)
    q = np.tile(R.as_quat(scalar_first=True), (2, 1))
    turned = eqx.tree_at(lambda s: s.environment.air.wind.velocity, system, jnp.asarray(R.apply([1.0, 0.5, 0.0])))
    other = RATES(turned, turned.initial_state(R.apply(place), q, R.apply(v)), COMMAND).bodies
    np.testing.assert_allclose(other.v_W, R.apply(np.array(base.v_W)), atol=1e-12)
    np.testing.assert_allclose(other.w_B, base.w_B, atol=1e-12)


def test_derivatives_also_at_zero_thrust():
    system = above([0.6, 0.4, 0.05])
    state = system.initial_state([(0.3, 0.2, 1.8), (0, 0, 0.1)], velocity=[[0.4, -0.3, 0.2], [0.1, 0, 0]])
    flat, unravel = ravel_pytree(state)

    @jit_once
    def both(x, speed):
        def total(x, speed):
            rate = ravel_pytree(system.dynamics(0.0, unravel(x), {"rotors": jnp.full((1, 2), speed)}, system.prepare()))[0]
            return (rate * jnp.linspace(0.3, 1.0, rate.size)).sum()

        return total(x, speed), *jax.grad(total, (0, 1))(x, speed)

    for speed in (0.0, 400.0):
        _, by_state, by_speed = both(flat, speed)
        assert np.isfinite(np.asarray(by_state)).all()
        h = 1e-6
        np.testing.assert_allclose(
            by_speed, (both(flat, speed + 1e3 * h)[0] - both(flat, speed - 1e3 * h)[0]) / (2e3 * h), rtol=1e-5, atol=1e-6
        )
        for d in np.random.default_rng(1).normal(size=(3, flat.size)):
            np.testing.assert_allclose(
                by_state @ d, (both(flat + h * d, speed)[0] - both(flat - h * d, speed)[0]) / (2 * h), rtol=1e-5, atol=1e-5
            )


def test_a_vehicle_below_another():
    """Its rotors lose thrust, its body is pushed down; beside the jet neither, and the upper one feels nothing."""
    bodies = Bodies.create(["upper", "lower"], [0.5, 0.5], np.full((2, 3), 0.1))
    rotors = Rotors.create((0, 1), [[0.2, 0, 0], [-0.2, 0, 0]], [0, 0, 1.0], [1, -1], 1e-5, 1e-7, jet=Jet(jnp.asarray(RADIUS)))
    system = System(bodies, {"rotors": rotors, "drag": Drag((0, 1), jnp.full((2, 3), 0.02))}, environment=Environment(0.0))
    command = {"rotors": jnp.full((2, 2), 500.0)}

    def rises(x):
        push = PUSHES(system, system.initial_state([(0, 0, 6.0), (x, 0, 0)]), command)
        return [np.asarray(push[n][0].force_W.z) for n in ("rotors", "drag")]

    thrust, drag = rises(0.0)
    flux = sum(float(jet().flux(Vec3(jnp.array([x]), 0.0, -6.0))[0]) * 2.5 / THRUST for x in (0.2, -0.2))
    assert 0.5 * 5.0 < thrust[1] < 0.9 * 5.0
    np.testing.assert_allclose(drag[1], -0.5 * 0.02 * flux, rtol=1e-6)  # rho u^2 is the momentum flux
    np.testing.assert_allclose([thrust[0], drag[0]], [5.0, 0.0], atol=1e-12)
    thrust, drag = rises(3.0)
    np.testing.assert_allclose([*thrust, *drag], [5, 5, 0, 0], atol=1e-5)


def test_where_it_counts():
    """By itself where a plate hangs below rotors; the share that the team is told is what the element takes."""
    seed = load("lift-box").scenario
    assert not is_active(seed)  # the seed has none: the file says so
    assert not is_active(load("lift-slung").scenario)
    loaded = load("lift-box", ["environment.downwash='auto'", "loads.box.initial.attitude_deg=[0,0,0]"]).scenario
    assert is_active(loaded)
    built = build(loaded)
    state, names = built.initial, list(built.scenario.fleet)
    places = np.array(state.bodies.p_WB)
    corners = np.array([loaded.loads["box"].points[p] for p in "abcd"])
    places[:4] = corners + np.array([0, 0, 2.5])
    level = built.system.initial_state(places)
    push = PUSHES(built.system, level, {"rotors_team": jnp.full((4, 4), 500.0)})
    share = -sum(float(w.force_W.z.sum()) for w in push["downwash"]) / float(push["rotors_team"][0].force_W.z.sum())
    np.testing.assert_allclose(share, np.mean([thrust_shares(loaded)[n] for n in names]), rtol=1e-6)
    np.testing.assert_allclose(share, 0.25, atol=0.01)  # above the corners of a plate far wider than the jets
    with pytest.raises(ScenarioError) as caught:
        loads(NO_RADIUS)
    assert "environment.downwash" in str(caught.value)
    assert "radius" in str(caught.value)
