"""Whatever is in a file, loading it gives a scenario or a ScenarioError, never another exception."""

import copy
import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from skycrane.scenario import ScenarioError, load, load_tables, loads
from skycrane.scenario.overrides import parse_override
from skycrane.scenario.scenario import Scenario

SCALARS = st.one_of(
    st.none().map(lambda _: datetime.date(2000, 1, 1)),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        [
            "none",
            "steady",
            "hover",
            "circle",
            "ring",
            "tutorial-quad",
            "uav",
            "1",
            "geometric",
            "impulse",
            "sum",
            "record",
            "path",
            "dryden",
            "gust",
            "cascaded_pid",
            "blade_element",
        ]
    ),
)
WORDS = sorted(
    {
        *Scenario.model_fields,
        "kind",
        "mass",
        "inertia",
        "rotors",
        "rotor",
        "position",
        "layout",
        "model",
        "time",
        "file",
        "samples",
        "wind",
        "parts",
    }
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=4)), inner, max_size=4),
    ),
    max_leaves=12,
)
BASES = [
    load(name).tables
    for name in (
        "quadrotor-circle",
        "hexarotor-canted",
        "quadrotor-hover",
        "hexarotor-gust",
        "coaxial-octo-climb",
        "forward-flight",
        "omni-tumble",
    )
]


def try_to_load(function, *arguments):
    try:
        function(*arguments)
    except ScenarioError as error:
        refused = error
    else:
        return
    assert str(refused)
    assert refused.problems


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), VALUES, max_size=6))
def test_any_tables(tables):
    try_to_load(load_tables, tables, "fuzz")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(BASES), st.data())
def test_a_scenario_with_one_value_replaced(base, data):
    """The interesting faults are one step away from a valid file."""
    tables = copy.deepcopy(base)
    node, depth = tables, data.draw(st.integers(0, 4))
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if depth == 0 or not isinstance(node[key], (dict, list)) or not node[key]:
            break
        node, depth = node[key], depth - 1
    node[key] = data.draw(VALUES)
    try_to_load(load_tables, tables, "fuzz")


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=200).map(lambda b: b.decode("utf-8", "replace")), st.text(max_size=200)))
def test_any_text(text):
    try_to_load(loads, text)
    try_to_load(loads, "[vehicle]\n" + text)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30), st.text(max_size=20))
def test_any_change(key, value):
    try_to_load(parse_override, f"{key}={value}")
    try_to_load(load, "quadrotor-hover", [f"vehicle.mass={value}"])


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_in_a_file(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "fuzz.toml"
    path.write_bytes(content)
    try_to_load(load, path)
