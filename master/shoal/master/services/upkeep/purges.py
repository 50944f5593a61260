"""Purge history: by the rules, all the time or at times of day, gently, and on request.

Each master purges what belongs to its partitions; events, which belong to none, and finished
requests are the business of the owner of partition 0. A batch is one fenced transaction, so a
master that lost a partition deletes nothing of it; the next owner goes on from the database as it
is. After each batch comes a pause, many times as long as the batch took.

With an exported history what it has not got for certain stays: each deletion compares its rows with
the ids up to which the files were verified (``VerifiedHistory``).
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.interval import IntervalTrigger

from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.retention import Hours, NewPurge, Purge, Retention, RetentionLimits
from shoal.core.timing.cron.trigger import ShoalCronTrigger, is_due
from shoal.master.engine.listeners import Listener
from shoal.master.errors import PartitionNotOwned
from shoal.master.services.service import MasterContext
from shoal.runtime import failpoints
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound
from shoal.sql.isolation import is_outage
from shoal.sql.repositories.exports.verified_history import Verified
from shoal.sql.repositories.upkeep.expired_rows import (
    CommandTies,
    Deleted,
    Expired,
    ExpiryScope,
    ExpiryWindow,
    without_looked_for,
)
from shoal.sql.repositories.upkeep.purges import PurgePart

log = structlog.get_logger()

HOME = 0  # the partition whose owner purges what belongs to none, and asks for purges by the clock
REQUESTED_BY = "schedule"  # of the latter

# The jobs, by their names in logs.
_REQUESTS, _RULES, _CLOCK = "purge requests", "purge", "purge by the clock"
_LOOK_S = 60.0  # for requests, should a notification be lost; for the hours and times of purges

_WINDOW = 500  # rows read with one query
_ROWS_AT_ONCE = 1_000  # of events, of commands; and of attempts, unless one instance has more
_LONGEST_PAUSE_S = 30.0  # however long a batch took: the database may have stood still
# A request is a few rows, and no rule of its own: long enough to see who has purged what. None
# takes as long.
_KEEP_REQUESTS = timedelta(days=30)
_MOST_COUNTED = 1_000_000  # events, in a rehearsal
_TELL_AGAIN_S = 3_600.0  # that the export keeps rows here
# A request goes round again while its rows wait for rows of other owners to go first.
_ROUNDS_IN_VAIN = 3

Parts = dict[int, PurgePart]
Read = Callable[[UnitOfWork, ExpiryScope, datetime, int, Verified | None], Awaitable[ExpiryWindow]]
Delete = Callable[[UnitOfWork, Sequence[int], datetime, Verified | None], Awaitable[Deleted]]


@dataclass
class PurgeWalk:
    """One walk through the history of some partitions."""

    limits: RetentionLimits
    epochs: Mapping[int, int]
    workflows: set[int] | None = None  # None: all
    request: Purge | None = None
    kept: dict[int, set[int]] = field(default_factory=dict)  # by workflow
    gone: Counter[str] = field(default_factory=Counter)
    left: int = 0  # rows that wait for others to go
    # Rows that wait for the export, by partition and kind, and what there is of that.
    held: Counter[tuple[int, str]] = field(default_factory=Counter)
    verified: Verified | None = None

    @property
    def scope(self) -> ExpiryScope:
        return ExpiryScope(self.epochs.keys(), self.workflows)

    @property
    def is_rehearsal(self) -> bool:
        return self.request is not None and self.request.asked.is_rehearsal


class Purger(Listener):
    """Purges for one master, in periodic jobs of which one at a time works."""

    def __init__(
        self,
        context: MasterContext,
        retention: Retention,
        hours: Hours,
        trigger: ShoalCronTrigger | None = None,
        *,
        is_exported: bool = False,
    ) -> None:
        """``trigger``: at what times to purge; None: every ``purge_interval_s`` in ``hours``.

        ``is_exported``: there is an exported history; what it lacks stays.
        """
        settings = context.settings
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._partitions, self._jobs = context.partitions, context.jobs
        self._working = asyncio.Lock()
        self._is_notified = False  # of requests, perhaps: they are looked for soon
        self._look_again_s = settings.scan_interval_s
        self._looked_s = -math.inf  # for requests, the last time; monotonic
        self._retention, self._hours, self._trigger = retention, hours, trigger
        self._asked_at: datetime | None = None  # the last purge by the clock
        self._asked_in: int | None = None  # HOME's epoch in which that was read
        self._interval_s = settings.purge_interval_s
        self._due_s = time.monotonic() + self._interval_s  # of the next purge by the rules
        self._batch, self._share = settings.purge_batch, settings.purge_share
        self._rounds: dict[int, int] = {}  # of requests: those in vain so far
        self._is_exported = is_exported
        self._tell_held_s = 0.0  # not before, by the monotonic clock

        self._jobs.every(_REQUESTS, self.serve_requests, _LOOK_S)
        if trigger is None:
            self._jobs.every(_RULES, self.purge_in_hours, self._interval_s, self._interval_s)
        else:
            # And every minute: after an error, and when the clock was set back before the last
            # purge, nothing else would come before the next fire time.
            each_minute = IntervalTrigger(seconds=_LOOK_S, timezone=UTC)
            self._jobs.at(_CLOCK, self.ask_when_due, OrTrigger([trigger, each_minute]))
            self._jobs.soon(_CLOCK, self._interval_s)

    def notify(self, partition: int) -> None:
        """A request may have come, or partition 0 with what its former owner knew."""
        if not self._is_notified:
            self._is_notified = True
            # Most notifications are about commands: of many that come together one look is enough.
            self._look_in(self._looked_s + self._look_again_s - time.monotonic())
        if partition == HOME and self._engine.epochs.get(HOME) != self._asked_in:
            self._jobs.soon(_CLOCK)

    def _look_in(self, delay_s: float) -> None:
        self._jobs.soon(_REQUESTS, max(0.0, delay_s))

    # -- by the clock --------------------------------------------------------------------------

    async def ask_when_due(self) -> None:
        """Store a request if a fire time has come, and HOME is ours. Raises Fenced.

        The row says when that was, so neither a new owner nor a restart repeats it or forgets it.
        Earlier ones are superseded, finished or not.
        """
        epoch = self._engine.epochs.get(HOME)
        if epoch is None or self._trigger is None:
            return
        if (early_s := self._due_s - time.monotonic()) > 0:
            self._jobs.soon(_CLOCK, early_s)
            return
        if epoch != self._asked_in:
            async with self._database.unit_of_work(read_only=True) as uow:
                self._asked_at = await uow.purges.last_asked_at(REQUESTED_BY)
            self._asked_in = epoch
        now = self._clock()
        if not is_due(self._trigger, self._asked_at, now):
            return
        self._due_s = time.monotonic() + self._interval_s  # however the clock jumps
        self._asked_in = None  # not known before the commit is
        async with self._database.unit_of_work() as uow:
            await uow.fence({HOME: epoch})
            await uow.purges.forget(now - _KEEP_REQUESTS, _WINDOW)
            await uow.purges.withdraw(REQUESTED_BY)
            await uow.purges.add(NewPurge(requested_by=REQUESTED_BY), self._partitions, now)
            await uow.commit()
        self._asked_at, self._asked_in = now, epoch
        self._notify_owners(range(self._partitions))

    # -- by the rules ------------------------------------------------------------------------

    async def purge_in_hours(self) -> None:
        """Purge by the rules if it is the time for it; otherwise look again in a minute."""
        async with self._working:
            # The hours are checked after the wait, which a large request may make a long one. The
            # interval counts from here too: a job that became due in the wait purges only once.
            self._jobs.next_in(_RULES, self._interval_s)
            if self._hours.contains(self._clock()):
                await self.purge()
            else:
                self._jobs.soon(_RULES, _LOOK_S)

    async def purge(self) -> Counter[str]:
        """Purge what the rules say; return how many rows of each kind have gone."""
        job = PurgeWalk(self._retention.limits(self._clock()), dict(self._engine.epochs))
        await self._walk(job)
        ours = [p for p, epoch in job.epochs.items() if self._engine.epoch_of(p) == epoch]
        if ours:
            async with self._database.unit_of_work() as uow:
                await self._fence(uow, job, ours)
                await uow.backlogs.note_purge(ours, self._clock())
                if HOME in ours:
                    await uow.purges.forget(self._clock() - _KEEP_REQUESTS, _WINDOW)
                await uow.commit()
        if job.gone:
            log.info("history purged", **job.gone)
        self._tell_held(job)
        return job.gone

    def _tell_held(self, job: PurgeWalk) -> None:
        """Log, once an hour, that rows would go but for the export."""
        if not job.held or time.monotonic() < self._tell_held_s:
            return
        self._tell_held_s = time.monotonic() + _TELL_AGAIN_S
        verified = job.verified or Verified()
        log.warning(
            "the purge waits for the export of the history: nothing is lost, the database grows; "
            "`shoal insight export` says what is wrong",
            rows=job.held.total(),
            exported_at=verified.verified_at and verified.verified_at.isoformat(),
            why=verified.trouble,
        )

    # -- on request ----------------------------------------------------------------------------

    async def serve_requests(self) -> None:
        """Carry out requests, as far as they are about our partitions."""
        async with self._working:
            self._is_notified, self._looked_s = False, time.monotonic()
            epochs = dict(self._engine.epochs)
            if not epochs:
                return
            async with self._database.unit_of_work(read_only=True) as uow:
                unfinished = await uow.purges.unfinished(epochs)
            self._rounds = {one: n for one, n in self._rounds.items() if one in unfinished}
            try:
                for purge_id, partitions in unfinished.items():
                    await self._serve_alone(purge_id, {p: epochs[p] for p in partitions})
            finally:
                if unfinished:  # what was fenced, or waits for rows of other owners, comes again
                    self._look_in(self._look_again_s)

    async def _serve_alone(self, purge_id: int, epochs: Mapping[int, int]) -> None:
        """Carry out a request; one that cannot be is quarantined, and holds up no other."""
        quarantine = self._engine.quarantine
        if quarantine.holds(ItemKind.PURGE, purge_id):
            return
        try:
            await self._serve(purge_id, epochs)
        except NotFound:  # purged itself meanwhile
            pass
        except Exception as error:
            if is_outage(error) or isinstance(error, PartitionNotOwned):
                raise
            quarantine.put(ItemKind.PURGE, purge_id, min(epochs), error)
            return
        quarantine.passed(ItemKind.PURGE, purge_id)

    async def _serve(self, purge_id: int, epochs: Mapping[int, int]) -> None:
        async with self._database.unit_of_work(read_only=True) as uow:
            request = await uow.purges.get(purge_id)
            workflows = await uow.purges.workflows(request.asked)
        limits = self._retention.limits(self._clock(), request.asked.before)
        job = PurgeWalk(limits, epochs, workflows, request)
        await self._walk(job)
        if job.left and not job.is_rehearsal:
            rounds = 0 if job.gone else self._rounds.get(purge_id, 0) + 1
            self._rounds[purge_id] = rounds
            if rounds < _ROUNDS_IN_VAIN:
                return
        async with self._database.unit_of_work() as uow:
            await self._fence(uow, job, epochs)
            held: Counter[int] = Counter()
            for (partition, _), rows in job.held.items():
                held[partition] += rows
            await uow.purges.finish(purge_id, epochs, self._clock(), held)
            if workflows is None and not job.is_rehearsal and request.asked.before is None:
                await uow.backlogs.note_purge(list(epochs), self._clock())
            await uow.commit()
        self._tell_held(job)
        log.info("purge carried out", purge=purge_id, partitions=len(epochs), **job.gone)

    # -- a walk ------------------------------------------------------------------------------

    async def _walk(self, job: PurgeWalk) -> None:
        """Purge backfills before their instances, instances before their commands."""
        limits = job.limits
        if limits.backfills is not None:
            await self._each(
                job,
                "backfills",
                limits.backfills,
                lambda uow, scope, before, after, _: uow.expired.backfills(
                    scope, before, after, _WINDOW
                ),
                lambda uow, ids, before, _: uow.expired.delete_backfills(ids, before),
            )
        if limits.instances is not None:
            await self._each(
                job,
                "instances",
                limits.instances,
                lambda uow, scope, before, after, verified: uow.expired.instances(
                    scope, before, after, _WINDOW, verified
                ),
                lambda uow, *what: uow.expired.delete_instances(*what),
            )
        if limits.commands is not None:
            await self._each(
                job,
                "commands",
                limits.commands,
                lambda uow, scope, before, after, verified: uow.expired.commands(
                    scope, before, after, _WINDOW, verified, is_rehearsal=job.is_rehearsal
                ),
                lambda uow, *what: uow.expired.delete_commands(*what),
            )
        if limits.events is not None and job.workflows is None and HOME in job.epochs:
            await self._events(job, limits.events)
        if job.workflows is None and HOME in job.epochs and not job.is_rehearsal:
            await self._takeovers(job)

    async def _each(
        self, job: PurgeWalk, kind: str, before: datetime, read: Read, go: Delete
    ) -> None:
        """Read one table, window by window, and delete what may go."""
        after: int | None = 0
        while after is not None:
            began = time.monotonic()
            async with self._database.unit_of_work(read_only=True) as uow:
                verified = await self._verified(uow, job)
                window = await read(uow, job.scope, before, after, verified)
                batches = await self._batches(uow, job, kind, before, window.expired)
                if job.is_rehearsal:
                    parts, batches = await _rehearsed(uow, job, kind, batches), []
            after = window.next
            if job.is_rehearsal:
                await self._note(job, parts)
            await self._pause(began)
            for batch in batches:
                await self._delete(job, kind, before, batch, go)

    async def _batches(
        self,
        uow: UnitOfWork,
        job: PurgeWalk,
        kind: str,
        before: datetime,
        expired: Sequence[Expired],
    ) -> list[list[Expired]]:
        """Return what is to go in one transaction each."""
        if not expired:
            return []
        if kind != "instances":
            if kind == "commands" and job.is_rehearsal:
                expired = await self._untied(uow, job, expired)
            going = _exported(job, kind, expired)
            return [going[i : i + self._batch] for i in range(0, len(going), self._batch)]
        going = _exported(job, kind, await self._unneeded(uow, job, expired))
        going = await self._without_what_they_belong_to(uow, job, going)
        attempts = await uow.expired.attempts_of([one.id for one in going])
        batches: list[list[Expired]] = []
        room = 0
        for one in going:
            room -= attempts.get(one.id, 0)
            if not batches or room < 0 or len(batches[-1]) >= self._batch:
                batches.append([])
                room = _ROWS_AT_ONCE - attempts.get(one.id, 0)
            batches[-1].append(one)
        return batches

    # What goes is decided here, for a purge and for its rehearsal alike: the only difference is
    # that in a rehearsal what goes first is still there.

    async def _unneeded(
        self, uow: UnitOfWork, job: PurgeWalk, expired: Sequence[Expired]
    ) -> list[Expired]:
        """Leave out the newest instances of each workflow, and what waiting tasks may need."""
        before = job.limits.instances
        assert before is not None, "instances are purged"
        workflows = {one.workflow_id for one in expired}
        for workflow_id in workflows - job.kept.keys():
            newest = self._retention.newest
            job.kept[workflow_id] = await uow.expired.kept(workflow_id, newest)
        since = await uow.expired.looked_for_since(workflows)
        going = without_looked_for(expired, since, before, self._clock())
        return [one for one in going if one.id not in job.kept[one.workflow_id]]

    async def _without_what_they_belong_to(
        self, uow: UnitOfWork, job: PurgeWalk, expired: Sequence[Expired]
    ) -> list[Expired]:
        """Leave out instances whose parent or backfill is there and stays."""
        parents = {one.parent for one in expired if one.parent is not None}
        backfills = {one.backfill for one in expired if one.backfill is not None}
        going_parents = await self._going_instances(uow, job, parents)
        going_backfills = await self._going_backfills(uow, job, backfills)
        return [
            one
            for one in expired
            if (one.parent is None or one.parent in going_parents)
            and (one.backfill is None or one.backfill in going_backfills)
        ]

    async def _going_instances(
        self, uow: UnitOfWork, job: PurgeWalk, ids: Collection[int]
    ) -> set[int]:
        """Return which of these instances this purge removes, in all partitions."""
        if not ids or job.limits.instances is None:
            return set()
        verified = await self._verified(uow, job)
        found = await uow.expired.instances_among(
            ids, ExpiryScope(None, job.workflows), job.limits.instances, verified
        )
        found = [one for one in await self._unneeded(uow, job, found) if one.is_exported]
        return {one.id for one in await self._without_what_they_belong_to(uow, job, found)}

    async def _going_backfills(
        self, uow: UnitOfWork, job: PurgeWalk, ids: Collection[int]
    ) -> set[int]:
        """Return which of these backfills this purge removes, in all partitions."""
        if not ids or job.limits.backfills is None:
            return set()
        scope = ExpiryScope(None, job.workflows)
        found = await uow.expired.backfills_among(ids, scope, job.limits.backfills)
        return {one.id for one in found}

    async def _untied(
        self, uow: UnitOfWork, job: PurgeWalk, commands: Sequence[Expired]
    ) -> list[Expired]:
        """Leave out commands that have made, or are about, what stays."""
        ties = await uow.expired.ties_of([one.id for one in commands])
        instances = {each for tie in ties.values() for each in tie.instances}
        backfills = {each for tie in ties.values() for each in tie.backfills}
        gone = await self._going_instances(uow, job, instances)
        gone_backfills = await self._going_backfills(uow, job, backfills)
        none = CommandTies(set(), set())
        return [
            one
            for one in commands
            if (tie := ties.get(one.id, none)).instances <= gone and tie.backfills <= gone_backfills
        ]

    async def _delete(
        self, job: PurgeWalk, kind: str, before: datetime, batch: Sequence[Expired], go: Delete
    ) -> None:
        began = time.monotonic()
        async with self._database.unit_of_work() as uow:
            await self._fence(uow, job, {one.partition for one in batch})
            verified = await self._verified(uow, job)
            deleted = await go(uow, [one.id for one in batch], before, verified)
            parts = _parts(kind, [one for one in batch if one.id in deleted.partitions])
            if parts:  # what belongs to the rows is counted where the first of them is
                first = parts[min(parts)]
                first.add(attempts=deleted.attempts, events=deleted.events)
            await self._store(uow, job, parts)
        job.left += len(batch) - len(deleted.partitions)
        await self._pause(began)

    async def _events(self, job: PurgeWalk, before: datetime) -> None:
        async with self._database.unit_of_work(read_only=True) as uow:
            verified = await self._verified(uow, job)
            until = None if verified is None else verified.event
            if job.request is not None and until is not None:
                held = await uow.events.count_before(before, _MOST_COUNTED, after=until)
                job.held[HOME, "events"] += held
            if job.is_rehearsal:
                found = await uow.events.count_before(before, _MOST_COUNTED, until)
        if job.is_rehearsal:
            await self._note(job, {HOME: PurgePart({"events": found})})
            return
        deleted = _ROWS_AT_ONCE
        while deleted == _ROWS_AT_ONCE:
            began = time.monotonic()
            async with self._database.unit_of_work() as uow:
                await self._fence(uow, job, [HOME])
                deleted = await uow.events.prune(before, _ROWS_AT_ONCE, until)
                await self._store(uow, job, {HOME: PurgePart({"events": deleted})})
            await self._pause(began)

    async def _takeovers(self, job: PurgeWalk) -> None:
        """Let the oldest takeovers go."""
        deleted = _ROWS_AT_ONCE
        while deleted == _ROWS_AT_ONCE:
            began = time.monotonic()
            async with self._database.unit_of_work() as uow:
                await self._fence(uow, job, [HOME])
                verified = await self._verified(uow, job)
                until = None if verified is None else verified.takeover
                deleted = await uow.partitions.forget_takeovers(_ROWS_AT_ONCE, until)
                await uow.commit()
            await self._pause(began)

    async def _verified(self, uow: UnitOfWork, job: PurgeWalk) -> Verified | None:
        """Return what the exported history has for certain; None: it is not waited for."""
        is_forced = job.request is not None and job.request.asked.even_if_not_exported
        if not self._is_exported or is_forced:
            return None
        job.verified = await uow.verified_history.get()
        return job.verified

    # -- transactions ------------------------------------------------------------------------

    async def _fence(self, uow: UnitOfWork, job: PurgeWalk, partitions: Iterable[int]) -> None:
        """Only the present owners delete. Raises Fenced, PartitionNotOwned."""
        epochs = {partition: job.epochs[partition] for partition in partitions}
        for partition, epoch in epochs.items():
            if self._engine.epoch_of(partition) != epoch:
                raise PartitionNotOwned(partition)
        await uow.fence(epochs)

    async def _store(self, uow: UnitOfWork, job: PurgeWalk, parts: Parts) -> None:
        """Commit a deletion, and with it how far the request has come."""
        if job.request is not None:
            await uow.purges.note(job.request.id, parts)
        failpoints.hit("purge.before_commit")
        await uow.commit()
        failpoints.hit("purge.after_commit")
        for part in parts.values():
            job.gone.update({kind: n for kind, n in part.counts.items() if n})

    async def _note(self, job: PurgeWalk, parts: Parts) -> None:
        """Store what a rehearsal has counted."""
        if parts:
            async with self._database.unit_of_work() as uow:
                await self._fence(uow, job, parts)
                await self._store(uow, job, parts)

    async def _pause(self, began_s: float) -> None:
        took_s = time.monotonic() - began_s
        pause_s = took_s * (1 / self._share - 1)
        await asyncio.sleep(min(pause_s, _LONGEST_PAUSE_S))


async def _rehearsed(
    uow: UnitOfWork, job: PurgeWalk, kind: str, batches: Sequence[Sequence[Expired]]
) -> Parts:
    """Return what would go, by partition."""
    parts = _parts(kind, [one for batch in batches for one in batch])
    if kind == "instances":
        ids = {one.id: one.partition for batch in batches for one in batch}
        for attempt_of, number in (await uow.expired.attempts_of(ids)).items():
            parts[ids[attempt_of]].add(attempts=number)
        # Older ones are counted with the events that go by their age.
        since = job.limits.events if job.workflows is None else None
        for event_of, number in (await uow.expired.events_of(ids, since)).items():
            parts[ids[event_of]].add(events=number)
    return parts


def _exported(job: PurgeWalk, kind: str, expired: Sequence[Expired]) -> list[Expired]:
    """Return what may go as far as the export is concerned; count the rest."""
    for one in expired:
        if not one.is_exported:
            job.held[one.partition, kind] += 1
    return [one for one in expired if one.is_exported]


def _parts(kind: str, rows: Sequence[Expired]) -> Parts:
    parts: Parts = {}
    for row in rows:
        part = parts.setdefault(row.partition, PurgePart())
        part.add(row.since if kind == "instances" else None, **{kind: 1})
    return parts
