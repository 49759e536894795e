"""`skycrane trim` and `skycrane linearize`: numbers, tables, files, and what cannot be."""

import json

import numpy as np
import pytest

from skycrane.cli import execute


def run(*arguments):
    return execute([str(argument) for argument in arguments])


def printed(capsys, *arguments, code=0):
    assert run(*arguments, "--json") == code
    return json.loads(capsys.readouterr().out)


def test_level_flight_of_the_tutorial(capsys):
    facts = printed(capsys, "trim", "tutorial-quad", "--speed", "10")
    assert facts["found"]
    assert facts["pitch_deg"] == pytest.approx(6.412298, abs=1e-6)
    np.testing.assert_allclose(facts["rotor_speed_rad_s"], 702.558112, rtol=1e-8)
    assert facts["residual_force_n"] < 1e-6
    assert run("trim", "tutorial-quad", "--speed", "10") == 0
    shown = capsys.readouterr().out
    for part in ("Level flight at 10 m/s", "pitch +6.4123", "702.558 rad/s", "residual"):
        assert part in shown


def test_no_trim_is_exit_code_1_with_the_residual(capsys):
    assert run("trim", "tutorial-quad", "--failed", "1") == 1
    shown = capsys.readouterr().out
    for part in ("There is no trim for hover", "yaw moment cannot be balanced", "uav/1 stopped", "residual", "nearest"):
        assert part in shown
    facts = printed(capsys, "trim", "tutorial-quad", "--set", "vehicle.mass=8", code=1)
    assert facts["unbalanced_axis"] == "vertical force"
    # Four rotors of 14.4 N.
    assert facts["unbalanced"] == pytest.approx(8 * 9.81 - 4 * 14.4, rel=1e-6)


def test_closed_loop_modes_and_margins(capsys, tmp_path):
    out = tmp_path / "loop.npz"
    facts = printed(capsys, "linearize", "tutorial-quad", "--closed-loop", "--out", out)
    assert facts["stable"]
    assert facts["dt_s"] == 0.002
    assert set(facts["margins"]) == {"thrust", "roll", "pitch", "yaw"}
    assert facts["margins"]["roll"]["phase_deg"] == pytest.approx(facts["margins"]["pitch"]["phase_deg"], rel=1e-3)
    assert all(mode["real_1_s"] < 0 for mode in facts["modes"])
    assert facts["drift_in_one_period"] < 1e-9
    with np.load(out, allow_pickle=False) as stored:
        assert stored["A"].shape == (len(facts["states"]),) * 2
        assert list(stored["inputs"]) == facts["inputs"]


def test_open_loop_as_table_and_json_file(capsys, tmp_path):
    out = tmp_path / "open.json"
    assert run("linearize", "tutorial-quad", "--speed", "10", "--out", out) == 0
    shown = capsys.readouterr().out
    assert "modes (open loop)" in shown
    assert "frequency [rad/s]" in shown
    stored = json.loads(out.read_text())
    # Motors of 50 ms.
    assert any(mode["real_1_s"] == pytest.approx(-20.0) for mode in stored["modes"])
    assert np.shape(stored["B"]) == (len(stored["states"]), 4)


def test_a_turn_holds_its_loop(capsys):
    facts = printed(capsys, "linearize", "px4-x500", "--speed", "5", "--turn-rate", "0.5", "--closed-loop")
    # tan(bank) = v w / g.
    assert facts["trim"]["roll_deg"] == pytest.approx(-np.degrees(np.arctan(5 * 0.5 / 9.81)), abs=0.2)
    assert facts["stable"]
    assert facts["drift_in_one_period"] < 1e-5


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["trim", "tutorial-quad", "--failed", "7"], "the rotors are 1 to 4"),
        (["trim", "tutorial-quad", "--speed", "-3"], "expected 0 or more"),
        (["trim", "tutorial-quad", "--speed", "nan"], "expected a number"),
        (["trim", "tutorial-quad", "--spin", "--speed", "3"], "leave out --speed"),
        (["trim", "tutorial-quad", "--vehicle", "b"], "no vehicle 'b'"),
        (["trim", "tutorial-qaud"], "did you mean 'tutorial-quad'"),
        (["linearize", "tutorial-quad", "--out", "x.mat"], ".npz or .json"),
        (["linearize", "tutorial-quad", "--settle", "-1"], "expected 0 to 1000 s"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_short(arguments, part, capsys):
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert part in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
