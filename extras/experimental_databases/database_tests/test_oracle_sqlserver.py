"""Oracle and SQL Server: against recordings of their drivers' interfaces, not servers.

The fakes take what the real functions take, by name, and raise errors of the same shape.
"""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.drivers.failures import SqlFailed, StatementCancelled
from shoal.worker.types.sql.session import ErrorVerdict, Session

ROOM = "shoal_experimental_databases"


class FakeCursor:
    """What both drivers' cursors have."""

    def __init__(self, server: "FakeServer") -> None:
        self._server = server
        self._rows: list[tuple[Any, ...]] = []
        self.description: Any = None
        self.rowcount = -1

    def execute(self, statement: str, values: Any = None) -> None:
        self._server.heard.append((" ".join(statement.split()), values))
        answer = self._server.answer(statement, values)
        if isinstance(answer, Exception):
            raise answer
        self._rows = list(answer or [])
        if answer is not None:
            self.description = [("a", self._server.type_code, None, None, None, None, None)]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def fetchone(self) -> Any:
        return next(iter(self.fetchmany(1)), None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(10**9)

    def var(self, kind: type) -> Any:
        return SimpleNamespace(getvalue=lambda: self._server.lock_answer)

    def close(self) -> None:
        pass

    def __enter__(self) -> "FakeCursor":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeConnection:
    """What both drivers' connections have."""

    def __init__(self, server: "FakeServer") -> None:
        self.server = server
        self.module = self.client_identifier = ""
        self.autocommit = False

    def cursor(self) -> FakeCursor:
        return FakeCursor(self.server)

    def _note(self, what: str) -> None:
        self.server.heard.append((what, self.autocommit))

    def commit(self) -> None:
        self._note("commit")

    def rollback(self) -> None:
        self._note("rollback")

    def cancel(self) -> None:
        self._note("cancel")

    def close(self) -> None:
        self._note("close")

    def is_healthy(self) -> bool:
        return True


class FakeServer:
    """What is said to the database, and what it answers."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.answers: dict[str, Any] = {"SELECT a": [(1,), (2,)]}
        self.lock_answer = 0
        self.type_code: Any = SimpleNamespace(name="DB_TYPE_NUMBER")
        self.connected: dict[str, Any] = {}
        self.refusal: Exception | None = None

    def answer(self, statement: str, values: Any) -> Any:
        for part, answer in self.answers.items():
            if part in statement:
                return answer(values) if callable(answer) else answer
        return None

    def connect(self, **given: Any) -> FakeConnection:
        self.connected = given
        if self.refusal is not None:
            raise self.refusal
        return FakeConnection(self)

    @property
    def said(self) -> list[str]:
        return [text for text, _ in self.heard]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def module(name: str, **attributes: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(attributes)
    return made


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return what installs fake libraries for one of our modules."""
    ours: list[str] = []

    def installed(own: str, *libraries: ModuleType) -> ModuleType:
        for library in libraries:
            monkeypatch.setitem(sys.modules, library.__name__, library)
        ours.append(f"{ROOM}.{own}")
        sys.modules.pop(ours[-1], None)
        return importlib.import_module(ours[-1])

    yield installed
    for name in ours:
        sys.modules.pop(name, None)


def opened(source: DataSource, **changed: Any) -> Session:
    options: dict[str, Any] = {"read_only": False, "statement_timeout_s": None, **changed}
    return drivers.connect(source, tag="tag", attempt=2, log=lambda text: None, **options)


# -- Oracle ---------------------------------------------------------------------------------------

ORACLE = DataSource("o", "oracle", "db", None, "service", "etl", {}, "secret")
ORACLE_TAKES = {
    "host", "port", "service_name", "user", "password", "tcp_connect_timeout", "retry_count",
    "expire_time", "protocol", "ssl_context", "ssl_server_dn_match",
}  # fmt: skip


class OracleError(Exception):
    """As oracledb.DatabaseError: its argument has code, message and more."""

    def __init__(self, code: int, *, isrecoverable: bool = False) -> None:
        super().__init__(
            SimpleNamespace(
                code=code,
                full_code=f"ORA-{code:05}",
                message=f"ORA-{code:05}: said",
                isrecoverable=isrecoverable,
            )
        )


@pytest.fixture
def oracle(install: Any, server: FakeServer) -> FakeServer:
    def connect(**given: Any) -> FakeConnection:
        assert given.keys() <= ORACLE_TAKES
        return server.connect(**given)

    install(
        "oracle",
        module("oracledb", connect=connect, Error=OracleError, DatabaseError=OracleError),
    )
    return server


def test_oracle_statements_and_transactions(oracle: FakeServer) -> None:
    session = opened(ORACLE)
    assert (oracle.connected["port"], oracle.connected["service_name"]) == (1521, "service")
    text, values = oracle.heard[0]
    assert "DBMS_LOCK.REQUEST" in text
    assert values["name"] == "shoal.tag"
    found = session.execute("SELECT a FROM t WHERE b = :1", ["x"])
    assert [column.type_name for column in found.columns] == ["number"]
    assert list(found) == [(1,), (2,)]
    assert oracle.heard[-1] == ("SELECT a FROM t WHERE b = :1", ["x"])
    session.begin()
    session.execute("UPDATE t SET a = 1").close()
    session.commit()
    session.begin()
    session.rollback()
    assert oracle.heard[-2:] == [("commit", False), ("rollback", False)]
    assert session.implicit_commit("create table t (i int)")
    assert not session.implicit_commit("insert into t values (1)")
    assert (session.placeholder(0, "text"), session.quote("s.t")) == (":1", '"s"."t"')
    session.close()


def test_oracle_locks(oracle: FakeServer) -> None:
    oracle.lock_answer = 1
    with pytest.raises(WorkFailed, match="ALTER SYSTEM KILL SESSION"):
        opened(ORACLE)
    with pytest.raises(WorkFailed, match="still at the server"):
        drivers.settle(ORACLE, tag="tag", attempt=1)
    oracle.answers = {"DBMS_LOCK": OracleError(6550)}
    with pytest.raises(WorkFailed, match="EXECUTE on DBMS_LOCK") as failed:
        opened(ORACLE)
    assert failed.value.permanent


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (OracleError(942), ErrorVerdict.PERMANENT),
        (OracleError(60), ErrorVerdict.RETRY),
        (OracleError(3113), ErrorVerdict.AMBIGUOUS),
        (OracleError(99999, isrecoverable=True), ErrorVerdict.RETRY),
    ],
)
def test_oracle_errors(oracle: FakeServer, error: Exception, verdict: ErrorVerdict) -> None:
    session = opened(ORACLE)
    oracle.answers = {"INSERT": error}
    with pytest.raises(SqlFailed, match="said") as failed:
        session.execute("INSERT INTO t VALUES (1)")
    assert drivers.classify(failed.value) is verdict


