"""Requests that the server would not accept are refused here, and harm no user of the session.

The server closes the connection on which a request is too large (jute.maxbuffer), and a value that
has no form on the wire would fail on the connection's thread. Either would be a lost connection to
every user of the session, and be sent again with the next one.
"""

from collections.abc import Awaitable, Callable

import pytest

from shoal.coordination import (
    Create,
    Election,
    ElectionListener,
    SessionState,
    SetData,
    ZkSession,
)
from shoal.coordination.cluster.membership import Membership
from shoal.coordination.errors import CoordinationError, InvalidPath, MalformedRequest, TooLarge
from shoal.coordination.session.wire import MAX_REQUEST_BYTES
from tests.integration.coordination.conftest import connect

BIG = bytes(1_500_000)

Call = Callable[[ZkSession], Awaitable[object]]

TOO_LARGE: dict[str, Call] = {
    "create": lambda s: s.create("/big", BIG),
    "create with parents": lambda s: s.create("/a/big", BIG, makepath=True),
    "set": lambda s: s.set("/", BIG),
    "multi": lambda s: s.multi([Create("/a", BIG[:600_000]), SetData("/", BIG[:600_000])]),
    "path of a read": lambda s: s.get("/" + "x" * 1_500_000),
    "path of a delete": lambda s: s.delete("/" + "x" * 1_500_000),
}
MALFORMED: dict[str, Call] = {
    "lone surrogate": lambda s: s.create("/\ud800"),
    "text for bytes": lambda s: s.set("/", "text"),  # type: ignore[arg-type]
    "version": lambda s: s.set("/", b"", version=2**31),
    "within a multi": lambda s: s.multi([Create("/b"), Create("/\ud800")]),
}


async def refused(session: ZkSession, call: Call, error: type[CoordinationError]) -> str:
    """Return the text of the error; the connection has been the same all the time."""
    states: list[SessionState] = []
    end = session.on_state(states.append)
    with pytest.raises(error) as failure:
        await session.retry(lambda: call(session))
    await session.sync()
    end()
    assert states == []
    assert failure.value.is_final
    assert not failure.value.retriable
    assert len(str(failure.value)) < 1000
    return str(failure.value)


@pytest.mark.parametrize("call", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_a_request_that_is_too_large_is_not_sent(session: ZkSession, call: Call) -> None:
    said = await refused(session, call, TooLarge)
    assert str(MAX_REQUEST_BYTES) in said
    assert "jute.maxbuffer" in said
    assert "zookeeper_max_request_bytes" in said


@pytest.mark.parametrize("call", MALFORMED.values(), ids=MALFORMED)
async def test_a_request_without_a_form_on_the_wire_is_not_sent(
    session: ZkSession, call: Call
) -> None:
    assert "cannot be sent" in await refused(session, call, MalformedRequest)


@pytest.mark.parametrize("path", ["/..", "/.", "/a\0b", "/a\x01b"])
async def test_a_path_that_the_server_refuses_is_not_tried_again(
    session: ZkSession, path: str
) -> None:
    await refused(session, lambda s: s.create(path), InvalidPath)


async def test_the_limit_is_exactly_that_of_the_server(session: ZkSession) -> None:
    """One byte less is stored; one more is refused, so nothing between is lost."""
    await session.create("/full")
    with pytest.raises(TooLarge) as failure:
        await session.set("/full", BIG)
    room = MAX_REQUEST_BYTES - (failure.value.size - len(BIG))
    await session.set("/full", bytes(room))
    assert len((await session.get("/full")).data) == room
    with pytest.raises(TooLarge):
        await session.set("/full", bytes(room + 1))


async def test_a_session_may_be_given_another_limit(zk_chroot: str) -> None:
    async with connect(zk_chroot, max_request_bytes=100_000) as session:
        with pytest.raises(TooLarge, match="requests of 100000"):
            await session.create("/x", bytes(100_000))


async def test_the_data_of_a_candidate_is_checked_at_construction(session: ZkSession) -> None:
    with pytest.raises(TooLarge, match="owner node of process-7"):
        Election(session, "e", "process-7", ElectionListener(), data={"text": "x" * 1_200_000})


async def test_the_data_of_a_member_is_checked_before_it_is_taken(session: ZkSession) -> None:
    with pytest.raises(TooLarge, match="member m"):
        Membership(session, "/members", "m", {"text": "x" * 1_200_000})
    await session.create("/members")
    async with Membership(session, "/members", "m", {"text": "small"}) as membership:
        with pytest.raises(TooLarge, match="member m"):
            await membership.update({"text": "x" * 1_200_000})
        assert b"small" in (await session.get("/members/m")).data
