"""The optimiser's rows, its check, the search, and what a design run writes."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

from skycrane.control.allocation import Allocation
from skycrane.control.reach import analyse, positive_null
from skycrane.design.cases import allocation_cases
from skycrane.design.clearance import Box, Sphere, Wake, distance
from skycrane.design.level import levelled
from skycrane.design.machine import Components, effectiveness, masses
from skycrane.design.pattern import pattern_search
from skycrane.design.problem import DesignError, Problem, latin_hypercube, start_of
from skycrane.design.problem_file import read
from skycrane.design.redistribution import bounded, compare
from skycrane.design.rows import SHARP
from skycrane.design.run import run
from skycrane.design.solve import Solver
from skycrane.design.verify import smallest_miss, verify
from tests.control.test_backstepping import AXES, ROWS
from tests.design.layouts import DIRECTIONS, EIGHT_DIRECTIONS, EIGHT_PLACES, EIGHT_TIP, PLACES, TIP

RNG = np.random.default_rng(4)


@pytest.fixture(scope="module")
def solver():
    """Everything at once, so that one program serves all tests of the rows."""
    return Solver(Problem(
        rotors=8, objective="force", one_failed=True, any_attitude=True, boom_radius=0.01, box=(0.5, 0.5, 0.5), size_max=1.2,
        spins=(1, -1, 1, -1, 1, -1, 1, -1), bodies=(Sphere((0, 0, 0), 0.05), Box((0.1, 0, 0.2), (0.1, 0.1, 0.1))), disk_clearance=0.02,
        tasks=((5.0, 0, 0, 0, 0, 0.5),), mirrored=((0, 1, 1),), components=Components(arm_density=0.05),
    ))  # fmt: skip


def test_derivatives_of_all_rows(solver):
    problem, rows = solver.problem, solver.rows
    rows.change(0.0, 5.0, SHARP - 3)
    x = start_of(problem, latin_hypercube(4, 43, 3)[1]) + 0.01 * RNG.normal(size=problem.layout.size)
    here = rows(x)
    J = np.concatenate([here.gradient[None], here.equal_jacobian, here.least_jacobian])
    # A distance below 0 is that of the deepest point, which jumps; beyond 0 it is smooth but at rims.
    distances = np.concatenate([[False], *(np.full(b.count, "clearance" in b.name) for b in rows.blocks)])
    for _ in range(3):
        d = RNG.normal(size=x.size)
        h = 1e-5
        up, down = (np.concatenate([[r.objective], r.equal, r.least]) for r in (rows(x + h * d), rows(x - h * d)))
        difference, wanted = (up - down) / (2 * h), J @ d
        good = np.abs(difference - wanted) < 1e-2 * (1 + np.abs(wanted))
        assert good[~distances].all()
        assert good[distances & (up > 0)].mean() > 0.97


def test_rows_say_what_the_certificate_says(solver):
    problem, rows = solver.problem, solver.rows
    for sample in latin_hypercube(3, 43, 8):
        x = start_of(problem, sample)
        r, F, _ = problem.layout.layout_of(x)
        values, at = rows(x).least, 0
        for block in (b for b in rows.blocks if not b.equal):
            if block.name == "wake clearance":
                break
            at += block.count
        i, j, _, _ = rows.pairs
        apart = values[at : at + len(i)] + problem.clearance
        for pair in {*zip(i.tolist(), j.tolist(), strict=True)}:
            said = apart[(i == pair[0]) & (j == pair[1])].min()
            certified = distance(*(Wake(r[k], F[k]) for k in pair)).upper
            if 1e-9 < certified < 0.3:
                assert said == pytest.approx(certified, abs=1e-4)
            elif certified <= 1e-9:
                assert said <= 1e-6


def test_the_found_design_meets_everything():
    found = verify(Problem(), PLACES, DIRECTIONS, TIP)
    assert [c.name for c in found.checks if not c.satisfied] == []
    assert found.size < 0.63
    assert found.condition < 5
    assert found.clearance_min > 0.01 - 1e-6
    # A smaller clearance is asked for: the check sees it.
    missed = {c.name for c in verify(Problem(clearance=0.011, condition_max=4.9), PLACES, DIRECTIONS, TIP).checks if not c.satisfied}
    assert "condition number" in missed
    assert sum(name.startswith("wakes") for name in missed) >= 2


def test_eight_rotors_that_hover_without_any_one_of_them():
    """By linear programmes of our own; the check says so too, and names the rotor where one may not stop."""
    problem = Problem(rotors=8, one_failed=True)
    layout = EIGHT_PLACES, EIGHT_DIRECTIONS, EIGHT_TIP
    found = verify(problem, *layout)
    assert [c.name for c in found.checks if not c.satisfied] == []
    assert found.size < 0.62
    B = effectiveness(EIGHT_PLACES, EIGHT_DIRECTIONS, -np.ones(8), 0.0147, found.com)
    weight = np.array([0, 0, found.mass * 9.81, 0, 0, 0])
    for k in range(8):
        limits = [(0, 0.0 if i == k else 28.0) for i in range(8)]
        assert linprog(np.zeros(8), A_eq=B, b_eq=weight, bounds=limits).status == 0
    # What is left then in the worst direction is nothing; a margin is checked against linear programmes in many directions.
    asked = [
        c for c in verify(Problem(rotors=8, one_failed=True, failed_margin=1.0), *layout, distances=False).checks if "left over" in c.name
    ]
    assert len(asked) == 8
    assert min(c.value for c in asked) == pytest.approx(0.0, abs=1e-3)
    k = int(np.argmax([c.value for c in asked]))
    others, scale = np.delete(B, k, 1), np.array([1, 1, 1, 0.3, 0.3, 0.3])
    reached = []
    for u in RNG.normal(size=(200, 6)):
        d = scale * u / np.linalg.norm(u)
        reached.append(linprog(np.r_[np.zeros(7), -1.0], A_eq=np.c_[others, -d], b_eq=weight, bounds=[(0, 28.0)] * 7 + [(0, None)]).x[-1])
    assert asked[k].value - 1e-6 <= min(reached) < 3 * asked[k].value + 0.1
    # Turned on its side it does not: the check says which rotors may not stop, and what is missing.
    turn = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    turned = verify(problem, EIGHT_PLACES @ turn.T, EIGHT_DIRECTIONS @ turn.T, EIGHT_TIP, distances=False)
    missed = [c for c in turned.checks if not c.satisfied]
    assert missed
    assert all("hover" in c.name and -100 < c.margin < 0 for c in missed)


def test_a_layout_that_may_be_turned_is_turned_to_push_hardest():
    """Better than any of many random attitudes by the check's own figure; what does not depend on the attitude stays; ties are kept."""
    problem = Problem()
    at = problem.layout
    x = np.zeros(at.size)
    x[at.r], x[at.f], x[at.e] = PLACES.ravel(), DIRECTIONS.ravel(), TIP

    def figures(x):
        return verify(problem, *at.layout_of(x), distances=False)

    best, before = figures(levelled(problem, x)), figures(x)
    assert best.size == pytest.approx(before.size, rel=1e-12)
    assert best.condition == pytest.approx(before.condition, rel=1e-9)
    assert best.end_effector_distance == pytest.approx(before.end_effector_distance, rel=1e-12)
    for R in Rotation.random(15, rng=RNG).as_matrix():
        turned = x.copy()
        turned[at.r], turned[at.f] = (PLACES @ R.T).ravel(), (DIRECTIONS @ R.T).ravel()
        assert figures(turned).force_radius < best.force_radius + 1e-3
    for tied in (Problem(box=(1, 1, 1)), Problem(objective="force"), Problem(tasks=((1.0, 0, 0, 0, 0, 0),))):
        assert levelled(tied, x) is x


