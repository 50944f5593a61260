"""Logical times: so far from the ends of the calendar that every time zone can show them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from shoal.client.cli.terminal.options import require_logical_time
from shoal.core.backfill.plan import BackfillTarget, dates_of
from shoal.core.backfill.request import BackfillRefused, BackfillRequest
from shoal.core.definition.model import WorkflowSpec
from shoal.core.timing.logical_time import FIRST, LAST, LogicalTimeOutOfRange, logical_time
from shoal.core.timing.wallclock import shown_in

ZONES = sorted(available_timezones())
REFUSED = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, 23, 59, 59, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),  # before the year 1 in UTC
    datetime(9999, 12, 31, tzinfo=UTC),
    datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))),  # after 9999 in UTC
]


@pytest.mark.parametrize("moment", REFUSED)
def test_times_within_a_day_of_the_ends_are_refused_by_value_and_range(moment: datetime) -> None:
    with pytest.raises(LogicalTimeOutOfRange) as refused:
        logical_time(moment)
    assert moment.isoformat() in str(refused.value)
    assert "0001-01-02T00:00:00Z to 9999-12-30T23:59:59Z" in str(refused.value)


@given(st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None)), st.sampled_from(ZONES))
def test_every_zone_can_show_a_logical_time(wall: datetime, zone: str) -> None:
    moment = logical_time(wall.replace(tzinfo=UTC))
    assert moment.astimezone(ZoneInfo(zone)) == moment
    assert shown_in(moment, ZoneInfo(zone)).tzinfo is not UTC


@given(st.datetimes(), st.sampled_from(ZONES))
def test_every_time_can_be_shown(wall: datetime, zone: str) -> None:
    assert shown_in(wall.replace(tzinfo=UTC), ZoneInfo(zone)) == wall.replace(tzinfo=UTC)


def target(**fields: Any) -> BackfillTarget:
    task = {"name": "a", "type": "SHELL", "params": {"command": "true"}}
    spec = WorkflowSpec.model_validate({"project": "p", "name": "w", "tasks": [task], **fields})
    return BackfillTarget(1, spec)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"dates": ["9999-12-31T23:00Z"]}, "dates"),
        ({"dates": ["0001-01-01"]}, "dates"),
        ({"from": "0001-01-01", "to": "0001-01-05"}, "from"),
        ({"from": "9999-12-20", "to": "9999-12-31"}, "to"),
        ({"from": "9999-12-20", "to": "9999-12-31T23:59:59-12:00"}, "to"),
    ],
)
def test_backfill_names_the_field_of_a_date_too_near_to_the_ends(
    fields: dict[str, Any], named: str
) -> None:
    request = BackfillRequest.model_validate({"project": "p", "workflow": "w", **fields})
    with pytest.raises(BackfillRefused, match="must lie in the range") as refused:
        dates_of(request, target())
    assert refused.value.field == named


def test_backfill_of_the_next_day_leaves_room_for_it() -> None:
    request = BackfillRequest.model_validate(
        {"project": "p", "workflow": "w", "dates": ["9999-12-30"]}
    )
    assert dates_of(request, target()) == [datetime(9999, 12, 30, tzinfo=UTC)]
    with pytest.raises(BackfillRefused, match="9999-12-30"):
        dates_of(request, target(backfill_base="next_day"))


@given(
    st.sampled_from(["0001-01-0", "9999-12-2", "9999-12-3"]),
    st.integers(0, 9),
    st.integers(0, 9),
    st.sampled_from(ZONES),
)
def test_ranges_at_the_ends_of_the_calendar_are_planned_or_refused(
    prefix: str, first: int, last: int, zone: str
) -> None:
    try:
        request = BackfillRequest.model_validate(
            {"workflow": "w", "from": f"{prefix}{first}", "to": f"{prefix}{last}"}
        )
    except ValueError:
        return  # not a day
    try:
        dates = dates_of(request, target(timezone=zone))
    except BackfillRefused:
        return
    assert all(logical_time(one) == one for one in dates)


def test_options_of_the_command_line_name_themselves_and_the_range() -> None:
    require_logical_time(datetime(2026, 1, 1, tzinfo=UTC), "--date")
    with pytest.raises(typer.BadParameter, match="must lie in the range") as refused:
        require_logical_time(datetime(9999, 12, 31, 23, tzinfo=UTC), "--date")
    assert refused.value.param_hint == "--date"
