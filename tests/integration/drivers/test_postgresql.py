"""PostgreSQL: results, transactions, errors and connections."""

import socket
import uuid
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import psycopg
import pytest

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers import classify, settle
from shoal.worker.types.sql.drivers.failures import SqlFailed, StatementTimedOut
from shoal.worker.types.sql.session import ErrorVerdict, Session
from tests.integration.drivers.kit import connected, peak_of, rows, run
from tests.integration.drivers.servers import PASSWORD, Served, free_port


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def session(postgresql: Served, told: list[str]) -> Iterator[Session]:
    session = connected(postgresql.source, tag=f"tag-{uuid.uuid4().hex[:8]}", log=told.append)
    yield session
    session.close()


# -- results --------------------------------------------------------------------------------------


def test_rows_changes_and_columns(session: Session) -> None:
    created = session.execute("CREATE TEMP TABLE t (i integer, n numeric(10,2), s text[])")
    assert (list(created.columns), created.row_count) == ([], None)
    values = [7, Decimal("1.50"), ["a%s", "$1"]]
    insert = session.execute("INSERT INTO t VALUES ($1, $2, $3), (8, NULL, NULL)", values)
    assert (list(insert), insert.row_count) == ([], 2)
    found = session.execute("SELECT i, n, s, 'a%b' AS p FROM t ORDER BY i")
    assert [(column.name, column.type_name) for column in found.columns] == [
        ("i", "integer"),
        ("n", "numeric(10,2)"),
        ("s", "text[]"),
        ("p", "text"),
    ]
    assert list(found) == [(7, Decimal("1.50"), ["a%s", "$1"], "a%b"), (8, None, None, "a%b")]
    assert list(found) == []  # once
    returning = session.execute("UPDATE t SET i = i + 1 RETURNING i")
    assert (sorted(returning), returning.row_count) == ([(8,), (9,)], 2)


def test_columns_of_an_empty_result_and_of_other_statements(session: Session) -> None:
    nothing = session.execute("SELECT 1 AS one WHERE false")
    assert ([column.name for column in nothing.columns], list(nothing)) == (["one"], [])
    assert [column.name for column in session.execute("SHOW server_version").columns] == [
        "server_version"
    ]
    assert session.execute("EXPLAIN SELECT 1").columns
    assert rows(session, "-- nothing but a comment") == []


def test_types_of_the_database(postgresql: Served) -> None:
    postgresql.asked("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    postgresql.asked("CREATE DOMAIN money_ AS numeric(9,1)")
    session = connected(postgresql.source, tag="types")
    found = session.execute("SELECT 'sad'::mood, 1::money_, ARRAY['glad']::mood[]")
    assert [column.type_name for column in found.columns][:2] == ["mood", "numeric(9,1)"]
    assert found.columns[2].type_name == "mood[]"
    assert next(iter(found))[0] == "sad"
    session.close()


def test_dates_that_python_has_none_for_are_texts(session: Session) -> None:
    days = "(VALUES (DATE '2026-01-02'), ('infinity'), ('0044-03-15 BC')) v (d)"
    statement = f"SELECT d::date, d::timestamptz FROM {days}"
    found = rows(session, statement)
    assert [row[0] for row in found] == [date(2026, 1, 2), "infinity", "0044-03-15 BC"]
    assert found[1][1] == "infinity"


def test_a_query_is_run_to_its_end_though_its_rows_are_not_read(session: Session) -> None:
    run(session, "CREATE TEMP TABLE seen (i integer)")
    run(
        session,
        "CREATE FUNCTION pg_temp.note(i integer) RETURNS integer LANGUAGE sql AS "
        "'INSERT INTO seen VALUES (i) RETURNING i'",
    )
    found = session.execute("SELECT pg_temp.note(i) FROM generate_series(1, 5000) i")
    assert next(iter(found)) == (1,)
    found.close()
    session.execute("SELECT pg_temp.note(i) FROM generate_series(1, 100) i").close()
    assert rows(session, "SELECT count(*) FROM seen") == [(5100,)]


def test_a_million_rows_in_bounded_memory(postgresql: Served) -> None:
    many = "SELECT i, repeat('x', 100) FROM generate_series(1, 1000000) i"
    count, more = peak_of(postgresql.source, many)
    assert count == 1_000_000
    assert more < 30  # MiB; as tuples they would take more than 200


# -- transactions ---------------------------------------------------------------------------------


def test_rolled_back_is_gone_and_committed_stays(session: Session) -> None:
    run(session, "CREATE TEMP TABLE t (i integer)")
    session.begin()
    run(session, "INSERT INTO t VALUES (1)")
    session.rollback()
    session.begin()
    run(session, "INSERT INTO t VALUES (2)")
    session.commit()
    run(session, "INSERT INTO t VALUES (3)")  # by itself
    session.begin()
    session.rollback()
    assert rows(session, "SELECT i FROM t ORDER BY i") == [(2,), (3,)]
    assert not session.implicit_commit("DROP TABLE t")


def test_commit_after_a_failed_statement_is_an_error(session: Session) -> None:
    session.begin()
    with pytest.raises(SqlFailed):
        session.execute("SELECT 1 / 0")
    with pytest.raises(SqlFailed, match="nothing was committed"):
        session.commit()


def test_rollback_in_the_middle_of_reading(session: Session) -> None:
    session.begin()
    endless = iter(session.execute("SELECT generate_series(1, 10000000000)"))
    next(endless)
    session.rollback()
    assert rows(session, "SELECT 1") == [(1,)]


def test_read_only(postgresql: Served) -> None:
    session = connected(postgresql.source, tag="reader", read_only=True)
    session.begin()
    with pytest.raises(SqlFailed, match="read-only") as failed:
        session.execute("CREATE TABLE never (i integer)")
    assert classify(failed.value) is ErrorVerdict.PERMANENT
    session.rollback()
    with pytest.raises(SqlFailed, match="read-only"):
        session.execute("CREATE TABLE never (i integer)")
    session.close()


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "said", "verdict"),
    [
        ("SELECT 1; SELECT 2", "multiple commands", ErrorVerdict.PERMANENT),
        ("SELECT 1\nFROM nowhere", "line 2: FROM nowhere", ErrorVerdict.PERMANENT),
        ("SELECT * FROM pg_authid", "permission denied", ErrorVerdict.PERMANENT),
        ("SELECT 1 / 0", "division by zero", ErrorVerdict.PERMANENT),
        ("SELECT $1", "requires 1", ErrorVerdict.PERMANENT),
        ("COPY pg_class TO STDOUT", "has no file here", ErrorVerdict.PERMANENT),
        ("DO $$BEGIN RAISE SQLSTATE '40001'; END$$", "40001", ErrorVerdict.RETRY),
        ("DO $$BEGIN RAISE SQLSTATE '53300'; END$$", "53300", ErrorVerdict.RETRY),
    ],
)
def test_errors(session: Session, statement: str, said: str, verdict: ErrorVerdict) -> None:
    with pytest.raises(SqlFailed, match=said) as failed:
        rows(session, statement)
    assert classify(failed.value) is verdict


