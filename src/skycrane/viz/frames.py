"""A result data set resampled at the rate of the screen: what the replay page and the live viewer both show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skycrane.viz.dataset import TimedLabel, events_of, names_of, scene_of, times_of, title_of
from skycrane.viz.geometry import Array, interpolate, shape_radius, slerp
from skycrane.viz.sea import tether_nodes

if TYPE_CHECKING:
    import xarray as xr

FRAME_RATE = 30.0  # Hz of wall time; half of a usual screen's 60 Hz, so that every frame is shown equally long
MAX_POSES = 15_000  # frames times bodies: bounds the size of a page, and the time to write it, on long runs


@dataclass(frozen=True)
class Frames:
    """One run, F frames evenly spaced in time. World axes are east, north, up; lengths in m, forces in N."""

    title: str
    status: str
    time: Array  # (F,) s, the clock of the run
    bodies: tuple[str, ...]
    position_W: Array  # (F, nb, 3)
    attitude_WB: Array  # (F, nb, 4) unit quaternions, scalar first
    tracked: tuple[str, ...]
    reference_W: Array  # (F, k, 3), k = 0 where the run has no reference; NaN where a reference is not defined
    rotors: tuple[str, ...]
    thrust: Array  # (F, nr)
    cable_node_W: Array  # (F, nc, nodes, 3), NaN beyond a cable's last node
    cable_tension: Array  # (F, nc, nodes - 1), zero where it is unknown
    events: tuple[TimedLabel, ...]
    scene: dict[str, Any]

    @property
    def interval(self) -> float:
        """Time from one frame to the next, s; 0 for a single frame."""
        return float(self.time[1] - self.time[0]) if len(self.time) > 1 else 0.0

    def body_radius(self, name: str) -> float:
        """Radius in m of the sphere about a body's reference point that holds its shapes; 0 without shapes."""
        return max((shape_radius(shape) for shape in self.scene["bodies"][name].get("shapes", [])), default=0.0)

    @property
    def size(self) -> float:
        """Diagonal in m of the box that holds all motion and the bodies themselves."""
        points = self.position_W.reshape(-1, 3)
        return float(np.linalg.norm(np.ptp(points, axis=0))) + 2.0 * max(map(self.body_radius, self.bodies))


def frames_of(dataset: xr.Dataset, *, frame_rate: float = FRAME_RATE) -> Frames:
    """Resample a result data set at `frame_rate` (Hz): positions linearly, attitudes along the shorter great arc.

    A run that ended in numbers that are not finite is shown up to its last finite sample.
    """
    for variable in ("time", "position", "attitude"):
        if variable not in dataset:
            raise ValueError(f"the result has no `{variable}`: a viewer needs time, position and attitude")
    bodies = names_of(dataset, "position", "body")
    position = np.asarray(dataset["position"].transpose("time", "body", "axis").values, dtype=float)
    attitude = np.asarray(dataset["attitude"].transpose("time", "body", "quaternion").values, dtype=float)
    time = times_of(dataset)
    finite = np.all(np.isfinite(position), axis=(1, 2)) & np.all(np.isfinite(attitude), axis=(1, 2))
    length = len(time) if np.all(finite) else int(np.argmin(finite))
    if not bodies or length == 0:
        raise ValueError("the result holds no finite sample of any body: nothing to show")
    time = time[:length]
    at = frame_times(time[0], time[-1], frame_rate, MAX_POSES // len(bodies))

    def resampled(variable: str, *dimensions: str) -> Array | None:
        if variable not in dataset:
            return None
        values = np.asarray(dataset[variable].transpose("time", *dimensions).values, dtype=float)
        return interpolate(time, values[:length], at)

    reference = resampled("reference_position", "tracked", "axis")
    thrust = resampled("rotor_thrust", "rotor")
    nodes = resampled("cable_node_position", "cable", "node", "axis")
    tension = resampled("cable_tension", "cable", "segment")
    if nodes is None:
        nodes = np.empty((len(at), 0, 2, 3))
    segments = (len(at), nodes.shape[1], nodes.shape[2] - 1)
    if tension is None or tension.shape != segments:
        tension = np.zeros(segments)
    scene, place = scene_of(dataset), interpolate(time, position[:length], at)
    turned = slerp(time, attitude[:length], at)
    if tethers := scene.get("tethers"):
        lines = tether_nodes(tethers, bodies, place, turned)
        pulls = [resampled(f"tether_{tether['name']}_tension", f"tether_{tether['name']}_row") for tether in tethers]
        taut = np.stack([np.zeros(len(at)) if pull is None else pull[:, 0] for pull in pulls], 1)
        nodes, tension = _beside(nodes, lines), _beside(tension, np.repeat(taut[:, :, None], lines.shape[2] - 1, 2))
    return Frames(
        title=title_of(dataset),
        status=str(dataset.attrs.get("status", "")),
        time=at,
        bodies=bodies,
        position_W=place,
        attitude_WB=turned,
        tracked=names_of(dataset, "reference_position", "tracked"),
        reference_W=np.empty((len(at), 0, 3)) if reference is None else reference,
        rotors=names_of(dataset, "rotor_thrust", "rotor"),
        thrust=np.empty((len(at), 0)) if thrust is None else np.nan_to_num(thrust),
        cable_node_W=nodes,
        cable_tension=np.nan_to_num(tension),
        events=tuple(event for event in events_of(dataset) if event.time <= time[-1]),
        scene=scene,
    )


def _beside(one: Array, other: Array) -> Array:
    """Two sets of cables (F, cables, places, ...) as one, padded with NaN."""
    if not one.shape[1]:
        return other
    places = max(one.shape[2], other.shape[2])
    pads = [np.pad(x, [(0, 0), (0, 0), (0, places - x.shape[2])] + [(0, 0)] * (x.ndim - 3), constant_values=np.nan) for x in (one, other)]
    return np.concatenate(pads, 1)


def frame_times(start: float, end: float, frame_rate: float, max_frames: int) -> Array:
    """Evenly spaced times (F,) from `start` to `end` s, about `1/frame_rate` apart, `max_frames` at most."""
    if not frame_rate > 0.0:
        raise ValueError(f"frame_rate must be positive, got {frame_rate}")
    if end <= start:
        return np.array([start])
    count = round((end - start) * frame_rate) + 1
    return np.linspace(start, end, int(np.clip(count, 2, max(2, max_frames))))
