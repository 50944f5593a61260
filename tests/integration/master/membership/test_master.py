"""A master at work: commands in, tasks out, results in; and what happens when parts go away."""

import asyncio
from typing import Any

import pytest

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.dispatch.payloads import PayloadMaker
from shoal.proto import shoal_pb2 as pb
from tests.integration.coordination.conftest import connect
from tests.integration.master.conftest import DIAMOND, Bench


async def test_instance_runs_from_command_to_success(bench: Bench) -> None:
    workflow = await bench.publish(DIAMOND)
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        assert await worker.work(4) == 0
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    tasks = await bench.tasks(instance.id, all_attempts=True)
    assert [(t.task, t.state, t.worker) for t in tasks] == [
        (name, TaskState.SUCCEEDED, "w1") for name in "abcd"
    ]


async def test_two_masters_share_the_instances(bench: Bench) -> None:
    workflow = await bench.publish(DIAMOND)
    async with bench.master(), bench.master():
        await bench.shared_by_two()
        instances = [await bench.start(workflow, f"k{n}") for n in range(12)]
        worker = await bench.worker("w1")
        await worker.work(48)
        for instance in instances:
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        async with bench.database.unit_of_work(read_only=True) as uow:
            owners = {row.owner for row in await uow.partitions.all()}
    assert len(owners) == 2


