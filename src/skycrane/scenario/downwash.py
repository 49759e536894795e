"""Rotor downwash in a scenario: whether it counts, what it meets, and how much of each vehicle's thrust that costs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from skycrane.elements.downwash import Downwash, Screens, Slabs
from skycrane.elements.rotor_jets import Jet
from skycrane.environment.jets import variance

from .cargo import BoxShape, ConeShape, CylinderShape, LoadSpec, ShapeSpec
from .craft import layout_of
from .lift import AXES, ends_of, rotation
from .scenario import Scenario

LEAST = 0.01
"""Share of a vehicle's thrust that a plate must take for `auto` to count the downwash."""
REACH = 3.0
"""Standard deviations of a jet within which `auto` takes a vehicle to stand below another."""

Solid = tuple[ShapeSpec, np.ndarray, np.ndarray]


def solids_of(load: LoadSpec) -> list[Solid]:
    """Shapes of a load, with place and rotation of each in load axes."""
    if load.parts:
        return [(p.shape, np.array(p.position, dtype=float), rotation(p.attitude_deg)) for p in load.parts]
    return [] if load.shape is None else [(load.shape, np.zeros(3), np.eye(3))]


def is_active(scenario: Scenario) -> bool:
    """Whether the scenario counts the downwash."""
    mode = scenario.environment.downwash
    if mode != "auto":
        return mode == "on"
    return max(_shares(scenario, plates_only=True).values(), default=0.0) > LEAST


def jet_of(scenario: Scenario, vehicle: str) -> Jet | None:
    """The jets of a vehicle's rotors, None where they do not count."""
    if not is_active(scenario):
        return None
    spared = [name for name, load in scenario.loads.items() if solids_of(load)]
    felt = scenario.environment.downwash == "on" or _stacked(scenario)
    if not felt:
        spared += scenario.fleet
    return Jet(jnp.asarray(_radii(scenario, vehicle)), tuple(sorted(scenario.bodies.index(name) for name in spared)), felt)


def thrust_shares(scenario: Scenario) -> dict[str, float]:
    """Share of each vehicle's thrust that surfaces below it take, in level flight in its place above its cable; 0 without downwash."""
    return _shares(scenario) if is_active(scenario) else dict.fromkeys(scenario.fleet, 0.0)


def downwash_of(scenario: Scenario) -> dict[str, Downwash]:
    """The element of all surfaces of loads, where the downwash counts and there are some."""
    slabs: list[Any] = []
    screens: list[Any] = []
    for name, load in scenario.loads.items() if is_active(scenario) else ():
        body = scenario.bodies.index(name)
        for shape, place, R in solids_of(load):
            if isinstance(shape, BoxShape):
                half = 0.5 * np.array(shape.size)
                slabs += [(body, place, *(R[:, (i + k) % 3] for k in range(3)), np.roll(half, -i)) for i in range(3)]
            else:
                screens.append((body, place, *_screen(shape, R)))
    if not slabs and not screens:
        return {}
    bodies = tuple(sorted({row[0] for row in slabs + screens}))
    return {"downwash": Downwash(bodies, _columns(Slabs, slabs), _columns(Screens, screens))}


def _columns(kind: Any, rows: list[Any]) -> Any:
    if not rows:
        return None
    bodies, *numbers = zip(*rows, strict=True)
    return kind(bodies, *(jnp.asarray(np.array(column, dtype=float)) for column in numbers))


def _screen(shape: ShapeSpec, R: np.ndarray) -> tuple[np.ndarray, float, float, float, float, float]:
    """Axis, areas of end and side, and k of the end along the axis, the other one and the side."""
    disc = float(np.pi * shape.radius**2) if not isinstance(shape, BoxShape) else 0.0
    if isinstance(shape, CylinderShape):
        return R @ AXES[shape.axis][:, 2], disc, 2.0 * shape.radius * shape.height, 1.0, 1.0, 2.0 / 3.0
    if isinstance(shape, ConeShape):
        tip = shape.radius**2 / (shape.radius**2 + shape.height**2)
        return R @ AXES[shape.axis][:, 2], disc, shape.radius * shape.height, tip, 1.0, 2.0 / 3.0
    return R[:, 2], disc, disc, 0.5, 0.5, 0.5


