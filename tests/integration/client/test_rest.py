"""The REST client against a real server: routes, repetition, errors, broken streams."""

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.client.errors import (
    ApiProblem,
    ApiUnreachable,
    LogBroken,
    NotEnded,
    NotFound,
    NotHandled,
    Refused,
)
from shoal.client.rest import connection, sse
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


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


@pytest.fixture
def client(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShoalClient]:
    """A client that repeats without pauses."""
    monkeypatch.setattr(connection, "RETRY_PAUSES_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(sse, "PAUSES_S", (0.001,))
    with ShoalClient(server.url, "the token", hint="do something") as client:
        yield client


PAGE: dict[str, Any] = {"items": [], "next": None}
LIMIT = {"limit": ["200"]}
SPRING = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("call", "body", "method", "path", "query", "sent"),
    [
        (lambda c: c.health(), {}, "GET", "/health", {}, None),
        (lambda c: c.cluster(), {}, "GET", "/cluster", {}, None),
        (lambda c: c.task_types(), PAGE, "GET", "/task-types", {"limit": ["200"]}, None),
        (lambda c: list(c.projects()), PAGE, "GET", "/projects", {"limit": ["200"]}, None),
        (lambda c: c.project("a b"), {}, "GET", "/projects/a%20b", {}, None),
        (lambda c: c.project("../x"), {}, "GET", "/projects/..%2Fx", {}, None),
        (lambda c: c.project(".."), {}, "GET", "/projects/%2E%2E", {}, None),
        (lambda c: c.put_project("p", "d"), {}, "PUT", "/projects/p", {}, {"description": "d"}),
        (
            lambda c: list(c.workflows("p", "x y")),
            PAGE,
            "GET",
            "/workflows",
            {"project": ["p"], "search": ["x y"], "limit": ["200"]},
            None,
        ),
        (lambda c: c.workflow("p", "w"), {}, "GET", "/projects/p/workflows/w", {}, None),
        (lambda c: c.delete_workflow("p", "w"), {}, "DELETE", "/projects/p/workflows/w", {}, None),
        (
            lambda c: c.publish({"project": "p", "name": "w", "tasks": []}, dry_run=True),
            {},
            "PUT",
            "/projects/p/workflows/w",
            {"dry_run": ["true"]},
            {"project": "p", "name": "w", "tasks": []},
        ),
        (
            lambda c: list(c.versions("p", "w")),
            PAGE,
            "GET",
            "/projects/p/workflows/w/versions",
            {"limit": ["200"]},
            None,
        ),
        (lambda c: c.version("p", "w", 3), {}, "GET", "/projects/p/workflows/w/versions/3", {},
         None),
        (lambda c: c.schedules("p", "w"), PAGE, "GET", "/projects/p/workflows/w/schedules", LIMIT,
         None),
        (
            lambda c: list(c.all_schedules("p")),
            PAGE,
            "GET",
            "/schedules",
            {"project": ["p"], "limit": ["200"]},
            None,
        ),
        (lambda c: c.preview_schedule(7, 3), {}, "GET", "/schedules/7/preview", {"n": ["3"]}, None),
        (
            lambda c: c.preview("0 6 * * *", timezone="UTC", n=3),
            {},
            "POST",
            "/schedules/preview",
            {},
            {"cron": "0 6 * * *", "timezone": "UTC", "n": 3},
        ),
        (
            lambda c: list(c.calendars("p")),
            PAGE,
            "GET",
            "/projects/p/calendars",
            {"limit": ["200"]},
            None,
        ),
        (lambda c: c.calendar("p", "a b"), {}, "GET", "/projects/p/calendars/a%20b", {}, None),
        (
            lambda c: c.put_calendar("p", "c", ["2026-01-01"], "d"),
            {},
            "PUT",
            "/projects/p/calendars/c",
            {},
            {"days": ["2026-01-01"], "description": "d"},
        ),
        (lambda c: c.delete_calendar("p", "c"), {}, "DELETE", "/projects/p/calendars/c", {}, None),
        (lambda c: c.command(3, 2.5), {}, "GET", "/commands/3", {"wait": ["2.5"]}, None),
        (
            lambda c: list(c.instances(states=["FAILED", "STOPPED"], since=SPRING, page=5)),
            PAGE,
            "GET",
            "/instances",
            {"state": ["FAILED", "STOPPED"], "since": ["2026-03-01T00:00:00+00:00"],
             "limit": ["5"]},
            None,
        ),
        (lambda c: c.instance(7, "all"), {}, "GET", "/instances/7", {"attempts": ["all"]}, None),
        (
            lambda c: list(c.task_instances(worker="w", states=["RUNNING"])),
            PAGE,
            "GET",
            "/task-instances",
            {"worker": ["w"], "state": ["RUNNING"], "limit": ["200"]},
            None,
        ),
        (lambda c: c.task_instance(9), {}, "GET", "/task-instances/9", {}, None),
        (
            lambda c: c.log(9, -100, 50),
            {},
            "GET",
            "/task-instances/9/log",
            {"offset": ["-100"], "limit": ["50"]},
            None,
        ),
        (
            lambda c: c.timeline(7, every=True),
            {},
            "GET",
            "/instances/7/timeline",
            {"every": ["true"]},
            None,
        ),
        (
            lambda c: c.today("p", since=SPRING, limit=5),
            {},
            "GET",
            "/today",
            {"project": ["p"], "since": ["2026-03-01T00:00:00+00:00"], "limit": ["5"]},
            None,
        ),
        (
            lambda c: c.grid("p", "w", sort="-created_at", limit=5, cursor="c"),
            {},
            "GET",
            "/projects/p/workflows/w/grid",
            {"sort": ["-created_at"], "limit": ["5"], "cursor": ["c"]},
            None,
        ),
        (
            lambda c: list(c.workflow_days("p", "w", first="2026-03-01", days=7)),
            PAGE,
            "GET",
            "/projects/p/workflows/w/days",
            {"first": ["2026-03-01"], "limit": ["7"]},
            None,
        ),
        (
            lambda c: list(c.history(kinds=["command"], workflow="w", until=SPRING, page=5)),
            PAGE,
            "GET",
            "/history",
            {
                "kind": ["command"],
                "workflow": ["w"],
                "until": ["2026-03-01T00:00:00+00:00"],
                "limit": ["5"],
            },
            None,
        ),
        (
            lambda c: c.preview_start("p", "w", tasks=["a"], mode="only"),
            {},
            "POST",
            "/start-previews",
            {},
            {
                "project": "p",
                "workflow": "w",
                "version": None,
                "parameters": {},
                "logical_time": None,
                "priority": None,
                "tasks": ["a"],
                "mode": "only",
                "labels": {},
                "render": None,
            },
        ),
    ],
)  # fmt: skip
def test_every_call_is_one_route(
    client: ShoalClient,
    server: ScriptedServer,
    call: Callable[[ShoalClient], Any],
    body: Any,
    method: str,
    path: str,
    query: dict[str, list[str]],
    sent: Any,
) -> None:
    server.answers(Answer(200, body))
    call(client)
    (request,) = server.requests
    assert (request.method, request.path) == (method, f"/api/v1{path}")
    assert (request.query, request.body) == (query, sent)
    assert request.headers["authorization"] == "Bearer the token"


