"""YAML and JSON as values with positions: what both formats have in common, and their traps."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.client.sources.json_file import read_json
from shoal.core.checks.workflow import DefinitionProblem
from shoal.runtime.documents.source import DocumentSource
from shoal.runtime.documents.yaml_file import read_yaml
from shoal.runtime.documents.yaml_text import definition_yaml


def one(text: str, kind: str = "yaml") -> DocumentSource:
    """The only document of a text that has no problem."""
    problems: list[DefinitionProblem] = []
    read = read_yaml if kind == "yaml" else read_json
    (source,) = read(text, f"f.{kind}", problems)
    assert problems == []
    return source


def wrong(text: str, kind: str = "yaml") -> list[str]:
    """The problems of a text as people see them."""
    problems: list[DefinitionProblem] = []
    read = read_yaml if kind == "yaml" else read_json
    read(text, "f", problems)
    return [str(problem) for problem in problems]


def test_yaml_positions_lead_to_the_line_of_key_or_item() -> None:
    source = one(
        "name: x\ntasks:\n  - name: a\n    params:\n      script: |\n        echo\n  - {}\n"
    )
    assert source.where(("tasks",)).line == 2
    assert source.where(("tasks", 0)).line == 3
    assert source.where(("tasks", 0, "params", "script")).line == 5
    assert source.where(("tasks", 1)).line == 7
    # What is missing is where it should stand.
    assert source.where(("tasks", 1, "type")).line == 7
    assert source.where(("schedules", 3, "cron")).line == 1


def test_json_positions_lead_to_the_line_of_key_or_item() -> None:
    text = '{\n "name": "x",\n "tasks": [\n  {"name": "a"},\n  {\n   "name": "b"}]\n}'
    source = one(text, "json")
    lines = {path: position.line for path, position in source.positions.items()}
    assert lines == {
        (): 1,
        ("name",): 2,
        ("tasks",): 3,
        ("tasks", 0): 4,
        ("tasks", 0, "name"): 4,
        ("tasks", 1): 5,
        ("tasks", 1, "name"): 6,
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", "yes"),  # YAML 1.1 would say true
        ("a: no", "no"),
        ("a: on", "on"),
        ("a: true", True),
        ("a: 2013-01-15", "2013-01-15"),
        ("a: 12:30:00", "12:30:00"),
        ("a: 017", 17),
        ("a: 0o17", 15),
        ("a: 0x1F", 31),
        ("a: 1e3", 1000.0),
        ("a: 1.5", 1.5),
        ("a: .inf", ".inf"),
        ("a: 1e999", "1e999"),
        ("a: ~", None),
        ("a: ''", ""),
        ("a: '3'", "3"),
        ("a: !!str 3", "3"),
        ("a: !!int '3'", 3),
        ("a: " + "9" * 5000, "9" * 5000),
    ],
)
def test_plain_yaml_texts_follow_yaml_1_2(text: str, value: Any) -> None:
    found = one(text).value["a"]
    assert (found, type(found)) == (value, type(value))


def test_numbers_of_parameters_stay_as_they_are_written() -> None:
    text = (
        "parameters: {version: 1.10, code: 007, on: {default: 1e3}}\n"
        "schedules: [{cron: x, parameters: {code: 010}}]\n"
        "other: 1.10"
    )
    assert one(text).value == {
        "parameters": {"version": "1.10", "code": "007", "on": {"default": "1e3"}},
        "schedules": [{"cron": "x", "parameters": {"code": "010"}}],
        "other": 1.1,
    }
    assert one('{"parameters": {"v": 1.10}, "o": 1.10}', "json").value == {
        "parameters": {"v": "1.10"},
        "o": 1.1,
    }


def test_anchors_merge_keys_and_documents() -> None:
    problems: list[DefinitionProblem] = []
    text = (
        "x-usual: &usual {retries: 3, timeout: 1m}\n"
        "tasks:\n- {<<: *usual, name: a, timeout: 2m}\n- {<<: [*usual], name: b}\n"
        "---\nname: second\n---\n# a comment\n"
    )
    values = [source.value for source in read_yaml(text, "f", problems)]
    assert problems == []
    assert values == [
        {
            "tasks": [
                {"retries": 3, "timeout": "2m", "name": "a"},
                {"retries": 3, "timeout": "1m", "name": "b"},
            ]
        },
        {"name": "second"},
        None,
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "f:3: a: stands already in line 1; keep one"),
        ("t:\n- x: 1\n  x: 2\n", "f:3: t[0].x: stands already in line 2; keep one"),
        ("a:\n\t- b\n", "f:2: is not YAML: the line is indented with a tab; YAML wants spaces"),
        ("a: b: c\n", "f:1: is not YAML: mapping values are not allowed in this context"),
        ("a: [1,\nb: 2\n", "f:2: is not YAML: did not find expected"),
        ("a: 'x\n", "f:1: is not YAML: found unexpected end of stream"),
        ("a: &x [*x]\n", "f:1: a[0]: the alias *x would hold itself"),
        ("a: *y\n", "f:1: a: the alias *y has no anchor above it"),
        ("a: !!python/object:os.system {}\n", "f:1: a: the tag !!python/object:os.system means"),
        ("a: !!int x\n", "f:1: a: 'x' is not a valid int"),
        ("? [a]\n: 1\n", "f:1: a key must be a text"),
        ("[" * 100_000, "f:1: is nested more than 100 levels deep"),
        ("<<: 3\n", "f:1: << merges mappings"),
    ],
)
def test_bad_yaml_is_told_with_its_line(text: str, problem: str) -> None:
    (found,) = wrong(text)
    assert found.startswith(problem)


def test_aliases_that_double_themselves_are_stopped() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    (found,) = wrong("\n".join(lines))
    assert "aliases expand to more than 1,000,000 values" in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n "a": 2}', "f:2: a: stands already in line 1; keep one"),
        ('{"a": 1,\n}', "f:2: is not JSON: "),
        ('{"a": NaN}', "f:1: is not JSON: NaN is not a JSON value"),
        ("[" * 100_000, "f:1: is nested more than 100 levels deep"),
        ("[" * 150 + "]" * 150, "f:1: is nested more than 100 levels deep"),
        ("name: x", "f:1: is not JSON: "),
    ],
)
def test_bad_json_is_told_with_its_line(text: str, problem: str) -> None:
    (found,) = wrong(text, "json")
    assert found.startswith(problem)


_KEYS = st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda key: key != "<<")
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_json_means_what_pythons_own_reader_says(value: Any) -> None:
    for indent in (None, 2):
        text = json.dumps({"v": value}, indent=indent)
        assert one(text, "json").value == json.loads(text)


_PRINTABLE = st.text(
    st.characters(min_codepoint=32, exclude_categories=("Cc", "Cs", "Cn", "Co"))
    | st.sampled_from("\n\t"),
    max_size=30,
)
_DEFINITION_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | _PRINTABLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_PRINTABLE.filter(lambda k: not k.startswith("x-")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(_PRINTABLE.filter(lambda k: not k.startswith("x-")), _DEFINITION_VALUES))
def test_yaml_that_we_write_is_read_back_unchanged(value: dict[str, Any]) -> None:
    if "parameters" in value or "schedules" in value:
        return
    assert one(definition_yaml(value)).value == value
