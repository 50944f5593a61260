"""What a SQL task does with what a session says: retries, implicit commits, sets of rows, kills.

The session is scripted, for what real databases do only when something breaks.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed, is_settled
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.child.work import Cancelled, Work
from shoal.worker.types.sql import cancellation, run
from shoal.worker.types.sql.drivers.failures import SqlFailed, StatementTimedOut
from shoal.worker.types.sql.session import Column, ErrorVerdict
from shoal.worker.types.sql.sql import SqlParams

DEADLINE_S = 60.0


class DatabaseError(SqlFailed):
    def __init__(self, verdict: ErrorVerdict, text: str = "broken") -> None:
        super().__init__(text, verdict)


@dataclass
class Rows:
    """Sets of rows, each of one column; a number is a count of changed rows instead."""

    sets: list[list[Any] | int]

    @property
    def columns(self) -> Sequence[Column]:
        return [Column("a", "")] if isinstance(self.sets[0], list) else []

    @property
    def row_count(self) -> int | None:
        return self.sets[0] if isinstance(self.sets[0], int) else None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        assert isinstance(self.sets[0], list)
        return iter([(value,) for value in self.sets[0]])

    def next_set(self) -> bool:
        del self.sets[0]
        return bool(self.sets)

    def close(self) -> None:
        pass


@dataclass
class ScriptedSession:
    """Answers statements by what ``script`` has for them, and notes what it is asked."""

    script: Mapping[str, Any]
    asked: list[str] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)
    terminated: threading.Event = field(default_factory=threading.Event)

    @staticmethod
    def placeholder(number: int, type_name: str) -> str:
        return "?"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        self.asked.append(statement)
        return Rows(list(self._answer(statement, [1])))

    def _answer(self, what: str, usual: Any) -> Any:
        answer = self.script.get(what, usual)
        if isinstance(answer, Exception):
            raise answer
        return answer(self) if callable(answer) else answer

    def begin(self) -> None:
        self.asked.append("BEGIN")

    def commit(self) -> None:
        self.asked.append("COMMIT")
        self._answer("COMMIT", None)

    def rollback(self) -> None:
        self.asked.append("ROLLBACK")
        self._answer("ROLLBACK", None)

    def quote(self, identifier: str) -> str:
        return f'"{identifier}"'

    def implicit_commit(self, statement: str) -> bool:
        return statement.startswith("create")

    def cancel(self) -> None:
        self.asked.append("cancel")
        self.cancelled.set()

    def terminate(self) -> None:
        self.asked.append("terminate")
        self.terminated.set()

    def close(self) -> None:
        self.asked.append("close")


@dataclass
class Ran:
    session: ScriptedSession
    work: Work[SqlParams]
    failure: WorkFailed | None
    outputs: dict[str, str]

    @property
    def text(self) -> str:
        return str(self.failure)

    @property
    def permanent(self) -> bool:
        assert self.failure is not None
        return self.failure.permanent


class Site:
    """Where tasks are run on scripted sessions."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.session: ScriptedSession
        monkeypatch.setenv("SHOAL_OUTPUT", str(folder / "output"))

    def work(self, sql: str, **params: Any) -> Work[SqlParams]:
        given = SqlParams.model_validate({"data_source": "db", "sql": sql, **params})
        source = DataSource("db", "mariadb")
        request = WorkRequest("", "", {}, {}, 1, 1, "tag", data_sources={"db": source})
        return Work(request, given, self._folder)

    def run(self, script: Mapping[str, Any], sql: str, **params: Any) -> Ran:
        return self.run_work(script, self.work(sql, **params))

    def run_work(self, script: Mapping[str, Any], work: Work[SqlParams]) -> Ran:
        self.session = session = ScriptedSession(script)

        def connect(*_: Any, **__: Any) -> Any:
            return session

        failure = None
        try:
            run.run(work, connect)
        except WorkFailed as error:
            failure = error
        output = self._folder / "output"
        outputs = json.loads(output.read_text()) if output.exists() else {}
        return Ran(session, work, failure, outputs)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def test_outputs_come_after_the_commit(site: Site) -> None:
    ran = site.run({"COMMIT": DatabaseError(ErrorVerdict.RETRY)}, "select 1; update t")
    assert ran.session.asked == ["BEGIN", "select 1", "update t", "COMMIT", "ROLLBACK", "close"]
    assert (ran.text, ran.permanent, ran.outputs) == ("COMMIT: broken", False, {})


