"""A job at times of day, by clocks that jump: run once a night, whatever happens to the clock."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.timing.cron.expression import parse
from shoal.core.timing.cron.trigger import ShoalCronTrigger, is_due

AT_TWO = ShoalCronTrigger(parse("0 0 2 * * ?"))
NIGHTLY_IN_BERLIN = ShoalCronTrigger(parse("0 30 2 * * ?", "Europe/Berlin"))
POLL = timedelta(minutes=1)
HALF_HOUR = timedelta(minutes=30)
DAY = timedelta(days=1)
YEAR = 365 * DAY
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def clock(start: datetime, length: timedelta, every: timedelta = POLL) -> Iterator[datetime]:
    """Yield what a clock shows at each poll."""
    for n in range(int(length / every)):
        yield start + n * every


def runs(
    trigger: Any, readings: Iterable[datetime], previous: datetime | None = None
) -> list[datetime]:
    """Poll at each reading; return when the job ran."""
    ran: list[datetime] = []
    for now in readings:
        if is_due(trigger, previous, now):
            ran.append(now)
            previous = now
    return ran


def test_job_runs_once_a_night() -> None:
    two = NOON.replace(hour=2)
    assert runs(AT_TWO, clock(NOON, 3 * DAY), NOON) == [two + n * DAY for n in (1, 2, 3)]


def test_job_that_never_ran_is_due() -> None:
    assert runs(AT_TWO, clock(NOON, DAY / 2)) == [NOON]


def test_time_at_which_it_ran_does_not_come_again() -> None:
    two = NOON.replace(hour=2)
    assert not is_due(AT_TWO, two, two)
    assert is_due(AT_TWO, two - timedelta(microseconds=1), two)


@pytest.mark.parametrize("nights", [1, 400])
def test_missed_nights_are_made_up_for_by_one_run(nights: int) -> None:
    """The machine was suspended, the cluster was down, or the clock was set forward."""
    woken = NOON + nights * DAY
    assert runs(AT_TWO, clock(woken, DAY), NOON) == [woken, (woken + DAY).replace(hour=2)]


def test_missed_times_cost_no_more_than_one() -> None:
    asked = []

    class Counted(ShoalCronTrigger):
        def get_next_fire_time(
            self, previous_fire_time: datetime | None, now: datetime
        ) -> datetime | None:
            asked.append(now)
            return super().get_next_fire_time(previous_fire_time, now)

    assert is_due(Counted(parse("* * * * * ?")), NOON, NOON + YEAR)
    assert len(asked) == 1


@pytest.mark.parametrize("back", [timedelta(minutes=5), timedelta(hours=20), YEAR])
def test_clock_that_goes_back_stops_no_night(back: timedelta) -> None:
    start = NOON - back
    ran = runs(AT_TWO, clock(start, 3 * DAY), NOON)
    assert all(later - earlier <= DAY + POLL for earlier, later in pairwise([start, *ran]))
    assert ran[-1] > start + 2 * DAY


def test_clock_that_was_ahead_for_a_while_stops_no_night() -> None:
    ahead = clock(NOON + YEAR, timedelta(hours=1))
    ran = runs(AT_TWO, [*ahead, *clock(NOON, 2 * DAY)], NOON)
    two = NOON.replace(hour=2)
    assert ran == [NOON + YEAR, NOON, two + DAY, two + 2 * DAY]


@pytest.mark.parametrize(
    "spring_or_autumn", [datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 10, 23, tzinfo=UTC)]
)
def test_night_in_which_clocks_change_has_one_run(spring_or_autumn: datetime) -> None:
    ran = runs(NIGHTLY_IN_BERLIN, clock(spring_or_autumn, 5 * DAY), spring_or_autumn)
    assert [moment.date() for moment in ran] == [
        (spring_or_autumn + n * DAY).date() for n in range(5)
    ]


@given(
    st.lists(
        st.tuples(
            st.integers(min_value=-3 * 365 * 24 * 60, max_value=3 * 365 * 24 * 60),
            st.integers(min_value=0, max_value=20),
        ),
        max_size=6,
    )
)
def test_after_any_jumps_every_night_has_its_run_and_none_has_many(
    jumps: list[tuple[int, int]],
) -> None:
    """Each jump, by minutes, is followed by some polls; then the clock is right for three days."""
    readings, now = [], NOON
    for minutes, polls in jumps:
        now += timedelta(minutes=minutes)
        readings += list(clock(now, polls * POLL))
    hasty = runs(AT_TWO, readings, NOON)
    ran = runs(AT_TWO, clock(now, 3 * DAY, HALF_HOUR), hasty[-1] if hasty else NOON)
    gaps = [later - earlier for earlier, later in pairwise([now, *ran, now + 3 * DAY])]
    assert max(gaps) <= DAY + HALF_HOUR
    assert len(ran) <= 4  # one may make up for a time that was missed
    assert len(hasty) <= 2 * len(jumps)  # one for a jump, one for a fire time soon after it
