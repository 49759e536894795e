"""Cases of cables and teams with known right answers that a whole scenario is needed for (the others are with the elements)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.cli import main
from skycrane.core.controller import Measurement
from skycrane.scenario import ScenarioError, load, loads
from skycrane.scenario.build import build
from skycrane.scenario.fly import fly
from skycrane.scenario.lift_report import stretched_at_start
from skycrane.scenario.record import record, warnings_before
from tests.cable_models import jit_once
from tests.scenario.test_docs import EXAMPLES


def test_the_step_is_judged_before_the_start():
    """Case 33: above the limit of stiffness and damping the largest safe step is told before anything moves; below it nothing is."""
    limit = 4.6e-4  # s, of arXiv 2305.09175's cables with RK4
    (said,) = warnings_before(build(load("lift-box", ["run.integrator='rk4'"]).scenario))
    assert "cables" in said
    told = [float(word.rstrip(".,;")) for word in said.split() if word[0].isdigit() or word.startswith("0.")]
    assert any(0.95 * limit < number < 1.05 * limit for number in told), said
    assert not warnings_before(build(load("lift-box", ["run.integrator='rk4'", "run.step=0.0004"]).scenario))
    assert not warnings_before(build(load("lift-box").scenario))


def test_tension_at_the_start_does_not_depend_on_the_step():
    """Case 35: neither on the step nor on the method; it is what hangs below, from the first instant on."""
    first = jit_once(lambda system, state: system.outputs(0.0, state, {"rotors_team": jnp.zeros((4, 4))}, system.prepare())["cables"])
    level = "loads.box.initial.attitude_deg=[0, 0, 0]"
    over = [f"vehicles.uav{i}.initial.position=[0, 0, 0]" for i in range(1, 5)]
    found = []
    for settings in (["run.step=0.0001", "run.integrator='rk4'"], ["run.step=0.0004", "run.integrator='rk4'"], ["run.step=0.004"]):
        built = build(load("lift-box", [level, *over, *settings]).scenario)
        found.append(np.asarray(first(built.system, built.initial)["tension"]))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    # A quarter of the box, and below segment j the lumps of 10 g at its own end and all further ones.
    below = 2.0 / 4 + 0.01 * np.arange(5, 0, -1)
    np.testing.assert_allclose(found[0], np.tile(below * 9.81, (4, 1)), rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("cables.cable1.material.bending_stiffness=0.1", "bending_stiffness"),
        ("cables.cable1.material.bending=true", "bending"),
        ("cables.cable1.torsion=0.1", "torsion"),
        ("cables.cable1.drag={added_mass=1.0}", "added_mass"),
    ],
)
def test_what_a_cable_does_not_have_is_refused_by_name(change, named):
    """Case 37."""
    with pytest.raises(ScenarioError) as caught:
        load("lift-box", [change])
    assert f"cables.cable1.{change.split('=')[0].split('.', 2)[2]}" in str(caught.value)
    assert named in str(caught.value)


def test_inside_the_boundary_layer_the_command_has_a_rate():
    """Case 45: |du/dt| of the sliding-mode law stays as it is when dt is halved; with a layer of no width it would double."""
    built = build(load("lift-box").scenario)
    law, reference = built.controller.members["box"], built.reference["box"]
    rest = built.initial.bodies

    @jit_once
    def commands(layer, times):
        controller = eqx.tree_at(lambda c: c.gains.layer, law, layer)

        def one(t):
            # All swing about their places, so that S passes zero at 1.5 m/s and the law crosses its layer.
            sway = jnp.array([0.3, 0.25, 0.2])
            bodies = eqx.tree_at(
                lambda b: (b.p_WB, b.v_W), rest, (rest.p_WB + sway * jnp.sin(5.0 * t), rest.v_W + 5.0 * sway * jnp.cos(5.0 * t))
            )
            return controller(t, Measurement(bodies, built.initial.memory), reference, controller.init())[0]["rotors_team"]

        return jax.vmap(one)(times)

    def fastest(layer, dt):
        u = np.asarray(commands(jnp.full(3, layer), jnp.arange(4000) * dt))
        return np.abs(np.diff(u, axis=0)).max() / dt

    for layer, growth in ((2.0, 1.0), (1e-9, 2.0)):
        np.testing.assert_allclose(fastest(layer, 1e-4) / fastest(layer, 2e-4), growth, rtol=0.1)


def test_the_payload_law_learns_what_winches_do():
    """Of a shorter cable at once, of a longer one when it is out, but not where another event comes first."""
    example = next(text for text in EXAMPLES if 'name = "crate"' in text)

    def told(*lengths_at):
        events = ", ".join(f"{{kind='winch', cable='a', time={t}, length={length}}}" for t, length in lengths_at)
        timeline = build(
            loads(example, overrides=[f"events=[{events}]", "cables.a.winch={speed_max=0.1, time_constant=0.1}"]).scenario
        ).timeline
        return [(e.path, float(e.time), float(e.value)) for e in timeline.events if "cable_length" in e.path]

    path = "controller.members.crate.cable_length[0]"
    assert told((3.0, 1.8)) == [(path, 3.0, 1.8)]
    ((_, time, length),) = told((3.0, 2.3))
    assert (length, round(time, 6)) == (2.3, 6.5)
    assert told((3.0, 2.3), (5.0, 1.9)) == [(path, 5.0, 1.9)]


def test_a_models_own_place_does_not_count_over_a_cable(tmp_path, capsys):
    """A cable starts just taut; with a place of the entry's own that stretches it, run and check say by how much."""
    (tmp_path / "carrier.toml").write_text(
        'schema_version = "1"\nname = "carrier"\n[vehicle]\nmodel = "lift-quad"\ninitial = { position = [0.0, 0.0, 1.0] }\n'
    )
    text = next(text for text in EXAMPLES if 'name = "crate"' in text).replace('model = "lift-quad"', 'model = "carrier.toml"', 1)
    assert not stretched_at_start(loads(text, folder=tmp_path).scenario)
    (tmp_path / "crate.toml").write_text(text.replace('over = "a"', 'over = "a", position = [0.0, 0.0, 1.0]'))
    with pytest.raises(SystemExit) as ended:
        main(["check", str(tmp_path / "crate.toml")])
    assert ended.value.code == 0
    assert "cable 'a' starts stretched by 50.1 %, 1 m" in capsys.readouterr().out


