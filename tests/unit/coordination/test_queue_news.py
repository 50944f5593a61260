"""What a bell tells is all that happened since, or it is no use."""

import random

import pytest

from shoal.coordination.queue.entry import Entry
from shoal.coordination.queue.news import FEW, HISTORY_BYTES, Put, Teller, puts_since
from shoal.coordination.session.nodes import Node
from shoal.coordination.session.wire import Stat


def entry(task: int, group: str = "g") -> Entry:
    return Entry(group, task % 5, task // 7, task % 3, task, task % 128)


def stat(version: int) -> Stat:
    return Stat(9, 9, 9, version, 0, 0, 0, 0)


class Bell:
    """A group's znode: its version counts what is written."""

    def __init__(self) -> None:
        self.node = Node(b"", stat(0))

    def ring(self, data: bytes) -> Stat:
        self.node = Node(data, stat(self.node.stat.version + 1))
        return self.node.stat

    def put(self, teller: Teller, batch: list[Entry]) -> None:
        operation, news = teller.bell(batch)
        teller.told(news, self.ring(operation.data))


def test_puts_are_told_to_whoever_has_heard_of_those_before() -> None:
    bell, teller = Bell(), Teller("g")
    batches = [[entry(task), entry(task + 1)] for task in range(0, 10, 2)]
    for batch in batches:
        bell.put(teller, batch)
    for version in range(6):
        told = puts_since("g", version, bell.node)
        assert told == [Put(batch, more=False) for batch in batches[version:]]


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, 250])
def test_of_a_long_put_the_first_entry_is_told(count: int) -> None:
    bell, teller = Bell(), Teller("g")
    batch = [entry(task) for task in range(count)]
    bell.put(teller, batch)
    assert puts_since("g", 0, bell.node) == [
        Put(batch, more=False) if count <= FEW else Put(batch[:1], more=True)
    ]


def test_rings_of_others_are_a_gap() -> None:
    bell, ours, theirs = Bell(), Teller("g"), Teller("g")
    bell.put(ours, [entry(1)])  # version 1
    bell.put(theirs, [entry(2)])
    bell.put(ours, [entry(3)])
    bell.put(ours, [entry(4)])
    assert puts_since("g", 0, bell.node) is None
    assert puts_since("g", 1, bell.node) is None
    assert puts_since("g", 2, bell.node) == [Put([entry(3)], False), Put([entry(4)], False)]
    bell.ring(b"")  # tells nothing
    assert puts_since("g", 4, bell.node) is None
    assert puts_since("g", 5, bell.node) == []


def test_put_whose_answer_is_not_there_yet_is_a_gap() -> None:
    bell, teller = Bell(), Teller("g")
    first, _ = teller.bell([entry(1)])
    second, news = teller.bell([entry(2)])
    bell.ring(first.data)
    teller.told(news, bell.ring(second.data))
    assert puts_since("g", 0, bell.node) is None
    assert puts_since("g", 1, bell.node) == [Put([entry(2)], False)]


def test_bell_that_began_anew_tells_nothing_of_before() -> None:
    bell = Bell()
    bell.put(Teller("g"), [entry(1)])
    assert puts_since("g", 7, bell.node) is None


def test_history_is_short() -> None:
    bell, teller = Bell(), Teller("g")
    rng = random.Random(1)
    for _ in range(200):
        tasks = sorted(rng.sample(range(10**6), rng.randrange(1, FEW)))
        bell.put(teller, [entry(task) for task in tasks])
        assert len(bell.node.data) < 2 * HISTORY_BYTES
