"""Workflows that are archived or renamed while something of them runs, or is about to."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database
from tests.integration.master.services.family_harness import PARTITIONS, Harness, Master
from tests.support.database.databases import migrated, migrated_url

W = WorkflowState


@pytest.fixture
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with migrated(migrated_url(request, "sqlite"), PARTITIONS) as found:
        yield found


@pytest.fixture
def harness(database: Database) -> Harness:
    return Harness(database)


async def archive(database: Database, name: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.lifecycle.archive("default", name, datetime.now(UTC))
        await uow.commit()


async def test_nothing_of_an_archived_workflow_starts_and_what_runs_goes_on(
    harness: Harness, database: Database
) -> None:
    leaf = await harness.publish("leaf", {"x": {}})
    child = {"type": "SUB_WORKFLOW", "params": {"workflow": "leaf"}}
    top = await harness.publish("top", {"s": child})
    async with Master(database).working() as master:
        await harness.send(CommandType.START, leaf)
        await master.poll()
        (first,) = await harness.instances("leaf")
        # Accepted before, carried out after.
        start = await harness.send(CommandType.START, leaf)
        numbered = await harness.send(CommandType.START, leaf, version=1)
        await archive(database, "leaf")
        await master.run()
        rerun = await harness.ask(CommandType.RERUN, first)
        await harness.send(CommandType.START, top)
        await master.run()
    for command in (start, numbered, rerun):
        refused = await harness.command(command)
        assert refused.state is CommandState.REFUSED
        assert "workflow default/leaf is archived" in (refused.reason or "")
    assert await harness.states() == {"leaf": [W.SUCCEEDED], "top": [W.FAILED]}
    (parent,) = await harness.instances("top")
    task = await harness.task(parent, "s")
    assert task.state is TaskState.FAILED
    assert "workflow default/leaf is archived" in (task.reason or "")


async def test_a_run_goes_on_when_its_workflow_is_renamed(
    harness: Harness, database: Database
) -> None:
    workflow = await harness.publish("before", {"a": {}, "b": {"depends_on": ["a"]}})
    async with Master(database).working() as master:
        await harness.send(CommandType.START, workflow)
        await master.poll()
        async with database.unit_of_work() as uow:
            await uow.lifecycle.rename("default", "before", "after", datetime.now(UTC), "ada")
            await uow.commit()
        await master.run()
        (first,) = await harness.instances("after")
        await harness.ask(CommandType.RERUN, first)
        await harness.send(CommandType.START, workflow)
        await master.run()
    found = await harness.instances("after")
    assert [(one.state, one.version) for one in found] == [
        (W.SUCCEEDED, 1),
        (W.SUCCEEDED, 1),
        (W.SUCCEEDED, 2),
    ]
