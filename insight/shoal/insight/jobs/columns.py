"""Expressions that several jobs use: days and seconds."""

from datetime import UTC, date, datetime, time, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

from shoal.insight.jobs.days import Days

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000


def micros(at: str) -> Column:
    """Return a time as microseconds since 1970, UTC."""
    return F.unix_micros(F.col(at))


def day_of(at: str) -> Column:
    """Return the day of a time, in UTC whatever the session's time zone is."""
    return F.date_from_unix_date(F.floor(micros(at) / F.lit(DAY_US)).cast("int"))


def within(at: str, days: Days) -> Column:
    """Return whether a time is in one of the days. Files of other days are not even opened."""
    return (F.col(at) >= F.lit(start_of(days.first))) & (F.col(at) < F.lit(end_of(days.last)))


def start_of(day: date) -> datetime:
    """Return when a day begins."""
    return datetime.combine(day, time(), UTC)


def end_of(day: date) -> datetime:
    """Return when a day is over: when the next one begins."""
    return start_of(day) + timedelta(days=1)


def seconds(start: str, end: str) -> Column:
    """Return the seconds between two times; NULL if one is missing, 0 if a clock went back."""
    between = (micros(end) - micros(start)) / F.lit(1_000_000.0)
    return F.when(between < 0, F.lit(0.0)).otherwise(between)


def count_if(condition: Column) -> Column:
    """Return how many rows of a group fulfil a condition."""
    return F.count(F.when(condition, F.lit(1)))
