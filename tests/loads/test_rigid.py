"""Mass properties of solids: numbers of the literature, composites by sampling, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skycrane.core.bodies import Bodies
from skycrane.loads.rigid import Rigid, box, composite, cone, cylinder, sphere

RNG = np.random.default_rng(1)


def test_the_seeds_loads():
    """arXiv 2305.09175's plate (its table: numbers of a 3 kg plate, x and y swapped) and cone (2.1 is about the base, 0.975 about the
    centre of mass)."""
    np.testing.assert_allclose(np.diag(box(2.0, (2.4, 3.2, 0.2)).inertia_B), [1.7133, 0.9667, 2.6667], atol=5e-5)
    np.testing.assert_allclose(np.diag(box(3.0, (2.4, 3.2, 0.2)).inertia_B), [2.57, 1.45, 4.0], atol=5e-4)
    body = cone(2.0, 1.0, 3.0)
    np.testing.assert_allclose(np.diag(body.inertia_B), [0.975, 0.975, 0.6], rtol=1e-12)
    np.testing.assert_allclose(body.inertia_B[0, 0] + 2.0 * 0.75**2, 2.1, rtol=1e-12)


def points_in(shape, count):
    x, y, z = RNG.uniform(-1, 1, (3, count))
    if shape == "box":
        return np.stack([0.5 * x, 1.0 * y, 1.5 * z])
    if shape == "sphere":
        inside = x * x + y * y + z * z < 1
        return 0.7 * np.stack([x, y, z])[:, inside]
    radius = 0.6 * (np.ones(count) if shape == "cylinder" else 0.5 * (1 - z))
    inside = (0.6 * x) ** 2 + (0.6 * y) ** 2 < radius**2
    height = 0.5 * 2.0 * z + (0.5 if shape == "cone" else 0.0)  # the centre of mass of the cone is a quarter of 2 m above its base
    return np.stack([0.6 * x, 0.6 * y, height])[:, inside]


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        ("box", box(3.0, (1.0, 2.0, 3.0))), ("sphere", sphere(3.0, 0.7)),
        ("cylinder", cylinder(3.0, 0.6, 2.0)), ("cone", cone(3.0, 0.6, 2.0)),
    ],
)  # fmt: skip
def test_solids_by_sampling(shape, body):
    p = points_in(shape, 400_000)
    np.testing.assert_allclose(p.mean(1), body.com_B, atol=5e-3)
    second = (p @ p.T) / p.shape[1]
    np.testing.assert_allclose(3.0 * (np.trace(second) * np.eye(3) - second), body.inertia_B, atol=0.01 * np.trace(body.inertia_B))


def test_composite_of_boxes_is_the_whole_box():
    """Two halves, one turned by 90 degrees, make the box again."""
    whole = box(4.0, (1.0, 0.6, 0.8))
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    halves = [box(2.0, (0.5, 0.6, 0.8)).moved([0.25, 0, 0]), box(2.0, (0.6, 0.5, 0.8)).moved([-0.25, 0, 0], turn)]
    joined = composite(halves)
    np.testing.assert_allclose(joined.com_B, 0, atol=1e-15)
    np.testing.assert_allclose(joined.inertia_B, whole.inertia_B, rtol=1e-12)
    offset = composite([h.moved([3.0, -2.0, 1.0]) for h in halves])
    np.testing.assert_allclose(offset.com_B, [3.0, -2.0, 1.0])
    np.testing.assert_allclose(offset.inertia_B, whole.inertia_B, rtol=1e-12)


def test_point_masses_keep_the_kinetic_energy():
    """Body and points move together: the energy is the sum of theirs, for any twist."""
    body = Rigid.create(2.0, [0.3, 0.4, 0.5], [0.1, -0.2, 0.3])
    masses, points = np.array([0.2, 0.7]), RNG.normal(size=(2, 3))
    joined = body.with_points(masses, points)
    v, w = RNG.normal(size=(2, 3))

    def energy(b):
        vc = v + np.cross(w, b.com_B)
        return 0.5 * b.mass * vc @ vc + 0.5 * w @ b.inertia_B @ w

    each = [0.5 * m * np.sum((v + np.cross(w, p)) ** 2) for m, p in zip(masses, points, strict=True)]
    np.testing.assert_allclose(energy(joined), energy(body) + sum(each), rtol=1e-12)


def test_derivative_by_a_mass():
    inertia = lambda m: composite([box(m, (1.0, 1.0, 1.0)), Rigid.create(1.0, np.ones(3), (1.0, 0, 0))]).inertia_B[1, 1]  # noqa: E731
    # Parallel axes: m/6 + 1 + m/(m + 1); by m at m = 2: 1/6 + 1/9.
    np.testing.assert_allclose(jax.grad(inertia)(jnp.array(2.0)), 1 / 6 + 1 / 9, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: box(1.0, (1.0, -1.0, 1.0)), "size"),
        (lambda: box(0.0, (1.0, 1.0, 1.0)), "mass"),
        (lambda: cylinder(1.0, 0.0, 1.0), "radius"),
        (lambda: cone(1.0, 1.0, -2.0), "height"),
        (lambda: sphere(-1.0, 1.0), "mass"),
    ],
)
def test_impossible_solids_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_body_of_a_tensor_that_no_solid_has_is_refused():
    flat = Rigid.create(1.0, [1.0, 1.0, -0.5])
    with pytest.raises(ValueError, match="positive definite"):
        Bodies.create(["load"], [flat.mass], [flat.inertia_B])
