"""Strict numerics for every test: float64, no silent promotion, warnings are errors (see pyproject.toml)."""

from skycrane.runtime import configure

configure("float64")

import jax

jax.config.update("jax_numpy_dtype_promotion", "standard")