def test_oracle_refuses(oracle: FakeServer) -> None:
    for code, permanent in ((1017, True), (12541, False)):
        oracle.refusal = OracleError(code)
        with pytest.raises(WorkFailed, match=r"data source 'o'") as failed:
            opened(ORACLE)
        assert failed.value.permanent is permanent


def test_oracle_is_cancelled(oracle: FakeServer) -> None:
    session = opened(ORACLE)

    def cancelled(values: Any) -> Exception:
        session.cancel()
        return OracleError(1013)

    oracle.answers = {"SELECT": cancelled}
    with pytest.raises(StatementCancelled):
        session.execute("SELECT 1 FROM dual")
    assert "cancel" in oracle.said
    with pytest.raises(StatementCancelled):
        session.commit()


# -- SQL Server -----------------------------------------------------------------------------------

SQLSERVER = DataSource("m", "sqlserver", "127.0.0.1", 1, "db", "etl", {}, "secret")
PYTDS_TAKES = {
    "dsn", "port", "database", "user", "password", "appname", "login_timeout", "autocommit",
    "cafile", "validate_host", "sock", "disable_connect_retry",
}  # fmt: skip


class TdsError(Exception):
    """As pytds.DatabaseError."""

    def __init__(self, number: int, text: str = "said") -> None:
        super().__init__(text)
        self.number = self.msg_no = number
        self.text = text


@pytest.fixture
def sqlserver(install: Any, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    def connect(**given: Any) -> FakeConnection:
        assert given.keys() <= PYTDS_TAKES
        return server.connect(**given)

    own = install("sqlserver", module("pytds", connect=connect, Error=TdsError))
    socket = SimpleNamespace(shutdown=lambda how: server.heard.append(("shutdown", how)))
    monkeypatch.setattr(own.socket, "create_connection", lambda address, timeout: socket)
    server.answers["sp_getapplock"] = lambda values: [(server.lock_answer,)]
    server.type_code = 3
    return server


def test_sqlserver_statements_and_transactions(sqlserver: FakeServer) -> None:
    session = opened(SQLSERVER)
    assert sqlserver.connected["appname"] == "tag/2"
    assert sqlserver.connected["validate_host"] is True
    assert sqlserver.heard[0][1] == ("shoal.tag", 60_000)
    assert list(session.execute("SELECT a FROM t WHERE b = %s", [1])) == [(1,), (2,)]
    session.begin()
    session.commit()
    session.begin()
    session.rollback()
    assert sqlserver.said[-4:] == [
        "BEGIN TRANSACTION",
        "COMMIT TRANSACTION",
        "BEGIN TRANSACTION",
        "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION",
    ]
    session.terminate()
    assert sqlserver.heard[-1] == ("shutdown", 2)
    with pytest.raises(StatementCancelled):
        session.execute("SELECT a")


def test_sqlserver_certificate(
    sqlserver: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened(replace(SQLSERVER, options={"ca_certificate": "PEM"}))
    assert Path(sqlserver.connected["cafile"]).read_text() == "PEM"
    opened(replace(SQLSERVER, options={"tls": "disable"}))
    assert sqlserver.connected["cafile"] is None


def test_sqlserver_lock_that_does_not_come(sqlserver: FakeServer) -> None:
    sqlserver.lock_answer = -1
    with pytest.raises(WorkFailed, match=r"sys\.dm_exec_sessions"):
        opened(SQLSERVER)
    with pytest.raises(WorkFailed, match="still at the server"):
        drivers.settle(SQLSERVER, tag="tag", attempt=1)


def test_sqlserver_has_no_read_only_sessions(sqlserver: FakeServer) -> None:
    with pytest.raises(WorkFailed, match="who may only read"):
        opened(SQLSERVER, read_only=True)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (TdsError(208), ErrorVerdict.PERMANENT),
        (TdsError(1205), ErrorVerdict.RETRY),
        (TdsError(0, "closed"), ErrorVerdict.AMBIGUOUS),
        (ConnectionResetError("reset"), ErrorVerdict.AMBIGUOUS),
    ],
)
def test_sqlserver_errors(sqlserver: FakeServer, error: Exception, verdict: ErrorVerdict) -> None:
    session = opened(SQLSERVER)
    sqlserver.answers = {"INSERT": error}
    with pytest.raises(SqlFailed) as failed:
        session.execute("INSERT INTO t VALUES (1)")
    assert drivers.classify(failed.value) is verdict
