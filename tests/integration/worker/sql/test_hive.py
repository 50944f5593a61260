"""SQL tasks on a real Thrift server of Spark's, which speaks the protocol of HiveServer2."""

import csv
import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql import drivers
from tests.integration.drivers.kit import wait_until
from tests.integration.worker.sql.kit import Ended, Process, ran
from tests.support.spark.connect import Served, thrift_served

ENDLESS = "SELECT count(*) FROM range(100000000000000)"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def server(spark_classes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with thrift_served(tmp_path_factory.mktemp("thrift")) as one:
        yield one


def done(server: Served, folder: Path, sql: str, **more: Any) -> Ended:
    kept = {name: more.pop(name) for name in ("parameters", "settle") if name in more}
    return ran(server.source, {"sql": sql, **more}, folder, **kept)


def is_busy(server: Served) -> bool:
    return server.jobs() > 0


def is_idle(server: Served) -> bool:
    return server.jobs() == 0


def test_statements_values_and_rows(server: Served, tmp_path: Path) -> None:
    texts = ["it's; DROP", "a\\'b", "${env:HOME}", "two\nlines", "étoile", "--", ""]
    wanted = ", ".join(f"${{t{number}}} AS t{number}" for number in range(len(texts)))
    ended = done(
        server,
        tmp_path / "a",
        "CREATE TABLE IF NOT EXISTS v (id BIGINT, d DECIMAL(5,1), day DATE);\n"
        "INSERT INTO v SELECT id, id * 1.5, DATE '2026-01-31' FROM range(5);\n"
        f"SELECT *, {wanted}, ${{n}} + 1 AS n, ${{d}} AS dd, ${{at}} AS at, ${{yes}} AS yes, "
        "array(1, 2) AS a, CAST('ab' AS BINARY) AS b, CAST(NULL AS INT) AS nothing "
        "FROM ${table} WHERE id = ${n}",
        parameters={
            **{f"t{number}": text for number, text in enumerate(texts)},
            "n": "3",
            "d": "-1.50",
            "at": "2026-01-31 10:00:00",
            "yes": "true",
            "table": "default.v",
        },
        types={"n": "integer", "d": "decimal", "at": "timestamp", "yes": "boolean"},
        identifiers={"table": "default.v"},
        result="rows",
    )
    assert ended.code == 0, ended.log
    assert ended.settled
    (row,) = json.loads(ended.outputs["rows"])
    assert [row[f"t{number}"] for number in range(len(texts))] == texts
    assert {name: value for name, value in row.items() if not name.startswith("t")} == {
        "id": 3,
        "d": "4.5",
        "day": "2026-01-31",
        "n": 4,
        "dd": "-1.50",
        "at": "2026-01-31T10:00:00",
        "yes": True,
        "a": "[1,2]",
        "b": "6162",
        "nothing": None,
    }


def test_many_rows_into_a_file(server: Served, tmp_path: Path) -> None:
    sql = "SELECT id, 'x' AS x FROM range(100000)"
    ended = done(server, tmp_path / "a", sql, result="file", file_name="r.csv", preview_rows=2)
    assert ended.code == 0, ended.log
    with (tmp_path / "a" / "r.csv").open() as file:
        ids = sorted(int(row["id"]) for row in csv.DictReader(file))
    assert ids == list(range(100_000))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC 1", "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'"),
        ("SELECT * FROM nowhere", "[TABLE_OR_VIEW_NOT_FOUND]"),
        ("SELECT assert_true(1 = 2, 'no')", "[USER_RAISED_EXCEPTION] no"),
    ],
)
def test_statement_that_is_wrong_fails_for_good_and_says_why(
    server: Served, tmp_path: Path, sql: str, words: str
) -> None:
    ended = done(server, tmp_path / "a", sql)
    assert (ended.code, ended.settled) == (65, True)
    assert words in ended.reason
    assert "\tat " not in ended.log


def test_read_only_takes_statements_that_read(server: Served, tmp_path: Path) -> None:
    ended = done(server, tmp_path / "a", "CREATE TABLE x (a INT)", read_only=True)
    assert (ended.code, "the task is read only" in ended.reason) == (65, True)
    assert done(server, tmp_path / "b", "SELECT 1", read_only=True).code == 0


def test_statement_that_takes_too_long_is_ended_and_what_follows_runs(
    server: Served, tmp_path: Path
) -> None:
    # Spark's server does not end the job of a statement that is cancelled before its job began.
    ended = done(server, tmp_path / "a", ENDLESS, statement_timeout="20s", after="SELECT 'after'")
    assert (ended.code, "did not end within 20 s" in ended.reason) == (1, True), ended.log
    assert "after the failure" in ended.log
    wait_until(lambda: is_idle(server))


def test_killed_statement_ends_at_the_server(server: Served, tmp_path: Path) -> None:
    with Process(server.source, {"sql": ENDLESS}, tmp_path / "a") as process:
        wait_until(lambda: is_busy(server))
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert ended.settled, ended.log
    assert ended.code == 143
    assert is_idle(server)


def test_settling_ends_what_a_process_has_left_that_does_not_answer(
    server: Served, tmp_path: Path
) -> None:
    with Process(server.source, {"sql": ENDLESS}, tmp_path / "a") as process:
        wait_until(lambda: is_busy(server))
        process.signal(signal.SIGSTOP)  # its connection stands: the server sees nothing
        settled = done(server, tmp_path / "a", ENDLESS, settle=True)
        assert settled.code == 0, settled.log
        wait_until(lambda: is_idle(server))
        again = done(server, tmp_path / "a", ENDLESS, settle=True)  # of what is gone
        assert again.code == 0, again.log


def test_process_that_is_killed_leaves_nothing_once_it_is_settled(
    server: Served, tmp_path: Path
) -> None:
    with Process(server.source, {"sql": ENDLESS}, tmp_path / "a") as process:
        wait_until(lambda: is_busy(server))
        process.signal(signal.SIGKILL)
        process.ended()
        settled = done(server, tmp_path / "a", ENDLESS, settle=True)
    assert settled.code == 0, settled.log
    wait_until(lambda: is_idle(server))


def test_database_of_the_data_source_is_the_one_in_use(server: Served, tmp_path: Path) -> None:
    assert done(server, tmp_path / "a", "CREATE DATABASE IF NOT EXISTS sales").code == 0
    sales = Served(replace(server.source, database="sales"), server.process, server.pages)
    ended = done(sales, tmp_path / "b", "SELECT current_database() AS d", result="row")
    assert (ended.code, ended.outputs.get("d")) == (0, "sales"), ended.log
    nowhere = Served(replace(server.source, database="nowhere"), server.process, server.pages)
    wrong = done(nowhere, tmp_path / "c", "SELECT 1")
    assert (wrong.code, "SCHEMA_NOT_FOUND" in wrong.reason) == (65, True), wrong.reason


def refusal(source: DataSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkFailed:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkFailed) as caught:
        drivers.connect(
            source,
            tag="t",
            attempt=1,
            log=lambda _: None,
            read_only=False,
            statement_timeout_s=None,
        )
    return caught.value


def test_signing_in_says_what_is_wrong(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = refusal(replace(server.source, port=1), tmp_path, monkeypatch)
    assert "no server answers there: is the server running" in str(closed)
    assert not closed.permanent
    other = refusal(replace(server.source, options={"auth": "nosasl"}), tmp_path, monkeypatch)
    assert "do the options `auth` and `tls` say what it expects?" in str(other)
    assert other.permanent
