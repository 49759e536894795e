"""One HTML file that replays a run in 3-D in any browser, with no network.

The page is viser's own client with a recording inside. A content security policy, written into the page, forbids
the browser every request that leaves it, so that "offline" is enforced and not merely true by luck.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from skycrane.viz.dataset import open_result
from skycrane.viz.frames import FRAME_RATE, Frames, frames_of
from skycrane.viz.legend import legend_html, title_html
from skycrane.viz.scene import RunScene
from skycrane.viz.server import start_server, stop_server, without_audience

if TYPE_CHECKING:
    import xarray as xr

# The client unpacks itself from text (inline script, WebAssembly, workers made from blobs); nothing comes from a host.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; worker-src blob: data:; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; connect-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def save_replay(dataset: xr.Dataset | str | Path, path: str | Path, *, frame_rate: float = FRAME_RATE) -> Path:
    """Write a self-contained page that plays the run at `frame_rate` (Hz of wall time) whatever its sample rate.

    `path` may be a directory, which then gets `replay.html`. Returns the path of the page.
    """
    frames = frames_of(open_result(dataset), frame_rate=frame_rate)
    path = Path(path)
    if path.is_dir():
        path = path / "replay.html"
    path.write_text(replay_html(frames), encoding="utf-8")
    return path


def replay_html(frames: Frames) -> str:
    """The page as text. viser records only from a server, so one runs on a free loopback port for a moment."""
    server = start_server()
    try:
        scene = RunScene(server, frames)
        recording = server.get_scene_serializer()
        without_audience(server)
        for index in range(len(frames.time)):
            scene.show(index)
            recording.insert_sleep(frames.interval)
        page = recording.as_html()
    finally:
        stop_server(server)
    return _dressed(page, frames, scene)


def _dressed(page: str, frames: Frames, scene: RunScene) -> str:
    """viser's page with our title, the legend and the content policy."""
    head = f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">'
    # The pointer passes through, so that the legend never blocks a drag of the camera.
    overlay = (
        f'<div style="position:fixed;top:0.8em;right:0.8em;z-index:5;pointer-events:none;max-width:22em;'
        f"padding:0.7em 0.9em;border-radius:0.4em;background:rgba(255,255,255,0.85);color:#222;"
        f'font:14px/1.45 system-ui,sans-serif;box-shadow:0 1px 4px rgba(0,0,0,0.2)">'
        f"{title_html(frames)}{legend_html(scene)}"
        f'<div style="opacity:0.65;margin-top:0.5em">drag to turn, right drag to move, wheel to zoom, space to pause'
        f"</div></div>"
    )
    page = page.replace("<head>", f"<head>\n    {head}", 1)
    page = page.replace("<title>Viser</title>", f"<title>{escape(frames.title)}</title>", 1)
    # From the end: the client's own code, earlier in the page, also speaks of `</body>`.
    before, after = page.rsplit("</body>", 1)
    return f"{before}{overlay}\n  </body>{after}"
