"""Programs evaluated number by number do what the program says: the same values, derivatives of the program as it is written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from skycrane.simulation import rows
from skycrane.simulation.batch import map_lanes
from skycrane.simulation.rows import axpy, by_numbers, in_lanes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3)) + 2.5
BATCH = RNG.normal(size=(5, 2, 3)) + 2.5


def loop(body):
    """A program whose loop does ``body`` to an array (2, 3) three times, stores what it was, and counts."""

    def program(x):
        def step(carry, weight):
            y, n = carry
            return (0.5 * y + weight * body(y), n + 1), (y, n)

        return lax.scan(step, (x, jnp.zeros((), int)), jnp.array([0.3, 0.2, 0.1]))

    return program


@jax.custom_jvp
def doubled(x):
    return 2.0 * x


@doubled.defjvp
def _(primals, tangents):
    return doubled(*primals), 7.0 * tangents[0]  # not the derivative, so that one sees whose rule was used


def namesake(a, x, y):
    return a * x - y


def shuffled(a, x, y):
    return y[1] + a * x[1], y[0] + a * x[0]


for function in (namesake, shuffled):
    function.__name__ = axpy.__name__
namesake, shuffled = jax.jit(namesake), jax.jit(shuffled)

BODIES = {
    "arithmetic": lambda y: jnp.sin(y) * y**2 / (1.0 + jnp.sqrt(abs(y))) - jnp.maximum(y, 2.0) ** 3,
    "choice": lambda y: jnp.where(y > 2.5, y, jnp.clip(-y, -2.0, 1.0)) * jnp.sign(y) * jnp.isfinite(y),
    "sums": lambda y: y.sum() + y.max(0) - y.min(1, keepdims=True) + jnp.prod(y, -1, keepdims=True),
    "logic": lambda y: jnp.where(jnp.all(y > 0, -1, keepdims=True) & ~jnp.any(y > 3, 0), y, 0.1),
    "products": lambda y: y @ jnp.arange(9.0).reshape(3, 3) + jnp.einsum("ij,ij->j", y, y) + jnp.cross(y, y[::-1]),
    "batched products": lambda y: jnp.einsum("ij,ik->ijk", y, y).sum(-1) + jnp.einsum("ijk,ik->ij", y[:, :, None] * y[:, None], y),
    "moving": lambda y: jnp.concatenate([y[1:], y[:1]]).T.reshape(2, 3)[:, ::-1] + jnp.stack([y[0], y[1]], 0),
    "strides": lambda y: jnp.pad(y[:, ::2], ((0, 0), (1, 0)), constant_values=0.3) + jnp.repeat(y[:, :1], 3, 1),
    "pads": lambda y: lax.pad(y, 0.5, ((0, 0, 0), (1, 1, 1)))[:, :3] + lax.pad(y, 0.1, ((-1, 1, 0), (1, -1, 0))),
    "splits": lambda y: jnp.concatenate(jnp.split(y, [1], 1)[::-1], 1),
    "integers": lambda y: jnp.floor(y) + (y.astype(jnp.int32) % 2) * 1.0 + jnp.where(jnp.array([1, 0, 1]) == 1, y, 0),
    "unknown to the rules": lambda y: jnp.cumsum(y, 1) + jnp.sort(y, 0) + y[jnp.argmax(y, 0), jnp.arange(3)],
    "look-up": lambda y: jnp.interp(y, jnp.linspace(0, 5, 7), jnp.linspace(0, 5, 7) ** 2),
    "branches": lambda y: lax.cond(y[0, 0] > 1.0, lambda z: z * 2.0, lambda z: z - 1.0, y),
    "inner loop": lambda y: lax.fori_loop(0, 4, lambda i, z: z * 0.9 + i, y),
    "inner sums": lambda y: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(3), y)[1],
    "a rule of its own": lambda y: doubled(y),
    "together": lambda y: axpy(0.2, {"a": y, "b": y[0]}, {"a": y * y, "b": y[1]})["a"],
    "again": lambda y: jax.checkpoint(jnp.tanh)(y),
    "a table for an inner loop": lambda y: (
        y * lax.scan(lambda c, x: ((c[0] + x, c[1] * 0.9), x * 2.0), (jnp.zeros(()), y[0, 0]), jnp.linspace(0.0, 1.0, 4))[0][0]
    ),
    "the same from an inner loop": lambda y: y * lax.scan(lambda c, x: (c * x, x + 1.0), y[0], jnp.linspace(0.0, 1.0, 4))[1][-1],
    "nothing": lambda y: (
        y
        + jnp.sum(jnp.zeros((0, 3)) * y[0], 0)
        + jnp.zeros((2, 0)) @ jnp.zeros((0, 3))
        + jnp.sort(y[:0], 0).sum()
        + jnp.ones((0, 3)).prod()
    ),
    "sums in a wider type": lambda y: (
        y * lax.dot(jnp.floor(y).astype(jnp.int8), jnp.ones((3, 3), jnp.int8), preferred_element_type=jnp.int32)
        + lax.dot(y.astype(jnp.float32), jnp.ones((3, 3), jnp.float32), preferred_element_type=jnp.float64)
        + (y > 2.5) @ jnp.ones((3, 3), bool)
    ),
    "a stranger of the same name": lambda y: namesake(0.5, y, y * y),
    "a stranger of the same shape": lambda y: shuffled(0.5, (y, 2 * y), (y * y, y + 1.0))[0],
    "forward derivatives": lambda y: jax.jvp(lambda z: axpy(0.2, jnp.sin(z), z), (y,), (y * y,))[1],
    "backward derivatives": lambda y: jax.grad(lambda z: axpy(z[0, 0], jnp.sin(z), z).sum())(y),
    "an array too large": lambda y: (jnp.ones((300, 2)) @ y)[7:9] + jnp.linspace(0, 1, 600).reshape(300, 2).sum(),
}


def close(a, b, rtol=1e-12):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-12), a, b)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), a) == jax.tree.map(lambda x: (x.shape, x.dtype), b)


@pytest.mark.parametrize("name", BODIES)
def test_values_number_by_number(name, monkeypatch):
    program = loop(BODIES[name])
    monkeypatch.setattr(rows, "BUDGET", 10**6)
    expected = jax.jit(program)(jnp.asarray(X))
    close(jax.jit(lambda x: by_numbers(program, x))(X), expected)


@pytest.mark.parametrize("name", BODIES)
def test_values_in_lanes(name, monkeypatch):
    program = loop(BODIES[name])
    monkeypatch.setattr(rows, "BUDGET", 10**6)
    expected = jax.jit(jax.vmap(program))(BATCH)
    close(jax.jit(lambda x: in_lanes(program, x))(BATCH), expected)
    nested = jax.jit(lambda x: in_lanes(lambda y: by_numbers(program, y), x))(BATCH)
    close(nested, expected)


def test_the_programs_are_evaluated_by_the_rules():
    """Else the tests above would compare a program with itself."""
    operations = {name: rows.operations(jax.make_jaxpr(loop(body))(X).jaxpr) for name, body in BODIES.items()}
    assert all(n > 0 for n in operations.values()), operations
    text = str(jax.make_jaxpr(lambda x: by_numbers(loop(BODIES["arithmetic"]), x))(X))
    assert text.count(" sin ") == 6
    assert str(jax.make_jaxpr(loop(BODIES["arithmetic"]))(X)).count(" sin ") == 1


def test_what_is_the_same_in_all_lanes_is_computed_once():
    def program(x):
        def step(carry, _):
            t, y = carry
            return (t + 0.1, y + jnp.sin(3.0 * t)), None

        return lax.scan(step, (jnp.zeros(()), x), None, length=4)[0]

    lanes = 7
    lowered = jax.jit(lambda x: in_lanes(program, x)).lower(np.zeros(lanes)).as_text()
    sines = [line for line in lowered.splitlines() if "stablehlo.sine" in line]
    assert sines
    assert all("7xf64" not in line for line in sines)


def test_derivatives_are_those_of_the_program_as_written():
    program = loop(BODIES["a rule of its own"])

    def total(x, how):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(how(x)[0][0]))

    expected = jax.grad(total)(jnp.asarray(X), program)
    close(jax.jit(jax.grad(lambda x: total(x, lambda y: by_numbers(program, y))))(X), expected)
    close(jax.jit(jax.jacfwd(lambda x: total(x, lambda y: by_numbers(program, y))))(X), expected)
    batch = jax.jit(jax.grad(lambda x: total(x, lambda y: map_lanes(program, y, block=2))))(BATCH)
    close(batch[3], jax.grad(total)(jnp.asarray(BATCH[3]), program))


def test_derivatives_by_what_the_program_closes_over():
    def flight(gain, x, how):
        return jnp.sum(how(loop(lambda y: gain * jnp.tanh(y)), x)[0][0])

    expected = float(jax.grad(flight)(0.7, X, lambda p, x: p(x)))
    assert jax.grad(flight)(0.7, X, by_numbers) == pytest.approx(expected, rel=1e-12)
    lanes = jax.grad(flight)(0.7, BATCH, in_lanes)
    assert lanes == pytest.approx(float(jax.grad(flight)(0.7, BATCH, lambda p, x: jax.vmap(p)(x))), rel=1e-12)


def test_a_loop_of_one_s_own_over_the_state(monkeypatch):
    """The packed state of a step varies as a whole."""
    monkeypatch.setattr(rows, "BUDGET", 10**6)

    def flown(x):
        def step(state, i):
            nothing = 2.0 * state["empty"]
            rate = {"a": jnp.sin(state["b"]) * x + nothing.sum(), "b": jnp.ones(3), "empty": nothing}
            return axpy(0.1, rate, state), None

        return lax.scan(step, {"a": jnp.zeros(3), "b": jnp.zeros(3), "empty": jnp.zeros((0, 2))}, jnp.arange(3))[0]

    close(jax.jit(lambda x: in_lanes(flown, x))(BATCH[:, 0, 0]), jax.vmap(flown)(BATCH[:, 0, 0]))
    close(jax.jit(lambda x: by_numbers(flown, x))(0.3), flown(0.3))


def test_much_outside_of_loops_is_left_alone(monkeypatch):
    monkeypatch.setattr(rows, "evaluate", None)

    def program(x):
        m = x[:, None] * jnp.ones((10, 10))
        for _ in range(10):
            m = 0.1 * (m @ m)
        return lax.scan(lambda c, _: (c * 0.5, None), m[0, 0], None, length=3)[0]

    x = np.ones((4, 10))
    close(jax.jit(lambda x: in_lanes(program, x))(x), jax.jit(jax.vmap(program))(x))


def test_slow_loops_are_left_alone(monkeypatch):
    monkeypatch.setattr(rows, "evaluate", None)
    monkeypatch.setattr(rows, "loops_are_fast", lambda: False)
    program = loop(BODIES["sums"])
    close(jax.jit(lambda x: by_numbers(program, x))(X), program(jnp.asarray(X)))
    close(jax.jit(lambda x: in_lanes(program, x))(BATCH), jax.jit(jax.vmap(program))(BATCH))


def test_no_lanes():
    with pytest.raises(ValueError, match="no lanes"):
        map_lanes(jnp.sin, jnp.zeros((0, 2)))


def test_large_programs_are_left_alone(monkeypatch):
    monkeypatch.setattr(rows, "BUDGET", 10)
    monkeypatch.setattr(rows, "evaluate", None)
    close(jax.jit(lambda x: by_numbers(loop(BODIES["sums"]), x))(X), loop(BODIES["sums"])(jnp.asarray(X)))