async def test_successor_carries_on_where_a_dead_master_stopped(bench: Bench) -> None:
    workflow = await bench.publish(DIAMOND)
    worker = await bench.worker("w1")
    async with bench.master() as first:
        instance = await bench.start(workflow)
        (a,) = await worker.claim()
        await worker.fetch([a])
        first.cancel()  # it takes its session with it; "a" runs on
        await asyncio.gather(first, return_exceptions=True)
        async with bench.master():
            assert await worker.report(a, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
            await worker.queue.release([a])
            await worker.work(3)
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    attempts = await bench.tasks(instance.id, all_attempts=True)
    assert {t.attempt for t in attempts} == {1}


async def test_tasks_of_a_lost_worker_run_again(bench: Bench, zk_chroot: str) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        async with connect(zk_chroot, name="dying") as session:
            dying = await bench.worker("dying", session)
            (claim,) = await dying.claim()
            await dying.fetch([claim])
        survivor = await bench.worker("survivor")
        await survivor.work(1)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        late = await survivor.report(claim, pb.FAILED, 1)
        assert late == pb.ReportVerdict.SUPERSEDED
    attempts = await bench.tasks(instance.id, all_attempts=True)
    assert [(t.state, t.worker) for t in attempts] == [
        (TaskState.LOST, "dying"),
        (TaskState.SUCCEEDED, "survivor"),
    ]


async def test_claim_without_a_fetch_is_queued_again(bench: Bench, zk_chroot: str) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        async with connect(zk_chroot, name="dying") as session:
            await (await bench.worker("dying", session)).claim()
        await (await bench.worker("survivor")).work(1)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    assert [t.attempt for t in await bench.tasks(instance.id, all_attempts=True)] == [1]


async def test_payload_is_given_again_to_the_same_worker_and_to_no_other(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        await bench.start(workflow)
        worker, thief = await bench.worker("w1"), await bench.worker("thief")
        claims = await worker.claim()
        first, again = [(await worker.fetch(claims))[0] for _ in range(2)]
        assert first == again
        assert first.payload.task == "a"
        assert first.payload.epoch > 0
        refused = (await thief.fetch(claims))[0]
        assert refused.refusal.kind == pb.Refusal.SUPERSEDED
        assert await thief.report(claims[0], pb.FAILED) == pb.ReportVerdict.SUPERSEDED
        assert await worker.report(claims[0], pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED


async def test_task_that_is_returned_runs_on_another_worker_as_the_same_attempt(
    bench: Bench,
) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        busy, idle = await bench.worker("busy"), await bench.worker("idle")
        (claim,) = await busy.claim()
        payload = (await busy.fetch([claim]))[0].payload
        # Repeated, since the first answer may be lost: no other worker can have taken it.
        for _ in range(2):
            assert await busy.requeue(claim, payload) == pb.ReportVerdict.COMMITTED
        await busy.queue.requeue([claim])
        assert await idle.work(1) == 0
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    (attempt,) = await bench.tasks(instance.id, all_attempts=True)
    assert (attempt.attempt, attempt.worker) == (1, "idle")


async def test_task_that_is_returned_twice_is_not_taken_from_who_has_begun_with_it(
    bench: Bench,
) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        (claim,) = await worker.claim()
        old = (await worker.fetch([claim]))[0].payload
        assert await worker.requeue(claim, old) == pb.ReportVerdict.COMMITTED
        await worker.queue.requeue([claim])
        (again,) = await worker.claim()
        assert (await worker.fetch([again]))[0].payload.queued_at > old.queued_at
        late = await worker.requeue(again, old)  # sent before, and held up on its way
        assert late == pb.ReportVerdict.SUPERSEDED
        assert await worker.report(again, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


async def test_task_that_is_returned_by_a_worker_that_dies_then_is_queued_again(
    bench: Bench, zk_chroot: str
) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        async with connect(zk_chroot, name="dying") as session:
            dying = await bench.worker("dying", session)
            (claim,) = await dying.claim()
            payload = (await dying.fetch([claim]))[0].payload
            assert await dying.requeue(claim, payload) == pb.ReportVerdict.COMMITTED
        await (await bench.worker("survivor")).work(1)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    assert [t.attempt for t in await bench.tasks(instance.id, all_attempts=True)] == [1]


async def test_stop_withdraws_queued_tasks_and_ends(bench: Bench) -> None:
    workflow = await bench.publish({f"t{n}": {} for n in range(20)})
    async with bench.master():
        instance = await bench.start(workflow)
        outcome = await bench.command(CommandType.STOP, workflow, "stop", instance)
        assert outcome.state is CommandState.DONE
        assert await bench.ended(instance.id) is WorkflowState.STOPPED
        worker = await bench.worker("w1")
        assert await worker.queue.claim("default", 100, "w1") == []


async def test_refused_request_says_why(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        outcome = await bench.command(CommandType.RESUME, workflow, "resume", instance)
    assert outcome.state is CommandState.REFUSED
    assert outcome.reason is not None
    assert "RUNNING" in outcome.reason


@pytest.mark.parametrize(
    ("fields", "words"), [({"version": 9}, "9"), ({"parameters": {"nope": "1"}}, "nope")]
)
async def test_unusable_start_is_refused_and_spoils_no_other(
    bench: Bench, fields: dict[str, Any], words: str
) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        bad, good = await asyncio.gather(
            bench.command(CommandType.START, workflow, "bad", **fields),
            bench.command(CommandType.START, workflow, "good"),
        )
    assert bad.state is CommandState.REFUSED
    assert bad.reason is not None
    assert words in bad.reason
    assert good.state is CommandState.DONE


async def test_unrenderable_task_fails_with_the_reason(bench: Bench) -> None:
    workflow = await bench.publish(
        {"a": {"params": {"script": "echo", "arguments": ["$[nonsense(]"]}}}
    )
    async with bench.master():
        instance = await bench.start(workflow)
        async with (await bench.worker("w1")).working():
            assert await bench.ended(instance.id) is WorkflowState.FAILED
    (task,) = await bench.tasks(instance.id)
    assert task.reason is not None
    assert "nonsense" in task.reason


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
async def test_task_does_not_fail_because_its_master_is_out_of_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    refused = 0
    make = PayloadMaker.make

    async def without_memory(self: PayloadMaker, *given: Any) -> pb.Payload:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise error
        return await make(self, *given)

    monkeypatch.setattr(PayloadMaker, "make", without_memory)
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        async with (await bench.worker("w1")).working():
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    assert refused == 3


async def test_queue_is_rebuilt_after_zookeeper_forgot_it(bench: Bench) -> None:
    workflow = await bench.publish({f"t{n}": {} for n in range(5)})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        forgotten = await worker.claim()
        await worker.queue.release(forgotten)
        await worker.work(5)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
