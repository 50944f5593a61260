"""The sweeper tells attempts whose worker is gone from those whose worker lives."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.coordination import TaskQueue, ZkSession
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.services.sweeper import Sweeper
from shoal.proto import shoal_pb2 as pb
from shoal.worker.intake import held_claims
from shoal.worker.masters import Masters
from tests.integration.master.conftest import Bench
from tests.integration.worker.agent.kit import InProcessWorker
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S, eventually

SWEEPS, SWEEP_S = 10, 0.1
RELEASE_S = 2.0  # after which a worker releases what it has dropped
# Says so if another one runs at the same time.
ALONE = """\
exec 9>'{folder}/lock'
flock -n 9 || echo DUPLICATE >> '{folder}/said'
echo started >> '{folder}/said'
exec sleep 1000
"""


async def test_task_whose_claim_lives_is_left_alone(bench: Bench, zk_chroot: str) -> None:
    workflow = await bench.publish({"a": {}, "b": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        living = await bench.worker("living")
        (held,) = await living.claim(1)
        await living.fetch([held])
        async with ZkSession(zk_chroot, name="dying") as session:
            dying = await bench.worker("dying", session)
            await dying.fetch(await dying.claim(1))
        async with asyncio.timeout(DEADLINE_S):
            # The sweep that finds the one lost has looked at the other, too.
            while len(attempts := await bench.tasks(instance.id, all_attempts=True)) < 3:
                await asyncio.sleep(0.02)
    states = {(each.worker, each.state) for each in attempts if each.worker is not None}
    assert states == {("living", TaskState.CLAIMED), ("dying", TaskState.LOST)}


async def test_worker_that_takes_a_task_again_in_its_next_session_is_the_only_one_that_runs_it(
    bench: Bench,
    zk_proxy: TcpProxy,
    zk_proxied: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It drops the claim of its old session, late, while it holds that of the new one."""
    fetch, asked, answered = Masters.fetch, 0, asyncio.Event()

    async def late(masters: Masters, address: str, request: pb.FetchRequest) -> pb.FetchResponse:
        nonlocal asked
        asked += 1
        await answered.wait()
        return await fetch(masters, address, request)

    monkeypatch.setattr(Masters, "fetch", late)
    monkeypatch.setattr(held_claims, "RELEASE_PAUSE_S", RELEASE_S)
    script = ALONE.format(folder=tmp_path)
    workflow = await bench.publish({"a": {"params": {"script": script}}})
    queue = TaskQueue(bench.session)
    cut_off = bench.cluster.model_copy(update={"zookeeper": zk_proxied})
    async with bench.master(sweep_interval_s=SWEEP_S), InProcessWorker(cut_off, name="a") as first:
        instance = await bench.start(workflow)
        await eventually(lambda: asked == 1)
        zk_proxy.cut()
        async with asyncio.timeout(DEADLINE_S):
            while not await queue.depth("default"):  # the sweeper has put it back
                await asyncio.sleep(0.02)
        zk_proxy.heal()
        await eventually(lambda: asked == 2)
        answered.set()
        await eventually((tmp_path / "said").exists)
        async with InProcessWorker(bench.cluster, name="b") as second:
            await asyncio.sleep(RELEASE_S + SWEEPS * SWEEP_S)
            tasks = await bench.tasks(instance.id, all_attempts=True)
            assert [task.state for task in tasks] == [TaskState.RUNNING]
            assert len(await queue.claims()) == 1
            second.at_once.set()
        assert (tmp_path / "said").read_text() == "started\n"
        first.at_once.set()


async def test_attempt_that_is_claimed_again_while_the_sweeper_looks_is_not_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may let go of a claim and get it again: it is granted what it holds already."""
    workflow = await bench.publish({"a": {}})
    looked, go_on = asyncio.Event(), asyncio.Event()
    look, find = Sweeper._transferred, Sweeper._find_missing
    missing: asyncio.Queue[list[tuple[Run, Attempt]]] = asyncio.Queue()

    async def look_and_wait(
        self: Sweeper, unclaimed: Sequence[tuple[Run, Attempt]]
    ) -> set[int]:  # the last thing that a sweep reads
        found = await look(self, unclaimed)
        if unclaimed and not go_on.is_set():
            looked.set()
            await go_on.wait()
        return found

    async def find_and_tell(self: Sweeper) -> list[tuple[Run, Attempt]]:
        found = await find(self)
        if go_on.is_set():
            missing.put_nowait(found)
        return found

    monkeypatch.setattr(Sweeper, "_transferred", look_and_wait)
    monkeypatch.setattr(Sweeper, "_find_missing", find_and_tell)
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        (claim,) = await worker.claim(1)
        await worker.fetch([claim])
        await worker.queue.requeue([claim])  # it has heard no answer, let us say
        await looked.wait()
        (again,) = await worker.claim(1)
        (verdict,) = await worker.fetch([again])
        assert verdict.HasField("payload")
        go_on.set()
        assert await missing.get() == []
        assert await worker.report(again, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    states = [each.state for each in await bench.tasks(instance.id, all_attempts=True)]
    assert states == [TaskState.SUCCEEDED]
