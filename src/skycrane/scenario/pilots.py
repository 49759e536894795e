"""The controllers of a scenario."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from skycrane.control.model import default_gains
from skycrane.control.pid import CascadedPid, default_pid_gains
from skycrane.control.pose import FullPoseControl, GeometricControl
from skycrane.control.timing import Delayed
from skycrane.core.controller import AbstractController, Constant
from skycrane.elements.motors import ThrottleCurve
from skycrane.vehicles.multirotor import Multirotor

from .control import CascadedPidControl, GainsSpec, PidGainsSpec, RotorSpeedsControl
from .control import FullPoseControl as FullPoseSpec
from .scenario import Vehicle
from .tool import BacksteppingControl
from .water import SurgeControl


class Throttled(AbstractController):
    """Rotor speeds of the ``inner`` controller as throttle, for motors that take a number from 0 to 1.

    ``element`` (static) is what takes the command.
    """

    inner: AbstractController
    curve: ThrottleCurve
    element: str = eqx.field(static=True)

    def init(self) -> Any:
        """That of the inner controller."""
        return self.inner.init()

    def __call__(self, t: Array, measurement: Any, reference: Any, memory: Any) -> tuple[dict[str, Array], Any]:
        """The inner controller's command through the inverse of the curve."""
        command, memory = self.inner(t, measurement, reference, memory)
        return {**command, self.element: self.curve.command_for(command[self.element])}, memory


def controller_of(
    vehicle: Vehicle,
    craft: Multirotor,
    body: int,
    element: str,
    gravity: float,
    tick: float,
    before: np.ndarray,
    curve: ThrottleCurve | None,
) -> AbstractController:
    """What flies a vehicle.

    ``body`` is its index, ``element`` its rotors, ``before`` (n,) rad/s what they do until the first delayed command arrives.
    """  # fmt: skip
    control = vehicle.control
    flown: AbstractController
    assert not isinstance(control, (BacksteppingControl, SurgeControl))  # have builders of their own
    if isinstance(control, RotorSpeedsControl):
        flown = Constant({element: jnp.broadcast_to(jnp.array(control.speeds, dtype=float), (1, craft.count))})
    else:
        options: dict[str, Any] = {"tilt_max": float(np.deg2rad(control.tilt_max_deg)), "outer_every": control.outer_every}
        if isinstance(control, CascadedPidControl):
            gains = _gains(control.gains, default_pid_gains(craft, gravity))
            limits: dict[str, Any] = {name: getattr(control, name) for name in ("speed_max", "rate_max", "filter_time")}
            flown = CascadedPid.of(craft, (body,), element, gravity, gains, **options, **limits)
        else:
            kind = FullPoseControl if isinstance(control, FullPoseSpec) else GeometricControl
            flown = kind.of(craft, (body,), element, gravity, _gains(control.gains, default_gains(craft, gravity)), **options)
        if control.delay > 0:
            flown = Delayed(flown, {element: jnp.asarray(before, dtype=float)[None]}, round(control.delay / tick))
    return flown if curve is None else Throttled(flown, curve, element)


def _gains(given: GainsSpec | PidGainsSpec, computed: Any) -> Any:
    """The given gains in place of the computed ones."""
    changed = {name: jnp.array([value], dtype=float) for name, value in given if value is not None}
    return dataclasses.replace(computed, **changed)


def model_path(controller: AbstractController) -> str | None:
    """Where, from a controller on, the model is that it flies by; None for one without feedback."""
    steps = ""
    while not hasattr(controller, "model"):
        if not hasattr(controller, "inner"):
            return None
        controller, steps = controller.inner, steps + "inner."
    return f"{steps}model"


def model_of(controller: Any) -> Any:
    """The model that a controller flies by."""
    while not hasattr(controller, "model"):
        controller = controller.inner
    return controller.model
