"""One timeline of events for every system: numbers that change at a time, and impulses.

An event takes effect at the first control tick at or after its time, so that no integration step straddles it and the method keeps its
order.  Times, values and impulses are arrays: they batch with ``vmap``, and values differentiate.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array


class Event(eqx.Module):
    """From ``time`` [s] on, the number(s) at ``path`` have ``value``.

    ``path`` starts with ``system``, ``controller`` or ``reference`` and goes down by attribute, key or index:
    ``"system.elements.rotors.health[0, 2]"``, ``"system.environment.air.wind.velocity"``, ``"controller.members.uav.mode"``.
    """

    path: str = eqx.field(static=True)
    time: Array
    value: Array


class Impulse(eqx.Module):
    """Momentum added to one ``body`` (static index) at ``time`` [s].

    ``linear_W`` (3,) N s in world axes, acting at ``offset_B`` (3,) m from B in body axes, and ``angular_B`` (3,) N m s.
    """

    body: int = eqx.field(static=True)
    time: Array
    linear_W: Array
    angular_B: Array | tuple = (0.0, 0.0, 0.0)
    offset_B: Array | tuple = (0.0, 0.0, 0.0)


class Timeline(eqx.Module):
    """All events and impulses of a run, in any order; of two events on the same number the later in time wins."""

    events: tuple[Event, ...] = ()
    impulses: tuple[Impulse, ...] = ()

    def apply(self, tick: Array, period: float, parts: dict[str, Any]) -> dict[str, Any]:
        """System, controller and reference as they are at a control tick."""
        for event in self.events:
            due = tick >= due_tick(event.time, period)
            for other in self.events:
                if other is not event and other.path == event.path:  # a later event that is due too replaces this one
                    newer = (other.time > event.time) & (tick >= due_tick(other.time, period))
                    due = due & ~newer
            parts = _replace(parts, event, due)
        return parts

    def impulse_at(self, tick: Array, period: float, kin: Any, count: int) -> tuple[Array, Array] | None:
        """Linear (world) and angular (body) impulses (nb, 3) that fall on this tick; None if the timeline has none."""
        if not self.impulses:
            return None
        zero = jnp.zeros((count, 3), kin.p_WB.x.dtype)
        linear_W, angular_B = zero, zero
        R_WB = kin.R_WB.array()
        for i in self.impulses:
            now = jnp.where(tick == due_tick(i.time, period), 1.0, 0.0).astype(zero.dtype)
            force_W = now * jnp.asarray(i.linear_W, zero.dtype)
            moment_B = jnp.cross(jnp.asarray(i.offset_B, zero.dtype), R_WB[i.body].T @ force_W)
            linear_W = linear_W.at[i.body].add(force_W)
            angular_B = angular_B.at[i.body].add(moment_B + now * jnp.asarray(i.angular_B, zero.dtype))
        return linear_W, angular_B

    def check(self, parts: dict[str, Any]) -> None:
        """Raises ValueError where a path leads nowhere or a value does not fit."""
        for event in self.events:
            current, index = _resolve(parts, event.path)
            shape = jnp.shape(current if index is None else jnp.asarray(current)[index])
            if jnp.shape(event.value) not in ((), shape):
                raise ValueError(f"event {event.path!r}: the value has shape {jnp.shape(event.value)}, expected {shape}")


def due_tick(time: Array, period: float) -> Array:
    """The first control tick at or after a time; a hair of slack so that 0.3 s is tick 3 of 0.1 s."""
    return jnp.ceil(time / period - 1e-4)


_INDEX = re.compile(r"^(.*?)\[([\d,\s]+)\]$")


def _split(path: str) -> tuple[list[str], tuple[int, ...] | None]:
    match = _INDEX.match(path)
    if match:
        return match[1].split("."), tuple(int(i) for i in match[2].split(","))
    return path.split("."), None


def _descend(node: Any, key: str, path: str) -> Any:
    if isinstance(node, dict) and key in node:
        return node[key]
    if isinstance(node, (tuple, list)) and key.isdigit() and int(key) < len(node):
        return node[int(key)]
    if not isinstance(node, dict) and hasattr(node, key):
        return getattr(node, key)
    names = sorted(node) if isinstance(node, dict) else [f.name for f in fields(node)] if is_dataclass(node) else []
    raise ValueError(f"event path {path!r}: nothing is called {key!r} there; expected one of {', '.join(map(str, names))}")


def _resolve(parts: Any, path: str) -> tuple[Any, tuple[int, ...] | None]:
    keys, index = _split(path)
    node = parts
    for key in keys:
        node = _descend(node, key, path)
    return node, index


def _replace(parts: dict, event: Event, due: Array) -> dict:
    keys, index = _split(event.path)
    current, _ = _resolve(parts, event.path)
    current = jnp.asarray(current)
    if index is None:
        new = jnp.where(due, jnp.asarray(event.value, current.dtype), current)
    else:
        new = current.at[index].set(jnp.where(due, jnp.asarray(event.value, current.dtype), current[index]))
    where = lambda tree: _resolve(tree, ".".join(keys))[0]  # noqa: E731
    return eqx.tree_at(where, parts, new)
