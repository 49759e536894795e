import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.controller import AbstractController, AbstractReference, Constant, Target, Team
from skycrane.core.events import Event, Impulse, Timeline
from skycrane.elements.push import Push
from skycrane.environment.air import Air, SteadyWind
from skycrane.environment.environment import Environment
from skycrane.simulation.integrators import RK4, Adaptive, SemiImplicitEuler
from skycrane.simulation.rollout import DIVERGED, FINISHED, LIMIT, Limits, simulate
from tests.systems_for_tests import HOVER_SPEED, free_body, quad_command, quadrotor


class Climb(AbstractReference):
    """A reference for these tests: rise at a steady speed."""

    speed: jax.Array

    def __call__(self, t):
        zero = jnp.zeros((1, 3))
        p = zero.at[:, 2].set(self.speed * t)
        return Target(p, zero.at[:, 2].set(self.speed), zero, jnp.array([[1.0, 0, 0, 0]]), zero)


class AltitudePI(AbstractController):
    """A controller with memory for these tests: altitude by all rotors alike."""

    gain: jax.Array
    ki: jax.Array

    def init(self):
        return jnp.zeros(())

    def __call__(self, t, measurement, reference, memory):
        target = reference(t)
        e = target.p_W[0, 2] - measurement.bodies.p_WB[0, 2]
        de = target.v_W[0, 2] - measurement.bodies.v_W[0, 2]
        memory = memory + self.ki * e
        return {"rotors": jnp.full((1, 4), HOVER_SPEED) + self.gain * (e + de) + memory}, memory


CONTROLLER = AltitudePI(jnp.array(40.0), jnp.array(0.05))
REFERENCE = Climb(jnp.array(0.5))
SYSTEM = quadrotor(inertia_rotor=1e-5, center=(0.0, 0.0, 0.01), keep_ledger=True)
STATE = SYSTEM.initial_state(velocity=[[1.0, 0.5, 0.0]], angular_velocity=[[0.1, 0.2, 0.3]])
EVENTS = Timeline(
    (Event("system.elements.rotors.speed_fraction[0, 2]", jnp.array(0.33), jnp.array(0.9)),),
    (Impulse(0, jnp.array(0.21), jnp.array([0.1, 0.0, -0.2])),),
)


def fly(initial, duration, **options):
    options = {"step": 2e-3, "control_period": 1e-2, "events": EVENTS, **options}
    return simulate(SYSTEM, CONTROLLER, REFERENCE, initial, duration=duration, **options)


def assert_same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize(
    ("integrator", "first"),
    [*((RK4(), t) for t in (0.01, 0.21, 0.33, 0.49)), (RK4(unroll=False), 0.33), (SemiImplicitEuler(), 0.21), (Adaptive(1e-6, 1e-8), 0.21)],
)
def test_a_split_run_equals_the_unsplit_run_bit_for_bit(first, integrator):
    whole = fly(STATE, 0.5, integrator=integrator)
    one = fly(STATE, first, integrator=integrator)
    two = fly(one.final, 0.5 - first, integrator=integrator)
    assert_same_bits(two.final, whole.final)
    n = len(one.time) - 1
    assert_same_bits(jax.tree.map(lambda x: x[n:], whole.state), two.state)
    np.testing.assert_array_equal(two.time, whole.time[n:])


def test_the_same_run_twice_gives_the_same_bits():
    assert_same_bits(fly(STATE, 0.5), fly(STATE, 0.5))


@pytest.mark.parametrize("save_every", [3, 5, 50, 80])
def test_saving_less_often_changes_nothing_else(save_every):
    every, some = fly(STATE, 0.5), fly(STATE, 0.5, save_every=save_every)
    index = sorted({*range(0, 50, save_every), 50})
    np.testing.assert_array_equal(np.asarray(every.time)[index], some.time)
    assert_same_bits(jax.tree.map(lambda x: x[np.array(index)], every.state), some.state)


