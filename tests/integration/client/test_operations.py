"""A method for every operation of the API, for programs that wait and for those that do not."""

import asyncio
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import pytest

from shoal.client import AsyncShoalClient, ShoalClient
from shoal.client.errors import ApiProblem, ApiUnreachable
from shoal.client.rest.operations.generated.operations import AsyncOperations, Operations
from tests.contract.client import snake
from tests.contract.described import described
from tests.integration.client.scripted_server import (
    Answer,
    ScriptedServer,
    problem,
    scripted_server,
    stream,
)

PAGE: dict[str, Any] = {"items": [], "next": None}
NO_PAUSES = (0.0, 0.0, 0.0)
BUSY = problem(503, "database-unavailable", "busy")
Ask = Callable[[str], Any]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, server: ScriptedServer) -> Callable[..., Any]:
    """Call an operation by name, with either client."""

    def wait(name: str, *arguments: Any, **named: Any) -> Any:
        with ShoalClient(server.url, "the token", retry_pauses_s=NO_PAUSES) as shoal:
            return getattr(shoal, name)(*arguments, **named)

    def run(name: str, *arguments: Any, **named: Any) -> Any:
        async def ask() -> Any:
            async with AsyncShoalClient(server.url, "the token", retry_pauses_s=NO_PAUSES) as shoal:
                return await getattr(shoal, name)(*arguments, **named)

        return asyncio.run(ask())

    return wait if request.param == "sync" else run


def test_every_operation_has_a_method_in_both_clients() -> None:
    for operations in described()["paths"].values():
        for operation in operations.values():
            name = snake(operation["operationId"])
            for client in (Operations, AsyncOperations):
                assert callable(getattr(client, name, None)), f"{name}: run `make contract`"


def test_help_shows_what_an_operation_takes_and_does() -> None:
    for method in (ShoalClient.get_instance, AsyncShoalClient.get_instance):
        assert list(signature(method).parameters) == ["self", "instance_id", "attempts"]
        assert str(method.__doc__).startswith("Show an instance.")
    with ShoalClient("http://127.0.0.1:1", "t") as shoal:
        assert list(signature(shoal.get_instance).parameters) == ["instance_id", "attempts"]


def test_every_operation_asks_its_own_route(server: ScriptedServer) -> None:
    """Each with its path alone: what the paths of operations are filled with differs."""
    with ShoalClient(server.url, "t", retry_pauses_s=NO_PAUSES) as shoal:
        for path, operations in described()["paths"].items():
            for method, operation in operations.items():
                server.answers(Answer(200, {}))
                names = [part for part in path.split("/") if part.startswith("{")]
                taken = operation.get("requestBody", {}).get("content", {})
                more = [{} if "application/json" in taken else b"{}"] if taken else []
                found = getattr(shoal, snake(operation["operationId"]))
                answer = found(*(f"v{number}" for number in range(len(names))), *more)
                if hasattr(answer, "__enter__"):
                    with answer:
                        pass
                expected = path
                for number, name in enumerate(names):
                    expected = expected.replace(name, f"v{number}")
                request = server.requests[-1]
                assert (request.method, request.path) == (method.upper(), expected)


def test_arguments_go_where_they_belong(call: Callable[..., Any], server: ScriptedServer) -> None:
    server.answers(Answer(200, PAGE), Answer(200, {"name": "gpu"}), Answer(204))
    assert call("list_concurrency_groups", "a/b", limit=7) == PAGE
    body = {"slots": 3}
    assert call("put_concurrency_group", "p", "gpu", body, if_match='"x"') == {"name": "gpu"}
    assert call("delete_concurrency_group", "p", "gpu") is None
    listed, put, deleted = server.requests
    assert (listed.method, listed.path) == ("GET", "/api/v1/projects/a%2Fb/concurrency-groups")
    assert listed.query == {"limit": ["7"]}
    assert listed.headers["authorization"] == "Bearer the token"
    assert (put.method, put.body, put.headers["if-match"]) == ("PUT", body, '"x"')
    assert "if-match" not in deleted.headers


def test_what_may_be_repeated_is(call: Callable[..., Any], server: ScriptedServer) -> None:
    server.answers(BUSY, BUSY, Answer(200, PAGE))
    assert call("list_projects") == PAGE
    server.answers(BUSY, Answer(202, {"id": 1}))
    assert call("create_command", {"type": "STOP", "instance_id": 1}) == {"id": 1}
    first, second = server.requests[-2:]
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_what_may_not_be_repeated_is_sent_once(
    call: Callable[..., Any], server: ScriptedServer
) -> None:
    server.answers(BUSY, Answer(201, {}))
    with pytest.raises(ApiProblem) as refused:
        call("create_group", {"name": "crew"})
    assert (refused.value.status, len(server.requests)) == (503, 1)


def test_problems_and_silence_are_errors_of_the_client(
    call: Callable[..., Any], server: ScriptedServer
) -> None:
    server.answers(problem(404, "not-found", "there is no project p"))
    with pytest.raises(ApiProblem, match="there is no project p") as missing:
        call("get_project", "p")
    assert missing.value.status == 404
    server.url = "http://127.0.0.1:1"
    with pytest.raises(ApiUnreachable, match="shoal up"):
        call("get_project", "p")


def test_streams_are_opened(server: ScriptedServer) -> None:
    server.answers(stream("id: 1\ndata: x\n\n"), stream("id: 2\ndata: y\n\n"))
    with (
        ShoalClient(server.url, "t", retry_pauses_s=NO_PAUSES) as shoal,
        shoal.follow_events(last_event_id="0") as answer,
    ):
        assert answer.read().startswith(b"id: 1")

    async def follow() -> bytes:
        async with (
            AsyncShoalClient(server.url, "t", retry_pauses_s=NO_PAUSES) as shoal,
            shoal.follow_events(project="p") as answer,
        ):
            return await answer.aread()

    assert asyncio.run(follow()).startswith(b"id: 2")
    first, second = server.requests
    assert first.headers["last-event-id"] == "0"
    assert second.query == {"project": ["p"]}


def test_project_that_is_missing_is_made_first_if_the_caller_may(server: ScriptedServer) -> None:
    missing = problem(404, "not-found", "there is no project p")
    server.answers(missing, Answer(201, {"name": "p"}), Answer(201, {"name": "s"}))
    with ShoalClient(server.url, "t", retry_pauses_s=NO_PAUSES) as shoal:
        assert shoal.with_project(shoal.put_secret, "p", "s", {"value": "long enough"}) == {
            "name": "s"
        }
        asked = [(one.method, one.path.removeprefix("/api/v1")) for one in server.requests]
        put = ("PUT", "/projects/p/secrets/s")
        assert asked == [put, ("PUT", "/projects/p"), put]
        assert server.requests[1].headers["if-none-match"] == "*"
        server.answers(missing, problem(403, "forbidden", "may not"))
        with pytest.raises(ApiProblem, match="there is no project p"):
            shoal.with_project(shoal.put_secret, "p", "s", {"value": "long enough"})


def test_project_whose_first_answer_was_lost_is_there(server: ScriptedServer) -> None:
    missing = problem(404, "not-found", "there is no project p")
    there = problem(412, "precondition-failed", "there is a project p")
    server.answers(missing, BUSY, there, Answer(201, {"name": "s"}))
    with ShoalClient(server.url, "t", retry_pauses_s=NO_PAUSES) as shoal:
        made = shoal.with_project(shoal.put_secret, "p", "s", {"value": "long enough"})
    assert made == {"name": "s"}
