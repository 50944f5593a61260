"""One attempt as the launcher sees it: from its launch to the exit record.

::

    starting ──exec──▶ running ──main process gone──▶ ended ──nothing left──▶ alone ──▶ over
                        └─ being killed (TERM sent, KILL at ``kill_at``) ─┘

These stages are on the progress of its shim (``shim/progress.py``). When the shim dies before the
attempt is over, the launcher takes its place: it kills what is left, and has the end stored.

All instants named ``*_at`` are monotonic seconds (``time.monotonic``), except in the record.
"""

from __future__ import annotations

import json
import signal
import time

from shoal.worker.supervisor.shim.progress import ALONE, ENDED, STARTING
from shoal.worker.supervisor.shim.records import End
from shoal.worker.supervisor.shim.shim import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.worker.supervisor.causes import EndCause
    from shoal.worker.supervisor.cgroups import Cgroup
    from shoal.worker.supervisor.shim.masking import Filter
    from shoal.worker.supervisor.shim.progress import ProgressPage
    from shoal.worker.supervisor.shims import ShimHandle


class Attempt:
    """State of one attempt. Written by the launcher's loop only."""

    def __init__(
        self, launch: Mapping[str, object], line: bytes, shim: ShimHandle, output: Filter | None
    ) -> None:
        """``launch`` is the message, ``line`` its text without the line's end."""
        self.id = str(launch["id"])
        self.line = line
        #: Its number and progress stay known when it is dead.
        self.shim = shim
        #: What stands between the attempt and its log; None if it has no secrets.
        self.filter = output
        #: Whether the agent knows that the program runs.
        self.announced = False
        self.started_at = time.monotonic()
        timeout_s = launch.get("timeout_s")
        self.timeout_s = float(timeout_s) if isinstance(timeout_s, int | float) else None
        grace_s = launch.get("timeout_grace_s", 0.0)
        self.timeout_grace_s = float(grace_s) if isinstance(grace_s, int | float) else 0.0
        #: Why it is being ended; None while it may run. The reason is text for people.
        self.kill_cause: EndCause | None = None
        self.kill_reason = ""
        self.kill_at: float | None = None
        self.kill_sent = False
        #: Whether its shim has died, so that it is the launcher's.
        self.orphaned = False
        #: Set when the launcher has found that nothing of it is left.
        self.end: End | None = None
        self._notes: list[str] = []
        shim.attempt = self
        shim.progress.begin(STARTING, time.time(), self.started_at)

    @property
    def progress(self) -> ProgressPage:
        return self.shim.progress

    @property
    def cgroup(self) -> Cgroup:
        """The group of its shim, and so of all its processes."""
        return self.shim.cgroup

    @property
    def pid(self) -> int:
        """Number of the main process; 0 while the program is starting."""
        return self.progress.pid

    @property
    def alive(self) -> bool:
        """Whether any process of it may be alive."""
        return self.end is None and self.progress.stage != ALONE

    @property
    def next_deadline(self) -> float | None:
        """When this attempt needs attention next, if nothing happens before."""
        if self.kill_cause is not None:
            return None if self.kill_sent else self.kill_at
        if self.timeout_s is None or self.progress.stage >= ENDED:
            return None
        return self.started_at + self.timeout_s

    def note(self, text: str) -> None:
        """Add a sentence to the reason of the record."""
        self._notes.append(text)

    def conclude(self) -> None:
        """Nothing of it is alive, and its shim did not live to say so."""
        if self.progress.stage < ENDED:
            self.progress.end(signal.SIGKILL, time.monotonic())  # no other end was seen
        self.end = end_of(self.progress, self.kill_cause, self.kill_reason, self._notes)

    def detach(self, shim: ShimHandle) -> bytes:
        """Leave the rest, storing how it ended, to another shim. Returns the command."""
        self.shim = shim
        shim.attempt = self
        shim.progress.begin(ALONE, 0.0, 0.0)
        end = json.dumps(self.end).encode()
        return b'{"type": "store", "end": %b, "launch": %b}\n' % (end, self.line)
