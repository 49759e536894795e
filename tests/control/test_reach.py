"""What a layout can reach, against linear programmes over many directions."""

import numpy as np
import pytest
from scipy.optimize import linprog

from skycrane.control.allocation import Allocation
from skycrane.control.model import VehicleModel
from skycrane.control.reach import analyse, carries_any_way, lateral_force
from skycrane.vehicles.layout import ring
from tests.control.fleet import ALTERNATING, CANTED, HEPTA, HEXA, X500


def reaches(B, direction):
    """Whether some positive thrusts push in a direction of wrench: no limits, rotors as they are."""
    return linprog(np.zeros(B.shape[1]), A_eq=B, b_eq=direction, bounds=(0, None)).status == 0


def test_omnidirectional_layouts_are_those_that_reach_random_directions():  # case 29
    rng = np.random.default_rng(2)
    seen = []
    for n in (6, 12):
        position = rng.normal(size=(6, n, 3)) * 0.3
        axis = rng.normal(size=(6, n, 3))
        axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
        allocation = Allocation.create(position, axis, rng.choice([-1.0, 1.0], (6, n)), 1e-5, 1e-6, speed_max=1000.0)
        for vehicle in range(6):
            found = analyse(allocation, vehicle)
            B = np.asarray(allocation.effectiveness)[vehicle] / np.linalg.norm(allocation.effectiveness[vehicle], axis=1)[:, None]
            everywhere = all(reaches(B, d) for d in rng.normal(size=(100, 6)))
            assert found.omnidirectional == everywhere
            assert found.omnidirectional == (found.positive_margin > 0)
            seen.append((n, everywhere))
    assert all(not yes for n, yes in seen if n == 6)  # seven are needed
    assert len({yes for n, yes in seen if n == 12}) == 2  # of these some do and some do not


def test_the_margin_is_that_of_the_weakest_rotor_of_a_cancelling_set():
    allocation = VehicleModel.of(HEPTA).allocation
    found = analyse(allocation)
    assert found.omnidirectional
    # With seven rotors the cancelling thrusts are unique up to size: the null vector of B.
    null = np.linalg.svd(np.asarray(allocation.effectiveness)[0] * np.asarray(allocation.thrust_max)[0])[2][-1]
    null = null * np.sign(null[0])
    assert found.positive_margin == pytest.approx(null.min() / null.max(), rel=1e-6)
    assert carries_any_way(allocation, 1.9 * 9.81)
    assert not analyse(VehicleModel.of(CANTED).allocation).omnidirectional


def test_axes_are_named_with_the_reason_for_dropping_them():
    flat = analyse(VehicleModel.of(X500).allocation)
    assert flat.kept == ("force z", "moment x (roll)", "moment y (pitch)", "moment z (yaw)")
    assert flat.dropped == {"force x": "no authority", "force y": "no authority"}
    layout = ring(6, 0.3, first_angle=np.pi / 6)
    failed = Allocation.create(layout.position_B, layout.axis_B, layout.spin, 1e-5, 1.5e-7, speed_max=1000.0, available=[0, 1, 1, 0, 1, 1])
    reason = analyse(failed).dropped["moment z (yaw)"]
    assert reason.startswith("within 0.00 deg of moment x (roll)")
    # The same spin everywhere: yaw goes with thrust.
    same = Allocation.create(layout.position_B, layout.axis_B, np.ones(6), 1e-5, 1.5e-7, speed_max=1000.0)
    assert analyse(same).dropped["moment z (yaw)"] == "within 0.00 deg of force z"


def test_singular_values_are_those_of_unit_rows():
    allocation = VehicleModel.of(HEPTA).allocation
    found = analyse(allocation)
    rows = np.asarray(allocation.effectiveness * allocation.thrust_max[:, None])[0]
    expected = np.linalg.svd(rows / np.linalg.norm(rows, axis=1)[:, None], compute_uv=False)
    np.testing.assert_allclose(found.singular_values, expected)
    assert found.condition == pytest.approx(expected[0] / expected[-1])


def test_lateral_force_is_what_linear_programmes_give_in_the_worst_direction():
    allocation = VehicleModel.of(CANTED).allocation
    B, high = np.asarray(allocation.effectiveness)[0], np.asarray(allocation.thrust_max)[0]
    weight = 2.8414 * 9.81

    def most(angle):  # along an angle, with nothing across it
        c, s = np.cos(angle), np.sin(angle)
        rows = np.vstack([-s * B[0] + c * B[1], B[2:]])
        return -linprog(-(c * B[0] + s * B[1]), A_eq=rows, b_eq=[0, weight, 0, 0, 0], bounds=[(0, h) for h in high]).fun

    least = min(map(most, np.linspace(0, 2 * np.pi, 73)))
    assert 0.98 * least < lateral_force(allocation, weight) <= least * (1 + 1e-9)
    assert lateral_force(VehicleModel.of(HEXA).allocation, weight) == 0.0


def test_cant_gives_sideways_force_and_priority_is_kept():
    layout = ring(6, 0.3, torsional=0.02 * ALTERNATING)
    allocation = Allocation.create(layout.position_B, layout.axis_B, layout.spin, 1e-5, 1.5e-7, speed_max=1000.0)
    np.testing.assert_allclose(allocation.weight[0], [0.1, 0.1, 0.3, 1.0, 1.0, 0.03])