@pytest.mark.parametrize("layout", [(PLACES, DIRECTIONS), (EIGHT_PLACES, EIGHT_DIRECTIONS), (ROWS[:, :3], AXES)])
def test_cases_of_allocation_hold_for_designs(layout):
    problem = Problem(rotors=len(layout[0]))
    for case in allocation_cases(problem, *layout, verify(problem, *layout, TIP, distances=False)):
        assert case.holds, case


def test_cases_of_allocation_find_a_rotor_that_cannot_cancel():
    """One rotor turned round: no thrusts cancel any more, and some of a tenth more cannot be had."""
    F = np.concatenate([DIRECTIONS[:1] * -1, DIRECTIONS[1:]])
    cases = allocation_cases(Problem(), PLACES, F, verify(Problem(), PLACES, F, TIP, distances=False))
    assert not next(c for c in cases if c.number == 29).holds


@pytest.mark.parametrize("layout", [(PLACES, DIRECTIONS), (ROWS[:, :3], AXES)])
def test_allocation_on_designs(layout):
    """All six axes, one direction of turning, limits, order: the physical cases of allocation on seven rotors."""
    k_F = 28.0 / 1837.83**2
    allocation = Allocation.create(*layout, -np.ones(7), k_F, 0.0147 * k_F, speed_max=1837.83)
    reach = analyse(allocation, vertical_force=1.9 * 9.81)
    assert reach.omnidirectional
    assert reach.positive_margin > 0.9  # all thrusts alike cancel
    assert len(reach.kept) == 6
    from skycrane.math.components import Vec3

    for scale in (0.1, 2.0, 200.0):
        demand = scale * RNG.normal(size=6)
        done = allocation(Vec3.of(demand[None, :3]), Vec3.of(demand[None, 3:]))
        thrust = np.asarray(done.thrust)
        assert np.isfinite(thrust).all()
        assert (thrust >= 0).all()
        assert (thrust <= 28.0 * (1 + 1e-9)).all()
        have = thrust[0] @ np.asarray(allocation.effectiveness[0]).T
        unmet = np.concatenate([done.unmet_force_B.array()[0], done.unmet_moment_B.array()[0]])
        np.testing.assert_allclose(have + unmet, demand, atol=1e-6 * (1 + scale))
    order = RNG.permutation(7)
    other = Allocation.create(layout[0][order], layout[1][order], -np.ones(7), k_F, 0.0147 * k_F, speed_max=1837.83)
    push = Vec3(*np.array([[3.0], [-2.0], [15.0]])), Vec3(*np.array([[0.3], [0.2], [-0.1]]))
    np.testing.assert_allclose(np.asarray(other(*push).thrust)[0], np.asarray(allocation(*push).thrust)[0, order], atol=1e-5)


