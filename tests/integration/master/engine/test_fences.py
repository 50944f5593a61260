"""A master that is not the owner any more, and does not know it yet, changes nothing."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.events import StopRequested, TaskClaimed
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.errors import NotStored, PartitionNotOwned
from shoal.master.services.commands.scanner import Scanner
from shoal.master.services.schedules import Scheduler
from shoal.sql.errors import Fenced
from shoal.sql.schema.tables import schedule, workflow_instance
from tests.integration.master.contexts import context_of
from tests.integration.master.engine.engine_harness import Harness, Unsteady
from tests.support.clock import utc_now

DUE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def harness(sqlite_url: str) -> AsyncIterator[Harness]:
    """An engine of one partition, which it does not hold yet."""
    async with Unsteady(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(1)
            await uow.commit()
        yield Harness(database)


async def overtake(harness: Harness) -> None:
    """Another master takes the partition over."""
    async with harness.database.unit_of_work() as uow:
        await uow.partitions.raise_epochs({0: 2}, "successor")
        await uow.commit()


async def state_of(harness: Harness, run_id: int) -> WorkflowState:
    async with harness.database.unit_of_work(read_only=True) as uow:
        return (await uow.instances.get(run_id)).state


async def test_decision_of_a_former_owner_is_not_stored(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "former")
    async with harness.working():
        mine = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        assert mine.state is WorkflowState.RUNNING
        await overtake(harness)
        performed = len(harness.actions)
        with pytest.raises(PartitionNotOwned):
            await harness.engine.submit(0, run.id, StopRequested(utc_now()))
        assert (harness.engine.epochs, harness.engine.runs) == ({}, {})
        assert len(harness.actions) == performed
    assert await state_of(harness, run.id) is WorkflowState.RUNNING


async def test_event_for_a_partition_that_was_given_up_is_refused(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "former")
    async with harness.working():
        await harness.engine.drop([0])
        with pytest.raises(PartitionNotOwned):
            await harness.engine.submit(0, run.id, StopRequested(utc_now()))
    assert await state_of(harness, run.id) is WorkflowState.QUEUED


async def test_former_owner_creates_no_instance(harness: Harness) -> None:
    command = await harness.command(CommandType.START)
    await harness.engine.take({0: 1}, "former")
    await overtake(harness)
    with pytest.raises(Fenced):
        await Scanner(context_of(harness.database, harness.engine)).scan([0])
    assert (await harness.stored(command)).state is CommandState.PENDING
    async with harness.database.unit_of_work(read_only=True) as uow:
        assert not await uow.connection.rows(workflow_instance.select())


async def test_former_owner_refuses_no_command(harness: Harness) -> None:
    command = await harness.command(CommandType.STOP, 12345)  # there is no such instance
    await harness.engine.take({0: 1}, "former")
    await overtake(harness)
    async with harness.working():
        with pytest.raises(Fenced):
            await Scanner(context_of(harness.database, harness.engine)).scan([0])
    assert (await harness.stored(command)).state is CommandState.PENDING


async def publish_due(harness: Harness) -> None:
    """Publish a schedule of which DUE is the next fire time."""
    await harness.publish(schedules=[{"cron": "0 0 0 * * ?"}])
    await fire_next_at(harness, DUE)


async def fire_next_at(harness: Harness, at: datetime) -> None:
    async with harness.database.unit_of_work() as uow:
        await uow.connection.execute(update(schedule).values(next_fire_at=at))
        await uow.commit()


async def fire_times(harness: Harness) -> list[datetime | None]:
    """Return the logical times of the commands that firing has made."""
    async with harness.database.unit_of_work(read_only=True) as uow:
        return [command.logical_time for command in await uow.commands.starts([0], 10)]


def scheduler_of(harness: Harness) -> Scheduler:
    return Scheduler(context_of(harness.database, harness.engine, clock=lambda: DUE, partitions=1))


async def test_former_owner_fires_no_schedule(harness: Harness) -> None:
    await publish_due(harness)
    await harness.engine.take({0: 1}, "former")
    await overtake(harness)
    assert await scheduler_of(harness).fire_due() == 60.0  # with the next regular poll
    assert await fire_times(harness) == []
    async with harness.database.unit_of_work(read_only=True) as uow:
        assert await uow.schedules.next_due([0]) == DUE


async def test_fire_time_that_comes_up_twice_is_one_command(harness: Harness) -> None:
    """Whatever becomes of the schedule's row: published anew, restored from a backup."""
    await publish_due(harness)
    await harness.engine.take({0: 1}, "owner")
    for _ in range(2):
        await scheduler_of(harness).fire_due()
        assert await fire_times(harness) == [DUE]
        await fire_next_at(harness, DUE)


async def test_decision_that_was_not_stored_did_not_happen(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "owner")
    async with harness.working():
        await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        performed = len(harness.actions)
        harness.database.down = True
        with pytest.raises(NotStored):
            await harness.engine.submit(0, run.id, StopRequested(utc_now()))
        harness.database.down = False
        again = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        assert again.state is WorkflowState.RUNNING
        assert again.attempts["a"].state is TaskState.QUEUED
        assert len(harness.actions) == performed