def test_command_is_held_between_ticks_and_shown_from_its_tick_on():
    run = fly(STATE, 0.2)
    np.testing.assert_array_equal(run.command["rotors"][-1], run.command["rotors"][-2])
    held = simulate(SYSTEM, CONTROLLER, REFERENCE, STATE, duration=0.01, step=1e-2)
    assert_same_bits(run.command["rotors"][0], held.command["rotors"][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(duration=0.505), "duration = 0.505 s is not a whole multiple of the control period"),
        (dict(duration=0.5, step=3e-3), "control_period = 0.01 s is not a whole multiple of step"),
        (dict(duration=-1.0), "must be positive"),
        (dict(duration=0.5, save_every=0), "save_every"),
    ],
)
def test_times_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fly(STATE, **{"duration": 0.5, **arguments})


# -- events ------------------------------------------------------------------------------------------------------------------------------


def push_system():
    return free_body(2.0, elements={"push": Push((0,), jnp.zeros((1, 3)), jnp.zeros((1, 3)), jnp.zeros((1, 3)))})


def coast(events, duration=1.0, system=None):
    system = system or push_system()
    return simulate(system, Constant({}), None, system.initial_state(), duration=duration, step=1e-2, events=events)


def test_an_event_acts_exactly_between_its_times():
    force = "system.elements.push.force_W[0, 1]"
    run = coast(Timeline((Event(force, jnp.array(0.3), jnp.array(4.0)), Event(force, jnp.array(0.7), jnp.array(0.0)))))
    np.testing.assert_allclose(run.state.bodies.v_W[-1, 0], [0, 4.0 * 0.4 / 2.0, 0], rtol=1e-12)


def test_the_order_in_the_list_does_not_matter_and_late_events_start_at_the_next_tick():
    force = "system.elements.push.force_W[0, 1]"
    on, off = Event(force, jnp.array(0.295), jnp.array(4.0)), Event(force, jnp.array(0.7), jnp.array(0.0))
    a, b = coast(Timeline((on, off))), coast(Timeline((off, on)))
    assert_same_bits(a.state, b.state)
    np.testing.assert_allclose(a.state.bodies.v_W[-1, 0, 1], 0.8, rtol=1e-12)


def test_an_impulse_changes_momentum_once():
    run = coast(Timeline(impulses=(Impulse(0, jnp.array(0.5), jnp.array([0.0, 0.0, 3.0]), offset_B=(1.0, 0.0, 0.0)),)))
    v = np.asarray(run.state.bodies.v_W[:, 0, 2])
    assert not v[:51].any()
    np.testing.assert_allclose(v[51:], 1.5, rtol=1e-12)
    np.testing.assert_allclose(run.state.bodies.w_B[51, 0], [0, -3.0 / 2.0, 0], rtol=1e-12)  # r x J over the inertia about y


def test_events_reach_environment_controller_reference_and_bodies():
    environment = Environment(air=Air(wind=SteadyWind(jnp.zeros(3))))
    system = quadrotor(environment=environment)
    common = dict(duration=1.0, step=1e-2)
    calm = simulate(system, CONTROLLER, REFERENCE, system.initial_state(), **common)
    for path, value in (
        ("system.environment.air.wind.velocity", jnp.array([5.0, 0, 0])),
        ("controller.gain", jnp.array(5.0)),
        ("reference.speed", jnp.array(2.0)),
        ("system.bodies.mass[0]", jnp.array(0.7)),
    ):
        changed = simulate(
            system, CONTROLLER, REFERENCE, system.initial_state(), events=Timeline((Event(path, jnp.array(0.5), value),)), **common
        )
        before, after = np.asarray(changed.state.bodies.p_WB), np.asarray(calm.state.bodies.p_WB)
        np.testing.assert_array_equal(before[:51], after[:51])
        assert np.abs(before[-1] - after[-1]).max() > 1e-4, path


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("system.elements.push.fource_W", 1.0, "nothing is called 'fource_W' there; expected one of bodies, force_W"),
        ("system.elements.pull.force_W", 1.0, "nothing is called 'pull' there; expected one of push"),
        ("system.elements.push.force_W", [1.0, 2.0], "the value has shape"),
        ("plant.elements", 1.0, "nothing is called 'plant'"),
    ],
)
def test_events_that_lead_nowhere_are_refused(path, value, message):
    with pytest.raises(ValueError, match=message):
        coast(Timeline((Event(path, jnp.array(0.1), jnp.asarray(value)),)))


