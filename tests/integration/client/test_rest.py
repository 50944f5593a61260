"""The REST client against a real server: routes, repetition, errors, broken streams."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.client.errors import (
    ApiProblem,
    ApiUnreachable,
    CommandRefused,
    LogBroken,
    NotEnded,
    NotFound,
    NotHandled,
)
from shoal.client.rest.client import ShoalClient
from shoal.client.sdk.tasks import Shell
from shoal.client.sdk.workflow import Workflow
from tests.integration.client.scripted_server import (
    HANG_UP,
    Answer,
    ScriptedServer,
    problem,
    scripted_server,
    stream,
)


class Hasty(ShoalClient):
    """A client that repeats without pauses."""

    stream_pauses_s = (0.001,)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[ShoalClient]:
    with Hasty(server.url, "t", hint="do something", retry_pauses_s=(0.0, 0.0, 0.0)) as client:
        yield client


SPRING = datetime(2026, 3, 1, tzinfo=UTC)


def test_the_path_of_a_file_has_the_parts_that_it_has(
    client: ShoalClient, server: ScriptedServer
) -> None:
    client.upload("p", "lib/a b/..", b'"x"', expected_version=0)
    [request] = server.requests
    assert request.path == "/api/v1/projects/p/resource-contents/lib/a%20b/%2E%2E"
    assert request.query == {"expected_version": ["0"]}
    assert request.headers["content-type"] == "application/octet-stream"


def test_filters_are_spelt_as_the_api_reads_them(
    client: ShoalClient, server: ScriptedServer
) -> None:
    server.answers(Answer(200, {"items": []}))
    found = client.pages(
        client.list_instances, state=["FAILED", "STOPPED"], since=SPRING, late=True, label=[]
    )
    assert list(found) == []
    assert server.requests[0].query == {
        "state": ["FAILED", "STOPPED"],
        "since": ["2026-03-01T00:00:00+00:00"],
        "late": ["true"],
        "limit": ["200"],
    }
    server.answers(Answer(200, {"items": []}))
    list(client.pages(client.list_past_instances, from_=SPRING.date(), limit=5))
    assert server.requests[1].query == {"from": ["2026-03-01"], "limit": ["5"]}


def test_start_sends_what_was_given_and_a_key(client: ShoalClient, server: ScriptedServer) -> None:
    client.start("p", "w", parameters={"a": "1"}, logical_time=SPRING, priority="HIGH")
    client.start("p", "w", tasks=["a"], mode="downstream", idempotency_key="mine")
    whole, some = server.requests
    assert {name: value for name, value in whole.body.items() if value} == {
        "type": "START",
        "project": "p",
        "workflow": "w",
        "parameters": {"a": "1"},
        "logical_time": "2026-03-01T00:00:00+00:00",
        "priority": "HIGH",
    }
    assert len(whole.headers["idempotency-key"]) == 36
    assert (some.body["tasks"], some.body["mode"]) == (["a"], "downstream")
    assert some.headers["idempotency-key"] == "mine"


def test_a_change_names_the_etag_of_what_was_read(
    client: ShoalClient, server: ScriptedServer
) -> None:
    server.answers(Answer(200, {"text": "a"}, headers={"ETag": '"7"'}))
    found, etag = client.with_etag(client.get_draft, "p", "w")
    assert (found["text"], etag) == ("a", '"7"')
    # Not repeated: a second try would be refused because of what the first one has saved.
    server.answers(problem(503, "database-unavailable", "busy"))
    with pytest.raises(ApiProblem, match="busy"):
        client.put_draft("p", "w", {"text": "b"}, if_match=etag)
    assert [one.headers.get("if-match") for one in server.requests] == [None, '"7"']


def test_a_workflow_of_the_sdk_is_published_as_its_definition(
    client: ShoalClient, server: ScriptedServer
) -> None:
    with Workflow("w") as w:
        Shell("a", script="true", retries=0)
    client.publish(w)
    task = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
    assert server.requests[0].path == "/api/v1/projects/default/workflows/w"
    assert server.requests[0].body == {"project": "default", "name": "w", "tasks": [task]}


def test_lists_are_fetched_page_by_page_when_wanted(
    client: ShoalClient, server: ScriptedServer
) -> None:
    server.answers(
        Answer(200, {"items": [{"id": 3}, {"id": 2}], "next": "c1"}),
        Answer(200, {"items": [{"id": 1}], "next": None}),
    )
    listed = client.pages(client.list_instances)
    assert next(listed)["id"] == 3
    assert len(server.requests) == 1
    assert [item["id"] for item in listed] == [2, 1]
    assert server.requests[1].query["cursor"] == ["c1"]


@pytest.mark.parametrize(
    "trouble", [HANG_UP, problem(503, "database-unavailable", "busy"), Answer(504, "")]
)
def test_a_command_is_repeated_with_its_own_key(
    client: ShoalClient, server: ScriptedServer, trouble: Answer
) -> None:
    server.answers(trouble, trouble, Answer(202, {"id": 1, "state": "PENDING"}))
    assert client.start("p", "w")["id"] == 1
    keys = {request.headers["idempotency-key"] for request in server.requests}
    assert (len(server.requests), len(keys)) == (3, 1)


def test_patience_ends(client: ShoalClient, server: ScriptedServer) -> None:
    server.answers(problem(503, "database-unavailable", "busy"))
    with pytest.raises(ApiProblem, match="busy"):
        client.get_cluster()
    assert len(server.requests) == 4
    server.answers(HANG_UP)
    with pytest.raises(ApiUnreachable, match="do something"):
        client.get_cluster()


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500])
def test_what_repetition_cannot_help_is_not_repeated(
    client: ShoalClient, server: ScriptedServer, status: int
) -> None:
    server.answers(problem(status, "some-kind", "the detail", **{"tasks[0]": "is wrong"}))
    with pytest.raises(ApiProblem) as caught:
        client.get_cluster()
    error = caught.value
    assert len(server.requests) == 1
    assert (error.status, error.kind, error.detail) == (status, "some-kind", "the detail")
    assert str(error) == "the detail\n  tasks[0]: is wrong"


def test_a_cluster_that_is_not_well_still_reports(
    client: ShoalClient, server: ScriptedServer
) -> None:
    server.answers(Answer(503, {"status": "degraded", "checks": {}}))
    assert client.get_health()["status"] == "degraded"
    server.answers(problem(503, "database-unavailable", "x"))
    with pytest.raises(ApiProblem):
        client.get_health()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(502, "<html>bad gateway", "text/html"), "answers 502 .*is that a Shoal API"),
        (Answer(200, "<html>hello", "text/html"), "is not JSON; is that the address"),
        (Answer(404, ["a", "list"]), "answers 404"),
        (problem(401, "unauthorized", "x"), "refuses the token: it belongs to another cluster"),
    ],
)
def test_answers_of_strangers_are_told_as_such(
    client: ShoalClient, server: ScriptedServer, answer: Answer, says: str
) -> None:
    server.answers(answer)
    with pytest.raises(ApiProblem, match=says):
        client.get_cluster()


def test_nobody_there_is_said_at_once_with_what_to_do() -> None:
    with socket.socket() as held:  # bound, but not listening: nobody can be there
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with (
            ShoalClient(f"http://127.0.0.1:{port}", "t", retry_pauses_s=(3600.0,)) as client,
            pytest.raises(ApiUnreachable, match="start it with `shoal up`"),
        ):
            client.get_cluster()


def test_outcome_polls_until_the_command_is_handled(
    client: ShoalClient, server: ScriptedServer
) -> None:
    pending: Any = {"id": 5, "state": "PENDING"}
    server.answers(Answer(200, pending), Answer(200, {"id": 5, "state": "DONE"}))
    assert client.outcome(pending)["state"] == "DONE"
    server.answers(Answer(200, pending))
    with pytest.raises(NotHandled, match=r"no master looked at command 5 within 0\.2 s"):
        client.outcome(pending, timeout_s=0.2)


def test_the_run_that_a_command_has_started_or_why_there_is_none(
    client: ShoalClient, server: ScriptedServer
) -> None:
    done: Any = {"id": 5, "type": "START", "state": "DONE", "result_instance_id": 7}
    assert client.started(done) == 7
    no: Any = {
        "id": 5,
        "type": "START",
        "state": "REFUSED",
        "reason": "too many",
        "result_instance_id": None,
    }
    with pytest.raises(CommandRefused, match="refused: too many"):
        client.started(no)


def test_a_run_is_waited_for_until_it_has_ended_well_or_not(
    client: ShoalClient, server: ScriptedServer
) -> None:
    for state in ("SUCCEEDED", "FAILED", "STOPPED"):
        server.answers(
            *(Answer(200, {"id": 7, "state": one}) for one in ("RUNNING", "PAUSED", state))
        )
        assert client.wait(7)["state"] == state
    server.answers(Answer(200, {"id": 7, "state": "PAUSED"}))
    with pytest.raises(NotEnded, match=r"instance 7 is still PAUSED after 0\.2 s"):
        client.wait(7, timeout_s=0.2)


def test_outputs_are_those_of_the_newest_attempt_of_a_task(
    client: ShoalClient, server: ScriptedServer
) -> None:
    instance = {"id": 7, "tasks": [{"id": 70, "task": "a"}, {"id": 72, "task": "b"}]}
    server.answers(Answer(200, instance), Answer(200, {"id": 72, "outputs": {"rows": "3"}}))
    assert client.outputs(7, "b") == {"rows": "3"}
    assert server.requests[-1].path == "/api/v1/task-instances/72"
    server.answers(Answer(200, instance))
    with pytest.raises(NotFound, match="instance 7 has no task 'c'"):
        client.outputs(7, "c")


def _log(offset: int, text: str) -> str:
    end = offset + len(text.encode())
    return f'id: {end}\nevent: log\ndata: {{"offset": {offset}, "data": "{text}"}}\n\n'


def test_a_followed_log_is_mended_where_it_broke_off(
    client: ShoalClient, server: ScriptedServer
) -> None:
    server.answers(
        stream(_log(0, "one ") + _log(4, "two ")[:30], hang_up=True),
        HANG_UP,
        problem(503, "log-unavailable", "in a moment"),
        stream(_log(4, "zwö ")),
        stream(_log(9, "three") + 'event: problem\ndata: {"detail": "worker away"}\n\n'),
        stream("event: end\ndata: {}\n\n"),
    )
    chunks = list(client.follow(9))
    assert "".join(chunk.data for chunk in chunks) == "one zwö three"
    assert [chunk.end for chunk in chunks] == [False, False, False, True]
    resumed = [request.headers.get("last-event-id") for request in server.requests]
    assert resumed == [None, "4", "4", "4", "9", "14"]


def test_a_log_that_stays_broken_is_given_up(client: ShoalClient, server: ScriptedServer) -> None:
    server.answers(stream('event: problem\ndata: {"detail": "the worker is gone"}\n\n'))
    with pytest.raises(LogBroken, match="log of task instance 9 broke off: the worker is gone"):
        list(client.follow(9, patience_s=0.1))
    server.answers(HANG_UP)
    with pytest.raises(ApiUnreachable):
        list(client.follow(9, patience_s=0.1))
    server.answers(problem(404, "not-found", "no such task instance"))
    with pytest.raises(ApiProblem, match="no such task instance"):
        list(client.follow(9))


def test_events_go_on_behind_the_last_one_seen(client: ShoalClient, server: ScriptedServer) -> None:
    def event(n: int) -> str:
        return f'id: {n}\nevent: task.state\ndata: {{"id": {n}}}\n\n'

    server.answers(stream(event(41)), stream(": quiet\n\n"), stream(event(42) + event(43)))
    events = client.events(instance_id=7, after=40)
    assert [next(events)["id"] for _ in range(3)] == [41, 42, 43]
    assert [r.headers["last-event-id"] for r in server.requests] == ["40", "41", "41"]
    assert {tuple(r.query["instance_id"]) for r in server.requests} == {("7",)}


def test_a_log_is_downloaded_byte_by_byte(client: ShoalClient, server: ScriptedServer) -> None:
    content = bytes(range(256)) * 1000
    server.answers(Answer(200, content, "text/plain"))
    with client.download_log(9) as answer:
        assert (int(answer.headers["Content-Length"]), b"".join(answer.iter_bytes())) == (
            len(content),
            content,
        )
    server.answers(Answer(200, content, "text/plain", hang_up=True))
    with pytest.raises(ApiUnreachable), client.download_log(9) as answer:
        answer.read()
