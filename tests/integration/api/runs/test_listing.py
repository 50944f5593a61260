"""Lists of runs over REST: filters, orders, cursors, counts, labels."""

from typing import Any

import pytest

from shoal.core.runs.filters import SortKey
from shoal.sql.errors import TooManyToSort
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.runs.attempts import fail_and_retry


async def ids(api: Api, path: str) -> list[int]:
    answer = await api.client.get(f"{PREFIX}{path}")
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["items"]]


async def test_filters_combine(api: Api) -> None:
    first, second = await api.run("daily"), await api.run("hourly")
    await fail_and_retry(api, first)
    for run, team in ((first, "a"), (second, "b")):
        change = {"labels": {"team": team, "draft": ""}}
        answer = await api.client.patch(f"{PREFIX}/instances/{run.id}/labels", json=change)
        assert answer.json() == {"labels": {"draft": "", "team": team}}
    assert await ids(api, "/instances?label=team=a&label=draft") == [first.id]
    assert await ids(api, "/instances?label=team=a&state=QUEUED") == []
    assert await ids(api, "/instances?text=HOUR&priority=MEDIUM&version=1") == [second.id]
    assert await ids(api, "/instances?started_since=2026-01-01T00:00:00Z") == [first.id]
    assert await ids(api, "/instances?longest=3600") == [first.id]
    assert await ids(api, "/instances?sort=-started_at") == [first.id, second.id]
    assert await ids(api, "/instances?sort=logical_time&project=p&workflow=daily") == [first.id]
    failed = await ids(api, f"/task-instances?instance_id={first.id}&text=exit&type=SHELL")
    assert len(failed) == 1
    assert await ids(api, "/task-instances?state=FAILED&label=team=a") == failed
    assert (
        await ids(api, "/task-instances?task=fetch&finished_since=2026-01-01T00:00:00Z") == failed
    )
    shown = (await api.client.get(f"{PREFIX}/instances/{first.id}")).json()
    assert (shown["labels"], shown["schedule_id"]) == ({"draft": "", "team": "a"}, None)
    counts = (await api.client.get(f"{PREFIX}/instance-counts?project=p")).json()
    assert counts == {
        "total": {"count": 2, "is_more": False},
        "states": {
            "QUEUED": {"count": 1, "is_more": False},
            "RUNNING": {"count": 1, "is_more": False},
        },
    }
    counts = (await api.client.get(f"{PREFIX}/task-instance-counts?state=FAILED")).json()
    assert counts["total"]["count"] == 1


async def test_cursor_belongs_to_its_filters_and_order(api: Api) -> None:
    for _ in range(3):
        await api.run()
    for path, query in (
        ("/instances", "limit=1&label=x"),
        ("/instances", "limit=1&sort=created_at"),
        ("/instances", "limit=1&sort=priority"),
        ("/instances", "limit=1&sort=-finished_at&project=p"),
        ("/task-instances", "limit=1&sort=-duration"),
    ):
        cursor = (await api.client.get(f"{PREFIX}{path}?{query}")).json()["next"]
        if cursor is None:
            continue
        assert len(await ids(api, f"{path}?{query}&cursor={cursor}")) == 1
        for other in (f"{path}?limit=1", f"{path}?{query}&text=x"):
            answer = await api.client.get(f"{PREFIX}{other}&cursor={cursor}")
            assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == {"cursor"}
    cursor = (await api.client.get(f"{PREFIX}/instances?limit=1")).json()["next"]
    assert cursor is not None


async def test_what_no_list_can_do_is_refused_with_advice(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for query, field, advice in (
        ("sort=logical_time&workflow=daily", "sort", "project and workflow"),
        ("label=Team", "label", "KEY=VALUE"),
        ("label=a=1&label=a=2", "label", "two values"),
        ("text=", "text", "at least 1"),
        ("sort=name", "sort", "created_at"),
        ("shortest=-1", "shortest", "greater"),
        ("labels=a", "labels", "label"),
    ):
        answer = await api.client.get(f"{PREFIX}/instances?{query}")
        assert advice in fields_of(problem_of(answer, 422, "invalid-request"))[field]

    async def too_many(*_: Any) -> None:
        raise TooManyToSort(SortKey.DURATION, 5_000)

    monkeypatch.setattr("shoal.sql.repositories.runs.instances.Instances.search", too_many)
    answer = await api.client.get(f"{PREFIX}/instances?sort=duration")
    assert "narrow them, with since" in problem_of(answer, 422, "too-many-to-sort")["detail"]


async def test_labels_of_a_start_are_checked_and_kept(api: Api) -> None:
    await api.publish(labels={"team": "flights"})
    started = await api.command(
        type="START", project="p", workflow="daily", labels={"env": "prod", "n": 1}
    )
    assert started["labels"] == {"env": "prod", "n": "1"}
    for labels in ({"Bad Key": "x"}, {"a": "x" * 64}, {f"k{n}": "" for n in range(33)}):
        body = {"type": "START", "project": "p", "workflow": "daily", "labels": labels}
        answer = await api.client.post(f"{PREFIX}/commands", json=body)
        assert "labels" in str(fields_of(problem_of(answer, 422, "invalid-request")))
    run = await api.started("daily", "p")
    for changes in ({"Bad Key": "x"}, {"a": "x\ny"}, {}, {"a": 1}):
        answer = await api.client.patch(
            f"{PREFIX}/instances/{run.id}/labels", json={"labels": changes}
        )
        assert "labels" in str(fields_of(problem_of(answer, 422, "invalid-request")))
