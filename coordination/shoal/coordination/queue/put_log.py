"""A log of the latest puts in a queue's notification, which spares claimers reading the queue.

The notification is the data of a group's znode. It has a line for each of the latest puts of the
process that put last::

    17:2.5.2.41.9 2.5.2.42.9        the put that made version 17 of the data
    :1.6.2.50.3+                    this one; it has more entries than the one that is named

An entry is its numbers in the order of ``QueueEntry``, without lane 0. A put of many entries names
only the first of each lane, which is enough for a claimer that knows that earlier ones wait there.
Empty data, and all else
that does not fit, means: read the queue.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from shoal.coordination.cluster import layout
from shoal.coordination.queue.entry import QueueEntry
from shoal.coordination.session.nodes import Node, SetData
from shoal.coordination.session.wire import Stat

FEW = 64  # entries; of a greater put only the first of each lane is named
HISTORY_BYTES = 2000  # of earlier puts, repeated for claimers that were busy meanwhile


class Put(NamedTuple):
    """One put: all its entries in order, or (``more``) only the first ones of their lanes."""

    entries: list[QueueEntry]
    more: bool


class PutLog:
    """The latest puts of one process into one group's queue."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._lines: deque[bytes] = deque()  # of consecutive versions
        self._bytes = 0
        self._version = -1  # the last of them

    def notification(self, batch: Sequence[QueueEntry]) -> tuple[SetData, bytes]:
        """Return the operation that notifies of ``batch``, in order, and what ``record`` takes."""
        named: Sequence[QueueEntry] = batch
        if more := len(batch) > FEW:
            firsts: dict[tuple[int, int], QueueEntry] = {}
            for entry in batch:
                firsts.setdefault((entry.workflow_priority, entry.lane), entry)
            named = list(firsts.values())
        if len(named) > FEW:  # of so many lanes: claimers read the queue
            return SetData(layout.queue(self._group), b""), b""
        names = " ".join(map(_name, named))
        line = f":{names}{'+' * more}".encode()
        return SetData(layout.queue(self._group), b"\n".join((*self._lines, line))), line

    def record(self, line: bytes, stat: Stat) -> None:
        """Note that the notification was written, and which version that made."""
        if stat.version != self._version + 1:  # another process has put, or we have just begun
            self._lines.clear()
            self._bytes = 0
        self._version = stat.version
        line = b"%d%b" % (stat.version, line)
        self._lines.append(line)
        self._bytes += len(line)
        while self._bytes > HISTORY_BYTES:
            self._bytes -= len(self._lines.popleft())


def puts_since(group: str, version: int, notification: Node) -> list[Put] | None:
    """Return the puts after ``version`` of the notification; None if some are missing.

    Data that no put has written names no puts.
    """
    try:
        return _puts_since(group, version, notification)
    except ValueError:
        return None


def _puts_since(group: str, version: int, notification: Node) -> list[Put] | None:
    missing = notification.stat.version - version
    if missing <= 0:
        return [] if missing == 0 else None
    lines = notification.data.split(b"\n")[-missing:]
    if len(lines) < missing:
        return None
    puts = []
    for line in lines:
        made, _, put = line.partition(b":")
        version += 1
        if not put or int(made or notification.stat.version) != version:
            return None
        names = put.removesuffix(b"+")
        entries = [_entry(group, name) for name in names.split()]
        if not entries:
            return None
        puts.append(Put(entries, more=names != put))
    return puts


def _name(entry: QueueEntry) -> str:
    lane = f".{entry.lane}" if entry.lane else ""
    return (
        f"{entry.workflow_priority}.{entry.workflow_instance_id}.{entry.task_priority}"
        f".{entry.task_instance_id}.{entry.partition}{lane}"
    )


def _entry(group: str, name: bytes) -> QueueEntry:
    workflow_priority, instance, priority, task, partition, *lane = map(int, name.split(b"."))
    return QueueEntry(group, workflow_priority, instance, priority, task, partition, *lane)
