"""A linear model with named states, inputs and outputs, and its modes.

    x' = A x + B u,  y = C x + D u     (or x[k+1] = ..., where ``dt`` > 0)

Modes: ``A v = lambda v``, left vectors ``w^H A = lambda w^H``; of a discrete model ``lambda = log(z) / dt``.  The participation of
state k in a mode is ``|w_k| |v_k|`` scaled to sum one (Perez-Arriaga, Verghese and Schweppe, IEEE Trans. PAS-101, 1982).  States that
nothing depends on (position, heading) and states without dynamics are set apart first, because the chain position, velocity, attitude,
rate of a hovering vehicle is one Jordan block whose fourfold eigenvalue zero a numerical solver would spread over a circle of radius
1e-4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import control


@dataclass(frozen=True)
class Mode:
    """One real eigenvalue or conjugate pair.

    ``eigenvalue`` [1/s], the one with the positive imaginary part; ``frequency`` [rad/s], its magnitude; ``damping``, minus the real part
    over the magnitude (1 at zero frequency: neutral); ``participation`` by state, largest first, entries below one per cent left out.
    """

    eigenvalue: complex
    participation: dict[str, float]

    @property
    def frequency(self) -> float:
        return abs(self.eigenvalue)

    @property
    def damping(self) -> float:
        return -self.eigenvalue.real / self.frequency if self.frequency > 0 else 1.0

    @property
    def oscillates(self) -> bool:
        return self.eigenvalue.imag != 0.0

    @property
    def stable(self) -> bool:
        """Whether it decays; a neutral mode (eigenvalue zero) does not."""
        return self.eigenvalue.real < 0.0


@dataclass(frozen=True)
class LinearModel:
    """Matrices with names.

    ``A`` (n, n), ``B`` (n, m), ``C`` (p, n), ``D`` (p, m); ``states``, ``inputs``, ``outputs``: their names; ``dt`` [s], 0 where time is
    continuous; ``residual`` (n,): rates (or change over one period) at the point of linearisation, zero at an equilibrium;
    ``constraint`` (c, n): rows that allowed states satisfy, ``constraint @ x = 0`` (taut tethers), or None.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dt: float = 0.0
    residual: np.ndarray = field(default_factory=lambda: np.zeros(0))
    constraint: np.ndarray | None = None

    def to_control(self, name: str | None = None) -> control.StateSpace:
        """A ``StateSpace`` of python-control with the same names."""
        import control

        return control.StateSpace(
            self.A,
            self.B,
            self.C,
            self.D,
            self.dt,
            states=list(self.states),
            inputs=list(self.inputs),
            outputs=list(self.outputs),
            name=name,
        )

    def index(self, names: Sequence[str], among: Sequence[str]) -> list[int]:
        """Positions of names, in full (``"uav/pitch"``) or, where only one fits, their last part (``"pitch"``).

        Raises:
            KeyError: where none or several fit; it lists them.
        """
        out = []
        for name in names:
            found = [k for k, full in enumerate(among) if full == name] or [
                k for k, full in enumerate(among) if full.split("/")[-1] == name
            ]
            if len(found) != 1:
                listed = ", ".join(among[k] for k in found) if found else f"the names are {', '.join(among)}"
                raise KeyError(f"{name!r} fits {len(found)} signals: {listed}")
            out += found
        return out

    def block(self, states: Sequence[str], inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> LinearModel:
        """The part between some states, inputs (all by default) and outputs (the states by default); other states are held at zero."""
        x = self.index(states, self.states)
        u = list(range(len(self.inputs))) if inputs is None else self.index(inputs, self.inputs)
        if outputs is None:
            C, D, names = np.eye(len(x)), np.zeros((len(x), len(u))), tuple(self.states[k] for k in x)
        else:
            y = self.index(outputs, self.outputs)
            C, D, names = self.C[np.ix_(y, x)], self.D[np.ix_(y, u)], tuple(self.outputs[k] for k in y)
        residual = self.residual[x] if self.residual.size else self.residual
        picked = tuple(self.states[k] for k in x)
        return LinearModel(
            self.A[np.ix_(x, x)], self.B[np.ix_(x, u)], C, D, picked, tuple(self.inputs[k] for k in u), names, self.dt, residual
        )

    def settle(self, states: Sequence[str]) -> LinearModel:
        """Eliminate states that follow the others at once (motor speeds, cable nodes): their rates are set to zero.

        With x = (slow, fast): ``A_ss - A_sf A_ff^-1 A_fs`` and the same for B, C, D.  Exact at low frequency.

        Raises:
            numpy.linalg.LinAlgError: where the fast states have no steady value.
        """
        fast = self.index(states, self.states)
        slow = [k for k in range(len(self.states)) if k not in fast]
        A_ff = self.A[np.ix_(fast, fast)] - (np.eye(len(fast)) if self.dt else 0.0)
        from_slow, from_input = (-np.linalg.solve(A_ff, M) for M in (self.A[np.ix_(fast, slow)], self.B[fast]))
        return LinearModel(
            self.A[np.ix_(slow, slow)] + self.A[np.ix_(slow, fast)] @ from_slow,
            self.B[slow] + self.A[np.ix_(slow, fast)] @ from_input,
            self.C[:, slow] + self.C[:, fast] @ from_slow,
            self.D + self.C[:, fast] @ from_input,
            tuple(self.states[k] for k in slow),
            self.inputs,
            self.outputs,
            self.dt,
            self.residual[slow] if self.residual.size else self.residual,
        )

    def modes(self, tolerance: float = 1e-9) -> list[Mode]:
        """All modes, the fastest last; those that the constraints forbid are left out.

        ``tolerance``, times the largest entry of A, is what counts as zero when states are set apart.
        """
        names = np.array(self.states)
        A = self.A - np.eye(len(self.A)) if self.dt else self.A
        G = np.zeros((0, len(A))) if self.constraint is None else self.constraint
        left, neutral = _set_apart(A, tolerance * np.abs(A).max(initial=0.0), keep=np.asarray(G != 0.0).any(axis=0))
        found = [Mode(0.0, {str(names[k]): 1.0}) for k in neutral]
        A, G, names = A[np.ix_(left, left)], G[:, left], names[left]
        basis = np.eye(len(left))
        if len(G):
            # The allowed states are an invariant subspace: A in an orthonormal basis of it.
            _, s, vh = np.linalg.svd(G)
            basis = vh[int((s > 1e-9 * s[0]).sum()) :].T
            A = basis.T @ A @ basis
        for value, right, left_vector in zip(*_eigen(A), strict=True):
            # First-order perturbation theory: how far rounding can move this eigenvalue.  What cannot be told from zero is zero.
            rounding = 100 * np.finfo(float).eps * np.linalg.norm(A, 2) / max(abs(left_vector.conj() @ right), 1e-300)
            value = _continuous(0.0 if abs(value) < rounding else value, self.dt)
            if value is None or value.imag < 0:
                continue
            share = np.abs(basis @ left_vector) * np.abs(basis @ right)
            share = share / max(share.sum(), 1e-300)
            order = np.argsort(-share)
            found.append(Mode(value, {str(names[k]): float(share[k]) for k in order if share[k] >= 0.01}))
        return sorted(found, key=lambda mode: mode.frequency)

    def stable(self) -> bool:
        """Whether every mode decays, except neutral ones (position and heading of a free vehicle)."""
        return all(mode.eigenvalue.real < 1e-9 for mode in self.modes())


def _eigen(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, right and left eigenvectors as rows."""
    from scipy.linalg import eig

    if not len(A):
        return np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0))
    values, left, right = eig(A, left=True, right=True)
    return values, right.T, left.T


def _continuous(value: complex, dt: float) -> complex | None:
    """The eigenvalue [1/s]; of a discrete model from z - 1.  None for memory that is forgotten within a period (z = 0)."""
    if not dt:
        return complex(value)
    z = 1.0 + complex(value)
    if abs(z) < 1e-6:
        return None
    logarithm = np.log1p(value) if abs(value) < 0.5 else np.log(z)
    # A negative real z lies on the branch cut: half the sampling frequency.
    return complex(logarithm.real, abs(logarithm.imag) if z.imag == 0 else logarithm.imag) / dt


def _set_apart(A: np.ndarray, zero: float, keep: Any) -> tuple[list[int], list[int]]:
    """Split the states: those of the coupled dynamics and those in ``keep``, and those with an exact eigenvalue zero (no other depends on
    them, or they never change)."""
    left, neutral = list(range(len(A))), []
    changed = True
    while changed:
        changed = False
        for k in list(left):
            if not keep[k] and (np.abs(A[left, k]).max() <= zero or np.abs(A[k, left]).max() <= zero):
                left.remove(k)
                neutral.append(k)
                changed = True
    return left, neutral


def mode_table(modes: Sequence[Mode], most: int = 4) -> str:
    """Modes as text, one a line: eigenvalue, frequency, damping and the states that take part most."""
    lines = [f"{'eigenvalue [1/s]':>24}  {'freq [Hz]':>10}  {'damping':>8}  states"]
    for mode in modes:
        value = mode.eigenvalue
        number = f"{value.real:.5g} ± {value.imag:.5g}j" if mode.oscillates else f"{value.real:.5g}"
        states = ", ".join(f"{name} {100 * share:.0f}%" for name, share in list(mode.participation.items())[:most])
        lines.append(f"{number:>24}  {mode.frequency / (2 * np.pi):>10.4g}  {mode.damping:>8.3f}  {states}")
    return "\n".join(lines)
