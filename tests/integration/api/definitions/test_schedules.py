"""Schedules: lists, previews; calendars."""

from typing import Any

from sqlalchemy import update

from shoal.sql import UnitOfWork
from shoal.sql.schema.tables import schedule
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.support.cases import each_row

WORKFLOW = f"{PREFIX}/projects/p/workflows/daily"
CALENDARS = f"{PREFIX}/projects/p/calendars"


async def test_schedules_show_when_they_fire(api: Api) -> None:
    await api.publish(
        schedules=[
            {"cron": "0 0 6 * * ?", "timezone": "Europe/Berlin"},
            {"cron": "0 0 7 * * ?", "enabled": False},
        ]
    )
    on, off = (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"]
    assert on["timezone"] == "Europe/Berlin"
    assert len(on["next_fire_times"]) == 5
    assert on["next_fire_times"][0] == on["next_fire_at"]
    assert on["next_fire_times"] == sorted(set(on["next_fire_times"]))
    assert all(time.endswith(":00:00Z") for time in on["next_fire_times"])
    assert (off["enabled"], off["next_fire_at"], off["next_fire_times"]) == (False, None, [])


async def test_schedule_is_shown_with_all_that_it_says(api: Api) -> None:
    await api.client.put(f"{CALENDARS}/closed", json={"days": ["2098-06-02"]})
    asked = {
        "cron": "0 */6 * * *",
        "timezone": "Asia/Tokyo",
        "parameters": {"n": 1},
        "priority": "high",
        "start": "2098-06-01T12:00",
        "end": "2098-06-04T00:00+00:00",
        "exclude": ["2098-06-03"],
        "calendar": "closed",
        "missed": "all",
        "missed_window": "2h",
    }
    await api.publish(schedules=[asked], parameters={"n": 0})
    (shown,) = (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"]
    del shown["id"]
    assert shown == {
        "project": "p",
        "workflow": "daily",
        "cron": "0 */6 * * *",
        "timezone": "Asia/Tokyo",
        "parameters": {"n": "1"},
        "enabled": True,
        "priority": "HIGH",
        "on_gap": "skip",  # as intervals do
        "on_overlap": "both",
        "start": "2098-06-01T03:00:00Z",
        "end": "2098-06-04T00:00:00Z",
        "exclude": ["2098-06-03"],
        "calendar": "closed",
        "missed": "all",
        "missed_window": 7200.0,
        "paused_at": None,
        "next_fire_at": "2098-06-01T03:00:00Z",
        "next_fire_times": [
            "2098-06-01T03:00:00Z",
            "2098-06-01T09:00:00Z",
            "2098-06-03T15:00:00Z",
            "2098-06-03T21:00:00Z",
        ],
    }
    read = (await api.client.get(WORKFLOW)).json()["definition"]
    again = await api.client.put(WORKFLOW, json=read)
    assert (again.status_code, again.json()["created"]) == (200, False)


async def test_planned_fire_on_a_day_that_is_left_out_now_is_not_shown(api: Api) -> None:
    await api.client.put(f"{CALENDARS}/closed", json={"days": []})
    daily = {"cron": "0 0 6 * * ?", "start": "2098-06-01", "calendar": "closed"}
    await api.publish(schedules=[daily])
    await api.client.put(f"{CALENDARS}/closed", json={"days": ["2098-06-01", "2098-06-03"]})
    (shown,) = (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"]
    assert [time[8:10] for time in shown["next_fire_times"]] == ["02", "04", "05", "06", "07"]


async def test_all_schedules_are_listed_in_pages(api: Api) -> None:
    daily = {"cron": "0 0 6 * * ?"}
    for project, name in (("p", "a"), ("q", "b"), ("p", "c")):
        await api.publish(name, project, schedules=[daily])
    page = (await api.client.get(f"{PREFIX}/schedules?limit=2")).json()
    assert [one["workflow"] for one in page["items"]] == ["a", "b"]
    page = (await api.client.get(f"{PREFIX}/schedules?cursor={page['next']}")).json()
    assert ([one["workflow"] for one in page["items"]], page["next"]) == (["c"], None)
    mine = (await api.client.get(f"{PREFIX}/schedules?project=p")).json()["items"]
    assert [one["workflow"] for one in mine] == ["a", "c"]


async def test_schedule_that_cannot_be_read_here_hides_no_other(api: Api) -> None:
    daily = {"cron": "0 0 6 * * ?"}
    await api.publish(schedules=[{**daily, "timezone": "Europe/Berlin"}, daily])

    async def lose_zone(uow: UnitOfWork) -> None:
        of_berlin = update(schedule).where(schedule.c.timezone == "Europe/Berlin")
        await uow.connection.execute(of_berlin.values(timezone="Berlin/West"))

    await api.store(lose_zone)
    bad, good = (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"]
    assert (bad["on_gap"], bad["next_fire_times"]) == (None, [])
    assert len(good["next_fire_times"]) == 5
    answer = await api.client.get(f"{PREFIX}/schedules/{bad['id']}/preview")
    assert "time zone" in fields_of(problem_of(answer, 422, "invalid-request"))["schedule_id"]


def lines(preview: Any) -> list[str]:
    return [" ".join([one["local"], *one["marks"]]) for one in preview["fire_times"]]


async def test_preview_marks_clock_changes_and_days_left_out(api: Api) -> None:
    await api.client.put(f"{CALENDARS}/closed", json={"days": ["2037-03-31"]})
    asked = {
        "cron": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "start": "2037-03-28",
        "end": "2037-04-02",
        "exclude": ["2037-03-30"],
        "project": "p",
        "calendar": "closed",
    }
    answer = await api.client.post(f"{PREFIX}/schedules/preview", json=asked)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert (shown["on_gap"], shown["on_overlap"]) == ("shift", "first")
    assert lines(shown) == [
        "2037-03-28T02:30:00+01:00",
        "2037-03-29T03:00:00+02:00 after the gap",
        "2037-03-30T02:30:00+02:00 left out",
        "2037-03-31T02:30:00+02:00 left out",
        "2037-04-01T02:30:00+02:00",
    ]
    assert [one["fires"] for one in shown["fire_times"]] == [True, True, False, False, True]
    assert shown["fire_times"][1]["utc"] == "2037-03-29T01:00:00Z"
    del asked["project"], asked["calendar"]
    stored = {key: asked[key] for key in asked}
    await api.publish(schedules=[{**stored, "calendar": "closed", "enabled": False}])
    (one,) = (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"]
    url = f"{PREFIX}/schedules/{one['id']}/preview"
    assert (await api.client.get(url)).json() == shown
    assert len((await api.client.get(f"{url}?n=2")).json()["fire_times"]) == 2


@each_row(
    "wrong, field, message",
    [
        ({"cron": "61 * * * *"}, "cron", "minute '61'"),
        ({"timezone": "Mars/Olympus"}, "timezone", "not a time zone"),
        ({"on_gap": "jump"}, "on_gap", "'shift' or 'skip'"),
        ({"start": 5}, "start", "not a day or time"),
        ({"n": 501}, "n", "500"),
        ({"crno": ""}, "crno", "not a known field"),
    ],
)
async def test_preview_of_what_makes_no_sense(
    api: Api, wrong: dict[str, Any], field: str, message: str
) -> None:
    answer = await api.client.post(
        f"{PREFIX}/schedules/preview", json={"cron": "0 6 * * *", **wrong}
    )
    assert message in fields_of(problem_of(answer, 422, "invalid-request"))[field]


async def test_preview_with_a_calendar_that_is_not_there(api: Api) -> None:
    asked = {"cron": "0 6 * * *", "calendar": "none"}
    answer = await api.client.post(f"{PREFIX}/schedules/preview", json=asked)
    assert "default/none" in problem_of(answer, 404, "not-found")["detail"]


async def test_calendars(api: Api) -> None:
    url = f"{CALENDARS}/closed"
    created = await api.client.put(url, json={"days": ["2026-12-25", "2026-01-01", "2026-12-25"]})
    assert created.status_code == 201
    assert created.json()["days"] == ["2026-01-01", "2026-12-25"]
    changed = await api.client.put(url, json={"days": ["2026-05-01"], "description": "x"})
    assert changed.status_code == 200
    assert (await api.client.get(url)).json() == changed.json()
    await api.client.put(f"{CALENDARS}/open", json={"days": []})
    page = (await api.client.get(f"{CALENDARS}?limit=1")).json()
    assert [one["name"] for one in page["items"]] == ["closed"]
    page = (await api.client.get(f"{CALENDARS}?cursor={page['next']}")).json()
    assert ([one["name"] for one in page["items"]], page["next"]) == (["open"], None)
    bad = await api.client.put(url, json={"days": ["yesterday"]})
    assert "not a day" in fields_of(problem_of(bad, 422, "invalid-request"))["days[0]"]
    assert (await api.client.delete(url)).status_code == 204
    problem_of(await api.client.get(url), 404, "not-found")
    problem_of(await api.client.delete(url), 404, "not-found")


async def test_calendar_in_use_stays(api: Api) -> None:
    uses = [{"cron": "0 6 * * *", "calendar": "closed"}]
    unknown = await api.client.put(
        WORKFLOW,
        json={
            "tasks": [{"name": "a", "type": "SHELL", "params": {"script": "true"}}],
            "schedules": uses,
        },
    )
    found = fields_of(problem_of(unknown, 422, "invalid-definition"))
    assert "no calendar 'closed'" in found["schedules[0].calendar"]
    await api.client.put(f"{CALENDARS}/closed", json={"days": []})
    await api.publish(schedules=uses)
    refused = problem_of(await api.client.delete(f"{CALENDARS}/closed"), 409, "calendar-in-use")
    assert "daily" in refused["detail"]
