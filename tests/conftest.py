"""Strict numerics for every test: float64, no silent promotion, warnings are errors (see pyproject.toml)."""

import os
from pathlib import Path

# Compiled programs of tests stay in the checkout, apart from the user's own; each worker has a directory of its own, since JAX does not
# write its entries in one piece and another process may read half of one.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parents[1] / ".pytest_cache" / f"xdg-{_WORKER}")

from skycrane.runtime import configure

configure("float64")
