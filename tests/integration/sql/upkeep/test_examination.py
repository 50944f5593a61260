"""A store that Shoal cannot work with is refused before its first use, in one line."""

import uuid

import psycopg
import pytest
from sqlalchemy import text

from shoal.sql import Database
from shoal.sql.errors import DatabaseUnsuitable
from tests.support.database.postgresql import PostgresqlServer


async def _refusal(url: str) -> str:
    async with Database(url) as database:
        with pytest.raises(DatabaseUnsuitable) as caught:
            await database.migrate()
    said = str(caught.value)
    assert "\n" not in said
    return said


async def _change(url: str, *statements: str) -> None:
    async with Database(url) as database, database.unit_of_work() as uow:
        for statement in statements:
            await uow.connection.execute(text(statement))
        await uow.commit()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_an_encoding_that_cannot_hold_all_characters_is_refused(
    postgresql_server: PostgresqlServer, encoding: str
) -> None:
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgresql_server.url, autocommit=True) as admin:
        admin.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0".encode()
        )
    try:
        said = await _refusal(postgresql_server.url_of(name))
    finally:
        postgresql_server.drop(name)
    assert f"has the encoding {encoding}" in said
    assert "ENCODING 'UTF8'" in said


async def test_a_database_of_another_application_is_refused(empty_url: str) -> None:
    await _change(
        empty_url, "CREATE TABLE dag_run (id INTEGER)", "CREATE TABLE alembic_version (v TEXT)"
    )
    said = await _refusal(empty_url)
    assert "another application (alembic_version, dag_run)" in said
    assert "a database without tables" in said


@pytest.mark.parametrize(
    ("statement", "trouble"),
    [
        ("UPDATE shoal_revision SET version_num = 'e3a246e0dc1'", "names the revision 'e3a246e0"),
        ("UPDATE shoal_revision SET version_num = ''", "names the revision ''"),
        ("DELETE FROM shoal_revision", "is empty, but there are tables"),
        ("INSERT INTO shoal_revision VALUES ('0028')", "has several rows"),
        ("ALTER TABLE shoal_revision RENAME version_num TO other", "has no column version_num"),
        ("DROP TABLE task_instance", "lacks tables that its revision should have (task_instance)"),
    ],
)
async def test_a_broken_revision_is_refused(ready_url: str, statement: str, trouble: str) -> None:
    cascade = " CASCADE" if "DROP" in statement and "postgresql" in ready_url else ""
    await _change(ready_url, statement + cascade)
    said = await _refusal(ready_url)
    assert trouble in said
    assert "restore" in said


async def test_tables_in_a_schema_off_the_search_path_are_not_begun_anew(
    postgresql_copy: str,
) -> None:
    await _change(postgresql_copy, "ALTER SCHEMA public RENAME TO former", "CREATE SCHEMA public")
    said = await _refusal(postgresql_copy)
    assert "in the schema former of this database" in said
    assert "options=-csearch_path%3Dformer" in said


async def test_a_schema_where_nothing_can_be_created_is_refused(
    postgresql_url: str, postgresql_server: PostgresqlServer
) -> None:
    role = f"role_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgresql_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN".encode())
        try:
            said = await _refusal(postgresql_url.replace("//shoal@", f"//{role}@"))
        finally:
            admin.execute(f"DROP ROLE {role}".encode())
    assert "may not create tables in the schema public" in said


async def test_tables_of_extensions_are_nobodys(postgresql_url: str) -> None:
    with psycopg.connect(postgresql_url, autocommit=True) as admin:
        admin.execute("CREATE EXTENSION pg_stat_statements")
    async with Database(postgresql_url) as database:
        await database.migrate()
