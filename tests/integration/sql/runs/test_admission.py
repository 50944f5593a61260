"""Line-ups of workflows: who is active, who waits, and that only one at a time decides upon it."""

import asyncio
from collections.abc import Sequence

import pytest

from shoal.core.definition.model import Overlap
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.events import Begun, StopRequested
from shoal.core.runs.overlap import Lineup, OverlapPolicy, Waiter
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import WorkflowState
from shoal.sql import Database
from shoal.sql.repositories.runs.admission import supersede_key
from tests.integration.sql.given import (
    LATER,
    NOW,
    accepted,
    created,
    definition,
    instance,
    published,
    start,
    stored,
)
from tests.support.instances import create
from tests.support.waiting import DEADLINE_S

QUEUE = OverlapPolicy(Overlap.QUEUE, 1, 1_000)


async def lineup(database: Database, workflow_id: int, policy: OverlapPolicy = QUEUE) -> Lineup:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.admission.lineup(workflow_id, policy)


async def states(database: Database, runs: Sequence[Run], state: WorkflowState) -> None:
    """Bring runs into a state, whatever led to it."""
    async with database.unit_of_work() as uow:
        changes = [(run, Decision(state=state, previous=run.state)) for run in runs]
        for run, decision in changes:
            run.apply(decision)
        await uow.instances.save(changes, NOW)
        await uow.commit()


async def waiting(database: Database, workflow_id: int, *priorities: int) -> list[Run]:
    """Create runs that wait, in partition 0."""
    commands = await accepted(database, *(start(workflow_id) for _ in priorities))
    async with database.unit_of_work() as uow:
        new = [
            instance(c, priority=p, admitted_at=None)
            for c, p in zip(commands, priorities, strict=True)
        ]
        runs = await create(uow, new)
        await uow.commit()
    return runs


async def test_lineup_knows_who_is_active_and_who_waits(database: Database) -> None:
    workflow_id = await published(database)
    other = await published(database, definition("other"))
    active = await created(database, workflow_id, 5)
    for run, state in zip(
        active,
        [
            WorkflowState.RUNNING,
            WorkflowState.PAUSED,  # takes its place as well
            WorkflowState.STOPPING,
            WorkflowState.SUCCEEDED,
            WorkflowState.QUEUED,  # not yet decided upon
        ],
        strict=True,
    ):
        if run.state is not state:
            await states(database, [run], state)
    await created(database, other, 2)
    await created(database, workflow_id, backfill_id=7)  # has its own window
    first, second = await waiting(database, workflow_id, 3, 1)
    await waiting(database, other, 2)
    three = OverlapPolicy(Overlap.REPLACE, 3, 10)
    assert await lineup(database, workflow_id, three) == Lineup(
        active=4,
        waiting=(Waiter(first.id, 3, NOW), Waiter(second.id, 1, NOW)),
        waiting_count=2,
        replaceable=(active[0].id, active[1].id, active[4].id),
    )


async def test_resumed_run_that_had_been_stopped_while_it_waited_is_active(
    database: Database,
) -> None:
    workflow_id = await published(database)
    (run,) = await waiting(database, workflow_id, 2)
    for state in (WorkflowState.STOPPING, WorkflowState.STOPPED, WorkflowState.RUNNING):
        await states(database, [run], state)
    assert await lineup(database, workflow_id) == Lineup(active=1)


async def test_lineup_reads_no_more_than_the_policy_needs(database: Database) -> None:
    workflow_id = await published(database)
    await created(database, workflow_id, 5)
    runs = await waiting(database, workflow_id, 2, 4, 0, 3)
    found = await lineup(database, workflow_id, OverlapPolicy(Overlap.QUEUE, 2, 10))
    assert (found.active, found.waiting_count) == (2, 4)  # it is full
    assert [w.id for w in found.waiting] == [runs[0].id, runs[1].id]
    by_priority = OverlapPolicy(Overlap.QUEUE_BY_PRIORITY, 2, 10)
    found = await lineup(database, workflow_id, by_priority)
    assert [w.id for w in found.waiting] == [runs[2].id, runs[0].id]
    latest = await lineup(database, workflow_id, OverlapPolicy(Overlap.QUEUE_LATEST, 2, 10))
    assert len(latest.waiting) == 4


async def test_run_that_is_told_to_stop_does_not_wait_any_more(database: Database) -> None:
    workflow_id = await published(database)
    first, second = await waiting(database, workflow_id, 2, 2)
    stop = NewCommand(
        CommandType.STOP, 0, supersede_key(first.id), workflow_id, instance_id=first.id
    )
    async with database.unit_of_work() as uow:
        await uow.commands.send_many([stop], NOW)
        await uow.commit()
    assert [w.id for w in (await lineup(database, workflow_id)).waiting] == [second.id]


