"""What a process cannot work with and quarantines, so that it stops nothing else.

One table for all consumers. A master quarantines runs and what starts them; an alert server the
events, messages and workflows that it fails on; the processes of the history the rows that they
cannot export and the results that they cannot load. ``ItemConsumer`` and ``ItemKind`` grow with
the processes that isolate their items.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shoal.core.errors import ShoalError, shortened
from shoal.core.untrusted import encodable

LONGEST_REASON = 500  # characters
_LONGEST_ITEM, _LONGEST_NAME = 255, 100  # characters: of the columns


class ItemConsumer(StrEnum):
    """Which part of Shoal cannot work with an item."""

    MASTERS = "masters"
    ALERTS = "alerts"
    HISTORY = "history"  # its export, and the loading of roll-ups


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
    # of the history
    ROW = "row"  # of a table of the history; it was not exported
    ROLL_UP = "roll-up"  # a result of a job of insight; the one before it is shown


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


def failed_item(
    consumer: ItemConsumer,
    kind: ItemKind,
    item: object,
    reason: str,
    now: datetime,
    *,
    project: str | None = None,
    workflow: str | None = None,
    is_skipped: bool,
) -> QuarantinedItem:
    """Return the record of an item that failed once, of no partition.

    Its texts are cut like the columns: a record that cannot be stored would stop what it is to
    keep going. ``is_skipped``: nothing tries it again by itself.
    """
    return QuarantinedItem(
        kind=kind,
        item=str(item)[:_LONGEST_ITEM],
        partition=None,
        reason=shortened(reason, LONGEST_REASON),
        tries=1,
        since=now,
        consumer=consumer,
        project=None if project is None else project[:_LONGEST_NAME],
        workflow=None if workflow is None else workflow[:_LONGEST_NAME],
        last_at=now,
        is_skipped=is_skipped,
    )


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
