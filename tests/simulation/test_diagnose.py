import equinox as eqx
import jax.numpy as jnp
import pytest

from skycrane.core.controller import AbstractController, Constant
from skycrane.core.events import Event, Impulse, Timeline
from skycrane.simulation.diagnose import diagnose
from skycrane.simulation.rollout import Limits, simulate
from tests.simulation.test_rollout import runaway_system
from tests.systems_for_tests import HOVER_SPEED, quad_command, quadrotor

OPTIONS = {"step": 1e-2, "control_period": 5e-2}


def fly_and_diagnose(system, controller, duration=5.0, save_every=7, **more):
    options = {**OPTIONS, **more}
    start = system.initial_state()
    run = simulate(system, controller, None, start, duration=duration, save_every=save_every, **options)
    return run, diagnose(run, system, controller, None, start, **options)


def test_a_finished_run_has_no_diagnosis():
    assert fly_and_diagnose(runaway_system(), Constant({}), duration=0.5)[1] is None


@pytest.mark.parametrize("save_every", [1, 7, 100])
def test_blow_up_names_time_body_and_element_however_seldom_it_was_saved(save_every):
    _, found = fly_and_diagnose(runaway_system(), Constant({}), save_every=save_every)
    assert (found.status, found.body, found.term) == ("diverged", "body", "push")
    assert found.time == pytest.approx(1.13)  # v' = 1 + v^4 from rest blows up at pi / (2 sqrt 2) = 1.1107 s
    assert found.message.startswith("diverged at t = 1.13 s in body 'body': 'push'")


def test_a_limit_names_the_body_and_the_term_that_pushed_hardest():
    _, found = fly_and_diagnose(runaway_system(), Constant({}), limits=Limits(speed=1.0))
    assert (found.status, found.body, found.term) == ("limit", "body", "push")
    assert 0.8 < found.time < 0.9  # v' = 1 + v^4 reaches 1 m/s at 0.867 s
    assert "m/s)" in found.message


class GoesBad(AbstractController):
    """A controller whose command is not a number from a time on."""

    time: float = eqx.field(static=True)

    def init(self):
        return ()

    def __call__(self, t, measurement, reference, memory):
        return {"rotors": jnp.full((1, 4), HOVER_SPEED) * jnp.where(t > self.time, jnp.nan, 1.0)}, memory


def test_a_bad_command_is_the_controllers_fault():
    _, found = fly_and_diagnose(quadrotor(), GoesBad(0.32))
    assert found.term == "controller"
    assert found.time == pytest.approx(0.35)
    assert "rotors" in found.message


def test_events_and_impulses_take_part_and_a_bad_number_in_an_element_is_found():
    drag = Event("system.elements.drag.cd_area_B[0, 0]", jnp.array(0.42), jnp.array(jnp.nan))
    impulse = Impulse(0, jnp.array(0.4), jnp.array([0.5, 0.0, 0.0]))
    _, found = fly_and_diagnose(quadrotor(), Constant(quad_command()), events=Timeline((drag,), (impulse,)))
    assert (found.term, found.time) == ("drag", pytest.approx(0.46))


def test_a_run_that_starts_bad_says_so():
    system = quadrotor()
    bad = eqx.tree_at(lambda s: s.bodies.v_W, system.initial_state(), jnp.full((1, 3), jnp.nan))
    controller = Constant(quad_command())
    run = simulate(system, controller, None, bad, duration=0.5, **OPTIONS)
    found = diagnose(run, system, controller, None, bad, **OPTIONS)
    assert (found.time, found.body, found.term) == (0.0, "body", "drag")
