"""What one event of a large DAG costs: ``decide`` and its application, without any database."""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from bench.growth.driven_engine import line, wide
from bench.growth.table import Row
from shoal.core.decide import decide
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.events import Begun, Event, TaskClaimed, TaskEnded
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import TaskSignal, WorkflowState

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_EVENTS = 1_000  # at most; measured behind the first ones
_SHAPES = {"independent": wide, "in a line": line}


def measure(sizes: Iterable[int]) -> Iterator[Row]:
    """Yield the microseconds of an event for DAGs of so many tasks."""
    for shape, make in _SHAPES.items():
        for size in sizes:
            run = _run(make(size))
            run.apply(decide(run, Begun(_AT)))
            names = list(run.plan.tasks)[: _EVENTS // 2]
            began = time.process_time()
            for name in names:
                for event in _life(run, name):
                    run.apply(decide(run, event))
            spent_s = time.process_time() - began
            each_us = spent_s / len(names) / 2 * 1e6
            yield Row("tasks of the DAG", shape, size, "µs to decide an event", each_us)


def _life(run: Run, name: str) -> Iterator[Event]:
    row_id = run.attempts[name].id
    assert row_id is not None
    yield TaskClaimed(row_id, "w", _AT)
    yield TaskEnded(row_id, TaskSignal.SUCCEED, _AT, "w", exit_code=0, started_at=_AT)


def _run(spec: WorkflowSpec) -> Run:
    plan = WorkflowPlan.of(spec)
    attempts = {name: Attempt(name, 1, id=row_id) for row_id, name in enumerate(plan.tasks, 1)}
    return Run(
        id=1,
        plan=plan,
        state=WorkflowState.QUEUED,
        partition=0,
        attempts=attempts,
        created_at=_AT,
        logical_time=_AT,
        admitted_at=_AT,
    )
