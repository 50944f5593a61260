"""Projects, definitions and versions."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from shoal.core.runs.run import Decision
from shoal.core.runs.states import WorkflowState
from shoal.sql import UnitOfWork
from tests.integration.api.conftest import PREFIX, Api, definition, fields_of, problem_of

WORKFLOW = f"{PREFIX}/projects/p/workflows/daily"


async def test_publishing_makes_a_version_only_if_something_changed(api: Api) -> None:
    first = await api.client.put(WORKFLOW, json=definition())
    assert first.status_code == 201
    assert first.json()["version"] == 1
    assert first.json()["created"] is True
    assert {(c["op"], c["path"]) for c in first.json()["diff"]} >= {
        ("added", "tasks[fetch]"),
        ("added", "tasks[report]"),
    }
    again = await api.client.put(WORKFLOW, json=definition(project="p", name="daily"))
    assert again.status_code == 200
    assert again.json() == {**first.json(), "created": False, "diff": []}


async def test_the_diff_names_each_changed_value(api: Api) -> None:
    await api.publish()
    changed = definition(description="new")
    changed["tasks"][1]["retries"] = 2
    changed["tasks"][0]["params"]["script"] = "echo other"
    changed["tasks"].append({"name": "z", "type": "SHELL", "params": {"script": "true"}})
    answer = (await api.client.put(WORKFLOW, json=changed)).json()
    assert answer["version"] == 2
    found = {c["path"]: (c["op"], c["before"], c["after"]) for c in answer["diff"]}
    assert found["description"] == ("added", None, "new")
    assert found["tasks[report].retries"] == ("added", None, 2)
    assert found["tasks[fetch].params.script"] == ("changed", "echo fetch", "echo other")
    assert found["tasks[z]"][0] == "added"
    assert len(found) == 4


async def test_a_dry_run_says_what_would_happen_and_stores_nothing(api: Api) -> None:
    place = f"{PREFIX}/projects/new/workflows/daily"  # who may make the project may try first
    answer = await api.client.put(f"{place}?dry_run=true", json=definition())
    assert answer.status_code == 200
    assert answer.json()["created"] is True
    assert answer.json()["dry_run"] is True
    assert answer.json()["version"] == 1
    problem_of(await api.client.get(place), 404, "not-found")
    problem_of(await api.client.get(f"{PREFIX}/projects/new"), 404, "not-found")
    problem_of(await api.client.put(place, json=definition()), 404, "not-found")
    await api.publish()
    changed = definition(description="new")
    answer = await api.client.put(f"{WORKFLOW}?dry_run=true", json=changed)
    assert (answer.json()["version"], answer.json()["created"]) == (2, True)
    assert [c["path"] for c in answer.json()["diff"]] == ["description"]
    assert (await api.client.get(WORKFLOW)).json()["version"] == 1


async def test_two_publishers_at_once_make_one_version(api: Api) -> None:
    answers = await asyncio.gather(*(api.client.put(WORKFLOW, json=definition()) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    versions = await api.client.get(f"{WORKFLOW}/versions")
    assert [item["version"] for item in versions.json()["items"]] == [1]


async def test_the_body_must_not_contradict_the_path(api: Api) -> None:
    answer = await api.client.put(WORKFLOW, json=definition(name="other", project=7))
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert found.keys() == {"project", "name"}
    assert "the path says 'daily'" in found["name"]


async def test_versions_stay_readable(api: Api) -> None:
    await api.publish()
    await api.publish(description="second")
    newest = (await api.client.get(WORKFLOW)).json()
    assert newest["version"] == 2
    assert newest["tasks"] == 2
    assert newest["definition"]["description"] == "second"
    first = (await api.client.get(f"{WORKFLOW}/versions/1")).json()
    assert "description" not in first["definition"]
    assert first["definition"]["tasks"] == definition()["tasks"]
    page = (await api.client.get(f"{WORKFLOW}/versions?limit=1")).json()
    assert [item["version"] for item in page["items"]] == [2]
    page = (await api.client.get(f"{WORKFLOW}/versions?cursor={page['next']}")).json()
    assert [item["version"] for item in page["items"]] == [1]
    assert page["next"] is None
    problem_of(await api.client.get(f"{WORKFLOW}/versions/3"), 404, "not-found")
    problem_of(await api.client.get(f"{WORKFLOW}/versions/0"), 422, "invalid-request")


async def test_a_definition_can_be_sent_back_as_it_was_read(api: Api) -> None:
    await api.publish(
        parameters={"day": {"default": "2013-01-15", "type": "date"}, "n": 3},
        schedules=[{"cron": "0 0 6 * * ?", "timezone": "Europe/Berlin"}],
        priority="HIGH",
    )
    read = (await api.client.get(WORKFLOW)).json()["definition"]
    again = await api.client.put(WORKFLOW, json=read)
    assert (again.status_code, again.json()["created"]) == (200, False)


async def test_lists_come_in_pages_and_can_be_searched(api: Api) -> None:
    for project, name in (("a", "x"), ("a", "y"), ("b", "x")):
        await api.publish(name, project, description=f"of {project}{name}")
    seen: list[tuple[str, str]] = []
    cursor = ""
    while True:
        page = (await api.client.get(f"{PREFIX}/workflows?limit=2{cursor}")).json()
        seen += [(item["project"], item["name"]) for item in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == [("a", "x"), ("a", "y"), ("b", "x")]

    listed = (await api.client.get(f"{PREFIX}/workflows?limit=1&project=a")).json()
    for other in ("", "&project=b", "&project=a&search=x", "&project=a&archived=any"):
        query = f"limit=1&cursor={listed['next']}{other}"
        answer = await api.client.get(f"{PREFIX}/workflows?{query}")
        problem = problem_of(answer, 422, "invalid-request")
        assert "with these filters" in fields_of(problem)["cursor"]

    async def names(query: str) -> Any:
        answer = (await api.client.get(f"{PREFIX}/workflows?{query}")).json()
        return [(item["project"], item["name"]) for item in answer["items"]]

    assert await names("project=b") == [("b", "x")]
    assert await names("search=OF A") == [("a", "x"), ("a", "y")]
    assert await names("search=%25") == []
    assert await names("project=none") == []


async def test_projects(api: Api) -> None:
    created = await api.client.put(f"{PREFIX}/projects/a", json={"description": "one"})
    assert created.status_code == 201
    changed = await api.client.put(f"{PREFIX}/projects/a", json={"description": "two"})
    assert changed.status_code == 200
    await api.publish("daily", "a")
    await api.publish("daily", "q")
    shown = (await api.client.get(f"{PREFIX}/projects/a")).json()
    assert (shown["description"], shown["workflows"]) == ("two", 1)
    assert shown["created_at"].endswith("Z")
    page = (await api.client.get(f"{PREFIX}/projects?limit=1")).json()
    assert [item["name"] for item in page["items"]] == ["a"]
    page = (await api.client.get(f"{PREFIX}/projects?cursor={page['next']}")).json()
    assert ([item["name"] for item in page["items"]], page["next"]) == (["default", "p", "q"], None)
    unknown = await api.client.put(f"{PREFIX}/projects/a", json={"desc": "x"})
    assert fields_of(problem_of(unknown, 422, "invalid-request")) == {
        "desc": "is not a known field"
    }


async def test_a_workflow_with_open_instances_cannot_be_deleted(api: Api) -> None:
    run = await api.run()
    problem_of(await api.client.delete(WORKFLOW), 409, "open-instances")

    async def finish(uow: UnitOfWork) -> None:
        now = datetime.now(UTC)
        await uow.instances.save(
            [
                (
                    run,
                    Decision(
                        state=WorkflowState.STOPPED, previous=WorkflowState.QUEUED, finished_at=now
                    ),
                )
            ],
            now,
        )

    await api.store(finish)
    deleted = await api.client.delete(WORKFLOW)
    assert (deleted.status_code, deleted.content) == (204, b"")
    problem_of(await api.client.get(WORKFLOW), 404, "not-found")
    problem_of(await api.client.delete(WORKFLOW), 404, "not-found")
    shown = await api.client.get(f"{PREFIX}/instances/{run.id}")
    assert shown.json()["workflow"] == "daily"


async def test_a_thousand_tasks(api: Api) -> None:
    tasks: list[dict[str, Any]] = [
        {
            "name": f"t{n}",
            "type": "SHELL",
            "params": {"script": "true"},
            "depends_on": [f"t{n - 1}"] if n else [],
        }
        for n in range(1000)
    ]
    answer = await api.client.put(WORKFLOW, json={"tasks": tasks})
    assert answer.status_code == 201
    tasks[500]["retries"] = 1
    answer = await api.client.put(WORKFLOW, json={"tasks": tasks})
    assert [c["path"] for c in answer.json()["diff"]] == ["tasks[t500].retries"]


async def test_workflow_that_runs_itself_is_published_with_a_warning(api: Api) -> None:
    """The cycle is named, also one through other workflows."""

    def running(name: str, kind: str = "SUB_WORKFLOW") -> dict[str, Any]:
        params: dict[str, Any] = {"workflow": name}
        if kind == "MAP":
            params |= {"items": ["1"], "parameter": "item"}
        return {"tasks": [{"name": "s", "type": kind, "params": params}]}

    async def warnings(name: str, definition: dict[str, Any]) -> list[str]:
        answer = await api.client.put(f"{PREFIX}/projects/p/workflows/{name}", json=definition)
        assert answer.status_code in (200, 201), answer.text
        return list(answer.json()["warnings"])

    assert await warnings("a", running("b")) == []
    assert await warnings("b", running("c", "MAP")) == []
    [text] = await warnings("c", running("a"))
    assert text.startswith("the workflow runs itself: c -> a -> b -> c;")
    assert await warnings("c", running("leaf")) == []
