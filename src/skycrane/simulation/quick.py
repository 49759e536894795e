"""Compiling for a short wait rather than for speed: functions that look at a finished run, and Jacobians of whole systems."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

# A function that is evaluated a few hundred times gains nothing from XLA's optimisations, which take most of the time of compiling large
# Jacobians; without them a trim's compile in a quarter of the time (JAX 0.10.1) and run as fast.
QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 0}


# For a program that runs a second or two: a lift of four vehicles compiles in 8 s instead of 14 s, and flies 25 s in 0.23 s instead of
# 0.17 s.
SOON = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}


def quick_jit(function: Callable, options: dict[str, Any] = QUICK) -> Callable:
    """``equinox.filter_jit`` that compiles quickly, where the JAX release at hand knows how to; not for use inside another jit."""
    plain, quick = eqx.filter_jit(function), eqx.filter_jit(function, compiler_options=options)  # type: ignore[call-overload]

    @functools.wraps(function)
    def call(*args):
        return (quick if _knows_quick() else plain)(*args)

    return call


@functools.cache
def _knows_quick() -> bool:
    """Whether this JAX compiles for the CPU and accepts the options."""
    if jax.default_backend() != "cpu":
        return False
    try:
        jax.jit(lambda x: x + 1, compiler_options=QUICK)(1)
    except Exception:  # which error an unknown option raises depends on the release
        return False
    return True
