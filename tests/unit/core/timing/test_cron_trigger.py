import pickle
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from apscheduler.schedulers.background import BackgroundScheduler

from shoal.core.timing.cron.expression import parse
from shoal.core.timing.cron.trigger import ShoalCronTrigger

BERLIN = ZoneInfo("Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_first_fire_time_may_be_now() -> None:
    trigger = ShoalCronTrigger(parse("0 * * * * ?"))
    now = utc("2026-01-01 12:00")
    assert trigger.get_next_fire_time(None, now) == now
    later = now + timedelta(microseconds=1)
    assert trigger.get_next_fire_time(None, later) == utc("2026-01-01 12:01")


def test_missed_times_come_one_after_the_other() -> None:
    trigger = ShoalCronTrigger(parse("0 * * * * ?"))
    previous = utc("2026-01-01 12:00")
    assert trigger.get_next_fire_time(previous, utc("2026-01-01 15:00")) == utc("2026-01-01 12:01")


def test_window_bounds_are_included() -> None:
    trigger = ShoalCronTrigger(
        parse("0 0 * * *"), start=utc("2026-01-05"), end=utc("2026-01-06 00:00")
    )
    assert trigger.get_next_fire_time(None, utc("2026-01-01")) == utc("2026-01-05")
    assert trigger.get_next_fire_time(utc("2026-01-02"), utc("2026-01-02")) == utc("2026-01-05")
    assert trigger.get_next_fire_time(utc("2026-01-05"), utc("2026-01-05")) == utc("2026-01-06")
    assert trigger.get_next_fire_time(utc("2026-01-06"), utc("2026-01-06")) is None


def test_expired_schedule_ends() -> None:
    trigger = ShoalCronTrigger(parse("0 0 0 1 1 ? 2020"), start=utc("2026-01-01"))
    assert trigger.get_next_fire_time(None, utc("2019-06-01")) is None


def test_times_of_a_repeated_hour_are_told_apart() -> None:
    trigger = ShoalCronTrigger(parse("*/30 2 * * *", "Europe/Berlin"))
    moments: list[datetime] = []
    previous, now = None, datetime(2026, 10, 25, tzinfo=BERLIN)
    for _ in range(4):
        previous = trigger.get_next_fire_time(previous, now)
        assert previous is not None
        moments.append(previous)
    assert [f"{moment:%H:%M %Z}" for moment in moments] == [
        "00:00 UTC",
        "00:30 UTC",
        "01:00 UTC",
        "01:30 UTC",
    ]


def test_window_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"start .* has no time zone"):
        ShoalCronTrigger(parse("0 0 * * *"), start=datetime(2026, 1, 1))


def test_scheduler_keeps_and_restores_it() -> None:
    trigger = ShoalCronTrigger(parse("0 0 1 1 *", "Europe/Berlin"), end=utc("2199-01-01"))
    again = pickle.loads(pickle.dumps(trigger))
    scheduler = BackgroundScheduler(timezone=BERLIN)
    scheduler.start(paused=True)
    try:
        job = scheduler.add_job(print, again)
        assert job.next_run_time.astimezone(BERLIN).strftime("%m-%d %H:%M") == "01-01 00:00"
        assert "0 0 1 1 *" in str(job.trigger)
        assert "Europe/Berlin" in repr(job.trigger)
    finally:
        scheduler.shutdown()
