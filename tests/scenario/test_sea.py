"""Water, buoys, tethers and towing in scenario files: the bundled ones do what they say, and mistakes are explained."""

import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.core.system import System
from skycrane.elements.deck import DeckContact
from skycrane.environment.environment import Environment
from skycrane.scenario import ScenarioError, load
from skycrane.scenario.build import build
from skycrane.scenario.sea import hydrostatics_of, water_of
from skycrane.viz.plots import PLOTS
from skycrane.viz.sea import sea_lines, surface_height, tether_nodes
from tests.scenario.test_lift import flown

# Largest surge error [m/s], standard deviation of the elevation error [deg], and what the tension stays below [N].
WHOLE = {
    "buoy-calm": (0.015, 0.1, 40.0), "buoy-waves": (0.10, 0.5, 60.0), "buoy-storm": (0.6, 1.5, 80.0), "buoy-reposition": (0.02, 0.1, 25.0),
    "buoy-rescue": (1.4, 0.3, 60.0), "buoy-team": (1.5, 0.2, 40.0), "combine-ship-lift": (None, None, 40.0),
}  # fmt: skip


@pytest.fixture(scope="module")
def waves():
    return flown("buoy-waves", "run.duration=45.0")


def test_towing_in_waves_through_a_file(waves):
    found = waves.summary["metrics"]
    assert waves.summary["status"] == "finished"
    assert found["surge_error_std_mps"] < 0.04
    assert found["surge_error_max_mps"] < 0.16
    assert found["elevation_error_std_deg"] < 0.5
    assert found["tension_min_n"] > 5
    assert found["tension_max_n"] < 60
    assert found["slack_time_s"] == 0.0
    assert 14 < found["taut_from_s"] < 18
    assert 0.2 < found["immersed_fraction_max"] < 1


def test_the_result_tells_of_towing_and_of_the_sea(waves):
    data = waves.dataset
    assert data["surge_error"].attrs["units"] == "m/s"
    # The surface in the result is the one that the viewer draws.
    import json

    water = json.loads(data.attrs["scene"])["water"]
    p = data["position"].sel(body="buoy").values
    k = 1500
    height = surface_height(water, float(data["time"][k]), p[k : k + 1, 0], p[k : k + 1, 1])
    np.testing.assert_allclose(height[0], data["buoy_buoy_water_level"].values[k], atol=1e-9)
    assert sea_lines(water, 1.0, p[k, :2], 2.0).shape == (144, 2, 3)
    assert {"towing.png", "floating.png"} <= {name for name, plot in PLOTS.items() if name in ("towing.png", "floating.png") and plot(data)}


def test_a_slack_tether_is_drawn_about_as_long_as_it_is():
    tether = [{"name": "a", "bodies": ["x", "y"], "points": [[0, 0, 0], [0, 0, 0.5]], "length": 5.0}]
    p = np.array([[[0, 0, 0], [3.9, 0, 0]]], dtype=float)
    nodes = tether_nodes(tether, ("x", "y"), p, np.tile([1.0, 0, 0, 0], (1, 2, 1)))[0, 0]
    np.testing.assert_allclose(nodes[-1], [3.9, 0, 0.5])
    np.testing.assert_allclose(np.linalg.norm(np.diff(nodes, axis=0), axis=1).sum(), 5.0, rtol=0.06)


def test_one_file_combines_parts_of_different_systems():
    """Canted hexarotors, elastic ropes, a load on a deck, a moored buoy on waves, wind and a payload controller."""
    run = flown("combine-ship-lift", "run.duration=0.4", "run.step=0.004")
    assert run.summary["status"] == "finished"
    built = build(load("combine-ship-lift").scenario)
    assert set(built.system.bodies.names) == {"fore", "aft", "beam", "ship"}
    assert {"buoy_ship", "deck_ship", "rotors_team"} <= set(built.system.elements)
    assert any(name.startswith("cables") for name in built.system.elements)
    weight = 1.6 * 9.81
    carried = run.dataset["deck_ship_normal_force"].values.sum(-1)
    assert 0.3 * weight < float(carried.max()) < 3.0 * weight
    assert run.summary["metrics"]["energy_drift_rel"] < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WHOLE))
def test_bundled_scenarios_to_their_end(name):
    found = flown(name).summary["metrics"]
    surge, elevation, tension = WHOLE[name]
    if surge is not None:
        assert found["surge_error_max_mps"] < surge
        assert found["elevation_error_std_deg"] < elevation
    assert found["tension_max_n"] < tension


