"""A caller may have taken every key that a master would use: nothing is lost or held up by it."""

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from shoal.core.backfill.request import BackfillRunState
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import CommandState, CommandType, NewCommand
from shoal.core.runs.states import WorkflowState
from shoal.master.engine.engine import Engine
from shoal.master.services.schedules import Scheduler
from shoal.sql import Database
from shoal.sql.repositories.runs.commands import own_key
from shoal.sql.schema.tables import command, schedule, workflow_instance
from tests.integration.master.contexts import context_of
from tests.integration.master.services import admission_harness, backfill_harness, family_harness
from tests.support.clock import utc_now
from tests.support.database.databases import migrated, migrated_url

RUNNING, QUEUED, STOPPED = WorkflowState.RUNNING, WorkflowState.QUEUED, WorkflowState.STOPPED
DUE = datetime(2026, 1, 1, tzinfo=UTC)
MOST = max(family_harness.PARTITIONS, backfill_harness.PARTITIONS)
LONG_AGO = timedelta(days=7)  # longer than any interval between two polls


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with migrated(migrated_url(request, request.param), MOST) as found:
        yield found


async def take_keys(database: Database, keys: Iterable[str]) -> int:
    """Another caller has used these keys, for requests that were refused; return how many."""
    async with database.unit_of_work() as uow:
        spec = WorkflowSpec.model_validate(
            {
                "name": "squatter",
                "tasks": [{"name": "a", "type": "SHELL", "params": {"script": ""}}],
            }
        )
        workflow = (await uow.workflows.publish(spec, utc_now())).version.workflow_id
        new = [NewCommand(CommandType.START, 0, key, workflow) for key in keys]
        stored = await uow.commands.add_many(new, utc_now())
        await uow.commands.refuse_many([(one.id, "no") for one, _ in stored], utc_now())
        await uow.commit()
    return len(stored)


@pytest.mark.parametrize(
    ("overlap", "keys"),
    [
        ("queue", ["admit:{second}"]),
        ("queue_latest", ["supersede:{second}", "admit:{third}"]),
        ("replace", ["replace:{first}:{second}", "replace:{second}:{third}", "admit:{third}"]),
    ],
)
async def test_runs_that_wait_move_up(database: Database, overlap: str, keys: list[str]) -> None:
    harness = admission_harness.Harness(database)
    workflow = await harness.publish(overlap=overlap)
    async with harness.working():
        first = await harness.start(workflow)
        await harness.is_in(first, RUNNING)
        numbers = {"first": first.id, "second": first.id + 1, "third": first.id + 2}
        await take_keys(database, [key.format(**numbers) for key in keys])
        second = await harness.start(workflow)
        third = await harness.start(workflow)
        assert (second.id, third.id) == (numbers["second"], numbers["third"])
        if overlap == "queue":
            await harness.end(first)
            await harness.is_in(second, RUNNING)
            await harness.end(second)
        elif overlap == "queue_latest":
            await harness.is_in(second, STOPPED)
            await harness.end(first)
        else:
            await harness.is_in(first, STOPPED)
            await harness.is_in(second, STOPPED)
        await harness.is_in(third, RUNNING)


async def test_schedule_fires(database: Database) -> None:
    harness = admission_harness.Harness(database)
    workflow = await harness.publish(schedules=[{"cron": "0 0 0 * * ?"}])
    async with database.unit_of_work() as uow:
        (one,) = await uow.schedules.of_workflow("default", "w")
        await uow.connection.execute(update(schedule).values(next_fire_at=DUE))
        await uow.commit()
    await take_keys(database, [f"schedule:{one.id}:{DUE.isoformat()}"])
    engine = Engine(database, admission_harness.Master(harness, 0)._perform, utc_now)
    await engine.take(dict.fromkeys(range(MOST), 1), "m")
    context = context_of(database, engine, clock=lambda: DUE, partitions=MOST)
    await Scheduler(context).fire_due()
    async with database.unit_of_work(read_only=True) as uow:
        (start,) = await uow.commands.starts(range(MOST), 10)
    assert (start.workflow_id, start.logical_time) == (workflow, DUE)


async def test_sub_workflow_starts(database: Database) -> None:
    harness = family_harness.Harness(database)
    await harness.publish("leaf", {"x": {}})
    top = await harness.publish(
        "top", {"s": {"type": "SUB_WORKFLOW", "params": {"workflow": "leaf"}}}
    )
    await take_keys(database, [f"child:{task}:0" for task in range(1, 20)])
    async with family_harness.Master(database).working() as master:
        await harness.send(CommandType.START, top)
        await master.run()
    done = [WorkflowState.SUCCEEDED]
    assert await harness.states() == {"top": done, "leaf": done}


async def test_backfill_starts_and_stops_its_dates(database: Database) -> None:
    harness = backfill_harness.Harness(database)
    await harness.publish()
    await take_keys(
        database,
        [f"backfill:1:{n}:{t}{end}" for n in range(3) for t in range(3) for end in ("", ":stop")],
    )
    async with backfill_harness.Master(database).working() as master:
        await harness.ask(**{"from": "2026-01-01", "to": "2026-01-02"}, parallel=2)
        await master.poll()
        assert [run.state for run in await harness.runs()] == [BackfillRunState.STARTED] * 2
        assert await harness.unfinished() == 2
        await harness.request(CommandType.CANCEL_BACKFILL, await harness.backfill(), "cancel")
        for _ in range(2):
            await master.poll()
        assert [one.state for one in await harness.instances()] == [STOPPED] * 2


async def test_run_that_was_admitted_but_never_told_is_told_again(database: Database) -> None:
    """As a data folder may hold it in which a caller's key once stood in the message's way."""
    harness = admission_harness.Harness(database)
    workflow = await harness.publish(overlap="queue")
    async with harness.working() as masters:
        first, second = [await harness.start(workflow, partition=0) for _ in range(2)]
        await harness.is_in(first, RUNNING)
        harness.deaf = True
        await harness.end(first)
        async with database.unit_of_work() as uow:
            is_message = command.c.idempotency_key == own_key(f"admit:{second.id}")
            await uow.connection.execute(command.delete().where(is_message))
            is_second = workflow_instance.c.id == second.id
            admitted = workflow_instance.update().where(is_second)
            await uow.connection.execute(admitted.values(admitted_at=utc_now() - LONG_AGO))
            await uow.commit()
        harness.deaf = False
        for master in masters:
            await master.admission.admit_waiting()
        await harness.is_in(second, RUNNING)
        async with database.unit_of_work(read_only=True) as uow:
            told = (await uow.commands.sent([f"admit:{second.id}"]))[f"admit:{second.id}"]
        assert told.state is not CommandState.REFUSED
