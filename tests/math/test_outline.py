"""Arithmetic that derivatives share: computed once by XLA on the CPU, and no trace of it where only values are computed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.math.outline import settled

X = jnp.linspace(0.1, 0.9, 5)


def shared(x, keep):
    """Nine results that all need the same long chain of operations on the way back."""
    y = jnp.stack([keep(x * s) for s in range(1, 10)])
    for _ in range(4):
        y = keep(jnp.sin(y)) * y + jnp.cos(y[::-1])
    return y.sum()


def test_values_and_derivatives_are_those_without():
    plain, kept = (lambda x, keep=keep: shared(x, keep) for keep in (lambda y: y, settled))
    assert float(kept(X)) == pytest.approx(float(plain(X)), rel=1e-14)
    both = jnp.stack([X, 2 * X])
    for how, x in ((jax.grad, X), (jax.jacfwd, X), (jax.hessian, X), (lambda f: jax.vmap(jax.grad(f)), both)):
        np.testing.assert_allclose(jax.jit(how(kept))(x), how(plain)(x), rtol=1e-10)


def test_no_trace_in_values_and_functions_of_their_own_in_derivatives():
    kept = lambda x: shared(x, settled)  # noqa: E731
    plain = lambda x: shared(x, lambda y: y)  # noqa: E731
    calls = lambda f: jax.jit(f).lower(X).compile().as_text().count(" call(")  # noqa: E731
    assert calls(kept) == calls(jax.grad(plain)) == 0
    assert calls(jax.grad(kept)) >= 2


def test_trees_with_other_things_come_back_as_they_are():
    tree = {"name": "uav", "bodies": (0, 1), "none": None, "mass": jnp.ones(2), "counts": np.arange(3)}
    back = settled(tree)
    assert back["name"] == "uav"
    assert back["bodies"] == (0, 1)
    assert back["none"] is None
    np.testing.assert_array_equal(back["counts"], tree["counts"])
