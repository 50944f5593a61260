"""Days of the history, in UTC."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Self

from shoal.insight.jobs.errors import BadDays

#: An attempt is looked for in this many days around the one in question: attempts that wait or run
#: for longer are missing from sums over days that they neither ended in nor are near to.
LONGEST_DAYS = 31


@dataclass(frozen=True)
class Days:
    """Days from ``first`` to ``last``, both included."""

    first: date
    last: date

    @classmethod
    def parse(cls, text: str, today: date = date.max) -> Self:
        """Return the days of ``FROM:TO`` or of a single ``DAY``. Raises BadDays.

        None of them is behind ``today``: the results of a day to come would be empty, and stand for
        the newest ones until that day.
        """
        first, _, last = text.partition(":")
        found = cls(_date(first, text), _date(last or first, text))
        if found.last > today:
            raise BadDays(text, f"{found.last} has not begun, today is {today} (UTC)")
        return found

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise BadDays(f"{self.first}:{self.last}", "the last day is before the first")

    def __str__(self) -> str:
        return f"{self.first}:{self.last}"

    def __iter__(self) -> Iterator[date]:
        for number in range((self.last - self.first).days + 1):
            yield self.first + timedelta(days=number)

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last

    def widened(self, before: int = 0, after: int = 0) -> "Days":
        """Return these days with as many more before and after them."""
        earliest = max(self.first.toordinal() - before, 1)
        latest = min(self.last.toordinal() + after, date.max.toordinal())
        return Days(date.fromordinal(earliest), date.fromordinal(latest))

    def up_to_last(self, count: int) -> "Days":
        """Return the ``count`` days that end with the last one."""
        return Days(self.last, self.last).widened(before=count - 1)


def _date(text: str, given: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise BadDays(given, f"{text!r} is not a day such as 2026-01-31")
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BadDays(given, f"{text!r}: {error}") from error
