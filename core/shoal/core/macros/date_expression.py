"""What stands between ``$[`` and ``]``: a moment relative to the base, and how to write it.

==========================================  =================================================
``pattern``                                 the base, formatted (see ``date_pattern``)
``pattern+N``, ``pattern-7*N``              N calendar days, N weeks later or earlier
``pattern+N/24``, ``/24/60``, ``/24/60/60`` N hours, minutes, seconds of absolute time
``add_years|add_months(pattern, N)``        N calendar years, months; day cut to the month's last
``add_weeks|add_days(pattern, N)``          N calendar weeks, days
``add_hours|add_minutes|add_seconds(…, N)`` absolute time
``this_day(pattern)``, ``last_day(…)``      today, **yesterday**
``month_begin|month_end(pattern, N)``       first, last day of the month plus N **days**
``week_begin|week_end(pattern, N)``         Monday, Sunday of the week plus N **days**
``month_first_day|month_last_day(…, N)``    first, last day of the month N **months** away
``week_first_day|week_last_day(…, N)``      Monday, Sunday of the week N **weeks** away
``year_week(pattern[, D])``                 week-based year and week, ``202631``, or ``2026-31``
                                            if the pattern has a ``-``; weeks start on day D
                                            (1 Monday, the default, to 7), and the first week of a
                                            year has at least four days in it (ISO 8601 for D = 1)
``timestamp(expression)``                   epoch seconds; its pattern must be yyyyMMddHHmmss, where
                                            digits may stand for a part: ``yyyyMMdd000000``
==========================================  =================================================

Calendar steps keep the time of day, in the base's zone; a time that the clock skips on that day
moves behind the gap. N may be left out of the month and week functions. An offset is found as in
the systems that brought these forms up: it is the arithmetic at the end, so ``yyyy-MM-dd-1`` is
one day back and ``yyyy-MM-dd`` none; a literal number behind a sign must be quoted.
"""

import calendar
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from shoal.core.macros.arithmetic import count, days_and_seconds
from shoal.core.macros.date_pattern import BadExpression, Formatter, compile_pattern
from shoal.core.timing.wallclock import at, is_aware

DateExpression = Callable[[datetime], str]
_Moment = Callable[[datetime], datetime]

_LONGEST = 500  # characters
_FUNCTION = re.compile(r"([a-z_]+)[ ]*\(")
_PATTERN_LETTERS = set("ydms")
_ARITHMETIC = "0123456789+-*/() "
_TIMESTAMP_PATTERN = "yyyyMMddHHmmss"
# Digits in the place of a part: that part of the moment is given.
_TIMESTAMP = re.compile(
    r"(?P<year>yyyy|(?!0000)[0-9]{4})(?P<month>MM|0[1-9]|1[0-2])(?P<day>dd|0[1-9]|[12][0-9]|3[01])"
    r"(?P<hour>HH|[01][0-9]|2[0-3])(?P<minute>mm|[0-5][0-9])(?P<second>ss|[0-5][0-9])"
)


def _add_months(day: date, n: int) -> date:
    month = day.year * 12 + day.month - 1 + n
    year, month = month // 12, month % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _month_end(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _days(n: int) -> timedelta:
    return timedelta(days=n)


_REQUIRED: dict[str, Callable[[date, int], date]] = {
    "add_years": lambda day, n: _add_months(day, 12 * n),
    "add_months": _add_months,
    "add_weeks": lambda day, n: day + _days(7 * n),
    "add_days": lambda day, n: day + _days(n),
}
_OPTIONAL: dict[str, Callable[[date, int], date]] = {
    "month_begin": lambda day, n: day.replace(day=1) + _days(n),
    "month_end": lambda day, n: _month_end(day) + _days(n),
    "week_begin": lambda day, n: _monday(day) + _days(n),
    "week_end": lambda day, n: _monday(day) + _days(6 + n),
    "month_first_day": lambda day, n: _add_months(day, n).replace(day=1),
    "month_last_day": lambda day, n: _month_end(_add_months(day, n)),
    "week_first_day": lambda day, n: _monday(day) + _days(7 * n),
    "week_last_day": lambda day, n: _monday(day) + _days(7 * n + 6),
}
_NONE: dict[str, Callable[[date, int], date]] = {
    "this_day": lambda day, _: day,
    "last_day": lambda day, _: day - _days(1),
}
_SECONDS = {"add_hours": 3_600, "add_minutes": 60, "add_seconds": 1}
_CALENDAR = _REQUIRED | _OPTIONAL | _NONE
FUNCTIONS = sorted({*_CALENDAR, *_SECONDS, "year_week", "timestamp"})


