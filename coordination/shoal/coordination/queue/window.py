"""The part of a queue that one claimer knows, and how long it goes by that."""

import time
from bisect import insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from shoal.coordination.cluster.lanes import LaneTurns
from shoal.coordination.queue.entry import HIGHEST, LOWEST, QueueEntry

LineKey = tuple[int, int]  # priority of the workflow instance, lane

MOST_ENTRIES = 1000

# How long a window is trusted: a notification is only a hint, and other claimers do not notify.
TRUST_ALONE_S, TRUST_S, TRUST_OWN_SHARE_S = 5.0, 0.1, 0.25
# With a share of its own a claimer does not read notifications more often than that.
NOTIFICATION_PAUSE_S = 0.05
PATIENCE_S = 0.25  # between two checks whether others have taken what we passed over
CONTENDED_S = 3.0  # how long the head is shared out after a lost race
# … but at least this many times the duration of a reading: a busy machine is slower in all.
READINGS, CONTENDED_READINGS = 5, 30


class Line:
    """The first entries of one lane in one priority, in order."""

    def __init__(self, entries: Sequence[QueueEntry], *, is_complete: bool) -> None:
        self.entries = list(entries)
        self.is_complete = is_complete  # it reaches to the end of the lane
        # Else to this entry, which it may have lost since.
        self._reach = self.entries[-1] if self.entries else None
        self.is_hidden = False  # a reading found nothing in it that can be claimed now

    @property
    def is_used_up(self) -> bool:
        """Whether reading again may find entries, but the line has none."""
        return not (self.entries or self.is_complete or self.is_hidden)

    def reaches(self, entry: QueueEntry) -> bool:
        """Return whether the line would contain ``entry`` if the queue were read now."""
        return self.is_complete or (self._reach is not None and entry < self._reach)

    def cut(self, count: int) -> None:
        """Forget all but the first ``count`` entries."""
        del self.entries[count:]
        self.is_complete = self.is_hidden = False
        self._reach = self.entries[-1] if self.entries else None


