"""Tasks that come with the answer to a report: they run once, under a claim at any time."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from shoal.coordination.cluster import layout
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.proto.tls import TlsFiles
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, spool, the_worker, until
from tests.support.fake_master import FakeMaster, TaskTable
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


class DispatchingMaster(FakeMaster):
    """Dispatches what stands ``behind`` a task when its success is reported."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.behind: dict[int, list[int]] = {}
        self.requests: list[pb.EagerRequest] = []

    async def Report(  # noqa: N802 - the name is the contract's
        self, request: pb.ReportRequest, context: Any
    ) -> pb.ReportResponse:
        if request.HasField("eager"):
            self.requests.append(request.eager)
        answer = await super().Report(request, context)
        for report in request.reports:
            old = report.attempt.task_instance_id
            for number in self.behind.get(old, ()):
                if self.table.tasks[number].state == "CLAIMED":
                    answer.eager_tasks.append(self._grant(number, old))
        return answer

    def _report(self, report: pb.Report, worker: str) -> pb.ReportVerdict:
        verdict = super()._report(report, worker)
        if report.kind == pb.SUCCEEDED and verdict.kind == pb.ReportVerdict.COMMITTED:
            for number in self.behind.get(report.attempt.task_instance_id, ()):
                task = self.table.tasks[number]
                task.state, task.worker = "CLAIMED", worker
        return verdict

    def _grant(self, number: int, behind: int) -> pb.EagerTask:
        task = self.table.tasks[number]
        place = pb.Place(
            workflow_priority=task.entry.workflow_priority,
            workflow_instance_id=task.entry.workflow_instance_id,
            task_priority=task.entry.task_priority,
            task_instance_id=number,
        )
        ref = pb.AttemptRef(
            workflow_instance_id=task.entry.workflow_instance_id,
            task_instance_id=number,
            partition=task.entry.partition,
        )
        return pb.EagerTask(behind=behind, attempt=ref, place=place, payload=task.payload)

    async def chain(self, count: int, script: str) -> list[int]:
        """Make tasks that stand one behind the other; return their ids."""
        numbers = await self.submit_many(count, "SHELL", {"script": script}, put=False)
        self.behind.update((old, [new]) for old, new in pairwise(numbers))
        return numbers

    async def begin(self, number: int) -> None:
        """Put a task into the queue."""
        await self.queue.put([self.table.tasks[number].entry])


@pytest.fixture
async def master(cluster: ClusterSettings) -> AsyncIterator[DispatchingMaster]:
    async with DispatchingMaster(cluster.zookeeper, TlsFiles.of(cluster), TaskTable()) as master:
        yield master


async def test_chain_runs_without_the_queue_and_leaves_no_claim(
    master: DispatchingMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    numbers = await master.chain(6, f"echo $SHOAL_TASK >>'{ledger}'")
    await master.begin(numbers[0])
    await master.table.ended(numbers[-1])
    for number in numbers:
        await master.unclaimed(number)
    assert ledger.read_text().split() == [f"task-{number}" for number in numbers]
    assert master.fetched == numbers[:1]
    assert all(eager.group == "default" for eager in master.requests)
    assert min(eager.room for eager in master.requests) >= 1


async def test_setting_switches_it_off(master: DispatchingMaster, cluster: ClusterSettings) -> None:
    async with InProcessWorker(cluster, eager_dispatch=False):
        first, second = await master.chain(2, "true")
        await master.begin(first)
        await master.table.ended(first)
        await master.unclaimed(first)
    assert master.requests == []
    assert master.table.tasks[second].report is None  # nothing was taken, though it was granted


async def test_grant_whose_answer_was_lost_comes_again_and_runs_once(
    master: DispatchingMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    master.lose_replies = 2
    numbers = await master.chain(3, f"echo $SHOAL_TASK >>'{ledger}'")
    await master.begin(numbers[0])
    await master.table.ended(numbers[-1])
    for number in numbers:
        await master.unclaimed(number)
    assert ledger.read_text().split() == [f"task-{number}" for number in numbers]


async def test_end_is_reported_when_its_own_claim_stands(
    master: DispatchingMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    first, second = await master.chain(2, "true")
    theirs = layout.claim(second)  # of an earlier life of its entry
    await master.session.create(theirs, b"other", ephemeral=True)
    await master.begin(first)
    await eventually(lambda: str(second) in spool(cluster.data))
    for number in await master.submit_many(3, "SHELL", {"script": "true"}):
        await master.table.ended(number)  # others go on
    assert await master.queue.claimed([first]) == {first}  # it stands for both
    assert master.table.tasks[second].report is None
    await master.session.delete(theirs)
    await master.table.ended(second)
    for number in (first, second):
        await master.unclaimed(number)


async def test_task_that_was_dispatched_eagerly_is_killed_like_any_other(
    master: DispatchingMaster, worker: InProcessWorker, channels: Channels, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    wait = f"[ $SHOAL_TASK = task-1 ] || {{ echo >>'{started}'; sleep 1000; }}"
    first, second, third = await master.chain(3, wait)
    await master.begin(first)
    await eventually(started.exists)
    address = str((await the_worker(master.session)).data["address"])
    request = pb.KillRequest(task_instance_ids=[second], reason="enough")
    await call(address, channels.worker(address).Kill(request, timeout=DEADLINE_S))
    assert (await master.table.ended(second)).state == "KILLED"
    await master.unclaimed(second)
    assert master.table.tasks[third].state == "QUEUED"


async def test_worker_that_stops_offers_no_room_and_leaves_no_claim(
    master: DispatchingMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    """This master dispatches all the same."""
    go = tmp_path / "go"
    async with InProcessWorker(cluster) as worker:
        first, second = await master.chain(2, until(go))
        await master.begin(first)
        await master.table.wait(first, "RUNNING")
        worker.stop.set()
        go.touch()
        await master.table.ended(first)
    assert {eager.room for eager in master.requests} == {0}
    for number in (first, second):
        await master.unclaimed(number)
