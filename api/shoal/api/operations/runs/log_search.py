"""Find lines in logs: bounded in bytes and in time, wherever the log is.

Patterns are of Rust's regex crate, which pydantic brings: it is linear in the length of a line
whatever the pattern, so no caller can hold up this process with one. It has no look-around and no
references to groups.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter
from pydantic_core import SchemaError

from shoal.api.operations.logs import MOST_BYTES, LogProxy
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.core.runs.records import TaskInstance

MOST_SEARCHED = 16 * 1024 * 1024  # bytes of one request
LONGEST_S = 5.0  # of one request
LONGEST_LINE = 2_000  # characters that are shown of a line

Matches = Callable[[str], bool]


def matcher(text: str | None, regex: str | None, ignore_case: bool) -> Matches:
    """Return what says whether a line is looked for. Raises InvalidRequest."""
    if (text is None) is (regex is None):
        raise InvalidRequest([FieldError("text", "give either text or regex")])
    if regex is not None:
        try:
            found: TypeAdapter[str] = TypeAdapter(
                Annotated[str, StringConstraints(pattern=f"(?i){regex}" if ignore_case else regex)]
            )
            return found.validator.isinstance_python
        except SchemaError as error:
            lines = [line for line in str(error).splitlines() if line.strip(" ^")]
            raise InvalidRequest(
                [FieldError("regex", f"cannot be used: {lines[-1].strip()}")]
            ) from None
    assert text is not None
    if ignore_case:
        wanted = text.lower()
        return lambda line: wanted in line.lower()
    return lambda line: text in line


@dataclass
class Hit:
    """A line. ``offset``: of its first byte in the log."""

    offset: int
    line: str
    before: list[str]
    after: list[str] = field(default_factory=list)


@dataclass
class LineSearch:
    """Takes a log piece by piece and keeps the lines that match, ``limit`` at most."""

    matches: Matches
    context: int
    limit: int
    hits: list[Hit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._recent: deque[str] = deque(maxlen=self.context)
        self._open: list[Hit] = []  # hits that have not got all lines behind them

    @property
    def is_full(self) -> bool:
        """Whether no further lines are looked for."""
        return len(self.hits) >= self.limit

    def feed(self, data: bytes, offset: int) -> int:
        """Take whole lines that begin at ``offset``; return where to go on. On any thread."""
        position = goes_on = offset
        for raw in data.split(b"\n")[: -1 if data.endswith(b"\n") else None]:
            if self.is_full and not self._open:
                break
            line = raw.removesuffix(b"\r").decode("utf-8", "replace")
            shown = line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
            for hit in self._open:
                hit.after.append(shown)
            self._open = [hit for hit in self._open if len(hit.after) < self.context]
            if not self.is_full:
                goes_on = position + len(raw) + 1
                if self.matches(line):
                    hit = Hit(position, shown, list(self._recent))
                    self.hits.append(hit)
                    self._open += [hit] if self.context else []
            self._recent.append(shown)
            position += len(raw) + 1
        return min(goes_on, offset + len(data))


@dataclass(frozen=True)
class Searched:
    """What was found in one log, and the byte at which to go on; None: it was read to its end."""

    hits: Sequence[Hit]
    next: int | None
    size: int
    finished: bool


@dataclass
class Budget:
    """What one request may still read."""

    bytes: int = field(default_factory=lambda: MOST_SEARCHED)
    until_s: float = field(default_factory=lambda: time.monotonic() + LONGEST_S)

    @property
    def is_used_up(self) -> bool:
        """Whether it has to end here."""
        return self.bytes <= 0 or time.monotonic() > self.until_s


async def search(
    logs: LogProxy, task: TaskInstance, offset: int, wanted: LineSearch, budget: Budget
) -> Searched:
    """Look through a log from a byte on. Raises LogUnavailable, NoSuchThing.

    A last line without its end is only looked at in a log that no longer grows.
    """
    while True:
        part = await logs.view(task, offset, MOST_BYTES)
        offset = part.offset
        end = offset + len(part.data)
        is_last = end >= part.size
        data = part.data
        if not (is_last and part.finished) and (whole := data.rfind(b"\n") + 1):
            data = data[:whole]
        elif is_last and not part.finished:
            data = b""
        budget.bytes -= len(part.data)
        offset = await asyncio.to_thread(wanted.feed, data, offset)
        is_over = is_last and offset >= part.offset + len(data)
        if wanted.is_full or is_over or budget.is_used_up:
            is_done = is_over and part.finished
            return Searched(wanted.hits, None if is_done else offset, part.size, part.finished)
