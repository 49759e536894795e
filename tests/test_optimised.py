"""The suite compiles without optimisation (see conftest.py); a few tests that are likely to notice the difference are repeated with it, as
users compile: bits of split and repeated runs, batches, conservation."""

import os
import subprocess
import sys
from pathlib import Path

REPEATED = (
    "tests/batch/test_vmap.py::test_over_leaves_of_the_system",
    "tests/laws/test_rigid_body.py::test_tumbling_keeps_energy_and_angular_momentum",
    "tests/simulation/test_rollout.py::test_a_split_run_equals_the_unsplit_run_bit_for_bit[integrator0-0.01]",
    "tests/simulation/test_rollout.py::test_the_same_run_twice_gives_the_same_bits",
)


def test_with_optimisation_too():
    environment = {
        **os.environ,
        "SKYCRANE_TESTS_OPTIMISED": "1",
        "PYTEST_XDIST_WORKER": f"{os.environ.get('PYTEST_XDIST_WORKER', '')}-optimised",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *REPEATED]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