def test_jets_that_press_a_load_down_and_energy_that_drifts_are_told(monkeypatch):
    """Of a short flight whose jets press by more than a fifth of the load's weight, judged with no drift allowed."""
    loaded = loads(
        next(text for text in EXAMPLES if 'name = "crate"' in text),
        overrides=["environment.downwash='on'", "run.duration=0.04", "events=[]", "run.integrator='linearly_implicit_2'"],
    )
    built = build(loaded.scenario)
    monkeypatch.setattr("skycrane.scenario.record.DRIFT", 0.0)
    summary = record(loaded, built, fly(built), 0.0).summary
    most = summary["metrics"]["download_max_n"]
    assert most > 0.2 * 2.0 * 9.81
    told, drift = summary["warnings"]
    assert f"press 'crate' down with up to {most:.3g} N, {most / (2.0 * 9.81):.2g} times its weight" in told
    assert "nergy drifts by" in drift
    assert "smaller run.step" in drift


@pytest.mark.slow
def test_the_documented_lift_flies_to_its_end():
    """Through its winch event, level and where it should be."""
    loaded = loads(next(text for text in EXAMPLES if 'name = "crate"' in text))
    built = build(loaded.scenario)
    summary = record(loaded, built, fly(built), 0.0).summary
    assert summary["status"] == "finished"
    assert not summary["warnings"]
    assert summary["metrics"]["load_angle_final_deg"] < 20.0
    assert summary["metrics"]["load_position_error_final_m"] < 0.3
    assert summary["metrics"]["slack_time_s"] < 0.1
