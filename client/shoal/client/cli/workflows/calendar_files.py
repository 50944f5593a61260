"""Days from files and from the command line.

A file has one day in each line, as YYYY-MM-DD; what follows it, empty lines and lines that begin
with ``#`` are for people.
"""

from datetime import date
from pathlib import Path

from shoal.client.errors import NotADay


def read_days(sources: list[str]) -> list[str]:
    """Return the days that days and files stand for, ascending. Raises NotADay."""
    days: set[date] = set()
    for source in sources:
        day = _day(source)
        days |= {day} if day is not None else _of_file(Path(source).expanduser())
    return [day.isoformat() for day in sorted(days)]


def _of_file(path: Path) -> set[date]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NotADay(
            f"{path} is not a day such as 2026-12-24, nor a readable file: {reason}"
        ) from error
    days = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        day = _day(words[0].rstrip(",;"))
        if day is None:
            raise NotADay(f"{path}:{number}: {words[0]!r} is not a day such as 2026-12-24")
        days.add(day)
    return days


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-12-24") else None
    except ValueError:
        return None
