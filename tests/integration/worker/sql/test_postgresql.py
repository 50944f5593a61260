"""SQL tasks on a PostgreSQL server: values of all types, kills, connections that are refused."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shoal.worker.types.child.outcome import CANCELLED, FAILED, PERMANENT
from tests.integration.drivers.servers import Served, free_port
from tests.integration.worker.sql.kit import Process, ran, until

MARK = "/* of the task */"  # in statements that run long
RUNNING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "attempt"


@pytest.fixture
def server(postgresql: Served) -> Iterator[psycopg.Connection[Any]]:
    source = postgresql.source
    with psycopg.connect(
        host=source.host,
        port=source.port,
        dbname=source.database,
        user=source.user,
        password=source.password,
        autocommit=True,
    ) as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        connection.execute("CREATE SCHEMA shop")
        connection.execute(
            "CREATE TABLE shop.t (i integer PRIMARY KEY, d date, at timestamptz, n numeric, b bool)"
        )
        yield connection


def one(server: psycopg.Connection[Any], query: str) -> Any:
    row = server.execute(query).fetchone()
    assert row is not None
    return row[0]


def running(server: psycopg.Connection[Any]) -> int:
    row = server.execute(RUNNING, [f"%{MARK}%"]).fetchone()
    assert row is not None
    count: int = row[0]
    return count


def test_untyped_and_typed_values_fit_columns_of_every_type(
    postgresql: Served, server: psycopg.Connection[Any], folder: Path
) -> None:
    values = {"i": "7", "d": "2026-01-31", "at": "2026-01-31 10:00:00+02", "n": "1.50", "b": "true"}
    insert = "INSERT INTO ${t} VALUES (${i}, '${d}', ${at}, ${n}, ${b});"
    query = "SELECT * FROM ${t} WHERE i = ${i} AND d = ${d} AND n <= ${n}"
    typed = {"i": "integer", "d": "date", "at": "timestamp", "n": "decimal", "b": "boolean"}
    for types in ({}, typed):
        ended = ran(
            postgresql.source,
            {
                "before": "delete from shop.t",
                "sql": f"{insert} {query}",
                "identifiers": {"t": "shop.t"},
                "types": types,
                "result": "row",
            },
            folder,
            parameters=values,
        )
        assert ended.reason == ""
        assert ended.outputs["d"] == "2026-01-31"
        assert (ended.outputs["n"], ended.outputs["b"]) == ("1.50", "true")


def test_bodies_of_functions_arrive_as_they_were_written(
    postgresql: Served, server: psycopg.Connection[Any], folder: Path
) -> None:
    body = "\n  begin -- it's;\n raise notice 'says; %', 1; return 'a;b'; end "
    sql = f"""
        create function shop.f() returns text language plpgsql as $f${body}$f$;
        create function shop.g(x int) returns int begin atomic
          select 1; select case when x > 1 then 2 else 3 end; end;
        do $$ begin perform 1; end; $$;
        select shop.f() as f, shop.g(2) as g, prosrc from pg_proc where proname = 'f'"""
    ended = ran(postgresql.source, {"sql": sql, "result": "row"}, folder)
    assert ended.reason == ""
    assert (ended.outputs["f"], ended.outputs["g"], ended.outputs["prosrc"]) == ("a;b", "2", body)
    assert "NOTICE: says; 1" in ended.log


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "select * frm shop.t",
            '(select * frm shop.t): syntax error at or near "frm"',
        ),
        ("insert into shop.t values (1)", "duplicate key value violates unique constraint"),
        ("create table shop.u (i int default ${i})", "parameters are values: they cannot stand"),
        ("select ${i} + 'x'::int", "invalid input syntax"),
        ("drop table pg_class", "must be owner of table pg_class"),
    ],
)
def test_refused_statement_rolls_everything_back(
    postgresql: Served, server: psycopg.Connection[Any], folder: Path, sql: str, reason: str
) -> None:
    sql = f"insert into shop.t values (1); {sql}"
    ended = ran(postgresql.source, {"sql": sql}, folder, parameters={"i": "5"})
    assert reason in ended.reason
    assert ended.code == PERMANENT
    assert ended.settled
    assert one(server, "select count(*) from shop.t") == 0


def test_statement_that_takes_too_long_may_be_tried_again(
    postgresql: Served, server: psycopg.Connection[Any], folder: Path
) -> None:
    params = {"sql": f"select pg_sleep(1000) {MARK}", "statement_timeout": "200ms"}
    ended = ran(postgresql.source, params, folder)
    assert "the statement did not end within 0.2 s" in ended.reason
    assert (ended.code, ended.settled) == (FAILED, True)
    assert running(server) == 0


def test_connections_that_are_refused_are_explained(postgresql: Served, folder: Path) -> None:
    wrong = ran(postgresql.sourced(password="secret-guess"), {"sql": "select 1"}, folder)
    assert "password authentication failed" in wrong.reason
    assert "secret-guess" not in wrong.log
    away = ran(postgresql.sourced(port=free_port()), {"sql": "select 1"}, folder)
    assert "refused" in away.reason
    assert away.code == FAILED
    nowhere = ran(postgresql.sourced(database="nowhere"), {"sql": "select 1"}, folder)
    assert '"nowhere" does not exist' in nowhere.reason
    assert wrong.settled
    assert away.settled
    assert nowhere.settled


STUBBORN = """create procedure shop.stubborn() language plpgsql as $$
begin
  for i in 1..1000 loop
    begin
      perform pg_sleep(1000);
    exception when query_canceled then
      raise notice 'not yet';
    end;
  end loop;
