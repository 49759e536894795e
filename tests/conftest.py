"""Strict numerics for every test: float64, no silent promotion, warnings are errors (see pyproject.toml)."""

import os
from pathlib import Path

# Compiled programs of tests stay in the checkout, apart from the user's own; each worker has a directory of its own, since JAX does not
# write its entries in one piece and another process may read half of one.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parents[1] / ".pytest_cache" / f"xdg-{_WORKER}")

from skycrane.runtime import configure, fast_loops

# Most of the suite's time is compilation, and most programs run for milliseconds: compile without optimisation, which takes half as long.
# SKYCRANE_TESTS_OPTIMISED=1 compiles as users do; tests/test_optimised.py repeats some tests so.
_fast = fast_loops()
_flags = os.environ.get("XLA_FLAGS", "")
if _fast and not os.environ.get("SKYCRANE_TESTS_OPTIMISED"):
    os.environ["XLA_FLAGS"] = f"{_flags} --xla_backend_optimization_level=0"

configure("float64")

import jax

jax.devices()  # XLA has read its flags now; programs that tests start compile as users do
os.environ["XLA_FLAGS"] = _flags
