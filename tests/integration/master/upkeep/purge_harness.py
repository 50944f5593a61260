"""A master that purges when a test calls it, and the rows that a purge leaves."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import func, select

from shoal.coordination import partition_of
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.events import TaskClaimed, TaskEnded
from shoal.core.runs.records import Instance
from shoal.core.runs.retention import Hours, NewPurge, Purge, Retention
from shoal.core.runs.states import TaskSignal
from shoal.core.timing.cron.trigger import ShoalCronTrigger
from shoal.master.services.upkeep.purges import Purger
from shoal.master.settings import MasterSettings
from shoal.sql import Database
from shoal.sql.schema.tables import workflow_instance
from tests.integration.master.contexts import context_of
from tests.integration.master.services.backfill_harness import PARTITIONS, Harness, Master
from tests.support.clock import utc_now
from tests.support.database.databases import migrated, migrated_url

ALWAYS = MasterSettings().hours


NOTHING_KEPT = Retention.of_days(
    instances=1e-9, newest=0, events=1e-9, commands=1e-9, backfills=1e-9
)


class Keeping(Master):
    """A master that purges when a test calls it."""

    def __init__(
        self, database: Database, epoch: int = 1, retention: Retention = NOTHING_KEPT, **more: Any
    ) -> None:
        super().__init__(database, epoch)
        options = {
            "purge_interval_s": 3600.0,
            "scan_interval_s": 3600.0,
            "purge_batch": 2,
            "purge_share": 1.0,
        } | more
        hours: Hours = options.pop("hours", ALWAYS)
        trigger: ShoalCronTrigger | None = options.pop("trigger", None)
        is_exported: bool = options.pop("is_exported", False)
        context = context_of(database, self.engine, partitions=PARTITIONS, **options)
        self.jobs = context.jobs
        self.purger = Purger(context, retention, hours, trigger, is_exported=is_exported)

    async def look(self) -> None:
        """Do what the jobs do at a fire time, and when requests may have come."""
        await self.purger.ask_when_due()
        await self.purger.serve_requests()

    async def run(self, workflow_id: int, key: str, *, to_end: bool = True) -> Instance:
        """Start an instance of a workflow with one task, and end it."""
        new = NewCommand(CommandType.START, partition_of(key, PARTITIONS), key, workflow_id)
        async with self.database.unit_of_work() as uow:
            asked, _ = await uow.commands.add(new, utc_now())
            await uow.commit()
        await self.scanner.scan(range(PARTITIONS))
        async with self.database.unit_of_work(read_only=True) as uow:
            asked = await uow.commands.get(asked.id)
            assert asked.result_instance_id is not None
            instance = await uow.instances.get(asked.result_instance_id)
            (task,) = await uow.tasks.of_instance(instance.id)
        if to_end:
            where = (instance.partition, instance.id)
            await self.engine.submit(*where, TaskClaimed(task.id, "w", utc_now()))
            ended = TaskEnded(task.id, TaskSignal.FAIL, utc_now(), worker="w", exit_code=1)
            await self.engine.submit(*where, ended)
        return instance


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = migrated_url(request, request.param)
    async with migrated(url, PARTITIONS) as opened:
        yield opened


async def publish(database: Database, **fields: Any) -> int:
    return await Harness(database).publish(**fields)


async def count(database: Database, table: Any) -> int:
    async with database.unit_of_work(read_only=True) as uow:
        found: int = await uow.connection.scalar(select(func.count()).select_from(table))
    return found


async def ids(database: Database) -> set[int]:
    async with database.unit_of_work(read_only=True) as uow:
        return {row.id for row in await uow.connection.rows(select(workflow_instance.c.id))}


async def ask(database: Database, **fields: Any) -> int:
    async with database.unit_of_work() as uow:
        purge = await uow.purges.add(NewPurge(**fields), PARTITIONS, utc_now())
        await uow.commit()
    return purge.id


async def stored(database: Database, purge_id: int) -> Purge:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.purges.get(purge_id)


async def asked(database: Database) -> list[datetime]:
    async with database.unit_of_work(read_only=True) as uow:
        return [one.created_at for one in await uow.purges.list()]
