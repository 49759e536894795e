"""Strict numerics for every test: float64, no silent promotion, warnings are errors (see pyproject.toml)."""

import contextlib
import ctypes
import gc
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
import pytest

jax.devices()  # XLA has read its flags now; programs that tests start compile as users do
os.environ["XLA_FLAGS"] = _flags

MOST_MEMORY = 3e9  # bytes of a worker, beyond which the programs that it has compiled are let go


def _memory() -> float:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # not Linux
        return 0.0


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory():
    """The suite fits into the memory of a small machine: compiled programs are never given back by themselves."""
    yield
    if _memory() > MOST_MEMORY:
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL("libc.so.6").malloc_trim(0)