@lru_cache(maxsize=1_024)
def compile_expression(source: str) -> DateExpression:
    """Return the function from base to text that ``source`` (without ``$[ ]``) means.

    Raises BadExpression; so does the function if the result leaves the years 1 to 9999, or
    if an epoch timestamp is asked of a base without a time zone.
    """
    if len(source) > _LONGEST:
        raise BadExpression(0, f"the expression is longer than {_LONGEST} characters")
    if not source.strip():
        raise BadExpression(0, "the expression is empty")
    call = _call(source)
    if call is None:
        return _formatted(*_simple(source))
    name, arguments = call
    if name == "timestamp":
        return _timestamp(arguments)
    if name == "year_week":
        return _year_week(arguments)
    return _formatted(*_function(name, arguments))


Argument = tuple[str, int]  # text without outer spaces, and its offset in the source


def _call(source: str) -> tuple[str, list[Argument]] | None:
    """Return function name and arguments if ``source`` is a function call."""
    lead = len(source) - len(source.lstrip(" "))
    head = _FUNCTION.match(source, lead)
    if head is None:
        return None
    name = head[1]
    if set(name) <= _PATTERN_LETTERS:
        return None  # yyyy(MM): a pattern with a literal parenthesis
    if name not in FUNCTIONS:
        raise BadExpression(lead, f"unknown function {name!r}; known are {', '.join(FUNCTIONS)}")
    return name, _arguments(source, head.end(), name)


def _arguments(source: str, start: int, name: str) -> list[Argument]:
    arguments: list[Argument] = []
    depth, quoted, begin = 0, False, start
    for position in range(start, len(source)):
        character = source[position]
        if character == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
        elif character in ",)" and not depth:
            arguments.append(_trimmed(source[begin:position], begin))
            begin = position + 1
            if character == ")":
                if source[begin:].strip():
                    raise BadExpression(begin, f"nothing may follow {name}(…)")
                return arguments
    raise BadExpression(start, f"the ) of {name}( is missing")


def _trimmed(text: str, offset: int) -> Argument:
    return text.strip(" "), offset + len(text) - len(text.lstrip(" "))


def _simple(source: str) -> tuple[_Moment, Argument]:
    """Take ``pattern`` or ``pattern±offset`` apart."""
    tail = len(source)
    while tail and source[tail - 1] in _ARITHMETIC:
        tail -= 1
    sign = re.search(r"[+-]", source[tail:])
    if sign is None or not re.search(r"[0-9]", source[tail + sign.start() :]):
        _refuse_half_offset(source)
        return (lambda base: base), (source.strip(" "), len(source) - len(source.lstrip(" ")))
    start = tail + sign.start()
    days, seconds = days_and_seconds(source[start:], start)
    pattern = _trimmed(source[:start], 0)
    if not pattern[0]:
        raise BadExpression(0, "the date pattern in front of the offset is missing")
    return (lambda base: _later(_on_day(base, base.date() + _days(days)), seconds)), pattern


def _refuse_half_offset(source: str) -> None:
    """Refuse ``yyyyMMdd+1d``: the last sign with a digit behind it has to start an offset."""
    unquoted = re.sub(r"'[^']*'", lambda quoted: " " * len(quoted[0]), source)
    position = unquoted.rfind("+")
    if position < 0:
        position = unquoted.rfind("-")
    if position >= 0 and unquoted[position + 1 : position + 2].isdigit():
        text = source[position:].strip()
        reason = f"{text!r} is not an offset (days N, hours N/24, …); quote a literal number"
        raise BadExpression(position, reason)


def _function(name: str, arguments: list[Argument]) -> tuple[_Moment, Argument]:
    most = 1 if name in _NONE else 2
    least = 1 if name in _NONE or name in _OPTIONAL else 2
    _check_count(name, arguments, least, most)
    n = count(*arguments[1]) if len(arguments) == 2 else 0
    if name in _SECONDS:
        return (lambda base: _later(base, n * _SECONDS[name])), arguments[0]
    step = _CALENDAR[name]
    return (lambda base: _on_day(base, step(base.date(), n))), arguments[0]


