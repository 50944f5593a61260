"""What waits for workers: in the order in which it is claimed, without names that are hidden."""

from typing import Any

from shoal.coordination.queue.entry import QueueEntry
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, problem_of

QUEUE = f"{PREFIX}/queue-entries"


async def waiting(api: Api, project: str, priority: int, group: str = "default") -> int:
    """Make a run whose first task waits in the queue of a group; return the task's id."""
    run = await api.run(project=project)
    async with api.services.store.unit_of_work(read_only=True) as uow:
        task = (await uow.tasks.of_instance(run.id))[0]
    await api.services.cluster.queue.put([QueueEntry(group, priority, run.id, 1, task.id, 0)])
    return task.id


async def pages(api: Api, query: str = "", **options: Any) -> list[dict[str, Any]]:
    """Read the list to its end, two items at a time."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        answer = await api.client.get(f"{QUEUE}?limit=2{query}{cursor}", **options)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["items"]) <= 2
        found += answer.json()["items"]
        if answer.json()["next"] is None:
            return found
        cursor = f"&cursor={answer.json()['next']}"


async def test_what_waits_is_listed_as_it_will_be_claimed(api: Api) -> None:
    assert await pages(api) == []
    late = [await waiting(api, "p", 2) for _ in range(3)]
    first = await waiting(api, "p", 0)
    other = await waiting(api, "p", 4, "gpu")
    found = await pages(api)
    assert [one["task_instance_id"] for one in found] == [first, *late, other]
    assert [one["position"] for one in found] == [1, 2, 3, 4, 1]
    assert [one["group"] for one in found] == [*["default"] * 4, "gpu"]
    assert [one["priority"] for one in found] == ["HIGHEST", *["MEDIUM"] * 3, "LOWEST"]
    named = {name: found[0][name] for name in ("project", "workflow", "task", "task_priority")}
    assert named == {
        "project": "p",
        "workflow": "daily",
        "task": "fetch",
        "task_priority": "HIGH",
    }
    assert await pages(api, "&group=gpu") == found[4:]
    assert await pages(api, "&group=nobody") == []
    [claim] = await api.services.cluster.queue.claim("default", 1, "w")
    assert claim.task_instance_id == first
    assert [one["position"] for one in await pages(api, "&group=default")] == [1, 2, 3]


async def test_what_is_hidden_counts_and_says_no_names(api: Api) -> None:
    hidden = await waiting(api, "q", 1)
    seen = await waiting(api, "p", 2)
    now = api.services.store.clock()
    async with api.services.store.unit_of_work() as uow:
        _, text = await token(uow, await account(uow, "rea", now, {"p": "reader"}), now)
        await uow.commit()
    found = await pages(api, headers=bearer(text))
    assert [one["task_instance_id"] for one in found] == [None, seen]
    assert [one["position"] for one in found] == [1, 2]
    names = ("project", "workflow", "task", "workflow_instance_id", "attempt", "queued_at")
    assert [found[0][name] for name in names] == [None] * len(names)
    assert [one["task_instance_id"] for one in await pages(api)] == [hidden, seen]


async def test_an_entry_without_a_row_is_shown_as_it_waits(api: Api) -> None:
    await api.services.cluster.queue.put([QueueEntry("default", 2, 1, 2, 99_999, 0)])
    [one] = await pages(api)
    assert (one["position"], one["task"], one["priority"]) == (1, None, "MEDIUM")


async def test_cursor_of_another_list_is_refused(api: Api) -> None:
    for _ in range(2):
        await waiting(api, "p", 2)
    cursor = (await api.client.get(f"{QUEUE}?limit=1")).json()["next"]
    answer = await api.client.get(f"{QUEUE}?group=default&cursor={cursor}")
    problem_of(answer, 422, "invalid-request")
