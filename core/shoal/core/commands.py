"""The durable requests: what a person, a program or a schedule wants done.

A command is a row first. The master that owns its partition turns it into an instance or an
event for one, and writes the outcome into the same row; it is never lost and never re-used.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class CommandType(StrEnum):
    """What a command asks for. All but START speak of an existing instance."""

    START = "START"  # run a workflow
    RERUN = "RERUN"  # run the instance's version and parameters again, as a new instance
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    STOP = "STOP"
    RECOVER = "RECOVER"


class CommandState(StrEnum):
    """How far a command has come."""

    PENDING = "PENDING"  # accepted, not yet looked at
    DONE = "DONE"  # carried out; ``result_instance_id`` says where
    REFUSED = "REFUSED"  # could not be carried out; ``reason`` says why


@dataclass(frozen=True)
class NewCommand:
    """A request on its way into the command table.

    ``partition``: hash of ``idempotency_key`` for START, the instance's own one for the others.
    ``instance_id``: the instance it speaks of (RERUN: the one to run again); None for START.
    ``version`` None means the newest published one at the time it is carried out.
    ``logical_time``: the instant the run is *for*; None means the creation time.
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
