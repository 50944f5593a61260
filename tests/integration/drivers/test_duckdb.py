"""DuckDB alone: what it would let statements reach, and its lock on the file."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from shoal.core.data_sources import DataSource, Option
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers import classify
from shoal.worker.types.sql.drivers import duckdb as driver
from shoal.worker.types.sql.drivers.failures import SqlFailed
from shoal.worker.types.sql.session import ErrorVerdict
from tests.integration.drivers.kit import Aside, connected, rows, run


@pytest.fixture
def source(tmp_path: Path) -> DataSource:
    return DataSource("files", "duckdb", database=str(tmp_path / "data.db"))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/other.db'",
        "EXPORT DATABASE '/tmp/out'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
    ],
)
def test_nothing_but_its_own_file_is_in_reach(source: DataSource, statement: str) -> None:
    session = connected(source)
    with pytest.raises(SqlFailed) as failed:
        rows(session, statement)
    assert classify(failed.value) is ErrorVerdict.PERMANENT
    session.close()


def test_statements_without_rows_have_no_columns(source: DataSource) -> None:
    session = connected(source)
    for statement in (
        "CREATE TABLE t (i integer)",
        "CREATE TABLE u AS SELECT 1 AS i",
        "ALTER TABLE t ADD COLUMN j integer",
        "CREATE VIEW v AS SELECT 1",
        "BEGIN",
        "COMMIT",
        "ANALYZE",
        "CHECKPOINT",
        "DROP VIEW v",
        "-- nothing",
    ):
        assert list(session.execute(statement).columns) == [], statement
    assert rows(session, "SELECT TIMESTAMPTZ '2026-01-02 03:04:05+00' AS t")[0][0].year == 2026
    session.close()


def test_options(source: DataSource) -> None:
    options: dict[str, Option] = {"memory_limit": "300MB", "threads": 1}
    session = connected(DataSource("f", source.kind, database=source.database, options=options))
    shown = "SELECT value FROM duckdb_settings() WHERE name IN ('threads', 'memory_limit')"
    assert {value for (value,) in rows(session, shown)} == {"1", "286.1 MiB"}
    session.close()


def test_conflict_of_transactions_may_be_tried_again(source: DataSource) -> None:
    session = connected(source)
    run(session, "CREATE TABLE t (i integer)", "INSERT INTO t VALUES (1)")
    assert isinstance(session, driver.DuckdbSession)
    other = session._connection.cursor()
    session.begin()
    run(session, "UPDATE t SET i = 2")
    other.execute("BEGIN")
    with pytest.raises(duckdb.TransactionException) as conflict:
        other.execute("UPDATE t SET i = 3")
    assert classify(session._translate(conflict.value)) is ErrorVerdict.RETRY
    other.close()
    session.close()


def test_waits_for_another_process(source: DataSource, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"
    command = [sys.executable, "-c", code, source.database]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdin
    assert other.stdout
    assert other.stdout.readline() == "open\n"
    monkeypatch.setattr(driver, "_LOCK_TIMEOUT_S", 1)
    with pytest.raises(WorkFailed, match="one process at a time") as refused:
        connected(source)
    assert not refused.value.permanent
    monkeypatch.setattr(driver, "_LOCK_TIMEOUT_S", 100)
    waiting = Aside(lambda: connected(source))
    other.communicate("\n")
    assert waiting.join().error is None
    waiting.value.close()
