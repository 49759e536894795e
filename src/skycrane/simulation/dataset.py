"""A run as an xarray data set in the documented result format (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from skycrane import __version__
from skycrane.core.element import Output
from skycrane.core.events import Timeline
from skycrane.core.system import System
from skycrane.simulation.rollout import Run
from skycrane.simulation.samples import Samples, Tracked, sample

if TYPE_CHECKING:
    import xarray as xr

SCHEMA_VERSION = "1"
FRAMES = "world: x east, y north, z up; body: x forward, y left, z up; quaternions scalar first, body to world"

_COORDINATES: dict[str, list[str]] = {"axis": ["x", "y", "z"], "quaternion": ["w", "x", "y", "z"]}


class Table(NamedTuple):
    """What an ``xarray.Dataset`` is made of, in the order of its arguments: plain enough to build without xarray and to send to
    another process."""

    variables: dict[str, Any]
    coordinates: dict[str, Any]
    attributes: dict[str, Any]


def to_dataset(
    run: Run,
    system: System,
    reference: Any = None,
    *,
    tracked: Tracked = None,
    events: Timeline | None = None,
    control_period: float | None = None,
    attributes: Mapping[str, Any] | None = None,
    samples: Samples | None = None,
) -> xr.Dataset:
    """The result of one run.

    Args:
        run, system, reference, tracked, events, control_period: see :func:`skycrane.simulation.samples.sample`.
        attributes: further attributes (``scenario``, ``scenario_hash``, ``seed``, ``scene``, ...); they win over those set here.
        samples: what :func:`sample` returned for this run, to save evaluating it again.

    Returns:
        A data set with ``units`` and ``long_name`` on every variable.  Outputs along ("vehicle", "rotor") of all elements are joined to
        ``rotor_<output>`` with labels ``"uav/1"``, ``"uav/2"``, ...; outputs along "cable" to ``cable_<output>``, padded with NaN; outputs
        along "vehicle" are placed on the ``body`` axis; all others are ``<element>_<output>``.
    """
    import xarray as xr

    if samples is None:
        samples = sample(run, system, reference, tracked=tracked, events=events, control_period=control_period)
    return xr.Dataset(*table_of(run, system, samples, attributes))


def table_of(run: Run, system: System, samples: Samples, attributes: Mapping[str, Any] | None = None) -> Table:
    """The parts of the data set that :func:`to_dataset` returns."""
    names = list(system.bodies.names)
    build = _Builder(names)
    build.coordinates["time"] = ("time", samples.time, {"units": "s", "long_name": "time"})
    build.coordinates["body"] = names
    b = samples.state.bodies
    build.add("position", ("body", "axis"), b.p_WB, "m", "position of the reference point, world axes")
    build.add("velocity", ("body", "axis"), b.v_W, "m/s", "velocity of the reference point, world axes")
    build.add("attitude", ("body", "quaternion"), b.q_WB, "1", "attitude, body to world, scalar first")
    build.add("angular_velocity", ("body", "axis"), b.w_B, "rad/s", "angular velocity, body axes")
    if samples.target is not None:
        build.coordinates["tracked"] = list(samples.tracked)
        build.add("reference_position", ("tracked", "axis"), samples.target.p_W, "m", "wanted position, world axes")
        build.add("reference_attitude", ("tracked", "quaternion"), samples.target.q_WB, "1", "wanted attitude, body to world")
    info = system.outputs_info()
    for element, outputs in sorted(samples.outputs.items()):
        part = system.elements.get(element) or system.constraints.get(element)
        for name, values in outputs.items():
            build.element_output(element, part, name, values, info[element][name])
    build.join()
    build.add("energy", (), samples.energy, "J", "kinetic energy of all bodies and energy stored in all elements")
    if samples.work is not None:
        build.add("work", (), samples.work, "J", "integral of all non-conservative power, and work of events")
    attrs = {
        "schema_version": SCHEMA_VERSION,
        "status": run.status_name,
        "skycrane_version": __version__,
        "jax_version": jax.__version__,
        "platform": jax.default_backend(),
        "precision": "float64" if b.p_WB.dtype == np.float64 else "float32",
        "frame_convention": FRAMES,
        **(attributes or {}),
    }
    return Table(build.variables, build.coordinates, attrs)


class _Builder:
    """Variables and coordinates of the data set under construction."""

    def __init__(self, bodies: list[str]):
        self.bodies = bodies
        self.variables: dict[str, Any] = {}
        self.coordinates: dict[str, Any] = {}
        self.rotors: dict[str, tuple[int, ...]] = {}  # rotors of each body so far, to number them on
        self.joined: dict[tuple[str, str], list] = {}  # (kind, output): pieces (labels, values, rest of the axes, info)
        self.labels: dict[tuple[str, str], list[str]] = {}  # (kind, element): its labels

    def add(self, name: str, dims: tuple[str, ...], values: Any, units: str, long_name: str) -> None:
        self.variables[name.replace("/", "_")] = (("time", *dims), values, {"units": units, "long_name": long_name})
        for dim, size in zip(dims, np.shape(values)[1:], strict=True):
            if dim in _COORDINATES and size == len(_COORDINATES[dim]):
                self.coordinates[dim] = _COORDINATES[dim]

    def element_output(self, element: str, part: Any, name: str, values: np.ndarray, info: Output) -> None:
        """Sort one output of an element in; ``values`` (n, ...)."""
        acted_on = tuple(getattr(part, "bodies", ()))
        dims = info.dims
        if dims[:2] == ("vehicle", "rotor") and len(acted_on) == values.shape[1]:
            values = values.reshape(len(values), -1, *values.shape[3:])
            self._piece("rotor", element, self._rotor_labels(element, acted_on, values.shape[1]), name, values, dims[2:], info)
        elif dims[:1] == ("cable",):
            given = getattr(part, "names", ())
            count = values.shape[1]
            labels = list(given) if len(given) == count else [element] if count == 1 else [f"{element}/{i + 1}" for i in range(count)]
            self._piece("cable", element, labels, name, values, dims[1:], info)
        elif dims[:1] == ("vehicle",) and len(set(acted_on)) == len(acted_on) == values.shape[1]:
            full = np.full((len(values), len(self.bodies), *values.shape[2:]), np.nan, values.dtype)
            full[:, list(acted_on)] = values
            self.add(f"{element}_{name}", ("body", *self._own(element, dims[1:], values.shape[2:])), full, info.units, info.long_name)
        else:
            self.add(f"{element}_{name}", self._own(element, dims, values.shape[1:]), values, info.units, info.long_name)

    def _own(self, element: str, dims: tuple[str, ...], shape: tuple[int, ...]) -> tuple[str, ...]:
        """Axis names that cannot collide with those of another element."""
        if len(dims) != len(shape):
            raise ValueError(f"element {element!r}: an output has shape {shape}, but its axes are called {dims}")
        shared = {name: len(values) for name, values in _COORDINATES.items()}
        return tuple(d if shared.get(d) == n else f"{element}_{d}".replace("/", "_") for d, n in zip(dims, shape, strict=True))

    def _rotor_labels(self, element: str, acted_on: tuple[int, ...], count: int) -> list[str]:
        if ("rotor", element) not in self.labels:
            labels = []
            for body in acted_on:
                first = len(self.rotors.get(self.bodies[body], ()))
                own = range(first + 1, first + count // len(acted_on) + 1)
                self.rotors[self.bodies[body]] = (*self.rotors.get(self.bodies[body], ()), *own)
                labels += [f"{self.bodies[body]}/{i}" for i in own]
            self.labels["rotor", element] = labels
        return self.labels["rotor", element]

    def _piece(self, kind, element, labels, name, values, dims, info) -> None:
        self.labels[kind, element] = labels
        self.joined.setdefault((kind, name), []).append((labels, values, dims, info))

    def join(self) -> None:
        """Put the pieces of several elements side by side, NaN where one of them has no such output or is shorter."""
        for kind in ("rotor", "cable"):
            everything = [label for (k, _), labels in self.labels.items() if k == kind for label in labels]
            if everything:
                self.coordinates[kind] = everything
            for (k, name), pieces in self.joined.items():
                if k != kind:
                    continue
                rest = np.max([p[1].shape[2:] for p in pieces], axis=0).astype(int)
                out = np.full((len(pieces[0][1]), len(everything), *rest), np.nan, pieces[0][1].dtype)
                for labels, values, _, _ in pieces:
                    short = [(0, 0), (0, 0), *((0, r - s) for r, s in zip(rest, values.shape[2:], strict=True))]
                    out[:, [everything.index(label) for label in labels]] = np.pad(values, short, constant_values=np.nan)
                _, _, dims, info = pieces[0]
                self.add(f"{kind}_{name}", (kind, *dims), out, info.units, info.long_name)
