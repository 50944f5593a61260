"""The first words of statements."""

from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.sql.drivers.dbapi import DbApiSession
from shoal.worker.types.sql.drivers.failures import SqlFailed, require_reading
from shoal.worker.types.sql.drivers.hive import HiveBackend
from shoal.worker.types.sql.drivers.syntax import first_words, reads
from shoal.worker.types.sql.drivers.trino import TrinoBackend
from shoal.worker.types.sql.session import ErrorVerdict

WITH = "/* a */ with x as (select 1) select * from x"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("", ()),
        ("select 1", ("SELECT",)),
        ("\n -- select\n /* create\n */ (insert into t", ("INSERT", "INTO")),
        ("create temporary table t", ("CREATE", "TEMPORARY")),
        ("/*! drop */ table t", ("TABLE", "T")),
        ("--", ()),
    ],
)
def test_words_behind_comments(statement: str, words: tuple[str, ...]) -> None:
    assert first_words(statement, 2) == words


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("/*!50000 drop */ table t", ("DROP",)),
        ("/*M!100100 drop table t */", ("DROP", "TABLE")),
        ("# drop\nselect 1", ("SELECT",)),
        ("/* drop */ select 1", ("SELECT",)),
    ],
)
def test_words_of_mysql(statement: str, words: tuple[str, ...]) -> None:
    assert first_words(statement, 2, mysql=True) == words


def test_what_reads() -> None:
    assert reads("/* a */ Select 1")
    assert reads("explain delete from t")
    assert not reads("with x as (select 1) insert into t select * from x")
    assert not reads("")
    for explain in ("explain analyze", "EXPLAIN (VERBOSE, ANALYSE)", "explain /* */ analyze"):
        assert not reads(f"{explain} delete from t"), explain


class Unreachable(TrinoBackend):
    """A server whose connection breaks at each statement."""

    def cursor(self) -> Any:
        raise OSError("gone")


@pytest.mark.parametrize("read_only", [True, False])
def test_with_begins_only_queries_in_trino(read_only: bool) -> None:
    """So it is sent in a read-only session, and a lost connection leaves no change in doubt."""
    source = DataSource(name="t", kind="trino", host="localhost", user="u")
    session = DbApiSession(Unreachable(source, "tag", "tag/1"), None, read_only=read_only)
    with pytest.raises(SqlFailed, match="connection was lost: gone") as lost:
        session.execute(WITH)
    assert lost.value.verdict is ErrorVerdict.RETRY
    session.close()
    refused = DbApiSession(Unreachable(source, "tag", "tag/1"), None, read_only=True)
    for change in ("insert into t with x as (select 1) select * from x", "delete from t"):
        with pytest.raises(SqlFailed, match="the task is read only"):
            refused.execute(change)
    refused.close()


def test_with_may_begin_an_insert_in_hive() -> None:
    with pytest.raises(SqlFailed, match="the task is read only"):
        require_reading(WITH, HiveBackend.reading)
