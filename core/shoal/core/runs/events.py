"""What can happen to a workflow instance. Frozen values; ``at`` is an aware UTC datetime."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from shoal.core.definition.selection import Selection
from shoal.core.runs.commands import CommandType, NewCommand, Parent
from shoal.core.runs.states import TaskSignal, WorkflowState

LONGEST_ERROR = 500  # characters of an error line


@dataclass(frozen=True)
class Begun:
    """A master holds the instance now: it is new, was taken over, or left quarantine.

    ``without_slot``: task instances that stand in the queue and have lost the slot of their
    concurrency group while the instance was quarantined.
    """

    at: datetime
    without_slot: frozenset[int] = frozenset()


@dataclass(frozen=True)
class TimeReached:
    """A ``WakeAt`` is due."""

    at: datetime


@dataclass(frozen=True)
class TaskClaimed:
    """``worker`` has taken the attempt out of the queue and asks for its payload."""

    task_instance_id: int
    worker: str
    at: datetime


@dataclass(frozen=True)
class TaskRequeued:
    """``worker`` has not begun with the attempt, and wants another worker to take it.

    ``queued_at`` is the attempt's when the worker got it: it names this one hold, for the same
    worker may take the attempt again later.
    """

    task_instance_id: int
    worker: str
    queued_at: datetime
    at: datetime


@dataclass(frozen=True)
class TaskStarted:
    """The attempt's process runs, since ``started_at`` by the worker's account (None: now).

    ``environment``: in which it does, as NAME@VERSION; None: in none.
    """

    task_instance_id: int
    worker: str
    at: datetime
    started_at: datetime | None = None
    environment: str | None = None


@dataclass(frozen=True)
class TaskEnded:
    """The attempt is over. ``signal`` is SUCCEED, FAIL, KILL, LOSE or RESCHEDULE.

    ``worker`` reports it; None when a master declares the attempt lost. ``started_at`` and
    ``ended_at`` are the worker's account (None: ``at``), for people: nothing is timed by them.
    ``permanent``: a failure that would be the same another time. ``again_s``: with RESCHEDULE, the
    seconds until the next poll, kept within the bounds of ``poll_interval``.
    ``environment``: see TaskStarted. ``cpu_s`` and ``max_rss_kb``: processor time of all its
    processes, and the largest resident size of one of them in KiB; None: not measured.
    ``error_line``: what its log says of a failure, in one line of
    ``LONGEST_ERROR`` characters at most.
    """

    task_instance_id: int
    signal: TaskSignal
    at: datetime
    worker: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    permanent: bool = False
    again_s: float = 0.0
    environment: str | None = None
    cpu_s: float | None = None
    max_rss_kb: int | None = None
    error_line: str | None = None


@dataclass(frozen=True)
class Admitted:
    """An instance that waited for others of its workflow may start."""

    at: datetime


@dataclass(frozen=True)
class SlotGranted:
    """The attempt has got a slot of its concurrency group."""

    task_instance_id: int
    at: datetime


@dataclass(frozen=True)
class ChildChanged:
    """The state of a sub-workflow: it has started, has ended, is paused, or could not be started.

    ``state`` is None in the last case. ``outputs`` are those of the child. ``ask`` is the number
    of the latest request that it had had by then, None: of the latest one that there is.
    ``refused``: that request was. ``is_quarantined``: it only has to be known that the child was
    quarantined (True), or is tried again (False), and nothing else of this counts.
    """

    task_instance_id: int
    index: int  # which item of a MAP
    at: datetime
    instance_id: int | None
    state: WorkflowState | None
    reason: str | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    ask: int | None = None
    refused: bool = False
    is_quarantined: bool | None = None


class DependencyVerdict(StrEnum):
    """What follows for a DEPENDENT task from the runs that it waits for."""

    WAIT = "WAIT"
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    SKIP = "SKIP"


@dataclass(frozen=True)
class DependencyJudged:
    """The runs of a DEPENDENT task were searched; ``detail`` names them."""

    task_instance_id: int
    verdict: DependencyVerdict
    at: datetime
    reason: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PauseRequested:
    """Let running tasks finish, start nothing."""

    at: datetime
    parent: Parent | None = None  # the task that asks, and wants to know what came of it


@dataclass(frozen=True)
class ResumeRequested:
    """Continue a paused or stopped instance."""

    at: datetime
    parent: Parent | None = None  # the task that asks, and wants to know what came of it


@dataclass(frozen=True)
class StopRequested:
    """Kill what runs and start nothing. ``reason`` is for people; None: a user asked for it."""

    at: datetime
    reason: str | None = None
    parent: Parent | None = None  # the task that asks, and wants to know what came of it


@dataclass(frozen=True)
class RecoverRequested:
    """Run the failed tasks, and what was skipped because of them, again."""

    at: datetime
    parent: Parent | None = None  # the task that asks, and wants to know what came of it


@dataclass(frozen=True)
class RerunRequested:
    """Run chosen tasks of an ended instance again, in the same instance."""

    selection: Selection
    at: datetime


@dataclass(frozen=True)
class KillRequested:
    """End one task; the others go on."""

    task: str
    at: datetime


@dataclass(frozen=True)
class ForceRequested:
    """Take a task that failed for a success, and go on behind it.

    ``by``: the user; ``reason``: why, for people.
    """

    task: str
    at: datetime
    by: str = ""
    reason: str | None = None


WholeRequest = PauseRequested | ResumeRequested | StopRequested | RecoverRequested
Request = WholeRequest | RerunRequested | KillRequested | ForceRequested
Event = (
    Begun
    | TimeReached
    | TaskClaimed
    | TaskRequeued
    | TaskStarted
    | TaskEnded
    | Admitted
    | SlotGranted
    | ChildChanged
    | DependencyJudged
    | Request
)


OF_WHOLE: Mapping[CommandType, type[PauseRequested | ResumeRequested | RecoverRequested]] = {
    CommandType.PAUSE: PauseRequested,
    CommandType.RESUME: ResumeRequested,
    CommandType.RECOVER: RecoverRequested,
}


def request_of(command: NewCommand, at: datetime) -> Request:
    """Return the event of a command. Raises KeyError for one that is not a request about a run."""
    match command.type:
        case CommandType.STOP:
            return StopRequested(at, command.detail.get("reason"), command.parent)
        case CommandType.RERUN_TASKS:
            assert command.selection is not None, "checked when it was accepted"
            return RerunRequested(command.selection, at)
        case CommandType.KILL_TASK:
            assert command.task is not None, "checked when it was accepted"
            return KillRequested(command.task, at)
        case CommandType.FORCE_SUCCESS:
            assert command.task is not None, "checked when it was accepted"
            reason = command.detail.get("reason")
            return ForceRequested(command.task, at, command.requested_by, reason)
        case _:
            return OF_WHOLE[command.type](at, command.parent)
