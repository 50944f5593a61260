"""Views over days: what they add up, what is exact, and what a percentile of a window is."""

from datetime import date, timedelta
from typing import Any

import pytest

from shoal.sql import Database
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.support.insight import rollups
from tests.support.insight.rollups import CLUSTER, DAY, cost, failure, task_day, workflow_day

P, Q = ("p", "daily"), ("p", "hourly")
VIEWS = ("summary", "workflows", "tasks?project=p&workflow=daily", "failures", "costs", "load")


async def get(api: Api, path: str, **query: Any) -> Any:
    answer = await api.client.get(f"{PREFIX}/{path}", params=query or None)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def database(api: Api) -> Database:
    return api.services.store.database


def days_before(number: int) -> date:
    return DAY - timedelta(days=number)


@pytest.mark.parametrize("view", VIEWS)
async def test_without_results_a_view_is_empty_and_says_so(api: Api, view: str) -> None:
    found = await get(api, f"insight/{view}")
    assert [found[name] for name in ("first", "last", "before_first", "until")] == [None] * 4
    assert found["days"] == found["before_days"] == 0
    for name in ("items", "daily", "groups", "workers", "forecast"):
        assert found.get(name, []) == []
    assert found.get("next") is None


async def test_without_results_schedules_and_rollups_are_empty(api: Api) -> None:
    found = await get(api, "insight/schedule-minutes")
    assert found == {"until": None, "minutes": [], "moves": []}
    assert (await get(api, "insight/rollups"))["items"] == []
    rows = await get(api, "insight/rollup-rows", job="costs", day="2026-01-31")
    assert rows["items"] == []


