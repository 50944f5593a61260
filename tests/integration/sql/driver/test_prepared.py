"""Statements given to the driver directly behave as those that SQLAlchemy executes."""

import asyncio
from datetime import datetime

import psycopg
import pytest
from sqlalchemy import insert, text

from shoal.sql import Database
from shoal.sql.errors import AlreadyExists, BrokenReference, DatabaseUnavailable, InvalidValue
from shoal.sql.schema.tables import event, secret
from tests.integration.sql.driver.turns import Turns
from tests.integration.sql.given import NOW
from tests.support.waiting import DEADLINE_S

_EVENT = insert(event)
_SECRET = insert(secret)


def _event(**fields: object) -> dict[str, object]:
    return {"at": NOW, "kind": "k", "project": "p", "data": {"a": 1}, **fields}


def _secret(**fields: object) -> dict[str, object]:
    values = {"name": "s", "ciphertext": "", "created_at": NOW, "updated_at": NOW}
    return {"project_id": 1, **values, **fields}


@pytest.mark.parametrize("count", [1, 3, 200, 1_200])
async def test_values_arrive_as_they_are(database: Database, count: int) -> None:
    names = [f"ü {i} \0 \ud800" for i in range(count)]
    async with database.unit_of_work() as uow:
        assert await uow.connection.change([]) == []
        rows = [_event(kind=str(i), data={"n": one}) for i, one in enumerate(names)]
        assert await uow.connection.change([(_EVENT, []), (_EVENT, rows)]) == [0, count]
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.events.after(0, 2_000)
    assert [(one.at, one.kind, one.project) for one in found] == [
        (NOW, str(i), "p") for i in range(count)
    ]
    assert [one.data["n"].split()[:2] for one in found] == [["ü", str(i)] for i in range(count)]
    assert all(one.workflow_instance_id is None for one in found)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"at": datetime(2026, 3, 1)}, InvalidValue),  # no time zone
        ({"workflow_instance_id": 10**30}, InvalidValue),
    ],
)
async def test_value_that_cannot_be_stored_is_refused(
    database: Database, wrong: dict[str, object], error: type[Exception]
) -> None:
    async with database.unit_of_work() as uow:
        with pytest.raises(error):
            await uow.connection.change([(_EVENT, [_event(**wrong)])])


async def test_broken_keys_are_told_apart(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure("p", NOW)
        await uow.commit()
    async with database.unit_of_work() as uow:
        with pytest.raises(AlreadyExists):
            await uow.connection.change([(_SECRET, [_secret(), _secret()])])
    async with database.unit_of_work() as uow:
        with pytest.raises(BrokenReference):
            await uow.connection.change([(_SECRET, [_secret(project_id=99)])])
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.secrets.list("p") == []


async def test_others_run_while_many_rows_are_written(postgresql_copy: str) -> None:
    async with (
        Database(postgresql_copy) as database,
        database.unit_of_work() as uow,
        Turns() as turns,
    ):
        before = turns.count
        assert await uow.connection.change([(_EVENT, [_event()] * 5_000)]) == [5_000]
        assert turns.count - before >= 10


async def test_connection_lost_in_a_change_is_retriable_and_the_next_one_works(
    postgresql_copy: str,
) -> None:
    async with Database(postgresql_copy, pool_size=1) as database:
        async with database.unit_of_work() as uow:
            await uow.connection.change([(_EVENT, [_event()])])
            with psycopg.connect(postgresql_copy, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            with pytest.raises(DatabaseUnavailable) as caught:
                await uow.connection.change([(_EVENT, [_event()])])
        assert caught.value.retriable
        async with database.unit_of_work() as uow:
            assert await uow.events.last_id() == 0


async def test_caller_that_goes_away_in_a_change_leaves_its_connection(
    postgresql_copy: str,
) -> None:
    async with Database(postgresql_copy, pool_size=1) as one, Database(postgresql_copy) as two:

        async def write() -> None:
            async with one.unit_of_work() as uow:
                await uow.connection.change([(_EVENT, [_event()])])

        async with two.unit_of_work() as uow:
            await uow.connection.execute(text("LOCK TABLE event"))
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await write()
        async with asyncio.timeout(DEADLINE_S):
            await write()
