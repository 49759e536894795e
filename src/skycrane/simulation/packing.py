"""Many small values as one array for each type of number, so that a loop carries and stores few arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from skycrane.simulation.row_rules import numbers_of


def stack(numbers: Sequence[Any], lanes: int | None) -> Array:
    """Numbers or rows along a new first axis."""
    shape = () if lanes is None else (lanes,)
    return jnp.stack([jnp.broadcast_to(x, shape) for x in numbers])


class Packing:
    """The layout: values of the types ``avals`` one after the other, in an array (numbers,) or (numbers, lanes) for each type of number."""

    def __init__(self, avals, lanes: int | None):
        self.avals, self.lanes = avals, lanes
        self.types = list(dict.fromkeys(a.dtype for a in avals if a.size))

    def pack(self, values: Sequence[np.ndarray]) -> list[Array]:
        out = []
        for kind in self.types:
            flat = [x for a, v in zip(self.avals, values, strict=True) if a.dtype == kind for x in v.ravel()]
            out.append(stack(flat, self.lanes).astype(kind))
        return out

    def unpack(self, arrays: Sequence[Array]) -> list[Any]:
        parts = {kind: numbers_of(x, 0 if self.lanes is None else 1) for kind, x in zip(self.types, arrays, strict=True)}
        used = dict.fromkeys(self.types, 0)
        out: list[Any] = []
        for a in self.avals:
            if a.size == 0:  # the memory of a cable of one segment, say
                out.append(jnp.zeros(a.shape, a.dtype))
                continue
            size, first = a.size, used[a.dtype]
            out.append(parts[a.dtype][first : first + size].reshape(a.shape))
            used[a.dtype] += size
        return out

    def join(self, arrays: Sequence[Array], leading: int = 0) -> list[Array]:
        """Of arrays (... , *shape, lanes) the packed ones (..., numbers, lanes)."""
        tail = 0 if self.lanes is None else 1
        flat = [x.reshape(*x.shape[:leading], a.size, *x.shape[x.ndim - tail :]) for a, x in zip(self.avals, arrays, strict=True)]
        return [jnp.concatenate([x for a, x in zip(self.avals, flat, strict=True) if a.dtype == kind], leading) for kind in self.types]

    def split(self, arrays: Sequence[Array], leading: int = 0) -> list[Array]:
        """The inverse of :meth:`join`."""
        parts = dict(zip(self.types, arrays, strict=True))
        used = dict.fromkeys(self.types, 0)
        out = []
        for a in self.avals:
            if a.size == 0 and a.dtype not in parts:
                lanes = () if self.lanes is None else (self.lanes,)
                out.append(jnp.zeros((*next(iter(parts.values())).shape[:leading], *a.shape, *lanes), a.dtype))
                continue
            first = used.setdefault(a.dtype, 0)
            part = lax.slice_in_dim(parts[a.dtype], first, first + a.size, axis=leading)
            out.append(part.reshape(*part.shape[:leading], *a.shape, *part.shape[leading + 1 :]))
            used[a.dtype] += a.size
        return out
