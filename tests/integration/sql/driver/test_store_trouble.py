"""A database that answers and stores nothing is noticed, named, and used again when it is back."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from shoal.sql import Database
from shoal.sql.errors import DatabaseMissing, DatabaseMoved, DatabaseUnavailable, DatabaseUnwritable
from shoal.sql.startup import migrate_when_there
from shoal.sql.write_check import WriteCheck
from tests.integration.sql.given import NOW
from tests.support.programs import lacking

EMOJI = "caf\u00e9 \u20ac \U0001f41f"


async def _store(database: Database, name: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure(name, NOW)
        await uow.commit()


async def _store_many(database: Database) -> None:
    for number in range(10_000):
        await _store(database, f"p{number}")


@pytest.fixture
def admin(postgresql_copy: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A session of the same database that is not Shoal's, without a transaction."""
    with psycopg.connect(postgresql_copy, autocommit=True) as connection:
        yield connection


def _for_database(admin: psycopg.Connection[tuple[object, ...]], setting: str) -> None:
    admin.execute(f"ALTER DATABASE {admin.info.dbname} {setting}".encode())


async def test_sessions_of_a_read_only_server_are_dropped_and_writes_go_on_by_themselves(
    postgresql_copy: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    _for_database(admin, "SET default_transaction_read_only = on")
    async with Database(postgresql_copy) as database:
        await database.ping()  # it reads
        with pytest.raises(DatabaseUnwritable, match=r"read-only.*names the primary"):
            await _store(database, "early")
        assert "read-only" in (database.write_refusal or "")
        # Sessions that were opened meanwhile stay read-only for as long as they live.
        async with (
            database.unit_of_work(read_only=True) as one,
            database.unit_of_work(read_only=True) as two,
        ):
            await asyncio.gather(one.connection.check(), two.connection.check())
        _for_database(admin, "RESET default_transaction_read_only")
        with pytest.raises(DatabaseUnwritable):
            await _store(database, "refused by a session of before")
        await _store(database, "late")


@pytest.mark.parametrize(
    ("said", "is_useless"),
    [
        ("RAISE SQLSTATE '25006'", True),
        ("RAISE SQLSTATE '57P01'", True),
        ("RAISE SQLSTATE '57P02'", True),
        ("RAISE SQLSTATE '57P03'", True),
        ("RAISE SQLSTATE '08006'", True),
        ("RAISE SQLSTATE '58030'", True),
        ("RAISE SQLSTATE 'XX001'", True),
        ("RAISE SQLSTATE '53200'", True),
        ("RAISE SQLSTATE '40001'", False),
        ("RAISE SQLSTATE '57014'", False),
        ("PERFORM 1 / 0", False),
    ],
)
async def test_a_session_is_used_again_unless_its_error_says_that_it_is_useless(
    postgresql_copy: str, said: str, is_useless: bool
) -> None:
    async def session(database: Database) -> int:
        async with database.unit_of_work() as uow:
            found = await uow.connection.scalar(text("SELECT pg_backend_pid()"))
        assert isinstance(found, int)
        return found

    async with Database(postgresql_copy, pool_size=1) as database:
        before = await session(database)
        with pytest.raises(Exception, match="the database answered"):
            async with database.unit_of_work() as uow:
                await uow.connection.execute(text(f"DO $$ BEGIN {said}; END $$"))
        assert (await session(database) != before) is is_useless


async def test_settings_of_role_and_database_change_nothing_about_values(
    postgresql_copy: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for setting in (
        "SET client_encoding = 'LATIN1'",
        "SET DateStyle = 'German, DMY'",
        "SET IntervalStyle = 'sql_standard'",
        "SET TimeZone = 'Asia/Kathmandu'",
        "SET standard_conforming_strings = off",
        "SET bytea_output = 'escape'",
        "SET extra_float_digits = -15",
        "SET search_path = 'nowhere'",
        "SET statement_timeout = '500ms'",
        "SET default_transaction_isolation = 'serializable'",
    ):
        _for_database(admin, setting)
    async with Database(postgresql_copy) as database:
        await database.migrate()
        await _store(database, "p")
        async with database.unit_of_work() as uow:
            await uow.projects.set_description("p", EMOJI)
            await uow.commit()
        async with database.unit_of_work(read_only=True) as uow:
            found = await uow.projects.get("p")
            assert found.description == EMOJI
            assert found.created_at == NOW
            await uow.connection.execute(text("SELECT pg_sleep(0.7)"))
            assert await uow.connection.scalar(text("SHOW search_path")) == '"$user", public'
        async with database.unit_of_work() as uow:
            level = await uow.connection.scalar(text("SHOW transaction_isolation"))
            assert level == "read committed"
        assert (await database.now()).utcoffset() is not None


async def test_the_url_decides_which_schema_holds_the_tables(postgresql_url: str) -> None:
    with psycopg.connect(postgresql_url, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA shoal")
    mark = "&" if "?" in postgresql_url else "?"
    async with Database(f"{postgresql_url}{mark}options=-csearch_path%3Dshoal") as database:
        await database.migrate()
        await _store(database, "p")
    with psycopg.connect(postgresql_url) as admin:
        assert admin.execute("SELECT name FROM shoal.project").fetchall() == [("p",)]


async def test_a_check_of_writes_is_shared_and_costs_one_write(database: Database) -> None:
    await asyncio.gather(*(database.check_writes() for _ in range(20)))
    await database.check_writes()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.connection.scalar(text("SELECT sum(writes + 1) FROM write_check")) == 1


async def test_a_full_disk_is_noticed_and_named_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.sql.write_check.EVERY_S", 0.0)
    monkeypatch.setattr("shoal.sql.write_check.RETRY_S", 0.0)
    with _small_disk(tmp_path / "disk") as disk:
        async with Database(f"sqlite:///{disk}/shoal.db") as database:
            await database.migrate()
            await database.check_writes()
            stuffing = _fill(disk)
            with pytest.raises(DatabaseUnwritable, match="free space on the disk"):
                await _store_many(database)
            assert "full" in (database.write_refusal or "")
            with pytest.raises(DatabaseUnwritable, match="free space on the disk"):
                await database.check_writes()
            await database.ping()  # it reads
            stuffing.unlink()
            monkeypatch.setattr("shoal.sql.write_check.REMEMBERED_S", 0.0)
            await database.check_writes()
            assert database.write_refusal is None
            await _store(database, "again")


class _small_disk:  # noqa: N801 - used as a function
    """A file system of 8 MB in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Path:
        self._folder.mkdir()
        options = ["-t", "tmpfs", "-o", "size=8m", "shoal-test", str(self._folder)]
        if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False).returncode != 0:
            lacking("a small file system needs root and mount")
        return self._folder

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self._folder)], check=True)


def _fill(disk: Path) -> Path:
    """Fill a file system but for some pages; return the file that does."""
    path = disk / "stuffing"
    with path.open("wb", buffering=0) as file:
        room = os.statvfs(disk)
        file.write(b"x" * max(room.f_bavail * room.f_frsize - 20_000, 0))
    return path


def _moved(file: Path) -> Path:
    return file.rename(file.with_name("moved.db"))


async def test_a_moved_file_is_noticed_at_once_and_used_again_when_it_is_back(
    tmp_path: Path, sqlite_template: Path
) -> None:
    file = Path(shutil.copy(sqlite_template, tmp_path / "shoal.db"))
    async with Database(f"sqlite:///{file}") as database:
        await _store(database, "before")
        moved = _moved(file)
        for _ in range(2):
            with pytest.raises(DatabaseMoved, match=r"shoal\.db was moved.*move the same file"):
                await _store(database, "lost")
        with pytest.raises(DatabaseMoved):
            await database.ping()
        shutil.copy(sqlite_template, file)
        with pytest.raises(DatabaseMoved):  # another file is not the one that it knows
            await _store(database, "elsewhere")
        moved.replace(file)
        await _store(database, "after")


async def test_a_file_that_was_there_before_is_not_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "shoal.db"
    async with Database(f"sqlite:///{file}") as database:
        await database.migrate()
    moved = _moved(file)
    with pytest.raises(DatabaseMissing, match=r"shoal\.db is missing.*delete .*shoal\.db\.lock"):
        async with Database(f"sqlite:///{file}"):
            pass
    assert not file.exists()
    moved.rename(file)
    async with Database(f"sqlite:///{file}") as database:
        await database.migrate()
    file.unlink()
    file.with_name("shoal.db.lock").unlink()
    async with Database(f"sqlite:///{file}") as database:
        await database.migrate()


_HOLD = """\
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


async def test_a_start_beside_a_long_migration_waits(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shutil.copy(sqlite_template, tmp_path / "shoal.db")
    monkeypatch.setattr("shoal.sql.driver.sqlite.pool.LOCK_PATIENCE_S", 0.1)
    monkeypatch.setattr("shoal.sql.startup.PAUSE_S", 0.05)
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _HOLD, str(file), stdin=pipe, stdout=pipe
    )
    assert other.stdout is not None
    await other.stdout.readline()
    async with Database(f"sqlite:///{file}") as database:
        starting = asyncio.create_task(migrate_when_there(database))
        await asyncio.sleep(0.6)
        assert not starting.done()
        await other.communicate(b"\n")
        await starting
    with pytest.raises(DatabaseUnavailable):  # what is no matter of time ends it
        async with Database("sqlite:////proc/nowhere/shoal.db") as database:
            await migrate_when_there(database)


async def test_write_that_hangs_is_a_failure_only_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without it, one long transaction of another process makes the cluster look broken."""
    monkeypatch.setattr("shoal.sql.write_check.PATIENCE_S", 0.01)
    held = asyncio.Event()

    async def write() -> None:
        await held.wait()

    check = WriteCheck(write)
    await check.require()
    monkeypatch.setattr("shoal.sql.write_check.STUCK_S", 0.0)
    with pytest.raises(DatabaseUnavailable, match="has not stored a row for"):
        await check.require()
    held.set()
    await check.close()
    await check.require()
