"""A master that is not the owner any more, and does not know it yet, changes nothing."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.events import StopRequested, TaskClaimed
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.errors import NotOwner, NotStored
from shoal.master.services.scan import Scanner
from shoal.master.services.schedules import Scheduler
from shoal.sql.errors import Fenced
from shoal.sql.schema.tables import schedule, workflow_instance
from tests.clock import utc_now
from tests.integration.master.contexts import context_of
from tests.integration.master.test_engine import Site, Unsteady

DUE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def site(sqlite_url: str) -> AsyncIterator[Site]:
    """An engine of one partition, which it does not hold yet."""
    async with Unsteady(sqlite_url) as database:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(1)
            await uow.commit()
        yield Site(database)


async def overtake(site: Site) -> None:
    """Another master takes the partition over."""
    async with site.database.unit_of_work() as uow:
        await uow.partitions.raise_epochs({0: 2}, "successor")
        await uow.commit()


async def state_of(site: Site, run_id: int) -> WorkflowState:
    async with site.database.unit_of_work(read_only=True) as uow:
        return (await uow.instances.get(run_id)).state


async def test_decision_of_a_former_owner_is_not_stored(site: Site) -> None:
    (run,) = await site.runs(1)
    await site.engine.take({0: 1}, "former")
    async with site.working():
        mine = await site.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        assert mine.state is WorkflowState.RUNNING
        await overtake(site)
        performed = len(site.actions)
        with pytest.raises(NotOwner):
            await site.engine.submit(0, run.id, StopRequested(utc_now()))
        assert (site.engine.epochs, site.engine.runs) == ({}, {})
        assert len(site.actions) == performed
    assert await state_of(site, run.id) is WorkflowState.RUNNING


async def test_event_for_a_partition_that_was_given_up_is_refused(site: Site) -> None:
    (run,) = await site.runs(1)
    await site.engine.take({0: 1}, "former")
    async with site.working():
        await site.engine.drop([0])
        with pytest.raises(NotOwner):
            await site.engine.submit(0, run.id, StopRequested(utc_now()))
    assert await state_of(site, run.id) is WorkflowState.QUEUED


async def test_former_owner_creates_no_instance(site: Site) -> None:
    command = await site.command(CommandType.START)
    await site.engine.take({0: 1}, "former")
    await overtake(site)
    with pytest.raises(Fenced):
        await Scanner(context_of(site.database, site.engine)).scan([0])
    assert (await site.stored(command)).state is CommandState.PENDING
    async with site.database.unit_of_work(read_only=True) as uow:
        assert not await uow.connection.rows(workflow_instance.select())


async def test_former_owner_refuses_no_command(site: Site) -> None:
    command = await site.command(CommandType.STOP, 12345)  # there is no such instance
    await site.engine.take({0: 1}, "former")
    await overtake(site)
    async with site.working():
        with pytest.raises(Fenced):
            await Scanner(context_of(site.database, site.engine)).scan([0])
    assert (await site.stored(command)).state is CommandState.PENDING


async def publish_due(site: Site) -> None:
    """Publish a schedule of which DUE is the next fire time."""
    await site.publish(schedules=[{"cron": "0 0 0 * * ?"}])
    await fire_next_at(site, DUE)


async def fire_next_at(site: Site, at: datetime) -> None:
    async with site.database.unit_of_work() as uow:
        await uow.connection.execute(update(schedule).values(next_fire_at=at))
        await uow.commit()


async def fire_times(site: Site) -> list[datetime | None]:
    """Return the logical times of the commands that firing has made."""
    async with site.database.unit_of_work(read_only=True) as uow:
        return [command.logical_time for command in await uow.commands.starts([0], 10)]


def scheduler_of(site: Site) -> Scheduler:
    return Scheduler(context_of(site.database, site.engine, clock=lambda: DUE, partitions=1))


async def test_former_owner_fires_no_schedule(site: Site) -> None:
    await publish_due(site)
    await site.engine.take({0: 1}, "former")
    await overtake(site)
    assert await scheduler_of(site).fire_due() == 60.0  # with the next regular look
    assert await fire_times(site) == []
    async with site.database.unit_of_work(read_only=True) as uow:
        assert await uow.schedules.next_due([0]) == DUE


async def test_fire_time_that_comes_up_twice_is_one_command(site: Site) -> None:
    """Whatever becomes of the schedule's row: published anew, restored from a backup."""
    await publish_due(site)
    await site.engine.take({0: 1}, "owner")
    for _ in range(2):
        await scheduler_of(site).fire_due()
        assert await fire_times(site) == [DUE]
        await fire_next_at(site, DUE)


async def test_decision_that_was_not_stored_did_not_happen(site: Site) -> None:
    (run,) = await site.runs(1)
    await site.engine.take({0: 1}, "owner")
    async with site.working():
        await site.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        performed = len(site.actions)
        site.database.down = True
        with pytest.raises(NotStored):
            await site.engine.submit(0, run.id, StopRequested(utc_now()))
        site.database.down = False
        again = await site.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        assert again.state is WorkflowState.RUNNING
        assert again.attempts["a"].state is TaskState.QUEUED
        assert len(site.actions) == performed
