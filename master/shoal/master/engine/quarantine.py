"""What this master cannot work with: quarantined with a reason, shown, and tried again.

A row of another version or changed by hand, an event that ``decide`` fails on, a text that cannot
be rendered: each concerns one run, command, schedule, backfill or group, and stops neither this
master nor anything else. The row stays as it is stored. It is tried again after a while, later
each time; when its partition gets another owner; when a retry is requested (``shoal quarantine
retry``, and ``shoal recover`` for a run). Until then nothing is done with it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem, failure_of
from shoal.master.loops import trace_of, wait_for
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import Fenced

log = structlog.get_logger()

_LONGEST_PAUSE_S = 600.0  # between two tries: a repair is noticed within ten minutes
_REQUESTS_S = 5.0  # while something is held, requests to retry it are looked for so often
_STORE_AGAIN_S = 1.0  # pause after the list of what is quarantined could not be stored

_Key = tuple[ItemKind, str]
OnStoring = Callable[[UnitOfWork, Collection[QuarantinedItem]], Awaitable[None]]


async def _nothing_else(_uow: UnitOfWork, _items: Collection[QuarantinedItem]) -> None:
    """Store nothing else with the items."""


@dataclass
class _Held:
    record: QuarantinedItem
    retry_at: float  # monotonic
    on_trial: bool = False  # it is being tried again


class Quarantine:
    """What one master has quarantined. Used on the event loop; ``run`` stores what changes."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        epochs: Mapping[int, int],
        first_retry_s: float,
        on_retry: Callable[[QuarantinedItem], None] = lambda _: None,
        on_storing: OnStoring = _nothing_else,
        on_stored: Callable[[Collection[QuarantinedItem]], None] = lambda _: None,
    ) -> None:
        """``epochs``: of the partitions held, at any time.

        ``on_retry`` is called with each item that is due to be tried again, ``on_storing`` with
        the items that are about to be committed, ``on_stored`` with them afterwards.
        """
        self._database = database
        self._clock = clock
        self._epochs = epochs
        self._first_retry_s = first_retry_s
        self._items: dict[_Key, _Held] = {}
        self._to_store: set[_Key] = set()
        self._news = asyncio.Event()
        self._on_retry, self._on_storing, self._on_stored = on_retry, on_storing, on_stored
        self._requests_at = 0.0  # monotonic
        self.storing = asyncio.Lock()  # held while it is stored that something is quarantined

    def put(self, kind: ItemKind, item: object, partition: int, error: BaseException) -> None:
        """Quarantine a thing because of ``error``; its trace is logged the first time."""
        key = (kind, str(item))
        known = self._items.get(key)
        tries = known.record.tries + 1 if known else 1
        since = known.record.since if known else self._clock()
        reason = failure_of(error)
        record = QuarantinedItem(
            kind, str(item), partition, reason, tries, since, last_at=self._clock()
        )
        pause_s = min(self._first_retry_s * 2.0 ** min(tries - 1, 20), _LONGEST_PAUSE_S)
        self._items[key] = _Held(record, time.monotonic() + pause_s)
        log.error(
            "quarantined",
            kind=kind,
            item=str(item),
            partition=partition,
            reason=reason,
            tries=tries,
            trace=None if known else trace_of(error),
        )
        self._changed(key)

    def holds(self, kind: ItemKind, item: object) -> bool:
        """Whether nothing is to be done with a thing now."""
        if not self._items:
            return False
        found = self._items.get((kind, str(item)))
        return found is not None and not found.on_trial

    def tries(self, kind: ItemKind, item: object) -> bool:
        """Whether a thing was quarantined and is being tried again now."""
        if not self._items:
            return False
        found = self._items.get((kind, str(item)))
        return found is not None and found.on_trial

    def reason(self, kind: ItemKind, item: object) -> str:
        """Return why a thing is quarantined."""
        found = self._items.get((kind, str(item)))
        return found.record.reason if found else ""

    def held(self, kind: ItemKind) -> int:
        """Return how many things of a kind are quarantined."""
        return sum(of is kind for of, _ in self._items)

    def try_again(self, kind: ItemKind, item: object) -> None:
        """Let a thing be worked with again: ``put`` or ``passed`` follows."""
        if (found := self._items.get((kind, str(item)))) is not None:
            found.on_trial = True

    def passed(self, kind: ItemKind, item: object) -> None:
        """A thing was worked with. Costs nothing as a rule."""
        if self._items and self._items.pop(key := (kind, str(item)), None) is not None:
            log.info("no longer quarantined", kind=kind, item=str(item))
            self._changed(key)

    def forget(self, partitions: Collection[int]) -> None:
        """Partitions were taken or dropped: their owner finds out anew what is there."""
        for key in [k for k, one in self._items.items() if one.record.partition in partitions]:
            del self._items[key]
            self._to_store.discard(key)

    def _changed(self, key: _Key) -> None:
        self._to_store.add(key)
        self._news.set()

    # -- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Run for ever."""
        while True:
            await wait_for(self._news, self._pause_s())
            self._news.clear()
            try:
                self._try_due(await self._requested())
                await self._store()
            except Fenced as error:
                self.forget(error.partitions)
            except Exception as error:  # noqa: BLE001 - a record must not end the master
                log.warning("quarantine not stored; trying again", error=str(error))
                await asyncio.sleep(_STORE_AGAIN_S)
                self._news.set()

    def _pause_s(self) -> float | None:
        due = [one.retry_at for one in self._items.values() if not one.on_trial]
        return min(max(0.0, min(due) - time.monotonic()), _REQUESTS_S) if due else None

    async def _requested(self) -> set[_Key]:
        """Return the held items whose retry was requested since they failed last."""
        if not self._items or time.monotonic() < self._requests_at:
            return set()
        self._requests_at = time.monotonic() + _REQUESTS_S
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await uow.quarantine.requested(
                ItemConsumer.MASTERS, list(ItemKind), list(self._epochs)
            )
        return {
            (one.kind, one.item)
            for one in found
            if (held := self._items.get((one.kind, one.item))) is not None
            and one.retry_at is not None
            and one.retry_at > (held.record.last_at or held.record.since)
        }

    def _try_due(self, requested: Collection[_Key] = ()) -> None:
        now = time.monotonic()
        for key, one in list(self._items.items()):
            if not one.on_trial and (one.retry_at <= now or key in requested):
                one.on_trial = True
                self._on_retry(one.record)

    async def _store(self) -> None:
        async with self.storing:
            as_is = {key: self._items.get(key) for key in self._to_store}
            if not as_is:
                return
            # One that is on trial may have been readmitted: if it fails again, it is put again.
            failed = [one.record for one in as_is.values() if one and not one.on_trial]
            ours = [one for one in failed if one.partition in self._epochs]
            async with self._database.unit_of_work() as uow:
                epochs = {at: self._epochs[at] for one in ours if (at := one.partition) is not None}
                await uow.fence(epochs)
                await uow.quarantine.remove(as_is.keys() - {(one.kind, one.item) for one in failed})
                await uow.quarantine.put(ours)
                await self._on_storing(uow, ours)
                await uow.commit()
            self._to_store -= {k for k, one in as_is.items() if self._items.get(k) is one}
        self._on_stored(ours)
