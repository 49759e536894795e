"""The documentation of the format: every example passes the check, and the reference is the one the classes give."""

import re
from pathlib import Path

import pytest

from skycrane.scenario import ScenarioError, loads
from skycrane.scenario.document import reference

PAGE = Path(__file__).parents[2] / "docs" / "scenario-files.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: re.search(r'name = "(.*)"', text)[1])
def test_examples_are_valid(example):
    assert loads(example).scenario.bodies


def test_there_are_examples():
    assert len(EXAMPLES) >= 6


def test_the_shown_error_message_is_the_real_one():
    shown = re.search(r"```text\n(.*?)```", TEXT, flags=re.S)[1]
    text = EXAMPLES[2].replace("mass = 0.9", "mass = -2").replace("position = [-0.3", "positon = [-0.3")
    with pytest.raises(ScenarioError) as caught:
        loads(text + '[run]\nintegrator = "rk5"\n', "mine.toml")
    assert str(caught.value) == shown.strip()


def test_the_reference_is_up_to_date():
    written = TEXT.split("<!-- reference -->")[1].strip()
    assert written == reference().strip(), "run: python -m tests.scenario.test_docs"


if __name__ == "__main__":
    PAGE.write_text(TEXT.split("<!-- reference -->")[0] + "<!-- reference -->\n\n" + reference() + "\n", encoding="utf-8")
