"""No edit is lost: ETags, If-Match, If-None-Match, and projects that nothing makes on the way."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import pytest_asyncio

from shoal.api.settings import ApiSettings
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from tests.integration.api.access.people import account, browser, session
from tests.integration.api.conftest import PREFIX, Api, fields_of, in_process, opened, problem_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

P = f"{PREFIX}/projects/p"
PASSWORD = "correct horse battery"
SOURCE = {"kind": "mariadb", "host": "db", "port": 1, "user": "u"}
#: What can be changed: where, two states of it, and whether it can be deleted.
MUTABLE: dict[str, tuple[str, Any, Any, bool]] = {
    "project": (P, {"description": "one"}, {"description": "two"}, False),
    "calendar": (f"{P}/calendars/c", {"days": ["2026-01-01"]}, {"days": []}, True),
    "concurrency group": (f"{P}/concurrency-groups/g", {"slots": 1}, {"slots": 2}, True),
    "parameter": (f"{P}/parameters/x", {"value": "1"}, {"value": "2"}, True),
    "secret": (f"{P}/secrets/s", {"value": "first"}, {"value": "second"}, True),
    "data source": (f"{P}/data-sources/d", SOURCE, {**SOURCE, "port": 2}, True),
    "environment": (f"{PREFIX}/environments/e", {"setup": "true"}, {"setup": "false"}, True),
    "member": (f"{P}/members/user/ada", {"role": "reader"}, {"role": "owner"}, True),
    "shared files": (f"{P}/resource-grants/q", {"paths": ["a"]}, {"paths": ["a", "b/"]}, True),
    "restriction": (
        f"{PREFIX}/restrictions/worker-group/g",
        {"projects": ["a"]},
        {"projects": ["a", "b"]},
        True,
    ),
    "grant": (f"{P}/grants/q", {"what": "see"}, {"what": "run"}, True),
}
EVERY = pytest.mark.parametrize("kind", MUTABLE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(module_cluster: ClusterSettings) -> AsyncIterator[Api]:
    """The API of this module, with a user."""
    create_key(module_cluster.secrets_key_file)
    async with opened(module_cluster, ApiSettings(port=0)) as services, in_process(services) as it:
        await it.store(lambda uow: account(uow, "ada", datetime.now(UTC)))
        yield it


async def made(api: Api, kind: str) -> tuple[str, str]:
    """Make one in its first state; return where it is and its ETag."""
    path, first, _, _ = MUTABLE[kind]
    answer = await api.client.put(path, json=first)
    assert answer.status_code in (200, 201), answer.text
    return path, answer.headers["etag"]


@EVERY
async def test_second_of_two_editors_is_told_what_the_first_has_done(api: Api, kind: str) -> None:
    path, seen = await made(api, kind)
    _, first, second, can_be_deleted = MUTABLE[kind]
    assert (await api.client.get(path)).headers["etag"] == seen
    mine = {"If-Match": seen}
    changed = await api.client.put(path, json=second, headers=mine)
    assert changed.status_code == 200
    assert changed.headers["etag"] != seen
    lost = await api.client.put(path, json=first, headers=mine)
    document = problem_of(lost, 412, "precondition-failed")
    assert lost.headers["etag"] == changed.headers["etag"]
    shown = (await api.client.get(path)).json()
    assert document["current"].items() <= shown.items()
    if kind == "secret":
        assert document["changes"] == []
        assert "first" not in lost.text
        assert "second" not in lost.text
    else:
        [(field, value)] = [one for one in first.items() if second.get(one[0]) != one[1]]
        change = {"op": "changed", "path": field, "before": second[field], "after": value}
        assert document["changes"] == [change]
    if can_be_deleted:
        problem_of(await api.client.delete(path, headers=mine), 412, "precondition-failed")
        newest = {"If-Match": f'"other", {changed.headers["etag"]}'}
        assert (await api.client.delete(path, headers=newest)).status_code == 204
        gone = await api.client.put(path, json=first, headers=newest)
        assert problem_of(gone, 412, "precondition-failed")["current"] is None


@EVERY
async def test_what_is_to_be_new_replaces_nothing(api: Api, kind: str) -> None:
    path, etag = await made(api, kind)
    _, _, second, can_be_deleted = MUTABLE[kind]
    new = {"If-None-Match": "*"}
    refused = await api.client.put(path, json=second, headers=new)
    assert "already" in problem_of(refused, 412, "precondition-failed")["detail"]
    assert (await api.client.get(path)).headers["etag"] == etag
    if can_be_deleted:
        await api.client.delete(path, headers={"If-Match": "*"})
        assert (await api.client.put(path, json=second, headers=new)).status_code == 201


async def test_of_many_editors_at_once_one_is_heard(api: Api) -> None:
    for kind in MUTABLE:
        path, seen = await made(api, kind)
        second = MUTABLE[kind][2]
        asking = [api.client.put(path, json=second, headers={"If-Match": seen}) for _ in range(8)]
        found = sorted([one.status_code for one in await asyncio.gather(*asking)])
        assert found == [200] + [412] * 7, kind


async def test_browser_has_to_say_what_it_has_seen(api: Api) -> None:
    path, etag = await made(api, "concurrency group")
    texts: list[str] = []

    async def sign_in(uow: Any) -> None:
        now = datetime.now(UTC)
        boss = await account(uow, "boss", now, is_admin=True)
        texts.append((await session(uow, boss, now))[1])

    await api.store(sign_in)
    async with httpx.AsyncClient(
        transport=api.client._transport, base_url="http://localhost", headers=browser(texts[0])
    ) as page:
        blind = await page.put(path, json={"slots": 9})
        problem_of(blind, 428, "precondition-required")
        assert blind.headers["etag"] == etag
        problem_of(await page.delete(path), 428, "precondition-required")
        seen = {"If-Match": etag}
        assert (await page.put(path, json={"slots": 9}, headers=seen)).status_code == 200
        new = f"{P}/concurrency-groups/new"
        assert (await page.put(new, json={"slots": 1})).status_code == 201  # overwrites nothing
        assert (await page.delete(new, headers={"If-Match": "*"})).status_code == 204


@pytest.mark.parametrize("tag", ["x", '"x', "", '*, "x"', "W/x"])
async def test_header_that_is_no_etag_is_refused(api: Api, tag: str) -> None:
    answer = await api.client.put(P, json={}, headers={"If-Match": tag})
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert "must be * or ETags" in found["If-Match"]


async def test_weak_etag_is_not_that_of_a_state(api: Api) -> None:
    path, etag = await made(api, "parameter")
    weak = await api.client.put(path, json={"value": "3"}, headers={"If-Match": f"W/{etag}"})
    problem_of(weak, 412, "precondition-failed")


async def test_what_changes_by_itself_is_no_edit(api: Api) -> None:
    path, etag = await made(api, "project")
    await api.publish()
    assert (await api.client.get(path)).json()["workflows"] == 1
    assert (await api.client.get(path)).headers["etag"] == etag


@EVERY
async def test_nothing_but_a_project_itself_makes_a_project(api: Api, kind: str) -> None:
    path = MUTABLE[kind][0].replace("/projects/p", "/projects/elsewhere")
    if path.endswith("/elsewhere") or "/projects/" not in path:
        return
    answer = await api.client.put(path, json=MUTABLE[kind][1])
    detail = problem_of(answer, 404, "not-found")["detail"]
    assert detail == "there is no project elsewhere"
    problem_of(await api.client.get(f"{PREFIX}/projects/elsewhere"), 404, "not-found")


async def test_neither_a_definition_nor_a_file_makes_a_project(api: Api) -> None:
    for path, body in (
        ("workflows/w", {"json": {"tasks": []}}),
        ("resource-contents/x", {"content": b"x"}),
    ):
        answer = await api.client.put(f"{PREFIX}/projects/elsewhere/{path}", **body)
        assert answer.status_code in (404, 422), answer.text
        problem_of(await api.client.get(f"{PREFIX}/projects/elsewhere"), 404, "not-found")


#: What is changed without a condition, and why no edit is lost by it: see docs/api.md.
WITHOUT = {
    ("PUT", "/groups/{name}/members/{member}"): "each member is put and deleted by itself",
    ("DELETE", "/groups/{name}/members/{member}"): "each member is put and deleted by itself",
    ("PATCH", "/instances/{instance_id}/labels"): "each label is set and removed by itself",
    (
        "DELETE",
        "/projects/{project}/alert-silences/{silence_id}",
    ): "never changes, can only end",
    ("PUT", "/me/password"): "the present password is its condition",
    ("DELETE", "/me/sessions/{session_id}"): "never changes, can only end",
    ("DELETE", "/me/tokens/{token_id}"): "never changes, can only end",
    ("DELETE", "/users/{name}/tokens/{token_id}"): "never changes, can only end",
    ("DELETE", "/projects/{project}/service-accounts/{name}"): "never changes, can only end",
    (
        "DELETE",
        "/projects/{project}/service-accounts/{name}/tokens/{token_id}",
    ): "never changes, can only end",
}


async def test_whatever_else_is_replaced_or_deleted_takes_a_condition(api: Api) -> None:
    description = (await api.client.get(f"{PREFIX}/openapi.json")).json()
    without = set()
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            headers = {
                one["name"].lower()
                for one in operation.get("parameters", [])
                if one["in"] == "header"
            }
            if method in ("put", "patch", "delete") and "if-match" not in headers:
                without.add((method.upper(), path.removeprefix(PREFIX)))
    assert without == WITHOUT.keys()


async def test_editors_of_alerts_are_told_what_others_have_done(api: Api) -> None:
    await made(api, "project")
    hook = {"kind": "webhook", "options": {"url": "https://hook.example/"}}
    people = {"members": [{"targets": [{"channel": "hook"}]}]}
    rule = {"triggers": ["run.failed"], "receivers": ["people"]}
    for path, first in (
        (f"{P}/alert-channels/hook", hook),
        (f"{P}/alert-receivers/people", people),
        (f"{P}/alert-rules/night", rule),
    ):
        seen = (await api.client.put(path, json=first)).headers["etag"]
        theirs = {**first, "description": "theirs"}
        assert (await api.client.put(path, json=theirs)).status_code == 200
        lost = await api.client.put(path, json=first, headers={"If-Match": seen})
        document = problem_of(lost, 412, "precondition-failed")
        assert document["current"]["spec"]["description"] == "theirs"
        change = {"op": "changed", "path": "spec.description", "before": "theirs", "after": ""}
        assert document["changes"] == [change]
        new = await api.client.put(path, json=first, headers={"If-None-Match": "*"})
        assert "already" in problem_of(new, 412, "precondition-failed")["detail"]
        kept = await api.client.delete(path, headers={"If-Match": seen})
        problem_of(kept, 412, "precondition-failed")
