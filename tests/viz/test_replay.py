"""The replay page and the live viewer, without a browser: what is in the page, what moves, who can reach it."""

import json
import re
import socket
import threading
import urllib.request

import numpy as np
import pytest

from skycrane.viz import open_viewer, save_replay, view
from skycrane.viz.frames import MAX_POSES, frame_times, frames_of
from skycrane.viz.replay import CONTENT_POLICY
from skycrane.viz.scene import RunScene
from skycrane.viz.server import is_loopback, start_server, stop_server


@pytest.fixture
def server():
    running = start_server()
    yield running
    stop_server(running)


@pytest.mark.parametrize("name", ["quadrotor", "hexarotor_with_load", "swarm"])
def test_the_page_is_one_small_file(name, request, tmp_path, capfd):
    path = save_replay(request.getfixturevalue(name), tmp_path)
    assert path == tmp_path / "replay.html"
    assert [entry.name for entry in tmp_path.iterdir()] == ["replay.html"]
    assert 500_000 < path.stat().st_size < 5_000_000
    assert capfd.readouterr().out == "", "viser must not speak"


def test_the_page_loads_nothing_from_anywhere(quadrotor, tmp_path):
    page = save_replay(quadrotor, tmp_path / "page.html").read_text(encoding="utf-8")
    for attribute in ("src", "href", "action", "srcset", "data-src"):
        for value in re.findall(rf"<[^>]*\s{attribute}\s*=\s*[\"']([^\"']*)", page):
            assert value.startswith("data:"), value[:80]
    # The one address in the page outside the packed client is the name of the SVG vocabulary, which nothing fetches.
    assert set(re.findall(r"https?://[\w./-]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|<iframe|<link[^>]+stylesheet", page)


def test_the_page_forbids_the_browser_to_leave_it(quadrotor, tmp_path):
    page = save_replay(quadrotor, tmp_path / "page.html").read_text(encoding="utf-8")
    policy = page.index(f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">')
    assert policy < page.index("<script"), "the policy must stand before any script"
    rules = dict(rule.strip().split(" ", 1) for rule in CONTENT_POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    sources = {source for rule in rules.values() for source in rule.split()}
    assert sources <= {"'none'", "'unsafe-inline'", "'unsafe-eval'", "data:", "blob:"}


def test_text_from_the_file_cannot_become_markup(quadrotor, tmp_path):
    hostile = quadrotor.assign_attrs(scenario="<script>alert(1)</script>", status="</div><img src=x>")
    page = save_replay(hostile, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<img src=x>" not in page
    assert "<title>&lt;script&gt;alert(1)" in page


def test_the_legend_says_what_is_shown(hexarotor_with_load, quadrotor, tmp_path):
    page = save_replay(hexarotor_with_load, tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("box on two cables", "counter-clockwise", "turns clockwise", "reference", "cable tension", "per metre of arrow"):
        assert words in page
    wall = json.dumps({"bodies": {}, "surface": {"point": [1, 0, 0], "normal": [-1, 0, 0], "press": True}})
    alone = quadrotor[["position", "attitude"]]
    assert "wall" in save_replay(alone.assign_attrs(scene=wall), tmp_path / "page.html").read_text(encoding="utf-8")
    page = save_replay(alone, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "cable tension" not in page
    assert "per metre of arrow" not in page


@pytest.mark.parametrize("rate", [7.0, 100.0, 1000.0])
def test_frames_come_at_the_screen_rate_whatever_the_sample_rate(quadrotor, rate):
    time = np.linspace(0.0, 10.0, int(10 * rate) + 1)
    frames = frames_of(quadrotor.interp(time=time))
    assert frames.interval == pytest.approx(1.0 / 30.0, rel=1e-6)
    assert len(frames.time) == 301
    assert np.allclose(np.linalg.norm(frames.attitude_WB, axis=-1), 1.0)


def test_long_runs_are_thinned_and_short_ones_are_not():
    assert len(frame_times(0.0, 1e5, 30.0, MAX_POSES)) == MAX_POSES
    assert np.array_equal(frame_times(4.0, 4.0, 30.0, MAX_POSES), [4.0])
    assert len(frame_times(0.0, 1e-3, 30.0, MAX_POSES)) == 2
    with pytest.raises(ValueError, match="frame_rate"):
        frame_times(0.0, 1.0, 0.0, 10)


def test_a_run_is_shown_up_to_its_last_finite_sample(quadrotor):
    broken = quadrotor.copy(deep=True)
    broken["position"].values[400:] = np.nan
    assert frames_of(broken).time[-1] == pytest.approx(3.99)
    broken["position"].values[:] = np.nan
    with pytest.raises(ValueError, match="nothing to show"):
        frames_of(broken)
    with pytest.raises(ValueError, match="`attitude`"):
        frames_of(quadrotor.drop_vars("attitude"))


def test_an_unknown_shape_is_named(quadrotor):
    scene = json.dumps({"bodies": {"uav": {"shapes": [{"kind": "torus"}]}}})
    with pytest.raises(ValueError, match=r"'torus'.*known: box"):
        frames_of(quadrotor.assign_attrs(scene=scene))


def test_a_run_without_a_scene_or_with_one_sample_has_a_page(quadrotor, tmp_path):
    plain = quadrotor.drop_attrs(deep=False)
    assert save_replay(plain, tmp_path / "plain.html").stat().st_size > 500_000
    assert save_replay(quadrotor.isel(time=[0]), tmp_path / "still.html").stat().st_size > 500_000


def test_bodies_arrows_markers_and_cables_go_where_the_run_went(hexarotor_with_load, server):
    frames = frames_of(hexarotor_with_load)
    scene = RunScene(server, frames)
    for index in (0, 150, 300, 20):
        scene.show(index)
        for body, handle in enumerate(scene._bodies):
            assert np.allclose(handle.position, frames.position_W[index, body], atol=1e-3)
            assert np.allclose(handle.wxyz, frames.attitude_WB[index, body], atol=1e-4)
        ((rotors, arrows),) = scene._thrusts
        assert np.allclose(arrows.batched_scales[:, 2], scene.thrust_scale * frames.thrust[index, rotors], atol=1e-3)
        assert np.allclose(scene._markers[0][1].position, frames.reference_W[index, 0], atol=1e-3)
        assert scene._cables.points.shape == (5 + 3, 2, 3)
        assert np.allclose(scene._cables.points[0, 0], frames.cable_node_W[index, 0, 0], atol=1e-3)
        trail = scene._trail.points.reshape(2, -1, 2, 3)
        assert np.allclose(trail[:, -1, 1], frames.position_W[index], atol=1e-3)
        assert np.array_equal(trail[:, 1:, 0], trail[:, :-1, 1]), "a trail has no gaps"


def test_an_events_label_shows_for_a_while_after_it(quadrotor, server):
    scene = RunScene(server, frames_of(quadrotor))
    seen = []
    for index in (0, 89, 90, 140, 160, 200):
        scene.show(index)
        seen.append([label.visible for label in scene._labels])
    assert seen == [[False, False], [False, False], [True, False], [True, False], [False, False], [False, True]]


def test_a_stopped_rotor_has_no_arrow(quadrotor, server):
    broken = quadrotor.copy(deep=True)
    broken["rotor_thrust"].values[:, 1] = 0.0
    scene = RunScene(server, frames_of(broken))
    scene.show(100)
    lengths = scene._thrusts[0][1].batched_scales[:, 2]
    assert lengths[1] < 1e-3 < 0.1 < lengths[0]


def test_a_reference_that_is_undefined_is_hidden(quadrotor, server):
    partly = quadrotor.copy(deep=True)
    partly["reference_position"].values[:500] = np.nan
    scene = RunScene(server, frames_of(partly))
    scene.show(30)
    assert not scene._markers[0][1].visible
    scene.show(250)
    assert scene._markers[0][1].visible


def test_a_recording_starts_with_the_first_frame(quadrotor, server):
    frames = frames_of(quadrotor)
    scene = RunScene(server, frames)
    recording = server.get_scene_serializer()
    scene.show(0)
    first = [message for _, message in recording._messages if "updates" in message]
    assert {key for message in first for key in message["updates"]} >= {"points", "batched_scales"}
    recording.serialize()


def test_the_live_viewer_plays_pauses_and_seeks(hexarotor_with_load, capfd):
    with open_viewer(hexarotor_with_load) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        assert b"<html" in urllib.request.urlopen(viewer.url, timeout=10).read()[:200]
        viewer.pause()
        viewer.seek(4.0)
        assert viewer.time == pytest.approx(4.0, abs=0.02)
        assert not viewer.playing
        viewer.seek(1e9)
        assert viewer.time == pytest.approx(10.0)
        viewer.play()
        assert viewer.playing
        moved = threading.Event()
        for _ in range(200):
            if 0.0 < viewer.time < 9.0:
                break
            moved.wait(0.05)
        assert 0.0 < viewer.time < 9.0, "play at the end starts again"
        viewer.seek(-5.0)
    viewer.close()
    assert capfd.readouterr().out == ""


def test_two_viewers_get_ports_of_their_own_and_close_them(quadrotor):
    with open_viewer(quadrotor) as one, open_viewer(quadrotor) as two:
        assert one.url != two.url
        port = int(one.url.rpartition(":")[2])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_only_a_host_that_others_reach_brings_a_warning(quadrotor, capfd, monkeypatch):
    open_viewer(quadrotor).close()
    assert "WARNING" not in capfd.readouterr().out
    # Bound to loopback all the same: a test opens no door.
    monkeypatch.setattr("skycrane.viz.live.is_loopback", lambda host: False)
    open_viewer(quadrotor).close()
    assert "without a password" in capfd.readouterr().out


def test_view_prints_its_address_and_ends_on_interrupt(quadrotor, capfd, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("skycrane.viz.live.Viewer.wait", interrupt)
    view(quadrotor)
    out = capfd.readouterr().out
    assert re.search(r"circle in still air: http://127\.0\.0\.1:\d+", out)
    assert out.endswith("closed\n")


@pytest.mark.parametrize(
    ("host", "loopback"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("192.168.1.5", False), ("example.org", False)]
)
def test_loopback_addresses_are_known(host, loopback):
    assert is_loopback(host) is loopback


def test_a_busy_port_or_a_strange_host_is_an_error_not_a_wait(quadrotor):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(OSError, match="Choose another port"):
            open_viewer(quadrotor, port=holder.getsockname()[1])
    with pytest.raises(OSError, match="cannot serve at"):
        open_viewer(quadrotor, host="no.such.host.invalid")


def test_a_visitor_cannot_publish_the_viewer(server):
    assert server.request_share_url() is None
    assert server._share_tunnel is None