def _check_count(name: str, arguments: list[Argument], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} or {most}"
        offset = arguments[0][1]
        noun = "argument" if most == 1 else "arguments"
        reason = f"{name} takes {wanted} {noun}, not {len(arguments)}; quote a literal comma"
        raise BadExpression(offset, reason)


def _formatted(moment: _Moment, pattern: Argument) -> DateExpression:
    write: Formatter = compile_pattern(*pattern)
    return lambda base: write(_guarded(moment, base))


def _timestamp(arguments: list[Argument]) -> DateExpression:
    # An inner function's own commas are inside its parentheses, so one argument arrives.
    _check_count("timestamp", arguments, 1, 1)
    source, offset = arguments[0]
    try:
        call = _call(source)
        if call is None:
            moment, pattern = _simple(source)
        elif call[0] in ("timestamp", "year_week"):
            raise BadExpression(0, f"timestamp cannot hold {call[0]}")
        else:
            moment, pattern = _function(*call)
    except BadExpression as error:
        raise BadExpression(offset + error.offset, error.reason) from None
    parts = _TIMESTAMP.fullmatch(pattern[0])
    if parts is None:
        reason = (
            f"the pattern inside timestamp must be {_TIMESTAMP_PATTERN}; digits may stand for a "
            "part of it, as in yyyyMMdd000000"
        )
        raise BadExpression(offset + pattern[1], reason)
    fixed = {name: int(text) for name, text in parts.groupdict().items() if text.isdigit()}

    def seconds(base: datetime) -> str:
        found = _guarded(lambda base: _fixed(moment(base), fixed), base)
        if not is_aware(found):
            raise BadExpression(0, "timestamp needs a base with a time zone")
        return str(int(found.replace(microsecond=0).timestamp()))

    return seconds


def _fixed(found: datetime, parts: Mapping[str, int]) -> datetime:
    """Return the moment at which some parts of the clock's reading are those given."""
    if not parts or found.tzinfo is None or not is_aware(found):
        return found
    wall = {**{name: getattr(found, name) for name in _TIMESTAMP.groupindex}, **parts}
    last = calendar.monthrange(wall["year"], wall["month"])[1]
    return at(datetime(**{**wall, "day": min(wall["day"], last)}), found.tzinfo)


def _year_week(arguments: list[Argument]) -> DateExpression:
    _check_count("year_week", arguments, 1, 2)
    pattern, offset = arguments[0]
    compile_pattern(pattern, offset)
    separator = "-" if "-" in pattern else ""
    first = count(*arguments[1]) if len(arguments) == 2 else 1
    if not 1 <= first <= 7:
        raise BadExpression(arguments[1][1], "a week starts on day 1 (Monday) to 7 (Sunday)")

    def week(base: datetime) -> str:
        start = base.date() - _days((base.weekday() - (first - 1)) % 7)
        middle = start + _days(3)  # the year that holds the fourth day holds most of the week
        return f"{middle.year:04}{separator}{(middle.timetuple().tm_yday - 1) // 7 + 1:02}"

    def guarded(base: datetime) -> str:
        try:
            return week(base)
        except OverflowError:
            raise BadExpression(0, _OUT_OF_YEARS) from None

    return guarded


_OUT_OF_YEARS = "the result is outside the years 1 to 9999"


def _guarded(moment: _Moment, base: datetime) -> datetime:
    try:
        return moment(base)
    except (OverflowError, ValueError):
        raise BadExpression(0, _OUT_OF_YEARS) from None


def _on_day(base: datetime, day: date) -> datetime:
    """Return the base's time of day on ``day``, in the base's zone."""
    if day == base.date():
        return base
    wall = datetime.combine(day, base.time())
    if base.tzinfo is None or not is_aware(base):
        return wall
    return at(wall, base.tzinfo)


def _later(base: datetime, seconds: int) -> datetime:
    if not seconds:
        return base
    step = timedelta(seconds=seconds)
    if base.tzinfo is None or not is_aware(base):
        return base + step
    return (base.astimezone(UTC) + step).astimezone(base.tzinfo)
