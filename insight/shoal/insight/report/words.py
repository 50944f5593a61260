"""Numbers and changes in words, for the command line and the page alike."""

from collections.abc import Callable
from dataclasses import dataclass

from shoal.core.timing.durations import format_duration
from shoal.insight.report.answers import Answer


@dataclass(frozen=True)
class Figure:
    """A number of the window, and how it has changed. ``is_worse``: None means neither."""

    name: str
    text: str
    change: str
    is_worse: bool | None


def number(value: float | None) -> str:
    """Return a count."""
    return "–" if value is None else f"{value:,.0f}"


def share(value: float | None) -> str:
    """Return a rate: ``2.4 %``."""
    return "–" if value is None else f"{value * 100:.1f} %"


def length(seconds: float | None) -> str:
    """Return a length of time."""
    return "–" if seconds is None else format_duration(seconds)


def hours(seconds: float | None) -> str:
    """Return seconds as hours: ``142 h``."""
    return "–" if seconds is None else f"{seconds / 3600:,.1f} h"


def minute(value: int) -> str:
    """Return a minute of the day: ``02:15``."""
    return f"{value // 60:02}:{value % 60:02}"


def times(ratio: float | None) -> str:
    """Return how many times as much something is: ``+25 %``, ``3.1×``; empty: not known."""
    if ratio is None:
        return ""
    return f"{ratio:.1f}×" if ratio >= 2 else f"{(ratio - 1) * 100:+.0f} %"


def relative(now: float | None, before: float | None) -> str:
    """Return by how much a number has changed beside the one before."""
    if now is None or before is None:
        return "nothing to compare with"
    if now == before:
        return "as before"
    if not before:
        return "none before"
    side = "more" if now > before else "less"
    return f"{abs(now / before - 1) * 100:,.0f} % {side} than before"


def points(now: float | None, before: float | None) -> str:
    """Return by how much a rate has changed, in points of per cent."""
    if now is None or before is None:
        return "nothing to compare with"
    by = (now - before) * 100
    return "as before" if abs(by) < 0.05 else f"{abs(by):.1f} points {'up' if by > 0 else 'down'}"


def is_notable(now: float, before: float, text: Callable[[float | None], str]) -> bool:
    """Whether a change is worth a colour: a fifth of a point of a rate, a twentieth of a number."""
    least = 0.002 if text is share else 0.05 * max(abs(now), abs(before))
    return abs(now - before) > least


def figures(summary: Answer) -> list[Figure]:
    """Return the numbers that a report begins with."""
    now, before = summary["total"], summary["before"]

    def one(
        name: str,
        key: str,
        text: Callable[[float | None], str],
        change: Callable[[float | None, float | None], str],
        is_bad: bool | None,
    ) -> Figure:
        new, old = now[key], before[key]
        worse = None
        if is_bad and new is not None and old is not None and is_notable(new, old, text):
            worse = new > old
        return Figure(name, text(new), change(new, old), worse)

    return [
        one("Runs", "runs", number, relative, None),
        one("Failed", "failure_rate", share, points, True),
        one("Late", "late_rate", share, points, True),
        one("Retried attempts", "retry_rate", share, points, True),
        one("Wait for a worker", "wait_mean_s", length, relative, True),
        one("Time of tasks", "busy_s", hours, relative, None),
    ]


def plural(count: int, noun: str) -> str:
    """Return "1 workflow" or "2 workflows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