@pytest.mark.parametrize(
    ("verdict", "fields", "permanent", "reason"),
    [
        (ErrorVerdict.PERMANENT, {}, True, "statement 1/1 (update t): broken"),
        (ErrorVerdict.RETRY, {}, False, "statement 1/1 (update t): broken"),
        (
            ErrorVerdict.AMBIGUOUS,
            {},
            True,
            "broken; the task is not tried again; write `idempotent",
        ),
        (ErrorVerdict.AMBIGUOUS, {"idempotent": True}, False, "statement 1/1 (update t): broken"),
    ],
)
def test_verdict_decides_whether_the_task_is_tried_again(
    site: Site, verdict: ErrorVerdict, fields: dict[str, Any], permanent: bool, reason: str
) -> None:
    ran = site.run({"update t": DatabaseError(verdict)}, "update t", **fields)
    assert reason in ran.text
    assert ran.permanent is permanent


@pytest.mark.parametrize(
    ("sql", "fields", "kept"),
    [
        ("insert a; select 1; broken", {}, 0),
        ("insert a; select 1; broken", {"transaction": "statement"}, 1),
        ("select 1; broken", {"transaction": "statement"}, 0),
        ("insert a; create b; broken", {}, 2),
        ("insert a; insert b; broken", {"transaction": "statement", "idempotent": True}, 0),
    ],
)
def test_what_is_committed_already_is_not_done_again(
    site: Site, sql: str, fields: dict[str, Any], kept: int
) -> None:
    ran = site.run({"broken": DatabaseError(ErrorVerdict.RETRY, "deadlock")}, sql, **fields)
    assert ran.permanent is (kept > 0)
    assert ("committed already" in ran.text) is (kept > 0)
    if kept:
        assert f"{kept} statement{'s are' if kept > 1 else ' is'} committed" in ran.text


def test_transaction_goes_on_behind_an_implicit_commit(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = site.run({}, "insert a; create b; insert c")
    assert ran.session.asked[:6] == [
        *("BEGIN", "insert a", "create b", "BEGIN", "insert c", "COMMIT"),
    ]
    assert "commits around this statement" in capsys.readouterr().out


def test_first_set_of_rows_is_the_result(site: Site) -> None:
    ran = site.run({"call p()": [3, [7], [8, 9], 4]}, "call p()", result="value")
    assert ran.outputs == {"row_count": "1", "changed_rows": "7", "value": "7"}


def test_result_of_an_earlier_statement_is_none(site: Site) -> None:
    ran = site.run({"select 1": [[1]]}, "select 1; update t", result="value")
    assert "the last statement returns none" in ran.text
    assert ran.session.asked[-2:] == ["ROLLBACK", "close"]


@pytest.mark.parametrize(
    ("answer", "rollback", "settled"),
    [
        (DatabaseError(ErrorVerdict.PERMANENT), DatabaseError(ErrorVerdict.RETRY), True),
        (StatementTimedOut(1.0), DatabaseError(ErrorVerdict.RETRY), True),
        (DatabaseError(ErrorVerdict.RETRY), None, False),  # the connection may be lost
        (DatabaseError(ErrorVerdict.AMBIGUOUS), None, False),
        ([[1, 2]], None, True),  # more rows than wanted
        ([[1, 2]], DatabaseError(ErrorVerdict.RETRY), False),
    ],
)
def test_attempt_is_settled_only_when_nothing_can_run_any_more(
    site: Site, tmp_path: Path, answer: Any, rollback: Exception | None, settled: bool
) -> None:
    ran = site.run({"select 1": answer, "ROLLBACK": rollback}, "select 1", result="value")
    assert ran.failure is not None
    assert is_settled(tmp_path) is settled


def test_refused_connection_needs_no_settling(site: Site, tmp_path: Path) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise WorkFailed("connection refused")

    with pytest.raises(WorkFailed, match="connection refused"):
        run.run(site.work("select 1"), refuse)
    assert is_settled(tmp_path)


def test_statement_that_ignores_its_cancellation_loses_its_connection(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellation, "PATIENCE_S", 0.6)
    lost = DatabaseError(ErrorVerdict.RETRY, "connection lost")

    def deaf(session: ScriptedSession) -> Any:
        threading.Thread(target=work.cancel).start()
        assert session.terminated.wait(DEADLINE_S)
        raise lost

    work = site.work("update t", after="insert a")
    ran = site.run_work({"update t": deaf, "ROLLBACK": lost}, work)
    assert ran.text == "connection lost"
    asked = ran.session.asked
    assert asked.count("cancel") >= 2
    assert asked.index("terminate") > asked.index("cancel")
    assert "insert a" not in asked
    assert not is_settled(tmp_path)


def test_cancelled_task_begins_no_further_statement(site: Site) -> None:
    def cancel(session: ScriptedSession) -> Any:
        threading.Thread(target=work.cancel).start()
        assert session.cancelled.wait(DEADLINE_S)
        return [1]

    work = site.work("update t; update u")
    with pytest.raises(Cancelled):
        site.run_work({"update t": cancel}, work)
    asked = [each for each in site.session.asked if each != "cancel"]
    assert asked == ["BEGIN", "update t", "ROLLBACK", "close"]
