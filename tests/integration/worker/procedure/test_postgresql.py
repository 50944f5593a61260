"""PROCEDURE on a real PostgreSQL, in processes of its own."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.procedure.kind import Procedure
from tests.integration.drivers.kit import connected, rows, run, wait_until
from tests.integration.drivers.servers import Served
from tests.integration.worker.sql.kit import Ended, Process, ran

ROUTINES = """
DROP SCHEMA IF EXISTS sales CASCADE;
CREATE SCHEMA sales;
CREATE TABLE sales.days (day date, total numeric);
CREATE PROCEDURE sales.close_day(day date, INOUT total numeric, OUT note text, fee numeric = 1)
LANGUAGE plpgsql AS $$BEGIN
    RAISE NOTICE 'closing %', day;
    INSERT INTO sales.days VALUES (day, total);
    total := total + fee; note := 'closed';
END$$;
CREATE PROCEDURE sales.in_parts() LANGUAGE plpgsql AS $$BEGIN
    INSERT INTO sales.days VALUES ('2026-01-01', 1); COMMIT;
    INSERT INTO sales.days VALUES ('2026-01-02', 2); ROLLBACK;
END$$;
CREATE FUNCTION sales.add(a integer, b integer) RETURNS integer LANGUAGE sql AS 'SELECT a + b';
CREATE FUNCTION sales.nothing() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION sales.pair(OUT x integer, OUT y text) LANGUAGE sql AS $$SELECT 1, 'one'$$;
CREATE FUNCTION sales.many(n integer) RETURNS TABLE (i integer, t text)
LANGUAGE sql AS $$SELECT i, 'x' || i FROM generate_series(1, n) i$$;
CREATE FUNCTION sales.same(v integer) RETURNS text LANGUAGE sql AS $$SELECT 'integer'$$;
CREATE FUNCTION sales.same(v text) RETURNS text LANGUAGE sql AS $$SELECT 'text'$$;
CREATE FUNCTION sales.unnamed(integer, text) RETURNS text LANGUAGE sql AS $$SELECT $2 || $1$$;
CREATE PROCEDURE sales.cursors(INOUT one refcursor = 'c1', INOUT two refcursor = 'c2')
LANGUAGE plpgsql AS $$BEGIN
    OPEN one FOR SELECT 1 AS a; OPEN two FOR SELECT 'x' AS b, 2 AS c;
