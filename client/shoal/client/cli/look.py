"""How states, times and lengths of time look. Colour never carries a meaning alone."""

from datetime import datetime
from typing import TYPE_CHECKING

from shoal.core.durations import format_duration

if TYPE_CHECKING:
    from rich.text import Text

# state -> mark, style; workflow and task states share their names.
LOOKS = {
    "WAITING": ("·", "dim"),
    "UP_FOR_RETRY": ("↻", "yellow"),
    "PAUSED": ("‖", "yellow"),
    "PAUSING": ("‖", "yellow"),
    "QUEUED": ("○", "cyan"),
    "CLAIMED": ("○", "cyan"),
    "RUNNING": ("●", "blue"),
    "STOPPING": ("■", "magenta"),
    "STOPPED": ("■", "magenta"),
    "SUCCEEDED": ("✓", "green"),
    "FAILED": ("✗", "red"),
    "KILLED": ("■", "magenta"),
    "LOST": ("✗", "red"),
    "SKIPPED": ("–", "dim"),
    "ok": ("✓", "green"),
    "degraded": ("✗", "red"),
}
# The order in which counts of states are listed.
ORDER = tuple(LOOKS)


def state_text(state: str) -> "Text":
    """Return a state with its mark in its colour."""
    from rich.text import Text

    mark, style = LOOKS.get(state, ("?", ""))
    return Text(f"{mark} {state}", style)


def counts_text(counts: dict[str, int]) -> "Text":
    """Return how many tasks are in which state: ``✓ 3  ● 1  · 2``."""
    from rich.text import Text

    known = sorted(counts, key=lambda state: ORDER.index(state) if state in ORDER else 99)
    parts = []
    for state in reversed(known):
        if counts[state]:
            mark, style = LOOKS.get(state, ("?", ""))
            parts.append(Text(f"{mark} {counts[state]}", style))
    return Text("  ").join(parts)


def parse_time(text: str | None) -> datetime | None:
    """Return a time of the API."""
    return datetime.fromisoformat(text) if text else None


def clock(text: str | None, now: datetime) -> str:
    """Return a time in the local zone: the clock time if it is today, else with its date."""
    moment = parse_time(text)
    if moment is None:
        return ""
    local = moment.astimezone()
    same_day = local.date() == now.astimezone().date()
    return local.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M")


def lasted(start: str | None, end: str | None, now: datetime) -> str:
    """Return the time between two moments, or until now."""
    began = parse_time(start)
    if began is None:
        return ""
    return format_duration(max(0.0, ((parse_time(end) or now) - began).total_seconds()))


def plural(count: int, noun: str) -> str:
    """Return "1 task" or "2 tasks"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
