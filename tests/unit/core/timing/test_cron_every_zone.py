"""Cron in every zone of the tz database, 2024 to 2035, against the slow reference."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest

from shoal.core.timing.cron.expression import OnGap, OnOverlap, parse
from tests.unit.core.timing.cron_reference import ALL_WEEKDAYS, Fields, clock_changes, walk
from tests.unit.core.timing.firings import backward, forward

FIRST_YEAR, LAST_YEAR = 2024, 2035
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ZONES = sorted(available_timezones())


@cache
def behaviours() -> dict[str, list[datetime]]:
    """One zone of each kind with the instants of its changes; kinds differ in these years.

    Most of the 600 names are other names for the same clock.
    """
    found: dict[tuple[object, ...], str] = {}
    changes: dict[str, list[datetime]] = {}
    for name in ZONES:
        zone = ZoneInfo(name)
        instants = clock_changes(zone, FIRST_YEAR, LAST_YEAR)
        shown = (datetime(FIRST_YEAR, 1, 1, tzinfo=UTC), *instants)
        key = tuple((one, one.astimezone(zone).utcoffset()) for one in shown)
        if found.setdefault(key, name) == name:
            changes[name] = instants
    return changes


def fields(minutes: str, hours: str, *, is_interval: bool) -> Fields:
    """An expression of minutes and hours for every day: lists of numbers, or ``*``."""
    return Fields(
        f"{minutes} {hours} * * *",
        frozenset([0]),
        _numbers(minutes, 60),
        _numbers(hours, 24),
        frozenset(range(1, 32)),
        frozenset(range(1, 13)),
        ALL_WEEKDAYS,
        either_day=False,
        is_interval=is_interval,
    )


def _numbers(text: str, end: int) -> frozenset[int]:
    return frozenset(range(end) if text == "*" else map(int, text.split(",")))


FIXED = fields("0,30,59", "0,1,2,3,22,23", is_interval=False)
OFTEN = fields("0,13,45", "*", is_interval=True)
CASES: list[tuple[Fields, OnGap | None, OnOverlap | None]] = [
    (FIXED, None, None),
    (FIXED, "skip", "last"),
    (OFTEN, None, None),
    (OFTEN, "shift", "first"),
]


@pytest.mark.parametrize("case", CASES, ids=["fixed", "fixed-skip-last", "often", "often-shift"])
def test_every_clock_change_is_as_the_reference_says(
    case: tuple[Fields, OnGap | None, OnOverlap | None],
) -> None:
    expression, on_gap, on_overlap = case
    minutes = 0
    for name, changes in behaviours().items():
        cron = parse(expression.text, name, on_gap=on_gap, on_overlap=on_overlap)
        for change in changes:
            start, end = change - 3 * HOUR, change + 3 * HOUR
            expected = walk(
                expression, ZoneInfo(name), start, end, MINUTE, on_gap=on_gap, on_overlap=on_overlap
            )
            assert forward(cron, start, end) == expected, (name, change)
            assert backward(cron, start, end) == expected, (name, change)
            minutes += (end - start) // MINUTE
    assert minutes > 250_000  # four of these make a million


def test_last_days_of_all_months_are_found_in_every_zone() -> None:
    """29 February among them. No zone changes its clock at noon in these years."""
    ends = [
        (year, month, monthrange(year, month)[1])
        for year in range(FIRST_YEAR, LAST_YEAR + 1)
        for month in range(1, 13)
    ]
    for name in ZONES:
        zone = ZoneInfo(name)
        expected = [datetime(*end, 12, tzinfo=zone).astimezone(UTC) for end in ends]
        start, end = expected[0] - HOUR, expected[-1] + HOUR
        cron = parse("0 0 12 L * ?", name)
        assert forward(cron, start, end) == expected, name
        if name in behaviours():
            assert backward(cron, start, end) == expected, name
