"""Trim: steady motion of any system, or the plain statement that there is none.

The equations are those of :mod:`skycrane.analysis.trim_problem`.  They are solved as a bounded nonlinear least-squares problem with
exact Jacobians from several starts (Branch, Coleman and Li, SIAM J. Sci. Comput. 21, 1999), then the least shaft power is sought among
all solutions (sequential quadratic programming on the null space of the Jacobian), and the result is evaluated once more with the
system itself, limits, lag, constraints and all: only that decides whether it counts as a trim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from skycrane.analysis.coordinates import without_account
from skycrane.analysis.precision import double_precision, like, to_double
from skycrane.analysis.trim_problem import Finished, Problem, evaluate, finish, rotor_elements
from skycrane.analysis.trim_setup import further_starts, lifted, set_up, turned
from skycrane.analysis.trim_solver import SOLVED, choose, solve
from skycrane.core.bodies import State
from skycrane.core.system import System
from skycrane.elements.motors import PoweredMemory
from skycrane.math.rotation import to_euler

TOLERANCE = 1e-7  # of the weight, for a force; of weight times arm, for a moment
AXES = ("force ahead", "force to the left", "vertical force", "roll moment", "pitch moment", "yaw moment")


@dataclass(frozen=True)
class _Result:
    """``state`` and ``command`` in the precision of the system; ``velocity_W`` (3,) m/s of the main body; ``turn_rate`` [rad/s] about
    the vertical; ``roll``, ``pitch``, ``yaw`` [rad] of the main body; ``residual_force_W`` (nb, 3) N and ``residual_moment_B`` (nb, 3)
    N m, what is missing for steady motion; ``residual_n``, ``residual_nm`` the largest of them; ``limits``: rotors at a limit, in
    words; ``sentence``."""

    state: State
    command: dict
    velocity_W: np.ndarray
    turn_rate: float
    roll: float
    pitch: float
    yaw: float
    residual_force_W: np.ndarray
    residual_moment_B: np.ndarray
    residual_n: float
    residual_nm: float
    limits: tuple[str, ...]
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Trim(_Result):
    """A steady motion.  ``shaft_power`` [W] of all rotors."""

    shaft_power: float = float("nan")
    converged: ClassVar[bool] = True


@dataclass(frozen=True)
class NoTrim(_Result):
    """There is no such steady motion within the limits: the nearest that was found.  ``axis`` cannot be balanced; ``missing`` N or N m
    of it are left when everything else is balanced (when nothing else can be either, ``axis`` is the largest of the residuals)."""

    axis: str = ""
    missing: float = float("nan")
    converged: ClassVar[bool] = False


@dataclass(frozen=True)
class SpeedLimit:
    """Fastest level flight: ``speed`` [m/s], its ``trim``, the ``limit`` in words, and whether it was ``found`` below the largest speed
    asked."""

    speed: float
    trim: Trim | NoTrim
    found: bool
    sentence: str


def trim(
    system: System,
    *,
    speed: float = 0.0,
    course: float = 0.0,
    climb: float = 0.0,
    turn_rate: float = 0.0,
    heading: float | None = None,
    attitude: str | Sequence[float] = "auto",
    allow: str | Sequence[str] = (),
    body: str | None = None,
    guess: State | None = None,
    command: dict | None = None,
    t: float = 0.0,
    starts: int = 8,
    tolerance: float = TOLERANCE,
) -> Trim | NoTrim:
    """Find hover, level flight, climb or descent, or a steady turn.

    Args:
        system: any; its rotors' failures (``speed_fraction`` 0) and limits count.
        speed: horizontal speed over ground [m/s], towards ``course`` [rad from x towards y]; ``climb`` [m/s] upwards.
        turn_rate: [rad/s] about the vertical, positive to the left; course and heading turn along.
        heading: yaw of the main body [rad]; the course by default.
        attitude: ``"level"`` (roll and pitch zero), ``"free"`` (the one of least power), ``"auto"`` (level if that can be, else free), or a
            quaternion (4,) whose heading wins over ``heading``.
        allow: ``"spin"``: if there is no trim otherwise, let the vehicle spin steadily about the vertical (needs ``speed`` 0).
        body: name of the main body, whose motion is prescribed; by default the first with rotors.
        guess: places, attitudes and memory to start from, such as a hanging load; ``system.initial_state()`` by default, 100 m above ground
            if there is one.  Bodies with rotors keep their places relative to each other, and their headings.
        command: of elements that are not rotors.
        t: time [s], for wind that depends on it.
        starts: how many starts to try before giving up.
        tolerance: of the residual, relative to the weight.

    Returns:
        :class:`Trim`, or :class:`NoTrim` where the residual cannot be brought below the tolerance.

    Raises:
        ValueError: for a system without rotors, an unknown option, or spin together with speed.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    if allowed - {"spin"}:
        raise ValueError(f"allow={allow!r}: expected 'spin' or nothing")
    if "spin" in allowed and (speed or turn_rate):
        raise ValueError("a spinning trim is a hover or a climb: speed and turn_rate must be 0")
    if isinstance(attitude, str) and attitude not in ("auto", "level", "free"):
        raise ValueError(f"attitude={attitude!r}: expected 'auto', 'level', 'free' or a quaternion")
    with double_precision():
        velocity = np.array([speed * np.cos(course), speed * np.sin(course), climb])
        ahead = course if heading is None else heading
        kind = _motion(speed, climb, turn_rate)
        task = _Task(system, velocity, turn_rate, ahead, attitude, body, guess, command, t, starts, tolerance, kind)
        options = ["level", "free"] if isinstance(attitude, str) and attitude == "auto" else [attitude]
        result: Trim | NoTrim | None = None
        for option in options:
            result = task.solve(option, spin=False)
            if result.converged:
                return result
        if "spin" in allowed:
            spun = task.solve("free", spin=True)
            if spun.converged:
                return spun
        assert result is not None
        return result


