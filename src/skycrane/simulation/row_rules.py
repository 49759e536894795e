"""How each operation of a traced program acts on single numbers (see :mod:`skycrane.simulation.rows`).

A value is a NumPy array of objects with the shape that the program gives it; its entries are numbers: scalars, or rows with one entry for
each lane.  Operations that move numbers about (slices, transposes) cost nothing then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

LARGEST = 128  # numbers in a value that is still taken apart

_ELEMENTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type copy copy_p cos cosh div
eq erf erf_inv erfc exp exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt max min mul ne neg
nextafter not or pow reduce_precision rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical
sign sin sinh sqrt square stop_gradient sub tan tanh xor
"""
ELEMENTWISE = frozenset(_ELEMENTWISE.split())


def small(aval) -> bool:
    """Whether a value of this type is taken apart into its numbers."""
    return 0 < aval.size <= LARGEST and not jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended)


def numbers_of(x: Any, lane_axes: int = 0) -> np.ndarray:
    """The numbers of an array whose last ``lane_axes`` axes are lanes."""
    concrete = isinstance(x, (np.ndarray, np.generic, float, int)) or (isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer))
    x = np.asarray(x) if concrete else x
    shape = np.shape(x)[: np.ndim(x) - lane_axes]
    out = np.empty(shape, dtype=object)
    if not shape:
        out[()] = x[()] if concrete else x
        return out
    flat = x.reshape(-1, *np.shape(x)[len(shape) :])
    for i, at in enumerate(np.ndindex(shape)):
        out[at] = flat[i] if concrete else lax.index_in_dim(flat, i, keepdims=False)
    return out


def bind(primitive, params: dict, numbers: Sequence[Any], lanes: int | None):
    """One operation on single numbers, those that are the same in all lanes spread where others are not."""
    if lanes is not None:
        wide = [np.ndim(x) > 0 for x in numbers]
        if any(wide) and not all(wide):
            numbers = [x if w else lax.broadcast(x, (lanes,)) for x, w in zip(numbers, wide, strict=True)]
    return primitive.bind(*numbers, **params)


def each(primitive, params: dict, values: Sequence[np.ndarray], lanes: int | None) -> np.ndarray:
    """An operation entry by entry; values without axes serve all entries."""
    shape = np.broadcast_shapes(*(v.shape for v in values))
    values = [np.broadcast_to(v, shape) for v in values]
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(shape):
        out[at] = bind(primitive, params, [v[at] for v in values], lanes)
    return out


def _broadcast_in_dim(eqn, values, lanes):
    shape, dimensions = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    aligned = [1] * len(shape)
    for axis, length in zip(dimensions, values[0].shape, strict=True):
        aligned[axis] = length
    return [np.broadcast_to(values[0].reshape(aligned), shape)]


def _reshape(eqn, values, lanes):
    return [values[0].reshape(eqn.outvars[0].aval.shape)]


def _slice(eqn, values, lanes):
    p = eqn.params
    steps = p["strides"] or (1,) * values[0].ndim
    return [values[0][tuple(map(slice, p["start_indices"], p["limit_indices"], steps))]]


def _split(eqn, values, lanes):
    return np.split(values[0], np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


def _pad(eqn, values, lanes):
    """Padding at the edges and between entries; negative padding cuts."""
    array, filler = values
    for axis, (before, after, between) in enumerate(eqn.params["padding_config"]):
        length = array.shape[axis]
        spread = length + max(length - 1, 0) * between
        shape = list(array.shape)
        shape[axis] = before + spread + after if min(before, after) >= 0 else max(before, 0) + spread + max(after, 0)
        out = np.empty(shape, dtype=object)
        out[...] = np.broadcast_to(filler, shape)
        at: list[Any] = [slice(None)] * array.ndim
        at[axis] = slice(max(before, 0), max(before, 0) + spread, between + 1)
        out[tuple(at)] = array
        at[axis] = slice(max(-before, 0), out.shape[axis] - max(-after, 0))
        array = out[tuple(at)]
    return [array]


def _reduce(primitive) -> Callable:
    def rule(eqn, values, lanes):
        (array,) = values
        axes = eqn.params["axes"]
        kept = [a for a in range(array.ndim) if a not in axes]
        folded = array.transpose([*kept, *axes]).reshape([array.shape[a] for a in kept] + [-1])
        out = np.empty(folded.shape[:-1], dtype=object)
        for at in np.ndindex(out.shape):
            total = folded[at][0]
            for x in folded[at][1:]:
                total = bind(primitive, {}, (total, x), lanes)
            out[at] = total
        return [out]

    return rule


def _dot_general(eqn, values, lanes):
    types = {v.aval.dtype for v in (*eqn.invars, *eqn.outvars)}
    if len(types) > 1 or not np.issubdtype(types.pop(), np.inexact):
        return None  # sums in another type than the factors
    (left_sum, right_sum), (left_batch, right_batch) = eqn.params["dimension_numbers"]

    def arrange(array, batch, summed):
        free = [a for a in range(array.ndim) if a not in (*batch, *summed)]
        lengths = [[array.shape[a] for a in axes] for axes in (batch, free, summed)]
        return array.transpose([*batch, *free, *summed]).reshape([int(np.prod(n)) for n in lengths])

    left, right = arrange(values[0], left_batch, left_sum), arrange(values[1], right_batch, right_sum)
    out = np.empty((left.shape[0], left.shape[1], right.shape[1]), dtype=object)
    for b, i, j in np.ndindex(out.shape):
        terms = [bind(lax.mul_p, {}, pair, lanes) for pair in zip(left[b, i], right[b, j], strict=True)]
        total = terms[0]
        for term in terms[1:]:
            total = bind(lax.add_p, {}, (total, term), lanes)
        out[b, i, j] = total
    return [out.reshape(eqn.outvars[0].aval.shape)]


RULES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": lambda eqn, values, lanes: [values[0].transpose(eqn.params["permutation"])],
    "slice": _slice,
    "split": _split,
    "concatenate": lambda eqn, values, lanes: [np.concatenate(values, eqn.params["dimension"])],
    "unstack": lambda eqn, values, lanes: list(np.moveaxis(values[0], eqn.params["axis"], 0)),
    "stack": lambda eqn, values, lanes: [np.stack(values, eqn.params["axis"])],
    "rev": lambda eqn, values, lanes: [np.flip(values[0], eqn.params["dimensions"])],
    "pad": _pad,
    "optimization_barrier": lambda eqn, values, lanes: list(values),
    "reduce_sum": _reduce(lax.add_p),
    "reduce_prod": _reduce(lax.mul_p),
    "reduce_max": _reduce(lax.max_p),
    "reduce_min": _reduce(lax.min_p),
    "reduce_and": _reduce(lax.and_p),
    "reduce_or": _reduce(lax.or_p),
    "dot_general": _dot_general,
}
