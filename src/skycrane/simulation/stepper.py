"""A flight in single calls from Python: for reinforcement learning, hardware in the loop, or a controller that is not written in JAX.

:func:`skycrane.simulate` compiles a whole flight with its controller and is faster wherever that is possible.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from skycrane.core.bodies import State
from skycrane.core.system import System
from skycrane.elements.rotors import AbstractRotors
from skycrane.simulation.integrators import RK4, AbstractIntegrator
from skycrane.simulation.packing import Packing
from skycrane.simulation.rows import call_packed

BLOCK = 64


class Stepper:
    """One system, or ``count`` copies of it (lanes), advanced by :meth:`step`.

    Between calls the state lives in one packed array (``packed``), so a call from Python costs little more than its dispatch.

    Args:
        system: what flies; its numbers become constants of the compiled step, the same in all lanes.
        state: where it starts: one state (:meth:`System.initial_state`), or with ``count`` also a tree with a leading axis of lanes.
        step: integration step [s].
        substeps: integration steps in each call.
        count: number of lanes, or None for a single system without that axis.
        integrator: :class:`RK4` by default.

    Raises:
        ValueError: for a step that is not positive, counts below 1, or a state whose shapes do not fit.
    """

    def __init__(
        self, system: System, state: State, *, step: float, substeps: int = 1, count: int | None = None,
        integrator: AbstractIntegrator | None = None,
    ):  # fmt: skip
        if not 0 < step < float("inf"):
            raise ValueError(f"step is {step} s, expected a positive number")
        for name, value in (("substeps", substeps), ("count", 1 if count is None else count)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")
        self.system, self.integrator = system, RK4() if integrator is None else integrator
        self.step_s, self.substeps, self.count = step, substeps, count
        self.calls = 0
        self._rotors = {name: e.spin.shape for name, e in system.elements.items() if isinstance(e, AbstractRotors)}
        one = system.initial_state()
        self._structure: Any
        self._leaves, self._structure = jax.tree.flatten(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), one))
        width = min(BLOCK, count or 1)
        self._width: int | None
        self._blocks: int
        self._width, self._blocks = (None, 1) if count is None else (width, -(-count // width))
        self._packing = Packing(self._leaves, self._width)
        self._arrange_jit, self._take_apart_jit = jax.jit(self._arrange), jax.jit(self._take_apart)
        self._advance = jax.jit(self._advanced, donate_argnums=0)
        self.packed = self._arrange_jit(self._lanes(state))

    @property
    def time(self) -> float:
        """Simulated time [s] since the start; :meth:`reset` does not turn it back."""
        return self.calls * self.substeps * self.step_s

    @property
    def state(self) -> State:
        """The state now, with a leading axis of lanes where there is a ``count``."""
        return jax.tree.unflatten(self._structure, self._take_apart_jit(self.packed))

    def step(self, command: dict[str, Any]) -> None:
        """Advance by ``substeps`` steps under ``command``, by element name: arrays of the shape that the element takes (``Rotors``: (k, n)
        rad/s), with a leading axis of lanes where there is a ``count``.

        Raises:
            ValueError: for names that are no elements, rotors without a command, arrays of another shape, or without the axis of lanes.
        """
        lanes = () if self.count is None else (self.count,)
        if unknown := sorted(set(command) - set(self.system.elements)):
            raise ValueError(f"commands for {', '.join(unknown)}, but the elements are {', '.join(sorted(self.system.elements))}")
        if missing := sorted(set(self._rotors) - set(command)):
            raise ValueError(f"no command for the rotors {', '.join(missing)}")
        arrays = {name: x if isinstance(x, jax.Array) else np.asarray(x) for name, x in command.items()}
        for name, x in arrays.items():
            if name in self._rotors and x.shape != (wanted := (*lanes, *self._rotors[name])):
                raise ValueError(f"command {name!r} has shape {x.shape}, expected {wanted}")
            if x.shape[: len(lanes)] != lanes:
                raise ValueError(f"command {name!r} has shape {x.shape}, expected ({self.count}, ...): one entry for each lane")
        self.packed = self._advance(self.packed, self.time, arrays)
        self.calls += 1

    def reset(self, state: State, lanes: Any = None) -> None:
        """Put lanes elsewhere: all, or those where the mask ``lanes`` (count,) is True.  ``state`` as for the constructor.

        Raises:
            ValueError: for shapes that do not fit.
        """
        fresh = self._lanes(state)
        if lanes is not None:
            if self.count is None or np.shape(lanes) != (self.count,) or np.asarray(lanes).dtype != bool:
                kind = f"{np.asarray(lanes).dtype} of shape {np.shape(lanes)}"
                raise ValueError(f"the mask of lanes is {kind}, expected ({self.count},) of True and False")
            chosen = jnp.asarray(lanes, bool)
            old = jax.tree.leaves(self.state)
            fresh = [jnp.where(chosen.reshape(-1, *[1] * (x.ndim - 1)), x, y) for x, y in zip(fresh, old, strict=True)]
        self.packed = self._arrange_jit(fresh)

    # -- layout: (blocks, numbers, lanes of a block) -----------------------------------------------------------------------------------

    def _lanes(self, state: State) -> list[Array]:
        """Leaves of a state, with the axis of lanes where there is one."""
        leaves, structure = jax.tree.flatten(state)
        wanted = [x.shape for x in self._leaves]
        batched = [(self.count, *shape) for shape in wanted]
        shapes = [np.shape(x) for x in leaves]
        if structure != self._structure or shapes not in ([wanted] if self.count is None else [wanted, batched]):
            raise ValueError(f"the state has arrays of shapes {shapes}, expected those of the system, {wanted}")
        leaves = [jnp.asarray(x, like.dtype) for x, like in zip(leaves, self._leaves, strict=True)]
        if self.count is None or shapes == batched:
            return leaves
        return [jnp.broadcast_to(x, (self.count, *x.shape)) for x in leaves]

    def _in_blocks(self, x: Array) -> Array:
        """(count, ...) to (blocks, ..., lanes of a block), filled up with copies of the last lane."""
        assert self.count is not None
        assert self._width is not None
        spare = self._blocks * self._width - self.count
        if spare:
            x = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (spare, *x.shape[1:]))])
        return jnp.moveaxis(x.reshape(self._blocks, self._width, *x.shape[1:]), 1, -1)

    def _arrange(self, leaves: list[Array]) -> list[Array]:
        if self.count is None:
            return self._packing.join(leaves)
        return self._packing.join([self._in_blocks(x) for x in leaves], leading=1)

    def _take_apart(self, packed: list[Array]) -> list[Array]:
        if self.count is None:
            return self._packing.split(packed)
        apart = self._packing.split(packed, leading=1)
        return [jnp.moveaxis(x, -1, 1).reshape(self._blocks * x.shape[-1], *x.shape[1:-1])[: self.count] for x in apart]

    def _advanced(self, packed: list[Array], t: Array, command: dict) -> list[Array]:
        prepared = self.system.prepare()
        dtype = self.system.bodies.mass.dtype

        def one(leaves, command):
            def substep(state, i):
                now = jnp.asarray(t, dtype) + i * self.step_s
                new = self.integrator.step(self.system, now, state, command, prepared, self.step_s)
                return self.system.post_step(now + self.step_s, new, prepared), None

            state = jax.tree.unflatten(self._structure, leaves)
            if self.substeps == 1:
                return jax.tree.leaves(substep(state, jnp.zeros((), dtype))[0])
            return jax.tree.leaves(lax.scan(substep, state, jnp.arange(self.substeps, dtype=dtype))[0])

        command = jax.tree.map(
            lambda x: jnp.asarray(x, dtype) if jnp.issubdtype(jnp.result_type(x), jnp.floating) else jnp.asarray(x), command
        )
        if self.count is None:
            return call_packed(one, self._packing, packed, command)
        blocks = jax.tree.map(self._in_blocks, command)
        return lax.map(lambda block: call_packed(one, self._packing, *block), (packed, blocks))
