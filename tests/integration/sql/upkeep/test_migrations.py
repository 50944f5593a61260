"""The schema: what the revisions make is what the code expects, however they are started."""

import asyncio
import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from shoal.sql import Database
from shoal.sql.errors import SchemaMissing, SchemaTooNew, SchemaTooOld
from shoal.sql.schema.examination import VERSION_TABLE
from shoal.sql.schema.migrate import FOLDER, revisions
from shoal.sql.schema.tables import metadata
from tests.support.waiting import DEADLINE_S

REPOSITORY = Path(__file__).parents[4]
MIGRATE = """\
import asyncio, sys
from shoal.sql import Database

async def main():
    async with Database(sys.argv[1]) as database:
        sys.stdin.readline()
        await database.migrate()
        async with database.unit_of_work(read_only=True) as uow:
            assert await uow.projects.list() == []

print("ready", flush=True)
asyncio.run(main())
"""


async def _in_transaction(url: str, *statements: str) -> None:
    async with Database(url) as database, database.unit_of_work() as uow:
        for statement in statements:
            await uow.connection.execute(text(statement))
        await uow.commit()


async def _ask(url: str, function: Any) -> Any:
    async with Database(url) as database, database.unit_of_work() as uow:
        return await uow.connection.run_sync(function)


async def test_revisions_make_exactly_the_metadata(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()

    def differences(connection: Connection) -> Any:
        options = {"compare_type": True, "version_table": VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        return compare_metadata(context, metadata)

    assert await _ask(empty_url, differences) == []


async def test_revisions_make_the_same_tables_and_indices_as_the_metadata(
    empty_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Also what compare_metadata overlooks: conditions of partial indices, AUTOINCREMENT."""

    def described(connection: Connection) -> set[str]:
        if connection.dialect.name == "sqlite":
            query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
        else:
            query = (
                "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' UNION ALL "
                "SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)"
                " FROM pg_constraint UNION ALL "
                "SELECT table_name || ' ' || column_name || ' ' || data_type || is_nullable"
                " || coalesce(column_default, '') || coalesce(character_maximum_length, 0)"
                " FROM information_schema.columns WHERE table_schema = 'public'"
            )
        found = {" ".join(sql.split()) for (sql,) in connection.execute(text(query))}
        return {one for one in found if VERSION_TABLE not in one}

    async with Database(empty_url) as database:
        await database.migrate()
    migrated = await _ask(empty_url, described)
    await _in_transaction(
        empty_url, *(f"DROP TABLE {table.name}" for table in reversed(metadata.sorted_tables))
    )

    def create_all(connection: Connection) -> set[str]:
        metadata.create_all(connection)
        return described(connection)

    assert {_parts(one) for one in await _ask(empty_url, create_all)} == {
        _parts(one) for one in migrated
    }


def _parts(statement: str) -> tuple[str, ...]:
    """Cut CREATE TABLE at the commas of its outermost brackets: constraints have no order."""
    if not statement.startswith("CREATE TABLE"):
        return (statement,)
    head, _, body = statement.replace('"', "").removesuffix(")").partition("(")
    parts, depth = [""], 0
    for character in body:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return head.strip(), *sorted(part.strip() for part in parts)


async def test_four_processes_may_migrate_at_once(empty_url: str) -> None:
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", MIGRATE, empty_url, stdin=pipe, stdout=pipe, stderr=pipe
        )
        for _ in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        ended = await asyncio.wait_for(
            asyncio.gather(*(process.communicate(b"go\n") for process in processes)), 2 * DEADLINE_S
        )
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
    told = [(p.returncode, err) for p, (_, err) in zip(processes, ended, strict=True)]
    assert told == [(0, b"")] * 4


async def test_migrating_again_changes_nothing(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()
        async with database.unit_of_work() as uow:
            await uow.projects.ensure("kept")
            await uow.commit()
        await database.migrate()
        async with database.unit_of_work(read_only=True) as uow:
            assert (await uow.projects.get("kept")).name == "kept"


async def test_database_of_a_newer_version_is_refused(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()
        await _in_transaction(empty_url, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
        with pytest.raises(SchemaTooNew, match=r"9999.*upgrade this process"):
            await database.migrate()


async def test_database_of_an_older_version_is_refused_with_the_way_out(empty_url: str) -> None:
    """Migrating it from the first revision on would fail at a table that exists."""
    async with Database(empty_url) as database:
        await database.migrate()
        await _in_transaction(empty_url, f"UPDATE {VERSION_TABLE} SET version_num = '0026'")
        with pytest.raises(SchemaTooOld, match=r"0026.*revision 0027 or newer.*Shoal 0\.1\.0"):
            await database.migrate()


async def test_failed_migration_leaves_nothing_behind(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()
    stored = text(f"SELECT version_num FROM {VERSION_TABLE}")
    known = revisions()
    before = known[known.index("0036") - 1]  # then comes a table that is there
    await _in_transaction(empty_url, f"UPDATE {VERSION_TABLE} SET version_num = '{before}'")
    async with Database(empty_url) as database:
        with pytest.raises(Exception, match="exists"):
            await database.migrate()
        async with database.unit_of_work(read_only=True) as uow:
            assert await uow.connection.scalar(stored) == before
    await _in_transaction(empty_url, f"UPDATE {VERSION_TABLE} SET version_num = '{known[-1]}'")
    async with Database(empty_url) as database:
        await database.migrate()


async def test_tables_that_were_never_made_are_reported(empty_url: str) -> None:
    async with Database(empty_url) as database, database.unit_of_work() as uow:
        with pytest.raises(SchemaMissing):
            await uow.projects.list()


async def test_a_schema_that_is_up_to_date_needs_no_alembic(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()
    program = f"{MIGRATE}\nassert 'alembic' not in sys.modules"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, empty_url, stdin=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        await process.communicate(b"\n")
    assert process.returncode == 0


def test_the_names_of_the_files_tell_the_revisions() -> None:
    script = ScriptDirectory(str(FOLDER))
    known = [revision.revision for revision in script.walk_revisions()]
    assert revisions() == known[::-1]
    assert script.get_heads() == [revisions()[-1]]


async def test_migrating_leaves_logging_alone(empty_url: str) -> None:
    mine = logging.getLogger("shoal.test.before.migration")
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    async with Database(empty_url) as database:
        await database.migrate()
    assert (root.level, list(root.handlers)) == before
    assert not mine.disabled


def test_revisions_are_part_of_the_wheel(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = (
        "import asyncio, shoal.sql\n"
        f"assert shoal.sql.__file__.startswith({str(site)!r}), shoal.sql.__file__\n"
        "async def main():\n"
        f"    async with shoal.sql.Database('sqlite:///{tmp_path}/new.db') as database:\n"
        "        await database.migrate()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
