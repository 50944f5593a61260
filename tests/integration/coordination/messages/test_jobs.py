"""Each job runs in one process at a time, and every process has its share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import BalancedJobs, GroupSettings, ZkSession, znodes
from shoal.coordination.session.nodes import Create, Delete
from tests.integration.coordination.conftest import connect, eventually
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S
from tests.support.zookeeper.server import expire_session

GROUP = GroupSettings(initial_rebalance_delay_s=0.0, reread_s=1.0)


class Floor:
    """Where all jobs of all processes run: it notes who runs what, and that nobody runs it too."""

    def __init__(self) -> None:
        self.running: dict[str, str] = {}  # job -> process
        self.epochs: dict[str, list[int]] = {}
        self.moved: list[tuple[str, str]] = []  # job, process
        self.fail: set[str] = set()
        self.wrong: list[str] = []

    def runner(self, process: str) -> "Runner":
        return Runner(self, process)


class Runner:
    def __init__(self, floor: Floor, process: str) -> None:
        self.floor, self.process = floor, process

    async def __call__(self, job: str, epoch: int) -> None:
        floor = self.floor
        if job in floor.running:
            floor.wrong.append(f"{job} runs twice")
        epochs = floor.epochs.setdefault(job, [])
        if not epochs or epochs[-1] != epoch:
            if epoch < max(epochs, default=0):
                floor.wrong.append(f"{job}: epoch {epoch} after {epochs}")
            epochs.append(epoch)
            floor.moved.append((job, self.process))
        if job in floor.fail:
            floor.fail.discard(job)
            raise RuntimeError("this job fails once")
        floor.running[job] = self.process
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # as somebody who has to finish something
            del floor.running[job]


JOBS = [f"job {number}" for number in range(9)]


@asynccontextmanager
async def process(
    floor: Floor, session: ZkSession, name: str, jobs: list[str] = JOBS
) -> AsyncIterator[BalancedJobs]:
    async with BalancedJobs(
        session, "b", name, jobs, floor.runner(name), settings=GROUP
    ) as balanced:
        yield balanced
    assert not floor.wrong


async def test_jobs_are_shared_and_only_what_must_move_moves(
    session: ZkSession, zk_chroot: str
) -> None:
    floor = Floor()
    async with process(floor, session, "one") as one:
        await eventually(lambda: len(floor.running) == 9)
        assert one.running == set(JOBS)
        async with connect(zk_chroot) as other, process(floor, other, "two"):
            await eventually(lambda: list(floor.running.values()).count("two") == 4)
            await eventually(lambda: len(floor.running) == 9)
            assert len(floor.moved) == 9 + 4
        await eventually(lambda: set(floor.running.values()) == {"one"})
        await eventually(lambda: len(floor.running) == 9)
        assert len(floor.moved) == 9 + 4 + 4
    assert not floor.running


async def test_jobs_of_a_cut_off_process_end_before_they_begin_elsewhere(
    session: ZkSession, proxied: ZkSession, zk_proxy: TcpProxy
) -> None:
    floor = Floor()  # in one process, so that a job that runs twice is noticed
    async with process(floor, proxied, "cut off"):
        await eventually(lambda: len(floor.running) == 9)
        async with process(floor, session, "next"):
            await eventually(lambda: len(floor.running) == 9 and len(floor.moved) == 13)
            zk_proxy.freeze()
            await eventually(lambda: list(floor.running.values()).count("next") == 9)
            zk_proxy.heal()
            await eventually(lambda: list(floor.running.values()).count("cut off") == 4)


async def test_expired_session_begins_the_jobs_anew_with_higher_epochs(
    session: ZkSession, zookeeper: ZooKeeperServer
) -> None:
    floor = Floor()
    async with process(floor, session, "one"):
        await eventually(lambda: len(floor.running) == 9)
        await expire_session(session, zookeeper)
        await eventually(lambda: len(floor.moved) == 18 and len(floor.running) == 9)


async def test_a_job_is_confirmed_by_its_node(session: ZkSession, zk_chroot: str) -> None:
    floor = Floor()
    async with process(floor, session, "one") as one:
        await eventually(lambda: len(floor.running) == 9)
        job = JOBS[0]
        assert await one.confirmed(job) == floor.epochs[job][-1]
        # Another session has it now.
        node = f"{znodes.jobs('b')}/{znodes.encode_name(job)}/owner"
        async with connect(zk_chroot) as other:
            await other.multi([Delete(node), Create(node, b"{}", ephemeral=True)])
            assert await one.confirmed(job) is None
        await eventually(lambda: floor.running.get(job) == "one" and len(floor.epochs[job]) == 2)


async def test_a_job_goes_to_a_process_that_knows_it(session: ZkSession, zk_chroot: str) -> None:
    floor = Floor()
    async with (
        connect(zk_chroot) as other,
        process(floor, session, "old", ["a", "b", "c/1"]),
        process(floor, other, "new", ["a", "b", "c/1", "d", "e"]),
    ):
        await eventually(lambda: len(floor.running) == 5)
        assert floor.running["d"] == floor.running["e"] == "new"


async def test_a_job_that_fails_is_begun_again(session: ZkSession) -> None:
    floor = Floor()
    floor.fail = {"a"}
    async with process(floor, session, "one", ["a", "b"]):
        await eventually(lambda: set(floor.running) == {"a", "b"})
    assert not floor.fail


@pytest.mark.parametrize("job", ["", "a\ud800"])
async def test_job_with_an_invalid_name_is_refused_at_construction(
    session: ZkSession, job: str
) -> None:
    with pytest.raises(ValueError, match="name in ZooKeeper"):
        BalancedJobs(session, "b", "p", ["good", job], Floor().runner("p"), settings=GROUP)


async def test_one_cancellation_of_leaving_cuts_a_job_short_that_is_finishing(
    session: ZkSession,
) -> None:
    begun, finishing, cut, may_finish = (asyncio.Event() for _ in range(4))

    async def run(_job: str, _epoch: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            finishing.set()
            try:
                await may_finish.wait()
            except asyncio.CancelledError:
                cut.set()
                raise

    balanced = BalancedJobs(session, "b", "p", ["a"], run, settings=GROUP)
    await balanced.__aenter__()
    await begun.wait()
    leaving = asyncio.create_task(balanced.__aexit__())
    await finishing.wait()
    leaving.cancel()
    await asyncio.wait([leaving], timeout=DEADLINE_S)
    is_left = leaving.done()
    may_finish.set()
    await asyncio.wait([leaving])
    assert is_left
    assert cut.is_set()
    assert not balanced.running
