"""Every part works on, whatever another program writes at the paths that it reads, or deletes."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest

from shoal.coordination import (
    BalancedJobs,
    CoordinationError,
    Election,
    ElectionListener,
    Members,
    Membership,
    Mismatch,
    NodeExists,
    NoNode,
    Notifications,
    TaskQueue,
    ZkSession,
    leader_of,
    notify,
    prepare,
    znodes,
)
from shoal.coordination.autoscale import Autoscaler, Observation, ScalingSettings
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.tree import TreeKeeper
from shoal.coordination.messages import Consumer, Producer, dead_letters, waiting
from shoal.coordination.quarantine import _remove
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.given import entry
from tests.integration.coordination.group.group_bench import QUICK
from tests.support.waiting import DEADLINE_S, eventually

JUNK = (
    b"",
    b"\xff\x00 not json",
    b'{"id": "\\ud800"}',
    b'"\xed\xa0\x80"',
    b"[[1]]",
    b"9" * 5000,
    b"-7",
    b"{" * 50_000,
    b"x" * 50_000,  # not more: servers keep the latest 500 writes in memory
)
NAMES = ("junk", "%", "%ff", "%ED%A0%80", "-1", "9" * 12, "9" * 5000, "0", "\u0661", "n" * 1000)

Works = Callable[[], Awaitable[None]]
Part = Callable[[ZkSession], AbstractAsyncContextManager[Works]]


@asynccontextmanager
async def queue(session: ZkSession) -> AsyncIterator[Works]:
    claimed = TaskQueue(session)
    numbers = iter(range(1, 1_000_000))

    async def put(task: int) -> None:
        while True:
            try:
                return await claimed.put([entry(task)])
            except NoNode:  # the tree is made again by the keeper
                await asyncio.sleep(0.01)

    async def works() -> None:
        """A task that is put now is claimed now."""
        task = next(numbers)
        await session.retry(lambda: put(task))
        while True:
            claims = await session.retry(lambda: claimed.claim("default", 4, "me"))
            await claimed.release(claims)
            if task in {claim.task_instance_id for claim in claims}:
                break
            await claimed.wait("default", timeout_s=0.2)
        assert "default" in await claimed.groups()
        assert task not in await claimed.claims()
        assert await claimed.depth("default") >= 0

    async with TreeKeeper(session, 4, reread_s=0.05):
        yield works


@asynccontextmanager
async def membership(session: ZkSession) -> AsyncIterator[Works]:
    async with (
        Members(session, "/workers", reread_s=0.05) as members,
        Membership(session, "/workers", "a", {"load": 1}, reread_s=0.05),
    ):

        async def works() -> None:
            await eventually(lambda: members.current().get("a") and is_right())
            found = await members.lookup("a")
            assert found is None or found.id == "a"

        def is_right() -> bool:
            return members.current()["a"].data == {"load": 1}

        yield works


@asynccontextmanager
async def notifications(session: ZkSession) -> AsyncIterator[Works]:
    heard: set[int] = set()
    async with Notifications(session, heard.add) as subscribed:
        subscribed.subscribe({1, 2})

        async def works() -> None:
            heard.clear()
            while heard != {1, 2}:
                await notify(session, [1, 2])
                await asyncio.sleep(0.01)

        yield works


@asynccontextmanager
async def tree_keeper(session: ZkSession) -> AsyncIterator[Works]:
    async with TreeKeeper(session, 4, reread_s=0.05) as keeper:

        async def works() -> None:
            while not await is_whole():
                await asyncio.sleep(0.01)

        async def is_whole() -> bool:
            try:
                config = layout.read_config((await session.get(layout.CONFIG)).data)
                names = set((await session.children(layout.PARTITIONS)).names)
                buckets = set((await session.children(layout.CLAIMS)).names)
            except (NoNode, Mismatch):
                return False
            wanted = layout.partition_names(4), layout.claim_names()
            return config is not None and config.partitions == 4 and (names, buckets) == wanted

        yield works
        assert keeper.other is None


@asynccontextmanager
async def election(session: ZkSession) -> AsyncIterator[Works]:
    async with Election(session, "e", "me", ElectionListener()) as candidate:

        async def works() -> None:
            while True:
                leader = await leader_of(session, "e")
                if leader and (leader.candidate_id, leader.epoch) == ("me", candidate.epoch):
                    return
                await asyncio.sleep(0.01)

        yield works


class Target:
    """A target of the autoscaler that counts."""

    def __init__(self) -> None:
        self.has = 0
        self.scaled = asyncio.Event()

    async def count(self) -> int:
        return self.has

    async def scale_to(self, count: int) -> None:
        self.has = count
        self.scaled.set()

    async def release(self) -> None:
        self.has = 0


@asynccontextmanager
async def autoscaler(session: ZkSession) -> AsyncIterator[Works]:
    target, settings = Target(), ScalingSettings(min_count=1, max_count=4, slots=1)

    async def observe() -> Observation:
        return Observation(backlog=3, running=0)

    async with Autoscaler(session, "a", "me", observe, target, settings, interval_s=0.02):

        async def works() -> None:
            target.scaled.clear()
            await target.scaled.wait()
            await eventually(lambda: target.has >= 1)

        yield works


@asynccontextmanager
async def jobs(session: ZkSession) -> AsyncIterator[Works]:
    async def run(_job: str, _epoch: int) -> None:
        await asyncio.Event().wait()

    async with BalancedJobs(session, "j", "me", ["Oslo", "Rome"], run, settings=QUICK) as share:

        async def works() -> None:
            await eventually(lambda: share.running == {"Oslo", "Rome"})

        yield works


@asynccontextmanager
async def messages(session: ZkSession) -> AsyncIterator[Works]:
    numbers = map(str, iter(uuid.uuid4, None))
    async with (
        Producer(session, "t", partitions=1) as producer,
        Consumer(session, "t", "me", group_settings=QUICK) as consumer,
    ):

        async def works() -> None:
            name = f"m-{next(numbers)}"
            await producer.put("key", name.encode(), message_id=name)
            async for delivery in consumer:
                await delivery.ack()
                if delivery.id == name:
                    break
            await dead_letters(session, "t")
            assert await waiting(session, "t") >= 0

        for place in ("waiting", "dead", "ids"):
            await session.ensure(f"/messages/t/000/{place}/000000000")
        yield works


PARTS: tuple[Part, ...] = (
    queue,
    membership,
    notifications,
    tree_keeper,
    election,
    autoscaler,
    jobs,
    messages,
)
ANY = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)


async def all_paths(session: ZkSession, below: str = "") -> list[str]:
    """Return the paths of the tree, of many equal ones the first; quarantine left out."""
    with suppress(NoNode):
        names = sorted((await session.children(below or "/")).names)
        few = [name for name in names if f"{below}/{name}" != znodes.QUARANTINE]
        few = few[:3] if len(few) > 16 else few
        paths = [f"{below}/{name}" for name in few]
        return paths + [each for path in paths for each in await all_paths(session, path)]
    return []


async def part_begins_again(part: Part, session: ZkSession) -> None:
    """The next process reads all that the one before has left."""
    async with part(session) as works:
        await still(works)


async def still(works: Works) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                return await works()
            except CoordinationError as error:
                if not error.retriable:  # the connection broke: the machine is busy
                    raise
            await asyncio.sleep(0.1)


@ANY
async def test_data_that_makes_no_sense_stops_no_part(
    session: ZkSession, zk_chroot: str, part: Part
) -> None:
    await prepare(session, 4)
    async with connect(zk_chroot) as other, part(session) as works:
        await still(works)
        for junk in JUNK:
            for path in await all_paths(other):
                if path != znodes.messages("t"):  # that is Mismatch, which names it
                    with suppress(NoNode):
                        await other.set(path, junk)
            await still(works)
    await part_begins_again(part, session)


@ANY
async def test_names_that_make_no_sense_stop_no_part(
    session: ZkSession, zk_chroot: str, part: Part
) -> None:
    await prepare(session, 4)
    async with connect(zk_chroot) as other, part(session) as works:
        await still(works)
        folders = [
            path
            for path in await all_paths(other)
            if (stat := await other.exists(path)) and not stat.session_id
        ]
        for name in NAMES:
            for folder in folders:
                with suppress(NoNode, NodeExists):
                    await other.create(f"{folder}/{name}", b"")
        await still(works)
    await part_begins_again(part, session)


@ANY
async def test_tree_deleted_while_in_use_is_made_again(
    session: ZkSession, zk_chroot: str, part: Part
) -> None:
    await prepare(session, 4)
    async with connect(zk_chroot) as other, part(session) as works:
        await still(works)
        for name in sorted((await other.children("/")).names):
            with suppress(NoNode, CoordinationError):
                await _remove(other, f"/{name}", -1)
        await still(works)