def max_level_speed(
    system: System,
    *,
    course: float = 0.0,
    heading: float | None = None,
    attitude: str | Sequence[float] = "free",
    most: float = 200.0,
    guess: State | None = None,
    t: float = 0.0,
    starts: int = 8,
) -> SpeedLimit:
    """The fastest steady level flight towards ``course`` [rad], up to ``most`` [m/s]; other arguments as for :func:`trim`."""  # fmt: skip
    with double_precision():
        velocity = np.array([most * np.cos(course), most * np.sin(course), 0.0])
        ahead = course if heading is None else heading
        task = _Task(system, velocity, 0.0, ahead, attitude, None, guess, None, t, starts, TOLERANCE, "level flight")
        problem, low, high, first = task.problem(attitude, spin=False, free_speed=True)
        fastest = -1.0
        for z in [first, *further_starts(problem.layout, first, low, high, starts - 1)]:
            z, size = solve(problem, z, low, high)
            if size < SOLVED:
                fastest = max(fastest, float(choose(problem, z, low, high)[0]) * most)
            if fastest >= most * (1 - 1e-9):
                break
    if fastest < 0:
        none = trim(system, course=course, heading=heading, attitude=attitude, guess=guess, t=t, starts=starts)
        return SpeedLimit(0.0, none, False, f"No level flight at any speed. {none.sentence}")
    best = trim(system, speed=fastest * (1 - 1e-9), course=course, heading=heading, attitude=attitude, guess=guess, t=t, starts=starts)
    if fastest >= most * (1 - 1e-9):
        return SpeedLimit(fastest, best, False, f"Level flight is possible up to {most:g} m/s at least.")
    return SpeedLimit(
        fastest, best, True, f"The fastest level flight is {fastest:.4g} m/s; there, {', '.join(best.limits) or 'no rotor is at a limit'}."
    )


