"""What a database that is away for a moment must not cost."""

import asyncio

import pytest

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.events import (
    TaskClaimed,
)
from shoal.core.runs.run import Enqueue
from shoal.core.runs.states import WorkflowState
from shoal.master.errors import NotStored
from shoal.master.services.commands.scanner import Scanner
from tests.integration.master.contexts import context_of
from tests.integration.master.engine.engine_harness import Harness
from tests.support.clock import utc_now
from tests.support.waiting import eventually


async def test_run_that_came_back_by_itself_still_gets_what_a_failed_store_lost(
    harness: Harness,
) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    harness.database.down = True
    async with harness.working():
        with pytest.raises(NotStored):  # its Begun was lost in the same batch
            await harness.engine.submit(0, run.id, TaskClaimed(1, "w", utc_now()))
        harness.database.down = False
        await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        await harness.engine.heal()
        again = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert again.state is WorkflowState.RUNNING
    assert harness.actions == [(run.id, Enqueue(("a", 1)))]


async def test_report_about_an_unknown_instance_in_an_outage_does_not_stop_the_healing(
    harness: Harness,
) -> None:
    await harness.engine.take({0: 1}, "m")
    harness.database.down = True
    async with harness.working():
        with pytest.raises(NotStored):
            await harness.engine.submit(0, 999, TaskClaimed(1, "w", utc_now()))
        harness.database.down = False
        await harness.engine.heal()


async def test_partition_that_goes_while_a_scan_waits_for_the_database_ends_nothing(
    harness: Harness,
) -> None:
    command = await harness.command(CommandType.START)
    await harness.engine.take({0: 1}, "m")
    scanner = Scanner(context_of(harness.database, harness.engine))
    async with harness.working():
        async with harness.database.unit_of_work() as busy:  # SQLite's only writer
            await busy.partitions.raise_epochs({0: 1}, "m")
            before = harness.database.writers
            scan = asyncio.create_task(scanner.scan([0]))
            await eventually(lambda: harness.database.writers > before)
            await harness.engine.drop([0])
        await scan
    assert (await harness.stored(command)).state is CommandState.DONE
    assert harness.engine.runs == {}
