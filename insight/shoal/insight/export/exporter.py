"""Export the history, one step after the other; each counts as a whole, or not at all.

A step reads what has ended since the last position, writes its files, and then replaces the
position in the database, together with its manifest: that decides. The manifest is stored as an
object afterwards, and before anything follows, so readers of the storage miss none. Files of
a step that did not come so far are named by no manifest; they are removed a day later.
"""

import asyncio
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.core.errors import ShoalError
from shoal.insight.export.columns import by_day
from shoal.insight.export.compaction import Compaction, joined
from shoal.insight.export.gathering import Gathered, Gatherer
from shoal.insight.history.manifest import Contents, HistoryFile, Manifest
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import HistoryTable
from shoal.runtime import failpoints
from shoal.sql import Database
from shoal.sql.repositories.exporting.finished import Ends
from shoal.sql.repositories.exporting.position import Exported, Position

MOST_ROWS = 200_000  # of a step: some 100 MB while it is written
FULL_EVERY = 50  # manifests: a reader reads so many at most
TELL_AGAIN_S = 3_600.0  # after so long an export says that nothing has ended
KEEP_UNNAMED_S = 86_400.0  # files that no manifest names, or that were replaced


class ExportTaken(ShoalError):
    """Another exporter works on the same history."""


@dataclass
class Summary:
    """What an export has done: rows by table, in how many steps, and rows it could not read."""

    rows: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    joined: int = 0  # files that became parts of others
    left_out: dict[str, int] = field(default_factory=dict)
    settled_until: datetime | None = None


class Exporter:
    """Exports the history of a database to a store.

    ``share``: the part of the time in which it may have the database at work, above 0 to 1.
    ``keep_days``: the days that the history keeps; 0: all.
    """

    def __init__(
        self,
        database: Database,
        store: HistoryStore,
        *,
        share: float = 1.0,
        keep_days: float = 0,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._database, self._store = database, store
        self._gatherer = Gatherer(database, share)
        self._keep_days, self._most_rows = keep_days, most_rows

    async def run(self) -> Summary:
        """Export all that has ended by now, then join small files.

        Raises ExportTaken, StorageError, DamagedHistory, SqlError: what counts so far stays, and
        the next export goes on from there.
        """
        summary = Summary()
        last, contents = await self._begin()
        now = await self._now()
        ends = await self._gatherer.ends()
        position = _begin_at(last.position, ends)
        while True:
            found = await self._gatherer.gather(position, ends, self._most_rows)
            until = now if _is_at(found.position, ends) else None
            is_known = until is None or _is_recent(contents.settled_until, now)
            if found.position == position and is_known:
                break
            files = await asyncio.to_thread(self._write, last.sequence + 1, found)
            last, contents = await self._store_step(last, contents, found, files, until)
            _count(summary, files, found.left_out)
            position = found.position
        summary.joined = await self._compact(last, contents, now)
        summary.settled_until = contents.settled_until
        return summary

    async def _begin(self) -> tuple[Exported, Contents]:
        """Return the last export and what the store has, after they were made to agree."""
        async with self._database.unit_of_work(read_only=True) as uow:
            last = await uow.history_exports.last()
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

    def _write(self, sequence: int, found: Gathered) -> list[HistoryFile]:
        """Write the files of a step: one for each day of a table."""
        files = []
        for table, pieces in found.tables.items():
            rows = pa.concat_tables(pieces)
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
        pq.write_table(rows, content, compression="zstd", coerce_timestamps="us")
        written, count = content.getvalue(), rows.num_rows
        return self._store.put(sequence, table.name, day, written, count, since)

    async def _store_step(
        self,
        last: Exported,
        contents: Contents,
        found: Gathered,
        files: Sequence[HistoryFile],
        until: datetime | None,
        replaced: Sequence[str] = (),
    ) -> tuple[Exported, Contents]:
        """Let a step count. Raises ExportTaken if another exporter's has counted meanwhile."""
        sequence = last.sequence + 1
        manifest = Manifest(sequence, files, until, tuple(replaced), left_out=found.left_out)
        after = contents.after([manifest])
        if sequence % FULL_EVERY == 0:
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
            await uow.commit()
        failpoints.hit("export.after_commit")
        await asyncio.to_thread(self._store.put_manifest, manifest)
        if manifest.is_full:
            failpoints.hit("export.before_removal")
            await asyncio.to_thread(self._store.forget_before, sequence)
        return Exported(sequence, found.position, stored), after

    async def _compact(self, last: Exported, contents: Contents, now: datetime) -> int:
        """Join the small files of days that are over, drop days that are too old, and clean up."""
        assert last.position is not None
        position, joins = last.position, 0
        for work in Compaction.due(contents, now.date(), self._keep_days):
            files = []
            if not work.drops:
                rows = await asyncio.to_thread(joined, self._store, work)
                since = min(file.since for file in work.files)
                file = await asyncio.to_thread(
                    self._put, last.sequence + 1, work.table, work.day, rows, since
                )
                files.append(file)
            replaced = [file.path for file in work.files]
            retired = {**position.retired, **dict.fromkeys(replaced, now.timestamp())}
            position = replace(position, retired=retired)
            found = Gathered(position)
            last, contents = await self._store_step(last, contents, found, files, None, replaced)
            joins += len(replaced)
        if position.swept != now.date().isoformat():
            await self._sweep(last, contents, position, now)
        return joins

    async def _sweep(
        self, last: Exported, contents: Contents, position: Position, now: datetime
    ) -> None:
        """Remove, once a day, the files that nobody reads any more, of all days there are."""
        since = now.timestamp() - KEEP_UNNAMED_S
        retired = {path: at for path, at in position.retired.items() if at > since}
        keep = {*contents.files, *retired}
        for table, day in await asyncio.to_thread(self._store.folders):
            await asyncio.to_thread(self._store.sweep, table, day, keep, KEEP_UNNAMED_S)
        position = replace(position, retired=retired, swept=now.date().isoformat())
        await self._store_step(last, contents, Gathered(position), [], None)

    async def _now(self) -> datetime:
        return datetime.now(UTC) if self._database.kind == "sqlite" else await self._database.now()


def _is_recent(until: datetime | None, now: datetime) -> bool:
    """Whether readers know well enough up to when all is there, also while nothing ends."""
    return until is not None and now - until < timedelta(seconds=TELL_AGAIN_S)


def _begin_at(position: Position | None, ends: Ends) -> Position:
    """Return where an export goes on."""
    if position is None:
        return Position(event=ends.event, instances_end=ends.instance)
    if ends.first_event > position.event + 1:
        # Events may have been purged before they were read, as when there was no export for a
        # month: all instances are looked at again. What comes twice by that is one row to readers.
        return replace(position, event=ends.event, instances=0, instances_end=ends.instance)
    return position


def _is_at(position: Position, ends: Ends) -> bool:
    """Whether all up to these ends was exported."""
    return (
        position.instances >= position.instances_end
        and position.event >= ends.event
        and position.command >= ends.command
        and position.takeover >= ends.takeover
    )


def _count(summary: Summary, files: Sequence[HistoryFile], left_out: Mapping[str, int]) -> None:
    summary.steps += 1
    for file in files:
        summary.rows[file.table] = summary.rows.get(file.table, 0) + file.rows
    for table, count in left_out.items():
        summary.left_out[table] = summary.left_out.get(table, 0) + count
