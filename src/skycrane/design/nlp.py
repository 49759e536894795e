"""Programmes that take an objective and rows of constraints downhill: SciPy's SLSQP, and those of two optional packages.

``slsqp`` and NLopt's are the same method (D. Kraft, "A software package for sequential quadratic programming", DFVLR-FB 88-28, 1988) in two
implementations; IPOPT is an interior-point method (A. Waechter and L. T. Biegler, Math. Programming 106, 2006), which comes with CasADi and
here builds its own estimate of second derivatives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from skycrane.design.problem import DesignError
from skycrane.design.rows import Rows

PACKAGES = {"slsqp": "scipy", "nlopt": "nlopt", "ipopt": "casadi"}
TIGHT = 1e-8  # violation that NLopt takes for none


class Stopped(Exception):
    """Raised by a caller's rows: the time or the number of evaluations is used up."""


def require(method: str) -> None:
    """See that a method's package is there.

    Raises:
        DesignError: for an unknown method, or a package that is missing.
    """
    if method not in PACKAGES:
        raise DesignError(f"solver {method!r}: expected one of {', '.join(PACKAGES)}")
    if find_spec(PACKAGES[method]) is None:
        raise DesignError(f"the solver {method!r} needs the package {PACKAGES[method]}: pip install 'skycrane[{method}]'")


def descend(
    method: str, rows: Callable[[np.ndarray], Rows], x: np.ndarray, low: np.ndarray, high: np.ndarray, iterations: int, tolerance: float
) -> np.ndarray:
    """From ``x`` to a local optimum within ``low`` and ``high`` (infinite where there is no limit), in so many iterations at most.

    Raises:
        Stopped: where ``rows`` did.
    """
    return {"slsqp": _slsqp, "nlopt": _nlopt, "ipopt": _ipopt}[method](rows, np.clip(x, low, high), low, high, iterations, tolerance)


def _slsqp(rows, x, low, high, iterations, tolerance) -> np.ndarray:
    from scipy.optimize import minimize

    constraints = [
        {"type": "eq", "fun": lambda x: rows(x).equal, "jac": lambda x: rows(x).equal_jacobian},
        {"type": "ineq", "fun": lambda x: rows(x).least, "jac": lambda x: rows(x).least_jacobian},
    ]
    bounds = [(None if np.isinf(a) else a, None if np.isinf(b) else b) for a, b in zip(low, high, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy reports a step out of bounds that it has put right
        return minimize(
            lambda x: rows(x).objective, x, jac=lambda x: rows(x).gradient, method="SLSQP", bounds=bounds, constraints=constraints,
            options={"maxiter": iterations, "ftol": tolerance},
        ).x  # fmt: skip


def _nlopt(rows, x, low, high, iterations, tolerance) -> np.ndarray:
    import nlopt

    opt = nlopt.opt(nlopt.LD_SLSQP, len(x))
    stopped: list[Stopped] = []
    last = [x]

    def at(x: np.ndarray) -> Rows:
        last[0] = x.copy()
        try:
            return rows(last[0])
        except Stopped as stop:
            stopped.append(stop)
            opt.force_stop()
            raise

    def objective(x: np.ndarray, gradient: np.ndarray) -> float:
        here = at(x)
        if gradient.size:
            gradient[:] = here.gradient
        return here.objective

    def block(part: str, sign: float) -> Callable:
        def values(out: np.ndarray, x: np.ndarray, gradient: np.ndarray) -> None:
            here = at(x)
            out[:] = sign * getattr(here, part)
            if gradient.size:
                gradient[:] = sign * getattr(here, f"{part}_jacobian")

        return values

    first = rows(x)
    opt.set_min_objective(objective)
    opt.set_lower_bounds(low)
    opt.set_upper_bounds(high)
    if first.equal.size:
        opt.add_equality_mconstraint(block("equal", 1.0), np.full(first.equal.size, TIGHT))
    if first.least.size:
        opt.add_inequality_mconstraint(block("least", -1.0), np.full(first.least.size, TIGHT))
    opt.set_ftol_rel(tolerance)
    opt.set_maxeval(2 * iterations)
    try:
        return opt.optimize(x)
    except Exception as error:  # NLopt's own, of several kinds: out of memory aside, they say that it got no further
        if stopped:
            raise stopped[0] from None
        if isinstance(error, MemoryError):
            raise
        return last[0]


def _ipopt(rows, x, low, high, iterations, tolerance) -> np.ndarray:
    casadi: Any = import_module("casadi")
    first = rows(x)
    n, m = len(x), first.equal.size + first.least.size
    stopped: list[Stopped] = []

    def at(x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Objective and rows (1 + m,) and their derivatives; no numbers once the caller has stopped, which ends IPOPT."""
        try:
            if not stopped:
                here = rows(np.array(x, float).ravel())
                return np.r_[here.objective, here.equal, here.least], np.vstack([here.gradient, here.equal_jacobian, here.least_jacobian])
        except Stopped as stop:
            stopped.append(stop)
        return np.full(1 + m, np.nan), np.full((1 + m, n), np.nan)

    # The names of the methods are those that CasADi calls.
    class Derivative(casadi.Callback):
        def __init__(self):
            casadi.Callback.__init__(self)
            self.construct("derivative", {})

        def get_n_in(self):
            return 2

        def get_n_out(self):
            return 1

        def get_sparsity_in(self, i):
            return casadi.Sparsity.dense(n if i == 0 else 1 + m, 1)

        def get_sparsity_out(self, i):
            return casadi.Sparsity.dense(1 + m, n)

        def eval(self, arguments):
            return [casadi.DM(at(arguments[0])[1])]

    class Values(casadi.Callback):
        def __init__(self):
            casadi.Callback.__init__(self)
            self.derivative = Derivative()
            self.construct("values", {})

        def get_n_in(self):
            return 1

        def get_n_out(self):
            return 1

        def get_sparsity_in(self, i):
            return casadi.Sparsity.dense(n, 1)

        def get_sparsity_out(self, i):
            return casadi.Sparsity.dense(1 + m, 1)

        def eval(self, arguments):
            return [casadi.DM(at(arguments[0])[0])]

        def has_jacobian(self):
            return True

        def get_jacobian(self, name, inputs, outputs, options):
            return self.derivative

    values = Values()
    unknown = casadi.MX.sym("x", n)
    found = values(unknown)
    options = {
        "print_time": False, "show_eval_warnings": False, "ipopt": {
            "print_level": 0, "sb": "yes", "max_iter": iterations, "tol": max(tolerance, 1e-8), "hessian_approximation": "limited-memory",
        },
    }  # fmt: skip
    solver = casadi.nlpsol("solver", "ipopt", {"x": unknown, "f": found[0], "g": found[1:]}, options)
    result = solver(
        x0=x, lbx=low, ubx=high, lbg=np.zeros(m), ubg=np.r_[np.zeros(first.equal.size), np.full(first.least.size, np.inf)],
    )  # fmt: skip
    if stopped:
        raise stopped[0]
    end = np.array(result["x"]).ravel()
    return end if np.isfinite(end).all() else x
