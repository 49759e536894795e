"""Floating bodies: rest, stability and periods against closed forms, added mass in still and in moving water, friction, bad input."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.core.controller import Constant
from skycrane.core.system import System
from skycrane.elements.gravity import Gravity
from skycrane.elements.push import Push
from skycrane.elements.skin import friction_coefficient
from skycrane.environment.environment import Environment
from skycrane.environment.water import Current, Water
from skycrane.environment.waves import airy
from skycrane.loads.buoy import Buoy, box_buoy, cylinder_buoy, six_by_six, sphere_buoy, twin_buoy
from skycrane.loads.coefficients import read_coefficients
from skycrane.math.components import Quat, Vec3
from skycrane.simulation.rollout import simulate

SEED = [0.625, 0.625, 12.5, 0.625, 0.625, 12.5]
G, RHO = 9.81, 1000.0


def afloat(buoy, water=None, elements=None, gravity=G, ledger=False, local="columns"):
    rigid = buoy.rigid
    bodies = Bodies.create(["buoy"], [rigid.mass], [rigid.inertia_B], [rigid.com_B], buoy.added[None])
    parts = {"gravity": Gravity(), "hull": buoy.element(0, local), **(elements or {})}
    return System(bodies, parts, environment=Environment(gravity, water=water or Water()), keep_ledger=ledger)


def low_box(**options):
    return box_buoy(12.5, (0.8, 0.25, 0.25), center_height=-0.06, added=SEED, **options)


def test_the_box_of_the_source_capsizes_and_with_ballast_it_does_not():
    rest = box_buoy(12.5, (0.8, 0.25, 0.25), added=SEED).hydrostatics()
    np.testing.assert_allclose([rest.draft, rest.gm_roll, rest.gm_pitch], [0.0625, -0.01041667, 0.7596], atol=1e-4)
    assert not rest.stable
    assert "capsizes in roll" in rest.verdict
    rest = low_box().hydrostatics()
    np.testing.assert_allclose(rest.gm_roll, 0.0496, atol=1e-4)
    # Roll about the axis that goes through the point at which a sideways push does not turn the hull; heave is pure.
    np.testing.assert_allclose(rest.period_heave, 2 * np.pi * np.sqrt(25.0 / (RHO * G * 0.2)), rtol=1e-9)
    assert rest.stable
    assert rest.period_roll == pytest.approx(2.21, abs=0.02)
    assert rest.period_pitch == pytest.approx(0.73, abs=0.01)


def test_cylinders_spheres_and_twins_float_as_closed_forms_say():
    r = cylinder_buoy(100.0, 0.4, 0.6).hydrostatics()
    d = 100.0 / (RHO * np.pi * 0.16)
    np.testing.assert_allclose([r.draft, r.gm_roll], [d, 0.4**2 / (4 * d) + d / 2 - 0.3], rtol=1e-9)
    # Half a ball is in the water; GM of a ball is the height of its middle above its centre of mass.
    half = sphere_buoy(RHO * 2 / 3 * np.pi * 0.5**3, 0.5, center_height=-0.1).hydrostatics()
    np.testing.assert_allclose([half.height, half.waterplane], [0.0, np.pi * 0.25], atol=1e-9)
    np.testing.assert_allclose(half.gm_roll, 0.1, rtol=0.05)
    np.testing.assert_allclose(half.center_of_buoyancy, -3 / 8 * 0.5, rtol=0.02)
    twin = twin_buoy(80.0, (2.0, 0.3, 0.4), 1.2).hydrostatics()
    d, A = 80.0 / (2 * RHO * 0.6), 1.2
    Ix = 2 * (2.0 * 0.3**3 / 12 + 0.6 * 0.6**2)
    np.testing.assert_allclose([twin.draft, twin.waterplane, twin.gm_roll], [d, A, Ix * RHO / 80.0 + d / 2 - 0.2], rtol=1e-9)
    with pytest.raises(ValueError, match="sinks"):
        sphere_buoy(600.0, 0.5).hydrostatics()


@pytest.fixture(scope="module")
def decays():
    """Free decays without damping of the box with ballast: released in heave, roll and pitch at once, small angles."""
    buoy = low_box()
    rest = buoy.hydrostatics()
    run = []
    for start, attitude in (((0, 0, 0.01), (1, 0, 0, 0)), ((0, 0, 0), (1, 0.01, 0, 0)), ((0, 0, 0), (1, 0, 0.005, 0))):
        system = afloat(buoy, ledger=True)
        state = system.initial_state([[0, 0, rest.height + start[2]]], [attitude])
        run.append(simulate(system, Constant({}), None, state, duration=8.0, step=4e-3, save_every=4))
    return buoy, rest, run


def period(time, x):
    x = x - x.mean()
    k = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    crossings = time[k] - x[k] * (time[k + 1] - time[k]) / (x[k + 1] - x[k])
    return np.diff(crossings).mean()


def test_free_decay_periods(decays):
    _, rest, runs = decays
    for n, (run, expected) in enumerate(zip(runs, (rest.period_heave, rest.period_roll, rest.period_pitch), strict=True)):
        b = run.state.bodies
        signal = np.asarray(b.p_WB[:, 0, 2] if n == 0 else b.q_WB[:, 0, n])
        np.testing.assert_allclose(period(np.asarray(run.time), signal), expected, rtol=5e-3)


def test_a_hull_in_still_water_keeps_its_energy(decays):
    """Case 41: buoyancy is conservative and nu^T C_A(nu) nu = 0."""
    buoy, rest, (_, roll, _) = decays
    columns = buoy.columns

    def potential(p, q):
        R = Quat.of(q).matrix()
        low, up = p[2] + (R @ Vec3.of(columns.base_B)).z, R.z.z
        h = jnp.clip(-low / up, 0.0, columns.height)
        return RHO * G * jnp.sum(columns.area * (-low * h - 0.5 * up * h * h))

    system = afloat(buoy)
    prepared = system.prepare()
    moving = jax.jit(jax.vmap(lambda s: system.energy(0.0, s, prepared)))(roll.state)
    stored = jax.jit(jax.vmap(lambda s: potential(s.bodies.p_WB[0], s.bodies.q_WB[0])))(roll.state)
    total = np.asarray(moving + stored)
    swing = 0.5 * rest.stiffness[3, 3] * 0.02**2
    np.testing.assert_allclose(total, total[0], atol=2e-3 * swing)


def test_an_immersed_ball_starts_with_a_third_of_its_push():
    """Case 39, with added mass twice the mass; and case 46: that of a ball is half the displaced mass, whatever the direction."""
    np.testing.assert_allclose(np.diagonal(sphere_buoy(3.0, 0.5).added)[:3], 1.5)
    buoy = Buoy.create(sphere_buoy(4.0, 0.5).rigid, sphere_buoy(4.0, 0.5).columns, [8.0, 8.0, 8.0, 0, 0, 0])
    push = Push((0,), jnp.array([[6.0, 0, 0]]), jnp.zeros((1, 3)), jnp.zeros((1, 3)))
    system = afloat(buoy, elements={"push": push}, gravity=0.0)
    rate = system.dynamics(0.0, system.initial_state(), {}, system.prepare())
    np.testing.assert_allclose(rate.bodies.v_W[0], [0.5, 0, 0], rtol=1e-12)  # at once, so no step is too long for it


def test_moving_with_a_current_is_the_same_as_still_water():
    """Galilei: in a steady uniform current a hull moves, seen from the water, as in still water; Munk moment, damping and friction too."""
    full = np.diag([2.0, 5.0, 12.0, 0.5, 0.6, 1.0])
    full[0, 4] = full[4, 0] = 0.3
    buoy = low_box(linear=[3.0, 5.0, 20.0, 0.1, 0.2, 0.3], quadratic=[1.0, 8.0, 30.0, 0.1, 0.1, 0.2])
    buoy = eqx.tree_at(lambda b: b.added, buoy, jnp.asarray(full))
    drift = jnp.array([0.8, -0.5, 0.0])
    rates = []
    for current, shift in ((None, 0.0 * drift), (Current(drift), drift)):
        system = afloat(buoy, Water(current=current))
        state = system.initial_state([[0, 0, 0.07]], [[1, 0.05, 0.03, 0.2]], [jnp.array([1.0, 0.4, 0.1]) + shift], [[0.1, 0.2, 0.5]])
        rates.append(jax.jit(lambda s, system=system: system.dynamics(0.0, s, {}, system.prepare()))(state).bodies)
    np.testing.assert_allclose(rates[0].v_W, rates[1].v_W, rtol=1e-10)
    np.testing.assert_allclose(rates[0].w_B, rates[1].w_B, rtol=1e-10)


def test_fossens_equation_in_moving_water():
    """M_RB nu' + C_RB nu + M_A nu_r' + C_A(nu_r) nu_r = 0 (no damping, no buoyancy), written with 6x6 matrices by itself."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=(6, 6))
    added = a @ a.T
    base = low_box()
    buoy = Buoy.create(base.rigid, base.columns, added)
    drift = np.array([0.7, -0.4, 0.0])
    system = afloat(buoy, Water(level=-50.0, current=Current(jnp.asarray(drift))), gravity=0.0)
    state = system.initial_state(None, rng.normal(size=(1, 4)), rng.normal(size=(1, 3)), rng.normal(size=(1, 3)))
    prepared = system.prepare()
    kin = system.kinematics(state, prepared)
    rate = system.dynamics(0.0, state, {}, prepared)
    R = np.asarray(kin.R_WB.array()[0])
    v, w = np.asarray(kin.v_B.array()[0]), np.asarray(kin.w_B.array()[0])
    v_dot = R.T @ np.asarray(rate.bodies.v_W[0]) - np.cross(w, v)
    nu_dot = np.r_[v_dot, rate.bodies.w_B[0]]
    S = lambda x: np.cross(np.eye(3), x)  # noqa: E731

    def coriolis(M, nu):
        h = M @ nu
        return np.r_[np.cross(nu[3:], h[:3]), np.cross(nu[3:], h[3:]) + np.cross(nu[:3], h[:3])]

    m, c = float(buoy.rigid.mass), np.asarray(buoy.rigid.com_B)
    rigid = np.block([[m * np.eye(3), -m * S(c)], [m * S(c), np.asarray(buoy.rigid.inertia_B) - m * S(c) @ S(c)]])
    v_c = R.T @ drift
    nu, nu_r = np.r_[v, w], np.r_[v - v_c, w]
    nu_c_dot = np.r_[-np.cross(w, v_c), 0, 0, 0]
    np.testing.assert_allclose(rigid @ nu_dot + coriolis(rigid, nu) + added @ (nu_dot - nu_c_dot) + coriolis(added, nu_r), 0.0, atol=1e-11)


