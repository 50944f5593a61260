"""DATA_QUALITY on real databases, in processes of its own."""

import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.quality.kind import DataQuality
from tests.integration.drivers.kit import connected, run, wait_until
from tests.integration.drivers.servers import Served
from tests.integration.worker.sql.kit import Ended, Process, ran

TABLE = (
    "DROP TABLE IF EXISTS orders",
    "CREATE TABLE orders (id integer, region varchar(20), amount decimal(10, 2), mail varchar(50), "
    "ordered_on date)",
    "INSERT INTO orders VALUES (1, 'north', 10.5, 'a@x.org', '2026-01-01'), "
    "(2, 'south', 20, 'b@x.org', '2026-01-02'), (3, NULL, -4, 'nobody', '2026-01-02'), "
    "(3, 'moon', 5, NULL, '2026-01-02')",
    "DROP TABLE IF EXISTS staged",
    "CREATE TABLE staged (id integer, amount decimal(10, 2))",
    "INSERT INTO staged VALUES (1, 10.5), (2, 21)",
)
KINDS = ("sqlite", "duckdb", "postgresql", "mariadb")
GOOD: list[dict[str, Any]] = [
    {"check": "rows", "min": "${least}", "max": 4},
    {"check": "not_null", "column": "region", "at_most": "25%"},
    {"check": "unique", "columns": ["id", "region"]},
    {"check": "range", "column": "amount", "min": -4, "max": 20.0},
    {"check": "range", "column": "ordered_on", "min": "2026-01-01", "max": "${day}"},
    {"check": "accepted", "column": "region", "values": ["north", "south", "moon"]},
    {"check": "matches", "column": "mail", "pattern": "^([a-z]@|no${body})"},
    {"check": "holds", "condition": "amount > 0 OR region IS NULL -- a comment"},
    {"check": "fresh", "column": "ordered_on", "within": "36500d"},
    {"check": "value", "sql": "SELECT sum(amount) FROM orders WHERE id < ${n};", "max": 31},
    {"check": "same", "table": "staged", "where": "id = 1", "measure": "max(amount)",
     "tolerance": "100%"},
]  # fmt: skip
BAD: list[tuple[dict[str, Any], str]] = [
    ({"check": "rows", "min": 5}, "at least 5 rows: 4, at least 5"),
    ({"check": "not_null", "column": "region"}, "region is not null: 1 of 4 rows fail, none may"),
    ({"check": "unique", "columns": ["id"]}, "id is unique: 1 of 4 rows fail"),
    ({"check": "range", "column": "amount", "min": 0}, "amount is at least 0: 1 of 4 rows fail"),
    ({"check": "accepted", "column": "id", "values": [1, 2]}, "id is one of 2 values: 2 of 4"),
    ({"check": "matches", "column": "mail", "pattern": "@"}, "mail matches @: 1 of 4"),
    ({"check": "holds", "condition": "amount < ${most}"}, "amount < ${most}: 2 of 4"),
    ({"check": "fresh", "column": "ordered_on", "within": "1h"}, "ordered_on is fresh: 2026-01-02"),
    ({"check": "value", "sql": "SELECT max(id) FROM orders", "max": 2}, "3, at most 2"),
    ({"check": "same", "table": "staged"}, "count(*) equals its value in staged: 4, 2"),
]


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> DataSource:
    """A database with the two tables, of the kind that the test is for."""
    kind = request.param
    if kind in ("sqlite", "duckdb"):
        found = DataSource("w", kind, database=str(tmp_path / "data.db"))
        (sqlite3 if kind == "sqlite" else duckdb).connect(found.database).close()
    else:
        found = request.getfixturevalue(kind).source
    session = connected(found)
    run(session, *TABLE)
    session.close()
    return found


def judged(source: DataSource, folder: Path, *checks: dict[str, Any], **more: Any) -> Ended:
    params = {"table": "orders", "types": {"n": "integer", "most": "decimal"}, **more}
    parameters = {"least": "4", "day": "2026-01-02", "n": "3", "most": "10.5", "body": "body"}
    params["checks"] = checks
    return ran(source, params, folder, kind=DataQuality, parameters=parameters)


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_what_holds(source: DataSource, tmp_path: Path) -> None:
    ended = judged(source, tmp_path / "a", *GOOD)
    assert (ended.code, ended.reason) == (0, ""), ended.log
    assert ended.settled
    assert [str(ended.outputs[name]) for name in ("rows", "failed", "warned")] == ["4", "0", "0"]
    assert [one["state"] for one in json.loads(ended.outputs["checks"])] == ["passed"] * len(GOOD)


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_what_does_not_hold(source: DataSource, tmp_path: Path) -> None:
    checks = [check for check, _ in BAD]
    warned = judged(source, tmp_path / "a", *checks, on_failure="warn", failing_rows=1)
    assert warned.code == 0, warned.log
    for _, said in BAD:
        assert said in warned.log
    first = {**checks[0], "on_failure": "block"}
    blocked = judged(source, tmp_path / "b", first, *checks[1:], on_failure="warn")
    assert (blocked.code, blocked.settled) == (1, True)
    assert blocked.reason == f"1 of {len(BAD)} checks does not hold: at least 5 rows: 4, at least 5"
    told = [str(blocked.outputs[name]) for name in ("failed", "warned")]
    assert told == ["1", str(len(BAD) - 1)]


