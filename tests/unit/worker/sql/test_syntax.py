"""The first words of statements."""

import pytest

from shoal.worker.types.sql.drivers.syntax import first_words, reads


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
