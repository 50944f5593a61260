"""Drafts: kept as typed, checked with lines, planned, published; and no edit is ever lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, definition, fields_of, problem_of

WORKFLOW = f"{PREFIX}/projects/p/workflows/daily"
DRAFT = f"{WORKFLOW}/draft"
YAML = """\
# what we do each day
schedules: [{cron: 0 0 6 * * ?}]
tasks:
  - {name: fetch, type: SHELL, params: {script: ./fetch.sh}}
"""


@pytest.fixture
async def editors(api: Api) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Two writers of the project p."""
    await api.client.put(f"{PREFIX}/projects/p", json={"description": ""})
    now, clients = api.services.store.clock(), {}
    async with api.services.store.unit_of_work() as uow:
        for name in ("ada", "bob"):
            made = await account(uow, name, now, {"p": "writer"})
            _, text = await token(uow, made, now)
            clients[name] = httpx.AsyncClient(
                transport=api.client._transport, base_url="http://localhost", headers=bearer(text)
            )
        await uow.commit()
    yield clients
    for client in clients.values():
        await client.aclose()


async def save(client: httpx.AsyncClient, text: str, tag: str | None = None, **more: Any) -> Any:
    headers = {} if tag is None else {"If-Match": tag}
    return await client.put(DRAFT, json={"text": text, **more}, headers=headers)


async def test_a_draft_is_kept_as_it_was_typed_and_never_run(
    api: Api, editors: dict[str, httpx.AsyncClient]
) -> None:
    ada = editors["ada"]
    problem_of(await ada.get(DRAFT), 404, "not-found")
    typed = "tasks:\n\t- {no YAML at all\n"
    first = await save(ada, typed)
    assert first.status_code == 201, first.text
    read = await ada.get(DRAFT)
    assert read.json()["text"] == typed
    assert (read.json()["base_version"], read.json()["editor"]) == (0, "ada")
    assert read.headers["ETag"] == first.headers["ETag"]
    problem_of(await ada.get(WORKFLOW), 404, "not-found")
    problem_of(await save(ada, YAML), 428, "precondition-required")
    stale = await save(ada, YAML, '"another"')
    assert stale.status_code == 412
    assert stale.json()["current"]["text"] == typed
    second = await save(ada, YAML, first.headers["ETag"])
    assert (second.status_code, second.json()["revision"]) == (200, 2)
    assert (await save(ada, typed, first.headers["ETag"])).status_code == 412
    only_new = await ada.put(DRAFT, json={"text": typed}, headers={"If-None-Match": "*"})
    assert only_new.status_code == 412
    assert (await ada.get(DRAFT)).json()["text"] == YAML
    problem_of(await ada.delete(DRAFT), 428, "precondition-required")
    gone = await ada.delete(DRAFT, headers={"If-Match": second.headers["ETag"]})
    assert gone.status_code == 204
    problem_of(await ada.get(DRAFT), 404, "not-found")


async def test_two_windows_that_save_at_once_never_lose_an_edit(
    editors: dict[str, httpx.AsyncClient],
) -> None:
    ada = editors["ada"]
    tag = (await save(ada, "")).headers["ETag"]
    answers = await asyncio.gather(*(save(ada, f"# {n}", tag) for n in range(6)))
    assert sorted(one.status_code for one in answers) == [200] + [412] * 5
    [kept] = [one.json()["text"] for one in answers if one.status_code == 200]
    assert (await ada.get(DRAFT)).json()["text"] == kept
    assert {one.json()["current"]["text"] for one in answers if one.status_code == 412} == {kept}


