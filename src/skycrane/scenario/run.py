"""The `[run]` table: how long, how finely, how exactly, and where to stop."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Count, Number, Period, Problem, Spec, Unit, refuse_if_any

MAX_STEPS = 100_000_000
MAX_SAMPLES = 1_000_000
DEFAULT_SAVE_PERIOD = 0.02


class RunSpec(Spec):
    """Settings of a run. Each period is a whole multiple of the one above it: step, control period, save period."""

    duration: Period = Field(default=10.0, description="simulated time, rounded up to a whole sample")
    step: Annotated[Number, Field(gt=0, le=1.0), Unit("s")] = Field(
        default=0.002, description="integration step; with `adaptive` the largest step"
    )
    control_period: Annotated[Number, Field(gt=0, le=10.0), Unit("s")] | None = Field(
        default=None, description="time between control ticks; the default is one step"
    )
    save_period: Annotated[Number, Field(gt=0, le=1e4), Unit("s")] | None = Field(
        default=None,
        description="time between stored samples; the default is the multiple of the control period nearest 0.02 s",
    )
    integrator: Literal["rk4", "semi_implicit_euler", "adaptive", "linearly_implicit", "linearly_implicit_2", "auto"] = Field(
        default="rk4",
        description="`rk4` (order 4), `semi_implicit_euler` (order 1, cheap), `adaptive` (error controlled), `linearly_implicit` "
        "(order 3, for stiff cables), `linearly_implicit_2` (order 2, twice as fast) "
        "or `auto` (the faster of `rk4` and `linearly_implicit` for the asked accuracy)",
    )
    accuracy: Annotated[Number, Field(gt=0, le=1), Unit("m")] | None = Field(
        default=None, description="error of positions that `auto` may make, 1e-3 m by default; only with `auto`"
    )
    precision: Literal["float64", "float32"] = Field(default="float64", description="arithmetic of the run")
    seed: Annotated[Count, Field(ge=0, le=2**32 - 1)] = Field(default=0, description="of everything random in the run")
    max_speed: Annotated[Number, Field(gt=0, le=1e6), Unit("m/s")] | None = Field(
        default=None, description="the run ends with status `limit` when a body is faster"
    )
    max_distance: Annotated[Number, Field(gt=0, le=1e9), Unit("m")] | None = Field(
        default=None, description="the run ends with status `limit` when a body is further from the origin"
    )

    @property
    def steps_per_tick(self) -> int:
        """Integration steps in one control period."""
        return 1 if self.control_period is None else max(1, round(self.control_period / self.step))

    @property
    def tick(self) -> float:
        """Control period, s."""
        return self.step * self.steps_per_tick

    @property
    def ticks(self) -> int:
        """Control periods in the run: the duration, rounded up to a whole number of them."""
        return max(1, math.ceil(self.duration / self.tick * (1 - 1e-12)))

    @property
    def ticks_per_sample(self) -> int:
        """Control periods from one stored sample to the next."""
        wanted = DEFAULT_SAVE_PERIOD if self.save_period is None else self.save_period
        return min(max(1, round(wanted / self.tick)), self.ticks)

    @model_validator(mode="after")
    def _periods_fit(self) -> RunSpec:
        problems = []
        if self.accuracy is not None and self.integrator != "auto":
            problems.append(Problem(("accuracy",), 'needs integrator = "auto"', self.accuracy))
        for name, period, unit_name, unit in (
            ("control_period", self.control_period, "run.step", self.step),
            ("save_period", self.save_period, "the control period", self.tick),
        ):
            if period is None:
                continue
            ratio = period / unit
            if ratio < 1 - 1e-6 or abs(ratio - round(ratio)) > 1e-6 * ratio:
                near = max(1, round(ratio)) * unit
                problems.append(Problem((name,), f"must be a whole multiple of {unit_name} ({unit:g} s), such as {near:g}", period))
        most = f"in {self.duration:g} s; at least"
        if self.duration / self.step > MAX_STEPS:
            least = f"{most} {self.duration / MAX_STEPS:g} s is needed"
            problems.append(Problem(("step",), f"makes more than {MAX_STEPS:g} steps {least}", self.step))
        elif self.duration / (self.tick * self.ticks_per_sample) > MAX_SAMPLES:
            least = f"{most} {self.duration / MAX_SAMPLES:g} s is needed"
            shown = self.tick * self.ticks_per_sample
            problems.append(Problem(("save_period",), f"makes more than {MAX_SAMPLES:g} samples {least}", shown))
        refuse_if_any(problems)
        return self