def test_attainable_force_by_linear_programmes():
    """The worst direction by facets is no better than any direction by a linear programme, and one comes close."""
    found = verify(Problem(), PLACES, DIRECTIONS, TIP)
    B = effectiveness(PLACES, DIRECTIONS, -np.ones(7), 0.0147, found.com)
    weight = np.array([0, 0, found.mass * 9.81, 0, 0, 0])
    reached = []
    for u in RNG.normal(size=(300, 3)):
        d = np.concatenate([u / np.linalg.norm(u), np.zeros(3)])
        lp = linprog(np.r_[np.zeros(7), -1.0], A_eq=np.hstack([B, -d[:, None]]), b_eq=weight, bounds=[(0, 28.0)] * 7 + [(0, None)])
        reached.append(lp.x[-1])
    assert min(reached) >= found.force_radius - 1e-6
    assert min(reached) < 1.15 * found.force_radius


def test_the_papers_rule_against_the_smallest_shift():
    B = effectiveness(ROWS[:, :3], AXES, -np.ones(7), 0.0147)
    found = compare(B, 1.9 * 9.81)
    facts = found.facts()
    assert facts["attitudes"] == 10_000
    assert facts["rule_17_max_n"] == pytest.approx(41, abs=1.5)
    assert facts["minimal_shift_max_n"] == pytest.approx(17.5, abs=0.3)
    wrench = np.array([2.0, 3.0, 17.0, 0, 0, 0])
    null = positive_null(B)
    from skycrane.design.redistribution import minimal_shift, rule_17

    for thrust in (rule_17(B, wrench, null), minimal_shift(B, wrench, null), bounded(B, wrench)):
        np.testing.assert_allclose(B @ thrust, wrench, atol=1e-9 + 1e-3 * (thrust is not None))
        assert thrust.min() > -1e-3