async def test_two_editors_of_one_workflow_lose_nothing(
    api: Api, editors: dict[str, httpx.AsyncClient]
) -> None:
    await api.publish()
    ada, bob = editors["ada"], editors["bob"]
    tags = {}
    for name, client in editors.items():
        text = YAML.replace("fetch", f"of_{name}")
        tags[name] = (await save(client, text)).headers["ETag"]
    drafts = (await ada.get(f"{PREFIX}/projects/p/drafts?name=daily")).json()["items"]
    assert [(one["editor"], one["base_version"]) for one in drafts] == [("ada", 1), ("bob", 1)]
    assert "of_bob" in (await ada.get(f"{DRAFT}?editor=bob")).json()["text"]

    first = await ada.post(f"{DRAFT}/publish", headers={"If-Match": tags["ada"]})
    assert (first.status_code, first.json()["version"]) == (201, 2)
    problem_of(await ada.get(DRAFT), 404, "not-found")
    open_ = (await bob.get(DRAFT)).json()
    assert (open_["base_version"], open_["newest_version"]) == (1, 2)

    second = await bob.post(f"{DRAFT}/publish", headers={"If-Match": tags["bob"]})
    assert second.status_code == 412, second.text
    told = second.json()
    assert told["current"]["definition"]["tasks"][0]["name"] == "of_ada"
    assert "tasks[of_ada]" in {change["path"] for change in told["changes"]}
    assert (await api.client.get(WORKFLOW)).json()["version"] == 2
    kept = await bob.get(DRAFT)
    assert "of_bob" in kept.json()["text"]  # and is still there

    merged = kept.json()["text"] + "  - {name: of_ada, type: SHELL, params: {script: x}}\n"
    saved = await save(bob, merged, kept.headers["ETag"], base_version=2)
    third = await bob.post(f"{DRAFT}/publish", headers={"If-Match": saved.headers["ETag"]})
    assert (third.status_code, third.json()["version"]) == (201, 3)
    found = (await api.client.get(f"{WORKFLOW}/versions/3")).json()
    assert found["source"] == merged
    assert found["published_by"] == "bob"
    assert [one["name"] for one in found["definition"]["tasks"]] == ["of_bob", "of_ada"]


async def test_publishing_with_an_old_etag_tells_what_has_changed(api: Api) -> None:
    await api.publish()
    seen = (await api.client.get(WORKFLOW)).headers["ETag"]
    mine = definition(description="mine")
    theirs = definition(description="theirs")
    one = await api.client.put(WORKFLOW, json=theirs, headers={"If-Match": seen})
    assert (one.status_code, one.headers["ETag"] != seen) == (201, True)
    other = await api.client.put(WORKFLOW, json=mine, headers={"If-Match": seen})
    assert other.status_code == 412
    assert other.json()["current"]["version"] == 2
    assert other.json()["changes"] == [
        {"op": "changed", "path": "definition.description", "before": "theirs", "after": "mine"}
    ]
    again = await api.client.put(WORKFLOW, json=mine, headers={"If-None-Match": "*"})
    assert again.status_code == 412
    new = {"If-None-Match": "*"}
    made = await api.client.put(f"{PREFIX}/projects/p/workflows/new", json=mine, headers=new)
    assert made.status_code == 201
    gone = {"If-Match": seen}
    missing = await api.client.put(f"{PREFIX}/projects/p/workflows/no", json=mine, headers=gone)
    assert missing.status_code == 412
    assert (await api.client.get(WORKFLOW)).json()["definition"]["description"] == "theirs"


async def test_a_draft_that_is_wrong_is_not_published(
    editors: dict[str, httpx.AsyncClient],
) -> None:
    ada = editors["ada"]
    await save(ada, "tasks:\n  - {name: a}\n")
    refused = problem_of(await ada.post(f"{DRAFT}/publish"), 422, "invalid-definition")
    assert refused["errors"][0]["line"] == 2
    assert (await ada.get(DRAFT)).status_code == 200
    ahead = await save(ada, YAML, "*", base_version=3)
    assert "base_version" in fields_of(problem_of(ahead, 422, "invalid-request"))


