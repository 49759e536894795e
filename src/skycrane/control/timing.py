"""Timing of controllers: a delay, a lower rate, and rotor speeds without feedback."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from skycrane.core.controller import AbstractController, Constant


class RotorSpeeds(Constant):
    """Constant rotor speeds, no feedback; the command of :class:`skycrane.core.controller.Constant` for one element."""

    @classmethod
    def create(cls, speed: Array, rotors: str = "rotors") -> RotorSpeeds:
        """``speed`` (k, n) rad/s for the element ``rotors``."""
        return cls({rotors: jnp.atleast_2d(jnp.asarray(speed, jnp.result_type(float)))})


class Delayed(AbstractController):
    """Commands reach the vehicle ``ticks`` (static) control ticks after they were computed; until then ``initial`` holds.

    ``initial`` has the commands' structure: element name to array.
    """

    inner: AbstractController
    initial: dict[str, Array]
    ticks: int = eqx.field(static=True)

    def __check_init__(self):
        if self.ticks < 0:
            raise ValueError(f"a delay of {self.ticks} ticks: expected 0 or more")

    def init(self) -> tuple[Any, tuple[dict, ...]]:
        return self.inner.init(), (self.initial,) * self.ticks

    def __call__(self, t, measurement, reference, memory):
        inner_memory, waiting = memory
        command, inner_memory = self.inner(t, measurement, reference, inner_memory)
        queue = (*waiting, command)
        return queue[0], (inner_memory, queue[1:])


class EveryNth(AbstractController):
    """The inner controller runs at every ``n``-th (static) tick, its command is held in between.

    ``initial`` has the commands' structure; it is replaced at the first tick and never leaves.
    """

    inner: AbstractController
    initial: dict[str, Array]
    n: int = eqx.field(static=True)

    def __check_init__(self):
        if self.n < 1:
            raise ValueError(f"every {self.n}th tick: expected 1 or more")

    def init(self) -> tuple[Any, dict, Array]:
        return self.inner.init(), self.initial, jnp.zeros((), jnp.int32)

    def __call__(self, t, measurement, reference, memory):
        inner_memory, held, tick = memory
        due = tick % self.n == 0
        command, new_memory = self.inner(t, measurement, reference, inner_memory)
        command, new_memory = jax.tree.map(lambda new, old: jnp.where(due, new, old), (command, new_memory), (held, inner_memory))
        return command, (new_memory, command, tick + 1)
