"""The OpenAPI description is complete, true, and readable for people."""

import asyncio
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import Any

import pytest
import pytest_asyncio

from shoal.api.pages.openapi import example_of, resolve
from shoal.api.settings import ApiSettings
from shoal.core.access.permissions import Permission
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api, in_process, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(module_cluster: ClusterSettings) -> AsyncIterator[Api]:
    """The API of this module."""
    async with opened(module_cluster, ApiSettings(port=0)) as services, in_process(services) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def description(api: Api) -> dict[str, Any]:
    """The description as served."""
    answer = await api.client.get(f"{PREFIX}/openapi.json")
    assert answer.status_code == 200
    content: dict[str, Any] = answer.json()
    return content


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]


READY = (f"{PREFIX}/health/ready", "503")  # says what is missing, in the form of /health
EXPECTED = {
    ("get", "/health/live"),
    ("get", "/health/ready"),
    ("get", "/health"),
    ("get", "/projects"),
    ("get", "/projects/{project}"),
    ("put", "/projects/{project}"),
    ("get", "/projects/{project}/parameters"),
    ("get", "/projects/{project}/parameters/{name}"),
    ("get", "/secrets-keys"),
    ("post", "/secrets-keys/rotation"),
    ("get", "/audit"),
    ("get", "/audit-head"),
    ("get", "/audit-chain"),
    ("post", "/audit-prunes"),
    ("get", "/projects/{project}/audit"),
    ("put", "/projects/{project}/parameters/{name}"),
    ("delete", "/projects/{project}/parameters/{name}"),
    ("get", "/projects/{project}/secrets"),
    ("get", "/projects/{project}/secrets/{name}"),
    ("put", "/projects/{project}/secrets/{name}"),
    ("delete", "/projects/{project}/secrets/{name}"),
    ("post", "/projects/{project}/secrets/{name}/test"),
    ("get", "/environments"),
    ("get", "/environments/{name}"),
    ("put", "/environments/{name}"),
    ("delete", "/environments/{name}"),
    ("get", "/restrictions"),
    ("get", "/restrictions/{what}/{name}"),
    ("put", "/restrictions/{what}/{name}"),
    ("delete", "/restrictions/{what}/{name}"),
    ("get", "/data-source-kinds"),
    ("get", "/projects/{project}/data-sources"),
    ("get", "/projects/{project}/data-sources/{name}"),
    ("put", "/projects/{project}/data-sources/{name}"),
    ("delete", "/projects/{project}/data-sources/{name}"),
    ("post", "/projects/{project}/data-sources/{name}/test"),
    ("get", "/projects/{project}/resources"),
    ("get", "/projects/{project}/resources/{path}"),
    ("delete", "/projects/{project}/resources/{path}"),
    ("get", "/projects/{project}/resource-versions/{path}"),
    ("get", "/projects/{project}/resource-contents/{path}"),
    ("put", "/projects/{project}/resource-contents/{path}"),
    ("get", "/workflows"),
    ("put", "/projects/{project}/workflows/{name}"),
    ("get", "/projects/{project}/workflows/{name}"),
    ("delete", "/projects/{project}/workflows/{name}"),
    ("get", "/projects/{project}/workflows/{name}/versions"),
    ("get", "/projects/{project}/workflows/{name}/versions/{version}"),
    ("get", "/projects/{project}/workflows/{name}/versions/{version}/diff"),
    ("post", "/projects/{project}/workflows/{name}/versions/{version}/restore"),
    ("get", "/projects/{project}/workflows/{name}/dependencies"),
    ("get", "/projects/{project}/workflows/{name}/hanging"),
    ("post", "/projects/{project}/workflows/{name}/rename"),
    ("post", "/projects/{project}/workflows/{name}/copy"),
    ("post", "/projects/{project}/workflows/{name}/archive"),
    ("post", "/projects/{project}/workflows/{name}/unarchive"),
    ("get", "/projects/{project}/workflows/{name}/grid"),
    ("get", "/projects/{project}/workflows/{name}/days"),
    ("get", "/projects/{project}/drafts"),
    ("get", "/projects/{project}/workflows/{name}/draft"),
    ("put", "/projects/{project}/workflows/{name}/draft"),
    ("delete", "/projects/{project}/workflows/{name}/draft"),
    ("post", "/projects/{project}/workflows/{name}/draft/publish"),
    ("get", "/projects/{project}/workflows/{name}/layout"),
    ("put", "/projects/{project}/workflows/{name}/layout"),
    ("post", "/projects/{project}/workflows/{name}/validate"),
    ("post", "/projects/{project}/workflows/{name}/plan"),
    ("get", "/projects/{project}/dependency-graph"),
    ("get", "/projects/{project}/export"),
    ("post", "/projects/{project}/import"),
    ("get", "/projects/{project}/workflows/{name}/schedules"),
    ("get", "/schedules"),
    ("get", "/schedules/{schedule_id}/preview"),
    ("post", "/schedules/{schedule_id}/pause"),
    ("post", "/schedules/{schedule_id}/resume"),
    ("post", "/schedules/preview"),
    ("get", "/projects/{project}/calendars"),
    ("get", "/projects/{project}/calendars/{name}"),
    ("put", "/projects/{project}/calendars/{name}"),
    ("delete", "/projects/{project}/calendars/{name}"),
    ("get", "/projects/{project}/concurrency-groups"),
    ("get", "/projects/{project}/concurrency-groups/{name}"),
    ("put", "/projects/{project}/concurrency-groups/{name}"),
    ("delete", "/projects/{project}/concurrency-groups/{name}"),
    ("get", "/projects/{project}/alert-rules"),
    ("get", "/projects/{project}/alert-rules/{name}"),
    ("put", "/projects/{project}/alert-rules/{name}"),
    ("delete", "/projects/{project}/alert-rules/{name}"),
    ("get", "/projects/{project}/alert-receivers"),
    ("get", "/projects/{project}/alert-receivers/{name}"),
    ("put", "/projects/{project}/alert-receivers/{name}"),
    ("delete", "/projects/{project}/alert-receivers/{name}"),
    ("get", "/projects/{project}/alert-channels"),
    ("get", "/projects/{project}/alert-channels/{name}"),
    ("put", "/projects/{project}/alert-channels/{name}"),
    ("delete", "/projects/{project}/alert-channels/{name}"),
    ("get", "/alert-channel-kinds"),
    ("post", "/projects/{project}/alert-channels/{name}/tests"),
    ("get", "/projects/{project}/alerts"),
    ("get", "/projects/{project}/alerts/{alert_id}"),
    ("post", "/projects/{project}/alerts/{alert_id}/acknowledgement"),
    ("get", "/projects/{project}/alert-deliveries"),
    ("get", "/projects/{project}/alert-deliveries/{delivery_id}"),
    ("get", "/projects/{project}/alert-explanations"),
    ("post", "/projects/{project}/alert-previews"),
    ("get", "/projects/{project}/alert-silences"),
    ("post", "/projects/{project}/alert-silences"),
    ("delete", "/projects/{project}/alert-silences/{silence_id}"),
    ("post", "/commands"),
    ("post", "/bulk-schedules"),
    ("post", "/bulk-commands"),
    ("post", "/start-previews"),
    ("get", "/commands/{command_id}"),
    ("get", "/quarantine"),
    ("post", "/quarantine-retries"),
    ("post", "/quarantine-discards"),
    ("post", "/purges"),
    ("get", "/purges"),
    ("get", "/purges/{purge_id}"),
    ("get", "/stores"),
    ("post", "/backfills"),
    ("get", "/backfills"),
    ("get", "/backfills/{backfill_id}"),
    ("get", "/backfills/{backfill_id}/runs"),
    ("post", "/backfills/{backfill_id}/{request}"),
    ("get", "/instances"),
    ("get", "/instances/{instance_id}"),
    ("get", "/instances/{instance_id}/progress"),
    ("get", "/instances/{instance_id}/why"),
    ("patch", "/instances/{instance_id}/labels"),
    ("get", "/instances/{instance_id}/timeline"),
    ("get", "/instances/{instance_id}/comparison/{other_instance_id}"),
    ("get", "/instances/{instance_id}/log-search"),
    ("get", "/instance-counts"),
    ("get", "/today"),
    ("get", "/history"),
    ("get", "/insight/summary"),
    ("get", "/insight/workflows"),
    ("get", "/insight/tasks"),
    ("get", "/insight/failures"),
    ("get", "/insight/costs"),
    ("get", "/insight/load"),
    ("get", "/insight/schedule-minutes"),
    ("get", "/insight/rollups"),
    ("get", "/insight/rollup-rows"),
    ("get", "/instances/{instance_id}/baseline"),
    ("get", "/task-instance-counts"),
    ("get", "/task-instances/{task_instance_id}/rendered"),
    ("get", "/task-instances/{task_instance_id}/log/search"),
    ("get", "/task-instances"),
    ("get", "/task-instances/{task_instance_id}"),
    ("get", "/task-instances/{task_instance_id}/why"),
    ("get", "/task-instances/{task_instance_id}/log"),
    ("get", "/task-instances/{task_instance_id}/log/raw"),
    ("get", "/task-instances/{task_instance_id}/log/follow"),
    ("get", "/cluster"),
    ("get", "/masters"),
    ("get", "/workers"),
    ("get", "/worker-groups"),
    ("get", "/queue-entries"),
    ("get", "/partitions"),
    ("get", "/takeovers"),
    ("get", "/past-instances"),
    ("get", "/past-instances/{past_instance_id}"),
    ("get", "/past-instances/{past_instance_id}/attempts/{attempt_id}/log"),
    ("get", "/events"),
    ("get", "/task-types"),
    ("get", "/login"),
    ("post", "/login"),
    ("post", "/login/one-time"),
    ("post", "/sign-in-codes"),
    ("post", "/login/ldap"),
    ("post", "/login/code"),
    ("get", "/login/oidc/{provider}"),
    ("get", "/login/oidc/{provider}/callback"),
    ("get", "/login/oidc/{provider}/logout"),
    ("post", "/logout"),
    ("get", "/me"),
    ("put", "/me/password"),
    ("get", "/me/sessions"),
    ("delete", "/me/sessions/{session_id}"),
    ("get", "/me/tokens"),
    ("post", "/me/tokens"),
    ("delete", "/me/tokens/{token_id}"),
    ("get", "/users"),
    ("post", "/users"),
    ("get", "/users/{name}"),
    ("patch", "/users/{name}"),
    ("post", "/users/{name}/password-reset"),
    ("put", "/users/{name}/identity"),
    ("delete", "/users/{name}/identity"),
    ("get", "/users/{name}/tokens"),
    ("delete", "/users/{name}/tokens/{token_id}"),
    ("get", "/groups"),
    ("post", "/groups"),
    ("get", "/groups/{name}"),
    ("patch", "/groups/{name}"),
    ("delete", "/groups/{name}"),
    ("put", "/groups/{name}/members/{member}"),
    ("delete", "/groups/{name}/members/{member}"),
    ("get", "/projects/{project}/members"),
    ("get", "/projects/{project}/members/{kind}/{name}"),
    ("put", "/projects/{project}/members/{kind}/{name}"),
    ("delete", "/projects/{project}/members/{kind}/{name}"),
    ("get", "/projects/{project}/grants"),
    ("get", "/projects/{project}/grants/{taker}"),
    ("put", "/projects/{project}/grants/{taker}"),
    ("delete", "/projects/{project}/grants/{taker}"),
    ("get", "/projects/{project}/resource-grants"),
    ("get", "/projects/{project}/resource-grants/{taker}"),
    ("put", "/projects/{project}/resource-grants/{taker}"),
    ("delete", "/projects/{project}/resource-grants/{taker}"),
    ("get", "/projects/{project}/service-accounts"),
    ("post", "/projects/{project}/service-accounts"),
    ("delete", "/projects/{project}/service-accounts/{name}"),
    ("get", "/projects/{project}/service-accounts/{name}/tokens"),
    ("post", "/projects/{project}/service-accounts/{name}/tokens"),
    ("delete", "/projects/{project}/service-accounts/{name}/tokens/{token_id}"),
}