def test_event_time_and_size_batch_and_differentiate():
    def end_speed(time, size):
        return coast(Timeline((Event("system.elements.push.force_W[0, 0]", time, size),))).state.bodies.v_W[-1, 0, 0]

    times, sizes = jnp.array([0.0, 0.25, 0.9]), jnp.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(jax.vmap(end_speed)(times, sizes), sizes * (1 - times) / 2, rtol=1e-12)
    np.testing.assert_allclose(jax.grad(end_speed, 1)(0.25, 2.0), 0.375, rtol=1e-12)


# -- status ------------------------------------------------------------------------------------------------------------------------------


class Runaway(Push):
    """A force that grows without bound: dynamics that blow up in finite time."""

    def wrench(self, t, kin, memory, command):
        wrenches, rate = super().wrench(t, kin, memory, command)
        grown = wrenches[0].force_W * (1.0 + kin.v_W.dot(kin.v_W) ** 2)
        return (wrenches[0]._replace(force_W=grown),), rate


def runaway_system():
    return free_body(1.0, elements={"push": Runaway((0,), jnp.array([[1.0, 0, 0]]), jnp.zeros((1, 3)), jnp.zeros((1, 3)))})


def test_a_finished_run_says_so():
    run = coast(Timeline())
    assert int(run.status) == FINISHED
    assert run.status_name == "finished"
    assert bool(run.good.all())


def test_a_diverged_run_keeps_what_it_had_and_says_where_it_broke():
    run = coast(Timeline(), 20.0, runaway_system())
    good = np.asarray(run.good)
    assert int(run.status) == DIVERGED
    assert 0 < good.sum() < len(good)
    assert np.all(np.diff(good.astype(int)) <= 0)
    assert np.isfinite(np.asarray(run.state.bodies.p_WB)[good]).all()
    assert not np.isfinite(np.asarray(run.state.bodies.v_W)[~good]).all()


def test_limits_stop_a_run():
    system = push_system()
    moving = system.initial_state(velocity=[[2.0, 0, 0]])
    run = simulate(system, Constant({}), None, moving, duration=2.0, step=1e-2, limits=Limits(distance=1.0))
    assert int(run.status) == LIMIT
    assert float(run.time[np.asarray(run.good)][-1]) == pytest.approx(0.5, abs=0.011)
    assert int(simulate(system, Constant({}), None, moving, duration=0.4, step=1e-2, limits=Limits(distance=1.0)).status) == FINISHED


def test_status_is_per_lane_in_a_batch():
    system = runaway_system()

    def status(force):
        changed = eqx.tree_at(lambda s: s.elements["push"].force_W, system, force * jnp.array([[1.0, 0, 0]]))
        return simulate(changed, Constant({}), None, changed.initial_state(), duration=3.0, step=1e-2).status

    assert jax.vmap(status)(jnp.array([0.1, 5.0])).tolist() == [FINISHED, DIVERGED]


def test_adaptive_integrator_that_gives_up_is_reported():
    run = simulate(SYSTEM, CONTROLLER, REFERENCE, STATE, duration=0.1, step=0.05, integrator=Adaptive(1e-12, 1e-14, max_steps=2))
    assert int(run.status) == DIVERGED


def test_team_hands_each_member_its_reference():
    class Report(AbstractController):
        name: str = eqx.field(static=True)

        def init(self):
            return ()

        def __call__(self, t, measurement, reference, memory):
            return {self.name: reference(t).p_W}, memory

    team = Team({"a": Report("a"), "b": Report("b")})
    system = push_system()
    run = simulate(system, team, {"a": Climb(jnp.array(1.0)), "b": Climb(jnp.array(2.0))}, system.initial_state(), duration=0.1, step=0.1)
    np.testing.assert_allclose(run.command["b"], 2 * np.asarray(run.command["a"]))


def test_open_loop_quadrotor_batch_equals_a_loop():
    factors = jnp.asarray(np.random.default_rng(0).uniform(0.98, 1.02, (5, 4)))

    def end(f):
        return simulate(SYSTEM, Constant(quad_command(f)), None, STATE, duration=0.2, step=2e-3).state.bodies.p_WB[-1]

    np.testing.assert_allclose(jax.vmap(end)(factors), np.stack([end(f) for f in factors]), rtol=1e-12, atol=1e-14)
