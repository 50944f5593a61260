"""SQL tasks on SQLite and DuckDB: what is committed, what becomes of rows, how failures end."""

import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import CANCELLED, FAILED, PERMANENT, read_not_repeatable
from tests.integration.worker.sql.kit import ENDLESS, Ended, Process, ran


@pytest.fixture
def db(tmp_path: Path) -> DataSource:
    file = tmp_path / "data.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table t (a integer primary key, b text)")
        connection.executemany("insert into t values (?, ?)", [(1, "one"), (2, "two")])
    connection.close()
    return DataSource("db", "sqlite", database=str(file))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "attempt"


def rows(db: DataSource, query: str = "select a, b from t order by a") -> list[Any]:
    connection = sqlite3.connect(db.database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_duckdb_draws_no_bar_into_the_log(folder: Path) -> None:
    source = DataSource("db", "duckdb", database=":memory:")
    # What takes more than two seconds would get one.
    asked = {"sql": "select current_setting('enable_progress_bar') as bar", "result": "row"}
    ended = ran(source, asked, folder)
    assert (ended.code, ended.outputs["bar"].lower()) == (0, "false")


def test_statements_run_in_one_transaction_and_give_outputs(db: DataSource, folder: Path) -> None:
    ended = ran(
        db,
        {
            "before": "create temp table x as select 7 as a;",
            "sql": "insert into t values (${n}, '${s}'); insert into t select a, 'x' from x;\n"
            "select count(*) as n, group_concat(b, ';') as all_ from ${table}",
            "after": "insert into t values (8, 'after')",
            "identifiers": {"table": "main.t"},
            "types": {"n": "integer"},
            "result": "row",
        },
        folder,
        parameters={"n": "3", "s": "it's; drop table t --"},
    )
    assert (ended.code, ended.reason) == (0, "")
    assert ended.outputs == {
        "row_count": "1",
        "changed_rows": "2",
        "n": "4",
        "all_": "one;two;it's; drop table t --;x",
    }
    assert [a for a, _ in rows(db)] == [1, 2, 3, 7, 8]
    assert ended.settled
    for line in ("5 statements, in one transaction", "2/5 insert into t values (${n}, '${s}')"):
        assert line in ended.log
    assert "n = '3', s = \"it's; drop table t --\"" in ended.log
    assert "committed" in ended.log


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("insert into t values (3, 'x'); select * frm t", 'statement 2/2 (select * frm t): near "'),
        (
            "insert into t values (3, 'x'); insert into t values (1, 'x')",
            "UNIQUE constraint failed",
        ),
        ("insert into t values (3, 'x'); select * from nobody", "no such table: nobody"),
        ("insert into t values (3, 'x'); select 'open", "line 1, column 39: a quote (') is opened"),
        ("insert into t values (3, 'x'); select ${nobody}", "there is no parameter 'nobody'"),
        ("insert into t values (3, 'x'); select a from t", "wants one row, there are more"),
        ("insert into t values (3, 'x')", "the last statement returns none; put a query last"),
        ("insert into t values (3, 'x'); commit; select 1", "inside the task's own transaction"),
    ],
)
def test_failed_task_changes_nothing(db: DataSource, folder: Path, sql: str, reason: str) -> None:
    ended = ran(db, {"sql": sql, "result": "value"}, folder)
    assert reason in ended.reason
    assert ended.code == (FAILED if "there are more" in reason else PERMANENT)
    assert rows(db) == [(1, "one"), (2, "two")]
    assert ended.outputs == {}


def test_after_runs_in_its_own_transaction_when_the_task_fails(
    db: DataSource, folder: Path
) -> None:
    sql, after = (
        "insert into t values (3, 'x'); select 1/0 from nobody",
        "insert into t values (9, 'a')",
    )
    ended = ran(db, {"sql": sql, "after": f"{after}; select nobody"}, folder)
    assert "no such table: nobody" in ended.reason
    assert "no such column: nobody" in ended.log
    assert rows(db) == [(1, "one"), (2, "two")]
    ended = ran(db, {"sql": sql, "after": after}, folder)
    assert "no such table: nobody" in ended.reason
    assert rows(db)[-1] == (9, "a")


def test_fail_if_is_judged_before_the_commit(db: DataSource, folder: Path) -> None:
    params = {
        "sql": "delete from t where a = 1; select count(*) as n from t",
        "result": "row",
        "fail_if": "number(n) < number(least)",
    }
    ended = ran(db, params, folder, parameters={"least": "2"})
    assert ended.reason == "`fail_if` is true: number(n) < number(least) (least = 2, n = 1)"
    assert ended.code == FAILED
    assert rows(db) == [(1, "one"), (2, "two")]
    assert ran(db, params, folder, parameters={"least": "1"}).code == 0
    assert rows(db) == [(2, "two")]
    broken = ran(db, {**params, "fail_if": "n < 2"}, folder)
    assert (broken.code, "`fail_if`: expression 'n < 2'" in broken.reason) == (PERMANENT, True)


def test_statements_that_commit_by_themselves_stay(db: DataSource, folder: Path) -> None:
    params = {
        "sql": "insert into t values (3, 'x'); begin; insert into t values (4, 'y'); rollback; "
        "insert into nobody values (1)",
        "transaction": "statement",
    }
    assert ran(db, params, folder).code == PERMANENT
    assert rows(db)[2:] == [(3, "x")]


