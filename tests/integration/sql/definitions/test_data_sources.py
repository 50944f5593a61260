"""Data sources of projects and the cluster's name: what is kept, also of changes at once."""

import asyncio
import uuid
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.data_sources.spec import DataSourceSpec, SourcePassword, StoredDataSource
from shoal.sql import Database
from shoal.sql.errors import NotFound, PasswordOfAnotherServer, UnreadableRow
from tests.integration.sql.given import LATER

FIELDS = {"kind": "postgresql", "host": "db", "port": 5433, "database": "sales", "user": "etl"}
PASSWORD = SourcePassword("1:ciphertext")


def spec(**fields: Any) -> DataSourceSpec:
    return DataSourceSpec.model_validate({**FIELDS, **fields})


async def put(
    database: Database,
    name: str = "wh",
    *,
    project: str = "demo",
    password: SourcePassword | None = None,
    **fields: Any,
) -> tuple[StoredDataSource, bool]:
    async with database.unit_of_work() as uow:
        done = await uow.data_sources.put(project, name, spec(**fields), password, LATER)
        await uow.commit()
    return done


async def test_all_fields_are_kept_and_the_version_grows_with_each_change(
    database: Database,
) -> None:
    options = {"sslmode": "require", "connect_timeout": 3}
    stored, is_new = await put(database, options=options, shared_with=["other", "*"])
    assert is_new
    assert stored.spec == spec(options=options, shared_with=["other", "*"])
    assert (stored.project, stored.name, stored.version) == ("demo", "wh", 1)
    assert (stored.password, bool(stored.password)) == (SourcePassword(), False)
    again, is_new = await put(database, options=options, shared_with=["other", "*"])
    assert (again, is_new) == (stored, False)
    changed, _ = await put(database, port=None)
    assert (changed.version, changed.spec) == (2, spec(port=None))
    assert (await put(database, port=None, password=PASSWORD))[0].version == 3


async def test_password_is_kept_for_the_same_server_alone(database: Database) -> None:
    await put(database, password=PASSWORD)
    kept, _ = await put(database, user="other")
    assert kept.password == PASSWORD
    assert "1:ciphertext" not in repr(kept)
    for change in ({"host": "elsewhere"}, {"port": 5434}, {"kind": "mariadb"}):
        with pytest.raises(PasswordOfAnotherServer, match="demo/wh"):
            await put(database, **change)
    moved, _ = await put(database, host="elsewhere", password=SourcePassword(secret="db"))
    assert moved.password == SourcePassword(secret="db")
    gone, _ = await put(database, host="elsewhere", password=SourcePassword())
    assert not gone.password
    assert (await put(database, host="third"))[0].spec.host == "third"


async def test_two_who_set_the_same_data_source_at_once_make_one(database: Database) -> None:
    done = await asyncio.gather(*(put(database, host=f"h{n}") for n in range(4)))
    assert sorted(is_new for _, is_new in done) == [False, False, False, True]
    assert sorted(stored.version for stored, _ in done) == [1, 2, 3, 4]


async def test_data_sources_of_one_project_are_no_other_ones(database: Database) -> None:
    for project, name in (("demo", "a"), ("demo", "b"), ("other", "a")):
        await put(database, name, project=project)
    async with database.unit_of_work() as uow:
        sources = uow.data_sources
        assert [(s.project, s.name) for s in await sources.list(after=("demo", "a"))] == [
            ("demo", "b"),
            ("other", "a"),
        ]
        assert [s.name for s in await sources.list("demo", limit=1)] == ["a"]
        found = await sources.named([("demo", "b"), ("other", "a"), ("other", "b")])
        assert sorted((s.project, s.name) for s in found) == [("demo", "b"), ("other", "a")]
        assert await sources.names("demo") == ["a", "b"]
        await sources.delete("demo", "a")
        for missing in (sources.delete("demo", "a"), sources.get("demo", "a")):
            with pytest.raises(NotFound, match="data source demo/a"):
                await missing
        with pytest.raises(NotFound):
            await sources.delete("nobody", "a")
        assert await sources.names("other") == ["a"]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("kind", "of a newer version"),
        ("options", "not json"),
        ("options", '{"x":{}}'),
        ("shared_with", "[1]"),
        ("port", 70_000),
        ("host", "x" * 5_000),
    ],
)
async def test_row_that_cannot_be_read_is_told_of_and_can_be_deleted(
    database: Database, column: str, value: object
) -> None:
    await put(database, "bad")
    await put(database, "good")
    async with database.unit_of_work() as uow:
        statement = f"UPDATE data_source SET \"{column}\" = :value WHERE name = 'bad'"
        await uow.connection.execute(text(statement), {"value": value})
        await uow.commit()
    async with database.unit_of_work() as uow:
        sources = uow.data_sources
        assert [one.name for one in await sources.list("demo")] == ["good"]
        with pytest.raises(UnreadableRow, match="data source"):
            await sources.get("demo", "bad")
        with pytest.raises(UnreadableRow, match="data source"):
            await sources.named([("demo", "bad"), ("demo", "good")])
        await sources.delete("demo", "bad")
        assert await sources.names("demo") == ["good"]


async def test_cluster_has_one_random_name(database: Database) -> None:
    async with database.unit_of_work() as uow:
        uid = await uow.cluster.uid()
        assert str(uuid.UUID(uid)) == uid
        assert await uow.cluster.uid() == uid
        await uow.connection.execute(text("DELETE FROM cluster"))
        new = await uow.cluster.uid()
        assert new != uid
        assert await uow.cluster.uid() == new