async def test_totals_are_of_each_day_of_the_window_and_of_the_one_before(
    api: Api, database: Database
) -> None:
    for number, runs in ((0, 4), (1, 2), (2, 8), (3, 1), (4, 99)):
        row = workflow_day(runs, failed=runs // 2, late=runs // 4)
        blocks = {P: [row], Q: [workflow_day(1)]}
        await rollups.store(database, "workflow_days", days_before(number), blocks)
        tasks = {P: [task_day("a", runs, retries=1), task_day("b", runs)]}
        await rollups.store(database, "task_days", days_before(number), tasks)
    query = {"from": "2026-01-30", "to": "2026-01-31"}
    found = await get(api, "insight/summary", **query)
    assert (found["first"], found["last"]) == ("2026-01-30", "2026-01-31")
    assert (found["before_first"], found["before_last"]) == ("2026-01-28", "2026-01-29")
    assert (found["days"], found["before_days"], found["until"]) == (2, 2, "2026-01-31")
    assert [(one["day"], one["runs"]) for one in found["daily"]] == [
        ("2026-01-30", 3),
        ("2026-01-31", 5),
    ]
    total, before = found["total"], found["before"]
    assert (total["runs"], total["failed"], total["late"]) == (8, 3, 1)
    assert total["failure_rate"] == 3 / 8
    assert total["by_trigger"]["schedule"] == 8
    assert (total["attempts"], total["retries"], total["retry_rate"]) == (12, 2, 2 / 12)
    assert (total["busy_s"], total["cpu_s"]) == (360.0, 240.0)
    assert (before["runs"], before["attempts"]) == (11, 18)
    only = await get(api, "insight/summary", workflow="hourly", **query)
    assert only["total"]["runs"] == 2
    assert only["total"]["busy_s"] is None


async def test_percentile_of_a_window_is_weighted_by_the_runs_of_its_days(
    api: Api, database: Database
) -> None:
    """100 runs of 60 s on one day and one of 600 s on another are not 330 s."""
    many = workflow_day(100, 60.0, duration_p95=90.0, duration_max=120.0)
    one = workflow_day(1, 600.0)
    none = workflow_day(0, None)
    for number, row in enumerate((many, one, none)):
        await rollups.store(database, "workflow_days", days_before(number), {P: [row]})
    found = await get(api, "insight/workflows", **{"from": "2026-01-29"})
    [shown] = found["items"]
    now = shown["now"]
    assert now["runs"] == 101
    assert now["duration_p50_s"] == pytest.approx((100 * 60 + 600) / 101)
    assert now["duration_p95_s"] == pytest.approx((100 * 90 + 600) / 101)
    assert now["duration_max_s"] == 600.0
    assert [day["duration_p50_s"] for day in shown["daily"]] == [None, 600.0, 60.0]
    exact = await get(api, "insight/workflows", **{"from": "2026-01-30", "to": "2026-01-30"})
    assert exact["items"][0]["now"]["duration_p50_s"] == 600.0
    # The percentile of tasks is weighted by their attempts.
    rows = [task_day("a", 3, wait_p50=1.0), task_day("b", 1, wait_p50=9.0)]
    await rollups.store(database, "task_days", DAY, {P: rows})
    again = await get(api, "insight/workflows")
    assert again["items"][0]["now"]["wait_p50_s"] == 3.0


async def test_workflows_are_sorted_by_what_is_asked_for(api: Api, database: Database) -> None:
    names = {name: ("p", name) for name in ("steady", "slower", "waits", "fails", "late", "new")}
    before = {name: [workflow_day(2, 100.0)] for key, name in names.items() if key != "new"}
    await rollups.store(database, "workflow_days", days_before(1), before)
    rows = {
        "steady": workflow_day(2, 100.0),
        "slower": workflow_day(2, 150.0),
        "waits": workflow_day(2, 90.0, admission_mean=60.0),
        "fails": workflow_day(2, 100.0, failed=2),
        "late": workflow_day(2, 100.0, late=1),
        "new": workflow_day(2, 500.0),
    }
    now = {names[name]: [row] for name, row in rows.items()}
    await rollups.store(database, "workflow_days", DAY, now)
    await rollups.store(database, "costs", DAY, {names["new"]: [cost(slot_s=9.0)]})
    query = {"from": "2026-01-31"}

    async def order(sort: str) -> list[str]:
        found = await get(api, "insight/workflows", sort=sort, **query)
        return [one["workflow"] for one in found["items"]]

    assert await order("slower") == ["slower", "fails", "late", "steady", "waits", "new"]
    assert (await order("waits"))[0] == "waits"
    assert (await order("failures"))[0] == "fails"
    assert (await order("late"))[0] == "late"
    assert (await order("cost"))[0] == "new"
    [slower, *_, new] = (await get(api, "insight/workflows", **query))["items"]
    assert (slower["duration_change_s"], slower["duration_ratio"]) == (50.0, 1.5)
    assert (new["duration_change_s"], new["duration_ratio"]) == (None, None)
    assert new["before"]["runs"] == 0
    assert new["cost"]["slot_s"] == 9.0
    bad = await api.client.get(f"{PREFIX}/insight/workflows?sort=colour")
    problem_of(bad, 422, "invalid-request")


async def test_list_goes_on_where_its_page_ended(api: Api, database: Database) -> None:
    blocks = {("p", f"w{number}"): [workflow_day(1, float(number))] for number in range(7)}
    await rollups.store(database, "workflow_days", DAY, blocks)
    seen, cursor = [], None
    for _ in range(10):
        query = {"limit": 3} | ({} if cursor is None else {"cursor": cursor})
        found = await get(api, "insight/workflows", **query)
        seen += [one["workflow"] for one in found["items"]]
        cursor = found["next"]
        if cursor is None:
            break
    assert seen == [f"w{number}" for number in range(7)]
    first = await get(api, "insight/workflows", limit=3)
    query = {"limit": 3, "cursor": first["next"], "sort": "late"}
    other = await api.client.get(f"{PREFIX}/insight/workflows", params=query)
    problem_of(other, 422, "invalid-request")


async def test_tasks_of_a_workflow_have_their_path_and_their_flapping(
    api: Api, database: Database
) -> None:
    await rollups.stock(database, "p")
    await rollups.store(database, "task_days", days_before(28), {P: [task_day(duration_p50=20.0)]})
    row = rollups.EVERY["critical_days"][0]
    more = {**row, "runs": 3, "runs_of_day": 4, "gain_sum_s": 90.0, "gain_max_s": 60.0}
    await rollups.store(database, "critical_days", days_before(1), {P: [more]})
    found = await get(api, "insight/tasks", project="p", workflow="daily")
    [task] = found["items"]
    assert (task["task"], task["type"], task["now"]["attempts"]) == ("fetch", "SHELL", 1)
    assert task["duration_change_s"] == 10.0
    path = task["critical"]
    assert (path["runs"], path["runs_of_days"], path["share"]) == (4, 5, 0.8)
    assert (path["gain_sum_s"], path["gain_mean_s"], path["gain_max_s"]) == (120.0, 30.0, 60.0)
    assert task["flapping"]["changes"] == 3
    assert [day["day"] for day in task["daily"]] == ["2026-01-31"]
    for query in ({}, {"project": "p"}, {"workflow": "daily"}):
        answer = await api.client.get(f"{PREFIX}/insight/tasks", params=query)
        assert fields_of(problem_of(answer, 422, "invalid-request"))


async def test_failures_of_one_cause_are_one_group_across_workflows(
    api: Api, database: Database
) -> None:
    newer = failure("load", count_day=5, last_seen="2026-01-31T09:00:00.000000Z", sample="newer")
    await rollups.store(
        database, "failures", DAY, {P: [failure(count_day=2), failure("b", "f2")], Q: [newer]}
    )
    await rollups.store(database, "failures", days_before(1), {P: [failure(count_day=4)]})
    found = await get(api, "insight/failures")
    assert found["total"] == 12
    first, second = found["items"]
    assert (first["fingerprint"], first["count"], first["workflows"]) == ("f1", 11, 2)
    assert first["sample"] == "newer"
    assert first["by_day"] == [
        {"day": "2026-01-30", "count": 4},
        {"day": "2026-01-31", "count": 7},
    ]
    assert [(one["workflow"], one["task"], one["count"]) for one in first["where"]] == [
        ("daily", "fetch", 6),
        ("hourly", "load", 5),
    ]
    assert first["first_seen"] == "2026-01-02T03:04:05Z"
    assert second["count"] == 1


async def test_costs_are_added_up_by_what_is_asked_for(api: Api, database: Database) -> None:
    rows = [cost(slot_s=30.0), cost("load", 60.0), cost(slot_s=30.0, label="team", value="x")]
    await rollups.store(database, "costs", DAY, {P: rows, ("q", "w"): [cost(slot_s=10.0)]})
    await rollups.store(database, "costs", days_before(1), {P: [cost(slot_s=5.0)]})
    query = {"from": "2026-01-31"}

    async def shown(**more: Any) -> Any:
        found = await get(api, "insight/costs", **query, **more)
        names = ("project", "workflow", "task", "label", "value")
        return found, {
            tuple(one[name] for name in names if one[name] is not None): one["now"]["slot_s"]
            for one in found["items"]
        }

    found, by_workflow = await shown()
    assert (found["total"]["slot_s"], found["before"]["slot_s"]) == (100.0, 5.0)
    assert by_workflow == {("p", "daily"): 90.0, ("q", "w"): 10.0}
    assert [one["share"] for one in found["items"]] == [0.9, 0.1]
    assert (await shown(by="project"))[1] == {("p",): 90.0, ("q",): 10.0}
    assert (await shown(by="label"))[1] == {("team", "x"): 30.0}
    by_task = (await shown(by="task", project="p"))[1]
    assert by_task == {("p", "daily", "load"): 60.0, ("p", "daily", "fetch"): 30.0}
    answer = await api.client.get(f"{PREFIX}/insight/costs?by=task")
    assert "project" in fields_of(problem_of(answer, 422, "invalid-request"))


async def test_load_is_by_hour_of_the_week_and_counts_quiet_hours(
    api: Api, database: Database
) -> None:
    await rollups.stock_cluster(database)
    row = {**rollups.OF_CLUSTER["concurrency_hours"][0], "running_mean": 2.0, "running_max": 3}
    await rollups.store(database, "concurrency_hours", days_before(7), {CLUSTER: [row]})
    await rollups.store(database, "concurrency_hours", days_before(14), {CLUSTER: []})
    found = await get(api, "insight/load")
    [group] = found["groups"]
    assert len(group["cells"]) == 24  # there are Saturdays alone
    cells = {one["hour"]: one for one in group["cells"]}
    assert {one["weekday"] for one in group["cells"]} == {5}
    assert (cells[2]["days"], cells[2]["running_mean"], cells[2]["running_max"]) == (3, 2.0, 9)
    assert cells[3]["running_mean"] == 0
    [worker] = found["workers"]
    assert worker["utilisation"] == 3600 / (2 * 2 * 3600)
    assert found["forecast_of"] == "2026-01-31"
    assert found["forecast"][0]["slots"] == 12


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"from": "2026-02-01", "to": "2026-01-31"}, "ends before it begins"),
        ({"from": "2025-01-01", "to": "2026-01-31"}, "92 at most"),
        ({"to": "0001-01-05"}, "lies outside"),
    ],
)
async def test_window_that_makes_no_sense_is_refused(
    api: Api, database: Database, query: dict[str, str], said: str
) -> None:
    await rollups.stock(database, "p")
    answer = await api.client.get(f"{PREFIX}/insight/summary", params=query)
    assert said in fields_of(problem_of(answer, 422, "invalid-request"))["to"]


