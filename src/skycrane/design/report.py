"""What a design run reports: `report.json`, the same as a page, and what blocks a design where there is none."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from skycrane.design.cases import Case
from skycrane.design.problem import OBJECTIVES, Problem
from skycrane.design.redistribution import Comparison
from skycrane.design.solve import Solution
from skycrane.design.verify import Check, Verified


@dataclass(frozen=True)
class Candidate:
    """A layout of a method, checked, with what it cost."""

    position: np.ndarray
    direction: np.ndarray
    end_effector: np.ndarray
    facts: Verified
    evaluations: int
    wall_s: float


def candidate(problem: Problem, found: Solution, facts: Verified, evaluations: int, wall_s: float) -> Candidate:
    """From the end of a search."""
    return Candidate(*problem.layout.layout_of(found.x), facts, evaluations, wall_s)


def figures(found: Candidate) -> dict[str, Any]:
    """The report's figures of one method."""
    v = found.facts
    return {
        "size_norm_m": v.size,
        "end_effector_distance_m": v.end_effector_distance,
        "condition_number": v.condition,
        "condition_number_full": v.condition_full,
        "condition_number_limited": v.condition_limited,
        "sigma_min": v.sigma_min,
        "clearance_min_m": v.clearance_min,
        "end_effector_clearance_min_m": v.end_effector_clearance_min,
        "force_radius_n": v.force_radius,
        "torque_radius_n_m": v.torque_radius,
        "mass_kg": v.mass,
        "positive_margin": v.positive_margin,
        "thrust_hover_max_n": _number(v.hover_thrust.max()),
        "constraints_satisfied": v.satisfied,
        "largest_violation": max((-c.margin for c in v.checks if not c.satisfied), default=0.0),
        "blocking": [c.name for c in v.checks if not c.satisfied],
        "evaluations": found.evaluations,
        "wall_s": found.wall_s,
    }


def report(
    problem: Problem, best: Candidate, baseline: Candidate | None, comparison: Comparison | None, cases: Sequence[Case], **run: Any
) -> dict[str, Any]:
    """Everything, ready for JSON."""
    v = best.facts
    return {
        **figures(best),
        "objective": problem.objective,
        "rotors": problem.rotors,
        "layout": {
            "position_m": best.position.tolist(),
            "direction": best.direction.tolist(),
            "spin": problem.spin.tolist(),
            "end_effector_m": best.end_effector.tolist(),
            "center_of_mass_m": v.com.tolist(),
            "inertia_kg_m2": v.inertia.tolist(),
            "null_vector": v.null_vector.tolist(),
        },
        "constraints": [_check(c) for c in v.checks],
        "checks": [asdict(case) for case in cases],
        "checks_hold": all(case.holds for case in cases),
        "baseline": None if baseline is None else {**figures(baseline), "method": "Latin hypercube and generalised pattern search"},
        "redistribution": None if comparison is None else comparison.facts(),
        **run,
    }


def misses(facts: dict[str, Any], most: int = 12) -> list[str]:
    """Which constraints a report's design misses, and by how much, the worst first."""
    missed = sorted((c for c in facts["constraints"] if not c["satisfied"]), key=lambda c: c["margin"])
    said = [f"{c['name']} by {-c['margin']:.3g}{'' if c['unit'] == '-' else ' ' + c['unit']}" for c in missed]
    return [*said[:most], *([f"{len(said) - most} more"] if len(said) > most else [])]


