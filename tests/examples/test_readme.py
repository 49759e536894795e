"""The README's snippets run as printed."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_scenario_is_valid():
    from skycrane.scenario import loads

    (text,) = blocks("toml")
    assert loads(text).scenario.name == "my-quad"


def test_the_python_example_runs():
    (code,) = blocks("python")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 100


def test_every_skycrane_command_of_the_tour_exists():
    from skycrane.cli.app import app

    commands = set(re.findall(r"^skycrane (\w+)", "\n".join(blocks("sh")), re.M))
    assert {"run", "check", "view", "new", "describe", "list"} <= commands
    for command in commands:
        assert command in app, command
