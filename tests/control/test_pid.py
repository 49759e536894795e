"""Cascaded PID control, delays and lower rates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.control.pid import CascadedPid, default_pid_gains, with_gains
from skycrane.control.pose import GeometricControl
from skycrane.control.references import FigureEight, Hover
from skycrane.control.timing import Delayed, EveryNth, RotorSpeeds
from skycrane.core.bodies import BodyState
from skycrane.core.controller import AbstractController, Measurement
from skycrane.vehicles.multirotor import system_for
from tests.control.fleet import QUADS, X500, about_x, distance, fly, rms

HOVER = Hover.create([0.0, 0.0, 0.0])
HELD = {"rotors": X500.hover_speeds()[None]}


@pytest.fixture(scope="module")
def quads():
    """System of three quadrotors, and one controller for all."""
    return system_for(QUADS), CascadedPid.of(QUADS)


def test_a_step_settles_without_much_overshoot(quads):
    system, controller = quads
    hover = Hover.create(np.zeros((3, 3)))
    run = fly(system, controller, hover, duration=8.0, position=[[1.0, 0.0, 0.5]])
    p = np.asarray(run.state.bodies.p_WB)
    assert run.status_name == "finished"
    assert np.all(p[..., 0].min(0) > -0.03)
    assert np.all(p[..., 2].min(0) > -0.015)
    assert np.all(distance(run, hover, 7.9) < [0.05, 0.01, 0.1])


def test_recovery_from_a_tilt(quads):
    system, controller = quads
    hover = Hover.create(np.zeros((3, 3)))
    run = fly(system, controller, hover, duration=8.0, attitude=about_x(60.0))
    assert run.status_name == "finished"
    assert np.all(distance(run, hover).max(0) < [2.3, 1.1, 3.4])
    assert np.all(distance(run, hover, 7.9) < [0.25, 0.1, 0.6])


def test_a_figure_of_eight_is_followed(quads):
    system, controller = quads
    reference = FigureEight.create(np.zeros((3, 3)), 6.0, 3.0, 8.0, ramp=2.0, heading="forward")
    start = reference(jnp.asarray(0.0))
    run = fly(system, controller, reference, duration=8.0, position=start.p_W, attitude=start.q_WB)
    assert np.all(rms(run, reference) < [0.35, 0.09, 0.45])


def test_integrals_carry_what_the_model_does_not_know():
    heavy = eqx.tree_at(lambda v: v.mass, X500, X500.mass * 1.1)
    run = fly(system_for(heavy), with_gains(CascadedPid.of(X500), velocity_integral=4.0 * jnp.ones((1, 3))), HOVER, duration=12.0)
    assert distance(run, HOVER, 11.9)[-1, 0] < 0.005


def test_integrals_stand_still_at_the_limits_and_are_bounded():
    controller = CascadedPid.of(X500)
    # A target far away: the speed limit and the tilt limit are active for most of the way.
    run = fly(system_for(X500), controller, Hover.create([150.0, 0.0, 0.0]), duration=12.0)
    gains = default_pid_gains(X500)
    asked = np.asarray(gains.velocity_integral * run.final.controller_memory.velocity_integral)
    assert np.all(np.abs(asked) <= 3.0 + 1e-9)
    v = np.asarray(run.state.bodies.v_W)[:, 0, 0]
    assert 9.0 < v.max() < 11.0


def test_derivative_terms_damp():
    # Rate derivative: an angular acceleration about x lowers the moment about x.
    plain = CascadedPid.of(X500)
    damped = with_gains(plain, rate_derivative=0.5 * jnp.ones((1, 3)))

    def second_command(controller):
        memory = controller.init()
        for t, rate in ((0.0, 0.0), (0.01, 1.0)):
            q = jnp.array([[1.0, 0, 0, 0]])
            bodies = BodyState(jnp.zeros((1, 3)), q, jnp.zeros((1, 3)), jnp.array([[rate, 0.0, 0.0]]))
            command, memory = controller(jnp.asarray(t), Measurement(bodies, {}), HOVER, memory)
        return np.asarray(X500.thrust_coefficient * command["rotors"][0] ** 2)

    arm = np.asarray(X500.position_B)[:, 1]
    roll, roll_damped = arm @ second_command(plain), arm @ second_command(damped)
    # The filter passes (1 - share) / filter_time of the change, share = 0.01 / (0.01 + 0.02).
    expected = 0.5 * (2 / 3) / 0.02 * float(X500.inertia_B[0, 0])
    assert roll - roll_damped == pytest.approx(expected, rel=1e-9)


def test_a_slower_outer_loop_still_flies():
    run = fly(system_for(X500), CascadedPid.of(X500, outer_every=5), HOVER, duration=8.0, position=[[1.0, 0.0, 0.5]])
    assert distance(run, HOVER, 7.9)[-1, 0] < 0.01


class Clock(AbstractController):
    """Commands the time."""

    def init(self):
        return jnp.zeros(())

    def __call__(self, t, measurement, reference, memory):
        return {"rotors": jnp.full((1, 4), t)}, memory + 1


def commands(controller, ticks=7):
    memory, seen = jax.tree.map(jnp.asarray, controller.init()), []
    for k in range(ticks):
        command, memory = controller(jnp.asarray(float(k)), None, None, memory)
        seen.append(float(command["rotors"][0, 0]))
    return seen, memory


def test_a_delay_is_a_whole_number_of_ticks():
    start = {"rotors": jnp.full((1, 4), -1.0)}
    assert commands(Delayed(Clock(), start, 3))[0] == [-1, -1, -1, 0, 1, 2, 3]
    assert commands(Delayed(Clock(), start, 0))[0] == [0, 1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="0 or more"):
        Delayed(Clock(), start, -1)


def test_a_lower_rate_holds_and_runs_the_inner_controller_only_then():
    start = {"rotors": jnp.full((1, 4), -1.0)}
    seen, memory = commands(EveryNth(Clock(), start, 3))
    assert seen == [0, 0, 0, 3, 3, 3, 6]
    assert float(memory[0]) == 3
    with pytest.raises(ValueError, match="1 or more"):
        EveryNth(Clock(), start, 0)


def test_a_delayed_loop_is_worse_and_too_long_a_delay_is_unstable():
    system = system_for(X500)
    far = [
        distance(fly(system, Delayed(GeometricControl.of(X500), HELD, ticks), HOVER, duration=4.0, attitude=about_x(30.0)), HOVER).max()
        for ticks in (2, 60)
    ]
    assert far[0] < 0.4
    assert far[1] > 2.0


def test_rotor_speeds_without_feedback():
    run = fly(system_for(X500), RotorSpeeds.create(HELD["rotors"]), None, duration=1.0)
    assert np.abs(run.state.bodies.p_WB).max() < 1e-9
