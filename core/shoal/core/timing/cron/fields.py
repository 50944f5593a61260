"""Read cron expressions: Quartz (6 or 7 fields, seconds first) and Unix (5 fields).

Quartz    second minute hour day-of-month month day-of-week [year]
Unix             minute hour day-of-month month day-of-week

What Quartz means by ``L W LW # ?``, by ranges that wrap around (``22-4``, ``FRI-MON``) and by
SUN = 1 holds in the Quartz form. The Unix form is Vixie cron's: Sunday is 0 or 7, and if both day
fields are restricted and neither starts with ``*`` one of them suffices, else both must hold.
Everything with an ambiguous meaning is refused, even where Quartz accepts it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from shoal.core.errors import ShoalError
from shoal.core.timing.cron import days as selectors
from shoal.core.timing.cron.days import DayRule, Selector
from shoal.core.timing.cron.pattern import FIRST_YEAR, LAST_YEAR, Pattern

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_LONGEST = 1_000  # characters; far more than any list of values needs
_FORMS = "write 5 (Unix: minute first), 6 or 7 (Quartz: second first, year last)"


class InvalidCron(ShoalError, ValueError):
    """A cron expression, or its time zone, that means nothing.

    ``field`` names the field at fault (None: the whole expression), ``part`` is its text.
    """

    def __init__(self, expression: str, reason: str, field: str | None, part: str) -> None:
        self.expression, self.field, self.part, self.reason = expression, field, part, reason
        where = f"{field} {part!r}: " if field else ""
        super().__init__(f"cron expression {expression!r}: {where}{reason}")


@dataclass(frozen=True, slots=True)
class _Field:
    """One column of an expression: its name, its values, and what else it allows."""

    name: str
    low: int
    high: int
    longest_step: int
    names: dict[str, int]
    extras: str = ""
    wraps: bool = False
    leading_slash: bool = False

    @property
    def allowed(self) -> str:
        words = f" or {next(iter(self.names))}-{list(self.names)[-1]}" if self.names else ""
        return f"allowed are {self.low}-{self.high}{words}, with * , - /{self.extras}"


def _numbered(words: list[str], first: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(words, first)}


def _quartz(
    name: str, low: int, high: int, step: int, words: dict[str, int] | None = None, extras: str = ""
) -> _Field:
    return _Field(name, low, high, step, words or {}, extras, wraps=True, leading_slash=True)


_QUARTZ = (
    _quartz("second", 0, 59, 59),
    _quartz("minute", 0, 59, 59),
    _quartz("hour", 0, 23, 23),
    _quartz("day-of-month", 1, 31, 31, extras=" ? L L-3 LW 15W"),
    _quartz("month", 1, 12, 12, _numbered(_MONTHS, 1)),
    _quartz("day-of-week", 1, 7, 7, _numbered(_WEEKDAYS, 1), extras=" ? L 6L 6#3"),
    _Field("year", FIRST_YEAR, LAST_YEAR, LAST_YEAR - FIRST_YEAR, {}, leading_slash=True),
)
_UNIX = (
    _Field("minute", 0, 59, 59, {}),
    _Field("hour", 0, 23, 23, {}),
    _Field("day-of-month", 1, 31, 31, {}),
    _Field("month", 1, 12, 12, _numbered(_MONTHS, 1)),
    _Field("day-of-week", 0, 7, 7, _numbered(_WEEKDAYS, 0)),
)


def read(expression: str) -> Pattern:
    """Return the wall-clock times that ``expression`` means. Raises InvalidCron."""
    if len(expression) > _LONGEST:
        reason = f"it has {len(expression)} characters, at most {_LONGEST} are allowed"
        raise InvalidCron(expression[:40] + "…", reason, None, "")
    if not expression.isascii():
        raise InvalidCron(expression, "only ASCII characters have a meaning here", None, "")
    columns = expression.split()
    if len(columns) == len(_UNIX):
        return _read_unix(expression, columns)
    if len(columns) in (len(_QUARTZ) - 1, len(_QUARTZ)):
        return _read_quartz(expression, columns)
    raise InvalidCron(expression, f"it has {len(columns)} fields; {_FORMS}", None, "")


def _read_unix(expression: str, columns: list[str]) -> Pattern:
    readers = [_FieldReader(expression, *pair) for pair in zip(_UNIX, columns, strict=True)]
    minute, hour, day, month, weekday = readers
    by_day = selectors.numbered(day.values())
    by_weekday = selectors.weekdays((value - 1) % 7 for value in weekday.values())
    if columns[2].startswith("*") or columns[4].startswith("*"):
        days = selectors.both(by_day, by_weekday)
    else:
        days = selectors.any_of([by_day, by_weekday])
    return Pattern(
        seconds=(0,),
        minutes=minute.values(),
        hours=hour.values(),
        days=DayRule(days),
        months=month.values(),
        years=tuple(range(FIRST_YEAR, LAST_YEAR + 1)),
        is_interval=_is_interval(columns[:2]),
    )


def _read_quartz(expression: str, columns: list[str]) -> Pattern:
    columns = columns if len(columns) == len(_QUARTZ) else [*columns, "*"]
    readers = [_FieldReader(expression, *pair) for pair in zip(_QUARTZ, columns, strict=True)]
    second, minute, hour, day, month, weekday, year = readers
    if (columns[3] == "?") == (columns[5] == "?"):
        if columns[3] == "?":
            raise weekday.error(columns[5], "day-of-month is ? as well; one of them must choose")
        raise weekday.error(
            columns[5], "day-of-month chooses days as well; write ? in the one that must not"
        )
    days = day.selector(_day_of_month) if columns[5] == "?" else weekday.selector(_day_of_week)
    return Pattern(
        seconds=second.values(),
        minutes=minute.values(),
        hours=hour.values(),
        days=DayRule(days),
        months=month.values(),
        years=year.values(),
        is_interval=_is_interval(columns[:3]),
    )


def _is_interval(columns: list[str]) -> bool:
    return any(mark in column for column in columns for mark in "*/-")


@dataclass(frozen=True, slots=True)
class _FieldReader:
    """Reads one column, keeping at hand what an error message needs."""

    expression: str
    field: _Field
    column: str

    def values(self) -> tuple[int, ...]:
        return tuple(sorted({value for part in self.parts() for value in self.part_values(part)}))

    def selector(self, read_part: Callable[["_FieldReader", str], Selector]) -> Selector:
        return selectors.any_of([read_part(self, part) for part in self.parts()])

    def parts(self) -> list[str]:
        parts = self.column.split(",")
        if "" in parts:
            raise self.error(self.column, "a comma has nothing on one side")
        return parts

    def part_values(self, part: str) -> list[int]:
        """Return what ``*``, ``5``, ``5-9``, each with or without ``/step``, means."""
        field = self.field
        if part == "?":
            raise self.error(part, "? stands alone, and only in a Quartz day field")
        body, slash, step_text = part.partition("/")
        step = self._step(part, step_text) if slash else 1
        if body == "*" or (not body and slash and field.leading_slash):
            first, last = field.low, field.high
        elif "-" in body:
            first, last = self._range(part, body)
        else:
            first = self.number(part, body)
            last = field.high if slash else first
        size = field.high - field.low + 1
        return [(n - field.low) % size + field.low for n in range(first, last + 1, step)]

    def _range(self, part: str, body: str) -> tuple[int, int]:
        left, _, right = body.partition("-")
        first, last = self.number(part, left), self.number(part, right)
        field = self.field
        if first > last == 0 and field.high == 7:
            last = 7  # Unix: a range up to Sunday, SAT-SUN
        if first > last and not field.wraps:
            raise self.error(part, f"the range runs backwards, from {left} to {right}")
        return first, last if first <= last else last + field.high - field.low + 1

    def _step(self, part: str, text: str) -> int:
        longest = self.field.longest_step
        step = int(text) if _is_number(text) else 0
        if not 1 <= step <= longest:
            raise self.error(part, f"the step {text!r} must be a number from 1 to {longest}")
        return step

    def number(self, part: str, text: str) -> int:
        field = self.field
        if text.upper() in field.names:
            return field.names[text.upper()]
        if not _is_number(text):
            raise self.error(part, f"{text!r} is not a value of this field")
        if not field.low <= int(text) <= field.high:
            raise self.error(part, f"{text} is outside the field")
        return int(text)

    def error(self, part: str, reason: str) -> InvalidCron:
        return InvalidCron(
            self.expression, f"{reason}; {self.field.allowed}", self.field.name, part
        )


def _day_of_month(reader: _FieldReader, part: str) -> Selector:
    text = part.upper()
    body = text.removesuffix("W")
    if body.startswith("L"):
        selector = selectors.before_last(_days_before_last(reader, part, body))
    elif body == text:
        return selectors.numbered(reader.part_values(part))
    else:
        selector = selectors.numbered([reader.number(part, body)])
    return selector if body == text else selectors.nearest_weekday(selector)


def _days_before_last(reader: _FieldReader, part: str, body: str) -> int:
    if body == "L":
        return 0
    number = body.removeprefix("L-")
    if not _is_number(number) or not 0 <= int(number) <= 30:
        raise reader.error(part, "behind L only -0 to -30 and W may follow")
    return int(number)


def _day_of_week(reader: _FieldReader, part: str) -> Selector:
    text = part.upper()
    body, hash_, nth = text.partition("#")
    if not hash_ and not text.endswith("L"):
        # Quartz counts from Sunday = 1, the calendar from Monday = 0.
        return selectors.weekdays((value - 2) % 7 for value in reader.part_values(part))
    if reader.column != part:
        raise reader.error(part, "L and # of a weekday cannot be listed; use one schedule for each")
    if text == "L":
        return selectors.weekdays([selectors.SATURDAY])  # L alone is 7, the last of the week
    if not hash_:
        return selectors.last_weekday(_weekday(reader, part, text.removesuffix("L")))
    if nth not in {"1", "2", "3", "4", "5"}:
        raise reader.error(part, "behind # must come the week of the month, 1 to 5")
    return selectors.nth_weekday(_weekday(reader, part, body), int(nth))


def _weekday(reader: _FieldReader, part: str, text: str) -> int:
    return (reader.number(part, text) - 2) % 7


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4
