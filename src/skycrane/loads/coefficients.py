"""Added mass and radiation damping from tables of panel codes: WAMIT's ``.1`` file and capytaine's NetCDF data set.

Here they are constants, so one frequency is chosen: that of the waves, or the lowest for slow manoeuvres.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

DOFS = ("Surge", "Sway", "Heave", "Roll", "Pitch", "Yaw")


def read_coefficients(path: str | Path, period: float, density: float = 1000.0, length: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Added mass (6, 6) and radiation damping (6, 6) about the file's reference point, between its periods at ``period`` [s].

    Args:
        path: ``NAME.1`` of WAMIT (lines: period, i, j, A, B), or a NetCDF file of capytaine.
        density: kg/m^3, and ``length`` m (ULEN), by which WAMIT's numbers were made dimensionless.

    Raises:
        ValueError: for a file of another kind, or one without finite periods.
    """
    path = Path(path)
    if path.suffix == ".1":
        periods, A, B = _wamit(path, density, length)
    elif path.suffix in (".nc", ".nc4"):
        periods, A, B = _capytaine(path)
    else:
        raise ValueError(f"{path}: expected a WAMIT file NAME.1 or a capytaine file NAME.nc")
    order = np.argsort(periods)
    periods, A, B = periods[order], A[order], B[order]

    def at(table: np.ndarray) -> np.ndarray:
        flat = table.reshape(len(periods), 36)
        return np.stack([np.interp(period, periods, flat[:, k]) for k in range(36)]).reshape(6, 6)

    added, damping = at(A), at(B)
    return 0.5 * (added + added.T), 0.5 * (damping + damping.T)


def _wamit(path: Path, density: float, length: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows: dict[float, list[tuple[int, int, float, float]]] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split()
        if not words:
            continue
        try:
            period, i, j = float(words[0]), int(words[1]), int(words[2])
            values = [float(w) for w in words[3:]]
        except (ValueError, IndexError):
            raise ValueError(f"{path}, line {number}: expected 'period i j A B', found {line.strip()!r}") from None
        if not (1 <= i <= 6 and 1 <= j <= 6):
            raise ValueError(f"{path}, line {number}: degree of freedom {i}, {j}; this reader takes one body, 1 to 6")
        if period > 0 and len(values) >= 2:  # 0 and -1 stand for the limits of frequency, without damping
            rows.setdefault(period, []).append((i, j, values[0], values[1]))
    if not rows:
        raise ValueError(f"{path}: no line with a positive period")
    periods = np.array(sorted(rows))
    A, B = np.zeros((len(periods), 6, 6)), np.zeros((len(periods), 6, 6))
    for n, period in enumerate(periods):
        for i, j, a, b in rows[period]:
            power = 3 + (i > 3) + (j > 3)
            A[n, i - 1, j - 1] = a * density * length**power
            B[n, i - 1, j - 1] = b * density * length**power * 2 * np.pi / period
    return periods, A, B


def _capytaine(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import xarray

    with xarray.open_dataset(path) as data:
        for name in ("added_mass", "radiation_damping"):
            if name not in data:
                raise ValueError(f"{path}: no variable {name!r}; is this a data set of capytaine's solver?")
        omega = np.asarray(data["omega"], dtype=float)
        kept = np.isfinite(omega) & (omega > 0)
        out = []
        for name in ("added_mass", "radiation_damping"):
            array = data[name].transpose("omega", "influenced_dof", "radiating_dof")
            names = [str(d) for d in array["influenced_dof"].values]
            table = np.zeros((len(omega), 6, 6))
            for i, a in enumerate(names):
                for j, b in enumerate(str(d) for d in array["radiating_dof"].values):
                    ends = [[k for k, dof in enumerate(DOFS) if word.endswith(dof)] for word in (a, b)]
                    if all(ends):
                        table[:, ends[0][0], ends[1][0]] = np.asarray(array)[:, i, j]
            out.append(table[kept])
    if not kept.any():
        raise ValueError(f"{path}: no finite frequency")
    return 2 * np.pi / omega[kept], out[0], out[1]
