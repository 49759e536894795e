"""`integrator = "auto"`: the faster of RK4 and the linearly implicit method for the accuracy that is asked for.

RK4 is exact enough at any step with which it is stable, so its cost follows from the bound on the fastest rate: n_e = step / limit
substeps of four evaluations.  What the linearly implicit method needs is measured: the first moments of the run are flown with one and
with two substeps; their difference in position is 7/8 of the error of the first (order 3), which is taken to grow in proportion to time,
and m substeps divide by m^3.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from skycrane.core.bodies import Bodies
from skycrane.simulation.implicit import LinearlyImplicit3
from skycrane.simulation.integrators import RK4, AbstractIntegrator, Substeps
from skycrane.simulation.quick import quick_jit
from skycrane.simulation.rollout import simulate

ACCURACY = 1e-3  # m
PILOT = 0.3  # s
IMPLICIT_COST = 2.3  # of a linearly implicit step, in RK4 steps (measured: cooperative lift of four vehicles)
MARGIN = 0.9  # of the stability limit that RK4 uses
MOST = 64  # substeps of the linearly implicit method


class Choice(NamedTuple):
    """The integrator and one sentence why."""

    integrator: AbstractIntegrator
    reason: str


def choose(built: Any) -> Choice:
    """Integrator for a built scenario whose ``integrator`` is ``auto``."""
    run, system = built.scenario.run, built.system
    mass = quick_jit(Bodies.prepare)(system.bodies)
    elements = system.elements.values()
    fastest = max(e.rate_bound(mass) for e in elements)
    rest = max(e.rate_bound_without_chains(mass) for e in elements)
    explicit = max(1, math.ceil(run.step * fastest / (MARGIN * RK4.stability_radius)))
    rk4 = f"RK4 with {explicit} substep{'s' * (explicit > 1)} of {run.step / explicit:.3g} s"
    if rest >= fastest:
        return Choice(_substeps(RK4(), explicit), f"{rk4}: no part needs an implicit method")
    least = max(1, math.ceil(run.step * rest / (MARGIN * LinearlyImplicit3.stability_radius)))
    if explicit <= IMPLICIT_COST * least:
        return Choice(_substeps(RK4(), explicit), f"{rk4}: no dearer than {least} of the linearly implicit method")
    wanted, error = run.accuracy or ACCURACY, _pilot_error(built, least)
    implicit = least if error <= wanted else min(MOST, math.ceil(least * math.cbrt(error / wanted)))
    found = f"which with {least} would be wrong by about {error:.1e} m at the end ({wanted:g} m asked for)"
    if IMPLICIT_COST * implicit < explicit:
        name = f"linearly implicit with {implicit} substep{'s' * (implicit > 1)} of {run.step / implicit:.3g} s"
        return Choice(_substeps(LinearlyImplicit3(), implicit), f"{name}, {found}, instead of {explicit} of RK4")
    return Choice(_substeps(RK4(), explicit), f"{rk4} instead of {implicit} of the linearly implicit method, {found}")


def _substeps(method: AbstractIntegrator, count: int) -> AbstractIntegrator:
    return method if count == 1 else Substeps(method, count)


def _pilot_error(built: Any, least: int) -> float:
    """Error [m] of positions at the end of the run with ``least`` substeps, extrapolated from its beginning."""
    run = built.scenario.run
    ticks = max(1, min(round(PILOT / run.tick), run.ticks))
    ends = []
    for count in (least, 2 * least):
        flown = simulate(
            built.system, built.controller, built.reference, built.initial, duration=ticks * run.tick, step=run.step,
            control_period=run.tick, integrator=_substeps(LinearlyImplicit3(), count), sensors=built.sensors, events=built.timeline,
            save_every=ticks, soon=True,
        )  # fmt: skip
        ends.append(np.asarray(flown.state.bodies.p_WB[-1]))
    return 8.0 / 7.0 * float(np.abs(ends[0] - ends[1]).max()) * run.duration / (ticks * run.tick)


def with_integrator(built: Any) -> tuple[Any, str | None]:
    """The scenario with its integrator chosen, and the sentence about it; unchanged and None where the file names one."""
    if built.scenario.run.integrator != "auto":
        return built, None
    choice = choose(built)
    return dataclasses.replace(built, integrator=choice.integrator), choice.reason
