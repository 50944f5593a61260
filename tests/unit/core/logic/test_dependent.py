"""What the date values of a DEPENDENT task mean."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import ShoalError
from shoal.core.logic.intervals import CYCLES, UnknownDateValue, intervals

WEDNESDAY = datetime(2026, 3, 18, 14, 35, 20, 123, tzinfo=ZoneInfo("Europe/Berlin"))
ALL = [value for values in CYCLES.values() for value in values]


def written(value: str, base: datetime) -> list[str]:
    return [f"{start:%m-%d %H:%M:%S}/{end:%m-%d %H:%M:%S}" for start, end in intervals(value, base)]


def days(*names: str) -> list[str]:
    return [f"{name} 00:00:00/{name} 23:59:59" for name in names]


def hours(*names: str) -> list[str]:
    return [f"{name}:00:00/{name}:59:59" for name in names]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("currentHour", hours("03-18 14")),
        ("last1Hour", hours("03-18 13")),
        ("last2Hours", hours("03-18 12", "03-18 13")),
        ("last3Hours", hours("03-18 11", "03-18 12", "03-18 13")),
        (
            "last24Hours",
            hours(*(f"03-17 {hour:02}" for hour in range(1, 24)), "03-18 00"),
        ),
        ("today", days("03-18")),
        ("last1Days", days("03-17")),
        ("last2Days", days("03-16", "03-17")),
        ("last3Days", days("03-15", "03-16", "03-17")),
        ("last7Days", days(*(f"03-{day}" for day in range(11, 18)))),
        ("thisWeek", days("03-16", "03-17", "03-18")),
        ("lastWeek", days(*(f"03-{day:02}" for day in range(9, 16)))),
        ("lastMonday", days("03-09")),
        ("lastTuesday", days("03-10")),
        ("lastWednesday", days("03-11")),
        ("lastThursday", days("03-12")),
        ("lastFriday", days("03-13")),
        ("lastSaturday", days("03-14")),
        ("lastSunday", days("03-15")),
        ("thisMonth", days(*(f"03-{day:02}" for day in range(1, 19)))),
        ("thisMonthBegin", days("03-01")),
        ("thisMonthEnd", days("03-31")),
        ("lastMonth", days(*(f"02-{day:02}" for day in range(1, 29)))),
        ("lastMonthBegin", days("02-01")),
        ("lastMonthEnd", days("02-28")),
    ],
)
def test_value_means_these_intervals(value: str, expected: list[str]) -> None:
    assert written(value, WEDNESDAY) == expected
    assert written(value, WEDNESDAY.replace(tzinfo=None)) == expected
    assert all(
        bound.tzinfo is WEDNESDAY.tzinfo for pair in intervals(value, WEDNESDAY) for bound in pair
    )


def test_table_covers_every_value() -> None:
    assert len(ALL) == 25 == len(set(ALL))


@pytest.mark.parametrize(
    ("base", "value", "expected"),
    [
        ("2026-01-01 00:00", "last1Hour", hours("12-31 23")),
        ("2026-01-01 00:00", "lastMonthEnd", days("12-31")),
        ("2026-01-01 00:00", "lastMonthBegin", days("12-01")),
        ("2028-02-10 00:00", "thisMonthEnd", days("02-29")),
        ("2026-12-10 00:00", "thisMonthEnd", days("12-31")),
        ("2026-03-16 00:00", "thisWeek", days("03-16")),
        ("2026-03-15 00:00", "thisWeek", days(*(f"03-{day:02}" for day in range(9, 16)))),
        ("2026-03-15 00:00", "lastSunday", days("03-08")),
        ("2026-03-16 00:00", "lastMonday", days("03-09")),
        ("2026-05-31 00:00", "lastMonth", days(*(f"04-{day:02}" for day in range(1, 31)))),
    ],
)
def test_borders_of_units(base: str, value: str, expected: list[str]) -> None:
    assert written(value, datetime.fromisoformat(base).replace(tzinfo=UTC)) == expected


def exact(value: str, base: datetime) -> list[str]:
    return [f"{start:%d %H:%M:%S%z}/{end:%d %H:%M:%S%z}" for start, end in intervals(value, base)]


def at(text: str, zone: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)


@pytest.mark.parametrize(
    ("base", "value", "expected"),
    [
        # 02:00 to 03:00 is skipped.
        (
            at("2026-03-29 03:10", "Europe/Berlin"),
            "last2Hours",
            ["29 00:00:00+0100/29 00:59:59+0100", "29 01:00:00+0100/29 01:59:59+0100"],
        ),
        # The hour from 02:00 comes twice, and is two hours.
        (
            at("2026-10-25 03:10", "Europe/Berlin"),
            "last3Hours",
            [
                "25 01:00:00+0200/25 01:59:59+0200",
                "25 02:00:00+0200/25 02:59:59+0200",
                "25 02:00:00+0100/25 02:59:59+0100",
            ],
        ),
        (
            at("2026-10-25 02:10", "Europe/Berlin"),
            "currentHour",
            ["25 02:00:00+0200/25 02:59:59+0200"],
        ),
        (
            at("2026-10-25 02:10", "Europe/Berlin", fold=1),
            "currentHour",
            ["25 02:00:00+0100/25 02:59:59+0100"],
        ),
        # Half an hour: one hour of 30 minutes, one of 90.
        (
            at("2026-10-04 02:40", "Australia/Lord_Howe"),
            "currentHour",
            ["04 02:30:00+1100/04 02:59:59+1100"],
        ),
        (
            at("2026-04-05 02:10", "Australia/Lord_Howe"),
            "last1Hour",
            ["05 01:00:00+1100/05 01:59:59+1030"],
        ),
        # Midnight is skipped, and the day starts at one.
        (
            at("2018-11-04 12:00", "America/Sao_Paulo"),
            "today",
            ["04 01:00:00-0200/04 23:59:59-0200"],
        ),
        (
            at("2018-11-04 12:00", "America/Sao_Paulo"),
            "last1Days",
            ["03 00:00:00-0300/03 23:59:59-0300"],
        ),
        # The last hour of the day comes twice, and belongs to that day.
        (
            at("2018-02-17 12:00", "America/Sao_Paulo"),
            "today",
            ["17 00:00:00-0200/17 23:59:59-0300"],
        ),
        # The first hour of the day comes twice.
        (
            at("2026-11-01 12:00", "America/Havana"),
            "today",
            ["01 00:00:00-0400/01 23:59:59-0500"],
        ),
        # Samoa left out 30 December 2011.
        (
            at("2011-12-31 12:00", "Pacific/Apia"),
            "last2Days",
            ["28 00:00:00-1000/28 23:59:59-1000", "29 00:00:00-1000/29 23:59:59-1000"],
        ),
    ],
)
def test_units_around_clock_changes(base: datetime, value: str, expected: list[str]) -> None:
    assert exact(value, base) == expected


def test_day_without_24_hours_has_no_24_hour_slots() -> None:
    zone = "Europe/Berlin"
    assert len(intervals("last24Hours", at("2026-03-30 12:00", zone))) == 23
    assert len(intervals("last24Hours", at("2026-10-26 12:00", zone))) == 25
    assert len(intervals("last24Hours", at("2026-10-27 12:00", zone))) == 24


def test_left_out_day_is_missing_from_week_and_month() -> None:
    base = at("2012-01-10 12:00", "Pacific/Apia")
    assert len(intervals("lastMonth", base)) == 30
    assert len(intervals("lastWeek", at("2012-01-03 12:00", "Pacific/Apia"))) == 6


def test_unknown_value_lists_the_known_ones() -> None:
    with pytest.raises(UnknownDateValue, match=r"'last5Days' is unknown; .*last7Days") as info:
        intervals("last5Days", WEDNESDAY)
    assert isinstance(info.value, ValueError)
    assert isinstance(info.value, ShoalError)


ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "America/Sao_Paulo"]


@given(
    st.datetimes(datetime(1975, 1, 1), datetime(2040, 1, 1)),
    st.sampled_from(ZONES),
    st.sampled_from(ALL),
)
def test_intervals_are_ordered_disjoint_and_whole_seconds(
    wall: datetime, zone: str, value: str
) -> None:
    base = wall.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    found = [(one.astimezone(UTC), two.astimezone(UTC)) for one, two in intervals(value, base)]
    assert found
    assert all(start < end for start, end in found)
    assert all(
        end + timedelta(seconds=1) <= following for (_, end), (following, _) in pairwise(found)
    )
    assert all(bound.microsecond == 0 for pair in found for bound in pair)
    now = base.astimezone(UTC).replace(microsecond=0)
    if value in ("currentHour", "today", "thisWeek", "thisMonth"):
        assert found[-1][0] <= now <= found[-1][1]
    elif value not in ("thisMonthBegin", "thisMonthEnd", "last24Hours"):
        assert found[-1][1] < now
