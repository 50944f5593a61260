"""What an engine decides, with a real database: in which order, for which partitions."""

import asyncio

import pytest

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.events import (
    PauseRequested,
    ResumeRequested,
    StopRequested,
    TaskClaimed,
    TimeReached,
)
from shoal.core.runs.run import Enqueue, Withdraw
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.errors import NotStored, PartitionNotOwned
from shoal.master.services.commands.scanner import Scanner
from shoal.sql.errors import Fenced
from tests.integration.master.contexts import context_of
from tests.integration.master.engine.engine_harness import Harness
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S, eventually


async def test_resume_and_pause_decided_together_leave_nothing_to_queue(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    async with harness.working():
        await harness.engine.submit(0, run.id, PauseRequested(utc_now()))
        await asyncio.gather(
            harness.engine.submit(0, run.id, ResumeRequested(utc_now())),
            harness.engine.submit(0, run.id, PauseRequested(utc_now())),
        )
        again = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert again.state is WorkflowState.PAUSED
    assert again.attempts["a"].state is TaskState.PAUSED
    assert [type(action) for _, action in harness.actions[-2:]] == [Enqueue, Withdraw]


async def test_event_for_another_partition_is_refused_and_not_kept(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    async with harness.working():
        await harness.engine.submit(0, run.id, StopRequested(utc_now()))
        harness.engine.epochs[5] = 1
        with pytest.raises(PartitionNotOwned):
            await harness.engine.submit(5, run.id, TaskClaimed(0, "w", utc_now()))
    assert harness.engine.runs == {}


async def test_events_requeued_after_a_fence_keep_their_order(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    harness.engine.epochs[1] = 1  # whose next owner the batch will meet
    harness.engine._inbox.clear()
    lost = harness.engine.enqueue(1, 99, TimeReached(utc_now()))
    attempt = run.attempts["a"].id or 0
    for event in (TaskClaimed(attempt, "w", utc_now()), StopRequested(utc_now())):
        harness.engine.post(0, run.id, event)
    _, first, later = harness.engine._inbox
    batch = harness.engine._inbox.take(2, 10, lambda _: 1)

    async def fenced(*_: object) -> None:
        raise Fenced([1])

    monkeypatch.setattr(harness.engine, "_bring_in", fenced)
    await harness.engine._process(batch)
    assert isinstance(lost.exception(), PartitionNotOwned)
    assert list(harness.engine._inbox) == [first, later]


async def test_new_instance_begins_in_the_transaction_that_creates_it(harness: Harness) -> None:
    command = await harness.command(CommandType.START)
    await harness.engine.take({0: 1}, "m")
    before = harness.database.writers
    await Scanner(context_of(harness.database, harness.engine)).scan([0])
    assert harness.database.writers == before + 1
    (run,) = harness.engine.runs.values()
    assert (await harness.stored(command)).result_instance_id == run.id
    async with harness.database.unit_of_work(read_only=True) as uow:
        stored = await uow.instances.run(run.id)
        events = await uow.events.after(0, 100, run.id)
    assert stored == run
    assert run.state is WorkflowState.RUNNING
    assert [(event.kind, event.data["state"]) for event in events] == [
        ("instance.state", "QUEUED"),
        ("instance.state", "RUNNING"),
        ("task.state", "QUEUED"),
    ]
    async with harness.working():
        await eventually(lambda: harness.actions == [(run.id, Enqueue(("a", 1)))])
    assert harness.database.writers == before + 1


async def test_notifications_of_others_do_not_put_off_a_unheard_command(
    harness: Harness,
) -> None:
    await harness.engine.take({0: 1}, "m")
    harness.engine.epochs[1] = 1  # a partition whose notification never rests
    scanner = Scanner(context_of(harness.database, harness.engine, scan_interval_s=0.2))
    async with harness.working():
        scanning = asyncio.create_task(scanner.run())
        command = await harness.command(CommandType.START)
        while command.state is CommandState.PENDING:
            scanner.notify(1)
            command = await harness.stored(command)
        scanning.cancel()
    assert command.state is CommandState.DONE


async def test_nobody_waits_for_an_engine_that_has_stopped(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    waiting = []
    async with harness.working():
        for _ in range(3):  # one batch under way, and events behind it
            event = TaskClaimed(0, "w", utc_now())
            waiting.append(asyncio.create_task(harness.engine.submit(0, run.id, event)))
            await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE_S):
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(NotStored):
            await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert {type(outcome) for outcome in outcomes} == {NotStored}
