"""Elements push on bodies: the contract, and the wrench that they return."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
from jax import Array

from skycrane.core.kinematics import Kinematics
from skycrane.math.components import Mat3, Vec3, take
from skycrane.math.outline import settled

if TYPE_CHECKING:
    from skycrane.core.bodies import BodyState
    from skycrane.core.chain import Chains
    from skycrane.environment.environment import Environment
    from skycrane.environment.jets import Jets


class Wrench(NamedTuple):
    """Force in world axes [N] and moment about B in body axes [N m] on each of ``bodies``; either may be None.

    The trailing axis of the components runs over ``bodies``; a body may be named several times, the contributions add.
    """

    bodies: tuple[int, ...]
    force_W: Vec3 | None
    moment_B: Vec3 | None

    @classmethod
    def at(cls, bodies: tuple[int, ...], offset_B: Vec3, R_WB: Mat3, force_W: Vec3) -> Wrench:
        """A force that acts at points ``offset_B`` of bodies with attitudes ``R_WB``."""
        return cls(bodies, force_W, offset_B.cross(settled(R_WB.T @ force_W)))

    def power(self, kin: Kinematics) -> Array | float:
        """Rate of work on the bodies [W], scalar."""
        total: Array | float = 0.0
        if self.force_W is not None:
            total = total + self.force_W.dot(take(kin.v_W, self.bodies)).sum()
        if self.moment_B is not None:
            total = total + self.moment_B.dot(take(kin.w_B, self.bodies)).sum()
        return total


class Output(NamedTuple):
    """What a logged quantity is: unit, names of its axes after time, one line of meaning."""

    units: str
    dims: tuple[str, ...]
    long_name: str


class AbstractElement(eqx.Module):
    """Something that pushes on bodies and may remember something (motor speed, cable nodes).

    The energy contract, checked for every element by one test: the time derivative of (kinetic energy of the bodies + ``energy`` of all
    elements) equals the sum of ``power`` of all elements.  An element that only pushes inherits both methods; one that stores energy
    overrides both.
    """

    outputs_info: ClassVar[dict[str, Output]] = {}

    def init(self) -> Any:
        """Memory at the start; an empty tuple where there is none."""
        return ()

    @abc.abstractmethod
    def wrench(self, t: Array, kin: Kinematics, memory: Any, command: Any) -> tuple[tuple[Wrench, ...], Any]:
        """Wrenches on the bodies, and the time derivative of ``memory`` (same structure)."""

    def energy(self, t: Array, kin: Kinematics, memory: Any) -> Array | float:
        """Energy stored in the element [J]."""
        return 0.0

    def power(self, t: Array, kin: Kinematics, memory: Any, command: Any, wrenches: tuple[Wrench, ...]) -> Array | float:
        """Rate at which the element adds to the total energy of bodies and elements [W]."""
        return sum(w.power(kin) for w in wrenches)

    def outputs(self, t: Array, kin: Kinematics, memory: Any, command: Any) -> dict[str, Array]:
        """Quantities for logs, described in ``outputs_info``; evaluated after a run, never inside the step."""
        return {}

    def jets(self, t: Array, kin: Kinematics, memory: Any, command: Any) -> Jets | None:
        """Jets of air that the element drives, which all elements then find in ``kin.jets``; None where it drives none."""
        return None

    def post_step(self, t: Array, kin: Kinematics, memory: Any) -> Any:
        """Projection of the memory after a step (for instance unit vectors)."""
        return memory

    def imposed(self, t: Array, bodies: BodyState, environment: Environment) -> BodyState:
        """The bodies after a step, with the motion that the element imposes on them instead of deriving it."""
        return bodies

    def chains(self, t: Array, kin: Kinematics, memory: Any, horizon: float) -> Chains | None:
        """The stiff chains of the element, for linearly implicit integrators; None where it has none.

        Segments that may become taut within ``horizon`` [s] count as taut.
        """
        return None

    def rate_bound(self, prepared: Any) -> float:
        """Upper bound [1/s] of the element's fastest eigenvalue, 0 where it is not stiff; limits the explicit step."""
        return 0.0

    def rate_bound_without_chains(self, prepared: Any) -> float:
        """The same of what is left where an integrator takes the element's chains implicitly."""
        return self.rate_bound(prepared)
