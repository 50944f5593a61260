"""SQLite alone: its locks, and what it would let statements reach."""

import sqlite3
import time
from pathlib import Path

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers import classify
from shoal.worker.types.sql.drivers.failures import SqlFailed, StatementCancelled
from shoal.worker.types.sql.session import ErrorVerdict
from tests.integration.drivers.kit import Aside, connected, rows, run


@pytest.fixture
def source(tmp_path: Path) -> DataSource:
    return DataSource("files", "sqlite", database=str(tmp_path / "data.db"))


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '/tmp/other.db' AS other",
        "VACUUM INTO '/tmp/other.db'",
        "SELECT load_extension('/tmp/evil.so')",
        "PRAGMA writable_schema = ON",
        "PRAGMA trusted_schema = ON",
        "PRAGMA query_only = OFF",
        "PRAGMA temp_store_directory = '/etc'",
    ],
)
def test_nothing_but_its_own_file_is_in_reach(source: DataSource, statement: str) -> None:
    session = connected(source)
    with pytest.raises(SqlFailed, match="cannot be") as failed:
        rows(session, statement)
    assert classify(failed.value) is ErrorVerdict.PERMANENT
    run(session, "CREATE TABLE t (i)", "VACUUM")
    session.close()


def test_quoted_name_that_is_none_is_refused(source: DataSource) -> None:
    session = connected(source)
    run(session, "CREATE TABLE t (`a``b` integer)")
    assert rows(session, f"SELECT {session.quote('a`b')} FROM {session.quote('main.t')}") == []
    with pytest.raises(SqlFailed, match="no such column: c"):
        rows(session, f"SELECT {session.quote('c')} FROM t")
    session.close()


def test_regular_expressions(source: DataSource) -> None:
    session = connected(source)
    asked = "SELECT 'abc' REGEXP 'b', 'abc' REGEXP '^b', NULL REGEXP 'b'"
    assert rows(session, asked) == [(1, 0, None)]
    session.close()


def test_waits_for_another_writer(source: DataSource) -> None:
    session = connected(source)
    run(session, "CREATE TABLE t (i)")
    other = sqlite3.connect(source.database, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    inserting = Aside(lambda: run(session, "INSERT INTO t VALUES (1)"))
    time.sleep(0.3)
    assert not inserting.is_over
    other.execute("COMMIT")
    assert inserting.join().error is None
    other.execute("BEGIN EXCLUSIVE")
    waiting = Aside(lambda: session.begin())
    time.sleep(0.3)
    assert not waiting.is_over
    session.cancel()
    assert isinstance(waiting.join().error, StatementCancelled)
    other.close()
    session.close()


def test_another_writer_that_does_not_end(source: DataSource) -> None:
    patient = DataSource("f", source.kind, database=source.database, options={"busy_timeout": 1})
    session = connected(patient)
    run(session, "CREATE TABLE t (i)")
    other = sqlite3.connect(source.database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(SqlFailed, match="another process was writing for 1 s") as failed:
        session.execute("INSERT INTO t VALUES (1)")
    assert classify(failed.value) is ErrorVerdict.RETRY
    with pytest.raises(WorkFailed, match="another process was writing") as refused:
        connected(patient)
    assert not refused.value.permanent
    other.close()
    session.close()
