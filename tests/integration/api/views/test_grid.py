"""Grids and calendars of workflows."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from shoal.core.runs.cells import CELLS, FORCED, NO_TASK, UNKNOWN
from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.api.conftest import PREFIX, Api, definition, fields_of, problem_of
from tests.integration.api.runs.attempts import fail_and_retry
from tests.integration.api.views.runs import happened

WORKFLOW = f"{PREFIX}/projects/p/workflows/daily"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
_T, _W = TaskState, WorkflowState


async def grid(api: Api, **query: Any) -> Any:
    answer = await api.client.get(f"{WORKFLOW}/grid", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_each_state_has_a_character_of_its_own() -> None:
    assert CELLS.keys() == set(TaskState)
    codes = [*CELLS.values(), FORCED, NO_TASK, UNKNOWN]
    assert len(set(codes)) == len(codes)
    assert {len(code) for code in codes} == {1}


async def test_runs_by_tasks_newest_logical_time_first(api: Api) -> None:
    await api.publish()
    done = {"fetch": _T.SUCCEEDED, "report": _T.SUCCEEDED}
    late = await happened(api, "daily", at=NOON + DAY, tasks=done)
    bad = {"fetch": _T.FAILED, "report": _T.SKIPPED}
    early = await happened(api, "daily", at=NOON, state=_W.FAILED, tasks=bad)
    shown = await grid(api)
    assert shown["tasks"] == [
        {"name": name, "type": "SHELL", "is_current": True} for name in ("fetch", "report")
    ]
    assert [(one["id"], one["cells"]) for one in shown["runs"]] == [
        (late.id, "SS"),
        (early.id, "FN"),
    ]
    assert (shown["runs"][1]["state"], shown["runs"][1]["version"]) == ("FAILED", 1)
    assert shown["next"] is None
    [failed] = [one for one in shown["legend"] if one["cell"] == "F"]
    assert failed == {"cell": "F", "state": "FAILED", "means": "FAILED"}
    by_start = await grid(api, sort="-created_at")
    assert [one["id"] for one in by_start["runs"]] == [early.id, late.id]


async def test_a_cell_is_the_newest_attempt(api: Api) -> None:
    run = await api.run()
    await fail_and_retry(api, run)
    assert [one["cells"] for one in (await grid(api))["runs"]] == ["ww"]


async def test_tasks_that_only_older_versions_have_come_last(api: Api) -> None:
    await api.publish()
    done = {"fetch": _T.SUCCEEDED, "report": _T.SUCCEEDED}
    await happened(api, "daily", at=NOON, tasks=done)
    other = {"name": "load", "type": "PYTHON", "params": {"script": "1"}}
    await api.publish(tasks=[other, definition()["tasks"][0]])
    again = {"load": _T.SUCCEEDED, "fetch": _T.FAILED}
    await happened(api, "daily", at=NOON + DAY, tasks=again)
    shown = await grid(api)
    assert [(one["name"], one["type"], one["is_current"]) for one in shown["tasks"]] == [
        ("load", "PYTHON", True),
        ("fetch", "SHELL", True),
        ("report", None, False),
    ]
    assert [(one["version"], one["cells"]) for one in shown["runs"]] == [(2, "SF."), (1, ".SS")]


async def test_a_state_that_is_not_known_and_a_forced_one_are_told(api: Api) -> None:
    run = await api.run()
    ids = {name: one.id for name, one in run.attempts.items()}
    async with api.services.store.unit_of_work() as uow:
        statement = text("UPDATE task_instance SET state = :s, forced = :f WHERE id = :i")
        await uow.connection.execute(statement, {"s": "SUCCEEDED", "f": True, "i": ids["fetch"]})
        await uow.connection.execute(statement, {"s": "NEW", "f": False, "i": ids["report"]})
        await uow.commit()
    assert [one["cells"] for one in (await grid(api))["runs"]] == ["O?"]


async def test_pages_lead_to_the_runs_before(api: Api) -> None:
    await api.publish()
    runs = [(await happened(api, "daily", at=NOON + n * DAY)).id for n in range(3)]
    first = await grid(api, limit=2)
    assert [one["id"] for one in first["runs"]] == [runs[2], runs[1]]
    second = await grid(api, limit=2, cursor=first["next"])
    assert [one["id"] for one in second["runs"]] == [runs[0]]
    assert second["next"] is None
    of_other = await api.client.get(
        f"{WORKFLOW}/grid", params={"cursor": first["next"], "sort": "-created_at"}
    )
    assert "cursor" in fields_of(problem_of(of_other, 422, "invalid-request"))


# -- days ------------------------------------------------------------------------------------------


async def days(api: Api, **query: Any) -> dict[str, Any]:
    answer = await api.client.get(f"{WORKFLOW}/days", params=query)
    assert answer.status_code == 200, answer.text
    return {one["date"]: one for one in answer.json()["items"]}


async def test_a_day_counts_the_newest_run_for_each_logical_time(api: Api) -> None:
    await api.publish(timezone="Europe/Berlin")
    await happened(api, "daily", at=NOON, state=_W.FAILED)
    await happened(api, "daily", at=NOON)  # again
    await happened(api, "daily", at=NOON + timedelta(hours=1), state=_W.FAILED)
    await happened(api, "daily", at=datetime(2026, 3, 2, 23, 30, tzinfo=UTC))  # half past midnight
    found = await days(api, first="2026-03-01", limit=3)
    assert [(one, found[one]["states"]) for one in found] == [
        ("2026-03-01", {}),
        ("2026-03-02", {"SUCCEEDED": 1, "FAILED": 1}),
        ("2026-03-03", {"SUCCEEDED": 1}),
    ]
    in_utc = await days(api, first="2026-03-02", limit=1, timezone="UTC")
    assert in_utc["2026-03-02"]["states"] == {"SUCCEEDED": 2, "FAILED": 1}
    assert len(await days(api)) == 366


async def _expected(api: Api, since: datetime) -> None:
    async with api.services.store.unit_of_work() as uow:
        statement = text("UPDATE schedule SET expected_since = :at")
        at = int(since.timestamp() * 1_000_000)
        await uow.connection.execute(statement, {"at": at})
        await uow.commit()


async def test_a_fire_time_without_a_run_is_missing_once_it_has_passed(api: Api) -> None:
    await api.publish(schedules=[{"cron": "0 0 12 * * ?"}])
    await _expected(api, NOON)
    await happened(api, "daily", at=NOON, created_at=NOON)
    await happened(api, "daily", at=NOON + 2 * DAY, state=_W.FAILED)
    found = await days(api, first="2026-03-01", limit=4)
    assert [one["missing"] for one in found.values()] == [0, 0, 1, 0]
    to_come = (datetime.now(UTC) + 10 * DAY).date().isoformat()
    assert [one["missing"] for one in (await days(api, first=to_come, limit=2)).values()] == [0, 0]


async def test_what_nobody_can_know_is_not_missing(api: Api) -> None:
    schedule = {"cron": "0 0 12 * * ?"}
    await api.publish(schedules=[schedule])
    year = {"first": "2026-03-01", "limit": 31}
    assert sum(one["missing"] for one in (await days(api, **year)).values()) == 0
    await _expected(api, NOON)
    assert sum(one["missing"] for one in (await days(api, **year)).values()) == 30
    # What was before the oldest run that is kept may have been purged.
    await happened(api, "daily", at=NOON + 20 * DAY, created_at=NOON + 20 * DAY)
    assert sum(one["missing"] for one in (await days(api, **year)).values()) == 9
    # Other times count from now on; so does a pause that is over.
    await api.publish(schedules=[{"cron": "0 0 13 * * ?"}])
    assert sum(one["missing"] for one in (await days(api, **year)).values()) == 0
    await _expected(api, NOON)
    [one] = (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"]
    for request in ("pause", "resume"):
        path = f"{PREFIX}/schedules/{one['id']}/{request}"
        assert (await api.client.post(path)).status_code == 200
        assert sum(one["missing"] for one in (await days(api, **year)).values()) == 0


async def test_many_fire_times_are_counted_a_page_at_a_time(api: Api) -> None:
    await api.publish(schedules=[{"cron": "0 0/10 * * * ?"}, {"cron": "*/30 * * * * ?"}])
    await _expected(api, NOON - 12 * (DAY / 24))
    query: dict[str, Any] = {"first": "2026-03-01", "limit": 20}
    seen: list[Any] = []
    while True:
        answer = (await api.client.get(f"{WORKFLOW}/days", params=query)).json()
        seen += answer["items"]
        if answer["next"] is None:
            break
        query["cursor"] = answer["next"]
    assert [one["missing"] for one in seen] == [0, *[2880] * 19]
    assert [one["date"] for one in seen] == [f"2026-03-{day:02}" for day in range(1, 21)]
    await api.publish(schedules=[{"cron": "* * * * * ?"}])
    await _expected(api, NOON - DAY)
    one = (await days(api, first="2026-03-02", limit=1))["2026-03-02"]
    assert (one["is_more"], one["missing"] >= 10_000) == (True, True)


async def test_dates_and_zones_that_there_are_not(api: Api) -> None:
    await api.publish()
    for query, field in (
        ({"first": "0001-01-01"}, "first"),
        ({"first": "17"}, "first"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"limit": 401}, "limit"),
    ):
        answer = await api.client.get(f"{WORKFLOW}/days", params=query)
        assert field in fields_of(problem_of(answer, 422, "invalid-request"))
