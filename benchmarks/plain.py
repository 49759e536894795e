"""One vehicle again without the XLA setting, as for a user whose JAX had started before Skycrane could ask for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Record
from skycrane.runtime import CACHE_SWITCH, OFF_SWITCH


def run() -> list[Record]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.json"
        command = [sys.executable, "-m", "benchmarks", "--only", "single", "--json", str(file)]
        # This process has set the flag for itself; and a program from the cache may have been compiled with it.
        inherited = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
        subprocess.run(command, check=True, env={**inherited, OFF_SWITCH: "1", CACHE_SWITCH: "1"}, stdout=subprocess.DEVNULL)
        records = json.loads(file.read_text())
    return [Record(**{**record, "name": f"{record['name']}_without_xla_setting"}) for record in records]
