"""Reading a result data set: the file itself, its events, labels with units, and the scene description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

RESULT_NAME = "result.nc"
SHAPE_KINDS = ("box", "cylinder", "cone", "sphere", "rod", "rotor")


class TimedLabel(NamedTuple):
    """Something that happened during the run: its time in s and a few words."""

    time: float
    label: str


def open_result(source: xr.Dataset | str | Path) -> xr.Dataset:
    """Return `source` itself if it is a data set, else read the file, or `result.nc` in the directory, it names."""
    import xarray as xr

    if isinstance(source, xr.Dataset):
        return source
    path = Path(source)
    if path.is_dir():
        path = path / RESULT_NAME
    if not path.is_file():
        raise FileNotFoundError(f"no result file at {path}: give a {RESULT_NAME} or the directory that holds one")
    # Loading at once closes the file, so that a viewer does not block a rerun that overwrites it.
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        return dataset.load()


def title_of(dataset: xr.Dataset) -> str:
    """Name of the scenario, or a neutral word where the data set carries none."""
    return str(dataset.attrs.get("scenario") or "Skycrane run")


def events_of(dataset: xr.Dataset) -> tuple[TimedLabel, ...]:
    """Events of the run in order of time, from the optional attribute `events`."""
    entries = json.loads(dataset.attrs.get("events") or "[]")
    try:
        events = [TimedLabel(float(entry["time"]), str(entry["label"])) for entry in entries]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError('attribute `events` must be a JSON list of {"time": seconds, "label": text}') from error
    return tuple(sorted(event for event in events if np.isfinite(event.time)))


def scene_of(dataset: xr.Dataset) -> dict[str, Any]:
    """The viewer's scene from the attribute `scene`, checked, with every body of the data set in it."""
    scene = json.loads(dataset.attrs.get("scene") or "{}")
    if not isinstance(scene, dict) or not isinstance(scene.get("bodies", {}), dict):
        raise ValueError("attribute `scene` must be a JSON object whose `bodies` is an object")
    bodies = dict(scene.get("bodies", {}))
    for name in names_of(dataset, "position", "body"):
        bodies.setdefault(name, {"shapes": []})
    for name, body in bodies.items():
        for shape in body.get("shapes", []):
            if shape.get("kind") not in SHAPE_KINDS:
                raise ValueError(f"scene: body {name!r} has a shape of kind {shape.get('kind')!r}; known: {', '.join(SHAPE_KINDS)}")
    return {"ground": None, "water": None, "cables": None, **scene, "bodies": bodies}


def names_of(dataset: xr.Dataset, variable: str, dimension: str) -> tuple[str, ...]:
    """Labels along one dimension of a variable; numbers from 0 where it has no coordinate. Empty if it is absent."""
    if variable not in dataset or dimension not in dataset[variable].dims:
        return ()
    return tuple(str(label) for label in dataset[variable][dimension].values)


def unit_of(dataset: xr.Dataset, variable: str, default: str = "") -> str:
    """Unit of a variable as written in its attributes."""
    return str(dataset[variable].attrs.get("units", default))


def axis_label(text: str, unit: str) -> str:
    """Axis label: a quantity and its unit in brackets; dimensionless quantities get none."""
    return f"{text} [{unit}]" if unit not in ("", "1") else text


def times_of(dataset: xr.Dataset) -> np.ndarray:
    """Sample times, shape (T,), s."""
    return np.asarray(dataset["time"].values, dtype=float)
