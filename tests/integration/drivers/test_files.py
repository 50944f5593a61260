"""SQLite and DuckDB: what both do alike."""

import time
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers import classify, settle
from shoal.worker.types.sql.drivers.failures import (
    SqlFailed,
    StatementCancelled,
    StatementTimedOut,
)
from shoal.worker.types.sql.session import ErrorVerdict
from tests.integration.drivers.kit import Aside, connected, peak_of, rows, run

# It ends at no time anybody would wait for.
ENDLESS = {
    "sqlite": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    ),
    "duckdb": "SELECT count(*) FROM range(1000000000000000) r WHERE (range * 7) % 13 = 5",
}
MANY = {
    "sqlite": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) "
        "SELECT i, printf('%0100d', i) FROM n"
    ),
    "duckdb": "SELECT range, repeat('x', 100) FROM range(1000000)",
}


@pytest.fixture(params=["sqlite", "duckdb"])
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def source(kind: str, tmp_path: Path) -> DataSource:
    return DataSource("files", kind, database=str(tmp_path / "data %20.db"))


def test_rows_changes_and_columns(source: DataSource) -> None:
    session = connected(source)
    assert list(session.execute("CREATE TABLE t (i integer, name varchar)").columns) == []
    two, none = session.placeholder(0, "text"), session.placeholder(1, "text")
    insert = session.execute(f"INSERT INTO t VALUES (2, {two}), (3, {none})", ["it's %s ?", None])
    assert (list(insert.columns), insert.row_count) == ([], 2)
    found = session.execute("SELECT i, name FROM t ORDER BY i")
    assert [column.name for column in found.columns] == ["i", "name"]
    assert list(found) == [(2, "it's %s ?"), (3, None)]
    assert not found.next_set()
    assert rows(session, "UPDATE t SET i = i + 1 RETURNING i") == [(3,), (4,)]
    session.close()


def test_values_of_all_types(source: DataSource) -> None:
    session = connected(source)
    given = [7, Decimal("1.50"), date(2026, 2, 3), True, "x", None]
    marks = [session.placeholder(number, "") for number in range(len(given))]
    (found,) = rows(session, f"SELECT {', '.join(marks)}", tuple(given))
    assert [str(value) for value in found] in (
        ["7", "1.50", "2026-02-03", "1", "x", "None"],  # SQLite has neither dates nor booleans
        ["7", "1.50", "2026-02-03", "True", "x", "None"],
    )
    session.close()


def test_rolled_back_is_gone_and_committed_stays(source: DataSource) -> None:
    session = connected(source)
    run(session, "CREATE TABLE t (i integer)")
    session.begin()
    run(session, "INSERT INTO t VALUES (1)", "CREATE TABLE gone (i integer)")
    session.rollback()
    session.begin()
    run(session, "INSERT INTO t VALUES (2)")
    session.commit()
    session.close()
    session = connected(source, attempt=2)
    assert rows(session, "SELECT i FROM t") == [(2,)]
    with pytest.raises(SqlFailed, match="gone"):
        session.execute("SELECT * FROM gone")
    session.close()


@pytest.mark.parametrize("wrong", ["SELEC 1", "SELECT * FROM nowhere", "SELECT 1; SELECT 2"])
def test_mistakes_are_permanent(source: DataSource, wrong: str) -> None:
    session = connected(source)
    with pytest.raises(SqlFailed) as failed:
        session.execute(wrong)
    assert classify(failed.value) is ErrorVerdict.PERMANENT
    assert rows(session, "SELECT 1") == [(1,)]
    session.close()