@pytest.mark.parametrize("day", ["20260131", "0", "2026-13-01", "2026-01-31T00:00:00Z"])
async def test_what_is_no_day_is_refused(api: Api, day: str) -> None:
    answer = await api.client.get(f"{PREFIX}/insight/summary", params={"from": day})
    problem_of(answer, 422, "invalid-request")


async def test_result_that_was_computed_again_is_read_again(api: Api, database: Database) -> None:
    await rollups.store(database, "workflow_days", DAY, {P: [workflow_day(1)]})
    assert (await get(api, "insight/summary"))["total"]["runs"] == 1
    await rollups.store(database, "workflow_days", DAY, {P: [workflow_day(2)]})
    assert (await get(api, "insight/summary"))["total"]["runs"] == 2


async def test_rows_of_a_result_come_page_by_page(api: Api, database: Database) -> None:
    await rollups.stock_cluster(database)
    names = [("p", f"w{number}") for number in range(5)]
    await rollups.store(database, "costs", DAY, {name: [cost()] for name in names})
    seen, cursor = [], None
    for _ in range(10):
        query = {"job": "costs", "day": "2026-01-31", "limit": 2}
        found = await get(
            api, "insight/rollup-rows", **query, **({"cursor": cursor} if cursor else {})
        )
        seen += [(one["project"], one["workflow"]) for one in found["items"]]
        cursor = found["next"]
        if cursor is None:
            break
    assert seen == names
    listed = await get(api, "insight/rollups")
    assert {(one["job"], one["rows"]) for one in listed["items"]} >= {
        ("costs", 5),
        ("capacity", 1),
    }
    first = await get(api, "insight/rollups", limit=2)
    rest = await get(api, "insight/rollups", limit=2, cursor=first["next"])
    shown = [one["job"] for one in (*first["items"], *rest["items"])]
    assert shown == sorted(one["job"] for one in listed["items"])[:4]
    workers = await get(api, "insight/rollup-rows", job="worker_days", day="2026-01-31")
    assert workers["items"][0]["project"] == ""
    assert workers["items"][0]["rows"][0]["worker"] == "w-1"


async def test_what_was_read_of_some_workflows_is_read_again_when_it_has_changed(
    api: Api, database: Database
) -> None:
    for name in (P, Q):
        await rollups.add(database, "workflow_days", DAY, {name: [workflow_day()]})
    await rollups.store(database, "costs", DAY, {P: [cost(slot_s=1.0)]})

    async def costs(**query: Any) -> dict[str, float]:
        found = await get(api, "insight/workflows", sort="late", **query)
        return {one["workflow"]: one["cost"]["slot_s"] for one in found["items"]}

    assert await costs(limit=1) == {"daily": 1.0}
    assert await costs() == {"daily": 1.0, "hourly": 0.0}
    assert await costs() == {"daily": 1.0, "hourly": 0.0}
    await rollups.store(database, "costs", DAY, {P: [cost(slot_s=2.0)], Q: [cost(slot_s=3.0)]})
    assert await costs() == {"daily": 2.0, "hourly": 3.0}
    by_cost = await get(api, "insight/workflows", sort="cost")
    assert [one["workflow"] for one in by_cost["items"]] == ["hourly", "daily"]
    assert await costs() == {"daily": 2.0, "hourly": 3.0}