def test_start_sends_what_was_given_and_a_key(client: ShoalClient, server: ScriptedServer) -> None:
    client.start("p", "w", parameters={"a": "1"}, logical_time=SPRING, priority="HIGH")
    client.send("STOP", instance_id=3, idempotency_key="mine")
    client.start("p", "w", tasks=["a"], mode="downstream")
    client.rerun_tasks(3, ["a", "b"])
    client.kill_task(91)
    client.force_success(91, "by hand")
    start, stop, *chosen = server.requests
    assert start.body == {
        "type": "START",
        "project": "p",
        "workflow": "w",
        "parameters": {"a": "1"},
        "logical_time": "2026-03-01T00:00:00+00:00",
        "priority": "HIGH",
    }
    assert len(start.headers["idempotency-key"]) == 36
    assert (stop.body, stop.headers["idempotency-key"]) == (
        {"type": "STOP", "instance_id": 3},
        "mine",
    )
    some = {"project": "p", "workflow": "w", "parameters": {}, "tasks": ["a"]}
    assert [request.body for request in chosen] == [
        {"type": "START", **some, "mode": "downstream"},
        {"type": "RERUN_TASKS", "instance_id": 3, "tasks": ["a", "b"]},
        {"type": "KILL_TASK", "task_instance_id": 91},
        {"type": "FORCE_SUCCESS", "task_instance_id": 91, "reason": "by hand"},
    ]


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
    listed = client.instances()
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
        client.cluster()
    assert len(server.requests) == 4
    server.answers(HANG_UP)
    with pytest.raises(ApiUnreachable, match="do something"):
        client.cluster()


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500])
def test_what_repetition_cannot_help_is_not_repeated(
    client: ShoalClient, server: ScriptedServer, status: int
) -> None:
    server.answers(problem(status, "some-kind", "the detail", **{"tasks[0]": "is wrong"}))
    with pytest.raises(ApiProblem) as caught:
        client.cluster()
    error = caught.value
    assert len(server.requests) == 1
    assert (error.status, error.kind, error.detail) == (status, "some-kind", "the detail")
    assert str(error) == "the detail\n  tasks[0]: is wrong"


