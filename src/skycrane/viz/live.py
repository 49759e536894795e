"""The same scene as in the replay page, served live, with a time slider: what `skycrane view` opens."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skycrane.viz.dataset import open_result
from skycrane.viz.frames import FRAME_RATE, Frames, frames_of
from skycrane.viz.legend import legend_html, title_html
from skycrane.viz.scene import RunScene
from skycrane.viz.server import LOOPBACK, is_loopback, port_of, start_server, stop_server

if TYPE_CHECKING:
    import xarray as xr

PADDED = '<div style="padding:0 0.8em;font-size:0.9em">{}</div>'
SPEEDS = {"0.1x": 0.1, "0.25x": 0.25, "0.5x": 0.5, "1x": 1.0, "2x": 2.0, "4x": 4.0, "8x": 8.0}


class Viewer:
    """A running viewer. Close it, or use it in a `with` statement."""

    def __init__(self, frames: Frames, host: str, port: int | None) -> None:
        self.frames = frames
        self._server = start_server(host, port, label="Skycrane")
        self.url = f"http://{host}:{port_of(self._server)}"
        self._scene = RunScene(self._server, frames)
        self._scene.show(0)
        self._lock = threading.Lock()
        self._shown = 0
        self._elapsed = 0.0  # s since the first frame, on the clock of the run
        self._playing = len(frames.time) > 1
        self._add_controls()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._play, name="skycrane-viewer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def time(self) -> float:
        """Time of the frame shown, s, on the clock of the run."""
        return float(self.frames.time[self._shown])

    @property
    def playing(self) -> bool:
        """Whether time runs."""
        return self._playing

    def play(self) -> None:
        """Let time run, from the start again if it had come to the end."""
        with self._lock:
            if self._elapsed >= self._duration:
                self._elapsed = 0.0
            self._playing = self._duration > 0.0
        self._label_button()

    def pause(self) -> None:
        """Hold the frame shown."""
        with self._lock:
            self._playing = False
        self._label_button()

    def seek(self, at: float) -> None:
        """Show the frame nearest to time `at`, s; clamped to the run."""
        with self._lock:
            self._elapsed = float(np.clip(at - self.frames.time[0], 0.0, self._duration))
            self._show_elapsed()

    def wait(self) -> None:
        """Return when the viewer is closed."""
        self._closed.wait()

    def close(self) -> None:
        """Stop playing and close the server; does nothing the second time."""
        if not self._closed.is_set():
            self._closed.set()
            self._thread.join()
            stop_server(self._server)

    @property
    def _duration(self) -> float:
        return float(self.frames.time[-1] - self.frames.time[0])

    def _add_controls(self) -> None:
        gui, frames = self._server.gui, self.frames
        gui.configure_theme(show_share_button=False, show_logo=False)
        gui.add_html(PADDED.format(title_html(frames)))
        end = float(frames.time[-1]) if len(frames.time) > 1 else float(frames.time[0]) + 1.0
        self._slider: Any = gui.add_slider("Time (s)", min=float(frames.time[0]), max=end, step=0.001, initial_value=float(frames.time[0]))
        self._button = gui.add_button("Pause")
        self._speed = gui.add_dropdown("Speed", tuple(SPEEDS), initial_value="1x")
        self._loop = gui.add_checkbox("Loop", initial_value=True)
        gui.add_html(PADDED.format(legend_html(self._scene)))
        self._label_button()

        @self._slider.on_update
        def _(event: Any) -> None:
            # The clock moves the slider too; only a visitor's hand has a client behind it.
            if event.client is not None:
                self.pause()
                self.seek(float(self._slider.value))

        @self._button.on_click
        def _(_: Any) -> None:
            if self._playing:
                self.pause()
            else:
                self.play()

    def _label_button(self) -> None:
        self._button.label = "Pause" if self._playing else "Play"

    def _show_elapsed(self) -> None:
        interval = self.frames.interval
        index = round(self._elapsed / interval) if interval > 0.0 else 0
        index = min(index, len(self.frames.time) - 1)
        if index != self._shown:
            with self._server.atomic():
                self._scene.show(index)
            self._shown = index

    def _play(self) -> None:
        last = time.monotonic()
        while not self._closed.wait(1.0 / FRAME_RATE):
            now = time.monotonic()
            ended = False
            with self._lock:
                if self._playing:
                    self._elapsed += (now - last) * SPEEDS[self._speed.value]
                    if self._elapsed >= self._duration:
                        ended = not self._loop.value
                        self._elapsed = self._duration if ended else 0.0
                    self._show_elapsed()
                    self._slider.value = round(self.time, 3)
            last = now
            if ended:
                self.pause()


def open_viewer(source: xr.Dataset | str | Path, host: str = LOOPBACK, port: int | None = None) -> Viewer:
    """Start a viewer of a data set, result file or result directory, and return at once.

    Without a `port` any free one is taken. A `host` that others can reach is allowed, with a warning printed: viser
    has no password, so whoever reaches the port sees the run and can move its slider.
    """
    frames = frames_of(open_result(source))
    viewer = Viewer(frames, host, port)
    if not is_loopback(host):
        print(
            f"WARNING: {host} is not a loopback address. Anyone who can reach this port can watch this run and move "
            f"its slider, without a password. Use {LOOPBACK} unless you mean that.",
            flush=True,
        )
    return viewer


def view(source: xr.Dataset | str | Path, host: str = LOOPBACK, port: int | None = None) -> None:
    """Open a viewer, print its address, and serve until interrupted."""
    with open_viewer(source, host, port) as viewer:
        print(f"{viewer.frames.title}: {viewer.url}  (stop with Ctrl-C)", flush=True)
        try:
            viewer.wait()
        except KeyboardInterrupt:
            print("closed")
