"""What can happen to a workflow instance. Frozen values; ``at`` is an aware UTC datetime."""

from dataclasses import dataclass
from datetime import datetime

from shoal.core.states import TaskSignal


@dataclass(frozen=True)
class Begun:
    """A master holds the instance now: it is new, or was taken over."""

    at: datetime


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
class TaskStarted:
    """The attempt's process runs."""

    task_instance_id: int
    worker: str
    at: datetime


@dataclass(frozen=True)
class TaskEnded:
    """The attempt is over. ``signal`` is SUCCEED, FAIL, KILL or LOSE.

    ``worker`` is who reports it; None when a master declares the attempt lost.
    """

    task_instance_id: int
    signal: TaskSignal
    at: datetime
    worker: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    started_at: datetime | None = None


@dataclass(frozen=True)
class PauseRequested:
    """Let running tasks finish, start nothing."""

    at: datetime


@dataclass(frozen=True)
class ResumeRequested:
    """Continue a paused or stopped instance."""

    at: datetime


@dataclass(frozen=True)
class StopRequested:
    """Kill what runs and start nothing."""

    at: datetime


@dataclass(frozen=True)
class RecoverRequested:
    """Run the failed tasks, and what was skipped because of them, again."""

    at: datetime


Request = PauseRequested | ResumeRequested | StopRequested | RecoverRequested
Event = Begun | TimeReached | TaskClaimed | TaskStarted | TaskEnded | Request
