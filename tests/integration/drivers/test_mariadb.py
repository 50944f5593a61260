"""MariaDB: results, transactions, errors and connections."""

import socket
import time
import uuid
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

import pytest

from shoal.core.data_sources import Option
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers import classify
from shoal.worker.types.sql.drivers.failures import SqlFailed, StatementTimedOut
from shoal.worker.types.sql.session import ErrorVerdict, Session
from tests.integration.drivers.kit import connected, peak_of, rows, run
from tests.integration.drivers.servers import Served, free_port


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def session(mariadb: Served, told: list[str]) -> Iterator[Session]:
    session = connected(mariadb.source, tag=f"tag-{uuid.uuid4().hex[:8]}", log=told.append)
    yield session
    session.close()


# -- results --------------------------------------------------------------------------------------


def test_rows_changes_and_columns(session: Session) -> None:
    run(session, "CREATE TEMPORARY TABLE t (i int, n decimal(10,2), s text, b blob, d datetime)")
    values = [7, Decimal("1.50"), "it's 100 % \\ ü", b"\x00'", datetime(2026, 1, 2, 3, 4, 5)]
    marks = [session.placeholder(number, "") for number in range(len(values))]
    insert = session.execute(
        f"INSERT INTO t VALUES ({', '.join(marks)}), (8, 0, '', '', NULL)", values
    )
    assert (list(insert.columns), list(insert), insert.row_count) == ([], [], 2)
    found = session.execute("SELECT *, '%' AS p FROM t ORDER BY i")
    assert [(column.name, column.type_name) for column in found.columns] == [
        ("i", "int"),
        ("n", "decimal"),
        ("s", "text"),
        ("b", "blob"),
        ("d", "datetime"),
        ("p", "varchar"),
    ]
    assert next(iter(found)) == (*values, "%")
    assert [row[0] for row in found] == []  # read as a block
    assert rows(session, f"SELECT {marks[0]} LIKE 'a%'", ("abc",)) == [(1,)]
    day, none = date(2026, 1, 2), None
    assert rows(session, f"SELECT {marks[0]}, {marks[1]}", (day, none)) == [("2026-01-02", None)]


def test_result_sets_of_a_procedure(session: Session) -> None:
    run(
        session,
        "CREATE OR REPLACE PROCEDURE several() BEGIN SELECT 1 AS a UNION SELECT 2; DO 1; "
        "SELECT 'x' AS b, 2 AS c; SELECT 3 AS d WHERE 1 = 0; END",
    )
    found = session.execute("CALL several()")
    sets = []
    while True:
        sets.append(([column.name for column in found.columns], list(found)))
        if not found.next_set():
            break
    assert sets == [(["a"], [(1,), (2,)]), (["b", "c"], [("x", 2)]), (["d"], [])]
    session.execute("CALL several()").close()
    found = session.execute("CALL several()")
    assert found.next_set()  # the first is not wanted
    assert list(found) == [("x", 2)]
    assert rows(session, "SELECT 5") == [(5,)]


def test_a_million_rows_in_bounded_memory(mariadb: Served) -> None:
    many = "SELECT seq, repeat('x', 100) FROM seq_1_to_1000000"
    count, more = peak_of(mariadb.source, many)
    assert count == 1_000_000
    assert more < 30  # MiB; as tuples they would take more than 200


def test_warnings_go_to_the_log(session: Session, told: list[str]) -> None:
    run(session, "CREATE TEMPORARY TABLE t (i tinyint)", "SET sql_mode = ''")
    run(session, "INSERT INTO t VALUES (1000)")
    assert told == ["Warning 1264: Out of range value for column 'i' at row 1"]
    told.clear()
    run(session, "INSERT INTO t SELECT seq + 1000 FROM seq_1_to_50")
    assert len(told) == 21
    assert told[-1] == "… 50 warnings in all"


# -- transactions ---------------------------------------------------------------------------------


def test_rolled_back_is_gone_and_committed_stays(session: Session) -> None:
    run(session, "CREATE OR REPLACE TABLE kept (i int)")
    session.begin()
    run(session, "INSERT INTO kept VALUES (1)")
    session.rollback()
    session.begin()
    run(session, "INSERT INTO kept VALUES (2)")
    session.commit()
    run(session, "INSERT INTO kept VALUES (3)")  # by itself
    session.begin()
    session.rollback()
    assert rows(session, "SELECT i FROM kept ORDER BY i") == [(2,), (3,)]


def test_what_commits_by_itself_begins_the_next_transaction(session: Session) -> None:
    run(session, "CREATE OR REPLACE TABLE before_ddl (i int)")
    session.begin()
    run(session, "INSERT INTO before_ddl VALUES (1)")
    assert session.implicit_commit("/* new */ create table other (i int)")
    run(session, "CREATE OR REPLACE TABLE other (i int)")
    run(session, "INSERT INTO before_ddl VALUES (2)")
    session.rollback()
    assert rows(session, "SELECT i FROM before_ddl") == [(1,)]


@pytest.mark.parametrize(
    ("statement", "commits"),
    [
        ("CREATE TEMPORARY TABLE t (i int)", False),
        ("CREATE OR REPLACE TABLE t (i int)", True),
        ("# a\n-- b\nTRUNCATE t", True),
        ("/*!50000 DROP */ TABLE t", True),
        ("DROP TEMPORARY TABLE t", False),
        ("INSERT INTO t VALUES (1)", False),
        ("SET PASSWORD = PASSWORD('x')", True),
        ("SET @a = 1", False),
        ("SELECT 'DROP'", False),
    ],
)
def test_implicit_commits(session: Session, statement: str, commits: bool) -> None:
    assert session.implicit_commit(statement) is commits


