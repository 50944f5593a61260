"""Whatever happens to the servers of an ensemble, nobody acts twice and nothing is lost.

Three processes stand for election, share partitions and consume a topic, while messages and tasks
are put. Their servers are killed, stand still, and come back. All of it goes on by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Self

import pytest

from shoal.coordination import (
    CoordinationError,
    Election,
    ElectionListener,
    FairShare,
    GroupSettings,
    OwnerNodes,
    OwnershipListener,
    Partition,
    SessionState,
    TaskQueue,
    ZkSession,
    prepare,
)
from shoal.coordination.messages import Consumer, ConsumerSettings, Producer, waiting
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.given import entry
from tests.support.waiting import START_S, eventually
from tests.support.zookeeper.ensemble import Ensemble, EnsembleServer

KEYS = [f"k{number}" for number in range(4)]
ROOMS = [Partition("rooms", index) for index in range(4)]
TASKS = [entry(number) for number in range(20)]
GROUP = GroupSettings(initial_rebalance_delay_s=0.0, reread_s=1.0)
CONSUMER = ConsumerSettings(ack_wait_s=5.0, max_deliveries=1000)
PATIENT_S = 60.0  # of sessions that outlive a fault: it is over in a few seconds
SHORT_S = 8.0  # of sessions that a fault is to end

pytestmark = pytest.mark.timeout(600)


def owner_path(room: Partition) -> str:
    return f"/rooms/{room.index}/owner"


class Ledger:
    """Who holds what, and what must never have been."""

    def __init__(self) -> None:
        self.holders: dict[str, str] = {}
        self.epochs: dict[str, int] = {}
        self.lost: list[tuple[str, str]] = []
        self.delivered: dict[str, list[int]] = {key: [] for key in KEYS}
        self.broken: list[str] = []

    def begin(self, what: str, who: str, epoch: int) -> None:
        if what in self.holders:
            self.broken.append(f"{who} begins with {what}, which {self.holders[what]} holds")
        if epoch <= self.epochs.get(what, 0):
            self.broken.append(f"{who} has {what} with {epoch} after {self.epochs[what]}")
        self.holders[what], self.epochs[what] = who, epoch

    def end(self, what: str, who: str, *, lost: bool = False) -> None:
        if self.holders.get(what) == who:
            del self.holders[what]
        if lost:
            self.lost.append((what, who))


class Site(ElectionListener):
    """One process with a session of its own, and all that it takes part in."""

    def __init__(self, name: str, address: str, ledger: Ledger, timeout_s: float) -> None:
        self.name, self.ledger = name, ledger
        self.session = connect(address, name=name, session_timeout_s=timeout_s, close_timeout_s=1.0)
        self.stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.stack.enter_async_context(self.session)
        await self.stack.enter_async_context(Election(self.session, "e", self.name, self))
        nodes = OwnerNodes(owner_path, self.name)
        listener = OwnershipListener(self._acquired, self._released, self._lost_rooms)
        share = FairShare(self.session, "rooms", {"rooms": 4}, nodes, listener, settings=GROUP)
        await self.stack.enter_async_context(share)
        consuming = asyncio.create_task(self._consume())

        async def stop() -> None:
            consuming.cancel()
            await asyncio.gather(consuming, return_exceptions=True)

        self.stack.push_async_callback(stop)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    async def on_elected(self, epoch: int) -> None:
        self.ledger.begin("leader", self.name, epoch)

    async def on_deposed(self) -> None:
        self.ledger.end("leader", self.name)

    async def on_lost(self) -> None:
        self.ledger.end("leader", self.name, lost=True)

    async def _acquired(self, room: Partition, epoch: int) -> None:
        self.ledger.begin(f"room {room.index}", self.name, epoch)

    async def _released(self, room: Partition) -> None:
        self.ledger.end(f"room {room.index}", self.name)

    async def _lost_rooms(self, rooms: frozenset[Partition]) -> None:
        for room in rooms:
            self.ledger.end(f"room {room.index}", self.name, lost=True)

    async def _consume(self) -> None:
        consumer = Consumer(
            self.session, "t", self.name, settings=CONSUMER, group_settings=GROUP, partitions=4
        )
        async with consumer:
            async for delivery in consumer:
                key, number = delivery.id.split("-")
                self.ledger.delivered[key].append(int(number))
                try:
                    await delivery.ack()
                except CoordinationError:
                    continue  # it comes again, here or elsewhere, if it is still there


class Load:
    """Puts messages and tasks until it is stopped, each again until it is known to be stored."""

    def __init__(self, session: ZkSession) -> None:
        self.session, self.queue = session, TaskQueue(session)
        self.count = 0
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await prepare(self.session, 4)
        await asyncio.gather(
            *(self.session.create(f"/rooms/{room.index}", makepath=True) for room in ROOMS)
        )
        self._task = asyncio.create_task(self._put())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def stop(self) -> None:
        """Return when all is stored."""
        assert self._task is not None
        self._stopped = True
        await self._task

    async def _put(self) -> None:
        async with Producer(self.session, "t", partitions=4) as producer:
            while not self._stopped:
                for key in KEYS:
                    put = partial(producer.put, key, b"", message_id=f"{key}-{self.count}")
                    await self._stored(put)
                if self.count < len(TASKS):
                    await self._stored(partial(self.queue.put, [TASKS[self.count]]))
                self.count += 1
                await asyncio.sleep(0.05)

    async def _stored(self, put: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await self.session.retry(put)
                return
            except CoordinationError:
                await self.session.connected()
                await asyncio.sleep(0.05)


class Trial:
    """An ensemble at work, a fault, and the verdict."""

    def __init__(self, ensemble: Ensemble, chroot: str) -> None:
        self.ensemble, self.ledger = ensemble, Ledger()
        self._path = chroot.partition("/")[2]
        self.sites: list[Site] = []
        self.load: Load

    def address(self, *servers: EnsembleServer) -> str:
        return ",".join(server.address for server in servers) + f"/{self._path}"

    async def run(
        self,
        fault: Callable[[], Awaitable[None]],
        timeout_s: float,
        pinned: EnsembleServer | None = None,
    ) -> None:
        """Let three sites work, one of them at the server ``pinned`` alone, and bring the fault."""
        every = self.address(*self.ensemble.servers)
        homes = [every, every, self.address(pinned) if pinned else every]
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(connect(every, session_timeout_s=PATIENT_S))
            self.load = await stack.enter_async_context(Load(session))
            for number, home in enumerate(homes):
                site = Site(f"site {number}", home, self.ledger, timeout_s)
                self.sites.append(await stack.enter_async_context(site))
            await self.all_at_work()
            before = self.load.count
            await fault()
            await self.all_at_work()
            await eventually(lambda: self.load.count > before + 10, START_S)
            await self.load.stop()
            async with asyncio.timeout(START_S):
                while await session.retry(lambda: waiting(session, "t")):
                    await asyncio.sleep(0.05)
            await self._tasks_are_there(session)
        assert self.ledger.broken == []
        for key, numbers in self.ledger.delivered.items():
            assert set(numbers) == set(range(self.load.count)), key
            assert numbers == sorted(numbers), key

    async def all_at_work(self) -> None:
        """Return when there is a leader and each room has an owner."""
        await eventually(lambda: len(self.ledger.holders) == 1 + len(ROOMS), START_S)

    async def _tasks_are_there(self, session: ZkSession) -> None:
        """Each task is in the queue, once, and can be claimed."""
        expected = {one.task_instance_id for one in TASKS[: self.load.count]}
        claimed: list[int] = []
        async with asyncio.timeout(START_S):
            while len(claimed) < len(expected):
                claims = await self.load.queue.claim("default", len(TASKS), "worker")
                claimed += [claim.entry.task_instance_id for claim in claims]
        assert sorted(claimed) == sorted(expected)

    def nothing_was_handed_over(self) -> None:
        assert self.ledger.lost == []
        assert {site.session.generation for site in self.sites} == {1}


@pytest.fixture
def trial(ensemble: Ensemble, ensemble_chroot: str) -> Trial:
    return Trial(ensemble, ensemble_chroot)


async def ready(ensemble: Ensemble) -> None:
    await asyncio.to_thread(ensemble.wait_ready)


async def test_the_leading_server_is_killed(trial: Trial, ensemble: Ensemble) -> None:
    async def fault() -> None:
        leader = await asyncio.to_thread(ensemble.leader)
        await asyncio.to_thread(leader.kill)
        await asyncio.to_thread(ensemble.leader)
        await asyncio.gather(*(site.session.retry(site.session.sync) for site in trial.sites))

    await trial.run(fault, PATIENT_S)
    trial.nothing_was_handed_over()


async def test_the_leading_server_stands_still_until_another_one_leads(
    trial: Trial, ensemble: Ensemble
) -> None:
    async def fault() -> None:
        old = await asyncio.to_thread(ensemble.leader)
        old.pause()
        try:
            # One that stands still answers nothing, so it is not found.
            assert await asyncio.to_thread(ensemble.leader) is not old
            await trial.all_at_work()
        finally:
            old.go_on()
        await ready(ensemble)

    await trial.run(fault, SHORT_S)


async def test_a_follower_stands_still_and_comes_back_with_what_it_knew(
    trial: Trial, ensemble: Ensemble
) -> None:
    """What its clients own passes to others before it is back; nobody believes its old view."""
    follower = (await asyncio.to_thread(ensemble.followers))[0]

    async def fault() -> None:
        alone = trial.sites[-1]
        await eventually(lambda: alone.name in trial.ledger.holders.values(), START_S)
        follower.pause()
        try:
            await eventually(lambda: alone.name not in trial.ledger.holders.values(), START_S)
            await trial.all_at_work()  # without it
        finally:
            follower.go_on()
        await ready(ensemble)
        await eventually(lambda: alone.session.state is SessionState.CONNECTED, START_S)
        await eventually(lambda: alone.name in trial.ledger.holders.values(), START_S)

    await trial.run(fault, SHORT_S, pinned=follower)


async def test_an_observer_serves_while_the_leader_changes(
    trial: Trial, ensemble: Ensemble
) -> None:
    ensemble.observer.start()
    await asyncio.to_thread(ensemble.observer.wait_ready, START_S)

    async def fault() -> None:
        leader = await asyncio.to_thread(ensemble.leader)
        await asyncio.to_thread(leader.kill)
        await asyncio.gather(*(site.session.retry(site.session.sync) for site in trial.sites))

    await trial.run(fault, PATIENT_S, pinned=ensemble.observer)
    trial.nothing_was_handed_over()


async def test_a_quorum_that_is_soon_there_again_costs_nothing(
    trial: Trial, ensemble: Ensemble
) -> None:
    async def fault() -> None:
        leader = await asyncio.to_thread(ensemble.leader)
        followers = await asyncio.to_thread(ensemble.followers)
        for server in followers:
            server.pause()
        try:
            async with asyncio.timeout(START_S):
                while await asyncio.to_thread(lambda: leader.is_leader):
                    await asyncio.sleep(0.05)
        finally:
            for server in followers:
                server.go_on()
        await ready(ensemble)
        await asyncio.gather(*(site.session.retry(site.session.sync) for site in trial.sites))

    await trial.run(fault, PATIENT_S)
    trial.nothing_was_handed_over()


async def test_without_a_quorum_for_longer_than_the_session_all_stop_and_begin_anew(
    trial: Trial, ensemble: Ensemble
) -> None:
    async def fault() -> None:
        for server in ensemble.servers[1:]:
            await asyncio.to_thread(server.kill)
        await eventually(lambda: not trial.ledger.holders, START_S)
        ensemble.start()
        await ready(ensemble)

    await trial.run(fault, SHORT_S)


async def test_all_servers_are_restarted_one_after_the_other(
    trial: Trial, ensemble: Ensemble
) -> None:
    async def fault() -> None:
        for server in ensemble.servers:
            await asyncio.to_thread(server.stop)
            server.start()
            await ready(ensemble)
            await asyncio.gather(*(site.session.retry(site.session.sync) for site in trial.sites))

    await trial.run(fault, PATIENT_S)
    trial.nothing_was_handed_over()
