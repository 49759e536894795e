"""Strict numerics for every test: float64, no silent promotion, warnings are errors (see pyproject.toml)."""

import os
from pathlib import Path

# Compiled programs of tests stay in the checkout, apart from the user's own.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parents[1] / ".pytest_cache" / "xdg")

from skycrane.runtime import configure

configure("float64")
