"""SQL and DATA_QUALITY tasks on a real Spark Connect server, in processes of their own."""

import csv
import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.quality.kind import DataQuality
from tests.integration.drivers.kit import wait_until
from tests.integration.worker.sql.kit import Ended, Process, ran
from tests.support.spark.connect import Served, served

ENDLESS = "SELECT count(*) FROM range(100000000000000)"

pytestmark = pytest.mark.timeout(600)

# All tests are attempts of one task; an attempt ends the session of the one before it.
_numbers = count(10, 10)


@pytest.fixture(scope="module")
def server(spark_classes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("spark")) as one:
        yield one


def done(server: Served, folder: Path, sql: str, **more: Any) -> Ended:
    kept = {name: more.pop(name) for name in ("parameters", "attempt", "settle") if name in more}
    kept.setdefault("attempt", next(_numbers))
    return ran(server.source, {"sql": sql, **more}, folder, **kept)


def is_idle(server: Served) -> bool:
    return server.jobs() == 0


def test_statements_values_and_rows(server: Served, tmp_path: Path) -> None:
    ended = done(
        server,
        tmp_path / "a",
        "CREATE TEMPORARY VIEW v AS SELECT id, id * 1.5 AS d, DATE '2026-01-31' AS day "
        "FROM range(5);\n"
        "SELECT *, ${text} AS t, ${n} + 1 AS n FROM ${view} WHERE id >= ${n}",
        parameters={"text": "it's; DROP", "n": "3"},
        types={"n": "integer"},
        identifiers={"view": "v"},
        result="rows",
    )
    assert ended.code == 0, ended.log
    assert ended.settled
    assert json.loads(ended.outputs["rows"]) == [
        {"id": 3, "d": "4.5", "day": "2026-01-31", "t": "it's; DROP", "n": 4},
        {"id": 4, "d": "6.0", "day": "2026-01-31", "t": "it's; DROP", "n": 4},
    ]


def test_many_rows_into_a_file(server: Served, tmp_path: Path) -> None:
    sql = "SELECT id, 'x' AS x FROM range(100000)"
    ended = done(server, tmp_path / "a", sql, result="file", file_name="r.csv", preview_rows=2)
    assert ended.code == 0, ended.log
    with (tmp_path / "a" / "r.csv").open() as file:
        ids = sorted(int(row["id"]) for row in csv.DictReader(file))
    assert ids == list(range(100_000))


def test_sessions_see_nothing_of_each_other(server: Served, tmp_path: Path) -> None:
    view = "CREATE TEMPORARY VIEW mine AS SELECT 1 AS a"
    number = next(_numbers)
    assert done(server, tmp_path / "a", view, attempt=number).code == 0
    again = done(server, tmp_path / "b", view, attempt=number + 1)
    assert again.code == 0, again.log
    other = done(server, tmp_path / "c", "SELECT * FROM mine")
    assert (other.code, other.settled) == (65, True)
    assert "`mine` cannot be found" in other.reason


@pytest.mark.parametrize(
    ("sql", "more", "code", "said"),
    [
        ("SELEC 1", {}, 65, "Syntax error at or near 'SELEC'"),
        ("SELECT 1/0", {}, 65, "DIVIDE_BY_ZERO"),
        ("SELECT * FROM nowhere", {}, 65, "`nowhere` cannot be found"),
        ("SELECT raise_error('no')", {}, 65, "no"),
        ("CREATE TABLE t (a int)", {"read_only": True}, 65, "the task is read only"),
        (ENDLESS, {"statement_timeout": "1s"}, 1, "did not end within 1 s"),
    ],
)
def test_failures(
    server: Served, tmp_path: Path, sql: str, more: dict[str, Any], code: int, said: str
) -> None:
    ended = done(server, tmp_path / "a", sql, **more)
    assert (ended.code, ended.settled) == (code, True), ended.log
    assert said in ended.reason
    assert "at org.apache" not in ended.log
    wait_until(lambda: is_idle(server), 5)


def test_killed(server: Served, tmp_path: Path) -> None:
    number = next(_numbers)
    with Process(server.source, {"sql": ENDLESS}, tmp_path / "a", attempt=number) as process:
        wait_until(lambda: not is_idle(server))
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    wait_until(lambda: is_idle(server), 5)


def test_what_a_dead_process_has_left_is_ended(server: Served, tmp_path: Path) -> None:
    number = next(_numbers)
    with Process(server.source, {"sql": ENDLESS}, tmp_path / "a", attempt=number) as process:
        wait_until(lambda: not is_idle(server))
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    ended = done(server, tmp_path / "b", ENDLESS, settle=True, attempt=number)
    assert (ended.code, ended.settled) == (0, True), ended.log
    wait_until(lambda: is_idle(server), 5)


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"password": "wrong"}, 65, "the server refuses this token"),
        ({"port": 1}, 1, "no server answers there"),
        ({"host": "example.org"}, 65, "a token is sent with TLS only, or to localhost"),
    ],
)
def test_servers_that_cannot_be_used(
    server: Served, tmp_path: Path, changes: dict[str, Any], code: int, said: str
) -> None:
    source = replace(server.source, **changes)
    ended = ran(source, {"sql": "SELECT 1"}, tmp_path / "a", attempt=1)
    assert (ended.code, ended.settled) == (code, True), ended.log
    assert said in ended.reason


def test_quality(server: Served, tmp_path: Path) -> None:
    checks = [
        {"check": "not_null", "column": "id"},
        {"check": "unique", "columns": ["id"]},
        {"check": "range", "column": "id", "min": 0, "max": 9},
        {"check": "value", "sql": "SELECT sum(id) FROM range(4)", "min": 6, "max": 6},
        {"check": "matches", "column": "id", "pattern": "^[0-8]$", "on_failure": "warn"},
    ]
    prepared = done(
        server, tmp_path / "a", "CREATE TABLE IF NOT EXISTS q AS SELECT * FROM range(10)"
    )
    assert prepared.code == 0, prepared.log
    params = {"table": "q", "checks": checks}
    number = next(_numbers)
    ended = ran(server.source, params, tmp_path / "b", kind=DataQuality, attempt=number)
    assert ended.code == 0, ended.log
    assert [str(ended.outputs[name]) for name in ("rows", "warned")] == ["10", "1"]
    assert "1 of 10 rows fail" in ended.log
