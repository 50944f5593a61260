"""Differences between definitions."""

from typing import Any

import pytest

from shoal.core.definition.diff import Change, Op, diff


def _task(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "SHELL", **more}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [Change(Op.CHANGED, "a", 1, 2)]),
        ({"a": 1}, {"a": True}, [Change(Op.CHANGED, "a", 1, True)]),
        ({"a": 1}, {}, [Change(Op.REMOVED, "a", before=1)]),
        ({}, {"a": None}, [Change(Op.ADDED, "a", after=None)]),
        (
            {"a": {"b": 1}},
            {"a": {"c": 1}},
            [Change(Op.REMOVED, "a.b", before=1), Change(Op.ADDED, "a.c", after=1)],
        ),
        ({"a": [1, 2]}, {"a": [2, 1]}, [Change(Op.CHANGED, "a", [1, 2], [2, 1])]),
        ({"a": []}, {"a": [1]}, [Change(Op.CHANGED, "a", [], [1])]),
        ({"a": [[]]}, {"a": [{}]}, [Change(Op.CHANGED, "a", [[]], [{}])]),
        ({"a": {}}, {"a": []}, [Change(Op.CHANGED, "a", {}, [])]),
        ({"a": {}}, {}, [Change(Op.REMOVED, "a", before={})]),
        ({}, {"a": []}, [Change(Op.ADDED, "a", after=[])]),
        ({}, {"t": [_task("x")]}, [Change(Op.ADDED, "t[x]", after=_task("x"))]),
        ({"t": [_task("x")]}, {}, [Change(Op.REMOVED, "t[x]", before=_task("x"))]),
        ({"t": [_task("x")]}, {"t": []}, [Change(Op.REMOVED, "t[x]", before=_task("x"))]),
        (
            {"t": [_task("x"), _task("y")]},
            {"t": [_task("y"), _task("x", retries=1)]},
            [
                Change(Op.ADDED, "t[x].retries", after=1),
                Change(Op.CHANGED, "t: order", ["x", "y"], ["y", "x"]),
            ],
        ),
        (
            {"t": [{"name": "x"}, {"name": "x", "v": 1}]},
            {"t": [{"name": "x"}, {"name": "x", "v": 2}]},
            [
                Change(
                    Op.CHANGED,
                    "t",
                    [{"name": "x"}, {"name": "x", "v": 1}],
                    [{"name": "x"}, {"name": "x", "v": 2}],
                )
            ],
        ),
    ],
)
def test_each_change_is_named(before: Any, after: Any, expected: list[Change]) -> None:
    assert diff(before, after) == expected
