"""What we write ourselves of ZooKeeper's protocol is what kazoo writes; no wake-up is lost."""

import os
import select

import pytest
from kazoo.protocol import serialization as stock
from kazoo.security import OPEN_ACL_UNSAFE

from shoal.coordination.session import client, wire


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


def is_awake(wakeup: client._Wakeup) -> bool:
    return bool(select.select([wakeup], [], [], 0)[0])


def test_many_wake_ups_are_one() -> None:
    wakeup = client._Wakeup()
    for _ in range(2):
        for _ in range(1000):
            wakeup.send(b"\0")
        assert is_awake(wakeup)
        wakeup.recv(1)
        assert not is_awake(wakeup)
        with pytest.raises(BlockingIOError):
            wakeup.recv(1)
    wakeup.close()


@pytest.mark.parametrize("moment", ["before it is read", "after it was read"])
def test_wake_up_that_comes_while_one_is_taken_makes_none_later_be_lost(
    monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    wakeup, read = client._Wakeup(), os.eventfd_read

    def read_while_another_thread_sends(fd: int) -> int:
        if moment == "before it is read":
            wakeup.send(b"\0")
        value = read(fd)
        if moment == "after it was read":
            wakeup.send(b"\0")
        return value

    wakeup.send(b"\0")
    monkeypatch.setattr(os, "eventfd_read", read_while_another_thread_sends)
    wakeup.recv(1)  # and now its taker looks what there is, also for the one that came just then
    wakeup.send(b"\0")
    assert is_awake(wakeup)
    wakeup.close()


def test_wake_up_that_is_taken_at_once_makes_none_later_be_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wakeup, write = client._Wakeup(), os.eventfd_write

    def write_while_another_thread_takes(fd: int, value: int) -> None:
        write(fd, value)
        wakeup.recv(1)

    monkeypatch.setattr(os, "eventfd_write", write_while_another_thread_takes)
    wakeup.send(b"\0")
    monkeypatch.undo()
    wakeup.send(b"\0")
    assert is_awake(wakeup)
    wakeup.close()
