"""Rotor geometry as PX4's control allocation knows it: the parameters ``CA_ROTOR*``, in and out.

PX4 counts body axes forward, right, down from the centre of mass.  Rotor i has the position p (``PX``, ``PY``, ``PZ``), the thrust
direction a (``AX``, ``AY``, ``AZ``; only the direction counts), thrust ``CT u^2`` for a motor output u from 0 to 1, and reaction
torque over thrust ``KM``, positive for a rotor that turns counter-clockwise seen from above.  Its column of the effectiveness matrix
(moments about x, y, z, then forces) is

    [ CT (p x a) - CT KM a ;  CT a ]

(PX4-Autopilot, ``ActuatorEffectivenessRotors.cpp`` and the parameter descriptions in ``control_allocator/module.yaml``).  Here axes
are forward, left, up: y and z change sign, and KM is spin times k_M / k_F.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from skycrane.vehicles.layout import Layout
from skycrane.vehicles.multirotor import Multirotor

MAX_ROTORS = 12
FLU = np.array([1.0, -1.0, -1.0])  # forward-right-down to forward-left-up, and back

_DEFAULTS = {"PX": 0.0, "PY": 0.0, "PZ": 0.0, "AX": 0.0, "AY": 0.0, "AZ": -1.0, "CT": 6.5, "KM": 0.05}
_LIMITS = {"PX": 100.0, "PY": 100.0, "PZ": 100.0, "CT": 100.0, "KM": 1.0}
_MULTIROTOR, _SIX_AXES = 0, 7  # values of CA_AIRFRAME
_NAME = re.compile(r"[A-Z][A-Z0-9_]{1,15}")


class Px4Rotors(NamedTuple):
    """n rotors in PX4's axes and units.

    ``position_FRD`` (n, 3) m from the centre of mass; ``axis_FRD`` (n, 3) unit thrust directions; ``thrust`` (n,) CT, N at full output;
    ``moment_ratio`` (n,) KM, m.
    """

    position_FRD: np.ndarray
    axis_FRD: np.ndarray
    thrust: np.ndarray
    moment_ratio: np.ndarray

    @property
    def layout(self) -> Layout:
        """Places from the centre of mass, axes and spins in forward-left-up axes.  A rotor without reaction torque counts as
        counter-clockwise."""
        return Layout(self.position_FRD * FLU, self.axis_FRD * FLU, np.where(self.moment_ratio < 0, -1.0, 1.0))

    def effectiveness(self) -> np.ndarray:
        """PX4's effectiveness matrix (6, n): moments about x, y, z, then forces, forward-right-down, at full output."""
        return effectiveness(self.position_FRD, self.axis_FRD, self.thrust, self.moment_ratio)

    def multirotor(self, mass: float, inertia_B: ArrayLike, speed_max: ArrayLike, **options) -> Multirotor:
        """A vehicle whose rotors give CT newtons at ``speed_max`` [rad/s]; PX4 knows neither mass nor inertia.  ``options`` as in
        :meth:`Multirotor.create`; the origin B is the centre of mass."""
        k_F = self.thrust / np.asarray(speed_max, dtype=float) ** 2
        return Multirotor.create(mass, inertia_B, self.layout, k_F, np.abs(self.moment_ratio) * k_F, speed_max=speed_max, **options)


def effectiveness(position_FRD: ArrayLike, axis_FRD: ArrayLike, thrust: ArrayLike, moment_ratio: ArrayLike) -> np.ndarray:
    """PX4's effectiveness matrix (6, n) of positions (n, 3) m, thrust directions (n, 3), CT (n,) and KM (n,).

    Raises:
        ValueError: for an axis of zero length.
    """
    position, axis = np.asarray(position_FRD, dtype=float), np.asarray(axis_FRD, dtype=float)
    length = np.linalg.norm(axis, axis=-1, keepdims=True)
    if not (length > 0).all():
        raise ValueError(f"rotor {int(np.argmin(length[:, 0] > 0))}: the axis has zero length")
    axis = axis / length
    ct, km = np.asarray(thrust, dtype=float)[:, None], np.asarray(moment_ratio, dtype=float)[:, None]
    return np.concatenate([ct * np.cross(position, axis) - ct * km * axis, ct * axis], axis=1).T


def from_multirotor(vehicle: Multirotor) -> Px4Rotors:
    """The geometry of a vehicle, with CT the thrust at its fastest speed.

    Raises:
        ValueError: for a fastest speed that is not finite.
    """
    k_F, k_M, speed, spin = (
        np.asarray(x, dtype=float) for x in (vehicle.thrust_coefficient, vehicle.torque_coefficient, vehicle.speed_max, vehicle.spin)
    )
    if not np.isfinite(speed).all():
        raise ValueError("PX4 needs the thrust at full output: give the rotors a finite speed_max")
    position = (np.asarray(vehicle.position_B, dtype=float) - np.asarray(vehicle.com_B, dtype=float)) * FLU
    return Px4Rotors(position, np.asarray(vehicle.axis_B, dtype=float) * FLU, k_F * speed**2, spin * k_M / k_F)


# -- parameters -----------------------------------------------------------------------------------------------------------------------


