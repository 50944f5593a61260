"""The first entries of one group's queue, as one claimer knows them."""

import asyncio
import time
from bisect import insort
from collections.abc import Collection, Iterable

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NoNode
from shoal.coordination.queue.claimers import ALONE, Claimers
from shoal.coordination.queue.contention import Choice, choose
from shoal.coordination.queue.entry import Entry, parse
from shoal.coordination.queue.pruning import Pruner, ignore
from shoal.coordination.queue.put_log import Put, puts_since
from shoal.coordination.session.nodes import Children, Node, WatchEvent
from shoal.coordination.session.session import ZkSession

LEAST_WINDOW, MOST_WINDOW = 128, 1000  # entries to read when reading anyway
SHARE, SHARE_CLAIMS = 32, 8  # … for each claimer who shares them: entries or claims, the greater
BLOCK_S = 1.0
FIRST_AT_ONCE, AT_ONCE = 2, 64  # buckets to list in one go: few at first, they may be full
WORTH_KEEPING = 200  # names; a longer list is not read again while its znode is unchanged

# How long a window is trusted: a notification is only a hint, and other claimers do not notify.
TRUST_ALONE_S, TRUST_S, TRUST_OWN_SHARE_S = 5.0, 0.1, 0.25
DEAF_S = 0.05  # with a share of our own a notification does not make us read more often than that
PATIENCE_S = 0.25  # between two looks whether others have taken what we passed over
CONTENDED_S = 3.0  # after a lost race the head is shared out for so long
# … but at least so many times as long as a reading takes: busy machines have another clock.
READINGS, CONTENDED_READINGS = 5, 30


