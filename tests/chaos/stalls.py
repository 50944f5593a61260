"""Moments in which the machine itself stood still: nobody's fault, but not nothing either.

Sessions end and tasks are given up when a machine is so busy that no process gets its turn. The
suite's own clock notices: a thread that only looks at the time was late. Such a moment is written
down like a fault, so that what it costs has a reason.
"""

import threading
from types import TracebackType
from typing import Self

from tests.chaos.records import STALL, FaultRecord, now_s

_LOOK_S = 0.05
_SHARE = 0.25  # of the session timeout, by which the clock must be late


class StallWatch:
    """Watches the clock on a thread for the life of the ``with`` block."""

    def __init__(self, session_timeout_s: float) -> None:
        self.records: list[FaultRecord] = []
        self._least_s = _SHARE * session_timeout_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stalls", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        last_s = now_s()
        while not self._over.wait(_LOOK_S):
            self.note(last_s, last_s := now_s())

    def note(self, from_s: float, until_s: float) -> None:
        """Look at the time between two looks at the clock."""
        late_s = until_s - from_s - _LOOK_S
        if late_s >= self._least_s:
            self.records.append(
                FaultRecord(
                    STALL,
                    "this machine",
                    from_s,
                    until_s,
                    until_s,
                    bit=True,
                    evidence=f"no process had its turn for {late_s:.1f} s",
                )
            )
