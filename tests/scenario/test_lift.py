"""Loads, cables and teams of a scenario: the bundled lifts fly as they should, events act, mistakes are refused."""

import numpy as np
import pytest

from skycrane.scenario import ScenarioError, load, loads
from skycrane.scenario.build import build
from skycrane.scenario.fly import fly
from skycrane.scenario.record import record

# Formation within 0.1 m, load within 0.1 m of the target, load angles below 2 deg: from these times on, s.
SETTLED = {"lift-box": (8.0, 20.0, 10.0), "lift-cone": (10.0, 20.0, 12.0)}
WHOLE = (
    "lift-beam-hexa", "lift-box", "lift-box-impulse", "lift-box-printed", "lift-cone", "lift-cone-impulse", "lift-many", "lift-pickup",
    "lift-slung",
)  # fmt: skip


def flown(name, *overrides):
    loaded = load(name, overrides)
    built = build(loaded.scenario)
    return record(loaded, built, fly(built), import_s=0.0)


@pytest.fixture(scope="module")
def flights():
    return {name: flown(name) for name in SETTLED}


@pytest.mark.parametrize("name", SETTLED)
def test_the_seeds_lifts_settle_in_time(flights, name):
    found = flights[name].summary["metrics"]
    formation, place, angle = SETTLED[name]
    assert flights[name].summary["status"] == "finished"
    assert found["formation_settling_s"] <= formation
    assert found["load_position_settling_s"] <= place
    assert found["load_angle_settling_s"] <= angle
    assert found["load_position_error_final_m"] < 0.02
    assert found["tension_min_n"] >= 0.0
    assert found["slack_time_s"] == 0.0
    assert found["vehicle_distance_min_m"] > 0.5
    assert found["rotor_disc_clearance_min_m"] > 0.1
    assert found["energy_drift_rel"] < 1e-5
    assert {"tension_max_n", "thrust_max_n", "vehicle_thrust_max_n", "formation_error_final_m"} <= set(found)


def test_hover_at_the_end_carries_the_weight(flights):
    """At rest the cables carry the load, and the rotors everything."""
    data, load_mass, total = flights["lift-box"].dataset, 2.0 + 4 * 0.01, 2.0 + 4 * (0.755 + 0.05)
    lower = data["cable_tension"].isel(time=-1, segment=-1).values
    np.testing.assert_allclose(lower.sum(), load_mass * 9.81, rtol=2e-3)
    np.testing.assert_allclose(data["rotor_thrust"].isel(time=-1).values.sum(), total * 9.81, rtol=2e-3)


@pytest.mark.slow
def test_a_push_shakes_the_cone_more_than_the_box():
    """Figure 8 of arXiv 2305.09175."""

    def largest_angle(name):
        data = flown(name).dataset
        after = data["attitude"].sel(body=name.split("-")[1]).where(data["time"] > 12.5, drop=True).values
        return np.degrees(2 * np.arcsin(np.linalg.norm(after[:, 1:3], axis=1))).max()

    assert largest_angle("lift-box-impulse") < largest_angle("lift-cone-impulse")


@pytest.mark.slow
def test_the_printed_gains_do_not_carry_the_load():
    summary = flown("lift-box-printed").summary
    assert summary["status"] == "limit"


# Largest position error, m, and largest tension, N: a little above what they are.
LONG = {"lift-slung": (0.25, 4.0), "lift-beam-hexa": (0.25, 8.0), "lift-many": (0.25, 8.0), "lift-pickup": (0.3, 14.0)}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_the_other_lifts_to_their_end(name):
    summary = flown(name).summary
    found, (error, tension) = summary["metrics"], LONG[name]
    assert summary["status"] == "finished"
    assert found["position_error_max_m"] < error
    assert found["tension_max_n"] < tension
    assert found["position_error_final_m"] < 0.1


@pytest.mark.parametrize("name", sorted(set(WHOLE) - set(SETTLED)))
def test_every_lift_can_be_built(name):
    built = build(load(name).scenario)
    assert built.system.bodies.count == len(built.scenario.bodies)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("cables.cable1.upper='uav9'", ["cables.cable1.upper", "no body of this name", "uav"]),
        ("cables.cable1.lower='uav1'", ["cables.cable1.lower", "same body"]),
        ("cables.cable1.lower_point='e'", ["cables.cable1.lower_point", "no point of this name"]),
        ("cables.cable1.length=-1", ["cables.cable1.length", "> 0"]),
        ("cables.cable1.segments=0", ["cables.cable1.segments", ">= 1"]),
        ("cables.cable1.on_ground=true", ["cables.cable1.on_ground", "environment.ground"]),
        ("cables.cable1.material.stiffness=nan", ["cables.cable1.material.stiffness", "finite"]),
        ("cables.cable2.like='cable7'", ["cables.cable2.like", "no cable of this name"]),
        ("cables.cable1.like='cable2'", ["like", "circle"]),
        ("loads.box.mass=-2", ["loads.box.mass", "> 0"]),
        ("loads.box.inertia=[1, 1, 5]", ["loads.box.inertia", "no body has such an inertia"]),
        ("loads.uav1={mass=1, inertia=[1,1,1]}", ["loads.uav1", "vehicle of this name"]),
        ("team.load='bx'", ["team.load", "did you mean 'box'?"]),
        ("team.edges=[['uav1', 'uav2'], ['uav3', 'uav4']]", ["team.edges", "do not connect"]),
        ("team.edges=[['uav1', 'uav1']]", ["team.edges[0]", "itself"]),
        ("vehicles.uav1.control={kind='geometric'}", ["vehicles.uav1.control", "flown by [team]"]),
        ("vehicles.uav1.initial.over='cable2'", ["vehicles.uav1.initial.over", "uav1 at its upper end"]),
        ("vehicles.uav1.initial.position=[3, 0, 0]", ["vehicles.uav1.initial.position", "cable's length"]),
        ("events=[{kind='cut', time=1, cable='cable9'}]", ["events[0].cable", "did you mean"]),
        ("events=[{kind='winch', time=1, cable='cable1', length=2}]", ["events[0].cable", "no winch"]),
        ("run.accuracy=1e-3", ["run.accuracy", "auto"]),
    ],
)
def test_mistakes_are_refused(change, parts):
    with pytest.raises(ScenarioError) as caught:
        load("lift-box", [change])
    for part in parts:
        assert part in str(caught.value)


def test_loads_by_shape_parts_and_numbers():
    from skycrane.scenario.lift import rigid_of

    text = """
schema_version = "1"
name = "cargo"
[vehicle]
model = "tutorial-quad"
[loads.cone]
mass = 2
shape = { kind = "cone", radius = 1, height = 3, axis = "x" }
[loads.dumbbell]
parts = [
    { mass = 1, shape = { kind = "sphere", radius = 0.1 }, position = [-1, 0, 0] },
    { mass = 3, shape = { kind = "sphere", radius = 0.1 }, position = [1, 0, 0] },
]
"""
    spec = loads(text).scenario.loads
    np.testing.assert_allclose(np.diag(rigid_of(spec["cone"]).inertia_B), [0.6, 0.975, 0.975])
    both = rigid_of(spec["dumbbell"])
    np.testing.assert_allclose([both.mass, *both.com_B], [4, 0.5, 0, 0])
    own = 0.4 * 0.1**2
    np.testing.assert_allclose(np.diag(both.inertia_B), [4 * own, 4 * own + 0.75 * 4, 4 * own + 0.75 * 4])
