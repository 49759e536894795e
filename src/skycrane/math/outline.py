"""What keeps XLA from compiling the same arithmetic many times over in derivatives.

XLA on the CPU computes a value that several results need anew for each of them, inside one loop per result.  In reverse mode nearly
everything is needed by several: the nine entries of an attitude matrix each repeated all that lies behind a cable's force.  A
function that XLA may not inline ends that, for its arguments have to be there when it is called.  Values alone need no such thing, and
where only they are computed nothing here leaves a trace.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata


def settled(tree: Any) -> Any:
    """The tree itself; in derivatives, its numbers and what flows back to them are computed once and kept."""
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(_settled(arrays), rest)


@jax.custom_jvp
def _settled(arrays: Any) -> Any:
    return arrays


@_settled.defjvp
def _settled_jvp(primals, tangents):
    return _kept(primals[0]), _kept(tangents[0])


def _kept(arrays: Any) -> Any:
    """The arrays, as results of a function that stays one on the CPU (accelerators have no such functions)."""
    if jax.default_backend() != "cpu":
        return arrays
    with set_xla_metadata(inlineable="false"):
        return jax.jit(lax.optimization_barrier)(arrays)
