"""What a process cannot work with and quarantines, so that it stops nothing else.

One table for all consumers. A master quarantines runs and what starts them; an alert server the
events, messages and workflows that it fails on. ``ItemConsumer`` and ``ItemKind`` grow with
the processes that isolate their items.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shoal.core.errors import ShoalError, shortened
from shoal.core.untrusted import encodable

LONGEST_REASON = 500  # characters


class ItemConsumer(StrEnum):
    """Which part of Shoal cannot work with an item."""

    MASTERS = "masters"
    ALERTS = "alerts"


class ItemKind(StrEnum):
    """What is quarantined."""

    # of masters
    INSTANCE = "instance"  # nothing is done with it: its row, its definition or its state
    COMMAND = "command"  # it stays pending
    SCHEDULE = "schedule"  # it does not fire; its fire times count as missed later
    BACKFILL = "backfill"  # it starts nothing more
    GROUP = "concurrency group"  # its slots are not given
    PURGE = "purge"  # its partitions are not purged on this request
    # of alert servers
    EVENT = "event"  # it makes no alert and ends none
    MESSAGE = "message"  # it was sent as plain text, or has failed
    ALERT = "alert"  # its reminders and escalations wait
    WORKFLOW = "workflow"  # its deadlines and success rates are not looked at
    CONDITION = "condition"  # what has begun or ceased to hold is not stored
    CLUSTER = "cluster"  # a part of the cluster that is not looked at


@dataclass(frozen=True)
class QuarantinedItem:
    """One quarantined thing. ``item``: its id as text, or its name."""

    kind: ItemKind
    item: str
    partition: int | None  # None: not of a partition
    reason: str
    tries: int  # how often it was tried so far
    since: datetime
    consumer: ItemConsumer = ItemConsumer.MASTERS
    project: str | None = None
    workflow: str | None = None
    last_at: datetime | None = None  # of the last try; None: ``since``
    is_skipped: bool = False  # nothing tries it again: what comes after it was worked with
    retry_at: datetime | None = None  # when a retry was requested that is not done yet


def failure_of(error: BaseException) -> str:
    """Return why an item is quarantined: Shoal's own error in its words, any other with its place.

    The place is the file and line that raised it, as ``(results.py:42)``.
    """
    if isinstance(error, ShoalError):
        return encodable(shortened(str(error), LONGEST_REASON))
    place = _place(error)
    return shortened(reason_of(error), LONGEST_REASON - len(place)) + place


def reason_of(error: BaseException) -> str:
    """Return what an error says, in a line or two for people."""
    said = str(error).strip() or "no reason given"
    return encodable(shortened(f"{type(error).__name__}: {said}", LONGEST_REASON))


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno})"
