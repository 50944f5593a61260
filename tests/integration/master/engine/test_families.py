"""Workflows that run each other: how many runs descend from one, and a stop that reaches them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.records import TaskInstance
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState
from shoal.sql import Database
from tests.integration.master.services.family_harness import PARTITIONS, Harness, Master
from tests.support.database.databases import migrated, migrated_url

ITEM = {"item": {"type": "string", "default": ""}}
START, STOP = CommandType.START, CommandType.STOP


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with migrated(migrated_url(request, request.param), PARTITIONS) as found:
        yield found


@pytest.fixture
def harness(database: Database) -> Harness:
    return Harness(database)


def each(workflow: str, items: int = 3) -> dict[str, Any]:
    listed = [str(n) for n in range(items)]
    params = {"workflow": workflow, "items": listed, "parameter": "item", "parallel": items}
    return {"type": "MAP", "params": params}


async def cycle(harness: Harness) -> int:
    """Publish two workflows that run each other three times."""
    await harness.publish("b", {"m": each("a")}, parameters=ITEM)
    return await harness.publish("a", {"m": each("b")}, parameters=ITEM)


def never(_task: TaskInstance) -> None:
    return None


async def test_descendants_of_one_run_are_bounded(harness: Harness, database: Database) -> None:
    workflow = await cycle(harness)
    async with Master(database, max_descendants=40).working() as master:
        await harness.send(START, workflow)
        await master.run()
        runs = await harness.instances()
        assert len(runs) == 41
        assert {run.state for run in runs} == {WorkflowState.FAILED}
        root = runs[0]
        reason = (await harness.task(runs[-1], "m")).reason or ""
        assert f"instance {root.id} has 40 runs of sub-workflows" in reason
        # Others have their own bound.
        await harness.send(START, workflow)
        await master.run()
        assert len(await harness.instances()) == 82


async def test_no_child_starts_below_a_run_that_is_being_stopped(
    harness: Harness, database: Database
) -> None:
    """However far above: the child has not heard of it yet."""
    await harness.publish("leaf", {"x": {}}, parameters=ITEM)
    inner = {"a": {}, "m": each("leaf") | {"depends_on": ["a"]}}
    await harness.publish("mid", inner, parameters=ITEM)
    top = await harness.publish("top", {"m": each("mid", 1)})
    async with Master(database).working() as master:
        await harness.send(START, top)
        await master.poll()
        await master.work()  # the run in the middle asks for its children, which are not there yet
        children = await harness.pending(START)
        assert len(children) == 3
        root = (await harness.instances("top"))[0]
        mid = (await harness.instances("mid"))[0]
        async with database.unit_of_work() as uow:  # stopping, and nobody below knows
            await uow.instances.save(
                [(run := master.engine.runs[root.id], master.stop_of(run))], master.now()
            )
            await uow.commit()
        await master.scanner.scan(range(PARTITIONS))
        for command in children:
            found = await harness.command(command)
            assert found.state is CommandState.REFUSED
            assert f"instance {root.id}, which it would work for, is being stopped" in (
                found.reason or ""
            )
        assert await harness.instances("leaf") == []
        assert mid.parent is not None


async def test_stop_of_a_cycle_is_over_soon(harness: Harness, database: Database) -> None:
    """It is not in line behind the children that are to start."""
    workflow = await cycle(harness)
    async with Master(database).working() as master:
        await harness.send(START, workflow)
        while (before := len(await harness.instances())) < 10:
            await master.scanner.scan(range(PARTITIONS))
            await master.hear()
        root = (await harness.instances())[0]
        await harness.ask(STOP, root)
        await master.run(never)
        runs = await harness.instances()
        assert {run.state for run in runs} <= FINISHED_WORKFLOW
        assert (await harness.instances())[0].state is WorkflowState.STOPPED
        assert len(runs) <= 4 * before


async def test_request_is_read_beside_any_number_of_children(
    harness: Harness, database: Database
) -> None:
    workflow = await harness.publish("a", {"x": {}})
    async with Master(database).working() as master:
        await harness.send(START, workflow)
        await master.poll()
        (run,) = await harness.instances()
        for _ in range(20):
            await harness.send(START, workflow, parent=master.parent_of(run))
        stop = await harness.ask(STOP, run)
        async with database.unit_of_work(read_only=True) as uow:
            _, found = await uow.commands.pending(range(PARTITIONS), 0, 5)
        assert stop.id in [command.id for command in found]
        assert len(found) == 6
