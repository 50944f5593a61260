"""Requests with times at the ends of the calendar are refused with the value and the range."""

from typing import Any

import pytest

from tests.integration.api.conftest import PREFIX, Api
from tests.support.cases import each_row

ENDS = ["9999-12-31T23:00:00Z", "9999-12-31T00:00:00Z", "0001-01-01T01:00:00Z"]
BEYOND = ["9999-12-31T23:00:00-12:00", "0001-01-01T01:00:00+14:00"]
RANGE = "0001-01-02T00:00:00Z to 9999-12-30T23:59:59Z"


@each_row("moment", [*ENDS, *BEYOND])
async def test_logical_time_at_an_end_of_the_calendar_is_refused(api: Api, moment: str) -> None:
    await api.publish()
    start = {"project": "p", "workflow": "daily", "logical_time": moment}
    dates = {"project": "p", "workflow": "daily"}
    for path, body in (
        ("commands", {"type": "START", **start}),
        ("start-previews", start),
        ("backfills", {**dates, "dates": [moment]}),
        ("backfills", {**dates, "from": moment, "to": moment}),
    ):
        answer = await api.client.post(f"{PREFIX}/{path}", json=body)
        assert answer.status_code == 422, answer.text
        assert RANGE in answer.text
        assert moment[:10] in answer.text


@each_row("moment", ["9999-12-30T23:59:59Z", "0001-01-02T00:00:00Z"])
async def test_nearest_times_are_accepted(api: Api, moment: str) -> None:
    await api.publish(timezone="Asia/Shanghai")
    start = {"project": "p", "workflow": "daily", "logical_time": moment}
    answer = await api.client.post(f"{PREFIX}/start-previews", json=start)
    assert answer.status_code == 200, answer.text
    answer = await api.client.post(f"{PREFIX}/commands", json={"type": "START", **start})
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-02", "9999-12-30", "9999-12-31"])
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
async def test_no_day_or_time_of_a_view_is_an_error_of_the_api(
    api: Api, day: str, zone: str
) -> None:
    await api.publish(timezone=zone, schedules=[{"cron": "0 0 6 * * ?", "timezone": zone}])
    home, moment = f"{PREFIX}/projects/p", f"{day}T12:00:00Z"
    questions: list[tuple[str, dict[str, Any]]] = [
        (f"{home}/dependency-graph", {"date": day}),
        (f"{home}/workflows/daily/days", {"first": day}),
        (f"{home}/workflows/daily/days", {"first": day, "limit": 366}),
        (f"{home}/workflows/daily/days", {"first": day, "timezone": "Pacific/Kiritimati"}),
        (f"{PREFIX}/today", {"since": moment, "until": moment}),
        (f"{PREFIX}/instances", {"logical_since": moment, "logical_until": moment}),
        (f"{PREFIX}/instances", {"since": moment, "until": moment}),
    ]
    for path, query in questions:
        answer = await api.client.get(path, params=query)
        assert answer.status_code < 500, (path, query, answer.text)
    answer = await api.client.put(f"{home}/calendars/ends", json={"days": [day]})
    assert answer.status_code < 500, answer.text
    preview = {"cron": "0 0 6 * * ?", "timezone": zone, "exclude": [day]}
    answer = await api.client.post(f"{PREFIX}/schedules/preview", json=preview)
    assert answer.status_code == 200, answer.text
    for end in ("start", "end"):
        body = {**preview, end: f"{day}T06:00:00"}
        answer = await api.client.post(f"{PREFIX}/schedules/preview", json=body)
        assert answer.status_code == 422, answer.text
