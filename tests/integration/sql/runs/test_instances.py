"""Workflow instances and their attempts: created, loaded, listed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shoal.core.runs.events import (
    Begun,
    PauseRequested,
    StopRequested,
    TaskClaimed,
    TaskEnded,
    TimeReached,
)
from shoal.core.runs.run import Attempt
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.sql import Database
from shoal.sql.errors import AlreadyExists, InvalidValue, NotFound
from shoal.sql.repositories.search import tasks as task_search
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

S, W = TaskState, WorkflowState


async def test_new_instance_has_a_waiting_attempt_of_every_task(database: Database) -> None:
    spec = definition(tasks={"z": [], "a": ["z"], "m": ["z", "a"]}, parameters={"day": "x"})
    workflow_id = await published(database, spec)
    (run,) = await created(
        database,
        workflow_id,
        partition=5,
        priority=1,
        parameters={"day": "2026-02-28"},
        logical_time=LATER,
        timezone="Asia/Kathmandu",
    )
    assert (run.state, run.partition, run.priority) == (W.QUEUED, 5, 1)
    assert (run.version, run.timezone, run.logical_time) == (1, "Asia/Kathmandu", LATER)
    assert run.plan.spec == spec
    assert list(run.attempts) == ["z", "a", "m"]
    ids = [attempt.id for attempt in run.attempts.values()]
    assert run.attempts["m"] == Attempt("m", 1, id=ids[2])
    assert None not in ids
    assert ids == sorted(set(ids), key=lambda one: one or 0)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instances.run(run.id) == run
        assert [task.id for task in await uow.tasks.of_instance(run.id)] == ids


async def test_many_instances_are_created_in_the_order_given(database: Database) -> None:
    first = await published(database, definition("one", tasks=["a"]))
    second = await published(database, definition("two", tasks=["b", "c"]))
    commands = await accepted(database, *(start(w) for w in (second, first, second)))
    async with database.unit_of_work() as uow:
        runs = await create(uow, [instance(one) for one in commands])
        await uow.commit()
    assert [run.plan.spec.name for run in runs] == ["two", "one", "two"]
    assert [run.id for run in runs] == sorted(run.id for run in runs)
    ids = [attempt.id or 0 for run in runs for attempt in run.attempts.values()]
    assert ids == sorted(ids)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instances.open_runs(0) == runs
        assert await create(uow, []) == []


async def test_command_never_becomes_two_instances(database: Database) -> None:
    workflow_id = await published(database)
    (command,) = await accepted(database, start(workflow_id))
    async with database.unit_of_work() as uow:
        await create(uow, [instance(command)])
        await uow.commit()
    async with database.unit_of_work() as uow:
        with pytest.raises(AlreadyExists):
            await create(uow, [instance(command)])


async def test_instance_of_an_unknown_version_is_not_found(database: Database) -> None:
    workflow_id = await published(database)
    (command,) = await accepted(database, start(workflow_id))
    async with database.unit_of_work() as uow:
        with pytest.raises(NotFound, match="workflow version 2 of workflow"):
            await create(uow, [instance(command, version=2)])


async def test_another_process_reads_the_same_runs(database: Database, ready_url: str) -> None:
    """The versions come from the table there, not from the writer's memory."""
    workflow_ids = [await published(database, definition(f"flow{i}")) for i in range(3)]
    runs = [run for w in workflow_ids for run in await created(database, w)]
    async with Database(ready_url) as other, other.unit_of_work(read_only=True) as uow:
        assert await uow.instances.open_runs(0) == runs


async def test_only_runs_to_work_on_are_open(database: Database) -> None:
    workflow_id = await published(database)
    queued, running, paused, stopped = await created(database, workflow_id, 4)
    await created(database, workflow_id, partition=1)
    for run in (running, paused, stopped):
        await stored(database, run, Begun(NOW))
    await stored(database, paused, PauseRequested(NOW))
    await stored(database, stopped, StopRequested(NOW))
    assert (paused.state, stopped.state) == (W.PAUSED, W.STOPPED)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instances.open_runs(0) == [queued, running]
        assert await uow.instances.run(paused.id) == paused


