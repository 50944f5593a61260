"""SQL tasks on a real Trino server."""

import csv
import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.databases import database_kind
from tests.integration.drivers.kit import Aside, connected, rows, wait_until
from tests.integration.worker.sql.kit import Ended, Process, ran
from tests.trino.conftest import Trino

ENDLESS = (
    "SELECT count(*) FROM tpch.sf100.lineitem a CROSS JOIN tpch.sf100.lineitem b "
    "WHERE a.comment || b.comment = 'x'"
)


def done(trino: Trino, folder: Path, sql: str, **more: Any) -> Ended:
    kept = {name: more.pop(name) for name in ("parameters", "settle", "attempt") if name in more}
    return ran(trino.source, {"sql": sql, **more}, folder, **kept)


def test_statements_values_and_rows(trino: Trino, tmp_path: Path) -> None:
    texts = ["it's; DROP", "a\\'b", "${env:HOME}", "two\nlines", "étoile", "--", "100 %", "?", ""]
    wanted = ", ".join(f"${{t{number}}} AS t{number}" for number in range(len(texts)))
    ended = done(
        trino,
        tmp_path / "a",
        "CREATE TABLE IF NOT EXISTS v (id BIGINT, d DECIMAL(5,1), day DATE);\n"
        "INSERT INTO v SELECT id, id * DECIMAL '1.5', DATE '2026-01-31' "
        "FROM UNNEST(sequence(0, 4)) AS s (id);\n"
        f"SELECT *, {wanted}, ${{n}} + 1 AS n, ${{d}} AS dd, ${{at}} AS at, ${{yes}} AS yes, "
        "${day} AS day2, ARRAY[1, 2] AS a, CAST(NULL AS INTEGER) AS nothing "
        "FROM ${table} WHERE id = ${n}",
        parameters={
            **{f"t{number}": text for number, text in enumerate(texts)},
            "n": "3",
            "d": "-1.50",
            "at": "2026-01-31 10:00:00",
            "yes": "true",
            "day": "2026-02-28",
            "table": "memory.default.v",
        },
        types={
            "n": "integer", "d": "decimal", "at": "timestamp", "yes": "boolean", "day": "date",
        },
        identifiers={"table": "memory.default.v"},
        result="rows",
    )  # fmt: skip
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
        "day2": "2026-02-28",
        "a": [1, 2],
        "nothing": None,
    }


def test_many_rows_into_a_file(trino: Trino, tmp_path: Path) -> None:
    sql = "SELECT orderkey FROM tpch.sf1.orders LIMIT 100000"
    ended = done(trino, tmp_path / "a", sql, result="file", file_name="r.csv", preview_rows=2)
    assert ended.code == 0, ended.log
    with (tmp_path / "a" / "r.csv").open() as file:
        assert len({row["orderkey"] for row in csv.DictReader(file)}) == 100_000


def test_statement_that_is_wrong_fails_for_good_and_says_why(trino: Trino, tmp_path: Path) -> None:
    for number, (sql, words) in enumerate(
        [
            ("SELEC 1", "mismatched input 'SELEC'"),
            ("SELECT * FROM nowhere", "Table 'memory.default.nowhere' does not exist"),
            ("SELECT 1 / 0", "Division by zero"),
        ]
    ):
        ended = done(trino, tmp_path / str(number), sql)
        assert (ended.code, ended.settled) == (65, True), sql
        assert words in ended.reason, sql


def test_read_only_takes_statements_that_read(trino: Trino, tmp_path: Path) -> None:
    ended = done(trino, tmp_path / "a", "CREATE TABLE x (a INTEGER)", read_only=True)
    assert (ended.code, "read only" in ended.reason) == (65, True), ended.reason
    assert done(trino, tmp_path / "b", "SELECT 1", read_only=True).code == 0


def test_statement_that_takes_too_long_is_ended_and_what_follows_runs(
    trino: Trino, tmp_path: Path
) -> None:
    ended = done(trino, tmp_path / "a", ENDLESS, statement_timeout="3s", after="SELECT 'after'")
    assert (ended.code, "did not end within 3 s" in ended.reason) == (1, True), ended.log
    assert "after the failure" in ended.log
    wait_until(lambda: trino.running() == 0)


def test_killed_statement_ends_at_the_server(trino: Trino, tmp_path: Path) -> None:
    with Process(trino.source, {"sql": ENDLESS}, tmp_path / "a") as process:
        wait_until(lambda: trino.running() > 0)
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    assert trino.running() == 0


def test_settling_ends_what_a_process_has_left_that_does_not_answer(
    trino: Trino, tmp_path: Path
) -> None:
    with Process(trino.source, {"sql": ENDLESS}, tmp_path / "a") as process:
        wait_until(lambda: trino.running() > 0)
        process.signal(signal.SIGSTOP)
        settled = done(trino, tmp_path / "a", ENDLESS, settle=True)
        assert settled.code == 0, settled.log
        assert trino.running() == 0


def test_next_attempt_begins_when_the_one_before_has_ended(trino: Trino, tmp_path: Path) -> None:
    with Process(trino.source, {"sql": ENDLESS}, tmp_path / "a") as process:
        wait_until(lambda: trino.running() > 0)
        process.signal(signal.SIGKILL)
    ended = done(trino, tmp_path / "b", "SELECT 1", attempt=2)
    assert ended.code == 0, ended.log
    assert trino.running() == 0


def test_tag_is_not_a_pattern_and_other_tasks_go_on(trino: Trino) -> None:
    session = connected(trino.source, tag="shoal_x-1")
    endless = Aside(lambda: rows(session, ENDLESS))
    wait_until(lambda: trino.running() > 0)
    drivers.settle(trino.source, tag="shoal-x-1", attempt=2)
    drivers.settle(trino.source, tag="shoal%", attempt=2)
    drivers.settle(trino.source, tag="shoal_x", attempt=2)
    assert trino.running() == 1
    session.terminate()
    endless.join()
    session.close()
    assert trino.running() == 0


def test_server_that_cannot_be_used_is_told_with_the_data_source(trino: Trino) -> None:
    with pytest.raises(WorkFailed, match="data source 'lake'") as failed:
        connected(replace(trino.source, port=1))
    assert not failed.value.permanent
    unknown = replace(trino.source, options={**trino.source.options, "catalog": "nowhere"})
    session = connected(unknown)
    assert rows(session, database_kind(unknown).version)[0][0].startswith("Trino ")
    with pytest.raises(WorkFailed, match="nowhere") as failed:
        rows(session, "SELECT * FROM t")
    assert failed.value.permanent
    session.close()
