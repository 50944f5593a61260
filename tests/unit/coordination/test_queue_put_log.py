"""What a notification tells is all that happened since, or it is no use."""

import random

import pytest

from shoal.coordination.queue.entry import QueueEntry
from shoal.coordination.queue.put_log import FEW, HISTORY_BYTES, Put, PutLog, puts_since
from shoal.coordination.session.nodes import Node
from shoal.coordination.session.wire import Stat


def entry(task: int, group: str = "g") -> QueueEntry:
    return QueueEntry(group, task % 5, task // 7, task % 3, task, task % 128)


def stat(version: int) -> Stat:
    return Stat(9, 9, 9, version, 0, 0, 0, 0)


class Notification:
    """A group's znode: its version counts what is written."""

    def __init__(self) -> None:
        self.node = Node(b"", stat(0))

    def notify(self, data: bytes) -> Stat:
        self.node = Node(data, stat(self.node.stat.version + 1))
        return self.node.stat

    def put(self, log: PutLog, batch: list[QueueEntry]) -> None:
        operation, news = log.notification(batch)
        log.record(news, self.notify(operation.data))


def test_puts_are_told_to_claimers_that_know_those_before() -> None:
    notification, log = Notification(), PutLog("g")
    batches = [[entry(task), entry(task + 1)] for task in range(0, 10, 2)]
    for batch in batches:
        notification.put(log, batch)
    for version in range(6):
        told = puts_since("g", version, notification.node)
        assert told == [Put(batch, more=False) for batch in batches[version:]]


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, 250])
def test_of_a_long_put_the_first_entry_of_each_priority_is_told(count: int) -> None:
    notification, log = Notification(), PutLog("g")
    batch = [entry(task) for task in range(count)]
    notification.put(log, batch)
    assert puts_since("g", 0, notification.node) == [
        Put(batch, more=False) if count <= FEW else Put(batch[:5], more=True)
    ]


def test_notifies_of_others_are_a_gap() -> None:
    notification, ours, theirs = Notification(), PutLog("g"), PutLog("g")
    notification.put(ours, [entry(1)])  # version 1
    notification.put(theirs, [entry(2)])
    notification.put(ours, [entry(3)])
    notification.put(ours, [entry(4)])
    assert puts_since("g", 0, notification.node) is None
    assert puts_since("g", 1, notification.node) is None
    assert puts_since("g", 2, notification.node) == [Put([entry(3)], False), Put([entry(4)], False)]
    notification.notify(b"")  # tells nothing
    assert puts_since("g", 4, notification.node) is None
    assert puts_since("g", 5, notification.node) == []


def test_put_whose_answer_is_not_there_yet_is_a_gap() -> None:
    notification, log = Notification(), PutLog("g")
    first, _ = log.notification([entry(1)])
    second, news = log.notification([entry(2)])
    notification.notify(first.data)
    log.record(news, notification.notify(second.data))
    assert puts_since("g", 0, notification.node) is None
    assert puts_since("g", 1, notification.node) == [Put([entry(2)], False)]


def test_notification_that_began_anew_tells_nothing_of_before() -> None:
    notification = Notification()
    notification.put(PutLog("g"), [entry(1)])
    assert puts_since("g", 7, notification.node) is None


def test_history_is_short() -> None:
    notification, log = Notification(), PutLog("g")
    rng = random.Random(1)
    for _ in range(200):
        tasks = sorted(rng.sample(range(10**6), rng.randrange(1, FEW)))
        notification.put(log, [entry(task) for task in tasks])
        assert len(notification.node.data) < 2 * HISTORY_BYTES