class _Task:
    """One question about one system, in double precision."""

    def __init__(self, system, velocity, turn_rate, heading, attitude, body, guess, command, t, starts, tolerance, kind):
        self.given = system
        guess = lifted(system) if guess is None else guess
        self.system, guess = without_account(*to_double((system, guess)))
        self.command = to_double({name: jnp.asarray(value) for name, value in (command or {}).items()})
        self.velocity, self.turn_rate, self.t = velocity, turn_rate, t
        self.starts, self.tolerance, self.kind = starts, tolerance, kind
        self.rotors = rotor_elements(self.system)
        if not self.rotors:
            raise ValueError("trim needs rotors, and the system has none")
        carried = sorted({b for e in self.rotors.values() for b in e.bodies})
        main = carried[0] if body is None else self.system.bodies.index(body)
        if main not in carried:
            raise ValueError(f"body {body!r} has no rotors")
        self.bodies = (main, *(b for b in carried if b != main))
        if not isinstance(attitude, str):
            heading = float(to_euler("zyx", jnp.asarray(attitude, jnp.float64))[0])
        self.heading = heading
        self.guess = turned(guess, main, jnp.asarray(float(heading)))
        self.supply: dict[str, np.ndarray] = {}  # of batteries: voltage over nominal

    def problem(self, attitude, *, spin: bool, free_speed: bool = False):
        """Problem, bounds and first start for one kind of attitude."""
        angles = None
        if not isinstance(attitude, str):
            angles = np.asarray(to_euler("zyx", jnp.asarray(attitude, jnp.float64)))[::-1]
        elif attitude == "level":
            angles = np.array([0.0, 0.0, self.heading])
        return set_up(
            self.system, self.guess, self.bodies, self.velocity, self.turn_rate, angles, self.command, self.t, self.supply,
            spin=spin, free_speed=free_speed,
        )  # fmt: skip

    def solve(self, attitude, *, spin: bool) -> Trim | NoTrim:
        """The answer for one kind of attitude; where batteries sag under the load of the trim, once more with what they give."""
        result, supply = self._solve(attitude, spin)
        for _ in range(20):
            if max((np.abs(s - self.supply.get(name, 1.0)).max() for name, s in supply.items()), default=0.0) < 1e-9:
                break
            self.supply = supply
            result, supply = self._solve(attitude, spin)
        return result

    def _solve(self, attitude, spin: bool) -> tuple[Trim | NoTrim, dict]:
        problem, low, high, first = self.problem(attitude, spin=spin)
        tries = []
        for z in [first, *further_starts(problem.layout, first, low, high, self.starts - 1)]:
            z, size = solve(problem, z, low, high)
            tries.append((size, z))
            if size < SOLVED:
                return self._result(problem, choose(problem, z, low, high), low, high)
        tries.sort(key=lambda pair: pair[0])
        return self._result(problem, tries[0][1], low, high, [z for _, z in tries[:3]])

    # -- results ----------------------------------------------------------------------------------------------------------------------

    def _result(self, problem: Problem, z, low, high, nearest: Sequence[np.ndarray] = ()) -> tuple[Trim | NoTrim, dict]:
        done = jax.tree.map(np.asarray, finish(problem, self.system, self.guess.memory, jnp.asarray(z)))
        force, moment = done.force_W, done.moment_B
        roll, pitch, yaw = (float(x) for x in done.angles[self.bodies[0]])
        labels = [n for name in problem.layout.rotors for n in _rotor_labels(self.system, name)]
        common = {
            "state": like(done.state, self.given), "command": like(done.command, self.given), "velocity_W": done.steady.velocity_W,
            "turn_rate": float(done.steady.turn_rate), "roll": roll, "pitch": pitch, "yaw": yaw, "residual_force_W": force,
            "residual_moment_B": moment, "residual_n": float(np.linalg.norm(force, axis=1).max()),
            "residual_nm": float(np.linalg.norm(moment, axis=1).max()), "limits": _at_limits(problem, z, low, high, labels),
        }  # fmt: skip
        weight, arm = np.asarray(problem.force_scale), np.asarray(problem.length_scale)
        worst = max((np.abs(force) / weight[:, None]).max(), (np.abs(moment) / (weight * arm)[:, None]).max(), _restless(done))
        if worst < self.tolerance:
            power = float(done.power)
            return Trim(**common, shaft_power=power, sentence=_trim_sentence(self.kind, common, power)), done.supply
        axis, missing = self._culprit(problem, nearest or [z], low, high)
        sentence = _no_trim_sentence(self.kind, axis, missing, common["limits"])
        return NoTrim(**common, axis=axis, missing=missing, sentence=sentence), done.supply

    def _culprit(self, problem: Problem, nearest: Sequence[np.ndarray], low, high) -> tuple[str, float]:
        """The axis of the main body that stays unbalanced when everything else is balanced, and how much of it [N or N m]."""
        nb, main = self.system.bodies.count, self.bodies[0]
        rows = [3 * main + k for k in range(3)] + [3 * nb + 3 * main + k for k in range(3)]
        units = np.repeat([1.0, float(problem.length_scale[main])], 3) * float(problem.force_scale[main])
        residual = np.abs(np.asarray(evaluate(problem, jnp.asarray(nearest[0]))[0]))[rows]
        best = (np.inf, "", np.nan)
        for k in np.argsort(-residual):
            weights = np.ones(problem.weights.shape)
            weights[rows[k]] = 1e-4
            relaxed = eqx.tree_at(lambda p: p.weights, problem, jnp.asarray(weights))
            for z in nearest:
                z, _ = solve(relaxed, z, low, high)
                r = np.asarray(evaluate(problem, jnp.asarray(z))[0])
                others = np.abs(np.delete(r, rows[k])).max()
                missing = abs(r[rows[k]])
                if others < 1e-4 * missing and missing < best[0]:
                    best = (missing, AXES[k], missing * units[k])
        if not best[1]:
            k = int(np.argmax(residual))
            return AXES[k], float(residual[k] * units[k])
        return best[1], float(best[2])


