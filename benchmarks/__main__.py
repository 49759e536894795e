"""``python -m benchmarks [--json FILE] [--only NAME]``: measure and print ratios."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

from skycrane.runtime import configure

BENCHMARKS = {"single": "benchmarks.single"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the records to this file")
    parser.add_argument("--only", choices=sorted(BENCHMARKS), action="append", help="measure only this; may be repeated")
    arguments = parser.parse_args()
    configure("float64")
    from rich.console import Console
    from rich.table import Table

    records = [r for name in arguments.only or BENCHMARKS for r in import_module(BENCHMARKS[name]).run()]
    table = Table("benchmark", "ours", "peer", "ours /s", "peer /s", "ratio", "spread", "compile")
    for r in records:
        spread = f"{r.ratio_min:.2f} to {r.ratio_max:.2f}"
        table.add_row(
            r.name, r.ours, r.peer, f"{r.ours_per_s:.3g}", f"{r.peer_per_s:.3g}", f"{r.ratio:.3g}", spread, f"{r.compile_s:.2f} s"
        )
    console = Console()
    console.print(table)
    if records:
        console.print(f"{records[0].machine}; {', '.join(f'{k} {v}' for k, v in records[0].versions.items())}")
    if arguments.json:
        arguments.json.write_text(json.dumps([r.as_dict() for r in records], indent=1) + "\n")


if __name__ == "__main__":
    main()