def from_parameters(parameters: Mapping[str, float]) -> Px4Rotors:
    """The geometry that parameters describe; PX4's defaults where they are silent.

    Raises:
        ValueError: for no or too many rotors, an axis of zero length, rotors that a servo tilts, or reversible ones.
    """
    count = parameters.get("CA_ROTOR_COUNT", 0)
    if count != int(count) or not 1 <= count <= MAX_ROTORS:
        raise ValueError(f"CA_ROTOR_COUNT is {count:g}, expected 1 to {MAX_ROTORS}")
    rows = []
    for i in range(int(count)):
        if parameters.get(f"CA_ROTOR{i}_TILT", 0):
            raise ValueError(f"CA_ROTOR{i}_TILT is {parameters[f'CA_ROTOR{i}_TILT']:g}: rotors that a servo tilts are not modelled")
        if int(parameters.get("CA_R_REV", 0)) & 1 << i:
            raise ValueError(f"CA_R_REV makes motor {i + 1} reversible: rotors here turn one way")
        rows.append([float(parameters.get(f"CA_ROTOR{i}_{key}", default)) for key, default in _DEFAULTS.items()])
    table = np.array(rows)
    length = np.linalg.norm(table[:, 3:6], axis=1, keepdims=True)
    if not (length > 0).all():
        raise ValueError(f"CA_ROTOR{int(np.argmin(length[:, 0] > 0))}_AX, _AY, _AZ are all zero: the axis has no direction")
    return Px4Rotors(table[:, :3], table[:, 3:6] / length, table[:, 6], table[:, 7])


def to_parameters(rotors: Px4Rotors) -> dict[str, float | int]:
    """The parameters of a geometry, all of them, with the airframe kind: 0 (multirotor), or 7 where the rotors push in all six axes.

    Raises:
        ValueError: for more rotors than PX4 has parameters for, or a number outside PX4's range.
    """
    count = len(rotors.thrust)
    if not 1 <= count <= MAX_ROTORS:
        raise ValueError(f"{count} rotors, but PX4 has parameters for 1 to {MAX_ROTORS}")
    six = np.linalg.matrix_rank(rotors.effectiveness(), tol=1e-3 * float(np.max(rotors.thrust))) == 6
    out: dict[str, float | int] = {"CA_AIRFRAME": _SIX_AXES if six else _MULTIROTOR, "CA_ROTOR_COUNT": count}
    for i in range(count):
        values = [*rotors.position_FRD[i], *rotors.axis_FRD[i], rotors.thrust[i], rotors.moment_ratio[i]]
        for key, value in zip(_DEFAULTS, values, strict=True):
            limit = _LIMITS.get(key, np.inf)
            if not abs(value) <= limit:
                raise ValueError(f"CA_ROTOR{i}_{key} would be {value:g}; PX4 takes up to {limit:g}")
            out[f"CA_ROTOR{i}_{key}"] = float(value) + 0.0  # no minus zero
    return out


# -- files ----------------------------------------------------------------------------------------------------------------------------


def parse(text: str) -> dict[str, float]:
    """Parameters in a text, by name; a later line wins.

    Understood are the table that QGroundControl exports (vehicle, component, name, value, type), the lines ``param set-default NAME VALUE``
    and ``param set NAME VALUE`` of an airframe script, and plain ``NAME VALUE`` or ``NAME,VALUE``.  All other lines are passed over.

    Raises:
        ValueError: where a ``CA_`` parameter's value is not a number, with the line.
    """
    found: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#")[0].replace(",", " ").replace("=", " ").split()
        if words and words[0].lower() == "param":
            words = words[1:]
            if words and words[0].lower() in ("set", "set-default"):
                words = words[1:]
        elif len(words) == 5 and words[0].isdigit() and words[1].isdigit():
            words = words[2:4]
        if len(words) != 2 or not _NAME.fullmatch(words[0]):
            continue
        try:
            value = float(words[1])
        except ValueError:
            value = np.nan
        if np.isfinite(value):
            found[words[0]] = value
        elif words[0].startswith("CA_"):
            raise ValueError(f"line {number}: {words[0]} is {words[1]!r}, expected a number")
    return found


def read(path: str | Path) -> Px4Rotors:
    """The geometry in a parameter file or an airframe script.  Raises ValueError, naming the file, as :func:`from_parameters`."""
    try:
        return from_parameters(parse(Path(path).read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def as_parameter_file(rotors: Px4Rotors) -> str:
    """Text of a file that QGroundControl loads (Vehicle Setup, Parameters, Load from file)."""
    lines = ["# Rotor geometry written by Skycrane", "#", "# Vehicle-Id Component-Id Name Value Type"]
    for name, value in to_parameters(rotors).items():
        lines.append(f"1\t1\t{name}\t{value!r}\t{6 if isinstance(value, int) else 9}")  # MAV_PARAM_TYPE: 6 int32, 9 float
    return "\n".join(lines) + "\n"


def as_airframe_lines(rotors: Px4Rotors) -> str:
    """The lines ``param set-default NAME VALUE`` for a PX4 airframe script; what equals PX4's default is left out."""
    lines = []
    for name, value in to_parameters(rotors).items():
        if _DEFAULTS.get(name.rsplit("_", 1)[-1]) != value or not name.startswith("CA_ROTOR") or name == "CA_ROTOR_COUNT":
            lines.append(f"param set-default {name} {value!r}")
    return "\n".join(lines) + "\n"
