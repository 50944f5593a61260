"""Timetables: validity, days left out, and what fires after a master was away."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.definition.model import Missed, ScheduleSpec
from shoal.core.schedule.fire_times import GRACE, Timetable, due, instant
from shoal.core.timing.cron.expression import parse
from tests.unit.core.timing.cron_reference import clock_changes

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)


def hourly(start: datetime | None = None, end: datetime | None = None) -> Timetable:
    return Timetable(parse("0 * * * *"), start, end)


def hours(*numbers: int) -> tuple[datetime, ...]:
    return tuple(NINE.replace(hour=number) for number in numbers)


# -- validity and days left out --------------------------------------------------------------------


def test_validity_includes_its_start_and_not_its_end() -> None:
    table = hourly(start=NINE, end=NINE + 2 * HOUR)
    assert table.upcoming(NINE - DAY, 9) == list(hours(9, 10))
    assert table.next(NINE) == NINE + HOUR
    assert table.next(NINE + HOUR) is None
    assert table.previous(NINE + DAY) == NINE + HOUR
    assert table.previous(NINE + HOUR) == NINE
    assert table.previous(NINE) is None


def test_bounds_between_two_seconds_hold_to_the_microsecond() -> None:
    moment = timedelta(microseconds=1)
    assert hourly(start=NINE + moment).next(NINE - DAY) == NINE + HOUR
    assert hourly(end=NINE + moment).previous(NINE + DAY) == NINE


def test_days_left_out_are_those_of_the_wall_clock() -> None:
    table = Timetable(
        parse("30 23 * * *", "America/New_York"), excluded=frozenset({date(2026, 7, 3)})
    )
    assert [f"{one:%d %H:%M}" for one in table.upcoming(datetime(2026, 7, 2, tzinfo=UTC), 3)] == [
        "01 23:30",
        "02 23:30",
        "04 23:30",
    ]


def test_schedule_all_of_whose_days_are_left_out_never_fires() -> None:
    table = Timetable(
        parse("0 0 0 1 1 ? 2026-2030"),
        excluded=frozenset(date(year, 1, 1) for year in range(2026, 2031)),
    )
    assert table.next(NINE - 300 * DAY) is None
    assert table.previous(NINE + 3000 * DAY) is None


def test_between_includes_its_start_and_not_its_end() -> None:
    assert tuple(hourly().between(NINE, NINE + 2 * HOUR)) == hours(9, 10)


def test_bounds_without_an_offset_are_in_the_zone_of_the_schedule() -> None:
    spec = ScheduleSpec.model_validate(
        {
            "cron": "0 0 * * *",
            "start": "2026-01-02",
            "end": "2026-01-04T00:00:00",
            "exclude": ["2026-01-03"],
        }
    )
    table = Timetable.defined(spec, "Asia/Tokyo")
    assert table.upcoming(datetime(2025, 1, 1, tzinfo=UTC), 5) == [
        datetime(2026, 1, 2, tzinfo=ZoneInfo("Asia/Tokyo"))
    ]
    assert (table.start, table.end) == (
        datetime(2026, 1, 1, 15, tzinfo=UTC),
        datetime(2026, 1, 3, 15, tzinfo=UTC),
    )
    assert instant(datetime(2026, 3, 29, 2, 30), "Europe/Berlin") == datetime(
        2026, 3, 29, 1, tzinfo=UTC
    )


ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",  # goes back over midnight until 2011
    "America/Havana",  # goes back to midnight
    "America/Sao_Paulo",  # goes back at midnight, forward from midnight
    "America/Asuncion",
    "Pacific/Apia",  # has no 30 December 2011
    "Africa/Casablanca",
]
MOMENTS = {zone: [NINE, *clock_changes(ZoneInfo(zone), 2010, 2012)] for zone in ZONES}
PLACES = st.sampled_from(ZONES).flatmap(
    lambda zone: st.tuples(st.just(zone), st.sampled_from(MOMENTS[zone]))
)
EXPRESSIONS = st.sampled_from(
    ["*/7 * * * *", "0 0 * * *", "30 23,0 * * *", "59 23 * * *", "0 */5 * * *", "5 0 * * 1-5"]
)
OFFSETS = st.integers(-4, 4)


@settings(max_examples=120)
@given(PLACES, EXPRESSIONS, st.sets(OFFSETS, max_size=6), st.none() | OFFSETS, st.none() | OFFSETS)
def test_timetable_is_its_cron_without_what_is_out_of_bounds_or_left_out(
    place: tuple[str, datetime],
    expression: str,
    left_out: set[int],
    start: int | None,
    end: int | None,
) -> None:
    zone, moment = place
    cron = parse(expression, zone, on_overlap="both")
    excluded = frozenset(moment.astimezone(ZoneInfo(zone)).date() + n * DAY for n in left_out)
    bounds = [None if n is None else moment + n * DAY + n * MINUTE for n in (start, end)]
    table = Timetable(cron, bounds[0], bounds[1], excluded)
    first, last = moment - 6 * DAY, moment + 6 * DAY
    everything, now = [], cron.next(first - MINUTE)
    while now is not None and now.astimezone(UTC) < last:
        everything.append(now)
        now = cron.next(now)
    expected = [
        one
        for one in everything
        if one.date() not in excluded
        and (bounds[0] is None or one.astimezone(UTC) >= bounds[0])
        and (bounds[1] is None or one.astimezone(UTC) < bounds[1])
    ]
    assert list(table.between(first, last)) == expected
    backwards, now = [], table.previous(last)
    while now is not None and now.astimezone(UTC) >= first:
        backwards.append(now)
        now = table.previous(now)
    assert backwards[::-1] == expected


# -- what is due -----------------------------------------------------------------------------------


def test_fire_time_that_has_come_fires_and_the_next_one_is_planned() -> None:
    found = due(hourly(), NINE, NINE + timedelta(seconds=2))
    assert (found.fires, found.next, found.passed_over) == ((NINE,), NINE + HOUR, False)


def test_nothing_fires_before_its_time() -> None:
    found = due(hourly(), NINE, NINE - timedelta(seconds=1))
    assert (found.fires, found.next, found.passed_over) == ((), NINE, False)


@pytest.mark.parametrize("policy", Missed)
def test_fire_time_within_the_grace_fires_under_every_policy(policy: Missed) -> None:
    late = due(hourly(), NINE, NINE + GRACE, policy, window=timedelta(0))
    assert (late.fires, late.passed_over) == ((NINE,), False)


@pytest.mark.parametrize("policy", Missed)
def test_master_that_is_seconds_behind_drops_nothing(policy: Missed) -> None:
    every_second = Timetable(parse("* * * * * ?"))
    found = due(every_second, NINE, NINE + timedelta(seconds=45), policy)
    assert found.fires == tuple(NINE + timedelta(seconds=n) for n in range(46))


@pytest.mark.parametrize(
    ("policy", "window", "fired", "passed_over"),
    [
        (Missed.SKIP, None, (12,), True),
        (Missed.LAST, None, (11, 12), True),
        (Missed.ALL, None, (9, 10, 11, 12), False),
        (Missed.ALL, 2 * HOUR, (11, 12), True),
        (Missed.ALL, 2 * HOUR + MINUTE, (10, 11, 12), True),
        (Missed.LAST, 2 * HOUR, (11, 12), True),
        (Missed.LAST, 30 * MINUTE, (12,), True),
    ],
)
def test_policy_decides_about_what_was_missed(
    policy: Missed, window: timedelta | None, fired: tuple[int, ...], passed_over: bool
) -> None:
    now = NINE + 3 * HOUR + timedelta(seconds=30)  # 12:00 is not missed yet
    found = due(hourly(), NINE, now, policy, window)
    assert found.fires == hours(*fired)
    assert (found.next, found.passed_over) == (NINE + 4 * HOUR, passed_over)


def test_more_than_one_look_may_fire_comes_with_the_next_looks() -> None:
    table, now = Timetable(parse("* * * * *")), NINE + 365 * DAY
    first = due(table, NINE, now, Missed.ALL, limit=1_000)
    assert first.fires == tuple(NINE + n * MINUTE for n in range(1_000))
    assert first.next == NINE + 1_000 * MINUTE
    second = due(table, first.next, now, Missed.ALL, limit=1_000)
    assert second.fires[0] == first.next


def test_planned_time_on_a_day_that_was_left_out_since_does_not_fire() -> None:
    table = Timetable(parse("0 9 * * *"), excluded=frozenset({NINE.date()}))
    found = due(table, NINE, NINE)
    assert (found.fires, found.next, found.passed_over) == ((), NINE + DAY, False)


def test_planned_time_after_the_end_does_not_fire() -> None:
    found = due(hourly(end=NINE), NINE, NINE)
    assert (found.fires, found.next) == ((), None)


@pytest.mark.parametrize("policy", Missed)
def test_planned_time_of_an_older_timetable_still_fires(policy: Missed) -> None:
    odd = NINE + timedelta(minutes=17)
    found = due(hourly(), odd, odd + timedelta(seconds=5), policy)
    assert (found.fires, found.next) == ((odd,), NINE + HOUR)


@settings(max_examples=300)
@given(
    st.sampled_from(Missed),
    st.none() | st.integers(0, 6 * 3600),
    st.integers(0, 5 * 3600),
    st.integers(1, 9),
    st.sets(st.integers(0, 3)),
)
def test_looks_one_after_the_other_fire_what_one_look_fires(
    policy: Missed, window_s: int | None, late_s: int, limit: int, left_out: set[int]
) -> None:
    """Taken in small portions at one moment, nothing is lost and nothing comes twice."""
    table = Timetable(
        parse("*/10 * * * *"), excluded=frozenset(NINE.date() + n * DAY for n in left_out)
    )
    planned = table.next(NINE - MINUTE)
    assert planned is not None
    now = planned + timedelta(seconds=late_s)
    window = None if window_s is None else timedelta(seconds=window_s)
    whole = due(table, planned, now, policy, window)
    times = [one for one in table.between(planned, now + timedelta(seconds=1)) if one <= now]
    missed = [one for one in times if now - one > GRACE]
    young = [one for one in missed if window is None or now - one <= window]
    chosen = {
        Missed.SKIP: [],
        Missed.LAST: young[-1:] if young and young[-1] == missed[-1] else [],
        Missed.ALL: young,
    }[policy]
    assert list(whole.fires) == chosen + times[len(missed) :]
    assert whole.passed_over == (len(whole.fires) < len(times))
    assert whole.next == table.next(max(now, planned))
    portions: list[datetime] = []
    moment = planned
    while moment <= now:
        portion = due(table, moment, now, policy, window, limit)
        assert len(portion.fires) <= limit
        portions += portion.fires
        assert portion.next is not None
        moment = portion.next
    assert portions == list(whole.fires)