async def test_only_who_waits_is_admitted_and_only_once(database: Database) -> None:
    workflow_id = await published(database)
    (active,) = await created(database, workflow_id, partition=3)
    one, two, stopped = await waiting(database, workflow_id, 2, 2, 2)
    await stored(database, stopped, StopRequested(NOW))
    ids = [active.id, one.id, two.id, stopped.id, 4711]
    async with database.unit_of_work() as uow:
        assert await uow.admission.admit(ids, LATER) == {one.id: 0, two.id: 0}
        assert await uow.admission.admit(ids, LATER) == {}
        assert await uow.admission.partitions_of(ids) == {
            active.id: 3,
            one.id: 0,
            two.id: 0,
            stopped.id: 0,
        }
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.instances.get(one.id)).admitted_at == LATER
        assert (await uow.instances.get(active.id)).admitted_at == NOW


async def test_workflows_that_allow_overlaps_are_not_locked(database: Database) -> None:
    free = await published(database, definition("free"))
    queued = await published(database, definition("queued", overlap="queue", max_active=3))
    async with database.unit_of_work() as uow:
        assert await uow.admission.lock({free: 1, queued: 1}) == {
            queued: OverlapPolicy(Overlap.QUEUE, 3, 1_000)
        }
    runs = await created(database, free, 2) + await created(database, queued)
    ids = [run.id for run in runs]
    async with database.unit_of_work() as uow:
        assert (await uow.admission.lock_of(ids)).keys() == {queued}
        assert (await uow.admission.lock_of(ids, all_of_them=True)).keys() == {free, queued}


async def test_newest_version_says_the_policy(database: Database) -> None:
    workflow_id = await published(database, definition(overlap="queue"))
    await published(database, definition(overlap="replace", max_active=2))
    async with database.unit_of_work() as uow:
        policies = await uow.admission.lock({workflow_id: 1})
    assert policies == {workflow_id: OverlapPolicy(Overlap.REPLACE, 2, 1_000)}


async def test_runs_of_backfills_lock_nothing(database: Database) -> None:
    workflow_id = await published(database, definition(overlap="queue"))
    other = await published(database, definition("other", overlap="queue"))
    runs = await created(database, workflow_id, 2)
    runs += await created(database, other, backfill_id=1)
    async with database.unit_of_work() as uow:
        assert (await uow.admission.lock_of([r.id for r in runs])).keys() == {workflow_id}
        assert await uow.admission.lock_of([]) == {}


async def test_second_master_sees_what_the_first_one_has_admitted(
    database: Database, ready_url: str
) -> None:
    """The lock of one workflow holds up nobody who works on another."""
    workflow_id = await published(database, definition(overlap="queue"))
    free = await published(database, definition("other", overlap="queue"))
    (run,) = await waiting(database, workflow_id, 2)
    locked = asyncio.Event()

    async with Database(ready_url) as other:

        async def look() -> Lineup:
            async with other.unit_of_work() as uow:
                await uow.admission.lock({workflow_id: 1})
                locked.set()
                return await uow.admission.lineup(workflow_id, QUEUE)

        async with database.unit_of_work() as uow:
            await uow.admission.lock({workflow_id: 1})
            looking = asyncio.create_task(look())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(locked.wait(), 0.3)
            if database.kind == "postgresql":  # SQLite has one writer anyway
                async with other.unit_of_work() as beside:
                    await asyncio.wait_for(beside.admission.lock({free: 1}), DEADLINE_S)
            await uow.admission.admit([run.id], NOW)
            await uow.commit()
        seen = await asyncio.wait_for(looking, DEADLINE_S)
    assert (seen.active, seen.waiting) == (1, ())


async def test_commands_are_accepted_while_the_workflow_is_locked(postgresql_copy: str) -> None:
    async with Database(postgresql_copy) as database:
        workflow_id = await published(database, definition(overlap="queue"))
        async with database.unit_of_work() as uow:
            await uow.admission.lock({workflow_id: 1})
            await asyncio.wait_for(accepted(database, start(workflow_id)), DEADLINE_S)


async def test_policy_does_not_change_under_the_lock(postgresql_copy: str) -> None:
    async with Database(postgresql_copy) as database:
        workflow_id = await published(database, definition(overlap="queue"))
        async with database.unit_of_work() as uow:
            await uow.admission.lock({workflow_id: 1})
            publishing = asyncio.create_task(published(database, definition(overlap="allow")))
            await asyncio.wait([publishing], timeout=0.3)
            assert not publishing.done()
            await uow.commit()
        await asyncio.wait_for(publishing, DEADLINE_S)


async def test_begun_run_of_the_database_is_as_it_was_admitted(database: Database) -> None:
    workflow_id = await published(database)
    (run,) = await waiting(database, workflow_id, 2)
    assert run.admitted_at is None
    async with database.unit_of_work() as uow:
        await uow.admission.admit([run.id], LATER)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        (loaded,) = await uow.instances.open_runs(0)
    assert loaded.admitted_at == LATER
    await stored(database, loaded, Begun(LATER))
    assert (await lineup(database, workflow_id)).active == 1
