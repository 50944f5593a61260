"""Cron where a zone's clock jumps."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest

from shoal.core.timing.cron.expression import Cron, parse
from shoal.core.timing.cron.pattern import LAST_YEAR
from tests.unit.core.timing.cron_reference import clock_changes


def fires(cron: Cron, start: str, end: str) -> list[str]:
    """Fire times in [start, end) of the zone's wall clock: day and time with offset."""
    zone = ZoneInfo(cron.timezone)
    now: datetime | None = datetime.fromisoformat(start).replace(tzinfo=zone) - timedelta(
        microseconds=1
    )
    last = datetime.fromisoformat(end).replace(tzinfo=zone).astimezone(UTC)
    found: list[str] = []
    while now is not None and (now := cron.next(now)) is not None and now.astimezone(UTC) < last:
        found.append(f"{now:%d %H:%M%z}")
    return found


def backwards(cron: Cron, start: str, end: str) -> list[str]:
    zone = ZoneInfo(cron.timezone)
    now: datetime | None = datetime.fromisoformat(end).replace(tzinfo=zone)
    first = datetime.fromisoformat(start).replace(tzinfo=zone).astimezone(UTC)
    found: list[str] = []
    while (
        now is not None and (now := cron.previous(now)) is not None and now.astimezone(UTC) >= first
    ):
        found.append(f"{now:%d %H:%M%z}")
    return found[::-1]