async def test_instance_tells_its_whole_story(database: Database) -> None:
    workflow_id = await published(database)
    (command,) = await accepted(database, start(workflow_id))
    async with database.unit_of_work() as uow:
        (run,) = await create(
            uow,
            [
                instance(
                    command,
                    parameters={"a": "1"},
                    rerun_of=17,
                    run_number=3,
                    schedule_id=4,
                    timezone="Asia/Tokyo",
                )
            ],
        )
        await uow.commit()
    await stored(database, run, Begun(LATER))
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.instances.get(run.id)
        (listed,) = await uow.instances.list()
    assert listed == found
    assert (found.project, found.workflow, found.version) == ("demo", "flow", 1)
    assert (found.rerun_of, found.run_number, found.schedule_id) == (17, 3, 4)
    assert (found.parameters, found.timezone, found.command_id) == (
        {"a": "1"},
        "Asia/Tokyo",
        command.id,
    )
    assert (found.created_at, found.started_at, found.finished_at) == (NOW, LATER, None)


async def test_instances_are_listed_newest_first_in_pages(database: Database) -> None:
    workflow_id = await published(database)
    ids = [run.id for run in await created(database, workflow_id, 5)]
    async with database.unit_of_work(read_only=True) as uow:
        page = await uow.instances.list(limit=2)
        assert [one.id for one in page] == ids[:2:-1]
        rest = await uow.instances.list(before=(page[-1].created_at, page[-1].id))
        assert [one.id for one in rest] == ids[2::-1]


async def test_instances_are_filtered(database: Database) -> None:
    sales = await published(database, definition("sales"))
    stock = await published(database, definition("stock"))
    foreign = await published(database, definition("sales", project="other"))
    (old,) = await created(database, sales, created_at=NOW - timedelta(days=1))
    (new,) = await created(database, sales)
    (side,) = await created(database, stock)
    (other,) = await created(database, foreign)
    await stored(database, new, Begun(NOW))

    async def ids(**conditions: object) -> list[int]:
        async with database.unit_of_work(read_only=True) as uow:
            return [one.id for one in await uow.instances.list(**conditions)]  # type: ignore[arg-type]

    assert await ids(project="demo") == [side.id, new.id, old.id]
    assert await ids(project="demo", workflow="sales") == [new.id, old.id]
    assert await ids(workflow="sales") == [other.id, new.id, old.id]
    assert await ids(project="nowhere") == []
    assert await ids(states=[W.RUNNING]) == [new.id]
    assert await ids(states={W.QUEUED, W.RUNNING}, project="other") == [other.id]
    assert await ids(since=NOW) == [other.id, side.id, new.id]
    assert await ids(until=NOW) == [old.id]
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instance_counts.by_state() == {W.QUEUED: 3, W.RUNNING: 1}
        assert await uow.instance_counts.by_state("other") == {W.QUEUED: 1}


async def test_task_counts_look_at_the_newest_attempts(database: Database) -> None:
    spec = definition(tasks=["a", "b"])
    spec = spec.model_copy(
        update={"tasks": (spec.tasks[0].model_copy(update={"retries": 1}), spec.tasks[1])}
    )
    run, untouched = await created(database, await published(database, spec), 2)
    await stored(database, run, Begun(NOW))
    first = run.attempts["a"].id
    assert first is not None
    await stored(database, run, TaskClaimed(first, "w1", NOW))
    await stored(database, run, TaskEnded(first, TaskSignal.FAIL, NOW, "w1", "boom", 3))
    await stored(database, run, TimeReached(LATER))
    assert run.attempts["a"].number == 2
    async with database.unit_of_work(read_only=True) as uow:
        counts = await uow.instance_counts.tasks([run.id, untouched.id, 999])
        newest = await uow.tasks.of_instance(run.id)
        everything = await uow.tasks.of_instance(run.id, all_attempts=True)
        attempt = await uow.tasks.get(first)
    assert counts == {run.id: {S.QUEUED: 2}, untouched.id: {S.WAITING: 2}, 999: {}}
    assert [(t.task, t.attempt) for t in newest] == [("a", 2), ("b", 1)]
    assert [(t.task, t.attempt) for t in everything] == [("a", 1), ("a", 2), ("b", 1)]
    assert attempt == everything[0]
    assert (attempt.state, attempt.reason, attempt.exit_code) == (S.FAILED, "boom", 3)
    assert (attempt.worker, attempt.type, attempt.worker_group) == ("w1", "SHELL", "default")
    assert attempt.finished_at == NOW


