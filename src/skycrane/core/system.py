"""A system: bodies, elements that push on them, constraints that tie them, and the surroundings."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.core.bodies import Bodies, BodyState, Prepared, State
from skycrane.core.constraint import AbstractConstraint, assemble, constrained_acceleration, plastic_impact, rows_of, time_since_contact
from skycrane.core.element import AbstractElement, Output, Wrench
from skycrane.core.kinematics import Kinematics
from skycrane.environment.environment import Environment
from skycrane.math.checks import concrete, known, placed
from skycrane.math.components import Quat, Vec3
from skycrane.math.outline import settled

LEDGER = "energy_ledger"  # memory entry of the energy account


class Ledger(eqx.Module):
    """Integrals over time of the power of all elements and of its magnitude, and energy lost in impacts [J]."""

    work: Array
    throughput: Array


class System(eqx.Module):
    """Bodies, named elements, named constraints, surroundings.

    ``keep_ledger`` (static) adds the integral of all non-conservative power to the state, integrated with the same method, so that
    energy minus work is a constant of the motion that tells the quality of a run.
    """

    bodies: Bodies
    elements: dict[str, AbstractElement]
    constraints: dict[str, AbstractConstraint] = eqx.field(default_factory=dict)
    environment: Environment = eqx.field(default_factory=Environment)
    keep_ledger: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if LEDGER in self.elements:
            raise ValueError(f"element name {LEDGER!r} is reserved")
        if shared := sorted(set(self.elements) & set(self.constraints)):
            raise ValueError(f"elements and constraints share a name: {', '.join(shared)}")

    def prepare(self) -> Prepared:
        """Mass matrices and their inverses; once per rollout."""
        return self.bodies.prepare()

    def initial_state(self, position=None, attitude=None, velocity=None, angular_velocity=None, memory: dict | None = None) -> State:
        """A state from arrays (nb, 3), (nb, 4), (nb, 3), (nb, 3) in the frames of :class:`BodyState`; what is left out is zero or upright.

        ``memory`` replaces the initial memory of the elements that it names.

        Raises:
            ValueError: for shapes that do not fit or names that do not exist.
        """
        nb = self.bodies.count
        dtype = self.bodies.mass.dtype
        upright = np.tile(np.array([1.0, 0.0, 0.0, 0.0], dtype), (nb, 1))

        def array(value, default, what):
            out = default if value is None else known(value, dtype)
            if out.shape != default.shape:
                raise ValueError(f"initial {what} has shape {out.shape}, expected {default.shape}")
            return out

        zeros = np.zeros((nb, 3), dtype)
        q = array(attitude, upright, "attitude")
        q = q / (np if concrete(q) else jnp).sqrt((q * q).sum(-1, keepdims=True))
        arrays = (
            array(position, zeros, "position"), q, array(velocity, zeros, "velocity"), array(angular_velocity, zeros, "angular_velocity"),
        )  # fmt: skip
        bodies = BodyState(*map(placed, arrays))
        remembered = {name: element.init() for name, element in self.elements.items()}
        remembered |= {name: start for name, c in self.constraints.items() if (start := c.init()) is not None}
        for name, value in (memory or {}).items():
            if name not in remembered:
                raise ValueError(f"memory for {name!r}, but those that remember are {', '.join(sorted(remembered))}")
            remembered[name] = value
        remembered = jax.tree.map(lambda x: placed(known(x, dtype)) if jnp.issubdtype(jnp.result_type(x), jnp.inexact) else x, remembered)
        if self.keep_ledger:
            remembered[LEDGER] = Ledger(placed(np.zeros((), dtype)), placed(np.zeros((), dtype)))
        return State(bodies, remembered)

    def kinematics(self, state: State, prepared: Prepared) -> Kinematics:
        return Kinematics.of(state.bodies, prepared, self.environment)

    def stirred(self, t: Array, state: State, command: dict, prepared: Prepared) -> Kinematics:
        """The kinematics with the jets of air that elements drive: what their wrenches are to be computed with."""
        kin = self.kinematics(state, prepared)
        driving = [(n, e) for n, e in sorted(self.elements.items()) if type(e).jets is not AbstractElement.jets]
        found = (e.jets(t, kin, state.memory[n], command.get(n)) for n, e in driving)
        jets = tuple(jet for jet in found if jet is not None)
        return dataclasses.replace(kin, jets=jets) if jets else kin

    # -- the equations of motion ------------------------------------------------------------------------------------------------------

    def _push(self, t, state: State, command: dict, kin: Kinematics) -> tuple[dict[str, tuple[Wrench, ...]], dict[str, Any]]:
        pushed = {n: e.wrench(t, kin, state.memory[n], command.get(n)) for n, e in sorted(self.elements.items())}
        pushed = settled(pushed)
        return {n: p[0] for n, p in pushed.items()}, {n: p[1] for n, p in pushed.items()}

    def dynamics(self, t: Array, state: State, command: dict, prepared: Prepared) -> State:
        """Time derivative of the state, as a tree of the same structure.

        ``bodies`` of the result holds (p', q', a_W, w_B'): a_W is the acceleration of each reference point in world axes.
        """
        return self._evaluate(t, state, command, prepared)[0]

    def _evaluate(self, t, state: State, command: dict, prepared: Prepared) -> tuple[State, list[Array]]:
        kin = self.stirred(t, state, command, prepared)
        wrenches, memory_rate = self._push(t, state, command, kin)
        force_W, moment_B = assemble(tuple(w for ws in wrenches.values() for w in ws), self.bodies.count)
        bias_force_W, bias_moment_B = prepared.bias(kin.R_WB, kin.v_B, kin.w_B)
        if bias_force_W is not None:
            force_W = force_W + bias_force_W
        force_W, moment_B = settled((force_W, moment_B + bias_moment_B))
        a_W, alpha_B = prepared.solve(kin.R_WB, force_W, moment_B)
        tensions: list[Array] = []
        rows = rows_of(self.constraints, t, kin, state.memory)
        if rows:
            a_W, alpha_B, tensions = constrained_acceleration(rows, kin, a_W, alpha_B)
            if any(name in state.memory for name in self.constraints):
                for name, multipliers in self._by_constraint(t, kin, state.memory, tensions):
                    if name in state.memory:
                        memory_rate[name] = self.constraints[name].rate(state.memory[name], multipliers)
        if self.keep_ledger:
            powers = [e.power(t, kin, state.memory[n], command.get(n), wrenches[n]) for n, e in sorted(self.elements.items())]
            # An ideal constraint does no work; its stabilisation, and a jerk inside a step, do.
            powers += [T * row.rate for T, row in zip(tensions, rows, strict=True)]
            dtype = state.bodies.p_WB.dtype
            memory_rate[LEDGER] = Ledger(jnp.asarray(sum(powers), dtype), jnp.asarray(sum(abs(p) for p in powers), dtype))
        rates = BodyState(state.bodies.v_W, kin.q_WB.rate(kin.w_B).array(), a_W.array(), alpha_B.array())
        return State(rates, memory_rate), tensions

    def _by_constraint(self, t, kin: Kinematics, memory: dict, values: list[Array]) -> list[tuple[str, tuple[Array, ...]]]:
        """Numbers of all rows, taken apart by constraint."""
        out, start = [], 0
        for name, constraint in sorted(self.constraints.items()):
            count = len(constraint.rows(t, kin, memory.get(name)))
            out.append((name, tuple(values[start : start + count])))
            start += count
        return out

    @staticmethod
    def _struck(bodies: BodyState, ago: Array | float, dv_W: Vec3, dw_B: Vec3) -> BodyState:
        """The bodies after jumps of velocity that happened a short time ago."""
        moved = bodies.p_WB + (ago * dv_W).array()
        return BodyState(moved, bodies.q_WB, bodies.v_W + dv_W.array(), bodies.w_B + dw_B.array())

    def post_step(self, t: Array, state: State, prepared: Prepared) -> State:
        """After a step: unit quaternions, projections by elements, plastic impacts of constraints that close."""
        q = Quat.of(state.bodies.q_WB).normalized().array()
        state = eqx.tree_at(lambda s: s.bodies.q_WB, state, q)
        for _, element in sorted(self.elements.items()):
            if type(element).imposed is not AbstractElement.imposed:
                state = State(element.imposed(t, state.bodies, self.environment), state.memory)
        projected = [n for n, e in sorted(self.elements.items()) if type(e).post_step is not AbstractElement.post_step]
        if not projected and not self.constraints:
            return state
        kin = self.kinematics(state, prepared)
        memory = {**state.memory, **{n: self.elements[n].post_step(t, kin, state.memory[n]) for n in projected}}
        bodies = state.bodies
        rows = rows_of(self.constraints, t, kin, memory)
        if rows:
            closing = [r.active & (r.rate < 0) for r in rows]
            ago = time_since_contact(rows)
            there = eqx.tree_at(lambda k: k.p_WB, kin, kin.p_WB - ago * kin.v_W)
            dv, dw = plastic_impact(rows_of(self.constraints, t, there, memory), there, closing)
            bodies = self._struck(bodies, ago, dv, dw)
            # The tether turned since the contact: what is left of its rate, of either sign, goes as well.
            here = self.kinematics(State(bodies, memory), prepared)
            dv, dw = plastic_impact(rows_of(self.constraints, t, here, memory), here, closing, unilateral=False)
            bodies = self._struck(bodies, 0.0, dv, dw)
            if self.keep_ledger:
                before = prepared.kinetic_energy(kin.v_B, kin.w_B)
                after = self.kinematics(State(bodies, memory), prepared)
                lost = before - prepared.kinetic_energy(after.v_B, after.w_B)
                account = memory[LEDGER]
                memory[LEDGER] = Ledger(account.work - lost, account.throughput + abs(lost))
        return State(bodies, memory)

    def apply_impulse(self, state: State, prepared: Prepared, linear_W: Array, angular_B: Array) -> State:
        """Add momentum: impulses (nb, 3) N s in world axes through B and (nb, 3) N m s in body axes."""
        kin = self.kinematics(state, prepared)
        dv, dw = prepared.solve(kin.R_WB, Vec3.of(linear_W), Vec3.of(angular_B))
        bodies = BodyState(state.bodies.p_WB, state.bodies.q_WB, state.bodies.v_W + dv.array(), state.bodies.w_B + dw.array())
        memory = state.memory
        if self.keep_ledger:
            after = self.kinematics(State(bodies, memory), prepared)
            gained = prepared.kinetic_energy(after.v_B, after.w_B) - prepared.kinetic_energy(kin.v_B, kin.w_B)
            account = memory[LEDGER]
            memory = {**memory, LEDGER: Ledger(account.work + gained, account.throughput + abs(gained))}
        return State(bodies, memory)

    # -- what a log wants to know -----------------------------------------------------------------------------------------------------

    def energy(self, t: Array, state: State, prepared: Prepared) -> Array:
        """Kinetic energy of all bodies plus the energy stored in all elements [J]."""
        kin = self.kinematics(state, prepared)
        stored = sum(e.energy(t, kin, state.memory[n]) for n, e in sorted(self.elements.items()))
        return prepared.kinetic_energy(kin.v_B, kin.w_B) + stored

    def wrenches(self, t: Array, state: State, command: dict, prepared: Prepared) -> dict[str, tuple[Wrench, ...]]:
        """Every element's wrenches by name: which term does what."""
        return self._push(t, state, command, self.stirred(t, state, command, prepared))[0]

    def tensions(self, t: Array, state: State, command: dict, prepared: Prepared) -> dict[str, Array]:
        """Multipliers of the constraints [N], one array (rows,) for each."""
        values = self._evaluate(t, state, command, prepared)[1]
        kin = self.kinematics(state, prepared)
        return {name: jnp.stack(multipliers) for name, multipliers in self._by_constraint(t, kin, state.memory, values)}

    def outputs(self, t: Array, state: State, command: dict, prepared: Prepared) -> dict[str, dict[str, Array]]:
        """Logged quantities of every element that has some, by element name, with ``tension`` of each constraint; vmap it over a run."""
        kin = self.stirred(t, state, command, prepared)
        logs = {n: e.outputs(t, kin, state.memory[n], command.get(n)) for n, e in sorted(self.elements.items())}
        logs = {n: log for n, log in logs.items() if log}
        if self.constraints:
            logs.update({n: {"tension": T} for n, T in self.tensions(t, state, command, prepared).items()})
        return logs

    def outputs_info(self) -> dict[str, dict[str, Output]]:
        """Units, axes and meaning of everything that :meth:`outputs` returns."""
        info = {n: dict(e.outputs_info) for n, e in self.elements.items() if e.outputs_info}
        info.update({n: {"tension": Output("N", ("row",), "multiplier of the constraint")} for n in self.constraints})
        return info

    def rate_bound(self, prepared: Prepared) -> float:
        """Upper bound [1/s] of the stiffest element's fastest eigenvalue; 0 where nothing is stiff."""
        return float(np.max([e.rate_bound(prepared) for e in self.elements.values()], initial=0.0))
