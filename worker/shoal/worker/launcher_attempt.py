"""One attempt as the launcher sees it: from fork to the exit record.

::

    starting ──exec──▶ running ──main process gone──▶ clearing ──nothing left──▶ recording ──▶ over
                        └─ being killed (TERM sent, KILL at ``kill_at``) ─┘

All instants named ``*_at`` are monotonic seconds (``time.monotonic``), except in the record.
"""

from __future__ import annotations

import resource
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from shoal.worker.launcher_masking import Filter
    from shoal.worker.proctree import Process

SUCCEEDED, FAILED, KILLED = "SUCCEEDED", "FAILED", "KILLED"


def masks_of(message: dict[str, object]) -> list[str]:
    """Return what the log of an attempt must not show."""
    masks = message.get("masks", [])
    assert isinstance(masks, list)
    return masks


class Attempt:
    """State of one attempt. Written by the launcher's loop only."""

    def __init__(self, message: dict[str, object], pid: int, error_pipe: int) -> None:
        self.id = str(message["id"])
        self.log_path = str(message["log_path"])
        self.record_path = str(message["record_path"])
        self.context = message.get("context")
        self.output_path = message.get("output_path")
        self.refused_outputs = str(message.get("refused_outputs", ""))
        self.masks = masks_of(message)
        #: What stands between the attempt and its log; None if it has no secrets.
        self.filter: Filter | None = None
        self.pid = pid
        #: Read end of the pipe that exec closes; None once the program runs.
        self.error_pipe: int | None = error_pipe
        self.start_failure = b""
        self.started = time.time()
        self.started_at = time.monotonic()
        timeout_s = message.get("timeout_s")
        self.timeout_s = float(timeout_s) if isinstance(timeout_s, int | float) else None
        grace_s = message.get("timeout_grace_s", 0.0)
        self.timeout_grace_s = float(grace_s) if isinstance(grace_s, int | float) else 0.0
        self.timed_out = False
        #: Why it is being ended; None while nobody wants that.
        self.kill_reason: str | None = None
        self.kill_at: float | None = None
        self.kill_sent = False
        #: Descendants that got TERM and may use the grace period, also without their parent.
        self.warned: list[Process] = []
        #: Set when the main process is gone.
        self.ended_at: float | None = None
        self._status = 0
        self._usage: resource.struct_rusage | None = None
        self._notes: list[str] = []

    @property
    def timeout_at(self) -> float | None:
        return None if self.timeout_s is None else self.started_at + self.timeout_s

    @property
    def next_deadline(self) -> float | None:
        """When this attempt needs attention next, if nothing happens before."""
        if self.kill_reason is not None:
            return None if self.kill_sent else self.kill_at
        return self.timeout_at if self.ended_at is None else None

    @property
    def leftovers_die_at(self) -> float:
        """From when on processes without their main process are killed."""
        assert self.ended_at is not None
        return self.ended_at if self.kill_at is None else self.kill_at

    def end(self, status: int, usage: resource.struct_rusage) -> None:
        """Note how the main process ended (wait status and resource usage)."""
        self.ended_at = time.monotonic()
        self._status, self._usage = status, usage

    def note(self, text: str) -> None:
        """Add a sentence to the reason of the record."""
        self._notes.append(text)

    def record(self) -> dict[str, object]:
        """Return what is stored and reported. Instants are seconds since the Unix epoch.

        ``max_rss_kb`` is never below the launcher's own size: the kernel counts the process from
        fork, before it became the program.
        """
        assert self.ended_at is not None
        assert self._usage is not None
        signal_number = self._status & 0x7F
        exit_code = None if signal_number else self._status >> 8
        return {
            "id": self.id,
            "outcome": self._outcome(exit_code),
            "exit_code": exit_code,
            "signal": signal_number or None,
            "reason": "; ".join([self._reason(exit_code, signal_number), *self._notes]),
            "timed_out": self.timed_out,
            "started_at": self.started,
            # From the monotonic clock: a step of the wall clock never makes a negative duration.
            "finished_at": self.started + self.ended_at - self.started_at,
            "max_rss_kb": self._usage.ru_maxrss,
            "cpu_s": round(self._usage.ru_utime + self._usage.ru_stime, 6),
            "context": self.context,
        }

    def _outcome(self, exit_code: int | None) -> str:
        if self.timed_out:
            return FAILED
        if self.kill_reason is not None:
            return KILLED
        return SUCCEEDED if exit_code == 0 else FAILED

    def _reason(self, exit_code: int | None, signal_number: int) -> str:
        if self.kill_reason is not None:
            return self.kill_reason
        if signal_number:
            return f"ended by signal {signal_number}"
        return f"exit code {exit_code}"