async def test_attempts_are_listed_by_state_worker_and_workflow(database: Database) -> None:
    (run,) = await created(database, await published(database, definition(tasks=["a", "b", "c"])))
    (side,) = await created(database, await published(database, definition("side", project="p2")))
    for one in (run, side):
        await stored(database, one, Begun(NOW))
    a, b, c = (attempt.id or 0 for attempt in run.attempts.values())
    await stored(database, run, TaskClaimed(a, "w1", NOW))
    await stored(database, run, TaskClaimed(b, "w2", NOW))
    async with database.unit_of_work(read_only=True) as uow:

        async def ids(**conditions: Any) -> tuple[list[int], int | None]:
            found, before = await uow.tasks.list(**conditions)
            return [t.id for t in found], before

        assert await ids(states=[S.CLAIMED]) == ([b, a], None)
        assert await ids(states=[S.CLAIMED, S.QUEUED], project="demo") == ([c, b, a], None)
        assert await ids(worker="w1") == ([a], None)
        assert await ids(worker="w1", states=[S.QUEUED]) == ([], None)
        assert await ids(worker="w2", states=[S.CLAIMED, S.FAILED]) == ([b], None)
        assert await ids(workflow="flow", before_id=c, limit=1) == ([b], b)
        assert await ids(workflow="flow", before_id=b, limit=1) == ([a], None)
        assert await ids(states=[S.CLAIMED], limit=1) == ([b], b)
        found, _ = await uow.tasks.list(project="p2")
        assert {t.project for t in found} == {"p2"}


async def test_a_long_history_is_searched_part_by_part(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_search, "SIFTED", 7)
    monkeypatch.setattr(task_search, "_FEW", 1)
    rare = await created(database, await published(database, definition("rare")), 2)
    await created(database, await published(database, definition("busy")), 9)
    async with database.unit_of_work(read_only=True) as uow:
        pages: list[list[int]] = []
        before: int | None = None
        while not pages or before is not None:
            found, before = await uow.tasks.list(workflow="rare", before_id=before, limit=3)
            pages.append([t.id for t in found])
    assert pages[0] == []  # nothing among the newest, but there is more
    assert all(len(page) <= 3 for page in pages)
    expected = [a.id for run in rare for a in run.attempts.values()]
    assert [i for page in pages for i in page] == sorted(
        expected, key=lambda i: i or 0, reverse=True
    )


async def test_text_that_no_database_can_hold_is_made_storable(database: Database) -> None:
    (run,) = await created(database, await published(database, definition(tasks=["a"])))
    await stored(database, run, Begun(NOW))
    a = run.attempts["a"].id or 0
    await stored(database, run, TaskClaimed(a, "w", NOW))
    reason = "bad \0 output \udce9 of 程序 \N{FISH}"
    await stored(database, run, TaskEnded(a, TaskSignal.FAIL, NOW, "w", reason, 1))
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.tasks.get(a)
        events = await uow.events.after(0, 100, instance_id=run.id)
    assert found.reason == "bad \ufffd output \ufffd of 程序 \N{FISH}"
    reasons = [one.data["reason"] for one in events if one.data.get("state") == "FAILED"]
    assert "bad \0 output \ufffd of 程序 \N{FISH}" in reasons  # JSON can hold a NUL


async def test_times_keep_their_microseconds_and_come_back_in_utc(database: Database) -> None:
    workflow_id = await published(database)
    odd = NOW.replace(year=1969, microsecond=999_999)
    (run,) = await created(database, workflow_id, logical_time=odd.astimezone())
    async with database.unit_of_work(read_only=True) as uow:
        found = (await uow.instances.get(run.id)).logical_time
    assert found == odd
    assert found.utcoffset() == timedelta(0)


async def test_time_without_zone_is_refused(database: Database) -> None:
    workflow_id = await published(database)
    (command,) = await accepted(database, start(workflow_id))
    async with database.unit_of_work() as uow:
        with pytest.raises(InvalidValue, match="no time zone"):
            await create(uow, [replace(instance(command), logical_time=NOW.replace(tzinfo=None))])


async def test_unknown_instances_and_tasks_are_not_found(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        for ask in (uow.instances.get(9), uow.instances.run(9), uow.tasks.get(9)):
            with pytest.raises(NotFound, match="instance 9"):
                await ask
