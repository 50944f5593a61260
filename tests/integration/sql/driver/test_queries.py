"""Queries given to the driver directly answer as those that SQLAlchemy executes."""

import json
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import bindparam, column, insert, literal, select, text

from shoal.sql import Database
from shoal.sql.errors import DatabaseUnavailable, InvalidValue, SchemaMissing
from shoal.sql.schema.tables import command, event, project
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.value_sets import Among, numbers
from tests.integration.sql.driver.turns import Turns
from tests.integration.sql.given import LATER, LONG, NOW

_INSERT = insert(event)
_EVENTS = (
    select(event, literal("own").label("own"))
    .where(event.c.at >= bindparam("since"), Among(event.c.task_instance_id, numbers("tasks")))
    .order_by(event.c.id)
    .limit(bindparam("limit"))
)
_LONG = LONG.columns(column("found"))
_MISSING = text("SELECT absent FROM nowhere").columns(column("absent"))


def _event(at: datetime, task: int) -> dict[str, object]:
    return {"at": at, "kind": "k", "project": "ü", "task_instance_id": task, "data": {"n": task}}


@pytest.mark.parametrize("never", ["infinity", "-infinity", "294276-01-01", "0044-03-15 BC"])
async def test_time_that_python_cannot_hold_spoils_its_own_row_alone(
    postgresql_copy: str, never: str
) -> None:
    async with Database(postgresql_copy) as database, database.unit_of_work() as uow:
        await uow.connection.change([(_INSERT, [_event(NOW, 1), _event(LATER, 2)])])
        change = text(
            "UPDATE event SET at = CAST(:never AS timestamptz) WHERE task_instance_id = 1"
        )
        await uow.connection.execute(change, {"never": never})
        query = select(event.c.at).order_by(event.c.task_instance_id)
        for rows in (
            await uow.connection.rows(query),
            await uow.connection.fetch(query),
        ):
            spoilt, good = [row.at for row in rows]
            assert isinstance(spoilt, UnreadableValue)
            assert "is not a time of the years 1 to 9999" in spoilt.reason
            assert good == LATER


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ('{"n": NaN}', "NaN is not a number"),
        ('{"n": [-Infinity]}', "-Infinity is not a number"),
        ('{"n": 1e999}', "1e999 is too large"),
        ('{"n": "\\ud800"}', "half a character"),
        ('{"\\udfff": 1}', "half a character"),
        ('{"n": ' + "[" * 100_000, "too many levels"),
    ],
    ids=["not a number", "infinity", "too large", "half a character", "half a name", "deep"],
)
async def test_json_that_cannot_be_written_again_spoils_its_own_row_alone(
    database: Database, stored: str, reason: str
) -> None:
    deep = {"n": json.loads("[" * 150 + "]" * 150), "text": "\U0001f41f \\ud800", "x": -1e300}
    async with database.unit_of_work() as uow:
        rows = [_event(NOW, 1), _event(NOW, 2) | {"data": deep}]
        await uow.connection.change([(_INSERT, rows)])
        change = text("UPDATE event SET data = :stored WHERE task_instance_id = 1")
        await uow.connection.execute(change, {"stored": stored})
        query = select(event.c.data).order_by(event.c.task_instance_id)
        for found in (
            await uow.connection.rows(query),
            await uow.connection.fetch(query),
        ):
            spoilt, good = [row.data for row in found]
            assert isinstance(spoilt, UnreadableValue)
            assert reason in spoilt.reason
            assert good == deep


async def test_rows_are_those_that_sqlalchemy_returns(database: Database) -> None:
    async with database.unit_of_work() as uow:
        rows = [_event(LATER if task % 2 else NOW, task) for task in range(20)]
        await uow.connection.change([(_INSERT, rows)])
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        for since, tasks, limit in ((NOW, [], 5), (NOW, [3, 4, 5, 6], 9), (LATER, [3, 4, 5, 6], 1)):
            values = {"since": since, "tasks": tasks, "limit": limit}
            found = await uow.connection.fetch(_EVENTS, values)
            assert [one._asdict() for one in found] == [
                row._asdict() for row in await uow.connection.rows(_EVENTS, values)
            ]
            assert len(found) == min(limit, sum(since == NOW or task % 2 for task in tasks))


@pytest.mark.parametrize("wrong", [{"since": datetime(2026, 3, 1)}, {"limit": 10**30}])
async def test_value_that_cannot_be_asked_for_is_refused(
    database: Database, wrong: dict[str, object]
) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        with pytest.raises(InvalidValue):
            await uow.connection.fetch(_EVENTS, {"since": NOW, "tasks": [], "limit": 1, **wrong})


async def test_query_of_what_is_not_there_is_told_as_such(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        with pytest.raises(SchemaMissing):
            await uow.connection.fetch(_MISSING)


@pytest.mark.parametrize("read_only", [True, False])
async def test_others_run_while_a_long_query_does(tmp_path: Path, read_only: bool) -> None:
    async with (
        Database(f"sqlite:///{tmp_path}/shoal.db") as database,
        Turns() as turns,
        database.unit_of_work(read_only=read_only) as uow,
    ):
        before = turns.count
        assert [row.found for row in await uow.connection.fetch(_LONG)] == [300_000]
        assert turns.count - before >= 5


async def test_connection_lost_in_a_query_is_retriable_and_the_next_one_works(
    postgresql_copy: str,
) -> None:
    async with Database(postgresql_copy, pool_size=1) as database:
        async with database.unit_of_work() as uow:
            with psycopg.connect(postgresql_copy, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            with pytest.raises(DatabaseUnavailable) as caught:
                await uow.commands.starts([1], 1)
        assert caught.value.retriable
        async with database.unit_of_work() as uow:
            assert await uow.commands.starts([1], 1) == []


async def test_reserved_ids_are_nobody_elses(database: Database) -> None:
    async with database.unit_of_work() as uow:
        events, none, [_] = await uow.connection.reserve_ids({event: 3, project: 0, command: 1})
        assert (len(set(events)), sorted(events), none) == (3, events, [])
        rows = [{"id": number, **_event(NOW, number)} for number in events]
        assert await uow.connection.change([(_INSERT, rows)]) == [3]
        await uow.commit()
    async with database.unit_of_work() as uow:
        [[later]] = await uow.connection.reserve_ids({event: 1})
        assert later > events[-1]
