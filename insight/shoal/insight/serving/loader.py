"""Load results into the database: new ones, those that have changed, and none twice.

What is to be loaded is what marks name, and days that the database lacks. A file is read as a
whole and compared with the digest that its mark has. Its rows are written beside those that count,
in small transactions with pauses; one more lets them count (``sql/repositories/insight``). Only
then its mark goes, so a loader that is killed leaves the old day or the new one, and the next one
goes on. Two loaders at once write two batches, of which one counts.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TypeVar

from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem, failed_item
from shoal.insight.serving.blocks import BadResult, blocks_of, table_of
from shoal.insight.serving.marks import BadMark, age_s, read
from shoal.insight.serving.results import RESULTS
from shoal.insight.serving.store import ResultStore
from shoal.runtime import failpoints
from shoal.runtime.storage import ObjectMissing
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import IntegrityViolated, InvalidValue, RollupTaken, SqlError
from shoal.sql.repositories.insight.batches import Batch, NewBlock
from shoal.sql.repositories.insight.rollups import RollupDay
from shoal.sql.repositories.upkeep.quarantine import MOST_SKIPPED

T = TypeVar("T")
Key = tuple[str, date]  # job, day

KEEP_SNAPSHOTS_DAYS = 7
#: A batch that was not written to for so long has lost its writer.
ABANDONED = timedelta(hours=1)
_CHARS_AT_ONCE = 256_000  # of blocks that one transaction writes
_BLOCKS_AT_ONCE = 100  # that one transaction writes
_BLOCKS_REMOVED_AT_ONCE = 16  # that one transaction removes: each may have 256,000 characters
_MARK_IS_WRITTEN_S = 60.0
_OURS = (ItemConsumer.HISTORY, ItemKind.ROLL_UP)
_TRIES = 5  # while others load the same day


@dataclass
class LoadSummary:
    """What was loaded: results, with how many rows; and days that went, by the rules of retention.

    ``refused``: why a result was not loaded, in a line for each.
    """

    loaded: int = 0
    rows: int = 0
    forgotten: int = 0
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Rules:
    """Which days stay."""

    oldest: date | None  # of results of a day; None: all stay
    latest: date  # those behind it do not count; their files stay, in case the clock is wrong
    newest: Mapping[str, date]  # of snapshots, by job

    def keeps(self, job: str, day: date) -> bool:
        if day > self.latest:
            return False
        result = RESULTS.get(job)
        if result is not None and result.is_snapshot:
            return day > self.newest[job] - timedelta(days=KEEP_SNAPSHOTS_DAYS)
        return self.oldest is None or day >= self.oldest


@dataclass(frozen=True)
class _Present:
    """What there is: digests in the database, days in the storage, and what marks name."""

    known: Mapping[Key, RollupDay]
    stored: Mapping[str, Collection[date]]
    marked: Mapping[Key, Collection[str]]
    marks: Collection[str]


class Loader:
    """Loads results from a store into a database.

    ``share``: the part of the time in which it may have the database at work, above 0 to 1.
    ``keep_days``: the days that results of days stay; 0: all. ``abandoned_after``: the age of a
    batch that is removed, as its loader has ended.
    """

    def __init__(
        self,
        database: Database,
        store: ResultStore,
        *,
        share: float = 1.0,
        keep_days: float = 0,
        abandoned_after: timedelta = ABANDONED,
    ) -> None:
        self._database, self._store = database, store
        self._abandoned_after = abandoned_after
        self._share, self._keep_days = share, keep_days
        self._failed: dict[str, str] = {}  # why a result or a mark of this run was not loaded

    async def run(self, *, is_all: bool = False) -> LoadSummary:
        """Load what is new, let go what is too old, and remove what does not count.

        ``is_all``: compare every file with the database, whether a mark names it or not. Raises
        StorageError, SqlError: what counts so far stays, and the next run goes on from there.
        """
        summary = LoadSummary()
        now = await self._now()
        before = await self._in_turn(
            lambda uow: uow.quarantine.list(MOST_SKIPPED, *_OURS), is_reading=True
        )
        there = await self._look(summary)
        rules = self._rules(there, now)
        wanted = self._wanted(there, rules, is_all) | _retried(before, there)
        for key in sorted(wanted, key=lambda one: (one[1], one[0])):
            await self._see_to(key, there.marked.get(key), summary)
        await self._quarantine(before, {_item(*key) for key in wanted}, now)
        failpoints.hit("load.before_marks_go")
        for name in there.marks:
            await asyncio.to_thread(self._store.remove_mark, name)
        await self._forget(there, rules, summary)
        await self._clean(now)
        return summary

    async def _look(self, summary: LoadSummary) -> _Present:
        """Find out what there is."""
        names: list[str] = []
        marked: dict[Key, set[str]] = {}
        for name in await asyncio.to_thread(self._store.marks):
            try:
                results = read(await asyncio.to_thread(self._store.mark, name))
            except BadMark as error:
                if age_s(name) < _MARK_IS_WRITTEN_S:
                    continue  # not every storage shows a file when it is complete
                names.append(name)
                summary.refused.append(f"{self._store.url}/finished/{name}: {error}")
                self._failed[f"mark {name}"] = str(error)
                continue
            except ObjectMissing:  # another loader has dealt with it
                continue
            names.append(name)
            for one in results:
                marked.setdefault((one.job, one.day), set()).add(one.sha256)
        stored = {
            job: await asyncio.to_thread(self._store.days, job)
            for job in await asyncio.to_thread(self._store.jobs)
        }
        days = await self._in_turn(lambda uow: uow.rollups.days(), is_reading=True)
        return _Present({(one.job, one.day): one for one in days}, stored, marked, names)

    def _rules(self, there: _Present, now: datetime) -> _Rules:
        # A snapshot of a day to come would count as the newest one until that day. One day more:
        # the clock of the worker may be ahead. Where the clock was set back, days that have been
        # do not become such.
        known = max((one.stored_at for one in there.known.values()), default=now)
        latest = max(now, known).date() + timedelta(days=1)
        newest: dict[str, date] = {}
        stored = ((job, day) for job, days in there.stored.items() for day in days)
        for job, day in (*stored, *there.known, *there.marked):
            if day <= latest:
                newest[job] = max(day, newest.get(job, day))
        oldest = now.date() - timedelta(days=self._keep_days) if self._keep_days else None
        return _Rules(oldest, latest, newest)

    @staticmethod
    def _wanted(there: _Present, rules: _Rules, is_all: bool) -> set[Key]:
        """Return what is to be looked at: job and day."""
        found = set(there.marked)
        for job in RESULTS:
            found |= {
                (job, day)
                for day in there.stored.get(job, ())
                if is_all or (job, day) not in there.known
            }
        return {key for key in found if rules.keeps(*key)}

    async def _see_to(
        self, key: Key, digests: Collection[str] | None, summary: LoadSummary
    ) -> None:
        """Load a result unless it is there already, or cannot be."""
        for remaining in reversed(range(_TRIES)):
            try:
                rows = await self._load(key, digests)
            except (BadResult, ObjectMissing, InvalidValue, IntegrityViolated) as error:
                job, day = key
                place = f"{self._store.url}/{job}/day={day}/rows.parquet"
                self._failed[_item(job, day)] = str(error)
                summary.refused.append(f"{place}: {error}; the roll-ups that were there stay")
                return
            except RollupTaken:  # by another loader, perhaps from an older file: look again
                if not remaining:
                    raise
                continue
            if rows is not None:
                summary.loaded += 1
                summary.rows += rows
            return

    async def _load(self, key: Key, digests: Collection[str] | None) -> int | None:
        """Load a result; return its rows, or None if it is there already.

        ``digests``: those that marks say its file may have; None: any. Raises BadResult,
        ObjectMissing, RollupTaken.
        """
        job, day = key
        result = RESULTS.get(job)
        if result is None:
            raise BadResult("no such job is known here: a newer version of Shoal has run it")
        # Before the file is read: what is loaded from a newer one meanwhile is not replaced.
        before = await self._in_turn(
            lambda uow: uow.rollup_batches.counting(job, day), is_reading=True
        )
        content = await asyncio.to_thread(self._store.result, job, day)
        digest = hashlib.sha256(content).hexdigest()
        if before is not None and before.digest == digest:
            return None
        if digests is not None and digest not in digests:
            raise BadResult(
                "the file is not what its run has stored: it was damaged, or is being replaced"
            )
        table = await asyncio.to_thread(table_of, result, content)
        at = await self._now()
        batch = await self._in_turn(lambda uow: uow.rollup_batches.begin(job, day, at, before))
        try:
            for some in _together(blocks_of(result, table)):
                await self._add(batch, some)
                failpoints.hit("load.in_batch")
            failpoints.hit("load.before_publish")
            done = await self._now()
            rows = table.num_rows
            await self._in_turn(lambda uow: uow.rollup_batches.publish(batch, digest, rows, done))
        except SqlError:
            await self._in_turn(lambda uow: uow.rollup_batches.give_up(batch))
            raise
        failpoints.hit("load.after_publish")
        return int(table.num_rows)

    async def _add(self, batch: Batch, blocks: list[NewBlock]) -> None:
        at = await self._now()
        await self._in_turn(lambda uow: uow.rollup_batches.add(batch, blocks, at))

    async def _quarantine(
        self, before: Sequence[QuarantinedItem], looked_at: Collection[str], now: datetime
    ) -> None:
        """Store what was not loaded, and forget what was, or is not there to be loaded."""
        failed = [
            failed_item(*_OURS, item, reason, now, is_skipped=True)
            for item, reason in self._failed.items()
        ]
        over = {
            (one.kind, one.item)
            for one in before
            if one.item not in self._failed and (one.item in looked_at or one.retry_at is not None)
        }
        if not failed and not over:
            return

        async def store(uow: UnitOfWork) -> None:
            for one in failed:
                await uow.quarantine.note(one)
            await uow.quarantine.remove(over, ItemConsumer.HISTORY)
            await uow.quarantine.prune(ItemConsumer.HISTORY, None)

        await self._in_turn(store)

    async def _forget(self, there: _Present, rules: _Rules, summary: LoadSummary) -> None:
        """Let go what is too old: from the database first, then from the storage."""
        for job, day in there.known:
            if not rules.keeps(job, day):
                await self._in_turn(partial(_forget, job, day))
                summary.forgotten += 1
        for job, days in there.stored.items():
            for day in days:
                if day <= rules.latest and not rules.keeps(job, day):
                    await asyncio.to_thread(self._store.remove, job, day)

    async def _clean(self, now: datetime) -> None:
        """Remove batches that do not count, in pieces."""
        before = now - self._abandoned_after
        for batch in await self._in_turn(
            lambda uow: uow.rollup_batches.abandoned(before), is_reading=True
        ):
            there_is_more = True
            while there_is_more:
                there_is_more = await self._in_turn(partial(_remove_some, batch, before))
                failpoints.hit("load.in_removal")

    async def _in_turn(
        self, work: Callable[[UnitOfWork], Awaitable[T]], *, is_reading: bool = False
    ) -> T:
        """Work in a transaction of its own, and let the database do other work for a while."""
        began = time.monotonic()
        async with self._database.unit_of_work(read_only=is_reading) as uow:
            found = await work(uow)
            if not is_reading:
                await uow.commit()
        took = time.monotonic() - began
        if self._share < 1:
            await asyncio.sleep(took * (1 / self._share - 1))
        return found

    async def _now(self) -> datetime:
        return datetime.now(UTC) if self._database.kind == "sqlite" else await self._database.now()


def _item(job: str, day: date) -> str:
    """Return how a result is called in the list of quarantined items."""
    return f"{job} {day}"


def _retried(items: Sequence[QuarantinedItem], there: _Present) -> set[Key]:
    """Return the stored results whose retry was requested."""
    requested = {one.item for one in items if one.retry_at is not None}
    stored = {(job, day) for job, days in there.stored.items() for day in days}
    return {key for key in stored if _item(*key) in requested} if requested else set()


async def _forget(job: str, day: date, uow: UnitOfWork) -> bool:
    return await uow.rollup_batches.forget(job, day)


async def _remove_some(batch: int, before: datetime, uow: UnitOfWork) -> bool:
    return await uow.rollup_batches.remove_some(batch, before, _BLOCKS_REMOVED_AT_ONCE)


def _together(blocks: Iterator[NewBlock]) -> Iterator[list[NewBlock]]:
    """Yield blocks that one transaction writes."""
    some: list[NewBlock] = []
    size = 0
    for block in blocks:
        if some and (len(some) >= _BLOCKS_AT_ONCE or size + len(block.body) > _CHARS_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(block)
        size += len(block.body)
    if some:
        yield some
