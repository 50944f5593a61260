"""The durable requests: what a person, a program or a schedule wants done.

A command is a row first. The master that owns its partition turns it into an instance or an
event for one, and writes the outcome into the same row; it is never lost and never re-used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from shoal.core.definition.selection import Selection


class CommandType(StrEnum):
    """What a command asks for. Most speak of an existing instance, some of a backfill."""

    START = "START"  # run a workflow
    RERUN = "RERUN"  # run the instance's version and parameters again, as a new instance
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    STOP = "STOP"
    RECOVER = "RECOVER"
    RERUN_TASKS = "RERUN_TASKS"  # run chosen tasks of an ended instance again, in the instance
    KILL_TASK = "KILL_TASK"
    FORCE_SUCCESS = "FORCE_SUCCESS"  # take a failed task for a success
    ADMIT = "ADMIT"  # internal: an instance that waited for others may start
    CHILD = "CHILD"  # internal: how a sub-workflow stands, for the task that started it
    BACKFILL = "BACKFILL"  # create a backfill
    PAUSE_BACKFILL = "PAUSE_BACKFILL"
    RESUME_BACKFILL = "RESUME_BACKFILL"
    CANCEL_BACKFILL = "CANCEL_BACKFILL"
    RETRY_BACKFILL = "RETRY_BACKFILL"  # its failed dates again


class CommandState(StrEnum):
    """How far a command has come."""

    PENDING = "PENDING"  # accepted, not yet carried out
    DONE = "DONE"  # carried out; ``result_instance_id`` says where
    REFUSED = "REFUSED"  # could not be carried out; ``reason`` says why


@dataclass(frozen=True)
class Parent:
    """The task that a sub-workflow's instance works for.

    ``ancestors``: the instances above that of the task, the topmost one first. Not compared, since
    earlier versions stored none.
    """

    instance_id: int
    task_instance_id: int
    partition: int
    index: int = 0  # which item of a MAP
    depth: int = 1  # how deep the sub-workflow is nested
    ask: int = 0  # the number of the latest request that the sub-workflow has had from it
    ancestors: tuple[int, ...] = field(default=(), compare=False)

    @property
    def root(self) -> int:
        """The topmost instance."""
        return self.ancestors[0] if self.ancestors else self.instance_id


@dataclass(frozen=True)
class NewCommand:
    """A request on its way into the command table.

    ``partition``: of START any, the same each time Shoal sends its own command again; of the others
    the instance's. ``idempotency_key``: one of Shoal's own never meets a caller's, nor one caller's
    that of another. ``caller_id``: of the account that asks; None: Shoal, or who has no account.
    ``instance_id``: the instance it speaks of (RERUN: the one to run again); None for START.
    ``version`` None means the newest published one at the time it is carried out.
    ``logical_time``: the instant the run is *for*; None means the creation time.
    ``selection``: of START and RERUN_TASKS; ``task``: the name, of KILL_TASK and FORCE_SUCCESS.
    ``parent``: the task that gets the report of the instance's end. ``detail``: JSON that only one
    type has. ``labels``: of a START, beside those of the workflow and of the parent's run.
    """

    type: CommandType
    partition: int
    idempotency_key: str
    workflow_id: int
    instance_id: int | None = None
    version: int | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    logical_time: datetime | None = None
    timezone: str | None = None  # None: the workflow's own
    priority: int | None = None  # None: the workflow's own
    schedule_id: int | None = None
    requested_by: str = ""
    selection: Selection | None = None
    task: str | None = None
    parent: Parent | None = None
    backfill_id: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    caller_id: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command(NewCommand):
    """A stored command.

    ``result_instance_id``, once DONE: the new instance of a START or RERUN, else ``instance_id``.
    """

    id: int = 0
    state: CommandState = CommandState.PENDING
    reason: str | None = None
    result_instance_id: int | None = None
    created_at: datetime | None = None
    handled_at: datetime | None = None
