"""Unique keys are the last word, whatever the processes before them believe."""

import pytest

from shoal.core.runs.run import Attempt, Decision, Run
from shoal.sql import Database
from shoal.sql.errors import AlreadyExists
from tests.integration.sql.given import LATER, created, definition, published


async def _add(database: Database, run: Run, *attempts: Attempt) -> None:
    new = {(attempt.task, attempt.number): attempt for attempt in attempts}
    async with database.unit_of_work() as uow:
        await uow.instances.save([(run, Decision(attempts=new))], LATER)
        await uow.commit()


async def test_attempt_has_its_number_alone(database: Database) -> None:
    """Two masters that both believe the task has to run again: one of them adds an attempt."""
    workflow_id = await published(database, definition(tasks=("a", "b")))
    run, other = await created(database, workflow_id, 2)
    await _add(database, run, Attempt("a", 2))
    with pytest.raises(AlreadyExists):
        await _add(database, run, Attempt("b", 2), Attempt("a", 2))
    async with database.unit_of_work(read_only=True) as uow:
        attempts = await uow.tasks.of_instance(run.id, all_attempts=True)
    assert sorted((each.task, each.attempt) for each in attempts) == [("a", 1), ("a", 2), ("b", 1)]
    await _add(database, run, Attempt("a", 3), Attempt("b", 2))
    await _add(database, other, Attempt("a", 2))