@pytest.mark.parametrize("source", KINDS, indirect=True)
@pytest.mark.parametrize(
    ("check", "given", "said"),
    [
        ({"check": "not_null", "column": "regiom"}, {}, "regiom"),
        ({"check": "rows", "min": 1}, {"table": "nowhere"}, "nowhere"),
        ({"check": "rows", "min": 1}, {"where": "id = 1; DROP TABLE orders"}, ";"),
        ({"check": "rows", "min": 1}, {"where": "1=1); DROP TABLE orders; SELECT (1"}, "more than"),
        ({"check": "holds", "condition": "amount < ${mos}"}, {}, "no parameter 'mos'"),
        ({"check": "holds", "condition": "amount < < 1"}, {}, "<"),
        ({"check": "value", "sql": "SELECT 1, 2", "min": 1}, {}, "one row with one column"),
        ({"check": "value", "sql": "DELETE FROM orders", "min": 1}, {}, ""),
        ({"check": "matches", "column": "mail", "pattern": "("}, {}, ""),
    ],
)
def test_what_cannot_be_checked_fails_for_good(
    source: DataSource, tmp_path: Path, check: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    ended = judged(source, tmp_path / "a", check, **given)
    assert (ended.code, ended.settled) == (65, True), ended.log
    assert said in ended.reason
    assert judged(source, tmp_path / "b", {"check": "rows", "min": 4}).code == 0


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_empty_table(source: DataSource, tmp_path: Path) -> None:
    checks = [check for check in GOOD if check["check"] not in ("rows", "fresh", "same")]
    ended = judged(source, tmp_path / "a", *checks, where="id > 99")
    assert ended.code == 0, ended.log
    none = judged(source, tmp_path / "b", GOOD[8], where="id > 99")
    assert "there is no time" in none.reason


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_hidden_columns_are_not_shown(source: DataSource, tmp_path: Path) -> None:
    check = {"check": "range", "column": "amount", "min": 0}
    ended = judged(source, tmp_path / "a", check, hide=["MAIL", "id"])
    assert "nobody" not in ended.log
    assert "-4" in ended.log
    unique = judged(source, tmp_path / "b", {"check": "unique", "columns": ["id"]}, hide=["id"])
    assert "times" not in unique.log


def test_tables_of_two_databases(postgresql: Served, tmp_path: Path) -> None:
    file = DataSource("w", "sqlite", database=str(tmp_path / "data.db"))
    for source in (postgresql.source, file):
        session = connected(source)
        run(session, *TABLE)
        session.close()
    check = {"check": "same", "table": "orders", "data_source": "w", "measure": "sum(amount)"}
    sources = {"w": file}
    params = {"table": "orders", "checks": [check]}
    same = ran(postgresql.source, params, tmp_path / "a", kind=DataQuality, others=sources)
    assert same.code == 0, same.log
    params = {"table": "orders", "checks": [{**check, "where": "id = 1"}]}
    other = ran(postgresql.source, params, tmp_path / "b", kind=DataQuality, others=sources)
    assert (other.code, other.settled) == (1, True)
    assert "31.5" in other.reason


ENDLESS = {"check": "value", "sql": "SELECT count(*) FROM pg_sleep(1000)", "min": 0, "name": "long"}
BUSY = (
    "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(1000)%' AND state = 'active' "
    "AND pid <> pg_backend_pid()"
)


def test_killed(postgresql: Served, tmp_path: Path) -> None:
    session = connected(postgresql.source)
    run(session, *TABLE)
    session.close()
    params = {"table": "orders", "checks": [ENDLESS]}
    with Process(postgresql.source, params, tmp_path / "a", kind=DataQuality) as process:
        wait_until(lambda: postgresql.asked(BUSY))
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True)
    assert not postgresql.asked(BUSY)


# MariaDB goes on with a query whose client is dead.
SLEEPING = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'"


def test_what_a_dead_process_has_left_is_settled(mariadb: Served, tmp_path: Path) -> None:
    session = connected(mariadb.source)
    run(session, *TABLE)
    session.close()
    # It runs on the second session, of the other table.
    endless = {"check": "same", "table": "staged", "measure": "max(sleep(1000))"}
    params = {"table": "orders", "where": "1 = 0", "checks": [endless]}
    with Process(mariadb.source, params, tmp_path / "a", kind=DataQuality) as process:
        wait_until(lambda: mariadb.asked(SLEEPING))
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    assert mariadb.asked(SLEEPING)
    ended = ran(mariadb.source, params, tmp_path / "b", kind=DataQuality, settle=True)
    assert (ended.code, ended.settled) == (0, True)
    assert not mariadb.asked(SLEEPING)