def test_a_small_float_rides_a_long_wave():
    """In a long wave a hull goes with the surface: heave amplitude that of the wave, and drifts with it; both kinds of surface agree."""
    buoy = low_box(linear=[2.0, 2.0, 150.0, 0.5, 3.0, 0.5])
    water = Water(waves=airy(1.0, 8.0))
    rest = buoy.hydrostatics()
    system = afloat(buoy, water)
    state = system.initial_state([[0, 0, rest.height]])
    run = simulate(system, Constant({}), None, state, duration=24.0, step=8e-3, save_every=25)
    b = run.state.bodies
    level, slope, _ = jax.vmap(lambda t, p: water.tangent(t, p[0], p[1]))(run.time, b.p_WB[:, 0])
    late = np.asarray(run.time) > 8.0
    np.testing.assert_allclose(np.asarray(b.p_WB[:, 0, 2] - level)[late], rest.height, atol=0.015)
    # It lies on the slope: pitch follows minus the wave's slope along x.
    assert np.abs(2 * np.asarray(b.q_WB[:, 0, 2]) + np.asarray(slope))[late].max() < 0.02
    last = jax.tree.map(lambda x: x[-1], run.state)
    near = afloat(buoy, water, local="plane")
    one, other = (s.dynamics(run.time[-1], last, {}, s.prepare()).bodies for s in (system, near))
    np.testing.assert_allclose(one.v_W, other.v_W, atol=0.03)


