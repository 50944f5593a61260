"""ClickHouse: the real library against a recording of the HTTP interface, not a server.

What the recording answers is as ClickHouse's documentation has it: tab-separated values, blocks of
the format Native, errors with their code and name.
"""

import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.drivers.failures import SqlFailed, StatementCancelled
from shoal.worker.types.sql.session import ErrorVerdict, Session


@dataclass(frozen=True)
class Heard:
    """One request: the statement, and what its address says beside it."""

    statement: str
    settings: dict[str, str]


@dataclass
class Recording:
    """What was asked, and what is answered to statements that hold a text."""

    heard: list[Heard] = field(default_factory=list)
    answers: dict[str, Callable[[Heard], bytes]] = field(default_factory=dict)
    port: int = 0
    headers: dict[str, str] = field(default_factory=dict)  # of the last request

    def answer(self, one: Heard) -> bytes:
        self.heard.append(one)
        for text, make in self.answers.items():
            if text in one.statement:
                return make(one)
        if "version()" in one.statement:
            return b"25.3.1.1\tUTC\n"
        return b"0\n" if "system.processes" in one.statement else b""

    @property
    def source(self) -> DataSource:
        return DataSource(
            "ch", "clickhouse", "127.0.0.1", self.port, "sales", "etl", password="secret"
        )

    def of(self, text: str) -> list[Heard]:
        """Return the requests whose statements hold a text."""
        return [one for one in self.heard if text in one.statement]


class ServerError(Exception):
    """What the server refuses a statement with."""

    def __init__(self, code: int, name: str) -> None:
        self.code, self.name = code, name
        super().__init__(f"Code: {code}. DB::Exception: said so. ({name}) (version 25.3.1.1)")


def refused(code: int, name: str) -> Callable[[Heard], bytes]:
    def refuse(_: Heard) -> bytes:
        raise ServerError(code, name)

    return refuse


@pytest.fixture
def server() -> Iterator[Recording]:
    recording = Recording()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            statement = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            query = urllib.parse.urlsplit(self.path).query
            settings = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            recording.headers = dict(self.headers)
            try:
                status, body = 200, recording.answer(Heard(statement, settings))
            except ServerError as error:
                status, body = 500, str(error).encode()
                self.error = error
            self.send_response(status)
            if status != 200:
                self.send_header("X-ClickHouse-Exception-Code", str(self.error.code))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        recording.port = http.server_port
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield recording
        http.shutdown()
        thread.join()


def opened(server: Recording, *, read_only: bool = False) -> Session:
    return drivers.connect(
        server.source,
        tag="tag",
        attempt=2,
        log=lambda _: None,
        read_only=read_only,
        statement_timeout_s=None,
    )


def block(name: str, *texts: str) -> bytes:
    """Return a block of one column of texts; all of it is shorter than 128."""
    values = b"".join(bytes([len(one)]) + one.encode() for one in texts)
    head = bytes([1, len(texts), len(name)]) + name.encode()
    return head + bytes([6]) + b"String" + values


def test_recorded_values_travel_beside_the_statement(server: Recording) -> None:
    session = opened(server)
    statement = f"INSERT INTO t VALUES ({session.placeholder(0, 'text')})"
    session.execute(statement, ["it's\t\\ \n${x}"]).close()
    (one,) = server.of("INSERT")
    assert one.statement == "INSERT INTO t VALUES ({p0:String})"
    assert one.settings["param_p0"] == "it\\'s\\\t\\\\ \\\n${x}"
    assert one.settings["database"] == "sales"
    assert one.settings["query_id"] == "tag/2/1"
    assert "readonly" not in one.settings
    assert server.headers["Authorization"] == "Basic ZXRsOnNlY3JldA=="
    assert "os_user" not in server.headers["User-Agent"]
    types = {"integer": "Int64", "decimal": "Decimal(38, 18)", "time": "String"}
    for name, expected in types.items():
        assert session.placeholder(1, name) == f"{{p1:{expected}}}"
    assert session.quote("a.b`c") == "`a`.`b``c`"
    assert session.implicit_commit("INSERT INTO t SELECT 1")
    assert not session.implicit_commit("-- x\nSELECT 1")
    session.close()


