"""A definition reaches another project only if that one lets it: seen when it is published."""

from typing import Any

import pytest

from tests.integration.api.conftest import PREFIX, Api, definition, fields_of, problem_of

SUB = {"type": "SUB_WORKFLOW", "params": {"workflow": "x", "project": "theirs"}}
WAIT = {
    "type": "DEPENDENT",
    "params": {"when": {"workflow": "x", "project": "theirs", "date": "today"}},
}


async def publish(api: Api, task: dict[str, Any]) -> Any:
    await api.make("ours")
    body = definition(tasks=[{"name": "one", **task}])
    return await api.client.put(f"{PREFIX}/projects/ours/workflows/w", json=body)


async def give(api: Api, what: str, taker: str = "ours") -> int:
    answer = await api.client.put(f"{PREFIX}/projects/theirs/grants/{taker}", json={"what": what})
    return answer.status_code


@pytest.mark.parametrize(
    ("task", "least", "field"),
    [(SUB, "run", "tasks[0].params.project"), (WAIT, "see", "tasks[0].params.when")],
    ids=["SUB_WORKFLOW", "DEPENDENT"],
)
async def test_a_grant_is_needed_and_enough(
    api: Api, task: dict[str, Any], least: str, field: str
) -> None:
    missing = fields_of(problem_of(await publish(api, task), 422, "invalid-definition"))
    assert f"shoal grant set ours {least} --project theirs" in missing[field]
    await api.client.put(f"{PREFIX}/projects/theirs", json={"description": ""})
    hidden = fields_of(problem_of(await publish(api, task), 422, "invalid-definition"))
    assert hidden == missing  # whether there is such a project or not
    assert (await give(api, "see"), await give(api, least)) == (201, 200)
    assert (await publish(api, task)).status_code == 201
    listed = (await api.client.get(f"{PREFIX}/projects/theirs/grants")).json()["items"]
    assert [(one["project"], one["what"]) for one in listed] == [("ours", least)]
    gone = await api.client.delete(f"{PREFIX}/projects/theirs/grants/ours")
    assert gone.status_code == 204
    changed = {**task, "retries": 1}
    problem_of(await publish(api, changed), 422, "invalid-definition")


async def test_every_project_and_what_is_no_name(api: Api) -> None:
    await api.client.put(f"{PREFIX}/projects/theirs", json={"description": ""})
    assert await give(api, "run", "*") == 201
    assert (await publish(api, SUB)).status_code == 201
    assert await give(api, "everything") == 422
    assert await give(api, "run", "-x") == 422


async def test_files_of_another_project_are_named_as_far_as_it_shares_them(api: Api) -> None:
    await api.make("theirs")
    shell = {"type": "SHELL", "params": {"file": "theirs:lib/x.sh"}, "resources": ["theirs:${d}"]}
    missing = fields_of(problem_of(await publish(api, shell), 422, "invalid-definition"))
    assert "shoal grant files ours lib/x.sh --project theirs" in missing["tasks[0].params.file"]
    assert missing.keys() == {"tasks[0].params.file", "tasks[0].resources[0]"}
    place = f"{PREFIX}/projects/theirs/resource-grants/ours"
    other = await api.client.put(place, json={"paths": ["other/"]})
    assert other.status_code == 201
    left = fields_of(problem_of(await publish(api, shell), 422, "invalid-definition"))
    assert left.keys() == {"tasks[0].params.file"}  # what is rendered later is asked for then
    shared = await api.client.put(place, json={"paths": ["lib/", "lib/"]})
    assert (shared.status_code, shared.json()["paths"]) == (200, ["lib/"])
    assert (await publish(api, shell)).status_code == 201
    listed = (await api.client.get(place.removesuffix("/ours"))).json()["items"]
    assert listed == [shared.json()]
    assert (await api.client.delete(place)).status_code == 204
    problem_of(await api.client.get(place), 404, "not-found")
    problem_of(await publish(api, {**shell, "retries": 1}), 422, "invalid-definition")


async def test_what_no_path_can_be_is_not_shared(api: Api) -> None:
    await api.make("theirs")
    place = f"{PREFIX}/projects/theirs/resource-grants/ours"
    answer = await api.client.put(place, json={"paths": ["lib/", "../x", ""]})
    assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == {"paths[1]", "paths[2]"}
    assert (await api.client.put(place, json={"paths": []})).status_code == 422
