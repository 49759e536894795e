"""The plots: made, valid, complete, and free of global state."""

import json
import struct
import subprocess
import sys

import numpy as np
import pytest

from skycrane.viz import PLOTS, open_result, plot_variable, save_plots

ALWAYS = {"tracking.png", "path.png", "attitude.png", "rotors.png", "energy.png"}


def png_size(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def texts(figure):
    found = [text.get_text() for axis in figure.axes for text in axis.texts]
    return found + [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.parametrize("name", ["quadrotor", "hexarotor_with_load", "swarm"])
def test_every_plot_with_data_is_a_png_of_sensible_size(name, request, tmp_path):
    paths = save_plots(request.getfixturevalue(name), tmp_path / "plots")
    expected = ALWAYS | ({"tension.png", "formation.png", "load.png"} if name == "hexarotor_with_load" else set())
    assert {path.name for path in paths} == expected == {path.name for path in (tmp_path / "plots").iterdir()}
    for path in paths:
        width, height = png_size(path)
        assert 1000 <= width <= 2000
        assert 400 <= height <= 2000
        assert 20_000 < path.stat().st_size < 2_000_000


def test_a_plot_without_data_is_not_made(quadrotor, tmp_path):
    bare = quadrotor[["position", "attitude"]]
    assert {path.name for path in save_plots(bare, tmp_path)} == {"path.png", "attitude.png"}
    assert save_plots(quadrotor[["drag_force"]], tmp_path / "none") == []


def test_axes_carry_units_from_the_attributes(quadrotor):
    figure = PLOTS["tracking.png"](quadrotor)
    assert [axis.get_ylabel() for axis in figure.axes] == ["x, east [m]", "y, north [m]", "z, up [m]", "error norm [m]"]
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert "circle in still air" in figure.get_suptitle()


def test_the_error_drawn_is_the_distance_to_the_reference(quadrotor):
    line = PLOTS["tracking.png"](quadrotor).axes[3].get_lines()[0]
    expected = np.linalg.norm(quadrotor["position"].values[:, 0] - quadrotor["reference_position"].values[:, 0], axis=1)
    assert np.allclose(line.get_ydata(), expected)


def test_the_end_effectors_error_is_that_of_its_tip(quadrotor):
    """By another formula, and without what lies along the normal of a wall that it presses against."""
    tip, normal = np.array([0.3, 0.0, -0.1]), np.array([-1.0, 0.0, 0.0])
    scene = {"bodies": {}, "tools": {"uav": tip.tolist()}, "surface": {"point": [1, 0, 0], "normal": normal.tolist(), "press": True}}
    force = np.linspace(0.0, 5.0, quadrotor.sizes["time"])
    wanted = np.roll(quadrotor["attitude"].values, 5, axis=0)
    dataset = quadrotor.assign_attrs(scene=json.dumps(scene)).assign(
        surface_normal_force=(("time", "surface_tool"), force[:, None]), reference_attitude=(("time", "tracked", "quaternion"), wanted)
    )
    figure = PLOTS["end_effector.png"](dataset)
    assert [axis.get_ylabel() for axis in figure.axes] == ["off along the wall [mm]", "attitude error [°]", "force on the wall [N]"]

    def place(prefix):
        w, *v = dataset[f"{prefix}attitude"].values[:, 0].T
        v = np.array(v).T
        turned = tip + 2 * np.cross(v, np.cross(v, tip) + w[:, None] * tip)
        return dataset[f"{prefix}position"].values[:, 0] + turned

    apart = place("") - place("reference_")
    expected = 1e3 * np.linalg.norm(apart - np.outer(apart @ normal, normal), axis=1)
    np.testing.assert_allclose(figure.axes[0].get_lines()[0].get_ydata(), expected, atol=1e-9)
    np.testing.assert_allclose(figure.axes[2].get_lines()[0].get_ydata(), force)
    assert PLOTS["end_effector.png"](quadrotor) is None


def test_events_are_lines_on_every_axes_and_labels_on_the_first(quadrotor):
    figure = PLOTS["tracking.png"](quadrotor)
    for axis in figure.axes:
        stands = [line.get_xdata()[0] for line in axis.get_lines() if len(line.get_xdata()) == 2]
        assert stands == [3.0, 6.5]
    assert [text.get_text() for text in figure.axes[0].texts] == ["gust", "motor 2 at half thrust"]


def test_labels_of_crowded_events_never_overlap(quadrotor):
    events = [{"time": 4.0 + 0.02 * number, "label": f"event number {number}"} for number in range(40)]
    crowded = quadrotor.assign_attrs(events=json.dumps(events))
    figure = PLOTS["energy.png"](crowded)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) >= 4
    assert not any(a.overlaps(b) for index, a in enumerate(boxes) for b in boxes[:index])
    assert len([line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 2]) == 40


@pytest.mark.parametrize("plot", ["tracking.png", "rotors.png", "attitude.png"])
def test_the_legend_covers_no_data(plot, swarm):
    figure = PLOTS[plot](swarm)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(axis.get_window_extent()) for axis in figure.axes if axis.get_visible())
    assert box.x0 >= 0.0
    assert box.x1 <= figure.bbox.x1


