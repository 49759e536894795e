"""Batches: many lanes of one program, in blocks that stay in the processor's cache, spread over devices.

``jax.vmap`` alone walks through all lanes at every time step, so a large batch streams through memory once a step.  In blocks of 64 lanes
(``lax.map`` outside, time inside) a block stays in the first-level cache for its whole flight, and with
:func:`skycrane.runtime.fast_loops` XLA compiles its whole time loop into one function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from skycrane.simulation.rows import in_lanes

BLOCK = 64


def map_lanes(function: Callable, batch: Any, *, block: int = BLOCK, devices: Sequence[jax.Device] | int | None = None) -> Any:
    """``jax.vmap(function)(batch)``, in blocks and over devices.

    Call it inside ``jax.jit``, or it is compiled anew each time.  What ``function`` returns is all that is kept, so the memory of a batch
    grows with the number of lanes times the size of that, not with the length of the flight.

    Args:
        function: of one lane; returns a tree of arrays.
        batch: a tree whose arrays all have the lanes as leading axis; ``function`` gets it without that axis.
        block: lanes that are computed together; 64 suits a single vehicle, 16 a large system.  The last block is filled up with copies of
            the last lane.
        devices: devices to spread the blocks over, or how many of ``jax.devices()``; one by default.  For the cores of a CPU call
            ``jax.config.update("jax_num_cpu_devices", n)`` before JAX starts.

    Returns:
        The results with the lanes as leading axis.  Of at least a block of lanes on each device, a lane's result does not depend on how
        many there are.

    Raises:
        ValueError: for arrays whose leading axes differ or are empty, or more devices than there are.
    """
    leaves = jax.tree.leaves(batch)
    if not leaves or any(jnp.ndim(x) == 0 for x in leaves) or len({jnp.shape(x)[0] for x in leaves}) != 1:
        raise ValueError(f"arrays of shapes {[jnp.shape(x) for x in leaves]}: every array needs the same leading axis, that of the lanes")
    if block < 1:
        raise ValueError(f"block is {block}, expected at least 1")
    count = jnp.shape(leaves[0])[0]
    if count == 0:
        raise ValueError("a batch of no lanes: the leading axis is empty")
    chosen = _devices(devices)
    width = min(block, -(-count // len(chosen)))
    blocks = -(-count // (width * len(chosen))) * len(chosen)

    def arrange(x):
        x = jnp.asarray(x)
        spare = blocks * width - count
        if spare:
            x = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (spare, *x.shape[1:]))])
        return x.reshape(blocks, width, *x.shape[1:])

    arranged = jax.tree.map(arrange, batch)

    def lanes(part):
        return in_lanes(function, part)

    if len(chosen) == 1:
        out = lax.map(lanes, arranged) if blocks > 1 else jax.tree.map(lambda x: x[None], lanes(jax.tree.map(lambda x: x[0], arranged)))
    else:
        mesh = Mesh(np.array(chosen), ("lanes",))
        spec = PartitionSpec("lanes")
        arranged = lax.with_sharding_constraint(arranged, NamedSharding(mesh, spec))
        out = jax.shard_map(lambda part: lax.map(lanes, part), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(arranged)
    return jax.tree.map(lambda x: x.reshape(blocks * width, *x.shape[2:])[:count], out)


def _devices(devices: Sequence[jax.Device] | int | None) -> list[jax.Device]:
    if devices is None:
        return [jax.devices()[0]]
    if not isinstance(devices, int):
        return list(devices)
    there = jax.devices()
    if not 1 <= devices <= len(there):
        raise ValueError(
            f"{devices} devices asked for, but JAX has {len(there)}; for more on a CPU call "
            f'jax.config.update("jax_num_cpu_devices", {devices}) before the first JAX computation'
        )
    return there[:devices]


def stack_lanes(trees: Sequence[Any], varied: Sequence[str] = ()) -> tuple[Any, Any]:
    """Many objects of one structure (systems, controllers, tuples of them) as one batch.

    Python floats that differ become arrays; so do those whose path (``jax.tree_util.keystr``) is in ``varied``.

    Returns:
        ``(stacked, shared)``: trees to give to ``equinox.combine`` after the leading axis of ``stacked`` is mapped away; leaves that are
        the same in all objects are in ``shared``, except those in ``varied``.

    Raises:
        ValueError: for objects whose structures differ: they need programs of their own.
    """
    flat: list[Any] = [jax.tree_util.tree_flatten_with_path(tree) for tree in trees]
    paths, structure = [jax.tree_util.keystr(path) for path, _ in flat[0][0]], flat[0][1]
    columns = list(zip(*([leaf for _, leaf in leaves] for leaves, _ in flat), strict=True))
    if any(other != structure for _, other in flat) or not all(map(_alike, columns)):
        raise ValueError("objects of different structure cannot be flown in one batch; group them by lane_structure")
    stacked: list[Any] = []
    shared: list[Any] = []
    for path, column in zip(paths, columns, strict=True):
        lane = path in varied or not _same(column)
        stacked.append(np.stack([np.asarray(x, jnp.result_type(x)) for x in column]) if lane else None)
        shared.append(None if lane else column[0])
    return jax.tree.unflatten(structure, stacked), jax.tree.unflatten(structure, shared)


def lane_structure(tree: Any) -> tuple:
    """What must be equal for two objects to fly in one batch; hashable where the static fields are."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(_kind(leaf) for leaf in leaves)


def differing(a: Any, b: Any) -> set[str]:
    """Paths of the numbers that differ between two objects of one structure."""
    first, second = (jax.tree_util.tree_flatten_with_path(tree)[0] for tree in (a, b))
    return {jax.tree_util.keystr(p) for (p, x), (_, y) in zip(first, second, strict=True) if not _same((x, y))}


def _kind(leaf: Any) -> Any:
    if eqx.is_array(leaf) or isinstance(leaf, np.ndarray):
        return np.shape(leaf), str(leaf.dtype)
    return "float" if isinstance(leaf, float) else leaf


def _alike(column: Sequence[Any]) -> bool:
    first = _kind(column[0])
    return all(_kind(leaf) == first for leaf in column[1:])


def _same(column: Sequence[Any]) -> bool:
    first = column[0]
    if eqx.is_array(first) or isinstance(first, (np.ndarray, float)):
        return all(x is first or np.array_equal(np.asarray(x), np.asarray(first), equal_nan=True) for x in column[1:])
    return all(x == first for x in column[1:])