def test_friction_is_the_ittc_line():
    for v in (1.0, -3.0):
        re = abs(v) * 0.8 / 1.787e-6
        np.testing.assert_allclose(friction_coefficient(jnp.array(v), 0.8, 1.787e-6), 0.075 / (np.log10(re) - 2) ** 2)
    assert np.isfinite(jax.grad(lambda v: friction_coefficient(v, 0.8, 1.787e-6) * v)(0.0))


def test_upside_down_it_still_floats():
    """Columns work at any attitude: the immersed volume carries the hull, capsized or on its side."""
    buoy = twin_buoy(80.0, (2.0, 0.3, 0.4), 1.2)
    system = afloat(buoy)
    for attitude, height in (((0, 1, 0, 0), -(0.2 - 80 / (RHO * 1.2))), ((1, 0, 0, 0), 0.2 - 80 / (RHO * 1.2))):
        rate = system.dynamics(0.0, system.initial_state([[0, 0, abs(height)]], [attitude]), {}, system.prepare())
        np.testing.assert_allclose(rate.bodies.v_W[0], 0.0, atol=1e-9)


def test_coefficients_from_files(tmp_path):
    path = tmp_path / "hull.1"
    path.write_text(
        "\n".join(f"{T} {i} {i} {0.1 * i * T} {0.01 * i}" for T in (2.0, 4.0) for i in range(1, 7))
        + "\n 4.0 1 5 0.3 0.0\n4.0 5 1 0.3 0.0\n"
    )
    A, B = read_coefficients(path, 3.0, density=1025.0, length=2.0)
    np.testing.assert_allclose(A[2, 2], 0.3 * 3.0 * 1025 * 8)
    np.testing.assert_allclose(A[4, 4], 0.5 * 3.0 * 1025 * 32)
    np.testing.assert_allclose(A[0, 4], 0.5 * 0.3 * 1025 * 16)
    np.testing.assert_allclose(B[0, 0], 0.01 * 1025 * 8 * 0.5 * (np.pi + np.pi / 2))
    import xarray

    dofs, omega = ["buoy__Heave", "buoy__Surge"], [1.0, 2.0]
    table = np.arange(8.0).reshape(2, 2, 2) + 5
    data = {n: (("omega", "radiating_dof", "influenced_dof"), f * table) for n, f in (("added_mass", 1.0), ("radiation_damping", 2.0))}
    xarray.Dataset(data, {"omega": omega, "radiating_dof": dofs, "influenced_dof": dofs}).to_netcdf(tmp_path / "hull.nc", engine="h5netcdf")
    A, B = read_coefficients(tmp_path / "hull.nc", 2 * np.pi / 2.0)
    np.testing.assert_allclose([A[2, 2], A[0, 0], A[0, 2], B[0, 0]], [9, 12, 10.5, 24])
    for name, text, words in (("a.txt", "", "NAME.1"), ("b.1", "1.0 x 1 2 3", "line 1"), ("c.1", "-1 1 1 0.5", "positive period")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=words):
            read_coefficients(tmp_path / name, 2.0)


