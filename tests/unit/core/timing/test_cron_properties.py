"""Cron against the slow reference, for random expressions, zones and moments."""

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.timing.cron.expression import InvalidCron, OnGap, OnOverlap, parse
from tests.unit.core.timing.cron_reference import (
    ALL_WEEKDAYS,
    Fields,
    clock_changes,
    walk,
    weekday_of,
)
from tests.unit.core.timing.firings import backward, forward

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Havana",
    "Asia/Kathmandu",
    "Antarctica/Troll",
    "Pacific/Apia",
    "America/Sao_Paulo",
]
_ALWAYS = [datetime(2026, 2, 28, 12, tzinfo=UTC), datetime(2027, 12, 31, 20, tzinfo=UTC)]
MOMENTS = {
    zone: _ALWAYS
    + clock_changes(ZoneInfo(zone), 2010, 2013)
    + clock_changes(ZoneInfo(zone), 2026, 2026)
    for zone in ZONES
}


@st.composite
def column(draw: st.DrawFn, low: int, high: int, *, wraps: bool) -> tuple[str, frozenset[int]]:
    """One field as text, and the values it has to mean."""
    texts: list[str] = []
    values: set[int] = set()
    size = high - low + 1
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["*", "*/", "n", "n", "n/", "a-b", "a-b/"]))
        first, last = draw(st.integers(low, high)), draw(st.integers(low, high))
        step = draw(st.integers(1, size - 1))
        if not wraps and first > last:
            first, last = last, first
        span = (
            list(range(first, last + 1))
            if first <= last
            else [
                *range(first, high + 1),
                *range(low, last + 1),
            ]
        )
        text, meant = {
            "*": ("*", range(low, high + 1)),
            "*/": (f"*/{step}", range(low, high + 1, step)),
            "n": (f"{first}", [first]),
            "n/": (f"{first}/{step}", range(first, high + 1, step)),
            "a-b": (f"{first}-{last}", span),
            "a-b/": (f"{first}-{last}/{step}", span[::step]),
        }[kind]
        texts.append(text)
        values.update(meant)
    return ",".join(texts), frozenset(values)


EVERY_DAY = ("*", frozenset(range(1, 32)))
EVERY_MONTH = ("*", frozenset(range(1, 13)))


@st.composite
def unix(draw: st.DrawFn) -> Fields:
    minute = draw(column(0, 59, wraps=False))
    hour = draw(column(0, 23, wraps=False))
    day = draw(st.one_of(st.just(EVERY_DAY), column(1, 31, wraps=False)))
    month = draw(st.one_of(st.just(EVERY_MONTH), column(1, 12, wraps=False)))
    weekday = draw(st.one_of(st.just(("*", ALL_WEEKDAYS)), column(0, 6, wraps=False)))
    # The product reads * and n/step up to 7, which is Sunday again.
    if any("/" in part and "-" not in part for part in weekday[0].split(",")):
        weekday = ("*", ALL_WEEKDAYS)
    return Fields(
        text=f"{minute[0]} {hour[0]} {day[0]} {month[0]} {weekday[0]}",
        seconds=frozenset([0]),
        minutes=minute[1],
        hours=hour[1],
        days=day[1],
        months=month[1],
        weekdays=weekday[1],
        either_day=day[0][0] != "*" and weekday[0][0] != "*",
        is_interval=any(mark in minute[0] + hour[0] for mark in "*-/"),
    )


@st.composite
def quartz(draw: st.DrawFn) -> Fields:
    second = draw(column(0, 59, wraps=True))
    minute = draw(column(0, 59, wraps=True))
    hour = draw(column(0, 23, wraps=True))
    month = draw(st.one_of(st.just(EVERY_MONTH), column(1, 12, wraps=True)))
    day, weekday = draw(st.one_of(st.just(EVERY_DAY), column(1, 31, wraps=True))), None
    if draw(st.booleans()):
        day, weekday = EVERY_DAY, draw(column(1, 7, wraps=True))
    days = f"? {month[0]} {weekday[0]}" if weekday else f"{day[0]} {month[0]} ?"
    return Fields(
        text=f"{second[0]} {minute[0]} {hour[0]} {days}",
        seconds=second[1],
        minutes=minute[1],
        hours=hour[1],
        days=day[1],
        months=month[1],
        weekdays=frozenset(n - 1 for n in weekday[1]) if weekday else ALL_WEEKDAYS,
        either_day=False,
        is_interval=any(mark in second[0] + minute[0] + hour[0] for mark in "*-/"),
    )


OPTIONS = st.tuples(
    st.sampled_from([None, "shift", "skip"]), st.sampled_from([None, "first", "last", "both"])
)
PLACES = st.sampled_from(ZONES).flatmap(
    lambda zone: st.tuples(st.just(zone), st.sampled_from(MOMENTS[zone]))
)