def test_recorded_rows_are_streamed_with_names_and_types(server: Recording) -> None:
    server.answers["FROM t"] = lambda _: block("city", "Paris", "Oslo") + block("city", "Bern")
    session = opened(server)
    result = session.execute("SELECT city FROM t")
    assert [(one.name, one.type_name) for one in result.columns] == [("city", "String")]
    assert list(result) == [("Paris",), ("Oslo",), ("Bern",)]
    session.close()


def test_recorded_read_only_session_is_the_servers(server: Recording) -> None:
    session = opened(server, read_only=True)
    session.execute("INSERT INTO t VALUES (1)").close()
    assert server.of("INSERT")[0].settings["readonly"] == "2"
    session.close()


@pytest.mark.parametrize(
    ("code", "name", "verdict"),
    [
        (62, "SYNTAX_ERROR", ErrorVerdict.PERMANENT),
        (241, "MEMORY_LIMIT_EXCEEDED", ErrorVerdict.RETRY),
        (394, "QUERY_WAS_CANCELLED", ErrorVerdict.RETRY),
    ],
)
def test_recorded_errors(server: Recording, code: int, name: str, verdict: ErrorVerdict) -> None:
    server.answers["INSERT"] = refused(code, name)
    session = opened(server)
    with pytest.raises(SqlFailed) as failed:
        session.execute("INSERT INTO t VALUES (1)")
    assert drivers.classify(failed.value) is verdict
    assert str(failed.value).startswith("said so.")
    assert "HTTPDriver" not in str(failed.value)
    session.close()


def test_recorded_answer_that_breaks_off_may_have_changed_something(server: Recording) -> None:
    session = opened(server)

    def gone(_: Heard) -> bytes:
        raise ConnectionResetError

    server.answers["INSERT"] = gone
    with pytest.raises(SqlFailed) as failed:
        session.execute("INSERT INTO t VALUES (1)")
    assert drivers.classify(failed.value) is ErrorVerdict.AMBIGUOUS
    session.close()


def test_recorded_settling_ends_what_carries_the_tag_and_waits_for_it(server: Recording) -> None:
    left = [b"2\n", b"1\n", b"0\n"]
    server.answers["system.processes"] = lambda _: left.pop(0)
    drivers.settle(server.source, tag="tag", attempt=2)
    kills = server.of("KILL QUERY")
    assert len(kills) == 2
    assert {one.settings["param_prefix"] for one in kills} == {"tag/"}
    assert all("user = currentUser() AND startsWith(query_id" in one.statement for one in kills)
    assert left == []


def test_recorded_cancellation_kills_the_queries_of_the_attempt(server: Recording) -> None:
    session = opened(server)

    def cancelled(_: Heard) -> bytes:
        session.cancel()
        raise ServerError(394, "QUERY_WAS_CANCELLED")

    server.answers["SELECT slow"] = cancelled
    with pytest.raises(StatementCancelled):
        session.execute("SELECT slow")
    assert {one.settings["param_prefix"] for one in server.of("KILL QUERY")} == {"tag/2/"}
    session.close()


@pytest.mark.parametrize(
    ("code", "name", "words", "permanent"),
    [
        (516, "AUTHENTICATION_FAILED", "refuses this user or password", True),
        (81, "UNKNOWN_DATABASE", "said so", True),
        (210, "NETWORK_ERROR", "said so", False),
    ],
)
def test_recorded_signing_in_says_what_is_wrong(
    server: Recording, code: int, name: str, words: str, permanent: bool
) -> None:
    server.answers["version()"] = refused(code, name)
    with pytest.raises(WorkFailed, match=words) as failed:
        opened(server)
    assert failed.value.permanent is permanent
    assert "secret" not in str(failed.value)


def test_nobody_there(server: Recording) -> None:
    source = DataSource("ch", "clickhouse", "127.0.0.1", 1)
    with pytest.raises(WorkFailed, match="no server answers there") as failed:
        drivers.settle(source, tag="tag", attempt=1)
    assert not failed.value.permanent
