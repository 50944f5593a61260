"""The history: events, commands and takeovers in the order of time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.decide import decide
from shoal.core.runs.events import StopRequested
from shoal.core.runs.states import WorkflowState
from shoal.sql.repositories.overview import history
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.runs.attempts import save
from tests.integration.api.views.runs import happened

NOW = datetime.now(UTC)


async def listed(api: Api, **query: Any) -> Any:
    answer = await api.client.get(f"{PREFIX}/history", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def every(api: Api, **query: Any) -> list[Any]:
    """All pages of the history."""
    found: list[Any] = []
    for _ in range(200):
        page = await listed(api, **query)
        found += page["items"]
        if page["next"] is None:
            return found
        query["cursor"] = page["next"]
    raise AssertionError("the list does not end")


def kinds(items: list[Any]) -> list[str]:
    return [one["kind"] for one in items]


async def takeover(api: Api, partition: int, epoch: int) -> None:
    await api.store(lambda uow: uow.partitions.raise_epochs({partition: epoch}, f"master-{epoch}"))


async def test_a_run_with_what_was_asked_of_it_and_its_takeovers(api: Api) -> None:
    await api.publish()
    run = await happened(api, "daily", at=NOW, state=WorkflowState.RUNNING)
    await happened(api, "daily", at=NOW)  # another one
    await api.command(type="STOP", instance_id=run.id)
    await takeover(api, run.partition, 7)
    await takeover(api, (run.partition + 1) % 4, 8)
    found = await every(api, instance_id=run.id)
    assert kinds(found) == [
        "partition.takeover",
        "command",
        "instance.state",
        "instance.state",
        "command",
    ]
    assert found[0]["data"]["owner"] == "master-7"
    assert [(one["data"]["type"], one["by"]) for one in (found[1], found[4])] == [
        ("STOP", "break-glass"),
        ("START", "break-glass"),
    ]
    assert {one["instance_id"] for one in found[1:]} == {run.id}
    assert kinds(await every(api, instance_id=run.id, kind=["command"])) == ["command", "command"]


async def test_all_of_it_by_pages_in_the_order_of_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.publish()
    for number in range(6):
        await happened(api, "daily", at=NOW)
        await takeover(api, 1, number + 1)
    whole = await every(api, limit=500)
    assert [one["at"] for one in whole] == sorted((one["at"] for one in whole), reverse=True)
    assert len(whole) == 1 + 6 * (2 + 1 + 1)  # published; run: two states, command, takeover
    for looked_through in (5_000, 3, 1):
        monkeypatch.setattr(history, "LOOKED_THROUGH", looked_through)
        for limit in (1, 4):
            assert await every(api, limit=limit) == whole
    monkeypatch.setattr(history, "LOOKED_THROUGH", 2)
    middle = whole[11]["at"]
    assert await every(api, until=middle, limit=3) == [one for one in whole if one["at"] < middle]
    assert await every(api, since=middle, limit=3) == [one for one in whole if one["at"] >= middle]


async def test_filters(api: Api) -> None:
    for project in ("p", "q"):
        await api.publish("daily", project)
        await api.publish("other", project)
        await happened(api, "daily", project, at=NOW)
    assert {one["project"] for one in await every(api, project="q")} == {"q"}
    some = await every(api, project="q", workflow="daily")
    assert kinds(some) == ["instance.state", "instance.state", "command", "workflow.published"]
    assert {one["data"]["workflow"] for one in some} == {"daily"}
    published = await every(api, kind=["workflow.published", "backfill.state"])
    assert kinds(published) == ["workflow.published"] * 4
    to_come = (NOW + timedelta(days=1)).isoformat()
    assert await every(api, since=to_come) == []


async def test_clocks_that_differ_lose_and_repeat_nothing(api: Api) -> None:
    await api.publish()
    for _ in range(4):
        await happened(api, "daily", at=NOW)
    async with api.services.store.unit_of_work() as uow:
        # Every other event is from a master whose clock is ten minutes behind.
        statement = "UPDATE event SET at = at - 600000000 WHERE id % 2 = 0"
        await uow.connection.execute(text(statement))
        await uow.commit()
    whole = await every(api, limit=500)
    for limit in (1, 2, 5):
        seen = [(one["kind"], one["id"]) for one in await every(api, limit=limit)]
        assert sorted(seen) == sorted((one["kind"], one["id"]) for one in whole)


async def test_what_there_is_not(api: Api) -> None:
    answer = await api.client.get(f"{PREFIX}/history", params={"kind": "task.lost"})
    assert "kind[0]" in fields_of(problem_of(answer, 422, "invalid-request"))
    assert await every(api, instance_id=899_999_999) == []


async def test_reasons_of_events_have_codes(api: Api) -> None:
    run = await api.run()
    now = api.services.store.clock()
    decision = decide(run, StopRequested(now, None))
    await save(api, run, decision)
    events = await every(api, instance_id=run.id, kind="instance.state")
    said = [one["data"].get("reason_said") for one in events]
    assert {"code": "reason.stopped", "arguments": {}, "text": "stopped by request"} in said
    assert None in said
