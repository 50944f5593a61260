"""The first entries of one group's queue, as one worker knows them."""

import asyncio
import time
from collections.abc import Iterable

import structlog

from shoal.coordination import layout
from shoal.coordination.errors import NoNode, NotEmpty
from shoal.coordination.nodes import Children, WatchEvent
from shoal.coordination.queue_entry import Entry, parse
from shoal.coordination.session import ZkSession

log = structlog.get_logger()

LEAST_WINDOW = 128  # entries to read at least when reading anyway
BLOCK_S = 1.0
FIRST_AT_ONCE, AT_ONCE = 2, 32  # buckets to list in one go: few at first, they may be full
LONGEST_TRUST_S = 5.0  # in a window, for a bell is only a hint
WORTH_KEEPING = 200  # names; a longer list is not read again while its znode is unchanged


class Head:
    """A window on the head of the queue; one claimer uses it at a time (``lock``).

    The group's bell (its znode's data, set by every put) makes the window stale, so the next
    claim reads anew and sees entries that now come first. Between two bells claims use up the
    window without reading.
    """

    def __init__(self, session: ZkSession, group: str) -> None:
        self._session, self.group = session, group
        self._path = layout.queue(group)
        self._window: list[Entry] = []  # in order
        self._complete = False  # the window reaches to the end of the queue
        self._lists: dict[str, tuple[int, list[str]]] = {}  # long lists: path -> (pzxid, sorted)
        self._blocked: dict[int, float] = {}  # task instance -> until when
        self._read_at = float("-inf")
        self.lock = asyncio.Lock()
        self.rung = asyncio.Event()  # there may be news since the last reading
        self.rung.set()

    async def first(self, count: int) -> tuple[list[Entry], bool]:
        """Return up to ``count`` first entries, and whether they were read just now."""
        exhausted = not self._complete and len(self._window) < count
        old = time.monotonic() > self._read_at + LONGEST_TRUST_S
        if self.rung.is_set() or exhausted or old:
            await self._read(max(count, LEAST_WINDOW))
            return self._window[:count], True
        return self._window[:count], False

    def drop(self, entries: Iterable[Entry]) -> None:
        """Forget entries that are no longer in the queue."""
        gone = set(entries)
        self._window = [entry for entry in self._window if entry not in gone]

    def block(self, entry: Entry) -> None:
        """Leave out an entry whose task is still claimed, for a second."""
        self._blocked[entry.task_instance_id] = time.monotonic() + BLOCK_S
        self.drop([entry])

    def unblock(self, task_instance_id: int) -> None:
        if self._blocked.pop(task_instance_id, None):
            self.expire()

    def expire(self) -> None:
        """Read anew before the next claim."""
        self.rung.set()

    @property
    def may_have_entries(self) -> bool:
        return self.rung.is_set() or bool(self._window) or not self._complete

    def _on_bell(self, _: WatchEvent) -> None:
        self.rung.set()

    async def _read(self, count: int) -> None:
        """Fill the window with ``count`` entries, or all there are."""
        self.rung.clear()
        self._read_at = now = time.monotonic()
        self._blocked = {task: until for task, until in self._blocked.items() if until > now}
        count += len(self._blocked)
        try:
            # In this order: a put that comes after the first request rings, one that comes
            # before is in the lists.
            armed = self._session.get(self._path, watch=self._on_bell)
            _, listed = await asyncio.gather(armed, self._list(self._path))
            outers = list(listed)
        except NoNode:
            self._window, self._complete = [], True
            if await self._session.exists(self._path, watch=self._on_bell):
                self.rung.set()  # it came in between
            return
        except BaseException:
            self.rung.set()
            raise
        try:
            window: list[Entry] = []
            while outers and len(window) < count:
                window += await self._read_outer(outers.pop(0), count - len(window))
            # A full window may have been cut short.
            self._complete = len(window) < count
            self._window = [e for e in window if e.task_instance_id not in self._blocked]
        except BaseException:
            self.rung.set()
            raise

    async def _read_outer(self, outer: str, count: int) -> list[Entry]:
        """Return the ``count`` first entries of one outer bucket, or all there are; prune it."""
        path = f"{self._path}/{outer}"
        try:
            inners = await self._list(path)
        except NoNode:
            return []
        entries: list[Entry] = []
        empty: list[str] = []
        start, some = 0, FIRST_AT_ONCE
        while start < len(inners) and len(entries) < count:
            names = inners[start : start + some]
            start, some = start + some, min(4 * some, AT_ONCE)
            lists = [self._session.children(f"{path}/{inner}") for inner in names]
            found = await asyncio.gather(*lists, return_exceptions=True)
            for inner, children in zip(names, found, strict=True):
                if isinstance(children, Children):
                    first = sorted(children.names)[: count - len(entries)]
                    entries += self._parse_all(outer, inner, first)
                    if not children.names:
                        empty.append(f"{path}/{inner}")
                elif not isinstance(children, NoNode):
                    raise children
        if empty or not inners:
            await self._prune([*empty, path])
        return entries

    def _parse_all(self, outer: str, inner: str, names: list[str]) -> list[Entry]:
        entries = []
        for name in names:
            try:
                entries.append(parse(self.group, outer, inner, name))
            except ValueError:
                log.warning("foreign znode in the queue", path=f"{outer}/{inner}/{name}")
        return entries

    async def _prune(self, buckets: list[str]) -> None:
        """Delete buckets that are empty; a put that comes in between makes them again."""
        deletes = [self._session.submit_delete(path) for path in buckets]
        for error in await asyncio.gather(*deletes, return_exceptions=True):
            if error is not None and not isinstance(error, NoNode | NotEmpty):
                raise error

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