def test_read_only_task_changes_nothing(db: DataSource, folder: Path) -> None:
    ended = ran(db, {"sql": "delete from t", "read_only": True}, folder)
    assert ended.code == PERMANENT
    assert len(rows(db)) == 2


def test_rows_and_preview(db: DataSource, folder: Path) -> None:
    params = {"sql": "select a, b from t order by a", "result": "rows", "preview_rows": 1}
    ended = ran(db, params, folder)
    assert json.loads(ended.outputs["rows"]) == [{"a": 1, "b": "one"}, {"a": 2, "b": "two"}]
    assert "    a | b\n    --+----\n    1 | one\n    2 rows, the first 1 are shown" in ended.log
    params |= {"max_rows": 1, "on_more": "truncate"}
    truncated = ran(db, params, folder).outputs
    assert (truncated["rows"], truncated["truncated"]) == ('[{"a":1,"b":"one"}]', "true")


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.xlsx"])
def test_result_as_a_file(db: DataSource, folder: Path, name: str) -> None:
    ended = ran(db, {"sql": "select * from t", "result": "file", "file_name": name}, folder)
    assert ended.outputs["file"] == name
    assert (folder / name).stat().st_size > 10
    assert [path for path in folder.iterdir() if path.suffix == ".part"] == []


def test_secrets_in_parameters_are_not_shown(db: DataSource, folder: Path) -> None:
    secret = "s'cret\\" + "x" * 80
    ended = ran(
        db,
        {"sql": "select length(${token}) as n", "result": "row"},
        folder,
        parameters={"token": f"Bearer {secret}"},
        secrets={"TOKEN": secret},
    )
    assert ended.outputs["n"] == str(len("Bearer ") + len(secret))
    assert "token = ***" in ended.log
    assert "cret" not in ended.log.replace(secret, "")


def test_large_scripts_say_how_far_they_are(db: DataSource, folder: Path) -> None:
    ended = ran(db, {"sql": "insert into t (b) values ('x');\n" * 2_000}, folder)
    assert ended.outputs["changed_rows"] == "2000"
    progress = json.loads((folder / "progress.json").read_text())
    assert [progress[key] for key in ("done", "total", "unit")] == [2_000, 2_000, "statements"]


def test_killed_statement_ends_and_leaves_nothing(db: DataSource, folder: Path) -> None:
    sql = f"insert into t values (3, 'x'); {ENDLESS}"
    with Process(db, {"sql": sql, "after": "delete from t"}, folder) as process:
        process.until("2/3 with recursive")
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert ended.code == CANCELLED
    assert ended.reason == ""
    assert ended.settled
    assert rows(db) == [(1, "one"), (2, "two")]


def test_task_killed_while_it_reads_rows_ends(db: DataSource, folder: Path) -> None:
    sql = ENDLESS.replace("count(*)", "i")
    params = {"sql": sql, "result": "file"}
    with Process(db, params, folder) as process:
        process.until("1/1 with recursive")
        process.signal(signal.SIGTERM)
        assert process.ended().code == CANCELLED
    assert not (folder / "result.csv").exists()


def test_settling_ends_well_when_nothing_runs(db: DataSource, folder: Path) -> None:
    ended = ran(db, {"sql": "select 1"}, folder, settle=True)
    assert (ended.code, ended.settled) == (0, True)


def test_duckdb_runs_statements_and_streams_rows(tmp_path: Path, folder: Path) -> None:
    source = DataSource("duck", "duckdb", database=str(tmp_path / "d.duckdb"))
    ended = ran(
        source,
        {
            "sql": "create table t as select i, 'x;' || i as s, i / 4::decimal(9, 2) as d "
            "from range(200000) r(i); select $$a;b$$ as q; select * from t where i >= ${from}",
            "types": {"from": "integer"},
            "result": "file",
            "file_name": "r.parquet",
        },
        folder,
        parameters={"from": "50000"},
    )
    assert ended.reason == ""
    assert ended.outputs["row_count"] == "150000"


def test_unknown_column_names_are_refused_before_anything_runs(
    db: DataSource, folder: Path
) -> None:
    ended: Ended = ran(db, {"sql": "select 1; select 'a ${x} b'"}, folder, parameters={"x": "1"})
    assert ended.code == PERMANENT
    assert ended.reason.startswith("`sql`, statement 2: line 1, column 11: ${x} stands inside a")
    assert "1/2" not in ended.log


@pytest.mark.parametrize(
    ("sql", "params", "noted"),
    [
        ("insert into t values (3, 'x')", {}, True),
        ("insert into t values (3, 'x')", {"idempotent": True}, False),
        ("select 1", {"read_only": True}, False),
        ("insert into t values (1, 'x')", {}, False),  # fails before the COMMIT
        ("insert into t values (1, 'x')", {"transaction": "statement"}, True),
        ("select * frm t", {"transaction": "statement"}, False),
    ],
)
def test_what_may_be_committed_is_noted_for_when_the_process_is_killed(
    db: DataSource, folder: Path, sql: str, params: dict[str, Any], noted: bool
) -> None:
    ended = ran(db, {"sql": sql, **params}, folder)
    assert (read_not_repeatable(ended.folder) is not None) is noted
