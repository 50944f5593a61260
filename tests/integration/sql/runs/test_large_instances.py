"""Instances of many tasks are read and written in parts, and others have their turn in between."""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from shoal.core.runs.events import Begun, ResumeRequested, StopRequested
from shoal.core.runs.run import Run
from shoal.sql import Database
from shoal.sql.repositories import plans
from shoal.sql.repositories.definitions import workflows
from shoal.sql.repositories.runs import instance_changes, instances, tasks
from shoal.sql.repositories.runs.attempts import new_values
from tests.integration.sql.driver.turns import Turns
from tests.integration.sql.given import (
    LATER,
    NOW,
    created,
    definition,
    published,
    stored,
)


@pytest.mark.parametrize("page", [1, 3, 4, 5, 12, 13])
async def test_attempts_of_an_instance_come_in_pages(
    database: Database, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    names = ["d", "b", "a", "c"]
    workflow = await published(database, definition(tasks=names))
    (run, _) = await created(database, workflow, 2)
    await stored(database, run, Begun(NOW))
    await stored(database, run, StopRequested(NOW))
    await stored(database, run, ResumeRequested(LATER))
    monkeypatch.setattr(tasks, "ROWS_AT_ONCE", page)
    async with database.unit_of_work(read_only=True) as uow:
        newest = await uow.tasks.of_instance(run.id)
        every = await uow.tasks.of_instance(run.id, all_attempts=True)
    assert [one.task for one in newest] == names
    attempts = [(one.task, one.attempt) for one in every]
    assert attempts == [
        (name, number + 1) for name in names for number in range(run.attempts[name].number)
    ]
    assert [one.attempt for one in newest] == [run.attempts[name].number for name in names]


async def test_runs_are_made_with_turns_for_others_between_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = await published(database, definition(tasks=["a", "b", "c", "d"]))
    await created(database, workflow, 6)
    monkeypatch.setattr(instances, "_MOST_AT_ONCE", 5)
    made: Counter[int] = Counter()  # attempts, by the turn of the loop
    turns, make = Turns(), instances._run

    def noted(row: Any, plan: Any, rows: Sequence[Any]) -> Run:
        made[turns.count] += len(rows)
        return make(row, plan, rows)

    monkeypatch.setattr(instances, "_run", noted)
    async with turns, database.unit_of_work(read_only=True) as uow:
        assert len(await uow.instances.open_runs(0)) == 6
    assert sum(made.values()) == 24
    assert max(made.values()) == 8  # the first run that goes beyond the limit is the last one


async def test_rows_of_many_new_attempts_are_made_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = await published(database, definition(tasks=["a", "b", "c", "d"]))
    (run,) = await created(database, workflow)
    await stored(database, run, Begun(NOW))
    await stored(database, run, StopRequested(NOW))
    threads: set[threading.Thread] = set()

    def noted(*values: Any) -> dict[str, Any]:
        threads.add(threading.current_thread())
        return new_values(*values)

    monkeypatch.setattr(instance_changes, "_MOST_AT_ONCE", 3)
    monkeypatch.setattr("shoal.sql.repositories.runs.instance_changes.new_values", noted)
    await stored(database, run, ResumeRequested(LATER))
    assert {attempt.number for attempt in run.attempts.values()} == {2}
    assert threads
    assert threading.current_thread() not in threads


async def test_long_definition_is_written_and_read_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "MOST_TASKS_AT_ONCE", 3)
    monkeypatch.setattr(plans, "_LONG_TEXT", 100)
    threads: list[threading.Thread] = []
    texts, plan = workflows._texts, plans._plan

    def written(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return texts(*given)

    def read(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return plan(*given)

    monkeypatch.setattr(workflows, "_texts", written)
    monkeypatch.setattr(plans, "_plan", read)
    spec = definition(tasks=["a", "b", "c", "d"], parameters={"day": "ünï"})
    workflow = await published(database, spec)
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.workflows.version(workflow)
    assert len(threads) == 2
    assert threading.current_thread() not in threads
    assert found.digest == spec.digest()
    assert found.spec.tasks == spec.tasks
