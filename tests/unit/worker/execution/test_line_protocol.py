"""Messages over a socket, one per line."""

import asyncio
import socket

from shoal.worker.processes.line_protocol import Lines
from tests.support.waiting import DEADLINE_S, eventually


async def connected(heard: list[bytes]) -> tuple[Lines, socket.socket]:
    """Return one end as ``Lines`` and the other one, which blocks for a moment at most."""
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    _, lines = await loop.create_unix_connection(lambda: Lines(heard.append), sock=ours)
    theirs.settimeout(DEADLINE_S)
    return lines, theirs


async def test_lines_come_whole_however_they_were_cut() -> None:
    heard: list[bytes] = []
    lines, theirs = await connected(heard)
    long = b"x" * 3_000_000
    with theirs:
        for piece in (b"on", b"e\ntwo\nth", b"r", b"ee\n", b"\n"):
            theirs.sendall(piece)
            await asyncio.sleep(0)
        await asyncio.to_thread(theirs.sendall, long + b"\nhalf a li")
        await eventually(lambda: len(heard) == 5)
    async with asyncio.timeout(DEADLINE_S):
        await lines.lost.wait()
    assert heard == [b"one", b"two", b"three", b"", long]


async def test_the_sender_waits_for_a_reader_that_is_slow_but_not_for_one_that_is_gone() -> None:
    lines, theirs = await connected([])
    with theirs:
        for _ in range(100):
            lines.send(b"x" * 100_000)
        waiting = asyncio.create_task(lines.room())
        await asyncio.sleep(0)
        assert not waiting.done()
    async with asyncio.timeout(DEADLINE_S):
        await waiting
        await lines.lost.wait()
    lines.send(b"it is lost")
    await lines.room()
