"""Offences of instances against one another: each that is planted is found.

A rule that finds nothing makes every run of the fault suite clean.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.judging import composed
from tests.chaos.judging.evidence import (
    Attempt,
    Backfill,
    Change,
    Command,
    Evidence,
    Instance,
    Task,
)
from tests.chaos.workload.ledger import Kind, Row

_CHILDREN = {"map": Task("map", children=2)}
_GATED = {"gated": Task("gated", group="gate")}
_DATES = {"2001-01-01": "SUCCEEDED", "2001-01-02": "SUCCEEDED"}


def _instance(number: int, tasks: Mapping[str, Task] | None = None, **fields: Any) -> Instance:
    return Instance(number, "SUCCEEDED", 7, number, "continue", tasks or {}, **fields)


def _life(number: int, start_s: float, end_s: float, end: str = "SUCCEEDED") -> list[Change]:
    return [
        Change(number * 10, start_s, number, "RUNNING", previous="QUEUED"),
        Change(number * 10 + 1, end_s, number, end, previous="RUNNING"),
    ]


def _run(row_id: int, start_s: float, end_s: float) -> list[Row]:
    return [
        Row(kind, row_id // 10, "gated", 1, row_id, 50, 100 + row_id, row_id, ns, ns)
        for kind, ns in ((Kind.START, int(start_s * 1e9)), (Kind.END, int(end_s * 1e9)))
    ]


# 1: a MAP of two items, 2 and 3. 4 to 6 share two slots. 7 and 8 must not overlap. 9 and 10 are
# the dates of a backfill, one at a time.
CLEAN = Evidence(
    commands=[Command(20, "BACKFILL", "key-20", "DONE")],
    instances={
        1: _instance(1, _CHILDREN, workflow="nest"),
        2: _instance(2, parent=(11, 0)),
        3: _instance(3, parent=(11, 1)),
        **{number: _instance(number, _GATED) for number in (4, 5, 6)},
        7: _instance(7, workflow="alone", overlap="queue"),
        8: _instance(8, workflow="alone", overlap="queue"),
        9: _instance(9, backfill=(30, "2001-01-01")),
        10: _instance(10, backfill=(30, "2001-01-02")),
    },
    attempts=[
        Attempt(11, 1, "map", 1, "SUCCEEDED"),
        *(Attempt(number * 10, number, "gated", 1, "SUCCEEDED") for number in (4, 5, 6)),
    ],
    changes=[
        *_life(2, 2.0, 3.0),
        *_life(3, 2.0, 4.0),
        Change(1, 5.0, 1, "SUCCEEDED", "map", 1),
        *_life(7, 2.0, 3.0),
        *_life(8, 3.0, 4.0),
        *_life(9, 2.0, 3.0),
        *_life(10, 3.5, 4.0),
    ],
    rows=[*_run(40, 1.0, 2.0), *_run(50, 1.5, 2.5), *_run(60, 2.0, 3.0)],
    slots={"gate": 2},
    backfills=[Backfill(30, 20, "SUCCEEDED", 1, _DATES)],
)


def _instances(**changed: Instance) -> Evidence:
    return replace(
        CLEAN, instances={**CLEAN.instances, **{int(k[1:]): v for k, v in changed.items()}}
    )


def _failed_map(child: str) -> Evidence:
    attempts = [replace(CLEAN.attempts[0], state="FAILED"), *CLEAN.attempts[1:]]
    instances = {**CLEAN.instances, 2: replace(CLEAN.instances[2], state=child)}
    return replace(CLEAN, attempts=attempts, instances=instances)


PLANTED: Mapping[str, Evidence] = {
    "one child for an item": _instances(_3=_instance(3, parent=(11, 0))),
    "success of all children": _instances(_3=replace(CLEAN.instances[3], state="STOPPED")),
    "failure of a child": _failed_map("SUCCEEDED"),
    "children end first": replace(
        CLEAN, changes=[replace(c, at_s=3.5) if c.task == "map" else c for c in CLEAN.changes]
    ),
    "slots of a group": replace(CLEAN, slots={"gate": 1}),
    "overlapping runs of a workflow": replace(
        CLEAN, changes=[c for c in CLEAN.changes if c.instance != 8] + _life(8, 2.9, 4.0)
    ),
    "backfill of a command": replace(
        CLEAN, commands=[*CLEAN.commands, Command(21, "BACKFILL", "key-21", "DONE")]
    ),
    "open backfill": replace(CLEAN, backfills=[replace(CLEAN.backfills[0], state="RUNNING")]),
    "one run for a date": _instances(_10=_instance(10, backfill=(30, "2001-01-01"))),
    "window of a backfill": replace(
        CLEAN, changes=[c for c in CLEAN.changes if c.instance != 10] + _life(10, 2.5, 4.0)
    ),
}


def test_honest_history_is_clean() -> None:
    assert list(composed.judge(CLEAN)) == []


def test_task_whose_child_failed_may_fail() -> None:
    assert list(composed.judge(_failed_map("FAILED"))) == []


@pytest.mark.parametrize("rule", PLANTED)
def test_planted_offence_is_found(rule: str) -> None:
    assert rule in {offence.rule for offence in composed.judge(PLANTED[rule])}


def test_every_rule_is_planted() -> None:
    assert set(PLANTED) == set(_rules())


def _rules() -> Iterator[str]:
    """Yield the names of all rules that the judge knows."""
    for node in ast.walk(ast.parse(inspect.getsource(composed))):
        match node:
            case ast.Call(func=ast.Name(id="Offence" | "_of")):
                texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
                yield from (text for text in texts[:1] if isinstance(text, str))
