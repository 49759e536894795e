"""``python -m benchmarks [--json FILE] [--only NAME]``: measure and print ratios."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Record
from skycrane.runtime import configure

NAMES = ("single", "adaptive", "batch", "calls", "lift", "cables", "buoy", "layout", "gradient", "plain", "startup")
BENCHMARKS = {name: f"benchmarks.{name}" for name in NAMES}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the records to this file")
    parser.add_argument("--only", choices=sorted(BENCHMARKS), action="append", help="measure only this; may be repeated")
    parser.add_argument("--plot", type=Path, help="write a picture of the ratios to this PNG file")
    arguments = parser.parse_args()
    configure("float64")
    import jax

    jax.config.update("jax_num_cpu_devices", 2)
    from rich.console import Console
    from rich.table import Table

    records = [r for name in arguments.only or BENCHMARKS for r in import_module(BENCHMARKS[name]).run()]
    table = Table("benchmark", "ratio", "spread", "ours /s", "peer /s", "compile", "peer")
    for r in records:
        if r.note:
            table.add_row(r.name, "-", "", "", "", "", f"{r.peer}: {r.note}")
            continue
        spread = f"{r.ratio_min:.3g} to {r.ratio_max:.3g}"
        table.add_row(r.name, f"{r.ratio:.3g}", spread, f"{r.ours_per_s:.3g}", f"{r.peer_per_s:.3g}", f"{r.compile_s:.1f} s", r.peer)
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    console.print(table)
    if records:
        console.print(f"{records[0].machine}; {', '.join(f'{k} {v}' for k, v in records[0].versions.items())}")
    if arguments.json:
        arguments.json.write_text(json.dumps([r.as_dict() for r in records], indent=1) + "\n")
    if arguments.plot:
        plot(records, arguments.plot)


def plot(records: list[Record], path: Path) -> None:
    """Bars of the ratios, on a logarithmic scale, with their spread."""
    from matplotlib.figure import Figure

    records = [r for r in records if not r.note][::-1]
    figure = Figure(figsize=(10, 1.2 + 0.34 * len(records)), layout="constrained")
    axis = figure.subplots()
    ratios = [r.ratio for r in records]
    spread = [[r.ratio - r.ratio_min for r in records], [r.ratio_max - r.ratio for r in records]]
    axis.barh([f"{r.name} : {r.peer[:40]}" for r in records], ratios, xerr=spread, color="#0072B2", ecolor="#333333")
    axis.axvline(1.0, color="#D55E00")
    axis.set_xscale("log")
    axis.set_xlabel("Skycrane's speed over the other's, in turns in one run")
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
