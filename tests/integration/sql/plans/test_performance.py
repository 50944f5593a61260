"""Bulk work takes a few statements, not one for each row."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import Engine, event

from shoal.core.runs.run import Attempt, Decision
from shoal.core.runs.states import TaskState
from shoal.sql import Database
from tests.integration.sql.given import (
    LATER,
    accepted,
    created,
    definition,
    instance,
    published,
    start,
)
from tests.support.instances import create

Few = Callable[[str, int], AbstractContextManager[None]]


@pytest.fixture
def few() -> Iterator[Few]:
    """Checks that a block sends at most so many statements (one with many rows counts once)."""
    sent = 0

    def count(*_: object) -> None:
        nonlocal sent
        sent += 1

    @contextmanager
    def checked(what: str, most: int) -> Iterator[None]:
        before = sent
        yield
        assert sent - before <= most, what

    event.listen(Engine, "before_cursor_execute", count)
    yield checked
    event.remove(Engine, "before_cursor_execute", count)


async def test_instance_of_1000_tasks(database: Database, few: Few) -> None:
    tasks = {f"t{i}": [f"t{i - 1}"] if i % 10 else [] for i in range(1000)}
    workflow_id = await published(database, definition(tasks=tasks))
    (command,) = await accepted(database, start(workflow_id))
    with few("create 1 x 1000", 15):
        async with database.unit_of_work() as uow:
            (run,) = await create(uow, [instance(command)])
            await uow.commit()
    with few("load 1 x 1000", 6):
        async with database.unit_of_work(read_only=True) as uow:
            assert await uow.instances.open_runs(0) == [run]
    changed = {
        (task, 1): replace(attempt, state=TaskState.QUEUED, queued_at=LATER)
        for task, attempt in run.attempts.items()
    }
    with few("save 1000 changes", 6):
        async with database.unit_of_work() as uow:
            await uow.instances.save([(run, Decision(attempts=changed))], LATER)
            await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instance_counts.tasks([run.id]) == {run.id: {TaskState.QUEUED: 1000}}


async def test_new_attempts_of_10_000_tasks(database: Database, few: Few) -> None:
    workflow_id = await published(database, definition(tasks=[f"t{i}" for i in range(10_000)]))
    (command,) = await accepted(database, start(workflow_id))
    async with database.unit_of_work() as uow:
        (run,) = await create(uow, [instance(command)])
        await uow.commit()
    again = {(task, 2): Attempt(task, 2) for task in run.attempts}
    with few("save 10,000 new attempts", 10):
        async with database.unit_of_work() as uow:
            ids = await uow.instances.save([(run, Decision(attempts=again))], LATER)
            await uow.commit()
    assert len(set(ids.values())) == 10_000


async def test_500_instances_of_5_tasks(database: Database, few: Few) -> None:
    workflow_id = await published(database, definition(tasks=list("abcde")))
    commands = await accepted(database, *(start(workflow_id) for _ in range(500)))
    with few("create 500 x 5", 15):
        async with database.unit_of_work() as uow:
            runs = await create(uow, [instance(command) for command in commands])
            await uow.commands.done_many(
                [(command.id, run.id) for command, run in zip(commands, runs, strict=True)], LATER
            )
            await uow.commit()
    with few("load 500 x 5", 10):  # 1,000 rows by each
        async with database.unit_of_work(read_only=True) as uow:
            assert await uow.instances.open_runs(0) == runs
    with few("list 100 with counts", 6):
        async with database.unit_of_work(read_only=True) as uow:
            listed = await uow.instances.list(limit=100)
            counts = await uow.instance_counts.tasks([one.id for one in listed])
    assert len(counts) == 100


async def test_small_transactions_one_after_the_other(database: Database, few: Few) -> None:
    workflow_id = await published(database)
    runs = await created(database, workflow_id, 50)
    with few("50 fenced transactions", 250):
        for run in runs:
            attempt = replace(run.attempts["a"], state=TaskState.QUEUED)
            async with database.unit_of_work() as uow:
                await uow.fence({0: 0})
                await uow.instances.save([(run, Decision(attempts={("a", 1): attempt}))], LATER)
                await uow.commit()
