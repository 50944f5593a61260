"""How states, times and lengths of time look. Colour never carries a meaning alone."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from shoal.core.timing.durations import format_duration

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from rich.text import Text

import re

# state -> mark, style; workflow and task states share their names.
LOOKS = {
    "WAITING": ("·", "dim"),
    "UP_FOR_RETRY": ("↻", "yellow"),
    "DELAYED": ("↻", "yellow"),
    "PAUSED": ("‖", "yellow"),
    "PAUSING": ("‖", "yellow"),
    "BLOCKED": ("○", "cyan"),
    "QUEUED": ("○", "cyan"),
    "CLAIMED": ("○", "cyan"),
    "RUNNING": ("●", "blue"),
    "STARTED": ("●", "blue"),
    "STOPPING": ("■", "magenta"),
    "STOPPED": ("■", "magenta"),
    "CANCELLING": ("■", "magenta"),
    "CANCELLED": ("■", "magenta"),
    "SUCCEEDED": ("✓", "green"),
    "FAILED": ("✗", "red"),
    "KILLED": ("■", "magenta"),
    "LOST": ("✗", "red"),
    "SKIPPED": ("–", "dim"),
    "RESCHEDULED": ("↻", "dim"),
    "ok": ("✓", "green"),
    "degraded": ("✗", "red"),
}


def state_text(state: str) -> "Text":
    """Return a state with its mark in its colour."""
    from rich.text import Text

    mark, style = LOOKS.get(state, ("?", ""))
    return Text(f"{mark} {state}", style)


def counts_text(counts: Mapping[str, int]) -> "Text":
    """Return how many tasks are in which state, states of one mark together: ``✓ 3  ● 1  · 2``."""
    from rich.text import Text

    by_look: dict[tuple[str, str], int] = {}
    for state, look in LOOKS.items():
        by_look[look] = by_look.get(look, 0) + counts.get(state, 0)
    parts = [Text(f"{look[0]} {n:,}", look[1]) for look, n in reversed(by_look.items()) if n]
    return Text("  ").join(parts)


def parse_time(text: str | None) -> datetime | None:
    """Return a time of the API."""
    return datetime.fromisoformat(text) if text else None


def clock(text: str | None, now: datetime, zone: str | None = None) -> str:
    """Return a time and the name of its zone: the clock time if it is today, else with its date.

    ``zone`` such as Europe/Berlin is whose clock it is; None: that of this machine, whose zone
    has only a short name such as CET.
    """
    moment = parse_time(text)
    if moment is None:
        return ""
    place = _zone(zone)
    local = moment.astimezone(place)
    same_day = local.date() == now.astimezone(place).date()
    shown = local.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M")
    return f"{shown} {local.tzname() if place is None or zone is None else zone}"


def stamp(now: datetime) -> str:
    """Return what stands before a line that says what has just happened."""
    return now.astimezone().strftime("%H:%M:%S %Z")


def _zone(name: str | None) -> "ZoneInfo | None":
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None  # this machine lacks the zone, which the cluster's have: its own clock


def lasted(start: str | None, end: str | None, now: datetime) -> str:
    """Return the time between two moments, or until now."""
    began = parse_time(start)
    if began is None:
        return ""
    return format_duration(max(0.0, ((parse_time(end) or now) - began).total_seconds()))


def cpu_text(seconds: float | None) -> str:
    """Return processor time: ``0.25 s``, or as lengths of time are from a minute on."""
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds < 60 else format_duration(seconds)


def memory_text(kib: int | None) -> str:
    """Return the size of a process: ``12.1 MiB``."""
    return "" if kib is None else f"{kib / 1024:,.1f} MiB"


def failure_text(reason: str | None, error_line: str | None) -> str:
    """Return why an attempt ended as it did, with the line of its log that says most of it."""
    if not error_line or error_line in (reason or ""):
        return reason or ""
    return f"{reason}: {error_line}" if reason else error_line


def plural(count: int, noun: str) -> str:
    """Return "1 task" or "2 tasks"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


# Control sequences (ECMA-48), texts for the terminal itself (titles, clipboard), other controls.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-Z\\^-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\x80-\x9f]"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def harmless(text: str) -> str:
    """Return ``text`` without what would move the cursor, set titles or do worse."""
    return _CONTROL.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", text)


def one_line(text: str) -> str:
    """Return ``text`` as one harmless line: every run of white space is one space."""
    return " ".join(harmless(text).split())