class EntryWindow:
    """The first entries of a queue: those of the last reading, and later puts.

    ``entries`` are in the order in which they are to be claimed: by priority, and within it the
    lanes in turn.
    """

    def __init__(self) -> None:
        self.is_complete = False  # it reaches to the end of the queue
        self._lines: dict[LineKey, Line] = {}
        self._unread: frozenset[LineKey] = frozenset()
        self._is_searched = False  # reading again finds nothing else, as far as lanes are searched
        self._reads_to: int | None = None  # the least urgent priority that was read
        self._turns = [LaneTurns() for _ in range(HIGHEST, LOWEST + 1)]
        self._merged: list[QueueEntry] | None = None

    @property
    def entries(self) -> list[QueueEntry]:
        """All entries, those first whose turn it is."""
        if self._merged is None:
            by_priority: defaultdict[int, dict[int, Sequence[QueueEntry]]] = defaultdict(dict)
            for (priority, lane), line in self._lines.items():
                by_priority[priority][lane] = line.entries
            self._merged = [
                entry
                for priority in range(HIGHEST, LOWEST + 1)  # those without entries forget turns
                for entry in self._turns[priority].merged(by_priority[priority])
            ]
        return self._merged

    @property
    def has_gap(self) -> bool:
        """Whether a lane is used up as far as it was read, while others are not."""
        return any(line.is_used_up for line in self._lines.values())

    @property
    def may_have_more(self) -> bool:
        """Whether reading the queue again may find entries that the window does not have.

        Not if a reading has found fewer than it looked for. Then what is at the front of some
        lanes cannot be claimed now, and hides the rest, until something in there changes.
        """
        return not self.is_complete and not self._is_searched

    def fill(
        self,
        found: Mapping[LineKey, Line],
        *,
        is_complete: bool,
        is_searched: bool,
        unread: Collection[LineKey],
        blocked: Collection[int],
        left_out: Collection[int],
    ) -> None:
        """Take what a reading found, without ``blocked`` tasks and ``left_out`` partitions.

        ``unread``: lanes that it has passed over, because there are too many. ``is_searched``: it
        has found fewer entries than it looked for.
        """
        self.is_complete, self._is_searched = is_complete, is_searched
        self._lines, self._unread = dict(found), frozenset(unread)
        least = max((priority for priority, _ in found), default=None)
        self._reads_to = LOWEST if is_searched else least
        # A task may stand in two places, of which one claim can take one: earlier versions put
        # entries into buckets without a lane. The one in the lane of its project counts.
        seen = set(blocked)
        for key in sorted(self._lines, key=lambda key: (key[1] == 0, key)):
            kept = []
            for entry in self._lines[key].entries:
                if entry.task_instance_id not in seen and entry.partition not in left_out:
                    seen.add(entry.task_instance_id)
                    kept.append(entry)
            self._lines[key].entries = kept
            self._lines[key].is_hidden = not kept
        self._forget_ends()

    def reaches(self, entry: QueueEntry) -> bool:
        """Return whether the window would contain ``entry`` if the queue were read now."""
        line = self._lines.get(_key(entry))
        if line is not None:
            return line.reaches(entry)
        is_within = self._reads_to is not None and entry.workflow_priority <= self._reads_to
        return self.is_complete or (is_within and _key(entry) not in self._unread)

    def add(self, entry: QueueEntry) -> None:
        """Add an entry that the window reaches."""
        line = self._lines.get(_key(entry))
        if line is None:  # the lane had nothing when the queue was read
            line = self._lines[_key(entry)] = Line([], is_complete=True)
        insort(line.entries, entry)
        self._merged = None

    def trim(self) -> None:
        """Forget what is beyond ``MOST_ENTRIES``: of the least urgent, and of the longest lanes.

        So the window never has an entry but lacks a more urgent one.
        """
        excess = sum(len(line.entries) for line in self._lines.values()) - MOST_ENTRIES
        while excess > 0:
            least = max(priority for (priority, _), line in self._lines.items() if line.entries)
            lanes = {key: line for key, line in self._lines.items() if key[0] >= least}
            count = sum(len(line.entries) for line in lanes.values())
            if count <= excess:
                for key in lanes:
                    del self._lines[key]
                excess -= count
                self._reads_to = least - 1
            else:
                _, line = max(lanes.items(), key=lambda one: (len(one[1].entries), one[0]))
                kept = max(len(line.entries) - excess, len(line.entries) // 2)
                excess -= len(line.entries) - kept
                line.cut(kept)
                self._reads_to = least
            self.is_complete = self._is_searched = False
            self._merged = None

    def taken(self, entries: Iterable[QueueEntry]) -> None:
        """Entries were claimed: it is the turn of other lanes."""
        for entry in entries:
            self._turns[entry.workflow_priority].take(entry.lane)

    def gone(self, entries: Collection[QueueEntry]) -> None:
        """Forget entries that are no longer in the queue: their lanes can be searched further."""
        lines = (self._lines.get(_key(entry)) for entry in entries)
        if any(line is not None and not line.is_complete for line in lines):
            self._is_searched = False
        self.drop({entry.task_instance_id for entry in entries})

    def drop(self, task_instance_ids: Collection[int]) -> None:
        """Forget entries by their task instances."""
        for line in self._lines.values():
            line.entries = [e for e in line.entries if e.task_instance_id not in task_instance_ids]
        self._forget_ends()

    def drop_partitions(self, partitions: Collection[int]) -> None:
        """Forget the entries of ``partitions``."""
        for line in self._lines.values():
            line.entries = [entry for entry in line.entries if entry.partition not in partitions]
        self._forget_ends()

    def _forget_ends(self) -> None:
        """Entries were forgotten; forget lanes in which nothing waits."""
        over = [key for key, line in self._lines.items() if not line.entries and line.is_complete]
        for key in over:
            del self._lines[key]
        self._merged = None


def _key(entry: QueueEntry) -> LineKey:
    return entry.workflow_priority, entry.lane


class Trust:
    """How old a window is, and how old it may be. All times are of the monotonic clock."""

    def __init__(self) -> None:
        self._read_at, self._read_took_s = float("-inf"), 0.0
        self.is_costly = False  # the last reading found many entries that cannot be claimed now
        self._notification_at = float("-inf")  # when the notification was read last
        self._exact_at = float("-inf")  # since then another claimer may have taken from it
        self._contended_until = float("-inf")

    def reading_begins(self) -> float:
        """Return the present time, as of which the window will be."""
        self._read_at = self._exact_at = self._notification_at = now = time.monotonic()
        return now

    def reading_ended(self, began: float, *, is_costly: bool) -> None:
        self._read_took_s, self.is_costly = time.monotonic() - began, is_costly

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
        return self.expires_in_s < 0

    @property
    def expires_in_s(self) -> float:
        """Seconds until the window is too old even for a claimer that is alone."""
        return self._read_at + TRUST_ALONE_S - time.monotonic()

    def is_exact(self, at: float) -> bool:
        """Return whether no other claimer can have taken anything from the window by ``at``."""
        return self._exact_at == at

    def others_may_have_taken(self, *, has_share: bool) -> bool:
        """Return whether too much time has passed for a claimer that is not alone."""
        trust_s = TRUST_OWN_SHARE_S if has_share else TRUST_S
        if has_share or self.is_costly:
            trust_s = max(trust_s, READINGS * self._read_took_s)
        return time.monotonic() - self._exact_at > trust_s

    @property
    def has_fresh_notification(self) -> bool:
        return time.monotonic() < self._notification_at + NOTIFICATION_PAUSE_S

    @property
    def patience_s(self) -> float:
        """Seconds between two checks of what we passed over."""
        return max(PATIENCE_S, READINGS * self._read_took_s)
