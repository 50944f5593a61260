"""A claim is ended only while it is that very claim, whatever was lost, repeated or delayed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import ConnectionLoss, QueueEntry, TaskClaim, TaskQueue, ZkSession
from tests.integration.coordination.conftest import claim_request
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually
from tests.support.zookeeper.server import expire_session

End = Callable[[TaskQueue, list[TaskClaim]], Awaitable[None]]

ENDS: dict[str, End] = {
    "released": lambda queue, claims: queue.release(claims),
    "released after its end": lambda queue, claims: queue.release(claims, ended=True),
    "requeued": lambda queue, claims: queue.requeue(claims),
}


@pytest.fixture(params=ENDS)
def end(request: pytest.FixtureRequest) -> End:
    """One of the ways in which claims are ended."""
    return ENDS[request.param]


def entry(task: int) -> QueueEntry:
    return QueueEntry("default", 2, 1, 2, task, 0)


async def test_repetition_spares_the_claim_that_somebody_has_made_since(
    end: End, queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    """Ours is ended, the answer is lost, another claims the task; then the request is repeated."""
    theirs = TaskQueue(proxied)
    await queue.put([entry(1)])
    (ours,) = await theirs.claim("default", 1, "w")
    zk_proxy.swallow_from = claim_request()
    ending = asyncio.create_task(proxied.retry(lambda: end(theirs, [ours])))
    async with asyncio.timeout(DEADLINE_S):
        while await queue.claimed([1]):
            assert not ending.done()
    await queue.put([entry(1)])  # fine if it is there
    (another,) = await queue.claim("default", 1, "another")
    zk_proxy.drop()
    zk_proxy.heal()
    async with asyncio.timeout(DEADLINE_S):
        await ending
    assert await queue.claims() == {1: "another"}
    assert queue.holds(another)
    assert await queue.depth("default") == 0
    assert not theirs.holds(ours)


async def test_what_did_not_arrive_is_done_all_the_same(
    end: End, queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    theirs = TaskQueue(proxied)
    await queue.put([entry(1), entry(2)])
    claims = await theirs.claim("default", 2, "w")
    zk_proxy.freeze_from = claim_request()
    ending = asyncio.create_task(proxied.retry(lambda: end(theirs, claims)))
    await eventually(lambda: zk_proxy.freeze_from is None)
    assert len(await queue.claims()) == 2
    zk_proxy.drop()
    zk_proxy.heal()
    async with asyncio.timeout(DEADLINE_S):
        await ending
    assert await queue.claims() == {}


async def test_claim_of_an_earlier_session_is_not_that_of_the_present_one(
    end: End, queue: TaskQueue, proxied: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    """The same worker has claimed the same task again."""
    theirs = TaskQueue(proxied)
    await queue.put([entry(1)])
    (old,) = await theirs.claim("default", 1, "w")
    await expire_session(proxied, zookeeper)
    await eventually(lambda: proxied.generation == 2)
    await queue.put([entry(1)])
    (new,) = await proxied.retry(lambda: theirs.claim("default", 1, "w"))
    await proxied.retry(lambda: end(theirs, [old]))
    assert await queue.claims() == {1: "w"}
    assert await queue.depth("default") == 0
    assert theirs.holds(new)
    await end(theirs, [new])
    assert await queue.claims() == {}


async def test_claim_that_went_with_its_session_is_not_that_of_somebody_else(
    end: End, queue: TaskQueue, proxied: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    theirs = TaskQueue(proxied)
    await queue.put([entry(1)])
    claims = await theirs.claim("default", 1, "w")
    await expire_session(proxied, zookeeper)
    await eventually(lambda: proxied.generation == 2)
    await queue.put([entry(1)])
    assert len(await queue.claim("default", 1, "another")) == 1
    await proxied.retry(lambda: end(theirs, claims))
    assert await queue.claims() == {1: "another"}
    assert await queue.depth("default") == 0


async def test_claim_that_was_ended_is_not_a_later_one_of_the_same_session(
    end: End, queue: TaskQueue
) -> None:
    await queue.put([entry(1)])
    (old,) = await queue.claim("default", 1, "w")
    await queue.release([old])
    await queue.put([entry(1)])
    (new,) = await queue.claim("default", 1, "w")
    assert new.epoch > old.epoch
    await end(queue, [old])
    assert await queue.claims() == {1: "w"}


@pytest.mark.parametrize("how", ["released", "requeued"])
async def test_claim_that_was_deleted_and_made_by_another_is_left_alone(
    how: str, queue: TaskQueue, tree: ZkSession, proxied: ZkSession
) -> None:
    """No answer was lost: somebody has deleted it by hand."""
    theirs = TaskQueue(proxied)
    await queue.put([entry(1)])
    (ours,) = await theirs.claim("default", 1, "w")
    await tree.delete(ours.path)
    await queue.put([entry(1)])
    assert len(await queue.claim("default", 1, "another")) == 1
    await ENDS[how](theirs, [ours])
    assert await queue.claims() == {1: "another"}
    assert await queue.depth("default") == 0


async def test_end_without_an_answer_says_so(
    end: End, queue: TaskQueue, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    theirs = TaskQueue(proxied)
    await queue.put([entry(1)])
    claims = await theirs.claim("default", 1, "w")
    zk_proxy.cut()
    with pytest.raises(ConnectionLoss):
        await end(theirs, claims)
    zk_proxy.heal()


async def test_claims_that_somebody_else_has_deleted_are_told_once(
    queue: TaskQueue, tree: ZkSession, proxied: ZkSession
) -> None:
    theirs = TaskQueue(proxied)
    assert await theirs.lost() == []
    await queue.put([entry(task) for task in range(6)])
    mine = await queue.claim("default", 2, "w")
    claims = await theirs.claim("default", 4, "w")
    assert await theirs.lost() == []
    await tree.delete(claims[0].path)
    await tree.delete(claims[2].path)
    await queue.put([entry(4)])
    assert len(await queue.claim("default", 1, "another")) == 1  # one is somebody else's now
    assert await theirs.lost() == [claims[0], claims[2]]
    assert await theirs.lost() == []
    assert await theirs.standing([*claims, *mine]) == {claims[1], claims[3]}
    await theirs.release([claims[1]])
    await theirs.requeue([claims[3]])
    assert await theirs.lost() == []  # these we have ended ourselves
    assert await queue.lost() == []


async def test_thousands_of_claims_are_looked_at_with_two_requests(
    queue: TaskQueue, tree: ZkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.put([entry(task) for task in range(3000)])
    claims: list[TaskClaim] = []
    while len(claims) < 3000:
        claims += await queue.claim("default", 3000 - len(claims), "w")
    await tree.delete(claims[7].path)
    asked: list[str] = []
    ask = tree._request

    def counted(verb: str, *args: object, **options: object) -> object:
        asked.append(verb)
        return ask(verb, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(tree, "_request", counted)
    assert await queue.lost() == [claims[7]]
    beats = asked.count("sync") - 2  # of the session, if any
    assert [verb for verb in asked if verb != "sync"] == ["ephemerals", "exists"]
    assert beats >= 0