def test_a_cluster_that_is_not_well_still_reports(
    client: ShoalClient, server: ScriptedServer
) -> None:
    server.answers(Answer(503, {"status": "degraded", "checks": {}}))
    assert client.health()["status"] == "degraded"
    server.answers(problem(503, "database-unavailable", "x"))
    with pytest.raises(ApiProblem):
        client.health()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(502, "<html>bad gateway", "text/html"), "answers 502 .*is that a Shoal API"),
        (Answer(200, "<html>hello", "text/html"), "is no JSON; is that the address"),
        (Answer(404, ["a", "list"]), "answers 404"),
        (problem(401, "unauthorized", "x"), "refuses the token: it belongs to another cluster"),
    ],
)
def test_answers_of_strangers_are_told_as_such(
    client: ShoalClient, server: ScriptedServer, answer: Answer, says: str
) -> None:
    server.answers(answer)
    with pytest.raises(ApiProblem, match=says):
        client.cluster()


def test_nobody_there_is_said_at_once_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RETRY_PAUSES_S", (3600.0,))  # nobody waits for this
    with socket.socket() as held:  # bound, but not listening: nobody can be there
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        with (
            ShoalClient(f"http://127.0.0.1:{port}", "t") as client,
            pytest.raises(ApiUnreachable, match="start it with `shoal up`"),
        ):
            client.cluster()


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
    with pytest.raises(Refused, match="refused: too many"):
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
    chunks = list(client.follow_log(9))
    assert "".join(chunk.data for chunk in chunks) == "one zwö three"
    assert [chunk.end for chunk in chunks] == [False, False, False, True]
    resumed = [request.headers.get("last-event-id") for request in server.requests]
    assert resumed == [None, "4", "4", "4", "9", "14"]


def test_a_log_that_stays_broken_is_given_up(client: ShoalClient, server: ScriptedServer) -> None:
    server.answers(stream('event: problem\ndata: {"detail": "the worker is gone"}\n\n'))
    with pytest.raises(LogBroken, match="log of task instance 9 broke off: the worker is gone"):
        list(client.follow_log(9, patience_s=0.1))
    server.answers(HANG_UP)
    with pytest.raises(ApiUnreachable):
        list(client.follow_log(9, patience_s=0.1))
    server.answers(problem(404, "not-found", "no such task instance"))
    with pytest.raises(ApiProblem, match="no such task instance"):
        list(client.follow_log(9))


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
    with client.download_log(9) as (size, chunks):
        assert (size, b"".join(chunks)) == (len(content), content)
    server.answers(Answer(200, content, "text/plain", hang_up=True))
    with pytest.raises(ApiUnreachable), client.download_log(9) as (_, chunks):
        b"".join(chunks)
