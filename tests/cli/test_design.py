"""`skycrane design manipulator`: what it refuses, and what it says."""

import pytest

from skycrane.cli import execute


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--rotors", "6"], "7 to 16"), (["--one-failed"], "8 or more"), (["--starts", "0"], "--starts is 0"),
        (["--budget", "0"], "--budget is 0"), (["--workers", "0"], "--workers is 0"), (["--mirror", "1-2:q"], "1-2:y"),
        (["--spins", "cw,up"], "cw or ccw"), (["--condition-max", "0.5"], "more than 1"), (["--objective", "beauty"], "size"),
        (["--problem", "none.toml"], "none.toml"), (["--evaluations", "0"], "--evaluations is 0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(options, part, capsys, tmp_path):
    assert execute(["design", "manipulator", "--out", str(tmp_path / "d"), *options]) == 2
    assert part in " ".join(capsys.readouterr().err.split())


def test_a_file_for_a_directory_is_refused(capsys, tmp_path):
    (tmp_path / "d").write_text("")
    assert execute(["design", "manipulator", "--out", str(tmp_path / "d")]) == 2
    assert "is a file" in capsys.readouterr().err
