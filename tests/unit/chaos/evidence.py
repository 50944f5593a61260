"""Evidence of a clean run of the fault suite, and the same with one change."""

from dataclasses import replace
from typing import Any

from tests.chaos.judging.evidence import Attempt, Change, Command, Evidence, Instance, Step, Task
from tests.chaos.records import FaultRecord
from tests.chaos.workload.ledger import Kind as RowKind
from tests.chaos.workload.ledger import Row
from tests.chaos.workload.workload import Asked

# One instance, of which ``second`` needs ``first``; both ran well, and ``second`` lost a worker.
TASKS = {"first": Task("first"), "second": Task("second", ("first",), retries=1)}


def _ran(task: str, number: int, row_id: int, start_s: float, end_s: float | None) -> list[Row]:
    def row(kind: RowKind, at_s: float) -> Row:
        at_ns = int(at_s * 1e9)
        return Row(kind, 1, task, number, row_id, 50, row_id + 100, row_id, at_ns, at_ns)

    return [row(RowKind.START, start_s)] + ([] if end_s is None else [row(RowKind.END, end_s)])


ROWS = [
    *_ran("first", 1, 11, 3.5, 3.9),
    *_ran("second", 1, 12, 7.5, None),
    *_ran("second", 2, 13, 10.5, 11.5),
]


HISTORY = [  # task, attempt, state after 1, 2, 3 … seconds
    ("first", 1, "QUEUED"),
    ("first", 1, "CLAIMED"),
    ("first", 1, "RUNNING"),
    ("first", 1, "SUCCEEDED"),
    ("second", 1, "QUEUED"),
    ("second", 1, "CLAIMED"),
    ("second", 1, "RUNNING"),
    ("second", 1, "LOST"),
    ("second", 2, "QUEUED"),
    ("second", 2, "CLAIMED"),
    ("second", 2, "RUNNING"),
    ("second", 2, "SUCCEEDED"),
]


CLEAN = Evidence(
    commands=[Command(1, "START", "key-1", "DONE", None, 1, handled_s=0.5)],
    instances={1: Instance(1, "SUCCEEDED", 7, 1, "continue", TASKS)},
    attempts=[
        Attempt(11, 1, "first", 1, "SUCCEEDED", "w", 0),
        Attempt(12, 1, "second", 1, "LOST", "w"),
        Attempt(13, 1, "second", 2, "SUCCEEDED", "w", 0, losses=1),
    ],
    changes=[
        Change(1, 0.5, 1, "QUEUED"),
        Change(2, 0.8, 1, "RUNNING", previous="QUEUED"),
        *(
            Change(n, float(n - 2), 1, state, task, attempt)
            for n, (task, attempt, state) in enumerate(HISTORY, start=3)
        ),
        Change(99, 13.9, 1, "SUCCEEDED", previous="RUNNING"),
    ],
    epochs={7: 50},
    steps=[Step("partition", 7, "40", "50"), Step("task_instance", 11, "WAITING", "QUEUED")],
    rows=ROWS,
    asked=[Asked("key-1", "START", None, {1})],
    faults=[FaultRecord("kill-worker", "worker-1", 7.8, 9.0, 9.0, True, "died")],
)


def row(index: int, **fields: Any) -> Evidence:
    rows = list(CLEAN.rows)
    rows[index] = replace(rows[index], **fields)
    return replace(CLEAN, rows=rows)


def attempt(index: int, **fields: Any) -> Evidence:
    attempts = list(CLEAN.attempts)
    attempts[index] = replace(attempts[index], **fields)
    return replace(CLEAN, attempts=attempts)


def instance(**fields: Any) -> Evidence:
    return replace(CLEAN, instances={1: replace(CLEAN.instances[1], **fields)})


def task(name: str, **fields: Any) -> Evidence:
    tasks = CLEAN.instances[1].tasks
    return instance(tasks={**tasks, name: replace(tasks[name], **fields)})