def test_a_badly_shaped_matrix_is_refused_and_its_row_named():
    """Case 40."""
    rows = [[1.0] * 6 for _ in range(6)]
    rows[3] = [1.0] * 5
    with pytest.raises(ValueError, match="row 4 of the matrix has 5 numbers"):
        six_by_six(rows, "added mass")
    with pytest.raises(ValueError, match="5 rows"):
        six_by_six(rows[:3] + rows[4:], "added mass")


def test_derivatives_by_the_hulls_size():
    """Of the heave acceleration, by every dimension: finite, and right."""
    buoy = low_box()
    system = afloat(buoy, Water(waves=airy(0.5, 4.0)))
    state = system.initial_state([[0.3, 0.1, 0.08]], [[1, 0.03, 0.02, 0.1]], [[0.5, 0.2, 0.1]])

    def heave(scale):
        changed = eqx.tree_at(lambda s: s.elements["hull"].columns.base_B, system, buoy.columns.base_B * scale)
        return changed.dynamics(0.7, state, {}, changed.prepare()).bodies.v_W[0, 2]

    scale = jnp.array([1.0, 1.1, 0.9])
    exact = jax.jit(jax.grad(heave))(scale)
    f = jax.jit(heave)
    numeric = [(f(scale.at[k].add(1e-6)) - f(scale.at[k].add(-1e-6))) / 2e-6 for k in range(3)]
    np.testing.assert_allclose(exact, numeric, rtol=1e-5)