END$$;
CREATE FUNCTION sales.reserved(OUT "PATH" text) LANGUAGE sql AS $$SELECT 'x'$$;
CREATE PROCEDURE sales.endless() LANGUAGE plpgsql AS $$BEGIN PERFORM pg_sleep(1000); END$$;
"""


@pytest.fixture(scope="module")
def server(postgresql: Served) -> Served:
    session = connected(postgresql.source, tag="maker")
    run(session, f"DO $outer$BEGIN EXECUTE $inner${ROUTINES}$inner$; END$outer$")
    session.close()
    return postgresql


def called(server: Served, folder: Path, name: str, **params: Any) -> Ended:
    return ran(server.source, {"name": name, **params}, folder, kind=Procedure)


def total(server: Served) -> int:
    return int(server.asked("SELECT count(*) FROM sales.days")[0][0])


def test_procedure_with_modes_and_defaults(server: Served, tmp_path: Path) -> None:
    before = total(server)
    arguments = {"day": "2026-02-03", "total": 10.5}
    ended = called(server, tmp_path / "a", "sales.close_day", arguments=arguments)
    assert (ended.code, ended.outputs) == (0, {"total": "11.5", "note": "closed"})
    assert "NOTICE: closing 2026-02-03" in ended.log
    signature = (
        "sales.close_day(day date, INOUT total numeric, OUT note text, fee numeric = default)"
    )
    assert signature in ended.log
    assert ended.settled
    assert total(server) == before + 1
    arguments = {"day": "2026-02-03", "total": "1", "fee": 4}
    ended = called(server, tmp_path / "b", "SALES.Close_Day", arguments=arguments)
    assert ended.outputs["total"] == "5"


@pytest.mark.parametrize(
    ("name", "arguments", "outputs"),
    [
        ("sales.add", {"a": 1, "b": "2"}, {"return_value": "3"}),
        ("sales.add", {"a": 1, "b": None}, {"return_value": ""}),
        ("sales.nothing", {}, {}),
        ("sales.pair", {}, {"x": "1", "y": "one"}),
        ("sales.unnamed", {"1": 7, "2": "t"}, {"return_value": "t7"}),
        ("sales.same(text)", {"v": 1}, {"return_value": "text"}),
        ("sales.same( INTEGER )", {"v": "1"}, {"return_value": "integer"}),
        ("upper", {"1": "it's"}, {"return_value": "IT'S"}),
    ],
)
def test_functions(
    server: Served, tmp_path: Path, name: str, arguments: dict[str, Any], outputs: dict[str, str]
) -> None:
    name = "upper(text)" if name == "upper" else name
    ended = called(server, tmp_path / "a", name, arguments=arguments)
    assert (ended.code, ended.outputs) == (0, outputs), ended.log


def test_sets(server: Served, tmp_path: Path) -> None:
    ended = called(server, tmp_path / "a", "sales.many", arguments={"n": 2})
    assert json.loads(ended.outputs["rows"]) == [{"i": 1, "t": "x1"}, {"i": 2, "t": "x2"}]
    ended = called(server, tmp_path / "b", "sales.many", arguments={"n": 3}, max_rows=2)
    assert (ended.code, ended.outputs) == (65, {})
    assert "more than 2 rows" in ended.reason
    ended = called(server, tmp_path / "c", "sales.many", arguments={"n": 3}, result="none")
    assert (ended.code, ended.outputs) == (0, {})
    ended = called(server, tmp_path / "d", "sales.cursors")
    assert json.loads(ended.outputs["rows"]) == [{"a": 1}]
    assert json.loads(ended.outputs["rows_2"]) == [{"b": "x", "c": 2}]


def test_procedure_that_commits_by_itself(server: Served, tmp_path: Path) -> None:
    before = total(server)
    ended = called(server, tmp_path / "a", "sales.in_parts")
    assert ended.code == 65
    assert "transaction: own" in ended.reason
    assert total(server) == before
    ended = called(server, tmp_path / "b", "sales.in_parts", transaction="own")
    assert ended.code == 0
    assert total(server) == before + 1


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("sales.nowhere", {}, "there is no procedure or function 'sales.nowhere'"),
        (
            "sales.add",
            {"a": 1},
            "it needs b. There is:\n  function sales.add(a integer, b integer)",
        ),
        ("sales.add", {"a": 1, "b": 2, "c": 3}, "it has no c"),
        ("sales.same", {"v": 1}, "function sales.same(v text) returns text"),
        ("sales.add(", {}, "is not a name of a routine"),
        ("sales.add", {"a": "x", "b": 2}, "invalid input syntax"),
        ("sales.reserved", {}, "PATH"),
    ],
)
def test_mistakes(
    server: Served, tmp_path: Path, name: str, arguments: dict[str, Any], said: str
) -> None:
    ended = called(server, tmp_path / "a", name, arguments=arguments)
    assert ended.code == 65
    assert said in ended.reason
    assert ended.settled


def test_nothing_is_committed_if_there_are_no_outputs(server: Served, tmp_path: Path) -> None:
    before = total(server)
    arguments = {"day": "2026-02-03", "total": 1, "fee": "NaN"}
    run_twice = "CREATE OR REPLACE PROCEDURE sales.large(OUT big text) LANGUAGE plpgsql AS $$BEGIN "
    run_twice += "INSERT INTO sales.days VALUES (now(), 1); big := repeat('x', 9000000); END$$"
    session = connected(server.source, tag="maker")
    run(session, run_twice)
    session.close()
    ended = called(server, tmp_path / "a", "sales.large")
    assert ended.code == 65
    assert "bytes" in ended.reason
    assert total(server) == before
    assert called(server, tmp_path / "b", "sales.close_day", arguments=arguments).code == 0


def test_killed(server: Served, tmp_path: Path) -> None:
    busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'etl' AND state = 'active'"
    process = Process(server.source, {"name": "sales.endless"}, tmp_path / "a", kind=Procedure)
    with process:
        wait_until(lambda: server.asked(busy)[0][0])
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert ended.code == 143
    assert ended.settled
    assert not server.asked(busy)[0][0]


def test_settled_after_a_kill(server: Served, tmp_path: Path) -> None:
    busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'etl'"
    params = {"name": "sales.endless"}
    with Process(server.source, params, tmp_path / "a", kind=Procedure) as process:
        wait_until(lambda: server.asked(busy)[0][0])
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    ended = ran(server.source, params, tmp_path / "b", kind=Procedure, settle=True)
    assert (ended.code, ended.settled) == (0, True)
    assert not server.asked(busy)[0][0]
    session = connected(server.source, tag="after")
    assert rows(session, "SELECT 1") == [(1,)]
    session.close()
