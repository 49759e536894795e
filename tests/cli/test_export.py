import mujoco
import numpy as np
import pytest

from skycrane.cli import main
from skycrane.vehicles import px4


def run(*arguments):
    """The command's exit code."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code or 0


def test_mjcf_of_a_catalogue_vehicle_loads_in_mujoco(tmp_path):
    file = tmp_path / "x500.xml"
    assert run("export", "mjcf", "px4-x500", "--out", file) == 0
    model = mujoco.MjModel.from_xml_path(str(file))
    assert model.nu == 4
    np.testing.assert_allclose(model.body_mass.sum(), 2.064, atol=1e-3)


def test_px4_parameters_read_back(capsys):
    assert run("export", "px4-params", "px4-x500") == 0
    rotors = px4.from_parameters(px4.parse(capsys.readouterr().out))
    assert len(rotors.thrust) == 4
    np.testing.assert_allclose(np.abs(rotors.moment_ratio), 0.016, rtol=1e-6)


def test_mistakes_are_told(tmp_path, capsys):
    file = tmp_path / "there.xml"
    file.write_text("mine")
    assert run("export", "mjcf", "px4-x500", "--out", file) == 2
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run("export", "mjcf", "px4-x500", "--vehicle", "other") == 2
    assert "no such vehicle" in capsys.readouterr().err
