"""Read the runs of a day, as the simulator compares itself with them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from shoal.client.rest.client import ShoalClient
from shoal.client.simulation.collecting import PAGE, pause_s, seconds_between
from shoal.core.definition.fields import Priority
from shoal.core.definition.kinds import is_logic
from shoal.core.runs.states import TaskSignal
from shoal.insight.simulate.validation import RecordedAttempt, RecordedRun

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import InstanceOut, TaskOut

_DAY = timedelta(days=1)
_SIGNALS = {
    "SUCCEEDED": TaskSignal.SUCCEED,
    "FAILED": TaskSignal.FAIL,
    "RESCHEDULED": TaskSignal.RESCHEDULE,
}


def runs_of(client: ShoalClient, day: datetime) -> list[RecordedRun]:
    """Return the runs that were started within a day from ``day`` on, without sub-workflows."""
    listed = client.pages(client.list_instances, since=day, until=day + _DAY, limit=PAGE)
    found = [_run(one) for one in listed if one["parent"] is None]
    return sorted(found, key=lambda run: (run.created_at, run.id))


def attempts_of(client: ShoalClient, day: datetime) -> Iterator[RecordedAttempt]:
    """Yield what workers have begun within two days from ``day`` on."""
    listed = client.pages(
        client.list_task_instances, started_since=day, started_until=day + 2 * _DAY, limit=PAGE
    )
    for one in listed:
        if not is_logic(one["type"]) and one["queued_at"] and one["started_at"]:
            yield _attempt(one)


def _run(one: "InstanceOut") -> RecordedRun:
    return RecordedRun(
        one["id"],
        f"{one['project']}/{one['workflow']}",
        datetime.fromisoformat(one["created_at"]),
        datetime.fromisoformat(one["logical_time"]),
        one["timezone"],
        Priority[one["priority"]].value,
        is_free=one["backfill_id"] is not None or one["rerun_of"] is not None,
    )


def _attempt(one: "TaskOut") -> RecordedAttempt:
    signal = _SIGNALS.get(one["state"])
    has_ended = signal is not None
    return RecordedAttempt(
        one["workflow_instance_id"],
        f"{one['project']}/{one['workflow']}",
        one["task"],
        one["attempt"],
        one["worker_group"],
        seconds_between(one["queued_at"], one["started_at"]),
        seconds_between(one["started_at"], one["finished_at"]) if has_ended else None,
        signal or TaskSignal.SUCCEED,
        pause_s(one) if one["looks"] and one["due_at"] else 60.0,
    )