end $$;
commit"""


@pytest.mark.parametrize(
    "statement",
    [
        f"select pg_sleep(1000) {MARK}",
        f"select i from generate_series(1, 10000000000) r(i) {MARK}",
        f"update shop.t set b = true from pg_sleep(1000) {MARK}",
        f"call shop.stubborn() {MARK}",
    ],
)
def test_kill_ends_what_runs_at_the_server(
    postgresql: Served, server: psycopg.Connection[Any], folder: Path, statement: str
) -> None:
    if "stubborn" in statement:
        made = ran(postgresql.source, {"sql": STUBBORN, "transaction": "statement"}, folder)
        assert made.reason == ""
    params = {"sql": f"insert into shop.t values (1); {statement}", "preview_rows": 0}
    with Process(postgresql.source, params, folder) as process:
        until(lambda: running(server) > 0)
        process.signal(signal.SIGTERM)
        assert process.ended().code == CANCELLED
    until(lambda: running(server) == 0)
    assert one(server, "select count(*) from shop.t") == 0


def test_settling_ends_what_a_dead_process_has_left(
    postgresql: Served, server: psycopg.Connection[Any], folder: Path
) -> None:
    params = {"sql": f"select pg_sleep(1000) {MARK}"}
    with Process(postgresql.source, params, folder) as process:
        until(lambda: running(server) > 0)
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
        ended = ran(postgresql.source, params, folder, settle=True)
    assert (ended.code, ended.settled) == (0, True)
    assert running(server) == 0


def test_next_attempt_begins_when_the_earlier_one_is_gone(
    postgresql: Served, server: psycopg.Connection[Any], tmp_path: Path
) -> None:
    lock = f"insert into shop.t values (1); select pg_sleep(1000) {MARK}"
    with Process(postgresql.source, {"sql": lock}, tmp_path / "one") as first:
        until(lambda: running(server) > 0)
        first.signal(signal.SIGSTOP)  # its worker is lost: nobody hears of it
        ended = ran(
            postgresql.source,
            {
                "sql": "insert into shop.t values (1); select count(*) as n from pg_stat_activity "
                "where query like ${mark} and pid <> pg_backend_pid()",
                "result": "row",
            },
            tmp_path / "two",
            parameters={"mark": "%sleep(1000) /* of the%"},
            attempt=2,
        )
        assert ended.reason == ""
        assert ended.outputs["n"] == "0"


def test_rows_of_all_types_as_json(postgresql: Served, folder: Path) -> None:
    sql = """select 1::bigint as i, 1.50 as n, true as b, null as nothing, array[1, 2] as a,
        '{"x": [1.5]}'::jsonb as j, '\\x00ff'::bytea as raw, interval '1 day' as every,
        date '2026-01-31' as d, timestamptz '2026-01-31 10:00:00+00' as at, 'é' as s"""
    ended = ran(postgresql.source, {"sql": sql, "result": "rows"}, folder)
    assert ended.reason == ""
    (row,) = json.loads(ended.outputs["rows"])
    at = row.pop("at")
    assert at.startswith("2026-01-31T")
    assert row == {
        "i": 1,
        "n": "1.50",
        "b": True,
        "nothing": None,
        "a": [1, 2],
        "j": {"x": [1.5]},
        "raw": "00ff",
        "every": "1 day, 0:00:00",
        "d": "2026-01-31",
        "s": "é",
    }
