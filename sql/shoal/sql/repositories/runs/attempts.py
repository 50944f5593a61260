"""Between rows of ``task_instance`` and the core's ``Attempt``."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row

from shoal.core.runs.concurrency import group_of
from shoal.core.runs.run import Attempt, Run, SkipCause, Termination
from shoal.core.runs.states import TaskState
from shoal.sql.statements.rows import record_of


def attempt_of(row: Row[Any]) -> Attempt:
    """Return the attempt that a row holds."""
    return record_of(
        Attempt,
        row,
        number=row.attempt,
        state=TaskState(row.state),
        skip_cause=None if row.skip_cause is None else SkipCause(row.skip_cause),
        termination=None if row.doomed is None else Termination(row.doomed),
        outputs=row.outputs or {},
        detail=row.detail or {},
    )


def newest(rows: Iterable[Row[Any]]) -> dict[str, Attempt]:
    """Return the newest attempt of each task of one instance; rows ascend by attempt."""
    last = {row.task: row for row in rows}
    return {task: attempt_of(row) for task, row in last.items()}


def changing_values(attempt: Attempt) -> dict[str, Any]:
    """Return the columns that change in the life of an attempt."""
    return {
        "state": attempt.state,
        "worker": attempt.worker,
        "reason": attempt.reason,
        "exit_code": attempt.exit_code,
        "failures": attempt.failures,
        "losses": attempt.losses,
        "looks": attempt.looks,
        "waiting_since": attempt.waiting_since,
        "due_at": attempt.due_at,
        "queued_at": attempt.queued_at,
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
        "skip_cause": attempt.skip_cause,
        "forced": attempt.forced,
        "doomed": attempt.termination,
        "warned_at": attempt.warned_at,
        "outputs": dict(attempt.outputs) or None,
        "detail": dict(attempt.detail) or None,
        "environment": attempt.environment,
        "cpu_s": attempt.cpu_s,
        "max_rss_kb": attempt.max_rss_kb,
        "error_line": attempt.error_line,
        "fingerprint": attempt.fingerprint,
    }


def new_values(row_id: int, run: Run, position: int, attempt: Attempt) -> dict[str, Any]:
    """Return all columns of a new row."""
    task = run.plan.tasks[attempt.task]
    needs_slot = task.concurrency_group is not None
    return {
        "id": row_id,
        "workflow_instance_id": run.id,
        "position": position,
        "attempt": attempt.number,
        "task": task.name,
        "type": task.type,
        "worker_group": task.worker_group,
        "concurrency_group": group_of(run, attempt.task),
        "workflow_priority": run.priority if needs_slot else None,
        "task_priority": int(task.priority) if needs_slot else None,
        **changing_values(attempt),
    }
