"""SQL tasks on a MariaDB server: DELIMITER, statements that commit by themselves, kills."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from shoal.worker.types.child.outcome import CANCELLED, PERMANENT
from tests.integration.drivers.servers import Served
from tests.integration.worker.sql.kit import Process, ran, until

MARK = "/* of the task */"


class Server:
    """The server as its administrator sees it."""

    def __init__(self, connection: "pymysql.Connection[Any]") -> None:
        self._connection = connection

    def rows(self, query: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    @property
    def running(self) -> int:
        mine = "id <> connection_id()"
        query = "select count(*) from information_schema.processlist where info like '%{}%' and {}"
        count: int = self.rows(query.format(MARK, mine))[0][0]
        return count


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "attempt"


@pytest.fixture
def server(mariadb: Served) -> Iterator[Server]:
    source = mariadb.source
    connection = pymysql.connect(
        host=source.host,
        port=source.port or 0,
        user=source.user,
        password=source.password.encode(),
        database=source.database,
        autocommit=True,
    )
    server = Server(connection)
    for what in ("table if exists t", "table if exists u", "procedure if exists p"):
        server.rows(f"drop {what}")
    server.rows("create table t (i int primary key, s varchar(100)) engine = innodb")
    yield server
    connection.close()


def test_values_are_values(mariadb: Served, server: Server, folder: Path) -> None:
    evil = "it's; \\' \" 100 % ${x} drop table t -- 日本"
    ended = ran(
        mariadb.source,
        {
            "sql": "insert into ${t} values (${i}, '${s}'), (2, 'a%b\\'c;'); # it's\n"
            'select s, "${i}" as n from t where s = ${s} and i % 2 = 1 /* ${s} */',
            "identifiers": {"t": "warehouse.t"},
            "result": "row",
        },
        folder,
        parameters={"i": "7", "s": evil},
    )
    assert ended.reason == ""
    assert (ended.outputs["s"], ended.outputs["n"]) == (evil, "7")
    assert server.rows("select s from t order by i") == [("a%b'c;",), (evil,)]


def test_procedures_are_made_and_called(mariadb: Served, server: Server, folder: Path) -> None:
    sql = """DELIMITER //
create procedure p(n int)
  if n > 1 then select n as first; update t set s = 'x;'; select 'second'; end if//
DELIMITER ;
insert into t values (1, 'a');
call p(${n});"""
    ended = ran(mariadb.source, {"sql": sql, "result": "row"}, folder, parameters={"n": "5"})
    assert ended.reason == ""
    assert ended.outputs["first"] == "5"
    assert "commits around this statement" in ended.log
    assert "    second\n" in ended.log
    assert server.rows("select s from t") == [("x;",)]
    again = sql.replace("DELIMITER //\n", "").replace("end if//\nDELIMITER ;", "end if;")
    refused = ran(mariadb.source, {"sql": again}, folder, parameters={"n": "5"})
    assert "THEN in a body without BEGIN" in refused.reason
    assert "write `separator`" in refused.reason


def test_what_came_before_an_implicit_commit_stays(
    mariadb: Served, server: Server, folder: Path
) -> None:
    sql = (
        "insert into t values (1, 'a'); create table u (i int); insert into t values (2, 'b'); "
        "insert into nobody values (1)"
    )
    ended = ran(mariadb.source, {"sql": sql}, folder)
    assert ended.code == PERMANENT
    assert "nobody" in ended.reason
    assert server.rows("select i from t") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        f"select sleep(1000) {MARK}",
        f"select benchmark(100000000000, md5('x')) {MARK}",
        f"update t set s = sleep(1000) {MARK}",
    ],
)
def test_kill_ends_what_runs_at_the_server(
    mariadb: Served, server: Server, folder: Path, statement: str
) -> None:
    server.rows("insert into t values (9, 'x')")
    params = {"sql": f"insert into t values (1, 'a'); {statement}"}
    with Process(mariadb.source, params, folder) as process:
        until(lambda: server.running > 0)
        process.signal(signal.SIGTERM)
        assert process.ended().code == CANCELLED
    until(lambda: server.running == 0)
    assert server.rows("select i from t") == [(9,)]


def test_settling_ends_what_a_dead_process_has_left(
    mariadb: Served, server: Server, folder: Path
) -> None:
    params = {"sql": f"select benchmark(100000000000, md5('x')) {MARK}"}
    with Process(mariadb.source, params, folder) as process:
        until(lambda: server.running > 0)
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
        ended = ran(mariadb.source, params, folder, settle=True)
    assert (ended.code, ended.settled) == (0, True)
    assert server.running == 0