def test_a_buoy_starts_afloat_and_with_the_current():
    scenario = load("buoy-storm").scenario
    built = build(scenario)
    p, v = (np.asarray(x[1]) for x in (built.initial.bodies.p_WB, built.initial.bodies.v_W))
    level = water_of(scenario).surface(jnp.zeros(()), jnp.array(p[0]), jnp.array(p[1]))
    np.testing.assert_allclose(p[2] - float(level), hydrostatics_of(scenario, "buoy").height, atol=1e-9)
    np.testing.assert_allclose(v, [-0.5, 0, 0])


def test_a_load_on_a_deck_is_carried_and_dragged():
    """Action equals reaction, the weight is carried at the depth that the stiffness says, and beyond the edge there is nothing."""
    deck = DeckContact(0, (1,), jnp.zeros((1, 3)), 0.2, jnp.array([1.0, 0.5]))
    bodies = Bodies.create(["ship", "load"], [10.0, 1.0], [[1.0, 1, 1], [0.1, 0.1, 0.1]])
    system = System(bodies, {"deck": deck}, environment=Environment(0.0))
    prepared = system.prepare()

    def pushes(x, v=(0, 0, 0)):
        state = system.initial_state([[0, 0, 0], [x, 0.1, 0.19]], velocity=[[0, 0, 0], v], angular_velocity=[[0.1, 0.2, 0.3], [0, 0, 0]])
        rate = system.dynamics(0.0, state, {}, prepared).bodies
        return np.asarray(rate.v_W) * [[10.0], [1.0]], np.asarray(rate.w_B)

    force, turn = pushes(0.5, (2.0, 0, 0))
    np.testing.assert_allclose(force.sum(0), 0.0, atol=1e-12)
    assert 25 < force[1, 2] < 35  # 3000 N/m times 10 mm, a little more or less with its speed
    assert force[1, 0] == pytest.approx(-0.6 * force[1, 2], rel=0.02)
    assert turn[0, 1] > 0  # the weight pushes the bow down
    assert not pushes(1.1)[0].any()


@pytest.mark.parametrize(
    ("name", "change", "parts"),
    [
        ("buoy-calm", "control.tether=lyne", ("control.tether", "did you mean 'line'?")),
        ("buoy-calm", "tethers.line.lower=bouy", ("tethers.line.lower", "did you mean 'buoy'?")),
        ("buoy-calm", "tethers.line.lower=uav", ("tethers.line.lower", "same body")),
        ("buoy-calm", "buoys.buoy.mass=-1.0", ("buoys.buoy.mass",)),
        ("buoy-calm", 'reference={kind="hover"}', ("reference.kind", "surge_steps")),
        ("buoy-calm", 'control={kind="geometric"}', ("reference.kind", 'kind = "surge"')),
        ("buoy-calm", "reference.speeds=[5.0]", ("reference.speeds", "as many numbers as times")),
        ("buoy-calm", "reference.times=[20.0,10.0]", ("reference.times", "must rise")),
        ("buoy-calm", 'buoys.buoy.hull={kind="sphere",radius=0.3}', ("hull.kind", '"box"')),
        ("buoy-storm", "buoys.buoy.compat=true", ("compat", 'model = "source"')),
        ("buoy-storm", "buoys.buoy.damping_matrix=[[1.0,0.0,0.0,0.0,0.0,0.0],[0.0,1.0]]", ("damping_matrix", "expected 6 rows")),
        ("buoy-storm", "tethers.line.lower_point=bo", ("lower_point", "bow")),
        ("buoy-storm", "environment.water.waves.peak_period=0.0", ("peak_period",)),
        ("buoy-storm", "environment.water.waves.gama=3.0", ("gama", "gamma")),
    ],
)
def test_mistakes_are_explained(name, change, parts):
    with pytest.raises(ScenarioError) as caught:
        load(name, [change])
    for part in parts:
        assert part in str(caught.value)


def test_a_short_row_of_an_added_mass_matrix_is_named():
    """Case 40."""
    rows = [[1.0 if i == j else 0.0 for j in range(6)] for i in range(6)]
    rows[3] = rows[3][:5]
    with pytest.raises(ScenarioError, match=r"added_matrix\[3\].*|added_matrix.*found 5") as caught:
        load("buoy-storm", [f"buoys.buoy.added_matrix={rows}"])
    assert "expected 6 numbers in a row, found 5" in str(caught.value)