def compare(
    fields: Fields,
    place: tuple[str, datetime],
    options: tuple[OnGap | None, OnOverlap | None],
    before: timedelta,
    length: timedelta,
    step: timedelta,
) -> None:
    zone, moment = place
    start = moment.replace(second=0) - before
    end = start + length
    cron = parse(fields.text, zone, on_gap=options[0], on_overlap=options[1])
    expected = walk(
        fields, ZoneInfo(zone), start, end, step, on_gap=options[0], on_overlap=options[1]
    )
    assert forward(cron, start, end) == expected, fields.text
    assert backward(cron, start, end) == expected, fields.text
    inner = [start + length * n / 7 for n in range(8)]
    for instant in [*expected, *(one.replace(microsecond=0, second=0) for one in inner)]:
        if start <= instant < end:
            assert cron.matches(instant) == (instant in expected), (fields.text, instant)


@settings(max_examples=120, deadline=None)
@given(unix(), PLACES, OPTIONS)
def test_unix_expression_fires_as_the_reference_says(
    fields: Fields,
    place: tuple[str, datetime],
    options: tuple[OnGap | None, OnOverlap | None],
) -> None:
    before, length = timedelta(hours=5), timedelta(hours=31)
    compare(fields, place, options, before, length, timedelta(minutes=1))


@settings(max_examples=60, deadline=None)
@given(quartz(), PLACES, OPTIONS)
def test_quartz_expression_fires_as_the_reference_says(
    fields: Fields,
    place: tuple[str, datetime],
    options: tuple[OnGap | None, OnOverlap | None],
) -> None:
    before, length = timedelta(minutes=20), timedelta(minutes=45)
    compare(fields, place, options, before, length, timedelta(seconds=1))


def days_meant(part: str, year: int, month: int) -> set[int]:
    """What a Quartz day part means in one month, by looking at every day of it."""
    days = [date(year, month, n) for n in range(1, monthrange(year, month)[1] + 1)]
    working = [day for day in days if day.isoweekday() <= 5]
    last = len(days)

    def near(n: int) -> set[int]:
        if not 1 <= n <= last:
            return set()
        target = days[n - 1]
        # Nearest first; of two equally near ones there is never a working pair.
        return {min(working, key=lambda day: abs((day - target).days)).day}

    if part.startswith("L"):
        n = last - int(part[2:].rstrip("W")) if part.startswith("L-") else last
        return near(n) if part.endswith("W") else {n} & set(range(1, last + 1))
    if part.endswith("W"):
        return near(int(part[:-1]))
    weekday = int(part[0])
    same = [day.day for day in days if weekday_of(day) == weekday]
    return set(same[-1:]) if part.endswith("L") else set(same[int(part[2]) - 1 : int(part[2])])


MONTH_PARTS = st.one_of(
    st.sampled_from(["L", "LW"]),
    st.integers(0, 30).map(lambda n: f"L-{n}"),
    st.integers(0, 30).map(lambda n: f"L-{n}W"),
    st.integers(1, 31).map(lambda n: f"{n}W"),
)
WEEK_PARTS = st.one_of(
    st.integers(1, 7).map(lambda n: f"{n}L"),
    st.tuples(st.integers(1, 7), st.integers(1, 5)).map(lambda two: f"{two[0]}#{two[1]}"),
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(MONTH_PARTS, WEEK_PARTS), st.integers(1970, 2190))
def test_special_days_fall_as_the_reference_says(part: str, year: int) -> None:
    by_week = "#" in part or (part[0].isdigit() and part.endswith("L"))
    cron = parse(f"0 0 0 ? * {part}" if by_week else f"0 0 0 {part} * ?")
    expected = [
        datetime(y, m, day, tzinfo=UTC)
        for y in (year, year + 1)
        for m in range(1, 13)
        for day in sorted(days_meant(part, y, m))
    ]
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 2, 1, 1, tzinfo=UTC)
    assert forward(cron, start, end) == expected
    assert backward(cron, start, end) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*/-,?LW#MONFRI ", max_size=40), st.sampled_from(ZONES))
def test_any_text_is_either_refused_or_fires_in_order(text: str, zone: str) -> None:
    refused: InvalidCron | None = None
    try:
        cron = parse(text, zone)
    except InvalidCron as error:
        refused = error
    if refused is not None:
        assert repr(text) in str(refused)
        return
    now = datetime(2026, 3, 1, tzinfo=UTC)
    for _ in range(3):
        found = cron.next(now)
        if found is None:
            return
        assert found.astimezone(UTC) > now
        now = found.astimezone(UTC)
