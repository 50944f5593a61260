"""Concurrency groups with real masters: never too many at once, none waits without a reason."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import delete

from shoal.coordination import notify
from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import ResumeRequested, SlotGranted
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.engine.engine import Engine
from shoal.master.errors import NotStored
from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.sql.schema.tables import concurrency_group, concurrency_lease
from tests.integration.coordination.conftest import connect
from tests.integration.master.conftest import PARTITIONS, Bench
from tests.integration.master.manual_worker import HandWorker
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S, eventually

ON_SQLITE = pytest.mark.parametrize("bench", ["sqlite"], indirect=True)
ON_POSTGRESQL = pytest.mark.parametrize("bench", ["postgresql"], indirect=True)
AT_WORK = frozenset({TaskState.QUEUED, TaskState.CLAIMED, TaskState.RUNNING})


async def set_slots(bench: Bench, slots: int, name: str = "gpu") -> None:
    async with bench.database.unit_of_work() as uow:
        await uow.concurrency.put("default", name, slots, "", datetime.now(UTC))
        await uow.commit()


async def at_work(bench: Bench) -> int:
    """How many attempts are at work or about to be."""
    async with bench.database.unit_of_work(read_only=True) as uow:
        return sum((await uow.tasks.counts(AT_WORK)).values())


async def states(bench: Bench, instances: list[Instance]) -> list[TaskState]:
    return [task.state for one in instances for task in await bench.tasks(one.id)]


async def until(bench: Bench, instances: list[Instance], *wanted: TaskState) -> None:
    """Wait until the tasks of these instances are in these states, in any order."""
    async with asyncio.timeout(DEADLINE_S):
        while sorted(await states(bench, instances)) != sorted(wanted):
            await asyncio.sleep(0.01)


async def start_many(bench: Bench, count: int, **task: Any) -> list[Instance]:
    """Start instances of one task that needs a slot."""
    workflow_id = await bench.publish({"a": {"concurrency_group": "gpu", **task}})
    return [await bench.start(workflow_id, f"k{n}") for n in range(count)]


async def work_on(worker: HandWorker) -> None:
    """Run whatever comes: after a takeover an entry may come twice."""
    while True:
        await worker.work(1)


async def run_one(worker: HandWorker) -> None:
    """Run the next task to success."""
    (claim,) = await worker.claim(1)
    (verdict,) = await worker.fetch([claim])
    assert verdict.WhichOneof("verdict") == "payload"
    await worker.report(claim, pb.SUCCEEDED)
    await worker.queue.release([claim])


async def test_two_masters_never_let_more_work_than_there_are_slots(bench: Bench) -> None:
    await set_slots(bench, 2)
    seen: list[int] = []

    async def observe() -> None:
        while True:
            seen.append(await at_work(bench))
            await asyncio.sleep(0.002)

    async with bench.master(), bench.master():
        await bench.shared_by_two()
        observer = asyncio.create_task(observe())
        instances = await start_many(bench, 12)
        await until(bench, instances, *[TaskState.QUEUED] * 2, *[TaskState.BLOCKED] * 10)
        workers = [await bench.worker(f"w{n}") for n in range(3)]
        working = [asyncio.create_task(work_on(worker)) for worker in workers]
        assert [await bench.ended(one.id) for one in instances] == [WorkflowState.SUCCEEDED] * 12
        for task in (observer, *working):
            task.cancel()
    assert {one.partition for one in instances} > {instances[0].partition}
    assert max(seen) == 2


@ON_SQLITE
async def test_attempts_of_both_masters_come_in_the_order_of_the_queue(bench: Bench) -> None:
    await set_slots(bench, 0)
    async with bench.master(), bench.master():
        await bench.shared_by_two()
        instances = await start_many(bench, 8)
        await until(bench, instances, *[TaskState.BLOCKED] * 8)
        worker = await bench.worker("w")
        await set_slots(bench, 1)
        order = []
        async with asyncio.timeout(DEADLINE_S):
            for _ in instances:
                (claim,) = await worker.claim()
                order.append(claim.entry.workflow_instance_id)
                await worker.fetch([claim])
                await worker.report(claim, pb.SUCCEEDED)
                await worker.queue.release([claim])
    assert order == [one.id for one in instances]


@ON_POSTGRESQL
async def test_slots_of_a_dead_master_go_on_with_its_successor(bench: Bench) -> None:
    await set_slots(bench, 1)
    async with bench.master() as first, bench.master():
        await bench.shared_by_two()
        instances = await start_many(bench, 6)
        await until(bench, instances, TaskState.QUEUED, *[TaskState.BLOCKED] * 5)
        first.cancel()
        await asyncio.wait([first])
        working = asyncio.create_task(work_on(await bench.worker("w")))
        assert [await bench.ended(one.id) for one in instances] == [WorkflowState.SUCCEEDED] * 6
        working.cancel()


@ON_SQLITE
async def test_more_and_fewer_slots_apply_at_once(bench: Bench) -> None:
    await set_slots(bench, 1)
    async with bench.master(scan_interval_s=30.0):
        instances = await start_many(bench, 4)
        await until(bench, instances, TaskState.QUEUED, *[TaskState.BLOCKED] * 3)
        await set_slots(bench, 3)
        await notify(bench.session, {one.partition for one in instances})  # as the API does
        await until(bench, instances, *[TaskState.QUEUED] * 3, TaskState.BLOCKED)
        await set_slots(bench, 1)
        worker = await bench.worker("w")
        for done in (1, 2):
            await run_one(worker)
            left = [TaskState.QUEUED] * (3 - done)
            ended = [TaskState.SUCCEEDED] * done
            await until(bench, instances, *ended, *left, TaskState.BLOCKED)
        await run_one(worker)
        await until(bench, instances, *[TaskState.SUCCEEDED] * 3, TaskState.QUEUED)


@ON_POSTGRESQL
async def test_pause_stop_and_kill_free_slots(bench: Bench) -> None:
    await set_slots(bench, 1)
    async with bench.master(scan_interval_s=30.0):
        instances = await start_many(bench, 4)
        first, second, third, _ = instances
        blocked = TaskState.BLOCKED
        await until(bench, instances, TaskState.QUEUED, *[blocked] * 3)
        workflow = first.workflow_id
        await bench.command(CommandType.PAUSE, workflow, "pause", first)
        await until(bench, instances, TaskState.PAUSED, TaskState.QUEUED, *[blocked] * 2)
        await bench.command(CommandType.STOP, workflow, "stop", second)
        await until(bench, [second, third], TaskState.KILLED, TaskState.QUEUED)
        await bench.command(CommandType.RESUME, workflow, "resume", first)
        await until(bench, [first, third], blocked, TaskState.QUEUED)
        await bench.command(CommandType.KILL_TASK, workflow, "kill", third, task="a")
        await until(bench, [first, third], TaskState.QUEUED, TaskState.KILLED)


@ON_SQLITE
async def test_task_that_the_master_runs_takes_a_slot_as_any_other(bench: Bench) -> None:
    await set_slots(bench, 1)
    params = {"when": {"workflow": "none", "date": "today"}}
    async with bench.master():
        instances = await start_many(bench, 2, type="DEPENDENT", params=params)
        await until(bench, instances, TaskState.RUNNING, TaskState.BLOCKED)
        await bench.command(CommandType.STOP, instances[0].workflow_id, "stop", instances[0])
        await until(bench, instances, TaskState.KILLED, TaskState.RUNNING)


@ON_SQLITE
async def test_retry_waits_for_a_slot_again(bench: Bench) -> None:
    await set_slots(bench, 1)
    async with bench.master():
        instances = await start_many(bench, 2, retries=1)
        (claim,) = await (worker := await bench.worker("w")).claim()
        await worker.fetch([claim])
        await worker.report(claim, pb.FAILED)
        await worker.queue.release([claim])
        # The first instance comes first again: its retry before the other's first attempt.
        (claim,) = await worker.claim()
        assert claim.entry.workflow_instance_id == instances[0].id
        await until(bench, instances, TaskState.QUEUED, TaskState.BLOCKED)


@ON_SQLITE
async def test_slot_of_a_dead_worker_is_given_again(bench: Bench, zk_chroot: str) -> None:
    await set_slots(bench, 1)
    async with bench.master(scan_interval_s=30.0):
        instances = await start_many(bench, 2)
        async with connect(zk_chroot, name="dying") as session:
            dying = await bench.worker("dying", session)
            (claim,) = await dying.claim()
            await dying.fetch([claim])
        working = asyncio.create_task(work_on(await bench.worker("survivor")))
        assert [await bench.ended(one.id) for one in instances] == [WorkflowState.SUCCEEDED] * 2
        working.cancel()
    attempts = [t for one in instances for t in await bench.tasks(one.id, all_attempts=True)]
    found = sorted((attempt.attempt, attempt.state) for attempt in attempts)
    succeeded = TaskState.SUCCEEDED
    assert found == [(1, TaskState.LOST), (1, succeeded), (2, succeeded)]


@ON_SQLITE
async def test_those_who_wait_for_a_group_that_is_gone_wait_until_it_is_back(
    bench: Bench,
) -> None:
    await set_slots(bench, 0)
    async with bench.master():
        instances = await start_many(bench, 1)
        await until(bench, instances, TaskState.BLOCKED)
        async with bench.database.unit_of_work() as uow:
            await uow.connection.execute(delete(concurrency_group))
            await uow.commit()
        await notify(bench.session, range(PARTITIONS))
        await set_slots(bench, 1)
        await until(bench, instances, TaskState.QUEUED)


async def test_nobody_goes_on_without_a_lease(bench: Bench) -> None:
    """The grant of a slot comes too late: another attempt has it by now."""
    await set_slots(bench, 1)
    async with bench.master():
        (instance,) = await start_many(bench, 1)
        await until(bench, [instance], TaskState.QUEUED)
        await bench.command(CommandType.PAUSE, instance.workflow_id, "pause", instance)
        await until(bench, [instance], TaskState.PAUSED)
    async with bench.database.unit_of_work() as uow:
        await uow.connection.execute(delete(concurrency_lease))
        await uow.commit()
    engine = Engine(bench.database, lambda _: asyncio.sleep(0), utc_now)
    await engine.take({instance.partition: 2**40}, "test")
    working = asyncio.create_task(engine.run())
    try:
        run = await engine.submit(instance.partition, instance.id, ResumeRequested(utc_now()))
        attempt = run.attempts["a"]
        assert attempt.state is TaskState.BLOCKED
        assert attempt.id is not None
        granted = SlotGranted(attempt.id, utc_now())
        with pytest.raises(NotStored, match="concurrency_lease"):
            await engine.submit(instance.partition, instance.id, granted)
        (task,) = await bench.tasks(instance.id)
        assert task.state is TaskState.BLOCKED
        async with bench.database.unit_of_work() as uow:
            await uow.slots.give("default/gpu", utc_now())
            await uow.commit()
        run = await engine.submit(instance.partition, instance.id, granted)
        assert run.attempts["a"].state is TaskState.QUEUED
    finally:
        working.cancel()
        await eventually(working.done)


@ON_SQLITE
@pytest.mark.parametrize("point", ["slot.before_commit", "slot.after_commit"])
async def test_giving_slots_may_fail_every_second_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(failpoints, "_armed_points", failpoints.parse(f"{point}=raise%2"))
    await set_slots(bench, 1)
    async with bench.master(scan_interval_s=0.2):
        instances = await start_many(bench, 5)
        working = asyncio.create_task(work_on(await bench.worker("w")))
        assert [await bench.ended(one.id) for one in instances] == [WorkflowState.SUCCEEDED] * 5
        working.cancel()
    assert failpoints._armed_points[point].hits >= 4