def _radii(scenario: Scenario, vehicle: str) -> np.ndarray:
    return np.array([rotor.radius for rotor in scenario.fleet[vehicle].spec.rotor_numbers()], dtype=float)


def _has_radii(scenario: Scenario) -> bool:
    return all(rotor.radius is not None for v in scenario.fleet.values() for rotor in v.spec.rotor_numbers())


def _shares(scenario: Scenario, *, plates_only: bool = False) -> dict[str, float]:
    out = dict.fromkeys(scenario.fleet, 0.0)
    if not _has_radii(scenario):
        return out
    ends = ends_of(scenario)
    for name, cable in scenario.cables.items():
        if cable.upper not in out or cable.lower not in scenario.loads:
            continue
        above = ends[name][3] + [0.0, 0.0, cable.length] - ends[name][2]
        layout = layout_of(scenario.fleet[cable.upper].spec)
        hubs, up = above + layout.position_B, np.maximum(layout.axis_B[:, 2], 0.0)
        caught = np.zeros(len(hubs))
        for shape, place, R in solids_of(scenario.loads[cable.lower]):
            if isinstance(shape, BoxShape) or not plates_only:
                caught += _caught(shape, place, R, hubs, _radii(scenario, cable.upper))
        out[cable.upper] = max(out[cable.upper], float((up * caught).sum() / up.sum()))
    return out


def _caught(shape: ShapeSpec, place: np.ndarray, R: np.ndarray, hubs: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Share of each jet, vertically down, that a shape takes: as :mod:`skycrane.elements.downwash`, of a box its most level faces."""
    arm = hubs - place
    if isinstance(shape, BoxShape):
        i = int(np.abs(R[2]).argmax())
        half, steep = 0.5 * np.roll(np.array(shape.size), -i), abs(R[2, i])
        way = (np.sign(R[2, i]) * arm @ R[:, i] - half[0]) / steep
        sigma = np.sqrt(variance(radius, np.maximum(way, 0.0)))
        share = steep**2 * (way > 0)
        for k in (1, 2):
            e = R[:, (i + k) % 3]
            share = share * _within(arm @ e - way * e[2], sigma * np.hypot(1.0, e[2] / steep), half[k])
        return share
    axis, end, side, along, against, across = _screen(shape, R)
    c = -axis[2]
    ends, sides = end * c * c, side * (1.0 - c * c)
    sigma, half_width = np.sqrt(variance(radius, np.maximum(arm[:, 2], 0.0))), 0.5 * np.sqrt(ends + sides)
    resistance = ((along if c < 0 else against) * ends + across * sides) / (ends + sides)
    on = _within(np.hypot(arm[:, 0], arm[:, 1]), sigma, half_width) * _within(0.0, sigma, half_width)
    return resistance * on * (arm[:, 2] > 0)


def _within(place: Any, sigma: np.ndarray, half: float) -> np.ndarray:
    from scipy.special import erf

    return 0.5 * (erf((half - place) / (sigma * np.sqrt(2.0))) + erf((half + place) / (sigma * np.sqrt(2.0))))


def _stacked(scenario: Scenario) -> bool:
    """Whether a vehicle of the scenario starts in the jets of another."""
    from .lift import poses_of

    poses = poses_of(scenario)
    reach = {name: float(np.linalg.norm(layout_of(v.spec).position_B, axis=1).max()) for name, v in scenario.fleet.items()}
    for upper in scenario.fleet:
        for lower in scenario.fleet:
            arm = poses[upper].position - poses[lower].position
            if upper != lower and arm[2] > 0:
                sigma = np.sqrt(variance(_radii(scenario, upper).max(), arm[2]))
                if np.hypot(arm[0], arm[1]) < REACH * sigma + reach[upper] + reach[lower]:
                    return True
    return False
