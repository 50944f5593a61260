"""Cron without clock changes: what is read, what is refused, and when it fires in UTC."""

import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from shoal.core.errors import ShoalError
from shoal.core.timing.cron.expression import Cron, InvalidCron, parse


def fires(cron: Cron, after: datetime, count: int) -> list[str]:
    """The next ``count`` fire times, as the wall clock shows them."""
    found: list[str] = []
    moment: datetime | None = after
    for _ in range(count):
        moment = cron.next(moment) if moment else None
        if moment is None:
            break
        found.append(f"{moment:%Y-%m-%d %H:%M:%S}")
    return found


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        # Quartz's own examples.
        ("0 0 12 * * ?", "2026-01-01 12:00", ["2026-01-02 12:00:00", "2026-01-03 12:00:00"]),
        ("0 15 10 ? * *", "2026-01-01", ["2026-01-01 10:15:00", "2026-01-02 10:15:00"]),
        ("0 15 10 * * ? 2027", "2026-01-01", ["2027-01-01 10:15:00"]),
        ("0 * 14 * * ?", "2026-01-01 14:58", ["2026-01-01 14:59:00", "2026-01-02 14:00:00"]),
        ("0 0/5 14,18 * * ?", "2026-01-01 14:50", ["2026-01-01 14:55:00", "2026-01-01 18:00:00"]),
        ("0 10,44 14 ? 3 WED", "2026-01-01", ["2026-03-04 14:10:00", "2026-03-04 14:44:00"]),
        ("0 15 10 ? * MON-FRI", "2026-01-02 11:00", ["2026-01-05 10:15:00"]),
        ("0 15 10 L * ?", "2026-01-31 11:00", ["2026-02-28 10:15:00", "2026-03-31 10:15:00"]),
        ("0 15 10 L-2 * ?", "2026-01-30", ["2026-02-26 10:15:00", "2026-03-29 10:15:00"]),
        ("0 15 10 ? * 6L", "2026-01-01", ["2026-01-30 10:15:00", "2026-02-27 10:15:00"]),
        ("0 15 10 ? * friL", "2026-01-01", ["2026-01-30 10:15:00"]),
        ("0 15 10 ? * 6#3", "2026-01-01", ["2026-01-16 10:15:00", "2026-02-20 10:15:00"]),
        ("0 15 10 ? * FRI#5", "2026-01-01", ["2026-01-30 10:15:00", "2026-05-29 10:15:00"]),
        ("0 0 12 1/5 * ?", "2026-01-27", ["2026-01-31 12:00:00", "2026-02-01 12:00:00"]),
        ("0 11 11 11 11 ?", "2026-01-01", ["2026-11-11 11:11:00", "2027-11-11 11:11:00"]),
        # Weekday nearest to a day, never leaving the month.
        ("0 0 0 15W * ?", "2026-02-01", ["2026-02-16 00:00:00", "2026-03-16 00:00:00"]),
        ("0 0 0 1W * ?", "2026-07-15", ["2026-08-03 00:00:00", "2026-09-01 00:00:00"]),
        ("0 0 0 31W * ?", "2026-01-01", ["2026-01-30 00:00:00", "2026-03-31 00:00:00"]),
        ("0 0 0 LW * ?", "2026-01-01", ["2026-01-30 00:00:00", "2026-02-27 00:00:00"]),
        ("0 0 0 L-3W * ?", "2026-02-01", ["2026-02-25 00:00:00", "2026-03-27 00:00:00"]),
        ("0 0 0 1,15W,L * ?", "2026-02-02", ["2026-02-16 00:00:00", "2026-02-28 00:00:00"]),
        ("0 0 0 L-0 * ?", "2026-01-30", ["2026-01-31 00:00:00", "2026-02-28 00:00:00"]),
        # The last day of January 2026 is a Saturday, that of May a Sunday.
        ("0 0 0 L-0W * ?", "2026-01-05", ["2026-01-30 00:00:00", "2026-02-27 00:00:00"]),
        ("0 0 0 L-0W 5 ?", "2026-01-05", ["2026-05-29 00:00:00", "2027-05-31 00:00:00"]),
        ("0 0 0 L-30 * ?", "2026-01-02", ["2026-03-01 00:00:00", "2026-05-01 00:00:00"]),
        # Quartz weekdays count from Sunday = 1; L alone is 7.
        ("0 0 0 ? * 1", "2026-01-01", ["2026-01-04 00:00:00"]),
        ("0 0 0 ? * L", "2026-01-01", ["2026-01-03 00:00:00", "2026-01-10 00:00:00"]),
        # Wrap-around ranges.
        ("0 0 22-1 * * ?", "2026-01-01 22:30", ["2026-01-01 23:00:00", "2026-01-02 00:00:00"]),
        ("50-10/10 0 0 * * ?", "2026-01-01 00:00:10", ["2026-01-01 00:00:50"]),
        ("0 0 0 1 NOV-FEB ?", "2026-02-01", ["2026-11-01 00:00:00", "2026-12-01 00:00:00"]),
        ("0 0 0 ? * FRI-MON", "2026-01-05", ["2026-01-09 00:00:00", "2026-01-10 00:00:00"]),
        ("0 0 0 30-2 * ?", "2026-02-01", ["2026-02-02 00:00:00", "2026-03-01 00:00:00"]),
        ("0 0 /6 * * ?", "2026-01-01", ["2026-01-01 06:00:00", "2026-01-01 12:00:00"]),
        # Years.
        ("0 0 0 1 1 ? 2028-2030/2", "2026-01-01", ["2028-01-01 00:00:00", "2030-01-01 00:00:00"]),
        ("0 0 0 29 2 ?", "2096-03-01", ["2104-02-29 00:00:00"]),
        ("59 59 23 31 12 ? 2199", "2026-01-01", ["2199-12-31 23:59:59"]),
        # Unix.
        ("30 4 * * *", "2026-01-01 04:30", ["2026-01-02 04:30:00"]),
        ("*/15 * * * *", "2026-01-01 00:46", ["2026-01-01 01:00:00", "2026-01-01 01:15:00"]),
        ("5/20 * * * *", "2026-01-01", ["2026-01-01 00:05:00", "2026-01-01 00:25:00"]),
        ("0 0 * * 0", "2026-01-01", ["2026-01-04 00:00:00"]),
        ("0 0 * * 7", "2026-01-01", ["2026-01-04 00:00:00"]),
        ("0 0 * * SAT-SUN", "2026-01-01", ["2026-01-03 00:00:00", "2026-01-04 00:00:00"]),
        ("0 0 * * 0-0", "2026-01-01", ["2026-01-04 00:00:00", "2026-01-11 00:00:00"]),
        ("0 0 * jan,Mar MON", "2026-01-26", ["2026-03-02 00:00:00"]),
        ("0 22 * * 1-5", "2026-01-02 23:00", ["2026-01-05 22:00:00"]),
        # Both day fields restricted: either one; a leading * makes it both.
        ("0 0 1,15 * 5", "2026-01-15", ["2026-01-16 00:00:00", "2026-01-23 00:00:00"]),
        ("0 0 */2 * MON", "2026-01-01", ["2026-01-05 00:00:00", "2026-01-19 00:00:00"]),
        ("0 0 13 * */5", "2026-01-01", ["2026-02-13 00:00:00", "2026-03-13 00:00:00"]),
    ],
)
def test_expression_fires_at(expression: str, after: str, expected: list[str]) -> None:
    assert fires(parse(expression), utc(after), len(expected)) == expected


