"""``shoal logs -f`` of attempts that are lost: it says what comes instead."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.client.conftest import Shoal
from tests.integration.client.scripted_server import (
    Answer,
    Request,
    ScriptedServer,
    scripted_server,
    stream,
)


def attempt(number: int, state: str, **fields: Any) -> dict[str, Any]:
    """The ``number``th attempt of the task "load" in instance 7; its id is 10 + number."""
    return {
        "id": 10 + number,
        "workflow_instance_id": 7,
        "task": "load",
        "type": "SHELL",
        "attempt": number,
        "state": state,
        "worker_group": "default",
        "worker": "w-1-abcdef01",
        "reason": None,
        "exit_code": None,
        "queued_at": None,
        "started_at": "2026-03-01T06:00:00Z",
        "finished_at": None,
        **fields,
    }


LOST = attempt(1, "LOST", reason="worker w-1-abcdef01 is gone", finished_at="2026-03-01T06:00:09Z")
WORDS = 'id: 4\nevent: log\ndata: {"offset": 0, "data": "one "}\n\n'
BROKEN = 'event: problem\ndata: {"detail": "worker w-1-abcdef01 is not in the cluster"}\n\n'
END = "event: end\ndata: {}\n\n"


@pytest.fixture
def server(shoal: Shoal, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        monkeypatch.setenv("SHOAL_URL", server.url)
        monkeypatch.setenv("SHOAL_TOKEN", "secret")
        yield server


def answer_with(server: ScriptedServer, log: str, looks: list[Any], instance: Any) -> None:
    """Answer the log with ``log`` and the attempt with ``looks`` in turn, the last for ever."""

    def answer(request: Request) -> Answer:
        if request.path.endswith("/log/follow"):
            return stream(log)
        if request.path.endswith("/instances/7"):
            return Answer(200, instance)
        return Answer(200, looks.pop(0) if len(looks) > 1 else looks[0])

    server.answer = answer


def test_log_of_a_lost_attempt_names_the_attempt_that_follows(
    shoal: Shoal, server: ScriptedServer
) -> None:
    """Its worker lives and has the whole log; the loss is noticed a little later."""
    running = attempt(1, "RUNNING")
    instance = {"id": 7, "state": "RUNNING", "tasks": [LOST, attempt(2, "QUEUED")]}
    answer_with(server, WORDS + END, [running, running, running, LOST], instance)
    ended = shoal("logs", "-f", "11")
    assert (ended.status, ended.out) == (0, "one ")
    assert "load LOST: worker w-1-abcdef01 is gone" in ended.err
    assert "attempt 2 follows: shoal logs -f 12" in ended.err


def test_log_that_went_with_its_worker_is_not_waited_for(
    shoal: Shoal, server: ScriptedServer
) -> None:
    instance = {"id": 7, "state": "RUNNING", "tasks": [LOST, attempt(2, "RUNNING")]}
    answer_with(server, WORDS + BROKEN, [attempt(1, "RUNNING"), LOST], instance)
    ended = shoal("logs", "-f", "11")
    assert (ended.status != 0, ended.out) == (True, "one ")
    assert "attempt 2 follows: shoal logs -f 12" in ended.err
    assert "broke off: worker w-1-abcdef01 is not in the cluster" in ended.err


def test_last_lost_attempt_says_that_nothing_follows(shoal: Shoal, server: ScriptedServer) -> None:
    instance = {"id": 7, "state": "FAILED", "tasks": [LOST]}
    answer_with(server, WORDS + END, [LOST], instance)
    ended = shoal("logs", "-f", "11")
    assert "no further attempt was made; the instance is FAILED" in ended.err
