"""Settings of JAX, each in a fresh process."""

import os
import subprocess
import sys

import pytest

from skycrane import runtime


def fresh(code, **environment):
    """Standard output of a Python program in a process of its own."""
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", runtime.OFF_SWITCH)}
    done = subprocess.run([sys.executable, "-c", code], env={**clean, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_flags_of_the_user_are_kept():
    code = "import os; from skycrane.runtime import fast_loops; fast_loops(); fast_loops(); print(os.environ['XLA_FLAGS'])"
    flags = fresh(code, XLA_FLAGS="--xla_force_host_platform_device_count=2").split()
    assert flags[0] == "--xla_force_host_platform_device_count=2"
    assert flags.count(runtime.FAST_LOOP_FLAG) <= 1


def test_the_switch_leaves_xla_alone():
    code = "import os; from skycrane.runtime import fast_loops; print(fast_loops(), os.environ.get('XLA_FLAGS'))"
    assert fresh(code, **{runtime.OFF_SWITCH: "1"}).split() == ["False", "None"]


def test_too_late_is_said():
    code = "import jax, warnings; jax.numpy.ones(2); warnings.simplefilter('always'); from skycrane import fast_loops; print(fast_loops())"
    said = fresh(code)
    assert "False" in said
    if runtime._TRIED[0] <= runtime._release("jaxlib") <= runtime._TRIED[1]:
        assert "already started" in said


def test_a_damaged_cache_is_compiled_anew_without_a_word(tmp_path):
    code = "from skycrane.runtime import configure; configure(); import jax.numpy as jnp; print(jnp.arange(3.0).sum())"
    fresh(code, XDG_CACHE_HOME=str(tmp_path))
    entries = list(tmp_path.rglob("*-cache"))
    assert entries
    for entry in entries:
        entry.write_bytes(b"half of an ent")
    assert fresh(code, XDG_CACHE_HOME=str(tmp_path)).strip() == "3.0"


def test_this_jax_computes_right_numbers():
    assert fresh("from skycrane.runtime import check_numerics; check_numerics(); print('right')").strip() == "right"


def test_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="'float64' or 'float32'"):
        runtime.configure("float16")
