"""What events mean for alerts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from shoal.core.runs.records import ChangeEvent, EventKind
from shoal.core.untrusted import MOST_DIGITS, read_count


class Trigger(StrEnum):
    """What an alert is about. The names are those of rules."""

    RUN_SUCCEEDED = "run.succeeded"
    RUN_FAILED = "run.failed"
    RUN_STOPPED = "run.stopped"
    RUN_TIMED_OUT = "run.timed-out"  # beyond its timeout, whatever is done about it
    RUN_LATE = "run.late"  # beyond its deadline
    TASK_SUCCEEDED = "task.succeeded"
    TASK_WARNED = "task.warned"  # a check of data that only warns does not hold
    TASK_FAILED = "task.failed"  # and is not tried again by itself
    TASK_RETRYING = "task.retrying"  # an attempt has failed, and another one follows
    TASK_TIMED_OUT = "task.timed-out"
    TASK_LOST = "task.lost"  # its worker is gone
    BACKFILL_DONE = "backfill.done"
    BACKFILL_FAILED = "backfill.failed"
    SCHEDULE_PAUSED = "schedule.paused"
    SCHEDULE_SKIPPED = "schedule.skipped"  # fire times passed while no master was there
    WORKFLOW_NOT_STARTED = "workflow.not-started"  # by a deadline of the rule
    WORKFLOW_NOT_FINISHED = "workflow.not-finished"  # with success, by a deadline of the rule
    WORKFLOW_NO_SUCCESS = "workflow.no-success"  # for so long
    WORKFLOW_LOW_SUCCESS_RATE = "workflow.low-success-rate"
    WORKER_GONE = "worker.gone"
    MASTER_GONE = "master.gone"
    CLUSTER_DEGRADED = "cluster.degraded"


#: What is no news of a trouble, so that there is nothing to recover from.
GOOD_NEWS = frozenset({Trigger.RUN_SUCCEEDED, Trigger.TASK_SUCCEEDED, Trigger.BACKFILL_DONE})
#: What happens once, and is over with that.
MOMENTS = GOOD_NEWS | {Trigger.TASK_WARNED, Trigger.SCHEDULE_SKIPPED}
#: Messages about these tell what the task has found.
WITH_RESULTS = frozenset({Trigger.TASK_SUCCEEDED, Trigger.TASK_WARNED})
#: What alert servers look for in workflows that rules name.
OF_WORKFLOWS = frozenset(
    {
        Trigger.WORKFLOW_NOT_STARTED,
        Trigger.WORKFLOW_NOT_FINISHED,
        Trigger.WORKFLOW_NO_SUCCESS,
        Trigger.WORKFLOW_LOW_SUCCESS_RATE,
    }
)
#: What alert servers look for in the cluster: only its administrators make rules about that.
OF_CLUSTER = frozenset({Trigger.WORKER_GONE, Trigger.MASTER_GONE, Trigger.CLUSTER_DEGRADED})

_RUNS = {
    "SUCCEEDED": Trigger.RUN_SUCCEEDED,
    "FAILED": Trigger.RUN_FAILED,
    "STOPPED": Trigger.RUN_STOPPED,
}
_TASKS = {
    "SUCCEEDED": Trigger.TASK_SUCCEEDED,
    "FAILED": Trigger.TASK_FAILED,
    "LOST": Trigger.TASK_LOST,
}
_BACKFILLS = {"SUCCEEDED": Trigger.BACKFILL_DONE, "FAILED": Trigger.BACKFILL_FAILED}
_SCHEDULES = {"PAUSED": Trigger.SCHEDULE_PAUSED, "SKIPPED": Trigger.SCHEDULE_SKIPPED}
_CONDITIONS = frozenset(str(one) for one in OF_WORKFLOWS | OF_CLUSTER)


@dataclass(frozen=True)
class Occurrence:
    """Something that happened and may cause a notification.

    ``subject`` names what it is about, for what happens to that later: ``run/WORKFLOW``,
    ``task/WORKFLOW/TASK``, ``instance/ID``, ``backfill/ID``, ``schedule/ID``; of a condition it
    is the condition's own. ``rule``: the only one that it is for; None: any.
    """

    event_id: int
    at: datetime
    trigger: Trigger
    project: str
    workflow: str
    subject: str
    instance_id: int | None = None
    task: str | None = None
    task_instance_id: int | None = None
    attempt: int | None = None
    reason: str | None = None
    rule: str | None = None


@dataclass(frozen=True)
class Recovery:
    """Alerts about one of ``subjects`` have lost their cause, except those about later runs.

    Not ``is_told``: the alerts end without a message, as nothing has recovered.
    """

    event_id: int
    at: datetime
    project: str
    subjects: tuple[str, ...]
    instance_id: int | None
    is_told: bool = True


def occurrence(event: ChangeEvent) -> Occurrence | None:
    """Return what an event is about; None: nothing that a rule could name."""
    data = event.data
    found = _read(event.kind, data)
    if found is None:
        return None
    trigger, subject = found
    return Occurrence(
        event_id=event.id,
        at=event.at,
        trigger=trigger,
        project=event.project,
        workflow=str(data.get("workflow", "")),
        subject=subject.format(
            workflow=data.get("workflow"),
            task=data.get("task"),
            instance=event.workflow_instance_id,
            backfill=data.get("backfill_id"),
            schedule=data.get("schedule_id"),
        ),
        instance_id=event.workflow_instance_id,
        task=data.get("task"),
        task_instance_id=event.task_instance_id,
        attempt=data.get("attempt"),
        reason=data.get("reason"),
        rule=data.get("rule") if event.kind == EventKind.ALERT_CONDITION else None,
    )


def settled(failed: Occurrence, later: Iterable[ChangeEvent]) -> Occurrence:
    """Return a failed attempt as what it is: the last one, or one that another follows.

    ``later``: events of its run behind it.
    """
    if failed.trigger is Trigger.TASK_FAILED and any(is_retry_of(one, failed) for one in later):
        return replace(failed, trigger=Trigger.TASK_RETRYING)
    return failed


def warned(succeeded: Occurrence, outputs: Mapping[str, str]) -> Occurrence | None:
    """Return that checks of a task did not hold although it succeeded; None: they did."""
    count = outputs.get("warned", "0").lstrip("0")
    if succeeded.trigger is not Trigger.TASK_SUCCEEDED or not (count.isascii() and count.isdigit()):
        return None
    # A number of too many digits is not a count, but it does not say that all checks hold either.
    said = count if read_count(count) is not None else f"more than {10**MOST_DIGITS - 1:,}"
    reason = f"{said} checks of the data do not hold"
    return replace(succeeded, trigger=Trigger.TASK_WARNED, reason=reason)


def is_retry_of(event: ChangeEvent, failed: Occurrence) -> bool:
    """Say whether an event is about the next attempt, made by the decision that saw one fail.

    All events of a decision have one time. Who runs a task again later makes another decision.
    """
    return (
        event.at == failed.at
        and event.data.get("task") == failed.task
        and event.data.get("attempt") == (failed.attempt or 0) + 1
    )


def recovery(event: ChangeEvent) -> Recovery | None:
    """Return which troubles an event has ended; None: none.

    What is late or takes too long is over when the run has ended, however it did.
    """
    data, run = event.data, event.workflow_instance_id
    state, workflow = data.get("state"), data.get("workflow")
    subjects: tuple[str, ...]
    match event.kind:
        case EventKind.INSTANCE_STATE if state == "SUCCEEDED":
            subjects = (f"run/{workflow}", f"instance/{run}")
        case EventKind.INSTANCE_STATE if state in _RUNS:
            subjects = (f"instance/{run}",)
        case EventKind.TASK_STATE if state == "SUCCEEDED":
            subjects = (f"task/{workflow}/{data.get('task')}",)
        case EventKind.BACKFILL_STATE if state == "SUCCEEDED":
            subjects = (f"backfill/{data.get('backfill_id')}",)
        case EventKind.SCHEDULE_STATE if state == "RESUMED":
            subjects = (f"schedule/{data.get('schedule_id')}",)
        case EventKind.ALERT_CONDITION if data.get("holds") is False:
            subjects = (str(data.get("subject")),)
        case _:
            return None
    is_told = data.get("is_told") is not False
    return Recovery(event.id, event.at, event.project, subjects, run, is_told)


def _read(kind: str, data: Mapping[str, Any]) -> tuple[Trigger, str] | None:
    state = str(data.get("state", ""))
    match kind:
        case EventKind.INSTANCE_STATE if state in _RUNS:
            return _RUNS[state], "run/{workflow}"
        case EventKind.INSTANCE_OVERDUE:
            return Trigger.RUN_TIMED_OUT, "instance/{instance}"
        case EventKind.INSTANCE_LATE:
            return Trigger.RUN_LATE, "instance/{instance}"
        case EventKind.TASK_STATE if state in _TASKS:
            return _TASKS[state], "task/{workflow}/{task}"
        case EventKind.TASK_OVERDUE:
            return Trigger.TASK_TIMED_OUT, "task/{workflow}/{task}"
        case EventKind.BACKFILL_STATE if state in _BACKFILLS:
            return _BACKFILLS[state], "backfill/{backfill}"
        case EventKind.SCHEDULE_STATE if state in _SCHEDULES:
            return _SCHEDULES[state], "schedule/{schedule}"
        case EventKind.ALERT_CONDITION if data.get("holds") is True:
            trigger, subject = str(data.get("trigger")), str(data.get("subject"))
            return (Trigger(trigger), subject) if trigger in _CONDITIONS else None
        case _:
            return None
