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
