"""Server-sent events: the wire format (WHATWG HTML, section 9.2), and how to come back."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from shoal.client.errors import TRANSIENT, ApiProblem, ApiUnreachable
from shoal.client.libraries import httpx

# Pauses between attempts to come back.
PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class ServerEvent:
    """One event; ``id`` is that of the newest event that had one."""

    type: str
    data: str
    id: str | None

    def json(self) -> Any:
        """Return the data as a value."""
        return json.loads(self.data)


@dataclass
class _EventParser:
    last_id: str | None
    _type: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> ServerEvent | None:
        """Take one line without its end; an empty one completes an event."""
        if not line:
            event = ServerEvent(self._type or "message", "\n".join(self._data), self.last_id)
            found = bool(self._data)
            self._type, self._data = "", []
            return event if found else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._type = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self.last_id = value
        return None


def parse(lines: Iterable[str], last_id: str | None = None) -> Iterator[ServerEvent]:
    """Yield the events of a stream. One that is cut off is dropped."""
    parser = _EventParser(last_id)
    for line in lines:
        if event := parser.feed(line):
            yield event


def split_lines(chunks: Iterable[str]) -> Iterator[str]:
    """Yield lines that end with CR LF, LF or CR, and none of Unicode's other line ends."""
    rest = ""
    for chunk in chunks:
        rest += chunk
        if rest.endswith("\r"):  # perhaps half a CR LF
            continue
        *lines, rest = rest.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        yield from lines


Connect = Callable[[str | None], AbstractContextManager[httpx.Response]]


class Reconnecting:
    """The events of a stream that comes back after every interruption.

    ``connect`` opens a response that continues behind an event id. Raises ApiUnreachable when
    it could not come back for ``patience_s``, and ApiProblem at once if the API refuses. What it
    refuses for now (429) is tried again after the time that it names.
    """

    def __init__(
        self,
        connect: Connect,
        patience_s: float,
        last_id: str | None = None,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        self._connect, self._patience_s, self._last_id = connect, patience_s, last_id
        self._pauses_s = pauses_s

    def __iter__(self) -> Iterator[ServerEvent]:
        failures, broken_since = 0, time.monotonic()
        while True:
            connected, after_s = False, 0.0
            try:
                with self._connect(self._last_id) as response:
                    connected = True
                    for event in parse(split_lines(response.iter_text()), self._last_id):
                        self._last_id = event.id
                        if event.type != "problem":
                            failures = 0
                        yield event
                broken_since = time.monotonic()
            except (ApiProblem, ApiUnreachable) as error:
                if connected:
                    broken_since = time.monotonic()
                refused = False
                if isinstance(error, ApiProblem):
                    refused = error.status not in TRANSIENT | {429}
                    after_s = error.retry_after_s or 0.0
                if refused or time.monotonic() + after_s - broken_since > self._patience_s:
                    raise
            time.sleep(max(after_s, self._pauses_s[min(failures, len(self._pauses_s) - 1)]))
            failures += 1
