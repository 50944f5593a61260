"""The part of a queue that one claimer knows, and how long it goes by that."""

import time
from bisect import insort
from collections.abc import Collection, Sequence

from shoal.coordination.queue.entry import QueueEntry

MOST_ENTRIES = 1000

# How long a window is trusted: a notification is only a hint, and other claimers do not notify.
TRUST_ALONE_S, TRUST_S, TRUST_OWN_SHARE_S = 5.0, 0.1, 0.25
# With a share of its own a claimer does not read notifications more often than that.
NOTIFICATION_PAUSE_S = 0.05
PATIENCE_S = 0.25  # between two checks whether others have taken what we passed over
CONTENDED_S = 3.0  # how long the head is shared out after a lost race
# … but at least this many times the duration of a reading: a busy machine is slower in all.
READINGS, CONTENDED_READINGS = 5, 30


class EntryWindow:
    """The first entries of a queue, in order: those of the last reading, and later puts."""

    def __init__(self) -> None:
        self.entries: list[QueueEntry] = []
        self.is_complete = False  # it reaches to the end of the queue
        self._reach: QueueEntry | None = None  # else to this entry, which it may have lost since

    def fill(
        self,
        found: Sequence[QueueEntry],
        asked_for: int,
        blocked: Collection[int],
        left_out: Collection[int],
    ) -> None:
        """Take what a reading found, without ``blocked`` tasks and ``left_out`` partitions."""
        # A full window may have been cut short.
        self.is_complete = len(found) < asked_for
        self._reach = found[-1] if found else None
        self.entries = [
            entry
            for entry in found
            if entry.task_instance_id not in blocked and entry.partition not in left_out
        ]

    def reaches(self, entry: QueueEntry) -> bool:
        """Return whether the window would contain ``entry`` if the queue were read now."""
        return self.is_complete or (self._reach is not None and entry < self._reach)

    def add(self, entry: QueueEntry) -> None:
        insort(self.entries, entry)

    def trim(self) -> None:
        """Forget what is beyond ``MOST_ENTRIES``."""
        if len(self.entries) > MOST_ENTRIES:
            del self.entries[MOST_ENTRIES:]
            self.is_complete, self._reach = False, self.entries[-1]

    def drop(self, task_instance_ids: Collection[int]) -> None:
        self.entries = [e for e in self.entries if e.task_instance_id not in task_instance_ids]

    def drop_partitions(self, partitions: Collection[int]) -> None:
        self.entries = [entry for entry in self.entries if entry.partition not in partitions]


class Trust:
    """How old a window is, and how old it may be. All times are of the monotonic clock."""

    def __init__(self) -> None:
        self._read_at, self._read_took_s = float("-inf"), 0.0
        self._notification_at = float("-inf")  # when the notification was read last
        self._exact_at = float("-inf")  # since then another claimer may have taken from it
        self._contended_until = float("-inf")

    def reading_begins(self) -> float:
        """Return the present time, as of which the window will be."""
        self._read_at = self._exact_at = self._notification_at = now = time.monotonic()
        return now

    def reading_ended(self, began: float) -> None:
        self._read_took_s = time.monotonic() - began

    def notification_read(self, at: float) -> None:
        self._notification_at = at

    def window_was_empty(self, at: float) -> None:
        """Of an empty window nothing can have been taken: what it gets now is exact."""
        self._exact_at = at

    def expire(self) -> None:
        """The window has to be read again."""
        self._read_at = float("-inf")

    def contend(self) -> None:
        """Another claimer was quicker."""
        contended_s = max(CONTENDED_S, CONTENDED_READINGS * self._read_took_s)
        self._contended_until = time.monotonic() + contended_s

    @property
    def is_contended(self) -> bool:
        return time.monotonic() < self._contended_until

    @property
    def is_expired(self) -> bool:
        """Whether the window is too old even for a claimer that is alone."""
        return time.monotonic() > self._read_at + TRUST_ALONE_S

    def is_exact(self, at: float) -> bool:
        """Return whether no other claimer can have taken anything from the window by ``at``."""
        return self._exact_at == at

    def others_may_have_taken(self, *, has_share: bool) -> bool:
        """Return whether too much time has passed for a claimer that is not alone."""
        trust_s = max(TRUST_OWN_SHARE_S, READINGS * self._read_took_s) if has_share else TRUST_S
        return time.monotonic() - self._exact_at > trust_s

    @property
    def has_fresh_notification(self) -> bool:
        return time.monotonic() < self._notification_at + NOTIFICATION_PAUSE_S

    @property
    def patience_s(self) -> float:
        """Seconds between two checks of what we passed over."""
        return max(PATIENCE_S, READINGS * self._read_took_s)
