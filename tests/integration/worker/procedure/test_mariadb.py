"""PROCEDURE on a real MariaDB, in processes of its own."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.procedure.kind import Procedure
from tests.integration.drivers.kit import wait_until
from tests.integration.drivers.servers import Served
from tests.integration.worker.sql.kit import Ended, Process, ran

ROUTINES = (
    "CREATE DATABASE IF NOT EXISTS sales",
    "CREATE TABLE IF NOT EXISTS sales.days (day date, total decimal(10,2))",
    "CREATE OR REPLACE PROCEDURE sales.close_day"
    "(day date, INOUT total decimal(10,2), OUT note text, fee decimal(10,2)) "
    "BEGIN INSERT INTO sales.days VALUES (day, total); SELECT day AS d; "
    "SELECT 1 AS a, 'x' AS b UNION SELECT 2, 'y'; "
    "SET total = total + fee, note = 'closed'; END",
    "CREATE OR REPLACE FUNCTION sales.plus(a int, b int) RETURNS int DETERMINISTIC RETURN a + b",
    "CREATE OR REPLACE PROCEDURE sales.failing(i int) BEGIN "
    "INSERT INTO sales.days VALUES (now(), 1); "
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today'; END",
    "CREATE OR REPLACE PROCEDURE sales.endless() SQL SECURITY INVOKER SELECT sleep(1000)",
    "CREATE OR REPLACE PROCEDURE sales.as_root() SELECT sleep(1000)",
    "GRANT EXECUTE ON sales.* TO etl@'127.0.0.1'",
)


@pytest.fixture(scope="module")
def server(mariadb: Served) -> Served:
    for statement in ROUTINES:
        mariadb.asked(statement)
    return mariadb


def called(server: Served, folder: Path, name: str, **params: Any) -> Ended:
    return ran(server.source, {"name": name, **params}, folder, kind=Procedure)


def total(server: Served) -> int:
    return int(server.asked("SELECT count(*) FROM sales.days")[0][0])


def test_procedure_with_modes_and_sets(server: Served, tmp_path: Path) -> None:
    before = total(server)
    arguments = {"day": "2026-02-03", "total": 10.5, "fee": "1"}
    ended = called(server, tmp_path / "a", "sales.close_day", arguments=arguments)
    assert ended.code == 0, ended.log
    assert (ended.outputs["total"], ended.outputs["note"]) == ("11.50", "closed")
    assert json.loads(ended.outputs["rows"]) == [{"d": "2026-02-03"}]
    assert json.loads(ended.outputs["rows_2"]) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert "OUT note text" in ended.log
    assert ended.settled
    assert total(server) == before + 1


def test_function(server: Served, tmp_path: Path) -> None:
    ended = called(server, tmp_path / "a", "sales.plus", arguments={"a": 1, "b": 2})
    assert (ended.code, ended.outputs) == (0, {"return_value": "3"}), ended.log


def test_failure_rolls_back(server: Served, tmp_path: Path) -> None:
    before = total(server)
    ended = called(server, tmp_path / "a", "sales.failing", arguments={"i": 1})
    assert ended.code == 65
    assert "not today" in ended.reason
    assert total(server) == before


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("sales.nowhere", {}, "there is no procedure or function 'sales.nowhere'"),
        ("sales.plus", {"a": 1}, "it needs b. There is:\n  function sales.plus(a int"),
        ("sales.plus", {"a": 1, "b": 2, "c": 3}, "it has no c"),
    ],
)
def test_mistakes(
    server: Served, tmp_path: Path, name: str, arguments: dict[str, Any], said: str
) -> None:
    ended = called(server, tmp_path / "a", name, arguments=arguments)
    assert ended.code == 65
    assert said in ended.reason
    assert ended.settled


BUSY = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'"


def test_killed(server: Served, tmp_path: Path) -> None:
    params = {"name": "sales.endless"}
    with Process(server.source, params, tmp_path / "a", kind=Procedure) as process:
        wait_until(lambda: server.asked(BUSY))
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert ended.code == 143
    assert not server.asked(BUSY)


def test_routine_with_the_rights_of_another_user(server: Served, tmp_path: Path) -> None:
    params = {"name": "sales.as_root"}
    with Process(server.source, params, tmp_path / "a", kind=Procedure) as process:
        wait_until(lambda: server.asked(BUSY))
        process.signal(signal.SIGTERM)
        process.until("Grant CONNECTION ADMIN")
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    ended = ran(server.source, params, tmp_path / "b", kind=Procedure, settle=True)
    assert (ended.code, ended.settled) == (1, False)  # it is not sure, and says so
    assert "definer of a routine" in ended.reason
    ended = ran(server.source, params, tmp_path / "c", kind=Procedure, attempt=2)
    assert ended.code == 1  # nothing is begun beside it
    server.asked("GRANT CONNECTION ADMIN ON *.* TO etl@'127.0.0.1'")
    ended = ran(server.source, params, tmp_path / "d", kind=Procedure, settle=True)
    assert (ended.code, ended.settled) == (0, True)
    assert not server.asked(BUSY)
    server.asked("REVOKE CONNECTION ADMIN ON *.* FROM etl@'127.0.0.1'")


def test_other_kinds_of_data_sources(tmp_path: Path) -> None:
    source = DataSource("file", "sqlite", database=":memory:")
    ended = ran(source, {"name": "f"}, tmp_path / "a", kind=Procedure)
    assert ended.code == 65
    assert "PROCEDURE cannot use the kind 'sqlite'" in ended.reason