def test_statement_that_wants_no_transaction_says_how(session: Session) -> None:
    session.begin()
    with pytest.raises(SqlFailed, match="transaction: statement"):
        session.execute("VACUUM")


def test_statement_timeout(postgresql: Served) -> None:
    session = connected(postgresql.source, tag="timeout", statement_timeout_s=2.0)
    with pytest.raises(StatementTimedOut, match=r"\b2 s") as failed:
        session.execute("SELECT pg_sleep(100)")
    assert classify(failed.value) is ErrorVerdict.RETRY
    assert rows(session, "SELECT 1") == [(1,)]
    session.close()


def test_notices_go_to_the_log(session: Session, told: list[str]) -> None:
    run(session, "DO $$BEGIN RAISE NOTICE 'at 50 %%'; RAISE WARNING 'hm'; END$$")
    assert told == ["NOTICE: at 50 %", "WARNING: hm"]


# -- connections ----------------------------------------------------------------------------------


def test_wrong_password_and_names(postgresql: Served) -> None:
    for changed, said in (
        ({"password": "secret-canary"}, "wrong password"),
        ({"password": ""}, "the data source has none"),
        ({"user": "nobody_at_all"}, "wrong password, or no such user"),
        ({"database": "nowhere"}, "there is no such database"),
    ):
        with pytest.raises(WorkFailed, match=said) as failed:
            connected(postgresql.sourced(**changed))
        assert failed.value.permanent
        assert "data source 'warehouse' (postgresql 127.0.0.1:" in str(failed.value)
        assert "canary" not in str(failed.value)


def test_nobody_there(postgresql: Served) -> None:
    for changed, said in (
        ({"port": free_port()}, "no server listens there"),
        ({"host": "no-such-host.invalid"}, "there is no such host"),
    ):
        with pytest.raises(WorkFailed, match=said) as failed:
            connected(postgresql.sourced(**changed))
        assert not failed.value.permanent
        assert classify(failed.value) is ErrorVerdict.RETRY


def test_no_answer(postgresql: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        options = {"connect_timeout": 1}
        with pytest.raises(WorkFailed, match="no answer within"):
            connected(postgresql.sourced(port=port, options=options))


def test_tls(postgresql: Served) -> None:
    def is_encrypted(**options: str) -> bool:
        source = postgresql.sourced(options=options)
        session = connected(source, tag="tls")
        found = rows(session, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        session.close()
        return bool(found[0][0])

    assert not is_encrypted(sslmode="disable")
    assert is_encrypted(sslmode="require")
    assert is_encrypted(sslmode="verify-full", ca_certificate=postgresql.ca)
    with pytest.raises(WorkFailed, match="not signed by a trusted authority") as failed:
        is_encrypted(sslmode="verify-ca")
    assert failed.value.permanent
    localhost = postgresql.sourced(
        host="localhost", options={"sslmode": "verify-full", "ca_certificate": postgresql.ca}
    )
    with pytest.raises(WorkFailed, match="for another host"):
        connected(localhost)
    demanding = postgresql.sourced(user="trusted_by_tls", options={"sslmode": "disable"})
    with pytest.raises(WorkFailed, match=r"pg_hba\.conf"):
        connected(demanding)


def test_pooler_is_refused(postgresql: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    # A pooler tells its clients a number of its own.
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 1)
    for act in (connected, lambda source: settle(source, tag="test-tag", attempt=1)):
        with pytest.raises(WorkFailed, match="a connection pooler is there") as failed:
            act(postgresql.source)
        assert failed.value.permanent


def test_password_with_odd_characters_is_what_signs_in(session: Session) -> None:
    assert "'" in PASSWORD
    assert rows(session, "SELECT current_user") == [("etl",)]


def test_names_are_quoted(session: Session) -> None:
    assert session.quote('s."a b"') == '"s"."""a b"""'
