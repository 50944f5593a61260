"""What may go from the history, and what stays whatever its age is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update

from shoal.core.runs.commands import CommandState, CommandType, NewCommand, Parent
from shoal.core.runs.run import Run
from shoal.core.runs.states import WorkflowState
from shoal.sql import Database
from shoal.sql.repositories.upkeep.expired_rows import Expired, ExpiryScope, without_looked_for
from shoal.sql.schema.tables import (
    backfill,
    backfill_run,
    command,
    concurrency_group,
    concurrency_lease,
    dependency_wait,
    event,
    metadata,
    task_instance,
    workflow,
    workflow_instance,
)
from tests.integration.sql.given import NOW, PARTITIONS, accepted, created, definition, published

BEFORE = NOW + timedelta(days=1)  # what ended at NOW is older
AFTERWARDS = NOW + timedelta(days=2)
ALL = ExpiryScope(range(PARTITIONS))


async def ended(
    database: Database, workflow_id: int, count: int = 1, at: datetime = NOW, **fields: Any
) -> list[Run]:
    """Create instances that ended ``at``; their commands are handled."""
    state = fields.pop("state", WorkflowState.SUCCEEDED)
    runs = await created(database, workflow_id, count, created_at=at, **fields)
    ids = [run.id for run in runs]
    async with database.unit_of_work() as uow:
        await uow.connection.execute(
            update(workflow_instance)
            .where(workflow_instance.c.id.in_(ids))
            .values(state=state, finished_at=at)
        )
        asked = select(workflow_instance.c.command_id).where(workflow_instance.c.id.in_(ids))
        await uow.connection.execute(
            update(command)
            .where(command.c.id.in_(asked))
            .values(state=CommandState.DONE, handled_at=at)
        )
        await uow.commit()
    return runs


async def may_go(database: Database, before: datetime = BEFORE) -> list[int]:
    """Return the instances that a look finds."""
    async with database.unit_of_work(read_only=True) as uow:
        window = await uow.expired.instances(ALL, before, 0, 100)
    assert window.next is None
    return [one.id for one in window.expired]


async def delete_instances(database: Database, *ids: int, before: datetime = BEFORE) -> set[int]:
    """Try to delete instances; return those that have gone."""
    async with database.unit_of_work() as uow:
        deleted = await uow.expired.delete_instances(ids, before)
        await uow.commit()
    return set(deleted.partitions)


async def rows(database: Database, table: Any) -> int:
    async with database.unit_of_work(read_only=True) as uow:
        found: int = await uow.connection.scalar(select(func.count()).select_from(table))
    return found


async def change(database: Database, statement: Any) -> None:
    async with database.unit_of_work() as uow:
        await uow.connection.execute(statement)
        await uow.commit()


async def test_instance_goes_with_all_that_belongs_to_it(database: Database) -> None:
    one, other = await ended(database, await published(database), 2)
    first = next(iter(one.attempts.values())).id
    values = {"project_id": 1, "name": "g", "description": "", "slots": 1, "updated_at": NOW}
    await change(database, insert(concurrency_group).values(**values))
    lease = {"task_instance_id": first, "group_id": 1, "granted_at": NOW}
    await change(database, insert(concurrency_lease).values(**lease))
    await change(
        database,
        insert(dependency_wait).values(
            task_instance_id=first, workflow_id=1, workflow_instance_id=one.id, partition=0
        ),
    )
    events = await rows(database, event)
    async with database.unit_of_work() as uow:
        deleted = await uow.expired.delete_instances([one.id], BEFORE)
        await uow.commit()
    assert (dict(deleted.partitions), deleted.attempts) == ({one.id: 0}, 2)
    assert deleted.events == events - await rows(database, event) > 0
    assert await rows(database, workflow_instance) == 1
    assert await rows(database, task_instance) == 2
    assert await rows(database, concurrency_lease) == await rows(database, dependency_wait) == 0
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.instances.run(other.id)).id == other.id


@pytest.mark.parametrize("state", list(WorkflowState))
async def test_only_what_is_finished_goes(database: Database, state: WorkflowState) -> None:
    [run] = await ended(database, await published(database), state=state)
    finished = state in (WorkflowState.SUCCEEDED, WorkflowState.FAILED, WorkflowState.STOPPED)
    assert await may_go(database) == [run.id] * finished
    assert await delete_instances(database, run.id) == ({run.id} if finished else set())


async def test_instance_that_ended_too_late_or_is_for_later_stays(database: Database) -> None:
    workflow_id = await published(database)
    [late] = await ended(database, workflow_id)
    [ahead] = await ended(database, workflow_id, logical_time=BEFORE)
    moved = update(workflow_instance).where(workflow_instance.c.id == late.id)
    await change(database, moved.values(finished_at=BEFORE))
    assert await may_go(database) == []
    assert await delete_instances(database, late.id, ahead.id) == set()


async def test_parents_go_before_their_children_and_not_before_those_have_ended(
    database: Database,
) -> None:
    workflow_id = await published(database)
    [parent] = await ended(database, workflow_id)
    attempt = next(iter(parent.attempts.values())).id
    assert attempt is not None
    nested = Parent(parent.id, attempt, 0, 0, 1, 0)
    [child] = await ended(database, workflow_id, state=WorkflowState.RUNNING, parent=nested)
    assert await may_go(database) == []
    assert await delete_instances(database, parent.id) == set()
    over = update(workflow_instance).where(workflow_instance.c.id == child.id)
    await change(database, over.values(state=WorkflowState.FAILED))
    assert await may_go(database) == [parent.id, child.id]
    assert await delete_instances(database, child.id) == set()
    assert await delete_instances(database, parent.id) == {parent.id}
    assert await delete_instances(database, child.id) == {child.id}


async def test_open_child_keeps_its_own_parent_and_nothing_else(database: Database) -> None:
    workflow_id = await published(database)
    [parent] = await ended(database, workflow_id)
    attempt = next(iter(parent.attempts.values())).id
    assert attempt is not None
    nested = Parent(parent.id, attempt, 0, 0, 1, 0)
    await ended(database, workflow_id, state=WorkflowState.RUNNING, parent=nested)
    [other] = await ended(database, workflow_id)
    assert await may_go(database) == [other.id]
    assert await delete_instances(database, parent.id, other.id) == {other.id}


async def test_child_is_found_with_the_parent_that_has_to_go_before_it(
    database: Database,
) -> None:
    workflow_id = await published(database)
    [parent] = await ended(database, workflow_id, state=WorkflowState.PAUSED)
    attempt = next(iter(parent.attempts.values())).id
    assert attempt is not None
    [child] = await ended(database, workflow_id, parent=Parent(parent.id, attempt, 0, 0, 1, 0))
    async with database.unit_of_work(read_only=True) as uow:
        [found] = (await uow.expired.instances(ALL, BEFORE, 0, 100)).expired
        assert await uow.expired.instances_among([parent.id], ALL, BEFORE) == []
    assert (found.id, found.parent) == (child.id, parent.id)
    assert await delete_instances(database, child.id) == set()


async def test_what_a_pending_command_is_about_stays(database: Database) -> None:
    workflow_id = await published(database)
    [run] = await ended(database, workflow_id)
    [asked] = await accepted(
        database,
        NewCommand(CommandType.RECOVER, 0, "again", workflow_id, instance_id=run.id),
    )
    assert await may_go(database) == []
    assert await delete_instances(database, run.id) == set()
    done = update(command).where(command.c.id == asked.id)
    await change(database, done.values(state=CommandState.REFUSED))
    assert await delete_instances(database, run.id) == {run.id}


async def a_backfill(database: Database, workflow_id: int, finished: datetime | None) -> int:
    [asked] = await accepted(database, NewCommand(CommandType.BACKFILL, 0, "back", workflow_id))
    values: dict[str, Any] = {
        "id": 7,
        "workflow_id": workflow_id,
        "partition": 0,
        "command_id": asked.id,
        "state": "RUNNING" if finished is None else "SUCCEEDED",
        "request": {},
        "requested_by": "",
        "created_at": NOW,
        "finished_at": finished,
    }
    await change(database, insert(backfill).values(**values))
    handled = update(command).where(command.c.id == asked.id)
    await change(
        database,
        handled.values(state=CommandState.DONE, handled_at=NOW, backfill_id=7),
    )
    date = {"backfill_id": 7, "position": 0, "workflow_id": workflow_id, "logical_time": NOW}
    await change(database, insert(backfill_run).values(**date, state="SUCCEEDED", tries=1))
    return 7


async def backfills_deleted(database: Database, *ids: int) -> set[int]:
    async with database.unit_of_work() as uow:
        window = await uow.expired.backfills(ALL, BEFORE, 0, 100)
        deleted = await uow.expired.delete_backfills(ids, BEFORE)
        await uow.commit()
    assert {one.id for one in window.expired} == set(deleted.partitions)
    return set(deleted.partitions)


async def test_backfill_goes_when_it_is_over_and_its_instances_after_it(
    database: Database,
) -> None:
    workflow_id = await published(database)
    number = await a_backfill(database, workflow_id, None)
    [run] = await ended(database, workflow_id, backfill_id=number)
    assert await backfills_deleted(database, number) == set()
    async with database.unit_of_work(read_only=True) as uow:
        [found] = (await uow.expired.instances(ALL, BEFORE, 0, 100)).expired
        assert await uow.expired.backfills_among([number], ALL, BEFORE) == []
    assert found.backfill == number
    over = update(backfill).values(finished_at=NOW, state="SUCCEEDED")
    await change(database, over)
    assert await delete_instances(database, run.id) == set()
    still = update(workflow_instance).where(workflow_instance.c.id == run.id)
    await change(database, still.values(state=WorkflowState.RUNNING))
    assert await backfills_deleted(database, number) == set()
    await change(database, still.values(state=WorkflowState.FAILED))
    assert await may_go(database) == [run.id]
    assert await backfills_deleted(database, number) == {number}
    assert await rows(database, backfill_run) == 0
    assert await delete_instances(database, run.id) == {run.id}


async def commands_deleted(database: Database, before: datetime = BEFORE) -> list[str]:
    """Delete the commands that a look finds; return the keys that are left."""
    async with database.unit_of_work() as uow:
        window = await uow.expired.commands(ALL, before, 0, 100)
        every = [row.id for row in await uow.connection.rows(select(command.c.id))]
        deleted = await uow.expired.delete_commands(every, before)
        assert {one.id for one in window.expired} == set(deleted.partitions)
        left = await uow.connection.rows(select(command.c.idempotency_key))
        await uow.commit()
    return sorted(row.idempotency_key for row in left)


async def test_key_is_known_as_long_as_what_it_has_made(database: Database) -> None:
    workflow_id = await published(database)
    [run] = await ended(database, workflow_id)
    number = await a_backfill(database, workflow_id, NOW)
    pause = NewCommand(CommandType.PAUSE, 0, "pause", workflow_id, instance_id=run.id)
    refused = NewCommand(CommandType.START, 0, "refused", workflow_id)
    waits = NewCommand(CommandType.START, 0, "waits", workflow_id)
    stored = await accepted(database, pause, refused, waits)
    async with database.unit_of_work() as uow:
        await uow.commands.done(stored[0].id, run.id, NOW)
        await uow.commands.refuse(stored[1].id, "no", NOW)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        start = (
            await uow.commands.get((await uow.instances.get(run.id)).command_id)
        ).idempotency_key
    assert await commands_deleted(database, NOW) == sorted(
        ["back", "pause", "refused", "waits", start]
    )
    assert await commands_deleted(database) == sorted(["back", "pause", "waits", start])
    assert await delete_instances(database, run.id) == {run.id}
    assert await commands_deleted(database) == ["back", "waits"]
    assert await backfills_deleted(database, number) == {number}
    assert await commands_deleted(database) == ["waits"]


async def test_newest_of_each_workflow_and_its_newest_success_stay(database: Database) -> None:
    one = await published(database)
    other = await published(database, definition("other"))
    success, *_ = await ended(database, one, 3)
    later = NOW + timedelta(seconds=1)
    failed = await ended(database, one, 3, at=later, state=WorkflowState.FAILED)
    await ended(database, other, 1)
    async with database.unit_of_work(read_only=True) as uow:
        kept = await uow.expired.kept(one, 2)
        assert kept == {run.id for run in failed[1:]} | {success.id + 2}
        assert await uow.expired.kept(one, 0) == {success.id + 2}
    gone = update(workflow).where(workflow.c.id == one)
    await change(database, gone.values(deleted_at=NOW))
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.expired.kept(one, 2) == set()


async def test_runs_that_waiting_tasks_may_look_for_stay(database: Database) -> None:
    """Somebody runs the day of last year again: its upstream runs are of last year, too."""
    workflow_id = await published(database)
    last_year = NOW - timedelta(days=365)
    [waiting] = await created(database, workflow_id, logical_time=last_year)
    attempt = next(iter(waiting.attempts.values())).id
    row = {"task_instance_id": attempt, "workflow_id": workflow_id, "partition": 0}
    await change(database, insert(dependency_wait).values(**row, workflow_instance_id=waiting.id))
    async with database.unit_of_work(read_only=True) as uow:
        since = await uow.expired.looked_for_since([workflow_id, 99])
    assert since == {workflow_id: last_year}
    before = AFTERWARDS - timedelta(days=90)

    def of(logical_time: datetime) -> Expired:
        return Expired(1, 0, workflow_id, NOW, logical_time)

    looked_for = [of(last_year), of(last_year - timedelta(days=89))]
    old = of(last_year - timedelta(days=91))
    assert without_looked_for([*looked_for, old], since, before, AFTERWARDS) == [old]
    elsewhere = replace(looked_for[0], workflow_id=99)
    assert without_looked_for([elsewhere], since, before, AFTERWARDS) == [elsewhere]


async def test_walk_goes_on_where_it_stopped_and_ends_at_what_is_too_young(
    database: Database,
) -> None:
    workflow_id = await published(database)
    old = await ended(database, workflow_id, 5)
    await ended(database, workflow_id, 5, at=AFTERWARDS)
    found, after, windows = [], 0, 0
    async with database.unit_of_work(read_only=True) as uow:
        while True:
            window = await uow.expired.instances(ALL, BEFORE, after, 2)
            found += [one.id for one in window.expired]
            windows += 1
            if window.next is None:
                break
            after = window.next
    assert found == [run.id for run in old]
    assert windows <= 4  # of 5


async def test_only_the_partitions_and_workflows_asked_for_are_found(database: Database) -> None:
    one = await published(database)
    other = await published(database, definition("other"))
    [here] = await ended(database, one, partition=1)
    await ended(database, one, partition=2)
    await ended(database, other, partition=1)
    async with database.unit_of_work(read_only=True) as uow:
        window = await uow.expired.instances(ExpiryScope([1], {one}), BEFORE, 0, 10)
    assert [found.id for found in window.expired] == [here.id]


async def test_a_recovery_under_way_is_not_deleted_under_its_feet(
    ready_url: str, database: Database
) -> None:
    """PostgreSQL: what somebody has locked is left for another time. SQLite has one writer."""
    [run] = await ended(database, await published(database))
    if database.kind == "sqlite":
        return
    async with Database(ready_url) as other, other.unit_of_work() as recovering:
        await recovering.connection.execute(
            update(workflow_instance)
            .where(workflow_instance.c.id == run.id)
            .values(state=WorkflowState.RUNNING, finished_at=None)
        )
        assert await delete_instances(database, run.id) == set()
        await recovering.commit()
    assert await delete_instances(database, run.id) == set()


async def test_nothing_refers_to_what_has_gone(database: Database) -> None:
    """Every table that could refer to an instance or a command does so by a rule of ours."""
    [run] = await ended(database, await published(database))
    async with database.unit_of_work() as uow:
        await uow.labels.change(run.id, {"team": "a"}, NOW)
        await uow.commit()
    assert await delete_instances(database, run.id) == {run.id}
    assert await commands_deleted(database) == []
    if database.kind == "sqlite":
        async with database.unit_of_work(read_only=True) as uow:
            assert not await uow.connection.rows(text("PRAGMA foreign_key_check"))
    referring = {
        key.parent.table.name
        for table in metadata.tables.values()
        for key in table.foreign_keys
        if key.column.table.name in ("command", "workflow_instance", "backfill")
    }
    known = {"workflow_instance", "task_instance", "backfill", "backfill_run", "instance_label"}
    assert referring == known


_YEAR_1 = datetime(1, 1, 2, tzinfo=UTC)
_YEAR_9999 = datetime(9999, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize("wrong", [_YEAR_1, _YEAR_9999, AFTERWARDS])
@pytest.mark.parametrize("place", ["first", "last of a window", "block"])
async def test_runs_of_a_wrong_clock_stop_no_walk(
    database: Database, wrong: datetime, place: str
) -> None:
    """Also a whole window of them, such as a clock makes that was wrong for an hour."""
    workflow_id = await published(database)
    runs = await ended(database, workflow_id, 30)
    ids = [run.id for run in runs]
    of = {"first": ids[:1], "last of a window": ids[4:5], "block": ids[5:15]}[place]
    i = workflow_instance.c
    await change(database, update(workflow_instance).where(i.id.in_(of)).values(created_at=wrong))
    found: list[int] = []
    after: int | None = 0
    async with database.unit_of_work(read_only=True) as uow:
        while after is not None:
            window = await uow.expired.instances(ALL, BEFORE, after, 5)
            found += [one.id for one in window.expired]
            after = window.next
    assert found == ids


async def test_a_walk_ends_where_rows_are_young(database: Database) -> None:
    """However many follow, and although one of them says that it is old."""
    workflow_id = await published(database)
    old = await ended(database, workflow_id, 10)
    young = await ended(database, workflow_id, 200, AFTERWARDS)
    i = workflow_instance.c
    await change(
        database,
        update(workflow_instance).where(i.id == young[-5].id).values(created_at=_YEAR_1),
    )
    windows = 0
    after: int | None = 0
    async with database.unit_of_work(read_only=True) as uow:
        while after is not None:
            after = (await uow.expired.instances(ALL, BEFORE, after, 5)).next
            windows += 1
    assert windows <= len(old) / 5 + 1