def _restless(done: Finished) -> float:
    """How fast memory still changes, per its own size and hundredth of a second; the charge of a battery may."""
    fastest = 0.0
    for name, rate in done.rates.items():
        own = tuple(x.speed if isinstance(x, PoweredMemory) else x for x in (rate, done.state.memory[name]))
        for r, v in zip(*map(jax.tree.leaves, own), strict=True):
            fastest = max(fastest, float((np.abs(r) / (1.0 + np.abs(v))).max(initial=0.0)))
    return fastest * 1e-2


# -- words -------------------------------------------------------------------------------------------------------------------------------


def _motion(speed: float, climb: float, turn_rate: float) -> str:
    if not speed and not turn_rate:
        return "hover" if not climb else f"climb at {climb:g} m/s" if climb > 0 else f"descent at {-climb:g} m/s"
    kind = "level flight" if not climb else "climb" if climb > 0 else "descent"
    words = f"{kind} at {speed:g} m/s" + (f" and {climb:+g} m/s vertically" if climb else "")
    return words + (f" turning at {np.degrees(turn_rate):g} deg/s" if turn_rate else "")


def _rotor_labels(system: System, name: str) -> list[str]:
    e = system.elements[name]
    return [f"{system.bodies.names[b]}/{i + 1}" for b in e.bodies for i in range(e.count)]  # type: ignore[attr-defined]


def _at_limits(problem: Problem, z: np.ndarray, low: np.ndarray, high: np.ndarray, labels: list[str]) -> tuple[str, ...]:
    L = problem.layout
    end = len(z) - L.memory_size - L.rows
    part = slice(end - len(labels), end)
    out = []
    for label, x, a, b in zip(labels, z[part], low[part], high[part], strict=True):
        if a == b:
            out.append(f"{label} stopped")
        elif x - a < 1e-7 * (b - a if np.isfinite(b) else 1.0):
            out.append(f"{label} at its lowest speed")
        elif b - x < 1e-7 * (b - a):
            out.append(f"{label} at its highest speed")
    return tuple(out)


def _trim_sentence(kind: str, r: dict[str, Any], power: float) -> str:
    words = f"{kind[0].upper()}{kind[1:]}: roll {np.degrees(r['roll']):+.3f} deg, pitch {np.degrees(r['pitch']):+.3f} deg"
    if r["turn_rate"]:
        words += f", turning at {r['turn_rate']:.4g} rad/s"
    words += f", shaft power {power:.5g} W"
    words += f"; {', '.join(r['limits'])}" if r["limits"] else ""
    return f"{words}; residual {r['residual_n']:.1e} N, {r['residual_nm']:.1e} N m."


def _no_trim_sentence(kind: str, axis: str, missing: float, limits: Sequence[str]) -> str:
    unit = "N" if "force" in axis else "N m"
    words = f"There is no trim for {kind}: {missing:.4g} {unit} of {axis} cannot be balanced"
    return words + (f", with {', '.join(limits)}." if limits else ".")
