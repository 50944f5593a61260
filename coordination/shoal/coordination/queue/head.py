"""The first entries of one group's queue, as one claimer knows them.

``window.py`` holds them and says how long they are trusted, ``reader.py`` reads them, and
``contention.py`` shares them with other claimers. Here is what decides between these.
"""

import asyncio
import time
from collections.abc import Collection, Iterable

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.claimers import ALONE, Claimers
from shoal.coordination.queue.contention import Choice, PassedOver, choose
from shoal.coordination.queue.entry import QueueEntry
from shoal.coordination.queue.pruner import Pruner
from shoal.coordination.queue.put_log import Put, puts_since
from shoal.coordination.queue.reader import FirstEntries, QueueReader
from shoal.coordination.queue.window import MOST_ENTRIES, EntryWindow, Trust
from shoal.coordination.session.nodes import Node, WatchEvent
from shoal.coordination.session.session import ZkSession

LEAST_ENTRIES = 128  # to read when reading anyway
SHARE, SHARE_CLAIMS = 32, 8  # … for each claimer that shares them: entries or claims, the greater
BLOCK_S = 1.0


class QueueHead:
    """A window on the head of the queue; one claimer uses it at a time (``lock``).

    The group's notification (its znode's data, set by every put) names new entries: the next
    claim reads it and adds them to the window (put_log.py). The queue itself is read only if the
    notification does not name all of them, or the window is used up or old.
    """

    def __init__(self, session: ZkSession, group: str) -> None:
        self._session, self.group = session, group
        self._path = layout.queue(group)
        self._claimers = Claimers(session, group)
        self._pruner = Pruner(session)
        self._reader = QueueReader(session, group, self._pruner, self.expire)
        self._window, self._trust = EntryWindow(), Trust()
        self._passed_over = PassedOver()
        # The notification's czxid and version, if we know of all puts until then.
        self._notification: tuple[int, int] | None = None
        self._just_read: set[int] = set()  # tasks that a later notification may name again
        self._blocked: dict[int, float] = {}  # task instance -> until when
        self._left_out: frozenset[int] = frozenset()  # partitions whose entries we do not want
        self.lock = asyncio.Lock()
        self.notified = asyncio.Event()  # there may be more than at the last reading
        self.notified.set()
        self.found = asyncio.Event()  # a reading has found entries since a wait began

    # ------------------------------------------------------------------ choosing

    async def choose(self, wanted: int) -> tuple[Choice, bool]:
        """Return up to ``wanted`` entries to claim, and whether the window is as of just now."""
        fresh = True
        if self._is_stale(wanted):
            await self._read(wanted)
        else:
            fresh = self._has_notification and await self._read_notification(wanted)
        choice = self._choose(wanted)
        if not fresh and not choice.ours and (choice.entries or self.may_have_others):
            await self._read(wanted)  # our share is used up
            fresh, choice = True, self._choose(wanted)
        return choice, fresh

    def _choose(self, wanted: int) -> Choice:
        window = self._window.entries
        if not self._shares:
            return Choice(window[:wanted], ours=True)
        choice = choose(window, wanted, self._claimers.place, self._passed_over.times)
        self._passed_over.note(window, choice.entries)
        return choice

    def _is_stale(self, wanted: int) -> bool:
        """Return whether to read the queue, whatever the notification says."""
        if self._claimers.changed or self._trust.is_expired:
            return True
        if self._blocked and self.unblocks_in_s <= 0:
            return True
        window, shares = self._window, self._shares
        needed = 1 if shares else wanted
        if window.may_have_more and (len(window.entries) < needed or window.has_gap):
            return True
        is_alone = self._claimers.place == ALONE
        return not is_alone and self._trust.others_may_have_taken(has_share=shares)

    @property
    def _has_notification(self) -> bool:
        if self._shares and self._window.entries and self._trust.has_fresh_notification:
            return False
        return self.notified.is_set()

    @property
    def _shares(self) -> bool:
        return self._claimers.place != ALONE and self._trust.is_contended

    @property
    def may_have_others(self) -> bool:
        """Whether a reading may find entries that we do not know of."""
        return self._window.may_have_more or self.notified.is_set()

    @property
    def is_costly(self) -> bool:
        """Whether reading the queue takes many requests, for entries that cannot be claimed."""
        return self._trust.is_costly

    def contend(self) -> None:
        """Share the head out for a while: we were not quick enough to get the first."""
        self._trust.contend()

    def taken(self, entries: Collection[QueueEntry]) -> None:
        """Forget entries that are ours now."""
        self._window.taken(entries)
        self.drop(entries)
        self._pruner.used(entries)

    def drop(self, entries: Iterable[QueueEntry]) -> None:
        """Forget entries that are no longer in the queue."""
        self._window.gone(list(entries))

    def block(self, entry: QueueEntry) -> None:
        """Leave out an entry whose task is still claimed, for a second."""
        self._blocked[entry.task_instance_id] = time.monotonic() + BLOCK_S
        self._window.drop({entry.task_instance_id})
        self._pruner.remove_lasting_claim(entry)

    def mend(self, entry: QueueEntry) -> None:
        """The bucket for the claim of ``entry`` is missing: make it, and try again after that."""
        self._blocked[entry.task_instance_id] = time.monotonic() + BLOCK_S
        self._window.drop({entry.task_instance_id})
        self._pruner.make_claim_bucket(entry)

    def leave_out(self, partitions: frozenset[int]) -> None:
        """Choose no entries of ``partitions``, and of all others again."""
        if partitions != self._left_out:
            self._left_out = partitions
            self._window.drop_partitions(partitions)
            self.expire()

    def unblock(self, task_instance_id: int) -> None:
        if self._blocked.pop(task_instance_id, None):
            self.expire()

    def expire(self) -> None:
        """Read the queue again before the next claim."""
        self._trust.expire()
        self.notified.set()

    @property
    def first(self) -> QueueEntry | None:
        """The first entry that we know to wait."""
        return self._window.entries[0] if self._window.entries else None

    @property
    def knows_first(self) -> bool:
        """Whether no entry that we do not know of can come before ``first``."""
        window = self._window
        return not self.notified.is_set() and (bool(window.entries) or window.is_complete)

    @property
    def may_have_entries(self) -> bool:
        return self.may_have_others or bool(self._window.entries)

    @property
    def unblocks_in_s(self) -> float:
        """Seconds until a blocked entry may be tried again; infinite if there is none."""
        return min(self._blocked.values(), default=float("inf")) - time.monotonic()

    @property
    def changes_in_s(self) -> float:
        """Seconds until a claim may find something without a notification; perhaps infinite."""
        is_hidden = not self._window.is_complete  # what is behind may have come forward by then
        expires_in_s = self._trust.expires_in_s if is_hidden else float("inf")
        return max(0.0, min(self.unblocks_in_s, expires_in_s))

    def _on_notification(self, _: WatchEvent) -> None:
        self.notified.set()

    # ------------------------------------------------------------------ the notification

    async def _read_notification(self, wanted: int) -> bool:
        """Read the notification, or the queue; return whether the window is of this moment."""
        self.notified.clear()
        now = time.monotonic()
        try:
            notification = await self._session.get(self._path, watch=self._on_notification)
        except BaseException as error:
            self.expire()
            if not isinstance(error, NoNode):
                raise
            notification = None
        if notification and self._add_puts(notification, now):
            return self._trust.is_exact(now)
        await self._read(wanted, notification)
        return True

    def _add_puts(self, notification: Node, now: float) -> bool:
        """Add to the window what ``notification`` names. Returns False if that is not all."""
        if self._notification is None or self._notification[0] != notification.stat.czxid:
            return False
        puts = puts_since(self.group, self._notification[1], notification)
        if puts is None or not all(map(self._names_all, puts)):
            return False
        if not self._window.entries:
            self._trust.window_was_empty(now)
        known = {entry.task_instance_id for entry in self._window.entries} | self._blocked.keys()
        known |= self._just_read
        self._just_read = set()
        for entry in (entry for put in puts for entry in put.entries):
            if entry.partition in self._left_out:
                continue
            if self._window.reaches(entry) and entry.task_instance_id not in known:
                known.add(entry.task_instance_id)  # it may have been put twice
                self._window.add(entry)
        self._window.trim()
        self._notification = notification.stat.czxid, notification.stat.version
        self._trust.notification_read(now)
        return True

    def _names_all(self, put: Put) -> bool:
        """Return whether ``put`` names all of its entries that belong into the window."""
        return not (put.more and any(map(self._window.reaches, put.entries)))

    # ------------------------------------------------------------------ reading

    async def _read(self, wanted: int, notification: Node | None = None) -> None:
        """Fill the window with the first entries, or all there are.

        ``notification`` has been read just now, and its watch is set.
        """
        if notification is None:
            self.notified.clear()
        now = self._trust.reading_begins()
        self._blocked = {task: until for task, until in self._blocked.items() if until > now}
        try:
            await self._claimers.refresh()
            found = await self._first(self._size(wanted), notification)
        except BaseException:
            self.expire()
            raise
        passed_over = sum(len(line.entries) for line in found.lines.values()) - found.count
        self._window.fill(
            found.lines,
            is_complete=found.is_complete,
            is_searched=found.is_searched,
            unread=found.unread,
            blocked=self._blocked,
            left_out=self._left_out,
        )
        # The notification of a put during the reading is still to come. By then we may have
        # claimed what it names.
        self._just_read = (
            {entry.task_instance_id for line in found.lines.values() for entry in line.entries}
            if self.notified.is_set()
            else set()
        )
        self._trust.reading_ended(now, is_costly=passed_over > LEAST_ENTRIES)
        self._passed_over.check(self._window.entries, now, self._trust.patience_s)

    def _size(self, wanted: int) -> int:
        """Return how many entries to read."""
        fair_share = max(SHARE, SHARE_CLAIMS * wanted) * self._claimers.place.claimers
        return max(wanted, LEAST_ENTRIES, min(fair_share, MOST_ENTRIES) if self._shares else 0)

    def _is_wanted(self, entry: QueueEntry) -> bool:
        """Return whether an entry may be claimed now."""
        is_blocked = entry.task_instance_id in self._blocked
        return not is_blocked and entry.partition not in self._left_out

    async def _first(self, count: int, notification: Node | None) -> FirstEntries:
        self._notification = None
        try:
            # In this order: a put that comes after the first request fires the watch, one that
            # comes before is in the lists.
            armed = (
                _known(notification)
                if notification
                else self._session.get(self._path, watch=self._on_notification)
            )
            (_, stat), outers = await asyncio.gather(armed, self._reader.outer_buckets())
        except NoNode:
            if await self._session.exists(self._path, watch=self._on_notification):
                self.notified.set()  # it came in between
            return FirstEntries()
        found = await self._reader.first(outers, count, self._is_wanted)
        self._notification = stat.czxid, stat.version
        return found


async def _known(notification: Node) -> Node:
    return notification
