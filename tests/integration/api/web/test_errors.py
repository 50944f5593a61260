"""Whatever goes wrong is answered with a problem document, and nothing is stored."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import APIRouter
from structlog.testing import capture_logs

from shoal.api.app import create_app
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.core.errors import ShoalError
from shoal.runtime.settings import ClusterSettings
from shoal.sql.errors import DatabaseUnavailable, TransactionConflict
from tests.integration.api.conftest import (
    PREFIX,
    Api,
    definition,
    fields_of,
    in_process,
    opened,
    problem_of,
)
from tests.support.cases import each_row

# Nothing here stores anything, and every test that could checks it: they share one API.
pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKFLOW = f"{PREFIX}/projects/p/workflows/daily"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(module_cluster: ClusterSettings) -> AsyncIterator[Api]:
    """The API of this module."""
    async with opened(module_cluster, ApiSettings(port=0)) as services, in_process(services) as it:
        yield it


async def _is_empty(api: Api) -> bool:
    answer = await api.client.get(f"{PREFIX}/workflows")
    return bool(answer.json() == {"items": [], "next": None})


@each_row(
    "header",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer \u00e9".encode()},
        {"Authorization": "Basic dXNlcjpwYXNz"},
        {"Authorization": "Bearer"},
    ],
)
async def test_every_route_but_liveness_needs_the_token(api: Api, header: Any) -> None:
    app_routes = await api.client.get(f"{PREFIX}/openapi.json")
    async with httpx.AsyncClient(
        transport=api.client._transport, base_url="http://localhost", headers=header
    ) as stranger:
        count = 0
        for path, operations in app_routes.json()["paths"].items():
            for method in operations:
                url = path.replace("{version}", "1").replace("{request}", "pause")
                for name in ("command_id", "instance_id", "task_instance_id"):
                    url = url.replace(f"{{{name}}}", "1")
                answer = await stranger.request(method, url, content=b"{not json")
                if path.startswith(f"{PREFIX}/login"):  # that is how strangers become known
                    if method == "post":
                        problem_of(answer, 415, "unsupported-media-type")
                    continue
                if path == f"{PREFIX}/health/live":
                    assert answer.json() == {"status": "ok"}
                    continue
                document = problem_of(answer, 401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"
                assert api.services.token not in answer.text
                assert document["errors"] == []
                count += 1
        assert count > 20
        for page in ("/docs", f"{PREFIX}/openapi.json"):
            answer = await stranger.get(page)
            problem_of(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"].startswith("Basic realm=")


async def test_the_token_of_another_scheme_opens_nothing(api: Api) -> None:
    password = base64.b64encode(f"me:{api.services.token}".encode()).decode()
    basic = {"Authorization": f"Basic {password}"}
    problem_of(await api.client.get(f"{PREFIX}/workflows", headers=basic), 401, "unauthorized")
    assert (await api.client.get("/docs", headers=basic)).status_code == 200


@each_row(
    "path",
    [
        "/api/v1/health/live/configs",
        "/api/v1/health/live%2f..%2f..%2fworkflows",
        "/api/v1//workflows",
        "/api/v1/workflows;x=/health/live",
        "/api/v1/workflows/",
        "/API/V1/WORKFLOWS",
        "/api/v1/health/live/../../workflows",
        "/api/v1/%2e%2e/v1/workflows",
        "/workflows",
    ],
)
async def test_no_spelling_of_a_path_goes_around_the_token(api: Api, path: str) -> None:
    for header in ({}, {"X-Forwarded-Prefix": "/api/v1/health/live", "X-Original-URL": "/"}):
        async with httpx.AsyncClient(
            transport=api.client._transport, base_url="http://localhost", headers=header
        ) as stranger:
            assert (await stranger.get(path)).status_code in (401, 404)


async def test_unknown_routes_and_methods(api: Api) -> None:
    problem_of(await api.client.get(f"{PREFIX}/nothing"), 404, "no-such-route")
    problem_of(await api.client.get("/"), 404, "no-such-route")
    answer = await api.client.post(f"{PREFIX}/workflows")
    problem_of(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "GET, HEAD"


@each_row(
    "content, detail",
    [
        (b"{", "EOF while parsing"),
        (b'{"a": 1,}', "trailing comma at line 1 column 9"),
        (b'{"a": NaN}', "line 1"),
        (b"\xff\xfe", "line 1"),
        (b"[" * 300, "recursion limit"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "recursion limit"),
        (b'{"a": "\\ud800"}', "line 1"),
    ],
)
async def test_malformed_json(api: Api, content: bytes, detail: str) -> None:
    answer = await api.client.put(
        WORKFLOW, content=content, headers={"Content-Type": "application/json"}
    )
    assert detail in problem_of(answer, 400, "malformed-json")["detail"]
    assert await _is_empty(api)


async def test_a_body_of_another_type_is_refused(api: Api) -> None:
    for header in ({}, {"Content-Type": "text/plain"}):
        answer = await api.client.post(f"{PREFIX}/commands", content=b'{"x":1}', headers=header)
        problem_of(answer, 415, "unsupported-media-type")
    form = await api.client.post(f"{PREFIX}/commands", data={"type": "START"})
    problem_of(form, 415, "unsupported-media-type")


async def test_a_missing_body_is_named(api: Api) -> None:
    document = problem_of(await api.client.post(f"{PREFIX}/commands"), 422, "invalid-request")
    assert fields_of(document) == {"body": "is required"}


@each_row("body", [[], "text", 1, None, True])
async def test_a_body_that_is_no_object(api: Api, body: object) -> None:
    for method, path in (("PUT", WORKFLOW), ("POST", f"{PREFIX}/commands")):
        problem_of(await api.client.request(method, path, json=body), 422, "invalid-request")
    assert await _is_empty(api)


async def test_a_huge_body_is_refused_announced_or_not(api: Api) -> None:
    async def chunks() -> Any:
        yield b'{"description": "'
        for _ in range(9 * 16):
            yield b"x" * 65536

    headers = {"Content-Type": "application/json"}
    announced = {**headers, "Content-Length": str(9 * 1024 * 1024)}
    small = await api.client.put(WORKFLOW, content=b"{}", headers=announced)
    problem_of(small, 413, "body-too-large")
    streamed = await api.client.put(WORKFLOW, content=chunks(), headers=headers)
    problem_of(streamed, 413, "body-too-large")
    assert await _is_empty(api)


@each_row(
    "value, message",
    [
        ("a\0b", "NUL"),
        (2**64, "64 bits"),
        ({"a\0": 1}, "NUL"),
        ([[-(2**63) - 1]], "64 bits"),
    ],
)
async def test_values_that_no_database_keeps(api: Api, value: object, message: str) -> None:
    tasks = [{"name": "a", "type": "SHELL", "params": {"script": value}}]
    answer = await api.client.put(WORKFLOW, json={"tasks": tasks})
    assert message in problem_of(answer, 422, "invalid-request")["detail"]


async def test_numbers_beyond_all_bounds_are_refused(api: Api) -> None:
    answer = await api.client.put(
        WORKFLOW,
        content=b'{"tasks": [{"name": "a", "type": "SHELL", "params": {"script": 1e999}}]}',
        headers={"Content-Type": "application/json"},
    )
    assert "too large" in problem_of(answer, 422, "invalid-request")["detail"]


async def test_unknown_fields_and_wrong_types_are_named(api: Api) -> None:
    body = {"type": "STRAT", "instance_id": "x", "paramters": {}, "parameters": {"a": [1]}}
    document = problem_of(
        await api.client.post(f"{PREFIX}/commands", json=body), 422, "invalid-request"
    )
    found = fields_of(document)
    assert found["paramters"] == "is not a known field"
    assert "'START'" in found["type"]
    assert "integer" in found["instance_id"]
    assert "string" in found["parameters.a"]


@each_row("limit", ["0", "-1", "501", "9" * 30, "x", "1.5", ""])
async def test_limits_out_of_range(api: Api, limit: str) -> None:
    for path in ("projects", "workflows", "instances", "task-instances"):
        answer = await api.client.get(f"{PREFIX}/{path}?limit={limit}")
        assert list(fields_of(problem_of(answer, 422, "invalid-request"))) == ["limit"]


@each_row(
    "cursor", ["x", "%00", "", "AAAA", "bnVsbA", "WyJpbnN0YW5jZXMiLC0xXQ", "WyJwcm9qZWN0cyJd", "é"]
)
async def test_cursors_that_we_did_not_give(api: Api, cursor: str) -> None:
    for path in ("projects", "workflows", "instances", "task-instances"):
        answer = await api.client.get(f"{PREFIX}/{path}?cursor={cursor}")
        assert list(fields_of(problem_of(answer, 422, "invalid-request"))) == ["cursor"]


@pytest.mark.parametrize("path", ["instances", "task-instances", "commands"])
@pytest.mark.parametrize("bad", ["0", "-1", "abc", "1.5", str(2**63), "9" * 40, "%00"])
async def test_ids_that_cannot_be(api: Api, path: str, bad: str) -> None:
    problem_of(await api.client.get(f"{PREFIX}/{path}/{bad}"), 422, "invalid-request")


@each_row(
    "path",
    [
        "projects/none",
        "projects/none/workflows/none",
        "projects/none/workflows/none/versions",
        "projects/none/workflows/none/versions/1",
        "projects/none/workflows/none/schedules",
        "projects/none/calendars",
        "projects/none/calendars/none",
        "projects/none/concurrency-groups",
        "projects/none/concurrency-groups/none",
        "schedules/4711/preview",
        "commands/4711",
        "instances/4711",
        f"instances/{2**63 - 1}",
        "task-instances/4711",
        "task-instances/4711/log",
        "task-instances/4711/log/raw",
        "task-instances/4711/log/follow",
    ],
)
async def test_unknown_objects(api: Api, path: str) -> None:
    document = problem_of(await api.client.get(f"{PREFIX}/{path}"), 404, "not-found")
    assert document["detail"].startswith("there is no ")


async def test_misspelt_query_parameters_are_refused(api: Api) -> None:
    answer = await api.client.get(f"{PREFIX}/instances?sate=FAILED&limit=5")
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert found == {"sate": "is not a query parameter of this route; did you mean 'state'?"}


async def test_unusable_filters_are_named(api: Api) -> None:
    answer = await api.client.get(f"{PREFIX}/instances?state=LOST&since=yesterday&until=2026-01-01")
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert found.keys() == {"state[0]", "since", "until"}


async def test_an_invalid_definition_shows_all_problems_at_once(api: Api) -> None:
    broken = definition(
        schedules=[{"cron": "61 * * * *"}],
        surprise=1,
        tasks=[
            {"name": "a", "type": "SHELL", "params": {"script": "x"}, "depends_on": ["b"]},
            {"name": "b", "type": "SHELL", "params": {"script": "x"}, "depends_on": ["a", "c"]},
            {"name": "d", "type": "SHALL", "params": {}},
            {"name": "e", "type": "SHELL", "params": {"skript": "x"}},
        ],
    )
    document = problem_of(await api.client.put(WORKFLOW, json=broken), 422, "invalid-definition")
    found = fields_of(document)
    assert "a → b → a" in found["tasks[0].depends_on"]
    assert "'c', which does not exist" in found["tasks[1].depends_on[1]"]
    assert "unknown task type 'SHALL'" in found["tasks[2].type"]
    assert found["tasks[3].params.skript"] == "is not a known field; did you mean 'script'?"
    assert found["surprise"] == "is not a known field"
    assert "minute" in found["schedules[0]"]
    assert await _is_empty(api)


@each_row("name", ["-x", "a b", "x" * 101, ".hidden", "a%2fb", "a%0ab", "%00"])
async def test_bad_names_are_refused(api: Api, name: str) -> None:
    workflow = await api.client.put(f"{PREFIX}/projects/p/workflows/{name}", json=definition())
    project = await api.client.put(f"{PREFIX}/projects/{name}", json={})
    assert workflow.status_code in (404, 422)
    assert project.status_code in (404, 422)
    assert await _is_empty(api)


async def test_safe_headers_on_every_answer(api: Api) -> None:
    for path in ("/docs", f"{PREFIX}/health/live", f"{PREFIX}/workflows", "/nothing"):
        headers = (await api.client.get(path)).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


class _Surprise(ShoalError):
    """An error that nobody has mapped."""


@each_row("error", [RuntimeError, _Surprise, KeyError])
async def test_the_unexpected_is_a_500_with_an_id_that_is_in_the_log(
    api: Api, error: type[Exception]
) -> None:
    raised = error("secret-detail")
    with capture_logs() as logged:
        answer = await _failing(api.services, raised)
    document = problem_of(answer, 500, "internal-error")
    assert "secret-detail" not in answer.text
    [entry] = [entry for entry in logged if entry["log_level"] == "error"]
    assert document["detail"].endswith(entry["error_id"])
    assert entry["exc_info"] is raised


@each_row("error", [DatabaseUnavailable, TransactionConflict])
async def test_trouble_of_the_database_is_a_503(api: Api, error: type[Exception]) -> None:
    answer = await _failing(api.services, error("connection to secret-host lost"))
    problem_of(answer, 503, "database-unavailable")
    assert answer.headers["retry-after"] == "1"
    assert "secret-host" not in answer.text


async def _failing(services: Services, error: Exception) -> httpx.Response:
    router = APIRouter()

    @router.get("/fail")
    async def fail() -> None:
        raise error

    app = create_app(services)
    app.include_router(router)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        return await client.get("/fail")


@each_row("method", ["PATCH", "OPTIONS"])
async def test_a_method_that_a_path_does_not_have_is_told_all_that_it_has(
    api: Api, method: str
) -> None:
    answer = await api.client.request(method, f"{PREFIX}/projects/p/calendars/c")
    problem_of(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PUT"