def test_broken_constraint_is_permanent(source: DataSource) -> None:
    session = connected(source)
    run(session, "CREATE TABLE t (i integer PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with pytest.raises(SqlFailed, match=r"(?i)constraint") as failed:
        session.execute("INSERT INTO t VALUES (1)").close()
    assert classify(failed.value) is ErrorVerdict.PERMANENT
    session.close()


def test_result_may_be_closed_early(source: DataSource, kind: str) -> None:
    session = connected(source)
    found = session.execute(MANY[kind])
    assert next(iter(found))[0] in (0, 1)
    found.close()
    assert rows(session, "SELECT 1") == [(1,)]
    session.close()


def test_cancelled_from_another_thread(source: DataSource, kind: str) -> None:
    session = connected(source)
    session.begin()
    run(session, "CREATE TABLE t (i integer)")
    endless = Aside(lambda: rows(session, ENDLESS[kind]))
    time.sleep(0.3)
    assert not endless.is_over
    session.cancel()
    endless.join()
    assert isinstance(endless.error, StatementCancelled)
    with pytest.raises(StatementCancelled):  # nothing more begins
        session.execute("SELECT 1")
    with pytest.raises(StatementCancelled):
        session.commit()
    session.rollback()
    session.close()


def test_cancelled_before_it_begins(source: DataSource, kind: str) -> None:
    session = connected(source)
    session.cancel()
    with pytest.raises(StatementCancelled):
        session.execute(ENDLESS[kind])
    session.close()


def test_statement_timeout_includes_reading(source: DataSource, kind: str) -> None:
    session = connected(source, statement_timeout_s=1.5)
    with pytest.raises(StatementTimedOut, match=r"within 1\.5 s") as failed:
        rows(session, ENDLESS[kind])
    assert classify(failed.value) is ErrorVerdict.RETRY
    assert rows(session, "SELECT 1") == [(1,)]  # the next one has its own time
    session.close()


def test_read_only(source: DataSource) -> None:
    with pytest.raises(WorkFailed, match="there is no file"):
        connected(source, read_only=True)
    session = connected(source)
    run(session, "CREATE TABLE t (i integer)", "INSERT INTO t VALUES (1)")
    session.close()
    session = connected(source, read_only=True)
    assert rows(session, "SELECT i FROM t") == [(1,)]
    session.begin()
    with pytest.raises(SqlFailed, match=r"(?i)read-?only") as failed:
        session.execute("INSERT INTO t VALUES (2)").close()
    assert classify(failed.value) is ErrorVerdict.PERMANENT
    session.rollback()
    session.close()
    marked = DataSource("files", source.kind, database=source.database, options={"read_only": True})
    session = connected(marked)
    with pytest.raises(SqlFailed, match=r"(?i)read-?only"):
        session.execute("DROP TABLE t").close()
    session.close()


@pytest.mark.parametrize(
    ("database", "reason"),
    [
        ("", "absolute path"),
        ("data.db", "absolute path"),
        ("~/data.db", "absolute path"),
        ("file:/tmp/data.db?mode=memory", "absolute path"),
        ("/tmp/../etc/data.db", "absolute path"),
        ("/tmp", "is a folder"),
        ("/no/such/folder/data.db", "no folder /no/such/folder"),
        (__file__, "database"),
    ],
)
def test_paths_that_name_no_database(kind: str, database: str, reason: str) -> None:
    with pytest.raises(WorkFailed, match=reason) as failed:
        connected(DataSource("files", kind, database=database))
    assert failed.value.permanent
    assert "data source 'files'" in str(failed.value)


def test_memory(kind: str) -> None:
    session = connected(DataSource("files", kind, database=":memory:"), read_only=True)
    assert rows(session, "SELECT 1") == [(1,)]
    session.close()


def test_nothing_to_settle(source: DataSource) -> None:
    settle(source, tag="test-tag", attempt=1)


def test_names_are_quoted(source: DataSource, kind: str) -> None:
    session = connected(source)
    odd = session.quote('a "b; --')
    run(session, f"CREATE TABLE {odd} (i integer)")
    schema = "temp" if kind == "sqlite" else "other"
    if kind == "duckdb":
        run(session, "CREATE SCHEMA other")
    run(session, f"CREATE TABLE {session.quote(schema + '.t')} (i integer)")
    assert rows(session, f"SELECT * FROM {schema}.t") == []
    session.close()


def test_a_million_rows_in_bounded_memory(kind: str) -> None:
    count, more = peak_of(DataSource("m", kind, database=":memory:"), MANY[kind])
    assert count == 1_000_000
    assert more < 60  # MiB; as tuples they would take more than 200
