from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.core.controller import Constant
from skycrane.core.element import AbstractElement, Output
from skycrane.core.events import Event, Timeline
from skycrane.core.system import System
from skycrane.elements.drag import Drag
from skycrane.elements.gravity import Gravity
from skycrane.elements.rotors import Rotors
from skycrane.simulation.dataset import to_dataset
from skycrane.simulation.rollout import simulate
from skycrane.simulation.samples import sample
from tests.simulation.test_rollout import EVENTS, REFERENCE, STATE, SYSTEM, Climb, fly
from tests.systems_for_tests import free_body


class Lines(AbstractElement):
    """Says where the nodes of two straight cables are; pushes nothing."""

    segments: int
    outputs_info: ClassVar = {
        "node_position": Output("m", ("cable", "node", "axis"), "cable node position, world axes"),
        "tension": Output("N", ("cable", "segment"), "cable tension"),
        "mode": Output("1", (), "a number without axes"),
    }

    def wrench(self, t, kin, memory, command):
        return (), ()

    def outputs(self, t, kin, memory, command):
        return {
            "node_position": jnp.full((2, self.segments + 1, 3), t),
            "tension": jnp.full((2, self.segments), 1.0 * self.segments),
            "mode": jnp.asarray(3.0),
        }


def fleet():
    """Two unlike vehicles, the first with two rotor elements, a load between them, and cables of 2 and 3 segments."""
    bodies = Bodies.create(["a", "load", "b"], [1.0, 2.0, 3.0], np.ones((3, 3)))
    one = Rotors.create((0,), np.eye(3)[:2], [0.0, 0, 1], [1.0, -1.0], 1e-5, 1e-7)
    both = Rotors.create((2, 0), np.eye(3), [0.0, 0, 1], [1.0, -1.0, 1.0], 2e-5, 1e-7)
    drag = Drag((2, 1), jnp.ones((2, 3)))
    return System(bodies, {"one": one, "both": both, "drag": drag, "gravity": Gravity(), "long": Lines(3), "short": Lines(2)})


def test_every_variable_of_a_run_has_units_meaning_and_axes():
    dataset = to_dataset(fly(STATE, 0.1), SYSTEM, REFERENCE, events=EVENTS, control_period=1e-2, attributes={"scenario": "test"})
    assert {"position", "velocity", "attitude", "angular_velocity", "reference_position", "reference_attitude"} <= set(dataset)
    assert {"rotor_speed", "rotor_speed_command", "rotor_thrust", "drag_airspeed", "energy", "work"} <= set(dataset)
    for name in [*dataset, "time"]:
        assert dataset[name].attrs["units"], name
        assert dataset[name].attrs["long_name"], name
    assert list(dataset["rotor"].values) == ["body/1", "body/2", "body/3", "body/4"]
    assert dataset["reference_position"].dims == ("time", "tracked", "axis")
    assert dataset.attrs["scenario"] == "test"
    assert dataset.attrs["status"] == "finished"
    np.testing.assert_array_equal(dataset["rotor_thrust"].sel(rotor="body/3"), dataset["rotor_thrust"][:, 2])


def test_result_file_round_trip(tmp_path):
    xr = pytest.importorskip("xarray")
    dataset = to_dataset(fly(STATE, 0.1), SYSTEM, REFERENCE)
    dataset.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "result.nc", engine="h5netcdf") as again:
        xr.testing.assert_identical(dataset, again.load())


def test_rotors_cables_and_drag_of_several_elements_are_joined_with_labels():
    system = fleet()
    command = {"one": jnp.full((1, 2), 100.0), "both": jnp.array([[200.0, 300, 400], [500.0, 600, 700]])}
    run = simulate(system, Constant(command), None, system.initial_state(), duration=0.02, step=0.01)
    dataset = to_dataset(run, system)
    assert "reference_position" not in dataset
    thrust = dataset["rotor_thrust"].isel(time=0)
    assert sorted(thrust["rotor"].values) == ["a/1", "a/2", "a/3", "a/4", "a/5", "b/1", "b/2", "b/3"]
    # elements go by name: "both" comes first and numbers the rotors of "a" 1 to 3
    expected = {"b/1": 2e-5 * 200**2, "b/3": 2e-5 * 400**2, "a/1": 2e-5 * 500**2, "a/4": 1e-5 * 100**2}
    for label, value in expected.items():
        np.testing.assert_allclose(thrust.sel(rotor=label), value, rtol=1e-12)
    assert list(dataset["cable"].values) == ["long/1", "long/2", "short/1", "short/2"]
    tension = dataset["cable_tension"].isel(time=0).values
    np.testing.assert_array_equal(tension, [[3, 3, 3], [3, 3, 3], [2, 2, np.nan], [2, 2, np.nan]])
    assert dataset["cable_node_position"].shape == (3, 4, 4, 3)
    assert dataset["long_mode"].dims == ("time",)
    airspeed = dataset["drag_airspeed"].isel(time=-1)
    assert airspeed.dims == ("body",)
    np.testing.assert_array_equal(np.isnan(airspeed), [True, False, False])


def test_tracked_bodies_of_single_and_team_references():
    system = fleet()
    run = simulate(
        system, Constant({"one": jnp.zeros((1, 2)), "both": jnp.zeros((2, 3))}), None, system.initial_state(), duration=0.02, step=0.01
    )
    climb = Climb(jnp.array(1.0))
    assert sample(run, system, climb).tracked == ("a",)
    assert sample(run, system, climb, tracked=["load"]).tracked == ("load",)
    team = sample(run, system, {"b": climb, "second": Climb(jnp.array(2.0))}, tracked={"b": ["b"], "second": ["load"]})
    assert team.tracked == ("b", "load")
    np.testing.assert_allclose(team.target.p_W[-1, :, 2], [0.02, 0.04], rtol=1e-12)
    with pytest.raises(ValueError, match="has 1 rows"):
        sample(run, system, climb, tracked=["a", "b"])
    with pytest.raises(KeyError, match="no body 'c'"):
        sample(run, system, climb, tracked=["c"])
    with pytest.raises(ValueError, match="control_period"):
        sample(run, system, climb, events=EVENTS)


def test_outputs_targets_and_work_follow_events():
    run = fly(STATE, 0.5)
    samples = sample(run, SYSTEM, REFERENCE, events=EVENTS, control_period=1e-2)
    jump = np.abs(samples.energy - samples.work - samples.energy[0]).max()
    assert jump < 1e-6 * samples.throughput[-1]


def test_an_event_that_changes_stored_energy_counts_as_work():
    system = free_body(2.0, elements={"gravity": Gravity()}, keep_ledger=True)
    events = Timeline((Event("system.bodies.mass[0]", jnp.array(0.5), jnp.array(1.0)),))
    start = system.initial_state(position=[[0.0, 0, 10.0]])
    run = simulate(system, Constant({}), None, start, duration=1.0, step=0.01, events=events, save_every=5)
    samples = sample(run, system, events=events, control_period=0.01)
    np.testing.assert_allclose(samples.energy - samples.work, 2.0 * 9.81 * 10.0, rtol=1e-9)
    np.testing.assert_allclose(samples.work[-1], -9.81 * 10.0, rtol=1e-9)
