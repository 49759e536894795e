"""Controllers, references and sensors: the contracts of the closed loop."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
from jax import Array

from skycrane.core.bodies import BodyState, Prepared, State


class Target(eqx.Module):
    """What k vehicles (or other tracked bodies) should do now.

    ``p_W`` (k, 3) m, ``v_W`` (k, 3) m/s, ``a_W`` (k, 3) m/s^2 in world axes; ``q_WB`` (k, 4) wanted attitude (a controller of an
    underactuated vehicle takes only the heading of it); ``w_B`` (k, 3) rad/s in the wanted body axes.
    """

    p_W: Array
    v_W: Array
    a_W: Array
    q_WB: Array
    w_B: Array


class AbstractReference(eqx.Module):
    """A wanted motion over time."""

    @abc.abstractmethod
    def __call__(self, t: Array) -> Target:
        """The target at time t [s]."""


class Measurement(eqx.Module):
    """What the controller sees: poses and velocities of all bodies, the memory of the elements (motor speeds, ...), sensor readings."""

    bodies: BodyState
    memory: dict
    readings: dict = eqx.field(default_factory=dict)


class AbstractSensors(eqx.Module):
    """From the true state to a measurement, with a memory of its own (biases, filters, estimators)."""

    @abc.abstractmethod
    def init(self, state: State) -> Any:
        """Memory at the start."""

    @abc.abstractmethod
    def __call__(
        self, tick: Array, t: Array, system: Any, state: State, command: dict, prepared: Prepared, memory: Any
    ) -> tuple[Measurement, Any]:
        """Measurement at control tick ``tick`` (an integer, to derive random numbers from); ``command`` is that of the tick before."""


class TrueState(AbstractSensors):
    """The controller sees the true state."""

    def init(self, state: State) -> tuple[()]:
        return ()

    def __call__(self, tick, t, system, state, command, prepared, memory):
        return Measurement(state.bodies, state.memory), memory


class AbstractController(eqx.Module):
    """Reads a measurement at every control tick and writes commands.  It owns its own model of the plant."""

    @abc.abstractmethod
    def init(self) -> Any:
        """Memory at the start."""

    @abc.abstractmethod
    def __call__(self, t: Array, measurement: Measurement, reference: Any, memory: Any) -> tuple[dict[str, Array], Any]:
        """Commands by element name, and the new memory.  ``reference`` is what ``simulate`` was given (often an AbstractReference)."""


class Constant(AbstractController):
    """The same command always: open loop."""

    command: dict[str, Array]

    def init(self) -> tuple[()]:
        return ()

    def __call__(self, t, measurement, reference, memory):
        return self.command, memory


class Team(AbstractController):
    """Several controllers side by side, each with its own reference of the same name."""

    members: dict[str, AbstractController]

    def init(self) -> dict[str, Any]:
        return {name: member.init() for name, member in self.members.items()}

    def __call__(self, t, measurement, reference, memory):
        command: dict[str, Array] = {}
        new = {}
        for name, member in sorted(self.members.items()):
            part, new[name] = member(t, measurement, reference[name], memory[name])
            command.update(part)
        return command, new
