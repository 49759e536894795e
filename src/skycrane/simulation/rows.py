"""Programs of small arrays, evaluated number by number: what makes a single vehicle and a batch of lanes fast on a CPU.

The step of a small system is written for arrays of three, four or thirteen numbers.  Compiled as it stands, it is a chain of hundreds of
tiny loops, and in a batch the lanes end up outside, the three or four numbers inside, where a processor's vector unit has no use for them.
:func:`evaluate` walks through the traced program (a jaxpr) and does the same operations on single numbers: the state of a loop is one
array, every number of it a scalar, or in a batch a row with one entry for each lane, and what stays the same in all lanes is computed
once.  The equations are untouched: there is one source for both forms.

This gives values only.  :func:`by_numbers` and :func:`in_lanes` take derivatives of the program as it was written, so rules of its own
(``custom_jvp``) hold and reverse mode stores no more than before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.extend import core as jex

from skycrane.runtime import loops_are_fast
from skycrane.simulation.packing import Packing, stack
from skycrane.simulation.row_rules import ELEMENTWISE, RULES, each, numbers_of, small

# More operations than this in the loops of a program, and it is left in arrays: compiling would take longer than it saves.
BUDGET = 2500
_TOGETHER = "axpy"
_INLINE = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat", "remat2")


class Lanes:
    """An array of one value per lane, the lanes last: what is too large to be taken apart."""

    def __init__(self, array: Array):
        self.array = array


Value = Any  # an array (the same in all lanes), Lanes, or a NumPy array of objects: numbers, each () or (lanes,)


def by_numbers(function: Callable[..., Any], *arrays: Any) -> Any:
    """``function(*arrays)``, its loops evaluated number by number where they are small enough.  Trees of arrays in and out."""
    leaves, structure = jax.tree.flatten(arrays)
    closed, shape = jax.make_jaxpr(lambda *flat: function(*jax.tree.unflatten(structure, flat)), return_shape=True)(*leaves)
    out_structure = jax.tree.structure(shape)

    def written(consts, leaves):
        return _with_consts(closed, consts)(*leaves)

    def values(consts, leaves):
        return [_plain(v) for v in evaluate(closed.jaxpr, consts, leaves, None)]

    small_enough = _pays() and 0 < operations(closed.jaxpr) <= BUDGET
    call = _valued_by(values, written) if small_enough else written
    return jax.tree.unflatten(out_structure, call(closed.consts, leaves))


def in_lanes(function: Callable[..., Any], batch: Any) -> Any:
    """``jax.vmap(function)(batch)`` with the lanes last, number by number; a program that is too large is left to ``jax.vmap``."""
    leaves, structure = jax.tree.flatten(batch)
    lanes = jnp.shape(leaves[0])[0]
    one = [jax.ShapeDtypeStruct(jnp.shape(x)[1:], jnp.result_type(x)) for x in leaves]
    closed, shape = jax.make_jaxpr(lambda *flat: function(jax.tree.unflatten(structure, flat)), return_shape=True)(*one)
    out_structure = jax.tree.structure(shape)

    def mapped(consts, leaves):
        return jax.vmap(_with_consts(closed, consts))(*leaves)

    def values(consts, leaves):
        out = evaluate(closed.jaxpr, consts, [Lanes(jnp.moveaxis(x, 0, -1)) for x in leaves], lanes)
        return [jnp.moveaxis(_dense(v, lanes), -1, 0) for v in out]

    # Here what is outside loops is taken apart as well.
    if not _pays() or not 0 < operations(closed.jaxpr) <= BUDGET or _operations(closed.jaxpr) > 2 * BUDGET:
        return jax.tree.unflatten(out_structure, mapped(closed.consts, leaves))
    return jax.tree.unflatten(out_structure, _valued_by(values, mapped)(closed.consts, leaves))


def _pays() -> bool:
    """Many operations on single numbers are fast only where XLA compiles a loop over them into one function."""
    return loops_are_fast() and jax.default_backend() == "cpu"


def _with_consts(closed, consts) -> Callable[..., list]:
    return jex.jaxpr_as_fun(jex.ClosedJaxpr(closed.jaxpr, consts))


def _valued_by(values: Callable, written: Callable) -> Callable:
    """A function with the values of one and the derivatives of the other."""
    function = jax.custom_jvp(values)

    @function.defjvp
    def _(primals, tangents):
        return jax.jvp(written, primals, tangents)

    return function


def operations(jaxpr) -> int:
    """Operations on single numbers in the loops of a program, each loop counted once; more than the budget for loops of unknown length."""
    return sum(_operations(sub) if eqn.primitive.name == "scan" else operations(sub) for eqn in jaxpr.eqns for sub in _subs(eqn))


def _operations(jaxpr) -> int:
    total = 0
    for eqn in jaxpr.eqns:
        subs = list(_subs(eqn))
        if eqn.primitive.name == "while":
            total += BUDGET + 1
        elif subs:
            total += sum(map(_operations, subs))
        elif not all(small(v.aval) for v in (*eqn.invars, *eqn.outvars)):
            continue
        elif eqn.primitive.name == "dot_general":
            (summed, _), _ = eqn.params["dimension_numbers"]
            total += eqn.outvars[0].aval.size * int(np.prod([eqn.invars[0].aval.shape[a] for a in summed]))
        elif eqn.primitive.name in ELEMENTWISE or eqn.primitive.name.startswith("reduce"):
            total += max(v.aval.size for v in (*eqn.outvars, *eqn.invars))
    return total


def _subs(eqn):
    for value in eqn.params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, jex.ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, jex.Jaxpr):
                yield part


# -- the interpreter -------------------------------------------------------------------------------------------------------------------


def evaluate(jaxpr, consts: Sequence[Value], arguments: Sequence[Value], lanes: int | None) -> list[Value]:
    """Results of a program.  ``lanes`` None: one lane, whose numbers are taken apart inside loops only."""
    known: dict[Any, Value] = {}

    def read(atom):
        return np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, jex.Literal) else known[atom]

    known.update(zip(jaxpr.constvars, consts, strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))
    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        known.update(zip(eqn.outvars, _apply(eqn, values, lanes), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _apply(eqn, values: list[Value], lanes: int | None) -> list[Value]:
    name = eqn.primitive.name
    if name == "scan":
        if lanes is None or any(map(_varies, values)):
            return _scan(eqn, values, lanes)
    elif name in _INLINE and not _is_axpy(eqn):
        inner = next(p for p in (eqn.params.get(k) for k in ("jaxpr", "call_jaxpr", "fun_jaxpr")) if p is not None)
        jaxpr, consts = (inner.jaxpr, inner.consts) if isinstance(inner, jex.ClosedJaxpr) else (inner, ())
        if lanes is None or any(map(_varies, values)):
            return evaluate(jaxpr, consts, values, lanes)
    if not any(map(_varies, values)):
        return _bind(eqn, values)
    if name in _INLINE:
        return _together(eqn, values, lanes)
    known = name in ELEMENTWISE or name in RULES
    if known and all(small(v.aval) for v in (*eqn.invars, *eqn.outvars)):
        parts = [_numbers(v) for v in values]
        if name in ELEMENTWISE:
            return [each(eqn.primitive, eqn.params, parts, lanes)]
        if (out := RULES[name](eqn, parts, lanes)) is not None:
            return out
    if not any(map(_differs, values)):
        out = _bind(eqn, [_plain(v) for v in values])
        return [numbers_of(x) if small(v.aval) else x for v, x in zip(eqn.outvars, out, strict=True)]
    assert lanes is not None
    axes = [-1 if _differs(v) else None for v in values]
    packed = [_plain(v) if axis is None else _dense(v, lanes) for v, axis in zip(values, axes, strict=True)]
    out = jax.vmap(lambda *flat: _bind(eqn, flat), in_axes=axes, out_axes=-1, axis_size=lanes)(*packed)
    return [Lanes(x) for x in out]


@jax.jit
def axpy(a: Any, x: Any, y: Any) -> Any:
    """``y + a x``, leaf by leaf.  Number by number it is still one operation on the whole state: between the stages of a Runge-Kutta
    step XLA keeps the state as an array then, where it would otherwise compute every stage anew for each number of the next."""
    return jax.tree.map(lambda u, v: v + a * u, x, y)


def _is_axpy(eqn) -> bool:
    """Whether this is a call of :func:`axpy` itself: its derivatives have the same name, and a function of a user may have it."""
    if eqn.params.get("name") != _TOGETHER:
        return False
    jaxpr, count = eqn.params["jaxpr"].jaxpr, len(eqn.outvars)
    if len(jaxpr.invars) != 1 + 2 * count or any(
        v.aval.shape != w.aval.shape for v, w in zip(eqn.invars[1:], 2 * eqn.outvars, strict=True)
    ):
        return False
    part: dict[Any, Any] = {jaxpr.invars[0]: "a"}
    for i, (x, y) in enumerate(zip(jaxpr.invars[1 : 1 + count], jaxpr.invars[1 + count :], strict=True)):
        part |= {x: ("x", i), y: ("y", i)}
    sums: dict[Any, Any] = {("a", ("x", i)): ("ax", i) for i in range(count)} | {(("y", i), ("ax", i)): i for i in range(count)}
    for inner in jaxpr.eqns:
        given = tuple(part.get(v) if not isinstance(v, jex.Literal) else None for v in inner.invars)
        if inner.primitive.name in ("convert_element_type", "broadcast_in_dim") and given == ("a",):
            part[inner.outvars[0]] = "a"
        elif inner.primitive.name in ("mul", "add") and (made := sums.get(given, sums.get(given[::-1]))) is not None:
            part[inner.outvars[0]] = made
        else:
            return False
    return [part.get(v) for v in jaxpr.outvars if not isinstance(v, jex.Literal)] == list(range(count))


def _together(eqn, values: list[Value], lanes: int | None) -> list[Value]:
    count = len(eqn.outvars)
    pack = Packing([v.aval for v in eqn.outvars], lanes)
    x, y = (pack.pack([_numbers(v) for v in part]) for part in (values[1 : 1 + count], values[1 + count :]))
    (a,) = values[:1]
    a = a if not _varies(a) else _numbers(a)[()]
    return pack.unpack(axpy(a, x, y))


def _bind(eqn, values: Sequence[Any]) -> list[Any]:
    params = eqn.primitive.get_bind_params(eqn.params)
    if isinstance(params, tuple):
        functions, params = params
        out = eqn.primitive.bind(*functions, *values, **params)
    else:
        out = eqn.primitive.bind(*values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def _varies(value: Value) -> bool:
    return isinstance(value, Lanes) or _apart(value)


def _differs(value: Value) -> bool:
    """Between lanes."""
    return isinstance(value, Lanes) or (_apart(value) and any(np.ndim(x) > 0 for x in value.ravel()))


def _apart(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _numbers(value: Value) -> np.ndarray:
    if isinstance(value, Lanes):
        return numbers_of(value.array, 1)
    return value if _apart(value) else numbers_of(value)


def _plain(value: Value) -> Array:
    """One lane: an array."""
    if _apart(value):
        return stack(value.ravel(), None).reshape(value.shape) if value.ndim else jnp.asarray(value[()])
    return jnp.asarray(value)


def _dense(value: Value, lanes: int) -> Array:
    """Any value as an array with the lanes last."""
    if isinstance(value, Lanes):
        return value.array
    if _apart(value):
        return stack(value.ravel(), lanes).reshape(*value.shape, lanes)
    return jnp.broadcast_to(jnp.asarray(value)[..., None], (*jnp.shape(value), lanes))


def _flow(jaxpr, varies: Sequence[bool]) -> list[bool]:
    """Which results differ between lanes, where these arguments do."""
    known = dict.fromkeys(jaxpr.constvars, False) | dict(zip(jaxpr.invars, varies, strict=True))

    def read(atom):
        return False if isinstance(atom, jex.Literal) else known[atom]

    for eqn in jaxpr.eqns:
        given = [read(v) for v in eqn.invars]
        if not any(given):
            out = [False] * len(eqn.outvars)
        elif eqn.primitive.name == "scan":
            out = _scan_flow(eqn.params, given)
        elif eqn.primitive.name in _INLINE and _is_axpy(eqn):
            out = [True] * len(eqn.outvars)
        elif eqn.primitive.name in _INLINE and len(subs := list(_subs(eqn))) == 1:
            out = _flow(subs[0], given)
        else:
            out = [True] * len(eqn.outvars)
        known.update(zip(eqn.outvars, out, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _scan_flow(params, varies: Sequence[bool]) -> list[bool]:
    consts, carries = params["num_consts"], params["num_carry"]
    varies = list(varies)
    while True:
        out = _flow(params["jaxpr"].jaxpr, varies)
        carry = [a or b for a, b in zip(varies[consts : consts + carries], out[:carries], strict=True)]
        if carry == varies[consts : consts + carries]:
            return out
        varies[consts : consts + carries] = carry


def _scan(eqn, values: list[Value], lanes: int | None) -> list[Value]:
    params = eqn.params
    body, n_consts, n_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    # What the loop does not change is taken apart before it.
    values[:n_consts] = [_numbers(v) if small(x.aval) else v for v, x in zip(values[:n_consts], eqn.invars, strict=False)]
    consts, init, xs = values[:n_consts], values[n_consts : n_consts + n_carry], values[n_consts + n_carry :]
    avals = [v.aval for v in body.jaxpr.invars[n_consts : n_consts + n_carry]]
    if lanes is None:
        varies = [True] * n_carry
    else:
        varies = _scan_flow(params, [_differs(v) for v in values])[:n_carry]
        varies = [a or _differs(v) for a, v in zip(varies, init, strict=True)]
    apart = [v and small(a) for v, a in zip(varies, avals, strict=True)]
    carry_pack = Packing([a for a, k in zip(avals, apart, strict=True) if k], lanes)

    def bundle(carry):
        rows = carry_pack.pack([_numbers(v) for v, k in zip(carry, apart, strict=True) if k])
        rest = [
            _plain(v) if lanes is None or not differs else _dense(v, lanes)
            for v, k, differs in zip(carry, apart, varies, strict=True)
            if not k
        ]
        return rows, rest

    def unbundle(packed):
        rows, rest = packed
        rows, rest = iter(carry_pack.unpack(rows)), iter(rest)
        out = []
        for k, differs in zip(apart, varies, strict=True):
            value = next(rows) if k else next(rest)
            out.append(Lanes(value) if not k and differs and lanes is not None else value)
        return out

    y_avals = [v.aval for v in body.jaxpr.outvars[n_carry:]]
    plan: dict[str, Any] = {}

    def once(packed, slices):
        slices = [Lanes(s) if lanes is not None and _differs(x) else s for s, x in zip(slices, xs, strict=True)]
        out = evaluate(body.jaxpr, body.consts, [*consts, *unbundle(packed), *slices], lanes)
        new, ys = out[:n_carry], out[n_carry:]
        ys = [_plain(y) if lanes is not None and _apart(y) and not _differs(y) else y for y in ys]
        plan["apart"] = y_apart = [_apart(y) for y in ys]
        plan["lanes"] = [isinstance(y, Lanes) for y in ys]
        plan["pack"] = y_pack = Packing([a for a, k in zip(y_avals, y_apart, strict=True) if k], lanes)
        rows = y_pack.pack([y for y, k in zip(ys, y_apart, strict=True) if k])
        rest = [y.array if isinstance(y, Lanes) else jnp.asarray(y) for y, k in zip(ys, y_apart, strict=True) if not k]
        return bundle(new), (rows, rest)

    arrays = [_dense(x, lanes) if lanes is not None and _differs(x) else _plain(x) for x in xs]
    final, (rows, rest) = lax.scan(once, bundle(init), arrays, length=params["length"], reverse=params["reverse"], unroll=params["unroll"])
    rows, rest = iter(plan["pack"].split(rows, leading=1)), iter(rest)
    ys = []
    for k, is_lanes in zip(plan["apart"], plan["lanes"], strict=True):
        y = next(rows) if k else next(rest)
        ys.append(Lanes(y) if lanes is not None and (k or is_lanes) else y)
    carry = unbundle(final)
    return [*carry, *ys]


def call_packed(function: Callable, packing: Packing, packed: Sequence[Array], other: Any) -> list[Array]:
    """``function(leaves, other)`` of one lane, which returns leaves again, for a packed state: number by number where it is small enough.

    ``packed`` and the result are arrays (numbers,) or (numbers, lanes); the arrays in the tree ``other`` have the lanes last as well.
    """
    lanes = packing.lanes
    leaves, structure = jax.tree.flatten(other)
    end = None if lanes is None else -1
    like = [jax.ShapeDtypeStruct(x.shape[:end], x.dtype) for x in leaves]
    closed = jax.make_jaxpr(lambda state, rest: function(state, jax.tree.unflatten(structure, rest)))(packing.avals, like)
    if not _pays() or _operations(closed.jaxpr) > BUDGET:
        program = jex.jaxpr_as_fun(closed)
        program = program if lanes is None else jax.vmap(program, in_axes=-1, out_axes=-1)
        return packing.join(program(*packing.split(packed), *leaves))
    given = [x if lanes is None else Lanes(x) for x in leaves]
    given = [_numbers(x) if small(a) else x for a, x in zip(like, given, strict=True)]
    out = evaluate(closed.jaxpr, closed.consts, [*packing.unpack(packed), *given], lanes)
    return packing.pack([_numbers(v) for v in out])
