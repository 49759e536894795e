"""The examples do what they say."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
def test_gains_of_a_lift_by_gradient():
    spec = importlib.util.spec_from_file_location("tune_lift", EXAMPLES / "tune_lift.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    errors = module.main(steps=2)
    assert errors[2] < errors[1] < errors[0]
