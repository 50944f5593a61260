"""Read the runs of a day, as the simulator compares itself with them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from shoal.client.rest.client import ShoalClient
from shoal.client.rest.types import InstanceJson, TaskInstanceJson
from shoal.client.simulation.collecting import PAGE, pause_s, seconds_between
from shoal.core.definition.kinds import is_logic
from shoal.core.definition.priority import Priority
from shoal.core.runs.states import TaskSignal
from shoal.insight.simulate.validation import RecordedAttempt, RecordedRun

_DAY = timedelta(days=1)
_SIGNALS = {
    "SUCCEEDED": TaskSignal.SUCCEED,
    "FAILED": TaskSignal.FAIL,
    "RESCHEDULED": TaskSignal.RESCHEDULE,
}


def runs_of(client: ShoalClient, day: datetime) -> list[RecordedRun]:
    """Return the runs that were started within a day from ``day`` on, without sub-workflows."""
    listed = client.instances(since=day, until=day + _DAY, page=PAGE)
    found = [_run(one) for one in listed if one["parent"] is None]
    return sorted(found, key=lambda run: (run.created_at, run.id))


def attempts_of(client: ShoalClient, day: datetime) -> Iterator[RecordedAttempt]:
    """Yield what workers have begun within two days from ``day`` on."""
    listed = client.task_instances(started_since=day, started_until=day + 2 * _DAY, page=PAGE)
    for one in listed:
        if not is_logic(one["type"]) and one["queued_at"] and one["started_at"]:
            yield _attempt(one)


def _run(one: InstanceJson) -> RecordedRun:
    return RecordedRun(
        one["id"],
        f"{one['project']}/{one['workflow']}",
        datetime.fromisoformat(one["created_at"]),
        datetime.fromisoformat(one["logical_time"]),
        one["timezone"],
        Priority[one["priority"]].value,
        is_free=one["backfill_id"] is not None or one["rerun_of"] is not None,
    )


def _attempt(one: TaskInstanceJson) -> RecordedAttempt:
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
