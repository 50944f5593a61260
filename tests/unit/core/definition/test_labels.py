"""Labels of workflows: what may be one, and what a filter may ask for."""

from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.definition.labels import MOST_LABELS, MOST_OF_RUN, inherited, parse_filter
from shoal.core.definition.model import WorkflowSpec

TASKS = [{"name": "a", "type": "SHELL", "params": {"script": "true"}}]


def spec(labels: Any) -> WorkflowSpec:
    return WorkflowSpec.model_validate({"name": "w", "labels": labels, "tasks": TASKS})


def test_labels_are_texts_and_part_of_the_definition() -> None:
    found = spec({"team": "flights", "tier": 1, "live": True, "example.org/x_y-z": ""})
    assert found.labels == {"team": "flights", "tier": "1", "live": "true", "example.org/x_y-z": ""}
    assert found.canonical()["labels"] == found.labels
    assert "labels" not in spec({}).canonical()
    assert found.digest() != spec({}).digest()


@pytest.mark.parametrize(
    "labels",
    [
        {"": "x"},
        {"Team": "x"},
        {"a b": "x"},
        {"a" * 64: "x"},
        {"a\n": "x"},
        {"a": "x" * 64},
        {"a": "x\ny"},
        {"a": "\x1b[2J"},
        {"a": None},
        {"a": ["x"]},
        ["a"],
        {f"k{n}": "" for n in range(MOST_LABELS + 1)},
    ],
)
def test_what_is_no_label_is_refused(labels: Any) -> None:
    with pytest.raises(ValidationError):
        spec(labels)


def test_limits_are_reached() -> None:
    assert len(spec({f"k{n}": "" for n in range(MOST_LABELS)}).labels) == MOST_LABELS
    assert spec({"a" * 63: "x" * 63}).labels


def test_a_run_inherits_labels_the_nearest_first_and_no_more_than_it_may_have() -> None:
    start, parent = {"a": "start"}, {"a": "parent", "b": "parent"}
    assert inherited(start, parent, {"b": "own", "c": "own"}) == {
        "a": "start",
        "b": "parent",
        "c": "own",
    }
    many = {f"k{n:02}": "" for n in range(MOST_OF_RUN)}
    found = inherited(start, many, {"z": "own"})
    assert len(found) == MOST_OF_RUN
    assert found["a"] == "start"
    assert "k62" in found
    assert not {"k63", "z"} & found.keys()


def test_filters() -> None:
    assert parse_filter("team") == ("team", None)
    assert parse_filter("team=flights=1") == ("team", "flights=1")
    assert parse_filter("team=") == ("team", "")
    for wrong in ("", "=x", "Team", "a b=c", "a=" + "x" * 64):
        with pytest.raises(ValueError, match="KEY=VALUE"):
            parse_filter(wrong)
