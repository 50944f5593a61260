"""SQL tasks through a worker: outputs reach the master, failures say why, kills end statements."""

import json
import sqlite3
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    kill,
    log_text,
    the_worker,
    work_folders,
)
from tests.integration.worker.sql.kit import ENDLESS
from tests.support.fake_master import FakeMaster, Task
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "data.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table t (a integer primary key, b text)")
    connection.close()
    return file


async def submit(master: FakeMaster, database: Path, sql: str, **params: object) -> int:
    return await master.submit(
        "SQL",
        {"data_source": "db", "sql": sql, **params},
        parameters={"n": "5"},
        tag="shoal-0123",
        data_sources={"db": pb.DataSource(kind="sqlite", database=str(database))},
    )


async def ended(master: FakeMaster, number: int) -> tuple[Task, pb.Report]:
    task = await master.table.ended(number)
    assert task.report is not None
    return task, task.report


async def test_rows_become_outputs_of_the_task(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, database: Path
) -> None:
    sql = "insert into t values (1, 'x'), (${n}, 'y'); select * from t order by a"
    task, report = await ended(master, await submit(master, database, sql, result="rows"))
    assert (task.state, report.reason) == ("SUCCEEDED", "")
    assert json.loads(report.outputs["rows"]) == [{"a": 1, "b": "x"}, {"a": 5, "b": "y"}]
    assert report.outputs["changed_rows"] == "2"
    assert "1/2 insert into t values" in log_text(cluster.data, task.entry.task_instance_id)
    await eventually(lambda: work_folders(cluster.data) == [])


async def test_wrong_statement_fails_for_good_and_says_why(
    master: FakeMaster, worker: InProcessWorker, database: Path
) -> None:
    sql = "insert into t values (1, 'x'); select * frm t"
    task, report = await ended(master, await submit(master, database, sql))
    assert task.state == "FAILED"
    assert report.exit_code == 65
    assert report.reason.startswith('statement 2/2 (select * frm t): near "frm": syntax error')
    connection = sqlite3.connect(database)
    assert connection.execute("select count(*) from t").fetchone() == (0,)
    connection.close()


async def test_missing_database_is_explained(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    number = await submit(master, tmp_path / "nowhere" / "x.db", "select 1")
    task, report = await ended(master, number)
    assert task.state == "FAILED"
    assert "nowhere" in report.reason


async def test_killed_statement_is_rolled_back(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    cluster: ClusterSettings,
    database: Path,
) -> None:
    number = await submit(master, database, f"insert into t values (1, 'x'); {ENDLESS}")
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: "2/2 with" in log_text(cluster.data, number))
    await kill(channels, await the_worker(master.session), number)
    task, report = await ended(master, number)
    assert (task.state, report.reason) == ("KILLED", "stopped by alice")
    connection = sqlite3.connect(database)
    assert connection.execute("select count(*) from t").fetchone() == (0,)
    connection.close()
