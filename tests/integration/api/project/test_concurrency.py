"""Concurrency groups over REST: slots, who has them, who waits."""

from datetime import UTC, datetime
from typing import Any

from shoal.core.decide import decide
from shoal.core.runs.events import Begun
from shoal.core.runs.run import Run
from shoal.sql import UnitOfWork
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of

GROUPS = f"{PREFIX}/projects/p/concurrency-groups"
TASKS = [
    {"name": "a", "type": "SHELL", "params": {"script": "true"}, "concurrency_group": "gpu"},
]


async def _put(api: Api, name: str, slots: object) -> Any:
    answer = await api.client.put(f"{GROUPS}/{name}", json={"slots": slots, "description": "x"})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


async def _waiting(api: Api) -> Run:
    """A run whose task waits for a slot: of the workflow's first version."""
    run = await api.run("grouped")
    decision = decide(run, Begun(datetime.now(UTC)))
    run.apply(decision)

    async def write(uow: UnitOfWork) -> None:
        await uow.instances.save([(run, decision)], datetime.now(UTC))

    await api.store(write)
    return run


async def test_group_is_made_changed_listed_and_deleted(api: Api) -> None:
    created = await api.client.put(f"{GROUPS}/gpu", json={"slots": 2})
    assert created.status_code == 201
    assert (created.json()["slots"], created.json()["taken"], created.json()["waiting"]) == (
        2,
        0,
        0,
    )
    assert (await _put(api, "gpu", 5))["slots"] == 5
    await _put(api, "cpu", 0)
    page = (await api.client.get(f"{GROUPS}?limit=1")).json()
    assert [one["name"] for one in page["items"]] == ["cpu"]
    page = (await api.client.get(f"{GROUPS}?cursor={page['next']}")).json()
    assert ([one["name"] for one in page["items"]], page["next"]) == (["gpu"], None)
    for bad in (-1, "many", None, 10**9):
        refused = await api.client.put(f"{GROUPS}/gpu", json={"slots": bad})
        assert "slots" in fields_of(problem_of(refused, 422, "invalid-request"))
    assert (await api.client.delete(f"{GROUPS}/cpu")).status_code == 204
    problem_of(await api.client.get(f"{GROUPS}/cpu"), 404, "not-found")
    problem_of(await api.client.delete(f"{GROUPS}/cpu"), 404, "not-found")


async def test_definition_with_an_unknown_group_is_refused(api: Api) -> None:
    answer = await api.client.put(f"{PREFIX}/projects/p/workflows/w", json={"tasks": TASKS})
    found = fields_of(problem_of(answer, 422, "invalid-definition"))
    assert "no concurrency group 'gpu'" in found["tasks[0].concurrency_group"]


async def test_holders_and_waiters_are_shown_and_why_speaks_of_them(api: Api) -> None:
    await _put(api, "gpu", 1)
    await api.publish("grouped", tasks=TASKS, parameters={})
    first, second = [await _waiting(api) for _ in range(2)]
    ids = [run.attempts["a"].id for run in (first, second)]

    async def give(uow: UnitOfWork) -> None:
        await uow.slots.give("p/gpu", datetime.now(UTC))

    await api.store(give)
    shown = (await api.client.get(f"{GROUPS}/gpu")).json()
    assert (shown["slots"], shown["taken"], shown["waiting"]) == (1, 1, 1)
    assert [one["task_instance_id"] for one in shown["holders"]] == ids[:1]
    [waiter] = shown["waiters"]
    assert waiter == {
        "task_instance_id": ids[1],
        "workflow_instance_id": second.id,
        "workflow": "grouped",
        "task": "a",
        "attempt": 1,
        "state": "BLOCKED",
        "granted_at": None,
    }
    third = await _waiting(api)
    path = f"{PREFIX}/task-instances/{third.attempts['a'].id}/why"
    found = (await api.client.get(path)).json()["findings"]
    texts = [one["text"] for one in found if one["layer"] == "concurrency"]
    assert texts == [
        "1 of 1 slots of concurrency group 'gpu' are taken, it is number 2 of 2 that wait",
        f"task a of grouped, instance {first.id}, has one",
    ]
    refused = await api.client.delete(f"{GROUPS}/gpu")
    text = problem_of(refused, 409, "concurrency-group-in-use")["detail"]
    assert "3 tasks have slots of the concurrency group p/gpu or wait" in text
    await api.publish("grouped", tasks=TASKS, parameters={})
    refused = await api.client.delete(f"{GROUPS}/gpu")
    text = problem_of(refused, 409, "concurrency-group-in-use")["detail"]
    assert "used by the workflows grouped;" in text
