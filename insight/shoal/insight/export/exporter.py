"""Export the history, one step after the other; each counts as a whole, or not at all.

A step reads what has ended since the last position, writes its files, and then replaces the
position in the database, together with its manifest: that decides. The manifest is stored as an
object afterwards, and before anything follows, so readers of the storage miss none. Files of
a step that did not come so far are named by no manifest; they are removed a day later.

Then the files are read back. If they are what the manifest says, the database notes that, and the
purge may take their rows: see ``verifying``.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.core.errors import ShoalError
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, failed_item
from shoal.insight.export.columns import by_day, each_once
from shoal.insight.export.compaction import Compaction, joined
from shoal.insight.export.damage import (
    Damage,
    damages_of,
    gone_back,
    not_whole,
    to_look_at,
    with_damages,
)
from shoal.insight.export.extraction import PIECES, Gathered, Gatherer, Pieces
from shoal.insight.history.manifest import Contents, HistoryFile, Manifest
from shoal.insight.history.store import DamagedHistory, HistoryStore
from shoal.insight.history.tables import HistoryTable
from shoal.runtime import failpoints
from shoal.runtime.storage import ObjectMissing
from shoal.sql import Database, UnitOfWork
from shoal.sql.repositories.exports.finished_rows import Ends
from shoal.sql.repositories.exports.position import Exported, ExportPosition

FULL_EVERY = 50  # manifests: a reader reads so many at most
ROW_GROUP = 65_536  # rows: readers of single ones skip the others
TELL_AGAIN_S = 3_600.0  # after so long an export says that nothing has ended
KEEP_UNNAMED_S = 86_400.0  # files that no manifest names, or that were replaced


class ExportTaken(ShoalError):
    """Another exporter works on the same history."""


@dataclass
class ExportSummary:
    """What an export has done: rows by table, in how many steps, and rows it could not read."""

    rows: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    joined: int = 0  # files that became parts of others
    left_out: dict[str, int] = field(default_factory=dict)
    settled_until: datetime | None = None
    # Files that this export has found damaged or missing, and what the history lacks by now.
    damaged: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)


Clock = Callable[[Database], Awaitable[datetime]]


async def clock_of(database: Database) -> datetime:
    """Return the time by the clock of the database."""
    return datetime.now(UTC) if database.kind == "sqlite" else await database.now()


class Exporter:
    """Exports the history of a database to a store.

    ``share``: the part of the time in which it may have the database at work, above 0 to 1.
    ``keep_days``: the days that the history keeps; 0: all. ``anew``: an empty storage is meant to
    have a history from now on. ``forget_damaged``: give up files that are damaged or missing.
    ``pieces``: how much is read at a time.
    """

    def __init__(
        self,
        database: Database,
        store: HistoryStore,
        *,
        share: float = 1.0,
        keep_days: float = 0,
        anew: bool = False,
        forget_damaged: bool = False,
        pieces: Pieces = PIECES,
        clock: Clock = clock_of,
    ) -> None:
        self._database, self._store, self._clock = database, store, clock
        self._gatherer = Gatherer(database, share, pieces)
        self._keep_days = keep_days
        self._anew, self._forget_damaged = anew, forget_damaged
        self._checked = ""  # the file that was looked at again last

    async def run(self) -> ExportSummary:
        """Export all that has ended by now, then join small files.

        Raises ExportTaken, StorageError, DamagedHistory, SqlError: what counts so far stays, and
        the next export goes on from there.
        """
        summary = ExportSummary()
        last, contents = await self._begin()
        now = await self._clock(self._database)
        ends = await self._gatherer.ends()
        last, contents = await self._look_again(last, contents, ends, now, summary)
        last, contents = await self._retry(last, contents, now, summary)
        position = _begin_at(last.position, ends)
        while True:
            found = await self._gatherer.gather(position, ends)
            until = now if _is_at(found.position, ends) else None
            is_known = until is None or _is_recent(contents.settled_until, now)
            if found.position == position and is_known:
                break
            files = await asyncio.to_thread(self._write, last.sequence + 1, found)
            last, contents = await self._store_step(last, contents, found, files, until)
            _count(summary, files, found.left_out)
            position = found.position
            await self._verify(last, contents, files, now)
        last, contents = await self._forget_made_good(last, contents, now)
        summary.joined, last, contents = await self._compact(last, contents, now, ends)
        await self._note(last, now)
        summary.lacking = [str(one) for one in damages_of(_at(last))]
        summary.settled_until = contents.settled_until
        return summary

    async def _begin(self) -> tuple[Exported, Contents]:
        """Return the last export and what the store has, after they were made to agree."""
        async with self._database.unit_of_work(read_only=True) as uow:
            last = await uow.history_exports.last()
            self._checked = (await uow.verified_history.get()).checked
        # Before the first manifest is stored an exporter may have died.
        if last.sequence > 1 and not await asyncio.to_thread(self._store.last_sequence):
            if self._anew:
                return last, Contents()
            raise DamagedHistory(
                f"there is no history in {self._store.root}, although the database knows of "
                f"{last.sequence} exports: is the storage mounted, and history_url right? Where "
                "the history is to begin anew, run `shoal insight export --anew`"
            )
        if self._anew and last.sequence:
            raise DamagedHistory(
                f"{self._store.root} has a history: --anew is for an empty history_url"
            )
        if last.sequence:  # it may have died before it stored this
            await asyncio.to_thread(self._store.put_manifest, Manifest.from_json(last.manifest))
        contents = await asyncio.to_thread(self._store.contents)
        if contents.sequence > last.sequence:
            raise ExportTaken(
                f"the history at {self._store.root} has {contents.sequence} exports, the database "
                f"knows of {last.sequence}: another exporter is at work, or an older database was "
                "restored; in that case set history_url to an empty folder"
            )
        return last, contents

    # -- whether files are whole ---------------------------------------------------------------

    async def _look_again(
        self,
        last: Exported,
        contents: Contents,
        ends: Ends,
        now: datetime,
        summary: ExportSummary,
    ) -> tuple[Exported, Contents]:
        """Look at files that were not read back yet, at a few of the others, and at damaged ones.

        Rows of those that are not whole come once more.
        """
        if last.position is None:
            return last, contents
        if self._anew:
            found = Gathered(_start(ends))
            return await self._store_step(
                last, contents, found, [], None, is_verified=True, is_full=True
            )
        position = last.position
        async with self._database.unit_of_work(read_only=True) as uow:
            verified = await uow.verified_history.get()
        files = list(to_look_at(contents, verified.sequence, self._checked))
        bad = await asyncio.to_thread(not_whole, self._store, files)
        if old := [file.path for file in files if file.sequence <= verified.sequence]:
            self._checked = old[-1]
        damages = damages_of(position)
        away = await asyncio.to_thread(not_whole, self._store, [one.file for one in damages])
        whole = [one.file for one in damages if one.file not in away]
        if self._forget_damaged:
            damages = []
        still = [one for one in damages if one.file not in whole]
        if not bad and not whole and len(still) == len(position.damaged):
            await self._note(last, now)
            return last, contents
        made = _damages(bad, last, now)
        summary.damaged = [str(one) for one in made]
        return await self._go_back(last, contents, ends, bad, [*still, *made], whole)

    async def _go_back(
        self,
        last: Exported,
        contents: Contents,
        ends: Ends,
        bad: Sequence[HistoryFile],
        damages: Sequence[Damage],
        whole: Sequence[HistoryFile] = (),
    ) -> tuple[Exported, Contents]:
        """Let a step count that takes files out of the manifest, and notes what is verified now.

        Both at once: the purge must not go by what was verified before. ``whole``: files that
        were damaged, and come back.
        """
        position = with_damages(gone_back(_at(last), bad, ends), damages)
        paths = [file.path for file in bad]
        return await self._store_step(
            last, contents, Gathered(position), whole, None, paths, is_verified=True
        )

    async def _verify(
        self, last: Exported, contents: Contents, files: Sequence[HistoryFile], now: datetime
    ) -> None:
        """Read back what a step has written; then the purge may take it. Raises DamagedHistory."""
        if bad := await asyncio.to_thread(not_whole, self._store, files):
            raise DamagedHistory(
                f"{self._store.root}/{bad[0].path} is not what was written just now: the storage "
                "loses or changes files; its rows stay in the database and are exported again"
            )
        failpoints.hit("export.before_verified")
        await self._note(last, now)
        failpoints.hit("export.after_verified")

    async def _note(self, last: Exported, now: datetime) -> None:
        """Note in the database that all up to an export is in files that are whole."""
        async with self._database.unit_of_work() as uow:
            await self._advance(uow, last.sequence, _at(last), now)
            await uow.commit()

    async def _advance(
        self, uow: UnitOfWork, sequence: int, position: ExportPosition, now: datetime
    ) -> None:
        lacking = [str(one) for one in damages_of(position)]
        await uow.verified_history.advance(
            sequence,
            position,
            now,
            checked=self._checked,
            trouble=_lacks(self._store.root, lacking) if lacking else None,
        )

    async def _forget_made_good(
        self, last: Exported, contents: Contents, now: datetime
    ) -> tuple[Exported, Contents]:
        """Forget damaged files whose rows have all come again, or are too old by now."""
        position = _at(last)
        damages = damages_of(position)
        oldest = now.date() - timedelta(days=self._keep_days) if self._keep_days else date.min
        still = [
            one
            for one in damages
            if one.file.day >= oldest
            and not await asyncio.to_thread(one.is_made_good, self._store, contents)
        ]
        if len(still) == len(damages):
            return last, contents
        found = Gathered(with_damages(position, still))
        return await self._store_step(last, contents, found, [], None, is_verified=True)

    # -- steps ---------------------------------------------------------------------------------

    async def _retry(
        self, last: Exported, contents: Contents, now: datetime, summary: ExportSummary
    ) -> tuple[Exported, Contents]:
        """Export quarantined rows again whose retry was requested."""
        async with self._database.unit_of_work(read_only=True) as uow:
            wanted = await uow.quarantine.requested(ItemConsumer.HISTORY, [ItemKind.ROW])
        if last.position is None or not wanted:
            return last, contents
        found = await self._gatherer.gather_again(last.position, wanted)
        files = await asyncio.to_thread(self._write, last.sequence + 1, found)
        last, contents = await self._store_step(last, contents, found, files, None)
        _count(summary, files, found.left_out)
        await self._verify(last, contents, files, now)
        return last, contents

    def _write(self, sequence: int, found: Gathered) -> list[HistoryFile]:
        """Write the files of a step: one for each day of a table."""
        files = []
        for table, pieces in found.tables.items():
            # An attempt is read for each piece of events that has one of it.
            rows = each_once(table, pa.concat_tables(pieces))
            for day, part in by_day(table, rows):
                files.append(self._put(sequence, table, day, part))
        return files

    def _put(
        self,
        sequence: int,
        table: HistoryTable,
        day: date,
        rows: pa.Table,
        since: int | None = None,
    ) -> HistoryFile:
        content = io.BytesIO()
        pq.write_table(
            rows, content, compression="zstd", coerce_timestamps="us", row_group_size=ROW_GROUP
        )
        written, count = content.getvalue(), rows.num_rows
        return self._store.put(sequence, table.name, day, written, count, since, _ids(rows))

    async def _store_step(
        self,
        last: Exported,
        contents: Contents,
        found: Gathered,
        files: Sequence[HistoryFile],
        until: datetime | None,
        replaced: Sequence[str] = (),
        *,
        is_verified: bool = False,
        is_full: bool = False,
    ) -> tuple[Exported, Contents]:
        """Let a step count. Raises ExportTaken if another exporter's has counted meanwhile.

        ``is_verified``: its files are known to be whole, and so are all before.
        """
        sequence = last.sequence + 1
        now = await self._clock(self._database)
        manifest = Manifest(sequence, files, until, tuple(replaced), left_out=found.left_out)
        after = contents.after([manifest])
        if is_full or sequence % FULL_EVERY == 0:
            manifest = Manifest(
                sequence,
                list(after.files.values()),
                after.settled_until,
                is_full=True,
                left_out=found.left_out,
            )
        stored = manifest.to_json()
        failpoints.hit("export.before_commit")
        async with self._database.unit_of_work() as uow:
            if not await uow.history_exports.replace(last, found.position, stored):
                raise ExportTaken(
                    f"another exporter has made export {sequence} of the history at "
                    f"{self._store.root}; nothing is lost, the next one goes on behind it"
                )
            if is_verified:
                await self._advance(uow, sequence, found.position, now)
            await _quarantine(uow, found, now)
            await uow.commit()
        failpoints.hit("export.after_commit")
        await asyncio.to_thread(self._store.put_manifest, manifest)
        if manifest.is_full:
            failpoints.hit("export.before_removal")
            await asyncio.to_thread(self._store.forget_before, sequence)
        return Exported(sequence, found.position, stored), after

    async def _compact(
        self, last: Exported, contents: Contents, now: datetime, ends: Ends
    ) -> tuple[int, Exported, Contents]:
        """Join the small files of days that are over, drop days that are too old, and clean up."""
        assert last.position is not None
        position, joins = last.position, 0
        for work in Compaction.due(contents, now.date(), self._keep_days):
            files = []
            if not work.drops:
                try:
                    rows = await asyncio.to_thread(joined, self._store, work)
                except (DamagedHistory, ObjectMissing):
                    bad = await asyncio.to_thread(not_whole, self._store, work.files)
                    damages = [*damages_of(position), *_damages(bad, last, now)]
                    await self._go_back(last, contents, ends, bad, damages)
                    raise  # the next export brings their rows
                since = min(file.since for file in work.files)
                file = await asyncio.to_thread(
                    self._put, last.sequence + 1, work.table, work.day, rows, since
                )
                # Before those that it replaces go: they are whole, and so must this one be.
                if await asyncio.to_thread(not_whole, self._store, [file]):
                    raise DamagedHistory(
                        f"{self._store.root}/{file.path} is not what was written just now: the "
                        "storage loses or changes files; those that it was to replace stay"
                    )
                files.append(file)
            replaced = [file.path for file in work.files]
            retired = {**position.retired, **dict.fromkeys(replaced, now.timestamp())}
            position = replace(position, retired=retired)
            found = Gathered(position)
            last, contents = await self._store_step(
                last, contents, found, files, None, replaced, is_verified=True
            )
            joins += len(replaced)
        if position.swept != now.date().isoformat():
            last, contents = await self._sweep(last, contents, position, now)
        return joins, last, contents

    async def _sweep(
        self, last: Exported, contents: Contents, position: ExportPosition, now: datetime
    ) -> tuple[Exported, Contents]:
        """Remove, once a day, the files that no reader needs, of all days there are."""
        since = now.timestamp() - KEEP_UNNAMED_S
        retired = {path: at for path, at in position.retired.items() if at > since}
        keep = {*contents.files, *retired, *position.damaged}
        for table, day in await asyncio.to_thread(self._store.folders):
            await asyncio.to_thread(self._store.sweep, table, day, keep, KEEP_UNNAMED_S)
        position = replace(position, retired=retired, swept=now.date().isoformat())
        return await self._store_step(
            last, contents, Gathered(position), [], None, is_verified=True
        )


def _is_recent(until: datetime | None, now: datetime) -> bool:
    """Whether readers know well enough up to when all is there, also while nothing ends."""
    return until is not None and now - until < timedelta(seconds=TELL_AGAIN_S)


def _ids(rows: pa.Table) -> tuple[int, int] | None:
    """Return the lowest and the highest instance of some rows; None: they are about none."""
    if "attempt_id" not in rows.column_names and "logical_time" not in rows.column_names:
        return None
    found = pc.min_max(rows["instance_id"])
    return found["min"].as_py(), found["max"].as_py()


def _at(last: Exported) -> ExportPosition:
    assert last.position is not None, "an export has a position"
    return last.position


def _damages(files: Sequence[HistoryFile], last: Exported, now: datetime) -> list[Damage]:
    """Return that files were found damaged or missing just now."""
    return [Damage(file, now, last.sequence + 1) for file in files]


def _start(ends: Ends) -> ExportPosition:
    return ExportPosition(event=ends.event, instances_end=ends.instance)


def _lacks(root: str, files: Sequence[str]) -> str:
    return (
        f"the history in {root} lacks {'; '.join(files)[:1000]}: damaged or missing. What of them "
        "was in the database was exported again. Restore the files from a copy, they count as "
        "soon as they are whole; or give them up: `shoal insight export --forget-damaged`"
    )


def _begin_at(position: ExportPosition | None, ends: Ends) -> ExportPosition:
    """Return where an export goes on."""
    if position is None:
        return _start(ends)
    if ends.first_event > position.event + 1:
        # Events may have been purged before they were read, as when there was no export for a
        # month: all instances are looked at again. What comes twice by that is one row to readers.
        return replace(position, event=ends.event, instances=0, instances_end=ends.instance)
    return position


def _is_at(position: ExportPosition, ends: Ends) -> bool:
    """Whether all up to these ends was exported."""
    return (
        position.instances >= position.instances_end
        and position.event >= ends.event
        and position.command >= ends.command
        and position.takeover >= ends.takeover
    )


async def _quarantine(uow: UnitOfWork, found: Gathered, now: datetime) -> None:
    """Store which rows could not be read, and forget those that could be this time."""
    items = [
        failed_item(
            ItemConsumer.HISTORY,
            ItemKind.ROW,
            f"{table} {row.key}",
            row.reason,
            now,
            project=row.project,
            workflow=row.workflow,
            is_skipped=True,
        )
        for table, rows in found.unreadable.items()
        for row in rows
    ]
    for one in items:
        await uow.quarantine.note(one)
    known = await uow.quarantine.keys(ItemConsumer.HISTORY, [ItemKind.ROW])
    if known:
        works = {one.item for one in found.retried} | found.exported({item for _, item in known})
        works -= {one.item for one in items}
        over = [(kind, item) for kind, item in known if item in works]
        await uow.quarantine.remove(over, ItemConsumer.HISTORY)
    if items:
        await uow.quarantine.prune(ItemConsumer.HISTORY, None)


def _count(
    summary: ExportSummary, files: Sequence[HistoryFile], left_out: Mapping[str, int]
) -> None:
    summary.steps += 1
    for file in files:
        summary.rows[file.table] = summary.rows.get(file.table, 0) + file.rows
    for table, count in left_out.items():
        summary.left_out[table] = summary.left_out.get(table, 0) + count