async def test_every_route_is_described(description: dict[str, Any]) -> None:
    found = {(method, path.removeprefix(PREFIX)) for path, method, _ in operations(description)}
    assert found == EXPECTED


async def test_every_operation_has_summary_example_and_problems(
    description: dict[str, Any],
) -> None:
    for path, method, operation in operations(description):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        statuses = operation["responses"].keys()
        assert "500" in statuses, where
        if path.endswith("/live") or "/login" in path:
            assert "security" not in operation, where
        else:
            assert {"401", "403", "422", "503"} <= statuses, where
            assert operation["security"] == [{"token": []}, {"session": []}], where
            assert operation["x-permission"] in set(Permission), where
        if "{" in path and method != "put":
            assert "404" in statuses, where
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            of_json = {"400", "415"} if "application/json" in content else set()
            assert {"413", *of_json} <= statuses, where
            for media in content.values():
                assert example_of(description, media) is not None, where
        for status, given in operation["responses"].items():
            response = resolve(description, given)
            if status in ("204", "303"):
                continue
            for media_type, media in response["content"].items():
                is_problem = not status.startswith("2") and (path, status) != READY
                assert (media_type == "application/problem+json") is is_problem, (where, status)
                assert example_of(description, media) is not None, (where, status)


async def test_every_parameter_is_described(description: dict[str, Any]) -> None:
    for path, method, operation in operations(description):
        for parameter in operation.get("parameters", []):
            text = parameter.get("description") or parameter["schema"].get("examples")
            assert text or parameter.get("example") or parameter["in"] == "path", (
                f"{method} {path}: {parameter['name']}"
            )


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for inner in value.values() for ref in _references(inner)]
    if isinstance(value, list):
        return [ref for inner in value for ref in _references(inner)]
    return []


async def test_references_lead_somewhere(description: dict[str, Any]) -> None:
    found = set(_references(description))
    assert "#/components/schemas/WorkflowSpec" in found
    for reference in found:
        assert resolve(description, {"$ref": reference})


class _Page(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses |= {value or "" for name, value in attributes if name in ("src", "href")}

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_the_page_for_people_shows_all_and_loads_nothing(
    api: Api, description: dict[str, Any]
) -> None:
    answer = await api.client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src" not in answer.headers["content-security-policy"]
    page = _Page()
    page.feed(answer.text)
    assert page.tags.isdisjoint({"script", "link", "img", "iframe"})
    assert page.addresses == {f"{PREFIX}/openapi.json"}
    for path, _, operation in operations(description):
        assert path in page.text
        assert operation["summary"] in page.text


async def test_others_are_answered_while_the_description_is_made(api: Api) -> None:
    asked = asyncio.create_task(api.client.get(f"{PREFIX}/openapi.json"))
    answered = 0
    while not asked.done():
        assert (await api.client.get(f"{PREFIX}/me")).status_code == 200
        answered += 1
    assert (await asked).status_code == 200
    assert answered > 3  # one waits for the task to begin, and one for it to end
