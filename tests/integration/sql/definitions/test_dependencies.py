"""What DEPENDENT tasks look for in the database, and what waits for what."""

import asyncio
from datetime import timedelta

from shoal.core.definition.selection import Selection
from shoal.core.logic.dependency_rules import TaskRun, WorkflowRun
from shoal.core.runs.events import Begun, RerunRequested, TaskClaimed, TaskEnded, TaskStarted
from shoal.core.runs.run import Run
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.sql import Database
from shoal.sql.repositories.runs.dependencies import Range, Wait
from tests.integration.sql.given import LATER, NOW, created, definition, published, stored

HOUR = timedelta(hours=1)
UP, OTHER, NONE = ("demo", "up"), ("demo", "other"), ("demo", "none")


async def runs(
    database: Database, workflow_id: int, *ranges: Range, tasks: tuple[str, ...] = ()
) -> list[WorkflowRun]:
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.dependencies.runs({workflow_id: ranges}, tasks)
    return sorted(found.get(workflow_id, []), key=lambda run: run.instance_id)


async def ended(database: Database, run: Run, task: str, signal: TaskSignal) -> None:
    """The worker runs a queued task to its end."""
    attempt_id = run.attempts[task].id
    assert attempt_id is not None
    await stored(database, run, TaskClaimed(attempt_id, "w", NOW))
    await stored(database, run, TaskEnded(attempt_id, signal, LATER, "w"))


async def test_runs_are_found_by_logical_time(database: Database) -> None:
    up = await published(database, definition("up"))
    other = await published(database, definition("other"))
    (early,) = await created(database, up, logical_time=NOW)
    (late,) = await created(database, up, logical_time=NOW + HOUR)
    await created(database, other, logical_time=NOW)
    assert [run.instance_id for run in await runs(database, up, (NOW, NOW + HOUR))] == [early.id]
    both = ((NOW + HOUR, NOW + 2 * HOUR), (NOW, NOW + HOUR / 2))
    assert [run.instance_id for run in await runs(database, up, *both)] == [early.id, late.id]
    assert await runs(database, up, (NOW + 2 * HOUR, NOW + 3 * HOUR)) == []
    (found,) = await runs(database, up, (NOW, NOW + HOUR))
    assert found == WorkflowRun(early.id, NOW, WorkflowState.QUEUED, succeeded=False)


async def test_success_of_an_instance_outlives_a_rerun_that_fails(database: Database) -> None:
    up = await published(database, definition("up", tasks=["a"]))
    (run,) = await created(database, up)
    await stored(database, run, Begun(NOW))
    await ended(database, run, "a", TaskSignal.SUCCEED)
    (found,) = await runs(database, up, (NOW, LATER), tasks=("a",))
    assert (found.state, found.succeeded) == (WorkflowState.SUCCEEDED, True)
    await stored(database, run, RerunRequested(Selection(("a",)), NOW))
    await ended(database, run, "a", TaskSignal.FAIL)
    (found,) = await runs(database, up, (NOW, LATER), tasks=("a", "b"))
    assert (found.state, found.succeeded) == (WorkflowState.FAILED, True)
    attempt_id = run.attempts["a"].id
    assert attempt_id is not None
    assert found.tasks == {"a": TaskRun(attempt_id, TaskState.FAILED, succeeded=True)}


async def test_failed_instance_has_not_succeeded(database: Database) -> None:
    up = await published(database, definition("up", tasks=["a"]))
    (run,) = await created(database, up, selection=Selection(("a",)))
    await stored(database, run, Begun(NOW))
    await ended(database, run, "a", TaskSignal.FAIL)
    (found,) = await runs(database, up, (NOW, LATER))
    assert (found.succeeded, found.is_whole, found.tasks) == (False, False, {})


async def test_workflows_are_found_by_name_also_when_deleted(database: Database) -> None:
    up = await published(database, definition("up"))
    async with database.unit_of_work() as uow:
        await uow.lifecycle.delete("demo", "up", NOW)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.dependencies.workflow_ids([UP, NONE]) == {UP: up}
        assert await uow.dependencies.workflow_ids([]) == {}


async def test_who_waits_is_known_by_what_it_waits_for(database: Database) -> None:
    up = await published(database, definition("up"))
    other = await published(database, definition("other"))
    waits = [Wait(11, up, 1, 3), Wait(12, up, 2, 5), Wait(12, other, 2, 5)]

    async def register() -> None:
        async with database.unit_of_work() as uow:
            await uow.dependencies.register(waits)
            await uow.commit()

    await asyncio.gather(register(), register())
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.dependencies.waiting_for([UP, OTHER, NONE])
        assert found == {UP: {3, 5}, OTHER: {5}}
        assert await uow.dependencies.waiting_for([NONE]) == {}
    async with database.unit_of_work() as uow:
        await uow.dependencies.forget([12])
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.dependencies.waiting_for([UP, OTHER]) == {UP: {3}}


async def test_leftovers_are_those_that_do_not_run(database: Database) -> None:
    up = await published(database, definition("up", tasks=["a"]))
    going, over = await created(database, up, 2)
    for run in (going, over):
        await stored(database, run, Begun(NOW))
    await ended(database, over, "a", TaskSignal.SUCCEED)
    (going_id, over_id) = (going.attempts["a"].id, over.attempts["a"].id)
    assert going_id is not None
    assert over_id is not None
    await stored(database, going, TaskClaimed(going_id, "w", NOW))
    await stored(database, going, TaskStarted(going_id, "w", NOW))
    async with database.unit_of_work() as uow:
        waits = [Wait(i, up, 1, 2) for i in (going_id, over_id, 999)]
        await uow.dependencies.register([*waits, Wait(1_000, up, 1, 3)])
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.dependencies.leftovers([2]) == {over_id: 2, 999: 2}