async def test_validation_says_all_that_is_wrong_with_lines(api: Api) -> None:
    await api.client.put(f"{PREFIX}/projects/p", json={"description": ""})

    async def validate(body: Any) -> Any:
        answer = await api.client.post(f"{WORKFLOW}/validate", json=body)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["valid"] is not bool(found["problems"])
        return {one["field"]: (one["line"], one["message"]) for one in found["problems"]}

    assert await validate({"text": YAML}) == {}
    assert await validate({"definition": definition()}) == {}
    found = await validate(
        {
            "text": "name: other\ntasks:\n  - {name: a, type: SHEL}\n"
            "  - {name: b, type: SHELL, params: {script: x}, depends_on: [c], retries: 1.5}\n"
        }
    )
    assert {field: line for field, (line, _) in found.items()} == {
        "name": 1,
        "tasks[0].type": 3,
        "tasks[1].retries": 4,
        "tasks[1].depends_on[0]": 4,
    }
    named = await validate(
        {
            "text": "schedules:\n  - cron: 0 0 6 * * ?\n    calendar: none\nenvironment: nowhere\n"
            "tasks:\n  - name: a\n    type: SHELL\n    params: {script: x}\n"
            "    concurrency_group: nothing\n"
            "  - name: b\n    type: SUB_WORKFLOW\n    params:\n      workflow: w\n"
            "      project: theirs\n"
        }
    )
    assert {field: line for field, (line, _) in named.items()} == {
        "schedules[0].calendar": 3,
        "environment": 4,
        "tasks[0].concurrency_group": 9,
        "tasks[1].params.project": 14,
    }
    for text, line in (("a: [", 1), ("", 1), ("{tasks: []}\n---\n{tasks: []}", 1)):
        [(found_line, _)] = (await validate({"text": text})).values()
        assert found_line == line, text
    both = await api.client.post(f"{WORKFLOW}/validate", json={"text": "", "definition": {}})
    problem_of(both, 422, "invalid-request")
    problem_of(await api.client.get(WORKFLOW), 404, "not-found")


async def test_a_plan_says_what_publishing_would_do_and_does_nothing(api: Api) -> None:
    cron = {"cron": "0 0 6 * * ?", "timezone": "Europe/Berlin"}
    await api.publish(schedules=[cron, {"cron": "0 0 7 * * ?"}])
    sub = {"name": "s", "type": "SUB_WORKFLOW", "params": {"workflow": "daily"}}
    await api.publish("above", tasks=[sub])
    await api.started("daily", "p")
    changed = definition(schedules=[cron, {"cron": "0 0 8 * * ?"}, {"cron": "0 0 9 * * ?"}])
    changed["tasks"][1]["retries"] = 2
    changed["tasks"].append(
        {"name": "z", "type": "SHELL", "params": {"script": "x"}, "depends_on": ["fetch"]}
    )
    before = (await api.client.get(f"{WORKFLOW}/schedules")).json()
    answer = await api.client.post(f"{WORKFLOW}/plan", json={"definition": changed})
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert (plan["base"], plan["version"], plan["created"]) == (1, 2, True)
    found = plan["comparison"]
    assert (found["tasks_added"], found["tasks_removed"]) == (["z"], [])
    assert found["tasks_changed"][0]["task"] == "report"
    assert found["edges_added"] == [{"source": "fetch", "target": "z"}]
    assert "+    retries: 2" in found["text"]
    schedules = plan["schedules"]
    assert [one["change"] for one in schedules] == ["kept", "changed", "added"]
    assert schedules[1]["before"]["cron"] == "0 0 7 * * ?"
    assert schedules[1]["after"]["cron"] == "0 0 8 * * ?"
    assert len(schedules[2]["after"]["next_fire_times"]) == 5
    hangs = plan["hanging"]
    assert (hangs["open_runs"], hangs["schedules"]) == (1, 2)
    assert [(one["workflow"], one["task"]) for one in hangs["downstream"]] == [("above", "s")]
    assert (await api.client.get(f"{WORKFLOW}/schedules")).json() == before
    assert (await api.client.get(WORKFLOW)).json()["version"] == 1
    done = await api.client.put(WORKFLOW, json=changed)
    assert done.json()["digest"] == plan["digest"]

    text = "tasks:\n  - {name: fetch, type: SHELL, params: {script: echo fetch}}\n"
    new = await api.client.post(f"{PREFIX}/projects/p/workflows/new/plan", json={"text": text})
    assert (new.json()["base"], new.json()["comparison"]["tasks_added"]) == (0, ["fetch"])
    problem_of(await api.client.get(f"{PREFIX}/projects/p/workflows/new"), 404, "not-found")