def _check(c: Check) -> dict[str, Any]:
    return {
        "name": c.name, "value": _number(c.value), "limit": c.limit, "margin": _number(c.margin), "unit": c.unit,
        "satisfied": c.satisfied, "note": c.note,
    }  # fmt: skip


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}.bad{color:#b00020;font-weight:600}img{max-width:100%}h2{margin-top:2rem}"""

ROWS = (
    ("size_norm_m", "size, root of the sum of squared rotor distances", "m"),
    ("condition_number", "condition number, first six rotors", ""),
    ("condition_number_full", "condition number, all rotors with reaction torque", ""),
    ("sigma_min", "smallest singular value", ""),
    ("clearance_min_m", "smallest distance between wakes (certified)", "m"),
    ("end_effector_clearance_min_m", "smallest distance from a wake to the end-effector", "m"),
    ("force_radius_n", "force in the worst direction in level hover", "N"),
    ("torque_radius_n_m", "torque in the worst direction in level hover", "N m"),
    ("mass_kg", "mass", "kg"),
    ("thrust_hover_max_n", "largest thrust in level hover", "N"),
    ("constraints_satisfied", "all constraints hold", ""),
    ("largest_violation", "largest violation", ""),
    ("evaluations", "evaluations", ""),
    ("wall_s", "time", "s"),
)


def page(facts: dict[str, Any], pictures: list[str]) -> str:
    """The report as an HTML page that shows pictures beside it."""
    base = facts["baseline"]
    head = "<tr><th></th><th>this design</th>" + ("<th>pattern search</th>" if base else "") + "<th>unit</th></tr>"
    rows = "".join(
        f"<tr><td>{html.escape(text)}</td>" + "".join(f"<td>{_shown(v[key])}</td>" for v in (facts, base) if v) + f"<td>{unit}</td></tr>"
        for key, text, unit in ROWS
    )
    ordered = sorted(facts["constraints"], key=lambda c: (c["satisfied"], c["margin"] if c["margin"] is not None else -1e9))
    checks = "".join(
        f"<tr{'' if c['satisfied'] else ' class=bad'}><td>{html.escape(c['name'])}</td>"
        f"<td>{_shown(c['value'])}</td><td>{_shown(c['limit'])}</td><td>{_shown(c['margin'])}</td><td>{c['unit']}</td><td>{html.escape(c['note'])}</td></tr>"
        for c in ordered
    )
    missed = "No layout meets every constraint; this one misses: " + html.escape("; ".join(misses(facts))) + "."
    verdict = "Every constraint holds." if facts["constraints_satisfied"] else missed
    layout = facts["layout"]
    places = "".join(
        f"<tr><td>{k + 1}</td>" + "".join(f"<td>{v:.4f}</td>" for v in (*r, *f)) + "</tr>"
        for k, (r, f) in enumerate(zip(layout["position_m"], layout["direction"], strict=True))
    )
    cases = "".join(
        f"<tr{'' if c['holds'] else ' class=bad'}><td>{c['number']}. {html.escape(c['name'])}</td><td>{_shown(c['holds'])}</td>"
        f"<td>{html.escape(c['found'])}</td></tr>"
        for c in facts["checks"]
    )
    thrust = facts["redistribution"]
    spread = "" if thrust is None else _spread(thrust)
    images = "".join(f'<p><img src="{name}" alt="{name}"></p>' for name in pictures)
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Manipulator design</title><style>{STYLE}</style>
<h1>A manipulator with {facts["rotors"]} rotors</h1><p>Objective: {html.escape(OBJECTIVES[facts["objective"]])}.
<span{"" if facts["constraints_satisfied"] else " class=bad"}>{verdict}</span></p><table>{head}{rows}</table>
{images}<h2>Constraints</h2><p>Checked apart from the optimiser; the tightest first.</p>
<table><tr><th>constraint</th><th>value</th><th>limit</th><th>margin</th><th>unit</th><th></th></tr>{checks}</table>
<h2>Allocation of this design</h2><p>What an allocation must do on any layout, tried on this one.</p>
<table><tr><th>case</th><th>holds</th><th></th></tr>{cases}</table>{spread}
<h2>Layout</h2><p>Metres and unit vectors, body axes; end-effector at {", ".join(f"{v:.4f}" for v in layout["end_effector_m"])} m.</p>
<table><tr><th>rotor</th><th>x</th><th>y</th><th>z</th><th>Fx</th><th>Fy</th><th>Fz</th></tr>{places}</table></html>
"""


def _spread(thrust: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{name}</td><td>{_shown(thrust[key + '_max_n'])}</td><td>{_shown(thrust[key + '_mean_n'])}</td></tr>"
        for key, name in (("rule_17", "the paper's rule (17)"), ("minimal_shift", "smallest shift"), ("bounded", "smallest peak"))
    )
    head = "<tr><th>redistribution</th><th>largest thrust, N</th><th>mean of the largest, N</th></tr>"
    return f"<h2>Thrust over {thrust['attitudes']} random hover attitudes</h2><table>{head}{rows}</table>"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
