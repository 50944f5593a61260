"""HTTP as its RFCs have it: HEAD, Allow, ids of requests."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.contract.described import described
from tests.integration.api.conftest import PREFIX, Api, problem_of

STREAMS = ("/events", "/log/follow")


async def test_head_is_get_without_its_content(live: Api) -> None:
    await live.run()
    for path in (
        "/projects",
        "/projects/p",
        "/instances/1",
        "/instances/99",
        "/health/live",
        "/openapi.json",
    ):
        shown = await live.client.get(f"{PREFIX}{path}")
        head = await live.client.head(f"{PREFIX}{path}")
        assert head.status_code == shown.status_code, path
        assert head.content == b""
        for name in ("content-type", "content-length", "etag"):
            if name != "content-length" or shown.status_code != 404:  # its request has another id
                assert head.headers.get(name) == shown.headers.get(name), (path, name)


async def test_head_of_a_stream_ends(live: Api) -> None:
    head = await live.client.head(f"{PREFIX}/events")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")
    assert (await live.client.get(f"{PREFIX}/projects")).status_code == 200


async def test_head_needs_what_get_needs(api: Api) -> None:
    answer = await api.client.head(f"{PREFIX}/projects", headers={"Authorization": "Bearer x"})
    assert answer.status_code == 401


async def test_method_that_a_path_has_not_is_answered_with_those_that_it_has(api: Api) -> None:
    every = {"GET", "PUT", "POST", "DELETE", "PATCH"}
    for path, operations in described()["paths"].items():
        has = {method.upper() for method in operations}
        url = path.format(**_NAMES)
        for method in sorted((every - has) | {"OPTIONS"}):
            answer = await api.client.request(method, url)
            if answer.status_code == 404:
                continue  # another path of the same form has the method
            problem_of(answer, 405, "method-not-allowed")
            allowed = set(answer.headers["allow"].split(", "))
            assert has <= allowed, (method, path)
            assert ("HEAD" in allowed) is ("GET" in allowed), path


_NAMES: dict[str, Any] = {
    "project": "p",
    "name": "n",
    "kind": "user",
    "what": "worker-group",
    "member": "m",
    "taker": "t",
    "path": "x",
    "version": 1,
    "request": "pause",
    "user": "u",
    "provider": "main",
    "other_instance_id": 2,
    **dict.fromkeys(
        (
            "instance_id",
            "task_instance_id",
            "command_id",
            "schedule_id",
            "backfill_id",
            "alert_id",
            "delivery_id",
            "silence_id",
        ),
        1,
    ),
    **dict.fromkeys(("purge_id", "session_id", "token_id"), 1),
    **dict.fromkeys(("past_instance_id", "attempt_id"), 1),
}


async def test_id_of_a_request_is_in_its_answer_and_in_the_log(api: Api) -> None:
    given = {"X-Request-Id": "trace-7/a"}
    with capture_logs() as lines:
        answer = await api.client.get(f"{PREFIX}/instances/99", headers=given)
    assert answer.headers["x-request-id"] == "trace-7/a"
    assert problem_of(answer, 404, "not-found")["request_id"] == "trace-7/a"
    [line] = [one for one in lines if one["event"] == "request"]
    assert line["request_id"] == "trace-7/a"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a\x1b[2J", "ä"])
async def test_id_that_could_harm_a_log_is_replaced(api: Api, given: str) -> None:
    headers = {b"X-Request-Id": given.encode("latin-1")}
    one = await api.client.get(f"{PREFIX}/projects", headers=headers)
    other = await api.client.get(f"{PREFIX}/projects", headers=headers)
    ids = {one.headers["x-request-id"], other.headers["x-request-id"]}
    assert len(ids) == 2
    assert given not in ids