@pytest.mark.parametrize(
    "expression",
    ["0 0 0 30 2 ?", "0 0 30 2 *", "0 0 0 31W 4,6 ?", "0 0 0 29 2 ? 2100", "0 0 0 L-30 2 ?"],
)
def test_impossible_date_never_fires(expression: str) -> None:
    cron = parse(expression)
    assert cron.next(utc("1970-01-01")) is None
    assert cron.previous(utc("2199-12-31")) is None


def test_last_fire_time_is_followed_by_none() -> None:
    cron = parse("0 0 0 1 1 ? 2030")
    assert cron.next(utc("2029-12-31 23:59:59")) == utc("2030-01-01")
    assert cron.next(utc("2030-01-01")) is None
    assert cron.previous(utc("2030-01-01 00:00:01")) == utc("2030-01-01")
    assert cron.previous(utc("2030-01-01")) is None


@pytest.mark.parametrize(
    ("expression", "field", "part"),
    [
        (",1 * * * *", "minute", ",1"),
        ("1, * * * *", "minute", "1,"),
        ("1,,2 * * * *", "minute", "1,,2"),
        ("1/0 * * * *", "minute", "1/0"),
        ("1k * * * *", "minute", "1k"),
        ("60 * * * *", "minute", "60"),
        ("-1 * * * *", "minute", "-1"),
        ("+1 * * * *", "minute", "+1"),
        ("1- * * * *", "minute", "1-"),
        ("1-2-3 * * * *", "minute", "1-2-3"),
        ("*5 * * * *", "minute", "*5"),
        ("*-5 * * * *", "minute", "*-5"),
        ("1/2/3 * * * *", "minute", "1/2/3"),
        ("*/ * * * *", "minute", "*/"),
        ("/5 * * * *", "minute", "/5"),
        ("*/60 * * * *", "minute", "*/60"),
        ("50-10 * * * *", "minute", "50-10"),
        ("* 24 * * *", "hour", "24"),
        ("* MON * * *", "hour", "MON"),
        ("* * 0 * *", "day-of-month", "0"),
        ("* * 32 * *", "day-of-month", "32"),
        ("* * ? * *", "day-of-month", "?"),
        ("* * L * *", "day-of-month", "L"),
        ("* * * 13 *", "month", "13"),
        ("* * * JANUARY *", "month", "JANUARY"),
        ("* * * * 8", "day-of-week", "8"),
        ("* * * * 5L", "day-of-week", "5L"),
        ("60 * * * * ?", "second", "60"),
        ("? * * * * ?", "second", "?"),
        ("L * * * * ?", "second", "L"),
        ("0 0/0 * * * ?", "minute", "0/0"),
        ("0 0 5/24 * * ?", "hour", "5/24"),
        ("0 0 0 * * *", "day-of-week", "*"),
        ("0 0 0 1 * MON", "day-of-week", "MON"),
        ("0 0 0 ? * ?", "day-of-week", "?"),
        ("0 0 0 ?,1 * ?", "day-of-month", "?"),
        ("0 0 0 L-31 * ?", "day-of-month", "L-31"),
        ("0 0 0 L-31W * ?", "day-of-month", "L-31W"),
        ("0 0 0 L3 * ?", "day-of-month", "L3"),
        ("0 0 0 W * ?", "day-of-month", "W"),
        ("0 0 0 1-5W * ?", "day-of-month", "1-5W"),
        ("0 0 0 32W * ?", "day-of-month", "32W"),
        ("0 0 0 1 ? ?", "month", "?"),
        ("0 0 0 ? * 0", "day-of-week", "0"),
        ("0 0 0 ? * 8", "day-of-week", "8"),
        ("0 0 0 ? * MON#0", "day-of-week", "MON#0"),
        ("0 0 0 ? * MON#6", "day-of-week", "MON#6"),
        ("0 0 0 ? * #2", "day-of-week", "#2"),
        ("0 0 0 ? * 6#", "day-of-week", "6#"),
        ("0 0 0 ? * MON#1,MON#3", "day-of-week", "MON#1"),
        ("0 0 0 ? * SAT,L", "day-of-week", "L"),
        ("0 0 0 ? * 2-4L", "day-of-week", "2-4L"),
        ("0 0 0 1 1 ? 1969", "year", "1969"),
        ("0 0 0 1 1 ? 2200", "year", "2200"),
        ("0 0 0 1 1 ? 2030-2028", "year", "2030-2028"),
        ("0 0 0 1 1 ? 99999", "year", "99999"),
    ],
)
def test_nonsense_is_refused_with_its_field(expression: str, field: str, part: str) -> None:
    with pytest.raises(InvalidCron) as info:
        parse(expression)
    assert (info.value.field, info.value.part) == (field, part)
    assert f"{field} {part!r}" in str(info.value)
    assert "allowed are" in str(info.value)
    assert isinstance(info.value, ValueError)
    assert isinstance(info.value, ShoalError)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("* * * * * ? * *", "8 fields"),
        ("1" * 2_000, "2000 characters"),
        ("０ 0 * * *", "ASCII"),
        ("0 0 * * ſun", "ASCII"),
    ],
)
def test_unreadable_expression_is_refused_as_a_whole(expression: str, words: str) -> None:
    with pytest.raises(InvalidCron, match=words) as info:
        parse(expression)
    assert info.value.field is None


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd", "/etc/localtime", "Europe"])
def test_unknown_zone_is_refused_by_name(zone: str) -> None:
    with pytest.raises(InvalidCron) as info:
        parse("0 0 * * *", zone)
    assert repr(zone) in str(info.value)


