"""Administrators keep worker groups and environments for some projects."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.integration.api.access.people import account, token
from tests.integration.api.conftest import PREFIX, Api, definition, fields_of, problem_of


async def restrict(api: Api, what: str, name: str, *projects: str) -> httpx.Response:
    path = f"{PREFIX}/restrictions/{what}/{name}"
    return await api.client.put(path, json={"projects": [*projects]})


async def publish(api: Api, project: str, **fields: Any) -> httpx.Response:
    await api.make(project)
    content = definition(
        tasks=[{"name": "t", "type": "SHELL", "params": {"script": "1"}, **fields}]
    )
    return await api.client.put(f"{PREFIX}/projects/{project}/workflows/w", json=content)


async def test_restrictions_are_set_listed_and_removed(api: Api) -> None:
    assert (await restrict(api, "worker-group", "gpu", "ml", "lab", "ml")).status_code == 201
    assert (await restrict(api, "environment", "gpu")).status_code == 201
    again = await restrict(api, "worker-group", "gpu", "ml")
    assert (again.status_code, again.json()["projects"]) == (200, ["ml"])
    first = (await api.client.get(f"{PREFIX}/restrictions?limit=1")).json()
    rest = (await api.client.get(f"{PREFIX}/restrictions?cursor={first['next']}")).json()
    listed = [(one["kind"], one["projects"]) for one in first["items"] + rest["items"]]
    assert listed == [("environment", []), ("worker-group", ["ml"])]
    one = f"{PREFIX}/restrictions/worker-group/gpu"
    assert (await api.client.get(one)).json() == again.json()
    assert (await api.client.delete(one)).status_code == 204
    for method in ("GET", "DELETE"):
        problem_of(await api.client.request(method, one), 404, "not-found")


@pytest.mark.parametrize(("what", "name"), [("workers", "gpu"), ("worker-group", "-x")])
async def test_what_nothing_can_be_called_is_refused(api: Api, what: str, name: str) -> None:
    assert (await restrict(api, what, name, "ml")).status_code == 422


async def test_projects_are_names(api: Api) -> None:
    assert (await restrict(api, "worker-group", "gpu", "*")).status_code == 422


async def test_definition_with_a_worker_group_of_others_is_refused_where_it_says_so(
    api: Api,
) -> None:
    await restrict(api, "worker-group", "gpu", "ml")
    refused = problem_of(await publish(api, "ours", worker_group="gpu"), 422, "invalid-definition")
    assert "restrict worker-group gpu --add ours" in fields_of(refused)["tasks[0].worker_group"]
    text = "tasks:\n- name: t\n  type: SHELL\n  worker_group: gpu\n  params: {script: '1'}\n"
    path = f"{PREFIX}/projects/ours/workflows/w"
    checked = await api.client.post(f"{path}/validate", json={"text": text})
    [problem] = checked.json()["problems"]
    assert (problem["field"], problem["line"]) == ("tasks[0].worker_group", 4)
    planned = await api.client.post(f"{path}/plan", json={"text": text})
    assert "tasks[0].worker_group" in fields_of(problem_of(planned, 422, "invalid-definition"))
    assert (await publish(api, "ours", worker_group="cpu")).status_code == 201
    assert (await publish(api, "ml", worker_group="gpu")).status_code == 201


async def test_environment_of_others_is_answered_as_one_that_there_is_not(api: Api) -> None:
    hidden, missing = f"{PREFIX}/environments/lake", f"{PREFIX}/environments/none-such"
    await api.client.put(hidden, json={"setup": "true"})
    await api.client.put(f"{PREFIX}/environments/open", json={"setup": "true"})
    await restrict(api, "environment", "lake", "ml")
    for project in ("ml", "ours"):
        await api.make(project)
    texts: dict[str, str] = {}

    async def sign_up(uow: Any) -> None:
        now = datetime.now(UTC)
        for name, project in (("ada", "ml"), ("bob", "ours")):
            texts[name] = (
                await token(uow, await account(uow, name, now, {project: "owner"}), now)
            )[1]

    await api.store(sign_up)

    async def ask(who: str, path: str) -> httpx.Response:
        return await api.client.get(path, headers={"Authorization": f"Bearer {texts[who]}"})

    assert (await ask("ada", hidden)).status_code == 200
    seen, unseen = await ask("bob", hidden), await ask("bob", missing)
    assert (seen.status_code, unseen.status_code) == (404, 404)
    assert seen.json()["detail"] == unseen.json()["detail"].replace("none-such", "lake")
    for who, names in (("ada", ["lake", "open"]), ("bob", ["open"])):
        listed = (await ask(who, f"{PREFIX}/environments")).json()["items"]
        assert [one["name"] for one in listed] == names
    said = []
    for name in ("lake", "none-such"):
        refused = await publish(api, "ours", environment=name)
        fields = fields_of(problem_of(refused, 422, "invalid-definition"))
        said.append({path: text.replace(name, "NAME") for path, text in fields.items()})
    assert said[0] == said[1]
    assert (await publish(api, "ml", environment="lake")).status_code == 201


async def test_nobody_tries_a_data_source_from_workers_of_others(api: Api) -> None:
    await api.make("ours")
    source = f"{PREFIX}/projects/ours/data-sources/wh"
    await api.client.put(source, json={"kind": "duckdb", "database": ":memory:"})
    await restrict(api, "worker-group", "gpu", "ml")
    refused = await api.client.post(f"{source}/test", json={"worker_group": "gpu"})
    said = fields_of(problem_of(refused, 422, "invalid-request"))
    assert "restrict worker-group gpu --add ours" in said["worker_group"]
    tried = await api.client.post(f"{source}/test", json={"worker_group": "cpu"})
    problem_of(tried, 503, "no-worker")
