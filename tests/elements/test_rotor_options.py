"""Options of rotors: drag of the discs, air density, ground effect, axial flow, throttle curve, battery; flags and sentences on
validity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.controller import Constant
from skycrane.elements.gravity import Gravity
from skycrane.elements.motors import Battery, PoweredMemory, ThrottleCurve
from skycrane.elements.rotor_aero import Blade, BladeElementRotors
from skycrane.elements.rotor_effects import AxialFlow, GroundEffect, in_vortex_ring
from skycrane.elements.rotor_validity import validity_warnings
from skycrane.elements.rotors import Rotors
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.environment.ground import Ground
from skycrane.math import rotation
from skycrane.math.components import Vec3
from skycrane.simulation.rollout import simulate
from tests.systems_for_tests import POSITIONS, SPINS, free_body

UP = [0.0, 0.0, 1.0]
K_F, K_M, RADIUS, RHO = 1e-5, 1.5e-7, 0.12, 1.225
AREA = np.pi * RADIUS**2


def quad(**options):
    return Rotors.create((0,), POSITIONS, UP, SPINS, K_F, K_M, **options)


def push(rotors, speed, environment=None, **state):
    """Force (world) and moment (body) on a body in the given state."""
    system = free_body(elements={"rotors": rotors}, environment=environment)
    initial = system.initial_state(**state)
    command = {"rotors": jnp.broadcast_to(jnp.asarray(speed, float), (1, rotors.count))}
    (wrench,) = system.wrenches(0.0, initial, command, system.prepare())["rotors"]
    return np.asarray(wrench.force_W.array()[0]), np.asarray(wrench.moment_B.array()[0])


# -- drag of the discs ----------------------------------------------------------------------------------------------------------------


def test_pure_yaw_drags_every_rotor_and_pushes_the_body_nowhere():
    """5 rad/s at r = 0.17 m: 0.85 m/s at every rotor, no net force, and a moment against the turn (ArduPilot 20607)."""
    k_D = 2e-4
    rotors = quad(drag_coefficient=k_D)
    force, moment = push(rotors, 600.0, angular_velocity=[[0, 0, 5.0]])
    np.testing.assert_allclose(force, [0, 0, 4 * K_F * 600**2], atol=1e-12)
    arm = np.linalg.norm(POSITIONS[0])
    np.testing.assert_allclose(moment, [0, 0, -4 * k_D * 600 * 5.0 * arm * arm], atol=1e-12)
    system = free_body(elements={"rotors": rotors})
    kin = system.kinematics(system.initial_state(angular_velocity=[[0, 0, 5.0]]), system.prepare())
    np.testing.assert_allclose(rotors.hub_air(0.0, kin).in_plane_B.norm(), 5.0 * arm)


def test_rotor_drag_opposes_the_airspeed_in_the_disc():
    k_D = 2e-4
    attitude = [rotation.from_euler("zyx", [np.pi / 2, 0, 0])]
    windy = Environment(air=Air(wind=SteadyWind(jnp.array([5.0, 0.0, 2.0]))))
    force, _ = push(quad(drag_coefficient=k_D), 600.0, windy, attitude=attitude, velocity=[[1.0, 0.0, 0.0]])
    # Airspeed (-4, 0, -2): the wind pushes the vehicle along +x; its vertical part is not in the disc.
    np.testing.assert_allclose(force, [4 * k_D * 600 * 4.0, 0, 4 * K_F * 600**2], atol=1e-12)
    # A disc on its side drags across its own plane only.
    sideways = Rotors.create((0,), [[0.0, 0, 0]], [1.0, 0, 0], [1.0], 0.0, 0.0, drag_coefficient=k_D)
    force, _ = push(sideways, 600.0, velocity=[[3.0, 4.0, 0.0]])
    np.testing.assert_allclose(force, [0, -k_D * 600 * 4.0, 0], atol=1e-12)
    assert not push(quad(drag_coefficient=k_D), 0.0, windy)[0].any()  # stopped


def test_density_of_the_air():
    thin = Environment(air=Air(0.9))
    rotors = quad(reference_density=1.2, drag_coefficient=1e-4)
    dense, rare = push(rotors, 500.0, Environment(air=Air(1.2)), velocity=[[2.0, 0, 0]]), push(rotors, 500.0, thin, velocity=[[2.0, 0, 0]])
    np.testing.assert_allclose(rare[0], 0.75 * dense[0], atol=1e-12)
    layered = Environment(air=Air.standard(0.0, stratified=True))
    high = push(quad(reference_density=1.225), 500.0, layered, position=[[0, 0, 1000.0]])[0][2]
    assert high == pytest.approx(4 * K_F * 500**2 * 1.11164 / 1.225, rel=1e-5)
    np.testing.assert_allclose(push(quad(), 500.0, thin)[0][2], 4 * K_F * 500**2)  # coefficients without a density: as given


# -- ground effect --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("height_in_radii", [0.2, 0.5, 1.0, 2.0, 10.0])
def test_ground_effect_of_cheeseman_and_bennett(height_in_radii):
    world = Environment(ground=Ground(1.0))
    rotors = quad(radius=RADIUS, ground_effect=GroundEffect())
    thrust = push(rotors, 500.0, world, position=[[0, 0, 1.0 + height_in_radii * RADIUS]])[0][2]
    z = max(height_in_radii, 0.5)  # the documented limit: 4/3 at half a radius
    assert thrust / (4 * K_F * 500**2) == pytest.approx(1 / (1 - (1 / (4 * z)) ** 2), rel=1e-12)


def test_ground_effect_of_tilted_and_moving_rotors():
    world = Environment(ground=Ground(0.0))
    single = lambda axis: Rotors.create((0,), [[0.0, 0, 0]], axis, [1.0], K_F, K_M, radius=RADIUS, ground_effect=GroundEffect())  # noqa: E731
    at = {"position": [[0, 0, RADIUS]]}
    flat = push(single(UP), 500.0, world, **at)[0][2] / (K_F * 500**2)
    side = push(single([1.0, 0, 0]), 500.0, world, **at)[0][0] / (K_F * 500**2)
    down = -push(single([0.0, 0, -1.0]), 500.0, world, **at)[0][2] / (K_F * 500**2)
    assert (side, down) == pytest.approx((1.0, 1.0))
    assert flat == pytest.approx(16 / 15)
    induced = np.sqrt(K_F * 500**2 / (2 * RHO * AREA))
    fast = push(single(UP), 500.0, world, velocity=[[0, induced, 0]], **at)[0][2] / (K_F * 500**2)
    assert fast == pytest.approx(1 / (1 - 1 / 32), rel=1e-12)
    assert push(single(UP), 0.0, world, **at)[0][2] == 0.0
    with pytest.raises(ValueError, match="needs a ground"):
        push(single(UP), 500.0, Environment())


# -- axial flow -----------------------------------------------------------------------------------------------------------------------


def axial(climb, speed=500.0, slope=0.5):
    thrust, torque = K_F * speed**2, K_M * speed**2
    out = AxialFlow(slope).correct(*(jnp.asarray(x, float) for x in (thrust, torque, speed, climb, RHO, RADIUS)))
    return [float(x) for x in out]


def test_axial_flow_satisfies_momentum_and_blade_equations():
    hover = np.sqrt(K_F * 500**2 / (2 * RHO * AREA))
    for climb in (-0.4 * hover, 0.0, 1.0, 4.0):
        T, Q, v = axial(climb)
        assert pytest.approx(2 * RHO * AREA * (climb + v) * v, rel=1e-10) == T
        S = 0.25 * RHO * AREA * 0.5 * 500 * RADIUS
        assert pytest.approx(K_F * 500**2 - S * (climb + v - hover), rel=1e-10) == T
        assert pytest.approx(T * (climb + v) - K_F * 500**2 * hover, rel=1e-9, abs=1e-9) == (Q - K_M * 500**2) * 500
    assert axial(0.0)[:2] == pytest.approx([K_F * 500**2, K_M * 500**2], rel=1e-12)
    thrusts = [axial(c)[0] for c in np.linspace(-3, 60, 40)]
    assert (np.diff(thrusts) <= 1e-9).all()
    assert thrusts[-1] == pytest.approx(0.0, abs=1e-9)  # and not beyond: no windmill
    assert axial(-20.0) == axial(-0.5 * hover)
    np.testing.assert_allclose(axial(5.0, speed=0.0), 0.0, atol=1e-12)


def test_axial_flow_agrees_with_blade_elements():
    """An ideally twisted blade with a linear polar is what the option stands for: 2 % up to climb at the induced velocity."""
    from skycrane.elements.airfoils import LinearPolar

    x = np.geomspace(0.05, 1.0, 60)
    blade = Blade(RADIUS, x, np.full(60, 0.012), 0.06 / x)
    one = jnp.ones((1, 1))
    r = BladeElementRotors.create((0,), [[0.0, 0, 0]], UP, [1.0], blade, LinearPolar(lift_slope=6.0), quadrature="light")
    sigma_a = 2 * 0.012 / (np.pi * RADIUS) * 6.0
    k_F, _ = (float(k[0, 0]) for k in r.hover_coefficients())
    f = jax.jit(lambda c: r.blade_loads(600.0 * one, Vec3(0 * one, 0 * one, c * one), Vec3(0 * one, 0 * one, 0 * one), RHO)[0].thrust[0, 0])
    hover = np.sqrt(k_F * 600**2 / (2 * RHO * AREA))
    for climb in (-0.3 * hover, 0.5 * hover, hover):
        simple = AxialFlow(sigma_a).correct(*(jnp.asarray(x, float) for x in (k_F * 600**2, 0.0, 600.0, climb, RHO, RADIUS)))[0]
        assert float(simple) == pytest.approx(float(f(climb)), rel=0.02)


# -- motors and battery ---------------------------------------------------------------------------------------------------------------


def test_throttle_curve():
    curve = ThrottleCurve.create([0.0, 0.4, 1.0], [100.0, 500.0, 900.0])
    command = jnp.array([[-0.1, 0.2, 0.7, 2.0]])
    np.testing.assert_allclose(curve.speed_of(command), [[100, 300, 700, 900]])
    np.testing.assert_allclose(curve.command_for(curve.speed_of(command)), np.clip(command, 0, 1), atol=1e-12)
    rotors = quad(throttle=curve, speed_max=800.0)
    force, _ = push(rotors, 0.4)
    np.testing.assert_allclose(force[2], 4 * K_F * 500**2)
    assert push(rotors, 1.0)[0][2] == pytest.approx(4 * K_F * 800**2)
    half = ThrottleCurve.quadratic(900.0, linear=0.3, points=101).speed_of(jnp.asarray(0.5))
    assert float(half) == pytest.approx(900 * np.sqrt(0.7 * 0.25 + 0.3 * 0.5), rel=1e-3)
    with pytest.raises(ValueError, match="must rise"):
        ThrottleCurve.create([0.0, 1.0], [100.0, 90.0])
    with pytest.raises(ValueError, match="two rows of equal length"):
        ThrottleCurve.create([0.0, 1.0], [100.0])
    with pytest.raises(ValueError, match="expected 0 to 1"):
        ThrottleCurve.quadratic(900.0, 1.5)


def battery(**changes):
    return Battery.create(**{"capacity": 3600.0, "resistance": 0.05, "open_circuit": [10.0, 12.0], "efficiency": 0.8, **changes})


def test_voltage_and_current():
    b = battery(payload_power=5.0)
    U, current = (np.asarray(x) for x in b.voltage_and_current(jnp.array([1.0, 0.5, 0.0]), jnp.array([200.0, 80.0, 10.0])))
    for k, (E, P) in enumerate([(12.0, 255.0), (11.0, 105.0)]):
        assert U[k] == pytest.approx(E - 0.05 * current[k], rel=1e-12)
        assert U[k] * current[k] == pytest.approx(P, rel=1e-12)
    assert (U[2], current[2]) == (0.0, 0.0)  # empty
    assert float(b.voltage_and_current(jnp.asarray(1.0), jnp.asarray(1e5))[0]) == 6.0  # more than it can give
    for bad in ({"capacity": 0.0}, {"resistance": -1.0}, {"efficiency": 1.5}, {"charge_initial": 2.0}):
        with pytest.raises(ValueError, match=f"battery: {next(iter(bad))} is"):
            battery(**bad)
    with pytest.raises(ValueError, match="do not fall with the charge"):
        battery(open_circuit=[12.0, 10.0])


def powered(**options):
    return quad(time_up=0.05, time_down=0.05, speed_max=900.0, speed_initial=600.0, battery=battery(**options))


def test_battery_sags_drains_and_stops_the_motors():
    rotors = powered(capacity=200.0)
    system = free_body(elements={"rotors": rotors})
    full = {"rotors": jnp.full((1, 4), 900.0)}
    run = simulate(system, Constant(full), None, system.initial_state(), duration=60.0, step=0.01, save_every=10)
    speed, charge = np.asarray(run.state.memory["rotors"].speed)[:, 0], np.asarray(run.state.memory["rotors"].charge)[:, 0]
    # Once the first transient is over, the speed is that which the sagging voltage allows.
    k = 50
    power = 4 * K_M * speed[k] ** 3
    U, current = (float(x[0]) for x in rotors.battery.voltage_and_current(jnp.asarray(charge[k : k + 1]), jnp.asarray([power[0]])))
    np.testing.assert_allclose(speed[k], 900.0 * U / 12.0, rtol=2e-3)
    assert speed[k, 0] < 860
    slope = (charge[k + 1] - charge[k - 1]) / (run.time[k + 1] - run.time[k - 1])
    assert float(slope) == pytest.approx(-current / 200.0, rel=1e-3)
    assert charge[-1] == pytest.approx(0.0, abs=1e-3)
    np.testing.assert_allclose(speed[-1], 0.0, atol=1e-3)
    assert (np.diff(charge) <= 0).all()
    log = jax.vmap(lambda t, s: system.outputs(t, s, full, system.prepare()))(run.time, run.state)["rotors"]
    assert log["battery_voltage"][k, 0] == pytest.approx(U, rel=1e-9)
    (sentence,) = validity_warnings(run.time, log)
    first_empty = float(run.time[int(np.argmax(charge <= 0))])
    assert sentence == f"the battery was empty from {first_empty:.4g} s on, and its motors stopped"


def test_battery_keeps_the_commanded_speed_while_it_can():
    system = free_body(elements={"rotors": powered()})
    run = simulate(system, Constant({"rotors": jnp.full((1, 4), 500.0)}), None, system.initial_state(), duration=1.0, step=0.01)
    np.testing.assert_allclose(run.state.memory["rotors"].speed[-1], 500.0, rtol=1e-6)
    assert isinstance(system.elements["rotors"].init(), PoweredMemory)
    with pytest.raises(ValueError, match="needs rotors with motor lag"):
        quad(battery=battery(), speed_max=900.0)
    with pytest.raises(ValueError, match="finite speed_max"):
        quad(battery=battery(), time_up=0.1, time_down=0.1)


def test_throttle_passes_on_a_share_of_the_voltage():
    curve = ThrottleCurve.create([0.0, 1.0], [1.0, 900.0])
    rotors = eqx.tree_at(lambda r: r.throttle, powered(), curve, is_leaf=lambda x: x is None)
    np.testing.assert_allclose(rotors.target(jnp.full((1, 4), 0.5), jnp.array([0.8])), 0.8 * 450.5)


# -- all kinds of rotors --------------------------------------------------------------------------------------------------------------

BLADE = Blade(RADIUS, [0.12, 1.0], [0.022, 0.01], [0.38, 0.16])
ALL = {
    "drag, density": quad(drag_coefficient=2e-4, reference_density=1.2),
    "ground effect, axial flow": quad(radius=RADIUS, ground_effect=GroundEffect(), axial_flow=AxialFlow(0.4), reference_density=1.2),
    "battery, lag, inertia": quad(
        time_up=0.05, time_down=0.02, speed_max=900.0, speed_initial=600.0, battery=battery(), inertia=2e-5,
        throttle=ThrottleCurve.create([0.0, 1000.0], [5.0, 1000.0]),
    ),
    "blade elements": BladeElementRotors.create(
        (0,), POSITIONS, [[0.1, 0, 1], [0, 0.2, 1], [0, 0, 1], [0, -0.1, 1]], SPINS, BLADE, time_up=0.05, time_down=0.05,
        speed_initial=550.0, inertia=2e-5, ground_effect=GroundEffect(), quadrature="light",
    ),
}  # fmt: skip
STATE = {
    "position": [[0.3, 0.2, 0.4]], "attitude": [[1.0, 0.1, -0.2, 0.3]], "velocity": [[3.0, -2.0, 1.0]],
    "angular_velocity": [[1.0, 2.0, -1.0]],
}  # fmt: skip
WORLD = Environment(air=Air(1.1, SteadyWind(jnp.array([2.0, 1.0, 0.3]))), ground=Ground(0.0))
COMMAND = {"rotors": jnp.array([[520.0, 560.0, 600.0, 480.0]])}


@pytest.mark.parametrize("name", ALL)
def test_energy_batch_and_gradient(name):
    """d/dt of the energy equals the power; a batch equals a loop; the derivative of the dynamics equals finite differences."""
    system = free_body(1.2, elements={"rotors": ALL[name], "gravity": Gravity()}, environment=WORLD)
    prepared, state = system.prepare(), system.initial_state(**STATE)

    @jax.jit
    def rates(state):
        rate = system.dynamics(0.0, state, COMMAND, prepared)
        _, energy_rate = jax.jvp(lambda s: system.energy(0.0, s, prepared), (state,), (rate,))
        kin, wrenches = system.kinematics(state, prepared), system.wrenches(0.0, state, COMMAND, prepared)
        power = sum(e.power(0.0, kin, state.memory[n], COMMAND.get(n), wrenches[n]) for n, e in system.elements.items())
        return rate, energy_rate, power

    rate, energy_rate, power = rates(state)
    assert float(energy_rate) == pytest.approx(float(power), rel=1e-10)

    if name != "blade elements":  # tested for itself; it takes long to compile
        two = jax.tree.map(lambda x: jnp.stack([x, 1.01 * x]), state)
        batch = jax.jit(jax.vmap(lambda s: rates(s)[0]))(two)
        jax.tree.map(lambda b, one: np.testing.assert_allclose(b[0], one, rtol=1e-10, atol=1e-9), batch, rate)

    rng = np.random.default_rng(4)
    d = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), state)
    dynamics = lambda s: system.dynamics(0.0, s, COMMAND, prepared)  # noqa: E731
    _, tangent = jax.jit(lambda s, d: jax.jvp(dynamics, (s,), (d,)))(state, d)
    h = 1e-6
    plus, minus = (rates(jax.tree.map(lambda x, v, s=s: x + s * h * v, state, d))[0] for s in (1, -1))
    jax.tree.map(lambda t, a, b: np.testing.assert_allclose(t, (a - b) / (2 * h), rtol=2e-5, atol=2e-5), tangent, plus, minus)


def test_blade_element_quadrotor_hovers_where_its_quadratic_twin_does():
    twin = ALL["blade elements"].quadratic(1.1)
    straight = eqx.tree_at(lambda r: r.axis_B, ALL["blade elements"], jnp.broadcast_to(jnp.array(UP), (1, 4, 3)))
    straight = eqx.tree_at(lambda r: r.ground_effect, straight, None)
    k_F = float(twin.thrust_coefficient[0, 0])
    hover = np.sqrt(1.2 * 9.81 / (4 * k_F))
    still = Environment(air=Air(1.1, SteadyWind(jnp.zeros(3))))
    straight = eqx.tree_at(lambda r: r.speed_initial, straight, jnp.full((1, 4), hover))
    system = free_body(1.2, elements={"rotors": straight, "gravity": Gravity()}, environment=still)
    command = {"rotors": jnp.full((1, 4), hover)}

    @jax.jit
    def rate_in(wind):
        moved = eqx.tree_at(lambda s: s.environment.air.wind.velocity, system, wind)
        return moved.dynamics(0.0, moved.initial_state(), command, moved.prepare())

    rate = rate_in(jnp.zeros(3))
    np.testing.assert_allclose(rate.bodies.v_W, 0.0, atol=1e-9)
    np.testing.assert_allclose(rate.bodies.w_B, 0.0, atol=1e-9)
    np.testing.assert_allclose(rate.memory["rotors"], 0.0, atol=1e-9)
    # In a wind the side force of the rotors carries the vehicle away, and the gain of lift upwards.
    rate = rate_in(jnp.array([0.0, 6.0, 0.0]))
    assert rate.bodies.v_W[0, 1] > 0.1
    assert rate.bodies.v_W[0, 2] > 0.1


def test_logs_of_blade_elements():
    system = free_body(elements={"rotors": ALL["blade elements"]}, environment=WORLD)
    log = jax.jit(lambda s: system.outputs(0.0, s, COMMAND, system.prepare()))(system.initial_state(**STATE))["rotors"]
    assert set(log) <= set(ALL["blade elements"].outputs_info)
    assert all(np.shape(x) == (1, 4) for x in log.values())
    assert np.abs(log["momentum_residual"]).max() < 1e-10
    assert (np.asarray(log["inflow"]) > 0.01).all()
    np.testing.assert_array_equal(log["negative_inflow"], 0.0)


# -- validity -------------------------------------------------------------------------------------------------------------------------


def test_vortex_ring_region():
    v = 5.0
    climb = jnp.array([-2.4, -2.6, -5.0, -7.4, -7.6, 3.0])
    assert in_vortex_ring(climb, jnp.asarray(0.0), v).tolist() == [False, True, True, True, False, False]
    assert not in_vortex_ring(climb, jnp.asarray(5.1), v).any()


@pytest.mark.parametrize("kind", ["quadratic", "blade elements"])
def test_flags_of_a_descent(kind):
    rotors = quad(radius=RADIUS) if kind == "quadratic" else eqx.tree_at(lambda r: r.ground_effect, ALL[kind], None)
    system = free_body(elements={"rotors": rotors})
    command = {"rotors": jnp.full((1, 4), 550.0)}
    flags = jax.jit(lambda v: system.outputs(0.0, system.initial_state(velocity=[[0.0, 0.0, v]]), command, system.prepare())["rotors"])
    hover, descent, climb = flags(0.0), flags(-5.0), flags(5.0)
    np.testing.assert_array_equal(descent["vortex_ring"], 1.0)
    assert not hover["vortex_ring"].any()
    assert not climb["vortex_ring"].any()


def test_negative_inflow_and_stall_are_flagged():
    one = BladeElementRotors.create((0,), [[0.0, 0, 0]], UP, [1.0], BLADE, quadrature="light")
    system = free_body(elements={"rotors": one})
    see = jax.jit(lambda v, s: system.outputs(0.0, system.initial_state(velocity=v), {"rotors": s}, system.prepare())["rotors"])
    windmill = see(jnp.array([[12.0, 0.0, -14.0]]), jnp.full((1, 1), 300.0))
    assert float(windmill["negative_inflow"][0, 0]) == 1.0
    slow = see(jnp.array([[15.0, 0.0, -3.0]]), jnp.full((1, 1), 200.0))
    assert 0.1 < float(slow["stalled_fraction"][0, 0]) < 1.0
    well = see(jnp.array([[3.0, 0.0, 1.0]]), jnp.full((1, 1), 600.0))
    assert float(well["stalled_fraction"][0, 0]) < 0.1


def test_sentences():
    t = np.arange(0, 5, 0.5)
    ring = np.zeros((10, 1, 4))
    ring[4:6, 0, 1] = 1.0
    ring[5:9, 0, 3] = 1.0
    stalled = np.full((10, 1, 4), 0.02)
    stalled[7, 0, 0] = 0.3
    none = 0 * ring
    told = validity_warnings(t, {"vortex_ring": ring, "stalled_fraction": stalled, "negative_inflow": none, "momentum_residual": none})
    assert len(told) == 2
    assert told[0].startswith("rotors 2, 4: vortex-ring descent")
    assert told[0].endswith("for up to 2 s, first at 2 s")
    assert told[1] == "rotor 1: more than 10% of the disc beyond the sections' stall angle for 0.5 s, first at 3.5 s"
    assert "uav/1" in validity_warnings(t, {"stalled_fraction": stalled[:, 0]}, ["uav/1", "uav/2", "uav/3", "uav/4"])[0]
    assert validity_warnings(t, {"thrust": ring}) == []


def test_options_that_lack_the_radius():
    with pytest.raises(ValueError, match="need the radius"):
        quad(ground_effect=GroundEffect())
