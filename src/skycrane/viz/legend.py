"""The words that go with the 3-D scene: title, what the colours mean, the scale of the arrows. Plain HTML."""

from __future__ import annotations

from html import escape

from skycrane.viz.frames import Frames
from skycrane.viz.scene import CLOCKWISE, COUNTER_CLOCKWISE, REFERENCE, RGB, SLACK, TAUT, THRUST, RunScene
from skycrane.viz.tool import WALL


def title_html(frames: Frames) -> str:
    """Title of the run and one line about it; all text from the file is escaped."""
    bodies = len(frames.bodies)
    facts = [f"{frames.time[-1] - frames.time[0]:.4g} s", frames.bodies[0] if bodies == 1 else f"{bodies} bodies"]
    if frames.time[0] != 0.0:
        facts.append(f"from t = {frames.time[0]:.4g} s")
    if frames.status:
        facts.append(f"status: {frames.status}")
    return (
        f'<div style="font-size:1.15em;font-weight:600">{escape(frames.title)}</div>'
        f'<div style="opacity:0.75;margin-bottom:0.5em">{escape(" · ".join(facts))}</div>'
    )


def legend_html(scene: RunScene) -> str:
    """One line for each kind of thing that the scene shows."""
    frames = scene.frames
    rows = []
    spins = {
        1 if shape.get("spin", 1) > 0 else -1
        for name in frames.bodies
        for shape in frames.scene["bodies"][name].get("shapes", [])
        if shape["kind"] == "rotor"
    }
    if 1 in spins:
        rows.append((_swatch(COUNTER_CLOCKWISE, round_=True), "rotor, turns counter-clockwise"))
    if -1 in spins:
        rows.append((_swatch(CLOCKWISE, round_=True), "rotor, turns clockwise"))
    if scene.thrust_scale > 0.0:
        rows.append((_swatch(THRUST), f"thrust, {_round(1.0 / scene.thrust_scale)} N per metre of arrow"))
    if frames.reference_W.size:
        rows.append((_dashed(REFERENCE), "reference"))
    if frames.scene.get("surface"):
        rows.append((_swatch(WALL), "wall"))
    if scene.max_tension > 0.0:
        ramp = f"linear-gradient(90deg,rgb{SLACK},rgb{TAUT})"
        rows.append((_bar(ramp), f"cable tension, 0 to {_round(scene.max_tension)} N"))
    rows.append((_cell(), f"grid: {scene.cell:g} m"))
    if scene.enlargement > 1.0:
        rows.append((_cell(), f"vehicle drawn {scene.enlargement:g} times as large"))
    lines = (f'<div style="display:flex;align-items:center;gap:0.6em">{mark}<span>{text}</span></div>' for mark, text in rows)
    return "".join(lines)


def _round(value: float) -> str:
    return f"{value:.2g}" if value < 100.0 else f"{value:.0f}"


def _bar(background: str) -> str:
    return f'<span style="display:inline-block;width:1.6em;height:0.3em;background:{background}"></span>'


def _swatch(color: RGB, *, round_: bool = False) -> str:
    if not round_:
        return _bar(f"rgb{color}")
    disc = f"display:inline-block;width:0.9em;height:0.9em;border-radius:50%;background:rgb{color};opacity:0.75"
    return f'<span style="{disc};margin:0 0.35em"></span>'


def _dashed(color: RGB) -> str:
    return f'<span style="display:inline-block;width:1.6em;border-top:2px dashed rgb{color}"></span>'


def _cell() -> str:
    return '<span style="display:inline-block;width:0.8em;height:0.8em;border:1px solid #aaa;margin:0 0.35em"></span>'
