"""What an observer of another side is, and the watch that has it look all the time."""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

Sight = Mapping[str, frozenset[str]]  # the live jobs of each case, by its marker
_LOOK_S = 0.04


class Side(Protocol):
    """One place where jobs run."""

    name: str

    def look(self) -> Sight:
        """Return the jobs that are alive, all at one moment. May block, for milliseconds.

        What it raises is a look that failed.
        """
        ...


@dataclass
class Seen:
    """All that was seen of the jobs of one case. Times are monotonic seconds."""

    first_s: dict[str, float] = field(default_factory=dict)
    last_s: dict[str, float] = field(default_factory=dict)
    live: frozenset[str] = frozenset()
    doubles: list[str] = field(default_factory=list)  # jobs that were alive at one moment


class Watch:
    """Looks at a side as long as its block runs, in a thread of its own."""

    def __init__(self, side: Side) -> None:
        self.name = side.name
        self.looks, self.failed = 0, 0
        self.longest_s = 0.0  # between two looks
        self.trouble = ""  # of the latest look that failed
        self._side = side
        self._seen: dict[str, Seen] = defaultdict(Seen)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch of {side.name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def seen(self, marker: str) -> Seen:
        """Return what was seen of a case."""
        return self._seen[marker]

    def note(self, sight: Sight) -> None:
        """Take what one look has shown."""
        now = time.monotonic()
        for marker in [*sight, *(m for m, seen in list(self._seen.items()) if seen.live)]:
            live = sight.get(marker, frozenset())
            seen = self._seen[marker]
            for job in live:
                seen.first_s.setdefault(job, now)
                seen.last_s[job] = now
            if len(live) > 1 and live != seen.live:
                seen.doubles.append(" and ".join(sorted(live)))
            seen.live = live

    def _run(self) -> None:
        before = time.monotonic()
        while not self._stopped.is_set():
            try:
                self.note(self._side.look())
            except Exception as error:  # noqa: BLE001 - drivers raise anything
                self.failed, self.trouble = self.failed + 1, repr(error)
            else:
                now = time.monotonic()
                self.longest_s, before = max(self.longest_s, now - before), now
                self.looks += 1
            self._stopped.wait(_LOOK_S)


def until_looked(watch: Watch, timeout_s: float = 30.0) -> None:
    """Return when a look has been begun and ended from now on. Raises AssertionError."""
    target, deadline = watch.looks + 2, time.monotonic() + timeout_s
    while watch.looks < target:
        assert time.monotonic() < deadline, f"{watch.name} is not seen: {watch.trouble}"
        with suppress(TimeoutError):
            time.sleep(_LOOK_S)