@pytest.mark.parametrize("option", [{"on_gap": "first"}, {"on_overlap": "shift"}])
def test_unknown_option_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidCron, match="allowed are"):
        parse("0 0 * * *", **option)


def test_time_without_zone_is_refused() -> None:
    cron = parse("0 0 * * *")
    for ask in (cron.next, cron.previous, cron.matches):
        with pytest.raises(ValueError, match="no time zone"):
            ask(datetime(2026, 1, 1))


def test_result_is_strictly_later_or_earlier_whatever_the_fraction() -> None:
    cron = parse("0 * * * * ?")
    noon = utc("2026-01-01 12:00")
    tick = timedelta(microseconds=1)
    assert cron.next(noon - tick) == noon
    assert cron.next(noon) == noon + timedelta(minutes=1)
    assert cron.next(noon + tick) == noon + timedelta(minutes=1)
    assert cron.previous(noon + tick) == noon
    assert cron.previous(noon) == noon - timedelta(minutes=1)
    assert cron.previous(noon - tick) == noon - timedelta(minutes=1)
    assert cron.matches(noon)
    assert not cron.matches(noon + tick)


def test_result_carries_the_zone_of_the_schedule_for_any_zone_of_the_question() -> None:
    cron = parse("0 9 * * *", "Asia/Tokyo")
    asked = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=-8)))
    found = cron.next(asked)
    assert found is not None
    assert str(found.tzinfo) == "Asia/Tokyo"
    assert found.isoformat() == "2026-01-02T09:00:00+09:00"


@pytest.mark.parametrize("offset", [-12, 0, 14])
def test_ends_of_time_are_no_error(offset: int) -> None:
    cron = parse("0 0 0 1 1 ?", "Pacific/Kiritimati")
    zone = timezone(timedelta(hours=offset))
    early, late = datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)
    first, last = cron.next(early), cron.previous(late)
    assert first is not None
    assert first.year == 1970
    assert last is not None
    assert last.year == 2199
    assert cron.previous(early) is None
    assert cron.next(late) is None
    assert not cron.matches(early)
    assert not cron.matches(late)


def test_equal_schedules_are_equal_and_survive_pickling() -> None:
    cron = parse("0 30 2 * * ?", "Europe/Berlin", on_gap="skip")
    again = pickle.loads(pickle.dumps(cron))
    assert again == cron == parse("0 30 2 * * ?", "Europe/Berlin", on_gap="skip")
    assert again != parse("0 30 2 * * ?", "Europe/Berlin")
    assert again.next(utc("2026-01-01")) == cron.next(utc("2026-01-01"))
    assert "Europe/Berlin" in repr(cron)
