"""Claims that are gone under workers that live: no second attempt before the first is dead."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from shoal.coordination import MemberInfo, TaskClaim
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.dispatch.revocation import Held, Revoker
from shoal.proto import shoal_pb2 as pb
from tests.integration.master.conftest import Bench
from tests.integration.master.kill_counter import KillCounter, kill_counter
from tests.integration.master.manual_worker import HandWorker
from tests.support.waiting import DEADLINE_S, eventually

SWEEPS = 3  # that a master may use for a mistake


class Bereft:
    """A worker, its service, and a task that it runs: its claim was deleted."""

    def __init__(self, bench: Bench, worker: HandWorker, service: KillCounter) -> None:
        self._bench = bench
        self.worker, self.service = worker, service
        self.instance: Instance
        self.claim: TaskClaim

    async def begin(self) -> None:
        workflow = await self._bench.publish({"a": {}})
        self.instance = await self._bench.start(workflow)
        (self.claim,) = await self.worker.claim(1)
        await self.worker.fetch([self.claim])
        await self.worker.report(self.claim, pb.STARTED)
        await self._bench.session.delete(self.claim.path)

    @property
    def asked(self) -> int:
        """How often it was asked about the task."""
        return self.service.revoked[self.claim.task_instance_id]

    async def asked_again(self, times: int = SWEEPS) -> None:
        before = self.asked
        await eventually(lambda: self.asked >= before + times)

    async def states(self) -> list[TaskState]:
        tasks = await self._bench.tasks(self.instance.id, all_attempts=True)
        return [task.state for task in sorted(tasks, key=lambda task: task.attempt)]

    async def until(self, *states: TaskState) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while await self.states() != list(states):
                await asyncio.sleep(0.02)


@pytest.fixture
async def bereft(bench: Bench) -> AsyncIterator[Bereft]:
    worker = await bench.worker("w")
    async with kill_counter(bench.cluster, bench.session, "w") as service:
        yield Bereft(bench, worker, service)


async def test_next_attempt_waits_until_the_worker_has_nothing_of_this_one(
    bench: Bench, bereft: Bereft
) -> None:
    async with bench.master(sweep_interval_s=0.1):
        await bereft.begin()
        await bereft.asked_again()
        assert await bereft.states() == [TaskState.RUNNING]
        bereft.service.free.add(bereft.claim.task_instance_id)
        await bereft.until(TaskState.LOST, TaskState.QUEUED)
        assert await bereft.worker.work(1) == 0
        assert await bench.ended(bereft.instance.id) is WorkflowState.SUCCEEDED
    assert bereft.service.asked.total() == 0  # no kill was requested


async def test_result_that_comes_meanwhile_counts(bench: Bench, bereft: Bereft) -> None:
    async with bench.master(sweep_interval_s=0.1):
        await bereft.begin()
        await bereft.asked_again()
        assert await bereft.worker.report(bereft.claim, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
        assert await bench.ended(bereft.instance.id) is WorkflowState.SUCCEEDED
    assert await bereft.states() == [TaskState.SUCCEEDED]


async def test_task_that_is_taken_again_while_its_worker_is_asked_is_not_lost(
    bench: Bench, bereft: Bereft, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, again = bereft.worker, asyncio.Event()

    async def ask(_: Revoker, __: MemberInfo, ___: Sequence[Held]) -> set[int]:
        """Answer that the worker has nothing: true when it was asked, no more when it arrives."""
        if not again.is_set():
            assert await worker.requeue(claim, payload) == pb.ReportVerdict.COMMITTED
            await worker.queue.put([claim.entry])
            (second,) = await worker.claim(1)
            assert (await worker.fetch([second]))[0].WhichOneof("verdict") == "payload"
            again.set()
        return set()

    async with bench.master(sweep_interval_s=0.1):
        instance = await bench.start(await bench.publish({"a": {}}))
        (claim,) = await worker.claim(1)
        payload = (await worker.fetch([claim]))[0].payload
        monkeypatch.setattr(Revoker, "_ask", ask)
        await bench.session.delete(claim.path)
        async with asyncio.timeout(DEADLINE_S):
            await again.wait()
        assert await worker.report(claim, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


async def test_worker_that_does_not_answer_is_waited_for_as_long_as_it_lives(
    bench: Bench,
) -> None:
    worker = await bench.worker("w")
    async with bench.master(sweep_interval_s=0.1):
        async with kill_counter(bench.cluster, bench.session, "w") as service:
            bereft = Bereft(bench, worker, service)
            service.silent = True
            await bereft.begin()
            await bereft.asked_again()
            assert await bereft.states() == [TaskState.RUNNING]
        await bereft.until(TaskState.LOST, TaskState.QUEUED)  # it is not a member any more


async def test_worker_that_is_no_member_but_answers_is_waited_for(
    bench: Bench, bereft: Bereft
) -> None:
    """Its session was ended at the servers, and it cannot hear of that."""
    async with bench.master(sweep_interval_s=0.1):
        await bereft.begin()
        await bereft.service.leave()
        await bereft.asked_again(3 * SWEEPS)
        assert await bereft.states() == [TaskState.RUNNING]
        bereft.service.free.add(bereft.claim.task_instance_id)
        await bereft.until(TaskState.LOST, TaskState.QUEUED)


async def test_worker_that_is_no_member_is_not_waited_for_longer_than_its_lease_can_last(
    bench: Bench, bereft: Bereft
) -> None:
    cluster = bench.cluster.model_copy(update={"session_timeout_s": 2.0})
    async with bench.master(cluster, sweep_interval_s=0.1):
        await bereft.begin()
        await bereft.service.leave()
        await bereft.until(TaskState.LOST, TaskState.QUEUED)  # and it still says that it has it


async def test_successor_at_the_address_of_a_worker_that_has_left_is_not_waited_for(
    bench: Bench, bereft: Bereft
) -> None:
    async with bench.master(sweep_interval_s=0.1):
        bereft.service.worker_id = "another"
        await bereft.begin()
        await bereft.service.leave()
        await bereft.until(TaskState.LOST, TaskState.QUEUED)


async def test_answer_of_another_process_at_the_address_says_nothing(
    bench: Bench, bereft: Bereft
) -> None:
    async with bench.master(sweep_interval_s=0.1):
        bereft.service.worker_id = "another"
        await bereft.begin()
        bereft.service.free.add(bereft.claim.task_instance_id)
        await bereft.asked_again()
        assert await bereft.states() == [TaskState.RUNNING]
        bereft.service.worker_id = "w"
        await bereft.until(TaskState.LOST, TaskState.QUEUED)


async def test_next_owner_of_the_partition_asks_again(bench: Bench, bereft: Bereft) -> None:
    async with bench.master(sweep_interval_s=0.1) as first:
        await bereft.begin()
        await bereft.asked_again()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    async with bench.master(sweep_interval_s=0.1):
        await bereft.asked_again()
        assert await bereft.states() == [TaskState.RUNNING]
        bereft.service.free.add(bereft.claim.task_instance_id)
        await bereft.until(TaskState.LOST, TaskState.QUEUED)


async def test_attempts_of_a_worker_that_is_away_wait_for_the_takeover_delay(
    bench: Bench,
) -> None:
    worker = await bench.worker("w")  # no member
    async with bench.master(sweep_interval_s=0.1, takeover_delay_s=1000.0):
        bereft = Bereft(bench, worker, KillCounter("w"))
        await bereft.begin()
        await asyncio.sleep(0.1 * 2 * SWEEPS)
        assert await bereft.states() == [TaskState.RUNNING]