@pytest.mark.parametrize(
    ("zone", "expression", "options", "start", "end", "expected"),
    [
        # Berlin goes forward, 02:00 to 03:00.
        (
            "Europe/Berlin",
            "30 2 * * *",
            {},
            "2026-03-28",
            "2026-03-31",
            ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            {"on_gap": "skip"},
            "2026-03-28",
            "2026-03-31",
            ["28 02:30+0100", "30 02:30+0200"],
        ),
        # Two skipped times and a regular one at the end of the gap: one fire.
        (
            "Europe/Berlin",
            "0,30 2,3 * * *",
            {},
            "2026-03-29",
            "2026-03-30",
            ["29 03:00+0200", "29 03:30+0200"],
        ),
        # An interval knows no times to make up for.
        (
            "Europe/Berlin",
            "*/30 * * * *",
            {},
            "2026-03-29 01:00",
            "2026-03-29 04:00",
            ["29 01:00+0100", "29 01:30+0100", "29 03:00+0200", "29 03:30+0200"],
        ),
        ("Europe/Berlin", "*/20 2 * * *", {}, "2026-03-29", "2026-03-30", []),
        (
            "Europe/Berlin",
            "*/20 2 * * *",
            {"on_gap": "shift"},
            "2026-03-29",
            "2026-03-30",
            ["29 03:00+0200"],
        ),
        # Berlin goes back, 03:00 to 02:00.
        (
            "Europe/Berlin",
            "30 2 * * *",
            {},
            "2026-10-25",
            "2026-10-27",
            ["25 02:30+0200", "26 02:30+0100"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            {"on_overlap": "last"},
            "2026-10-25",
            "2026-10-27",
            ["25 02:30+0100", "26 02:30+0100"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            {"on_overlap": "both"},
            "2026-10-25",
            "2026-10-26",
            ["25 02:30+0200", "25 02:30+0100"],
        ),
        (
            "Europe/Berlin",
            "0 */30 2-3 * * ?",
            {},
            "2026-10-25",
            "2026-10-26",
            [
                "25 02:00+0200",
                "25 02:30+0200",
                "25 02:00+0100",
                "25 02:30+0100",
                "25 03:00+0100",
                "25 03:30+0100",
            ],
        ),
        (
            "Europe/Berlin",
            "0 */30 2 * * ?",
            {"on_overlap": "last"},
            "2026-10-25",
            "2026-10-26",
            ["25 02:00+0100", "25 02:30+0100"],
        ),
        (
            "America/New_York",
            "0 30 2 ? * SUN",
            {},
            "2026-03-08",
            "2026-03-16",
            ["08 03:00-0400", "15 02:30-0400"],
        ),
        (
            "America/New_York",
            "0 30 1 * * ?",
            {},
            "2026-11-01",
            "2026-11-03",
            ["01 01:30-0400", "02 01:30-0500"],
        ),
        # Half an hour: 02:00 to 02:30 is skipped, 01:30 to 02:00 comes twice.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            {},
            "2026-10-04",
            "2026-10-06",
            ["04 02:30+1100", "05 02:15+1100"],
        ),
        (
            "Australia/Lord_Howe",
            "*/15 1-2 * * *",
            {},
            "2026-04-05 01:15",
            "2026-04-05 02:15",
            [
                "05 01:15+1100",
                "05 01:30+1100",
                "05 01:45+1100",
                "05 01:30+1030",
                "05 01:45+1030",
                "05 02:00+1030",
            ],
        ),
        # Morocco turns its clock back for Ramadan and forward after it.
        (
            "Africa/Casablanca",
            "30 2 * * *",
            {},
            "2026-02-14",
            "2026-02-17",
            ["14 02:30+0100", "15 02:30+0100", "16 02:30+0000"],
        ),
        (
            "Africa/Casablanca",
            "30 2 * * *",
            {},
            "2026-03-21",
            "2026-03-24",
            ["21 02:30+0000", "22 03:00+0100", "23 02:30+0100"],
        ),
        # Samoa left out 30 December 2011.
        (
            "Pacific/Apia",
            "0 12 * * *",
            {},
            "2011-12-29",
            "2012-01-01",
            ["29 12:00-1000", "31 00:00+1400", "31 12:00+1400"],
        ),
        (
            "Pacific/Apia",
            "0 12 * * *",
            {"on_gap": "skip"},
            "2011-12-29",
            "2012-01-01",
            ["29 12:00-1000", "31 12:00+1400"],
        ),
        (
            "Pacific/Apia",
            "0 */12 * * *",
            {},
            "2011-12-29",
            "2012-01-01",
            ["29 00:00-1000", "29 12:00-1000", "31 00:00+1400", "31 12:00+1400"],
        ),
        # Midnight itself is skipped.
        (
            "America/Sao_Paulo",
            "0 0 * * *",
            {},
            "2018-11-03",
            "2018-11-06",
            ["03 00:00-0300", "04 01:00-0200", "05 00:00-0200"],
        ),
        # The hour before midnight comes twice.
        (
            "America/Sao_Paulo",
            "30 23 * * *",
            {"on_overlap": "both"},
            "2018-02-17",
            "2018-02-18",
            ["17 23:30-0200", "17 23:30-0300"],
        ),
    ],
)
def test_fires_around_a_clock_change(
    zone: str, expression: str, options: dict[str, Any], start: str, end: str, expected: list[str]
) -> None:
    cron = parse(expression, zone, **options)
    assert fires(cron, start, end) == expected
    assert backwards(cron, start, end) == expected


def test_end_of_gap_matches_only_if_it_fires() -> None:
    end_of_gap = datetime(2026, 3, 29, 1, tzinfo=UTC)  # 03:00 in Berlin
    assert parse("30 2 * * *", "Europe/Berlin").matches(end_of_gap)
    assert not parse("30 2 * * *", "Europe/Berlin", on_gap="skip").matches(end_of_gap)
    assert not parse("30 1 * * *", "Europe/Berlin").matches(end_of_gap)
    assert not parse("30 2 * * *", "Europe/Berlin").matches(end_of_gap + timedelta(hours=24))


def test_each_pass_of_a_repeated_hour_matches_by_its_option() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30 in Berlin, then again
    second = first + timedelta(hours=1)
    for option, expected in [("first", (1, 0)), ("last", (0, 1)), ("both", (1, 1))]:
        cron = parse("30 2 * * *", "Europe/Berlin", on_overlap=option)  # type: ignore[arg-type]
        assert (cron.matches(first), cron.matches(second)) == expected


def test_rules_hold_beyond_the_stored_table_of_changes() -> None:
    cron = parse("30 2 * * *", "Europe/Berlin")
    assert fires(cron, "2190-03-27", "2190-03-29") == ["27 02:30+0100", "28 03:00+0200"]


def test_every_zone_fires_in_strictly_increasing_order_around_its_changes() -> None:
    """Forward and backward agree, and each fire time matches, in every zone of the tz database."""
    checked = 0
    for name in sorted(available_timezones()):
        crons = [
            parse("*/15 * * * *", name),
            parse("30 0,1,2,23 * * *", name),
            parse("0 0/30 0-3 * * ?", name, on_gap="shift", on_overlap="last"),
        ]
        for change in clock_changes(ZoneInfo(name), 2026, 2026):
            for cron in crons:
                checked += _check_around(cron, change)
    assert checked > 5_000


def _check_around(cron: Cron, change: datetime) -> int:
    start, end = change - timedelta(hours=2), change + timedelta(hours=2)
    forward: list[datetime] = []
    now = start
    while (found := cron.next(now)) is not None and found.astimezone(UTC) < end:
        assert found.astimezone(UTC) > now, (cron, found)
        assert cron.matches(found), (cron, found)
        now = found.astimezone(UTC)
        forward.append(now)
    backward: list[datetime] = []
    now = end
    while (found := cron.previous(now)) is not None and found.astimezone(UTC) > start:
        assert found.astimezone(UTC) < now, (cron, found)
        now = found.astimezone(UTC)
        backward.append(now)
    assert backward[::-1] == forward, cron
    return len(forward)


def test_last_year_is_in_reach_of_every_zone() -> None:
    for name in ("Pacific/Kiritimati", "Etc/GMT+12"):
        last = parse("0 0 * * *", name).previous(datetime(LAST_YEAR + 2, 1, 1, tzinfo=UTC))
        assert last is not None
        assert (last.year, last.month, last.day) == (LAST_YEAR, 12, 31)
