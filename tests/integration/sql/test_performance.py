"""Bulk work takes a few statements. The bounds are wide: they catch one round trip per row."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from shoal.core.run import Attempt, Decision
from shoal.core.states import TaskState
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

BOUND_S = 3.0
Timed = Callable[[str], AbstractContextManager[None]]


@pytest.fixture
def timed(record_property: Callable[[str, object], None]) -> Timed:
    """Measures a block; the seconds go into the JUnit report (--junit-xml)."""

    @contextmanager
    def measure(what: str) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        took_s = time.perf_counter() - began_s
        record_property(what, round(took_s, 4))
        assert took_s < BOUND_S, what

    return measure


async def test_instance_of_1000_tasks(database: Database, timed: Timed) -> None:
    tasks = {f"t{i}": [f"t{i - 1}"] if i % 10 else [] for i in range(1000)}
    workflow_id = await published(database, definition(tasks=tasks))
    (command,) = await accepted(database, start(workflow_id))
    with timed("create 1 x 1000"):
        async with database.unit_of_work() as uow:
            (run,) = await uow.instances.create([instance(command)])
            await uow.commit()
    with timed("load 1 x 1000"):
        async with database.unit_of_work(read_only=True) as uow:
            assert await uow.instances.open_runs(0) == [run]
    changed = {
        (task, 1): replace(attempt, state=TaskState.QUEUED, queued_at=LATER)
        for task, attempt in run.attempts.items()
    }
    with timed("save 1000 changes"):
        async with database.unit_of_work() as uow:
            await uow.instances.save([(run, Decision(attempts=changed))], LATER)
            await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instances.task_counts([run.id]) == {run.id: {TaskState.QUEUED: 1000}}


async def test_new_attempts_of_10_000_tasks(database: Database, timed: Timed) -> None:
    workflow_id = await published(database, definition(tasks=[f"t{i}" for i in range(10_000)]))
    (command,) = await accepted(database, start(workflow_id))
    async with database.unit_of_work() as uow:
        (run,) = await uow.instances.create([instance(command)])
        await uow.commit()
    again = {(task, 2): Attempt(task, 2) for task in run.attempts}
    with timed("save 10,000 new attempts"):
        async with database.unit_of_work() as uow:
            ids = await uow.instances.save([(run, Decision(attempts=again))], LATER)
            await uow.commit()
    assert len(set(ids.values())) == 10_000


async def test_500_instances_of_5_tasks(database: Database, timed: Timed) -> None:
    workflow_id = await published(database, definition(tasks=list("abcde")))
    commands = await accepted(database, *(start(workflow_id) for _ in range(500)))
    with timed("create 500 x 5"):
        async with database.unit_of_work() as uow:
            runs = await uow.instances.create([instance(command) for command in commands])
            await uow.commands.done_many(
                [(command.id, run.id) for command, run in zip(commands, runs, strict=True)], LATER
            )
            await uow.commit()
    with timed("load 500 x 5"):
        async with database.unit_of_work(read_only=True) as uow:
            assert await uow.instances.open_runs(0) == runs
    with timed("list 100 with counts"):
        async with database.unit_of_work(read_only=True) as uow:
            listed = await uow.instances.list(limit=100)
            counts = await uow.instances.task_counts([one.id for one in listed])
    assert len(counts) == 100


async def test_small_transactions_one_after_the_other(database: Database, timed: Timed) -> None:
    workflow_id = await published(database)
    runs = await created(database, workflow_id, 50)
    with timed("50 fenced transactions"):
        for run in runs:
            attempt = replace(run.attempts["a"], state=TaskState.QUEUED)
            async with database.unit_of_work() as uow:
                await uow.fence({0: 0})
                await uow.instances.save([(run, Decision(attempts={("a", 1): attempt}))], LATER)
                await uow.commit()