def test_many_rotors_get_one_panel_per_vehicle(swarm, quadrotor):
    figure = PLOTS["rotors.png"](swarm)
    assert [axis.get_title() for axis in figure.axes] == [f"uav{number + 1}" for number in range(16)]
    assert "3 s: gust" in texts(figure)
    assert len(PLOTS["rotors.png"](quadrotor).axes) == 2


def test_an_angle_that_wraps_is_broken_not_crossed(quadrotor):
    yaw = PLOTS["attitude.png"](quadrotor).axes[4].get_lines()[0].get_ydata()
    assert np.count_nonzero(np.isnan(yaw)) == 1
    assert np.nanmax(np.abs(np.diff(yaw))) < 5.0


def test_drift_is_energy_change_less_work(quadrotor):
    line = PLOTS["energy.png"](quadrotor).axes[1].get_lines()[0]
    energy, work = quadrotor["energy"].values, quadrotor["work"].values
    assert np.allclose(line.get_ydata(), energy - energy[0] - work + work[0])


def test_padding_does_not_appear_in_the_tension_plot(hexarotor_with_load):
    axis = PLOTS["tension.png"](hexarotor_with_load).axes[0]
    lines = [line for line in axis.get_lines() if len(line.get_xdata()) > 2]
    assert len(lines) == 2
    assert all(np.all(np.isfinite(line.get_ydata())) for line in lines)


def test_a_run_that_ended_in_nan_still_plots(hexarotor_with_load, tmp_path):
    broken = hexarotor_with_load.copy(deep=True)
    for name in ("position", "attitude", "rotor_speed", "energy", "work", "cable_tension"):
        broken[name].values[500:] = np.nan
    assert len(save_plots(broken, tmp_path)) == 8


def test_any_variable_can_be_plotted_by_name(quadrotor):
    figure = plot_variable(quadrotor, "drag_force")
    assert figure.axes[0].get_ylabel() == "drag force in world axes [N]"
    assert texts(figure)[-3:] == ["uav x", "uav y", "uav z"]
    with pytest.raises(ValueError, match=r"no variable 'lift'.*drag_force"):
        plot_variable(quadrotor, "lift")


def test_malformed_events_are_named(quadrotor):
    with pytest.raises(ValueError, match="events"):
        PLOTS["energy.png"](quadrotor.assign_attrs(events='[{"when": 3}]'))


def test_a_result_is_read_from_its_file_or_its_directory(quadrotor, tmp_path):
    quadrotor.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    assert open_result(tmp_path).identical(open_result(tmp_path / "result.nc"))
    assert len(save_plots(tmp_path, tmp_path)) == 5
    with pytest.raises(FileNotFoundError, match="no result file"):
        open_result(tmp_path / "absent")


def test_importing_the_package_is_cheap_and_plots_leave_pyplot_alone(quadrotor, tmp_path):
    quadrotor.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    program = (
        "import sys, skycrane.viz as viz\n"
        "heavy = {'matplotlib', 'viser', 'h5netcdf', 'xarray', 'jax', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        f"viz.save_plots({str(tmp_path)!r}, {str(tmp_path)!r})\n"
        "assert not {'matplotlib.pyplot', 'jax', 'viser'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
