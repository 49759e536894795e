"""Settings of JAX that make small simulations fast, and a check for a JAX release that computes wrong numbers.

The library changes nothing by itself; the command line calls :func:`configure` before JAX starts.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

FAST_LOOP_FLAG = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=8388608"
OFF_SWITCH = "SKYCRANE_NO_FAST_LOOPS"
CACHE_SWITCH = "SKYCRANE_NO_CACHE"
# XLA aborts the process on a key it does not know, so the flag is set only for releases that were tried.
_TRIED = ((0, 6, 2), (0, 10, 1))


def _release(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version(name).split(".")[:3] if part.isdigit())


def backend_started() -> bool:
    """Whether JAX has already opened a device, after which XLA flags have no effect."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(getattr(bridge, "_backends", None))


def fast_loops() -> bool:
    """Ask XLA to compile small loops into one function: 4 to 14 times faster on the CPU for a single vehicle.

    Appends to the environment variable ``XLA_FLAGS``, never overwrites it.  Call it before the first computation; afterwards it only warns.
    Set ``SKYCRANE_NO_FAST_LOOPS=1`` to leave XLA alone.

    Returns:
        Whether the setting is in force.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if loops_are_fast():
        return True
    if os.environ.get(OFF_SWITCH) or "xla_backend_extra_options" in flags:
        return False
    if not _TRIED[0] <= _release("jaxlib") <= _TRIED[1]:
        return False
    if backend_started():
        warnings.warn(
            "JAX has already started, so its fast loops for small simulations cannot be switched on any more; "
            "call skycrane.fast_loops() before the first JAX computation (4 to 14 times faster for a single vehicle)",
            stacklevel=2,
        )
        return False
    os.environ["XLA_FLAGS"] = f"{flags} {FAST_LOOP_FLAG}".strip()
    return True


def loops_are_fast() -> bool:
    """Whether :func:`fast_loops`, or the user, has asked XLA for fast loops."""
    return "xla_cpu_small_while_loop_byte_threshold" in os.environ.get("XLA_FLAGS", "")


def cache_directory() -> Path:
    """Where compiled programs are kept between runs: under ``XDG_CACHE_HOME`` or ``~/.cache``, readable by the user only."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "skycrane" / f"xla-{version('jaxlib')}"


def configure(precision: str = "float64") -> bool:
    """Set JAX up for a program of its own (what the command line does): fast loops, precision, persistent compilation cache.

    ``SKYCRANE_NO_CACHE=1`` leaves the cache off.

    Raises:
        ValueError: for a precision other than ``"float64"`` or ``"float32"``.

    Returns:
        Whether the fast loops are in force.
    """
    if precision not in ("float64", "float32"):
        raise ValueError(f"precision is {precision!r}, expected 'float64' or 'float32'")
    # JAX logs a line for every program found in the cache on some processors; it must be told before it is imported.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    fast = fast_loops()
    import jax

    jax.config.update("jax_enable_x64", precision == "float64")
    if not os.environ.get(CACHE_SWITCH):
        directory = cache_directory()
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:  # a read-only home: run without the cache
            return fast
        # Another process may be writing the same entry, or have cleared the directory: then the program is compiled anew, no more.
        warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
        jax.config.update("jax_compilation_cache_dir", str(directory))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return fast


def check_numerics(count: int = 40_000) -> None:
    """Compute a batch of rotated vectors and their sum, compiled and with NumPy, the pattern that JAX 0.10.2 gets wrong on the CPU.

    Raises:
        RuntimeError: if they differ; then install another JAX release.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)
    R, v = rng.normal(size=(count, 3, 3)).astype(np.float32), rng.normal(size=(count, 3)).astype(np.float32)
    got = jax.jit(lambda R, v: jax.vmap(jnp.matmul)(R, v).sum(0))(R, v)
    want = np.einsum("nij,nj->i", R.astype(float), v.astype(float))
    if not np.allclose(np.asarray(got), want, rtol=1e-3, atol=1e-3 * count**0.5):
        raise RuntimeError(
            f"JAX {jax.__version__} computes wrong numbers on this machine (jax issue 39103); install another release, for instance: "
            "pip install 'jax!=0.10.2'"
        )