def test_rollback_in_the_middle_of_reading(session: Session) -> None:
    session.begin()
    endless = iter(session.execute("SELECT a.seq FROM seq_1_to_1000000 a, seq_1_to_1000000 b"))
    next(endless)
    session.rollback()
    assert rows(session, "SELECT 1") == [(1,)]


def test_read_only(mariadb: Served) -> None:
    session = connected(mariadb.source, tag="reader", read_only=True)
    for transaction in (True, False):
        if transaction:
            session.begin()
        with pytest.raises(SqlFailed, match=r"READ ONLY.*read-only") as failed:
            session.execute("CREATE TABLE never (i integer)")
        assert classify(failed.value) is ErrorVerdict.PERMANENT
        session.rollback()
    session.close()


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "said", "verdict"),
    [
        ("SELEC 2", "syntax", ErrorVerdict.PERMANENT),
        ("SELECT 1; SELECT 2", "syntax", ErrorVerdict.PERMANENT),
        ("SELECT * FROM nowhere", "nowhere", ErrorVerdict.PERMANENT),
        ("SELECT * FROM mysql.user", "denied", ErrorVerdict.PERMANENT),
        ("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'own'", "own", ErrorVerdict.PERMANENT),
        ("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213", "1213", ErrorVerdict.RETRY),
        (
            "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t",
            "(?i)local|load",
            ErrorVerdict.PERMANENT,
        ),
    ],
)
def test_errors(session: Session, statement: str, said: str, verdict: ErrorVerdict) -> None:
    with pytest.raises(SqlFailed, match=said) as failed:
        rows(session, statement)
    assert classify(failed.value) is verdict
    assert rows(session, "SELECT 1") == [(1,)]


def test_lock_wait_may_be_tried_again(session: Session, mariadb: Served) -> None:
    run(session, "CREATE OR REPLACE TABLE held (i int PRIMARY KEY)", "INSERT INTO held VALUES (1)")
    session.begin()
    run(session, "UPDATE held SET i = 2")
    other = connected(mariadb.source, tag="other")
    run(other, "SET innodb_lock_wait_timeout = 1")
    with pytest.raises(SqlFailed, match="Lock wait") as failed:
        other.execute("UPDATE held SET i = 3")
    assert classify(failed.value) is ErrorVerdict.RETRY
    other.close()


def test_statement_timeout(mariadb: Served) -> None:
    session = connected(mariadb.source, tag="timeout", statement_timeout_s=2.0)
    with pytest.raises(StatementTimedOut, match=r"\b2 s") as failed:
        rows(session, "SELECT sum(a.seq) FROM seq_1_to_1000000 a, seq_1_to_1000000 b")
    assert classify(failed.value) is ErrorVerdict.RETRY
    assert rows(session, "SELECT 1") == [(1,)]
    session.close()


# -- connections ----------------------------------------------------------------------------------


def test_wrong_password_and_names(mariadb: Served) -> None:
    for changed, said in (
        ({"password": "secret-canary"}, "wrong password"),
        ({"password": ""}, "wrong password"),
        ({"user": "nobody_at_all"}, "no such user"),
        ({"database": "nowhere"}, "no right to this database"),
        ({"options": {"charset": "klingon"}}, "unknown charset"),
    ):
        with pytest.raises(WorkFailed, match=said) as failed:
            connected(mariadb.sourced(**changed))
        assert failed.value.permanent
        assert "data source 'warehouse' (mariadb 127.0.0.1:" in str(failed.value)
        assert "canary" not in str(failed.value)


def test_nobody_there(mariadb: Served) -> None:
    for changed, said in (
        ({"port": free_port()}, "no server listens there"),
        ({"host": "no-such-host.invalid"}, "there is no such host"),
    ):
        with pytest.raises(WorkFailed, match=said) as failed:
            connected(mariadb.sourced(**changed))
        assert not failed.value.permanent


def test_no_answer(mariadb: Served) -> None:
    options: dict[str, Option] = {"connect_timeout": 1}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(WorkFailed, match="no answer within 1 s"):
            connected(mariadb.sourced(port=port, options=options))
    session = connected(mariadb.sourced(options=options), tag="slow")
    began = time.monotonic()
    assert rows(session, "SELECT sleep(1.5)") == [(0,)]  # only signing in has this limit
    assert time.monotonic() - began > 1.4
    session.close()


def test_tls(mariadb: Served) -> None:
    def cipher(**options: str) -> str:
        session = connected(mariadb.sourced(options=options), tag="tls")
        found = rows(session, "SHOW STATUS LIKE 'Ssl_cipher'")
        session.close()
        return str(found[0][1])

    assert not cipher(tls="disable")
    assert cipher(tls="prefer")
    assert cipher(tls="require")
    assert cipher(tls="verify-full", ca_certificate=mariadb.ca)
    with pytest.raises(WorkFailed, match="not signed by a trusted authority") as failed:
        cipher(tls="verify-ca")
    assert failed.value.permanent
    options: dict[str, Option] = {"tls": "verify-full", "ca_certificate": mariadb.ca}
    with pytest.raises(WorkFailed, match="for another host"):
        connected(mariadb.sourced(host="localhost", options=options))
    with pytest.raises(WorkFailed, match="wrong password"):
        connected(mariadb.sourced(user="trusted_by_tls", options={"tls": "disable"}))


def test_names_are_quoted(session: Session) -> None:
    assert session.quote("s.a`b") == "`s`.`a``b`"
