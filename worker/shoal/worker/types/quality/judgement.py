"""Whether a figure is what a check wants. Knows no database."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from shoal.core.timing.durations import format_duration
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.quality.kind import Fresh, Limit, RowCheck, Rows, Same, Value, part_of
from shoal.worker.types.quality.queries import filled, number

_EARLY_S = 60.0  # how far ahead of this clock the newest time may be and count as now


@dataclass(frozen=True)
class Judgement:
    """``figure`` is what was found and ``wanted`` what should be, both for people."""

    holds: bool
    figure: str
    wanted: str


def judge_rows(check: RowCheck, failing: Any, rows: int) -> Judgement:
    """Judge how many of ``rows`` rows fail a check."""
    count = number(failing, check.title)
    most = math.floor(part_of(check.at_most, Decimal(rows)))
    of_all = f"{_written(count)} of {rows} rows fail"
    wanted = "none may" if check.at_most == 0 else f"at most {check.at_most} may"
    if isinstance(check.at_most, str):
        wanted = f"at most {check.at_most} may, {most}"
    return Judgement(count <= most, of_all, wanted)


def judge_between(check: Rows | Value, found: Any, parameters: Mapping[str, str]) -> Judgement:
    """Judge a figure that should lie between limits. Raises WorkFailed."""
    if found is None:
        return Judgement(False, "NULL", check.limits())
    figure = number(found, check.title)
    low, high = (_limit(one, check.title, parameters) for one in (check.min, check.max))
    holds = (low is None or figure >= low) and (high is None or figure <= high)
    return Judgement(holds, _written(figure), filled(check.limits(), parameters))


def judge_fresh(check: Fresh, newest: Any, now: float) -> Judgement:
    """Judge the newest time; ``now`` is in seconds since 1970. Raises WorkFailed."""
    wanted = f"at most {format_duration(check.within)} old"
    if newest is None:
        return Judgement(False, "there is no time", wanted)
    age = now - _seconds(check, newest)
    if age < -_EARLY_S:
        return Judgement(False, f"{newest} lies in the future", wanted)
    shown = format_duration(float(round(max(0.0, age))))
    return Judgement(age <= check.within, f"{newest}, {shown} old", wanted)


def judge_same(check: Same, here: Any, there: Any) -> Judgement:
    """Judge two figures that should be the same. Raises WorkFailed."""
    if not _is_number(here) or not _is_number(there):
        return Judgement(here == there, str(here)[:100], f"{there}"[:100])
    one, other = number(here, check.title), number(there, check.title)
    allowed = part_of(check.tolerance, other)
    wanted = _written(other)
    if check.tolerance != 0:
        wanted += f", give or take {check.tolerance}"
    return Judgement(abs(one - other) <= allowed, _written(one), wanted)


def _limit(limit: Limit | None, title: str, parameters: Mapping[str, str]) -> Decimal | None:
    if limit is None:
        return None
    return number(filled(limit, parameters) if isinstance(limit, str) else limit, title)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal)


def _seconds(check: Fresh, newest: Any) -> float:
    """Return a time of a database in seconds since 1970. Raises WorkFailed."""
    value = newest
    if isinstance(value, str):  # SQLite has times as texts
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            text = f"{check.title}: {newest[:60]!r} is not a time such as 2026-01-31 06:00:00"
            raise WorkFailed(text, permanent=True) from None
    match value:
        case datetime():
            zone = ZoneInfo(check.timezone) if value.tzinfo is None else value.tzinfo
            return value.replace(tzinfo=zone).timestamp()
        case date():
            midnight = datetime.combine(value, time_of_day(), ZoneInfo(check.timezone))
            return midnight.astimezone(UTC).timestamp()
        case _:
            return float(number(value, check.title))


def _written(figure: Decimal) -> str:
    return f"{figure:f}"