def test_the_mass_model_of_the_paper():
    """All that is not a rotor a ball at the origin: centre of gravity and inertia as worked out by hand."""
    found = masses(Components(structure=1.06 - 1e-9, battery=1e-9, battery_reach=0.0), ROWS[:, :3])
    assert found.mass == pytest.approx(1.90)
    np.testing.assert_allclose(found.com, [-0.0173, -0.0140, 0.0041], atol=1e-4)
    S = np.cross(np.eye(3), found.com)
    np.testing.assert_allclose(np.diag(found.inertia - 1.9 * S @ S), [0.1127, 0.0956, 0.1286], atol=2e-4)
    balanced = masses(Components(), ROWS[:, :3])
    np.testing.assert_allclose(balanced.battery, [0.082, 0.066, -0.020], atol=1e-3)
    np.testing.assert_allclose(balanced.com, 0, atol=1e-12)


def test_by_how_much_a_wrench_is_missed():
    """Two rotors that push along x and y miss a wrench by what points elsewhere; moments count at 0.3 m."""
    B = np.eye(6)[:, :2]
    assert smallest_miss(B, np.array([2.0, 3.0, 0, 0, 0, 0])) == pytest.approx(0, abs=1e-9)
    assert smallest_miss(B, np.array([2.0, -3.0, 1.0, 0, 0, 0])) == pytest.approx(3.0)
    assert smallest_miss(B, np.array([2.0, 3.0, 0, 0, 0, 1.2])) == pytest.approx(4.0)
    assert smallest_miss(B, np.array([2.0, 3.0, 0, 0, 0, 0]), idle=(1,)) == pytest.approx(3.0)


def test_the_pattern_search_does_not_get_worse(solver):
    found = pattern_search(solver.problem, budget=60.0, evaluations=80, rows=solver.rows)
    assert found.evaluations >= 80
    assert np.isfinite(found.objective)


def test_a_problem_from_a_file(tmp_path):
    file = tmp_path / "problem.toml"
    file.write_text(
        'rotors = 8\nprofile = [[-0.05, 0.1], [0.8, 0.3]]\nbodies = [{kind = "sphere", center = [0,0,0], radius = 0.1}]\n'
        'fixed = [{rotor = 1, position = [0.2,0,0], direction = [0,0,1]}]\nmirrored = ["2-3:y"]\ntasks = [[5,0,0,0,0,0.5]]\n'
        "components = {rotor = 0.1}\nreach = [0.2, 0.5]\n"
    )
    problem = Problem(**read(file))
    assert problem.mirrored == ((1, 2, 1),)
    assert problem.profile.end == 0.8
    assert problem.layout.low[problem.layout.r][0] == 0.2
    for text, part in (
        ("rotrs = 8", "unknown key 'rotrs'"),
        ('bodies = [{kind = "cone"}]', "cone"),
        ('mirrored = ["2"]', "1-2:y"),
        ("x = ", "problem"),
    ):
        file.write_text(text)
        with pytest.raises(DesignError, match=part):
            Problem(**read(file))


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"rotors": 6}, "7 to 16"), ({"objective": "beauty"}, "expected one of"), ({"condition_max": 0.5}, "more than 1"),
        ({"one_failed": True}, "8 or more"), ({"failed_margin": 1.0}, "one_failed too"),
        ({"spins": (1, 1)}, "expected 7 numbers"), ({"clearance": -1.0}, "0 or more"),
        ({"tasks": ((1.0, 2.0),)}, "three forces"), ({"mirrored": ((0, 9, 1),)}, "numbered 1 to 7"), ({"reach": (0.5, 0.1)}, "smaller"),
    ],
)  # fmt: skip
def test_bad_problems_are_refused(options, part):
    with pytest.raises(DesignError, match=part):
        Problem(**options)


@pytest.mark.slow
@pytest.mark.parametrize(("condition", "size"), [(5.0, 0.72), (3.36, 1.15)])
def test_ten_minutes_find_a_small_layout(condition, size, tmp_path):
    facts = run(Problem(condition_max=condition), tmp_path, starts=200, budget=600.0, workers=2)
    assert facts["constraints_satisfied"]
    assert facts["checks_hold"]
    assert facts["size_norm_m"] <= size
    assert facts["total_wall_s"] < 700
    assert facts["baseline"]["size_norm_m"] > 0


@pytest.mark.slow
def test_eight_rotors_hover_without_any_one_of_them(tmp_path):
    facts = run(Problem(rotors=8, one_failed=True), tmp_path, starts=60, budget=600.0, workers=2, baseline=False)
    assert facts["constraints_satisfied"]
    assert facts["checks_hold"]