class Head:
    """A window on the head of the queue; one claimer uses it at a time (``lock``).

    The group's notification (its znode's data, set by every put) tells of new entries: the next
    claim reads it and takes them into the window (news.py). Only if it does not tell of all of
    them, or the window is used up or old, the claim reads the queue itself.
    """

    def __init__(self, session: ZkSession, group: str) -> None:
        self._session, self.group = session, group
        self._path = layout.queue(group)
        self._claimers = Claimers(session, group)
        self._window: list[Entry] = []  # in order
        self._complete = False  # the window reaches to the end of the queue
        self._reach: Entry | None = None  # else to this entry, which it may have lost since
        # The notification's czxid and version, if we know of all puts until then; tasks of later
        # ones.
        self._notification: tuple[int, int] | None = None
        self._foreseen: set[int] = set()
        self._lists: dict[str, tuple[int, list[str]]] = {}  # long lists: path -> (pzxid, sorted)
        self._lists_needed = FIRST_AT_ONCE  # by the last reading
        self._blocked: dict[int, float] = {}  # task instance -> until when
        self._left_out: frozenset[int] = frozenset()  # partitions whose entries we do not want
        self._read_at, self._read_took_s = float("-inf"), 0.0
        self._heard_at = float("-inf")
        self._true_at = float("-inf")  # since then nobody else can have taken anything from it
        self._contended_until = float("-inf")
        # By task instance: passed over since the last look; how many looks it outlived.
        self._overtaken: set[int] = set()
        self._passed: dict[int, int] = {}
        self._looked_at = float("-inf")
        self._pruner = Pruner(session)
        self.lock = asyncio.Lock()
        self.notified = asyncio.Event()  # there may be news since the last reading
        self.notified.set()
        self.found = asyncio.Event()  # somebody has looked and found entries since a wait began

    # ------------------------------------------------------------------ choosing

    async def choose(self, wanted: int) -> tuple[Choice, bool]:
        """Choose up to ``wanted`` entries; tell whether the window is as of just now."""
        fresh = True
        if self._is_stale(wanted):
            await self._read(wanted)
        else:
            fresh = self._wants_news and await self._listen(wanted)
        choice = self._choose(wanted)
        if not fresh and not choice.ours and (choice.entries or not self._knows_all):
            await self._read(wanted)  # our share is used up
            fresh, choice = True, self._choose(wanted)
        return choice, fresh

    def _choose(self, wanted: int) -> Choice:
        if not self._shares:
            return Choice(self._window[:wanted], ours=True)
        choice = choose(self._window, wanted, self._claimers.place, self._passed)
        if choice.entries:
            chosen, last = set(choice.entries), max(choice.entries)
            passed_over = (e for e in self._window if e < last and e not in chosen)
            self._overtaken.update(entry.task_instance_id for entry in passed_over)
        return choice

    def _is_stale(self, wanted: int) -> bool:
        """Tell whether to read the queue, whatever the notification tells."""
        now = time.monotonic()
        age_s, trust_s = now - self._true_at, TRUST_S
        if self._claimers.changed or now > self._read_at + TRUST_ALONE_S:
            return True
        if self._blocked and self.unblocks_in_s <= 0:
            return True
        if self._shares:
            trust_s = max(TRUST_OWN_SHARE_S, READINGS * self._read_took_s)
            used_up = not self._window and not self._complete
        else:
            used_up = not self._complete and len(self._window) < wanted
        return used_up or (self._claimers.place != ALONE and age_s > trust_s)

    @property
    def _wants_news(self) -> bool:
        if self._shares and self._window and time.monotonic() < self._heard_at + DEAF_S:
            return False
        return self.notified.is_set()

    @property
    def _shares(self) -> bool:
        return self._claimers.place != ALONE and time.monotonic() < self._contended_until

    @property
    def _knows_all(self) -> bool:
        return self._complete and not self.notified.is_set()

    def contend(self) -> None:
        """Share the head out for a while: we were not quick enough to get the first."""
        contended_s = max(CONTENDED_S, CONTENDED_READINGS * self._read_took_s)
        self._contended_until = time.monotonic() + contended_s

    def taken(self, entries: Collection[Entry]) -> None:
        """Forget entries that are ours now."""
        self.drop(entries)
        self._pruner.used(entries)

    def drop(self, entries: Iterable[Entry]) -> None:
        """Forget entries that are no longer in the queue."""
        gone = {entry.task_instance_id for entry in entries}
        self._window = [entry for entry in self._window if entry.task_instance_id not in gone]

    def block(self, entry: Entry) -> None:
        """Leave out an entry whose task is still claimed, for a second."""
        self._blocked[entry.task_instance_id] = time.monotonic() + BLOCK_S
        self.drop([entry])
        self._pruner.remove_lasting_claim(entry)

    def mend(self, entry: Entry) -> None:
        """The bucket for the claim of ``entry`` is missing: make it, and try again after that."""
        self._blocked[entry.task_instance_id] = time.monotonic() + BLOCK_S
        self.drop([entry])
        self._pruner.make_claim_bucket(entry)

    def leave_out(self, partitions: frozenset[int]) -> None:
        """Choose no entries of ``partitions``, and of all others again."""
        if partitions != self._left_out:
            self._left_out = partitions
            self._window = [entry for entry in self._window if entry.partition not in partitions]
            self.expire()

    def unblock(self, task_instance_id: int) -> None:
        if self._blocked.pop(task_instance_id, None):
            self.expire()

    def expire(self) -> None:
        """Read anew before the next claim."""
        self._read_at = float("-inf")
        self.notified.set()

    @property
    def first(self) -> Entry | None:
        """The first entry that we know to wait."""
        return self._window[0] if self._window else None

    @property
    def knows_first(self) -> bool:
        """Whether nothing that we do not know of can come before ``first``."""
        return not self.notified.is_set() and (bool(self._window) or self._complete)

    @property
    def may_have_entries(self) -> bool:
        return self.notified.is_set() or bool(self._window) or not self._complete

    @property
    def unblocks_in_s(self) -> float:
        """Seconds until a blocked entry may be tried again; infinite if there is none."""
        return min(self._blocked.values(), default=float("inf")) - time.monotonic()

    def _on_notification(self, _: WatchEvent) -> None:
        self.notified.set()

    # ------------------------------------------------------------------ news

    async def _listen(self, wanted: int) -> bool:
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
        if notification and self._take_in(notification, now):
            return self._true_at == now
        await self._read(wanted, notification)
        return True

    def _take_in(self, notification: Node, now: float) -> bool:
        """Add to the window what ``notification`` tells of. Returns False if that is not all."""
        if self._notification is None or self._notification[0] != notification.stat.czxid:
            return False
        puts = puts_since(self.group, self._notification[1], notification)
        if puts is None or not all(map(self._can_take_in, puts)):
            return False
        if not self._window:
            self._true_at = now  # no entry of ours has waited here for others to take it
        known = {entry.task_instance_id for entry in self._window} | self._blocked.keys()
        known |= self._foreseen
        self._foreseen = set()
        for entry in (entry for put in puts for entry in put.entries):
            if entry.partition in self._left_out:
                continue
            if self._is_within_reach(entry) and entry.task_instance_id not in known:
                known.add(entry.task_instance_id)  # it may have been put twice
                insort(self._window, entry)
        if len(self._window) > MOST_WINDOW:
            del self._window[MOST_WINDOW:]
            self._complete, self._reach = False, self._window[-1]
        self._notification, self._heard_at = (
            (notification.stat.czxid, notification.stat.version),
            now,
        )
        return True

    def _can_take_in(self, put: Put) -> bool:
        return not (put.more and self._is_within_reach(put.entries[0]))

    def _is_within_reach(self, entry: Entry) -> bool:
        """Tell whether the window would contain ``entry`` if we read it now."""
        return self._complete or (self._reach is not None and entry < self._reach)

    # ------------------------------------------------------------------ reading

    async def _read(self, wanted: int, notification: Node | None = None) -> None:
        """Fill the window with the first entries, or all there are.

        ``notification`` has been read just now, and its watch is set.
        """
        if notification is None:
            self.notified.clear()
        self._read_at = self._true_at = self._heard_at = now = time.monotonic()
        self._blocked = {task: until for task, until in self._blocked.items() if until > now}
        try:
            await self._claimers.refresh()
            count = self._size(wanted) + len(self._blocked)
            window = await self._first(count, notification)
        except BaseException:
            self.expire()
            raise
        # A full window may have been cut short.
        self._complete = len(window) < count
        self._reach = window[-1] if window else None
        self._window = [
            entry
            for entry in window
            if entry.task_instance_id not in self._blocked and entry.partition not in self._left_out
        ]
        # A put that came while we read will be told of, and we may have claimed it by then.
        self._foreseen = {e.task_instance_id for e in window} if self.notified.is_set() else set()
        self._read_took_s = time.monotonic() - now
        patience_s = max(PATIENCE_S, READINGS * self._read_took_s)
        if self._overtaken and now > self._looked_at + patience_s:
            self._look_at_passed_over()

    def _size(self, wanted: int) -> int:
        """Return how many entries to read."""
        if self._left_out:
            return max(wanted, MOST_WINDOW)  # what we want may be far behind
        fair_share = max(SHARE, SHARE_CLAIMS * wanted) * self._claimers.place.claimers
        return max(wanted, LEAST_WINDOW, min(fair_share, MOST_WINDOW) if self._shares else 0)

    def _look_at_passed_over(self) -> None:
        self._looked_at = self._read_at
        there = {entry.task_instance_id for entry in self._window}
        self._passed = {task: n for task, n in self._passed.items() if task in there}
        for task in self._overtaken & there:
            self._passed[task] = self._passed.get(task, 0) + 1
        self._overtaken.clear()

    async def _first(self, count: int, notification: Node | None) -> list[Entry]:
        self._notification = None
        try:
            # In this order: a put that comes after the first request notifications, one that comes
            # before is in the lists.
            armed = (
                _known(notification)
                if notification
                else self._session.get(self._path, watch=self._on_notification)
            )
            (_, stat), listed = await asyncio.gather(armed, self._list(self._path))
        except NoNode:
            if await self._session.exists(self._path, watch=self._on_notification):
                self.notified.set()  # it came in between
            return []
        window: list[Entry] = []
        for outer in list(listed):
            if len(window) >= count:
                break
            window += await self._read_outer(outer, count - len(window))
        self._notification = stat.czxid, stat.version
        return window

    async def _read_outer(self, outer: str, count: int) -> list[Entry]:
        """Return the ``count`` first entries of one outer bucket, or all there are; prune it."""
        path = f"{self._path}/{outer}"
        try:
            inners = await self._list(path)
        except NoNode:
            return []
        entries: list[Entry] = []
        empty: list[str] = []
        needed, start, some = 0, 0, self._lists_needed
        while start < len(inners) and len(entries) < count:
            names = inners[start : start + some]
            start, some = start + some, min(4 * some, AT_ONCE)
            lists = [self._session.children(f"{path}/{inner}") for inner in names]
            found = await asyncio.gather(*lists, return_exceptions=True)
            for inner, children in zip(names, found, strict=True):
                needed += len(entries) < count
                if isinstance(children, Children):
                    first = sorted(children.names)[: count - len(entries)]
                    entries += self._parse_all(outer, inner, first)
                    if not children.names:
                        empty.append(f"{path}/{inner}")
                elif not isinstance(children, NoNode):
                    raise children
        self._lists_needed = min(max(FIRST_AT_ONCE, needed), AT_ONCE)
        self._prune([*empty, path] if len(empty) == len(inners) else empty)
        return entries

    def _parse_all(self, outer: str, inner: str, names: list[str]) -> list[Entry]:
        entries = []
        for name in names:
            try:
                entries.append(parse(self.group, outer, inner, name))
            except ValueError as error:
                path = f"{self._path}/{outer}/{inner}/{name}"
                self._pruner.remove(path, str(error), self.expire)
        return entries

    def _prune(self, buckets: list[str]) -> None:
        """Delete buckets that are empty; a put that comes in between makes them again."""
        for path in buckets:
            # Others do the same, and what is left over is found again by the next reading.
            self._session.submit_delete(path).add_done_callback(ignore)

    async def _list(self, path: str) -> list[str]:
        """Return the children's names, sorted; long lists are kept while they are unchanged."""
        if kept := self._lists.get(path):
            stat = await self._session.exists(path)
            if stat and stat.pzxid == kept[0]:
                return kept[1]
            del self._lists[path]
        names, stat = await self._session.children(path)
        names.sort()
        if len(names) >= WORTH_KEEPING:
            if len(self._lists) >= AT_ONCE:
                self._lists.clear()
            self._lists[path] = (stat.pzxid, names)
        return names


async def _known(notification: Node) -> Node:
    return notification
