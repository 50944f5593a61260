"""Tasks that look again and again, with real masters: rows, slots, takeovers, late reports."""

import asyncio
from datetime import UTC, datetime, timedelta

from shoal.core.runs.commands import CommandType
from shoal.core.runs.records import TaskInstance
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.proto import shoal_pb2 as pb
from tests.integration.master.conftest import Bench
from tests.integration.master.manual_worker import HandWorker
from tests.support.waiting import DEADLINE_S

ANSWER = "it is not there"
LATER_S = 3_600.0  # no test waits for this look


async def look(worker: HandWorker, again_s: float) -> pb.Payload:
    """One look that finds nothing. Returns its payload."""
    (claim,) = await worker.claim()
    (verdict,) = await worker.fetch([claim])
    settled = await worker.report(claim, pb.RESCHEDULED, 75, reason=ANSWER, again_s=again_s)
    # As of any attempt that another one has followed.
    assert settled == pb.ReportVerdict.SUPERSEDED
    again = await worker.report(claim, pb.RESCHEDULED, 75, reason=ANSWER, again_s=again_s)
    assert again == pb.ReportVerdict.SUPERSEDED
    await worker.queue.release([claim])
    return verdict.payload


async def the_task(bench: Bench, instance_id: int) -> TaskInstance:
    (task,) = await bench.tasks(instance_id)
    return task


async def test_each_look_is_an_attempt_of_its_own_and_only_the_newest_is_shown(
    bench: Bench,
) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        first = await look(worker, 1)
        second = await look(worker, 1)
        assert (first.attempt, first.looks, first.waiting_since) == (1, 0, 0.0)
        assert (second.attempt, second.looks) == (2, 1)
        waits = await the_task(bench, instance.id)
        assert waits.waiting_since is not None
        assert second.waiting_since == waits.waiting_since.timestamp()
        assert (waits.attempt, waits.looks, waits.reason) == (3, 2, ANSWER)
        assert await worker.work(1) == 0
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    attempts = await bench.tasks(instance.id, all_attempts=True)
    assert [each.state for each in attempts] == ["RESCHEDULED", "RESCHEDULED", "SUCCEEDED"]
    async with bench.database.unit_of_work(read_only=True) as uow:
        listed, _ = await uow.tasks.list()
        asked_for, _ = await uow.tasks.list(states=[TaskState.RESCHEDULED])
        counts = await uow.instance_counts.tasks([instance.id])
    assert [each.state for each in listed] == [TaskState.SUCCEEDED]
    assert len(asked_for) == 2
    assert counts[instance.id] == {TaskState.SUCCEEDED: 1}


async def test_slot_is_free_between_two_looks(bench: Bench) -> None:
    async with bench.database.unit_of_work() as uow:
        await uow.concurrency.put("default", "g", 1, "", datetime.now(UTC))
        await uow.commit()
    workflow = await bench.publish(
        {"a": {"concurrency_group": "g"}, "b": {"concurrency_group": "g"}}
    )
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        await look(worker, LATER_S)
        assert await worker.work(1) == 0  # the other one has got the slot
        tasks = {each.task: each for each in await bench.tasks(instance.id)}
        assert sorted(each.state for each in tasks.values()) == ["DELAYED", "SUCCEEDED"]


async def test_another_master_waits_on_and_enforces_the_timeout(bench: Bench) -> None:
    workflow = await bench.publish({"a": {"timeout": 2}})
    worker = await bench.worker("w1")
    async with bench.master() as first:
        instance = await bench.start(workflow)
        await look(worker, LATER_S)
        waits = await the_task(bench, instance.id)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    async with bench.master():
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    ended = await the_task(bench, instance.id)
    assert (ended.id, ended.state) == (waits.id, TaskState.FAILED)
    assert ended.reason == f"timed out after 2.0s; the last answer: {ANSWER}"
    assert ended.finished_at is not None
    assert waits.waiting_since is not None
    assert ended.finished_at - waits.waiting_since >= timedelta(seconds=2)


async def test_wait_is_paused_resumed_and_killed(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        await look(worker, LATER_S)
        await bench.command(CommandType.PAUSE, workflow, "pause", instance)
        assert (await the_task(bench, instance.id)).state is TaskState.PAUSED
        await bench.command(CommandType.RESUME, workflow, "resume", instance)
        waits = await the_task(bench, instance.id)
        assert (waits.state, waits.looks) == (TaskState.DELAYED, 1)
        await bench.command(CommandType.KILL_TASK, workflow, "kill", instance, task="a")
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    ended = await the_task(bench, instance.id)
    assert (ended.id, ended.state) == (waits.id, TaskState.KILLED)


async def test_look_whose_worker_is_lost_is_made_again_without_a_delay(
    bench: Bench, zk_chroot: str
) -> None:
    from tests.integration.coordination.conftest import connect

    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        survivor = await bench.worker("survivor")
        await look(survivor, 1)
        async with connect(zk_chroot, name="dying") as session:
            dying = await bench.worker("dying", session)
            (claim,) = await dying.claim()
            await dying.fetch([claim])
        async with asyncio.timeout(DEADLINE_S):
            (again,) = await survivor.claim()
        (verdict,) = await survivor.fetch([again])
        assert verdict.payload.looks == 1
        late = await survivor.report(claim, pb.SUCCEEDED)
        assert late == pb.ReportVerdict.SUPERSEDED
        assert (await the_task(bench, instance.id)).state is TaskState.CLAIMED
