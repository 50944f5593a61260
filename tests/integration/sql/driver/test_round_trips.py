"""What goes to PostgreSQL together: how often a transaction waits, and what it may not skip."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import column, insert, text, update

from shoal.core.decide import decide
from shoal.core.runs.events import Begun
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database
from shoal.sql.driver.postgresql.quick_connection import QuickConnection
from shoal.sql.errors import AlreadyExists, Fenced, SchemaMissing, StatementFailed
from shoal.sql.schema.tables import project
from tests.integration.sql.given import NOW, created, published

_PROJECT = insert(project)
_UNKNOWN = text("SELECT a FROM later").columns(column("a"))


def _project(name: str) -> dict[str, Any]:
    return {"name": name, "description": "", "parameters": {}, "created_at": NOW}


@pytest.fixture
async def database(postgresql_copy: str) -> AsyncIterator[Database]:
    """A migrated database with one connection, which is open."""
    async with Database(postgresql_copy, pool_size=1) as opened:
        await opened.ping()
        yield opened


@pytest.fixture
def waits(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What connections have waited for since then: an entry for each round trip."""
    waited: list[object] = []
    wait = QuickConnection.wait

    async def noted(driver: QuickConnection, gen: Any, *rest: Any, **options: Any) -> Any:
        waited.append(gen)
        return await wait(driver, gen, *rest, **options)

    monkeypatch.setattr(QuickConnection, "wait", noted)
    return waited


async def test_decision_is_stored_in_two_round_trips(
    database: Database, waits: list[object]
) -> None:
    runs = await created(database, await published(database), 3)
    changes = []
    for run in runs:
        decision = decide(run, Begun(NOW))
        run.apply(decision)
        changes.append((run, decision))
    waits.clear()
    async with database.unit_of_work() as uow:
        await uow.fence({0: 0, 1: 0})
        await uow.instances.save(changes, NOW)
        await uow.commit()
    assert len(waits) == 2
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.instances.run(runs[2].id)
    assert found.state is WorkflowState.RUNNING
    assert found.attempts["b"].state is TaskState.QUEUED


async def test_transaction_in_which_nothing_is_done_waits_for_nothing(
    database: Database, waits: list[object]
) -> None:
    for read_only in (True, False):
        async with database.unit_of_work(read_only=read_only) as uow:
            await uow.commit()
        async with database.unit_of_work(read_only=read_only):
            pass
    assert waits == []


async def test_fence_alone_is_asked_before_the_commit(
    database: Database, waits: list[object]
) -> None:
    async with database.unit_of_work() as uow:
        await uow.fence({0: 0})
        await uow.commit()
    assert len(waits) == 2


async def test_statement_that_is_made_on_the_spot_costs_no_more_than_one_that_is_held(
    database: Database, waits: list[object]
) -> None:
    async with database.unit_of_work() as uow:
        await uow.fence({0: 0})
        await uow.connection.execute(update(project).values(description="new"))
        await uow.commit()
    assert len(waits) == 2
    waits.clear()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.projects.list() == []
    assert len(waits) == 2


async def test_only_what_is_executed_often_stays_prepared(database: Database) -> None:
    prepared = text("SELECT name FROM pg_prepared_statements ORDER BY name")

    async def names() -> set[str]:
        async with database.unit_of_work() as uow:
            return {row.name for row in await uow.connection.rows(prepared)}

    async def ask(number: int, times: int) -> None:
        async with database.unit_of_work() as uow:
            for _ in range(times):
                assert await uow.connection.scalar(text(f"SELECT {number}")) == number

    before = await names()
    await ask(-1, 5)
    assert await names() == before
    await ask(-1, 1)
    [ours] = await names() - before
    for number in range(120):
        await ask(number, 6)
    stayed = await names() - before
    assert ours not in stayed
    assert 90 <= len(stayed) <= 100
    await ask(-1, 7)
    await ask(119, 1)


async def test_commit_behind_a_statement_that_failed_is_no_commit(database: Database) -> None:
    async with database.unit_of_work() as uow:
        with pytest.raises(SchemaMissing):
            await uow.connection.rows(text("SELECT 1 FROM nowhere"))
        with pytest.raises(StatementFailed):
            await uow.commit()


async def test_who_is_fenced_learns_that_first(database: Database) -> None:
    """The statement behind the fence has been carried out as well, and has failed."""
    async with database.unit_of_work() as uow:
        await uow.connection.change([(_PROJECT, [_project("p")])])
        await uow.commit()
    for name in ("p", "q"):
        async with database.unit_of_work() as uow:
            await uow.fence({0: 7})
            with pytest.raises(Fenced):
                await uow.connection.change([(_PROJECT, [_project(name)])])
    async with database.unit_of_work(read_only=True) as uow:
        assert [one.name for one in await uow.projects.list()] == ["p"]


async def test_fence_holds_for_statements_that_are_made_on_the_spot(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.fence({0: 7})
        with pytest.raises(Fenced):
            await uow.connection.execute(text("DELETE FROM project"))


async def test_nothing_is_carried_out_behind_a_statement_that_fails(database: Database) -> None:
    names = ["p", "p", "q"]
    async with database.unit_of_work() as uow:
        with pytest.raises(AlreadyExists):
            await uow.connection.change([(_PROJECT, [_project(name) for name in names])])
        with pytest.raises(StatementFailed):
            await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.projects.list() == []


async def test_statement_that_the_server_refused_once_is_asked_again(database: Database) -> None:
    async with database.unit_of_work() as uow:
        with pytest.raises(SchemaMissing):
            await uow.connection.fetch(_UNKNOWN)
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("CREATE TABLE later AS SELECT 1 AS a"))
        for _ in range(2):
            assert [row.a for row in await uow.connection.fetch(_UNKNOWN)] == [1]


async def test_what_is_prepared_outlives_a_rollback_and_a_migration(
    database: Database,
) -> None:
    for _ in range(8):  # what is asked more than five times is prepared
        async with database.unit_of_work() as uow:
            assert await uow.projects.list() == []
            assert await uow.commands.sent(["none"]) == {}
            await uow.fence({0: 0})
            await uow.connection.change([(_PROJECT, [_project("p")])])
    await database.migrate()
    async with database.unit_of_work() as uow:
        await uow.fence({0: 0})
        await uow.connection.change([(_PROJECT, [_project("p")])])
        await uow.commit()
