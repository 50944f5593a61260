"""Lists of workflows with what they did last and do next."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from shoal.core.runs.states import WorkflowState
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.views.runs import happened

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
_W = WorkflowState


async def listed(api: Api, **query: Any) -> Any:
    answer = await api.client.get(f"{PREFIX}/workflows", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(page: Any) -> list[str]:
    return [one["name"] for one in page["items"]]


async def some(api: Api) -> None:
    """Three workflows: one that has failed last, one that went well, one that has never run."""
    await api.publish("failing")
    await happened(api, "failing", at=NOON)
    await happened(api, "failing", at=NOON + DAY, state=_W.FAILED)
    await api.publish("good", schedules=[{"cron": "0 0 6 * * ?"}, {"cron": "0 0 7 1 1 ? 2199"}])
    await happened(api, "good", at=NOON, state=_W.FAILED)
    await happened(api, "good", at=NOON + 2 * DAY)
    await api.publish("new", schedules=[{"cron": "0 0 6 1 1 ? 2150"}])


async def test_last_runs_and_next_fires_of_each(api: Api) -> None:
    await some(api)
    failing, good, new = (await listed(api, runs=1))["items"]
    assert [one["state"] for one in failing["last_runs"]] == ["FAILED"]
    assert failing["next_fire_at"] is None
    assert [one["state"] for one in good["last_runs"]] == ["SUCCEEDED"]
    assert datetime.fromisoformat(good["next_fire_at"]).hour == 6
    assert (new["last_runs"], new["next_fire_at"]) == ([], "2150-01-01T06:00:00Z")
    _, good, _ = (await listed(api, runs=14))["items"]
    assert [one["state"] for one in good["last_runs"]] == ["SUCCEEDED", "FAILED"]
    assert [one["last_runs"] for one in (await listed(api))["items"]] == [[], [], []]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("name", ["failing", "good", "new"]),
        ("-last_run", ["good", "failing", "new"]),
        ("next_fire", ["good", "new", "failing"]),
        ("failing", ["failing", "good", "new"]),
    ],
)
async def test_orders_and_their_pages(api: Api, sort: str, expected: list[str]) -> None:
    await some(api)
    assert names(await listed(api, sort=sort)) == expected
    seen: list[str] = []
    query: dict[str, Any] = {"sort": sort, "limit": 1}
    while True:
        page = await listed(api, **query)
        seen += names(page)
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert seen == expected


async def test_those_that_failed_last_come_before_names(api: Api) -> None:
    for name in ("a", "b"):
        await api.publish(name)
    await happened(api, "b", at=NOON, state=_W.FAILED)
    assert names(await listed(api, sort="failing")) == ["b", "a"]


async def test_filter_by_the_state_of_the_last_run(api: Api) -> None:
    await some(api)
    assert names(await listed(api, state="FAILED")) == ["failing"]
    assert names(await listed(api, state=["FAILED", "SUCCEEDED"], sort="-last_run")) == [
        "good",
        "failing",
    ]
    assert names(await listed(api, state="SUCCEEDED", search="go")) == ["good"]


async def test_a_cursor_belongs_to_its_order(api: Api) -> None:
    await some(api)
    page = await listed(api, sort="failing", limit=1)
    query = {"sort": "-last_run", "cursor": page["next"]}
    answer = await api.client.get(f"{PREFIX}/workflows", params=query)
    assert "cursor" in fields_of(problem_of(answer, 422, "invalid-request"))


async def test_a_page_asks_the_database_as_often_for_many_as_for_few(api: Api) -> None:
    await some(api)
    few = await _statements(api)
    for number in range(10):
        await api.publish(f"more-{number}")
        await happened(api, f"more-{number}", at=NOON)
    assert await _statements(api) == few


async def _statements(api: Api) -> int:
    """Return how many statements a page with last runs costs."""
    found: set[str] = set()  # one that took long is asked again in a thread

    def note(_: object, __: object, statement: str, *___: object) -> None:
        found.add(statement)

    async with api.services.store.unit_of_work(read_only=True) as uow:
        await uow.connection.run_sync(
            lambda connection: event.listen(connection, "before_cursor_execute", note)
        )
        items = await uow.workflow_list.page()
        ids = [one.id for one in items]
        assert len(await uow.recent.runs(ids, 14)) > 1
        assert await uow.recent.next_fires(ids)
        await uow.connection.run_sync(
            lambda connection: event.remove(connection, "before_cursor_execute", note)
        )
    return len(found)
