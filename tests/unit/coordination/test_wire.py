"""What we write ourselves of ZooKeeper's protocol is what kazoo writes; no wake-up is lost."""

import select
import threading
from collections import deque

import pytest
from kazoo.protocol import serialization as stock
from kazoo.security import OPEN_ACL_UNSAFE

from shoal.coordination import wire


@pytest.mark.parametrize("path", ["/", "/queue/a b/2-000000001", "/größe/ß"])
@pytest.mark.parametrize("data", [b"", b"x" * 300])
def test_requests_are_those_of_kazoo(path: str, data: bytes) -> None:
    for flags in (wire.PERSISTENT, wire.EPHEMERAL, wire.EPHEMERAL | wire.SEQUENTIAL):
        theirs = stock.Create2(path, data, OPEN_ACL_UNSAFE, flags)
        assert wire.create(path, data, flags).serialize() == theirs.serialize()
    for version in (-1, 0, 7):
        assert wire.delete(path, version).serialize() == stock.Delete(path, version).serialize()


def test_transaction_is_that_of_kazoo() -> None:
    theirs = [
        stock.Delete("/a", 3),
        stock.Create2("/b", b"data", OPEN_ACL_UNSAFE, wire.EPHEMERAL),
        stock.SetData("/c", b"", -1),
        stock.CheckVersion("/d", 5),
    ]
    ours = [
        wire.delete("/a", 3),
        wire.create("/b", b"data", wire.EPHEMERAL),
        wire.set_data("/c", b""),
        wire.check("/d", 5),
    ]
    assert wire.multi(ours).serialize() == stock.Transaction(theirs).serialize()
    assert wire.multi([]).serialize() == stock.Transaction([]).serialize()


def test_many_wake_ups_are_one() -> None:
    wakeup = wire._Wakeup()
    for _ in range(2):
        for _ in range(1000):
            wakeup.send(b"\0")
        assert select.select([wakeup], [], [], 0)[0]
        wakeup.recv(1)
        assert not select.select([wakeup], [], [], 0)[0]
        with pytest.raises(BlockingIOError):
            wakeup.recv(1)
    wakeup.close()


def test_no_wake_up_is_lost_between_threads() -> None:
    wakeup, queue, count = wire._Wakeup(), deque[int](), 100_000
    taken: list[int] = []

    def take() -> None:
        while len(taken) < count:
            assert select.select([wakeup], [], [], 60)[0], f"{len(queue)} wait and nobody comes"
            wakeup.recv(1)
            while queue:
                taken.append(queue.popleft())

    taker = threading.Thread(target=take)
    taker.start()
    for number in range(count):
        queue.append(number)
        wakeup.send(b"\0")
    taker.join()
    assert taken == list(range(count))
    wakeup.close()
