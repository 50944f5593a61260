"""Find past runs in the files of the history, without reading more than is needed.

Which files there are, and which days and ids they have, manifests say. In a file the statistics of
its row groups say which of them can have what is wanted. What is remembered between questions are
footers, ids and plans of files, which never change: a bounded number of each.
"""

import heapq
import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.insight.history.manifest import Contents, HistoryFile
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS
from shoal.insight.past.questions import PageWanted, PastInstance, PastPage

_FOOTERS = 4_096  # some KB each
_ID_COLUMNS = 512  # of files: 16 bytes a row
_PLAN_FILES = 512
_READERS = 8  # files that are read at once: storages answer slowly
_DAYS_AT_ONCE = 8  # whose files are read together
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400 * 1_000_000
_LAST_US = (date.max - _EPOCH.date()).days * _DAY_US
_LOOKED_AT = ["finished_at", "instance_id", "event_id", "project", "workflow", "state"]
_ORDER = [(name, "descending") for name in ("finished_at", "instance_id", "event_id")]

_Plan = tuple[int, list[dict[str, Any]]]  # when it was published, in microseconds; its tasks
At = tuple[int, int]  # the end of a run in microseconds, and its id: the order of pages


class _Ranged(io.RawIOBase):
    """A file of the store that is read in parts."""

    def __init__(self, store: HistoryStore, file: HistoryFile) -> None:
        self._store, self._file, self._at = store, file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {0: 0, 1: self._at, 2: self._file.size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._file.size if size is None or size < 0 else self._at + size
        content = self._store.read_range(self._file, self._at, min(end, self._file.size))
        self._at += len(content)
        return content


@dataclass(frozen=True)
class _Found:
    """A row that may be on the page, and where it lies."""

    at: At
    event: int
    file: HistoryFile = field(compare=False)
    group: int = field(compare=False)
    row: int = field(compare=False)


class PastReader:
    """Reads past runs out of a store. One thread asks at a time.

    ``page_s``: a page that has taken so long ends where it is. ``most_attempts``: of a run that are
    returned, the newest. ``small``: bytes of a file that is fetched as a whole.
    """

    def __init__(
        self,
        store: HistoryStore,
        *,
        page_s: float = 0.7,
        most_attempts: int = 10_000,
        small: int = 1 << 20,
    ) -> None:
        self._store = store
        self._page_s, self._most_attempts, self._small = page_s, most_attempts, small
        self._contents = Contents()
        self._footers = lru_cache(_FOOTERS)(self._footer)
        self._ids = lru_cache(_ID_COLUMNS)(self._id_columns)
        self._plans = lru_cache(_PLAN_FILES)(self._plans_in)
        self._readers = ThreadPoolExecutor(_READERS, "past")

    def close(self) -> None:
        """End the threads."""
        self._readers.shutdown()

    @property
    def exports(self) -> int:
        """How many exports there had been at the last question; 0: there is no history."""
        return self._contents.sequence

    # -- a page --------------------------------------------------------------------------------

    def page(self, wanted: PageWanted) -> PastPage:
        """Return a page. Raises StorageError, DamagedHistory."""
        self._refresh()
        until, chosen = time.monotonic() + self._page_s, list[_Found]()
        before = wanted.before
        days = self._days(wanted)
        for some in _growing(days, _DAYS_AT_ONCE):
            while len(chosen) <= wanted.limit:
                room = wanted.limit + 1 - len(chosen)
                found, is_all = self._newest(some, wanted, before, room)
                chosen += self._valid(found)
                if is_all:
                    break
                before = found[-1].at
            if len(chosen) > wanted.limit:
                break
            before = ((some[-1] - _EPOCH.date()).days * _DAY_US, 0)
            if time.monotonic() > until and some[-1] != days[-1]:
                return PastPage(self._rows(chosen), before)
        page = chosen[: wanted.limit]
        return PastPage(self._rows(page), page[-1].at if len(chosen) > wanted.limit else None)

    def _days(self, wanted: PageWanted) -> list[date]:
        """Return the days that can have rows of the page, the newest first."""
        last = wanted.last
        if wanted.before is not None:
            # Ids begin at 1: behind the id 0 of midnight comes nothing of the day that begins then.
            at = _day(wanted.before[0] if wanted.before[1] else wanted.before[0] - 1)
            last = at if last is None else min(at, last)
        days = {file.day for file in self._contents.of(INSTANCES.name)}
        return sorted(
            (
                day
                for day in days
                if (wanted.first is None or day >= wanted.first) and (last is None or day <= last)
            ),
            reverse=True,
        )

    def _newest(
        self, days: Sequence[date], wanted: PageWanted, before: At | None, room: int
    ) -> tuple[list[_Found], bool]:
        """Return the newest rows of some days that fulfil the filters; whether these are all."""
        some = set(days)
        files = [file for file in self._contents.of(INSTANCES.name) if file.day in some]
        found = heapq.nlargest(
            room + 1,
            (
                one
                for rows in self._each(
                    files, lambda file: self._in_file(file, wanted, before, room)
                )
                for one in rows
            ),
            key=lambda one: (one.at, one.event),
        )
        return found[:room], len(found) <= room

    def _in_file(
        self, file: HistoryFile, wanted: PageWanted, before: At | None, room: int
    ) -> list[_Found]:
        """Return the newest rows of a file that fulfil the filters, one more than there is room."""
        parquet, found = self._open(file), list[_Found]()
        for group in range(parquet.metadata.num_row_groups):
            rows = parquet.read_row_group(group, columns=_LOOKED_AT).combine_chunks()
            at = rows["finished_at"].cast(pa.int64())
            rows = rows.set_column(0, "finished_at", at)
            places = pc.indices_nonzero(_condition(rows, wanted, before))
            rows = rows.select(["finished_at", "instance_id", "event_id"]).take(places)
            rows = rows.append_column("row", places)
            if rows.num_rows > room:
                # One run may be there twice: the row that counts comes first.
                rows = rows.take(pc.sort_indices(rows, sort_keys=_ORDER)[: room + 1])
            columns = [rows[name].to_pylist() for name in rows.column_names]
            found += [
                _Found((at, one), event, file, group, row)
                for at, one, event, row in zip(*columns, strict=True)
            ]
        return found

    def _valid(self, found: Sequence[_Found]) -> list[_Found]:
        """Leave out the rows of runs that have ended once more since: a newer row counts."""
        if not found:
            return []
        low, high = min(one.at[1] for one in found), max(one.at[1] for one in found)
        first = min(one.file.day for one in found)
        files = [
            file
            for file in self._contents.of(INSTANCES.name)
            if file.day >= first and self._may_have(file, low, high)
        ]
        wanted = pa.array(sorted({one.at[1] for one in found}), pa.int64())
        newest: dict[int, int] = {}
        for ids in self._each(files, self._ids):
            some = ids.filter(pc.is_in(ids["instance_id"], value_set=wanted))
            columns = [some[name].to_pylist() for name in ("instance_id", "event_id")]
            for one, event in zip(*columns, strict=True):
                newest[one] = max(event, newest.get(one, event))
        valid, seen = [], set()
        for one in found:
            if one.event == newest[one.at[1]] and one.at[1] not in seen:
                seen.add(one.at[1])
                valid.append(one)
        return valid

    def _rows(self, chosen: Sequence[_Found]) -> list[dict[str, Any]]:
        """Return the rows, in this order."""
        places: dict[tuple[str, int], list[_Found]] = {}
        for one in chosen:
            places.setdefault((one.file.path, one.group), []).append(one)

        def read(some: list[_Found]) -> list[tuple[_Found, dict[str, Any]]]:
            rows = self._open(some[0].file).read_row_group(some[0].group)
            taken = rows.take([one.row for one in some])
            return list(zip(some, _dicts(taken), strict=True))

        pairs = (pair for pairs in self._each(places.values(), read) for pair in pairs)
        found = {id(one): row for one, row in pairs}
        return [found[id(one)] for one in chosen]

    # -- one run -------------------------------------------------------------------------------

    def run(self, instance_id: int) -> PastInstance | None:
        """Return a run; None: the history does not have it. Raises StorageError, DamagedHistory."""
        self._refresh()
        files = [
            file
            for file in self._contents.of(INSTANCES.name)
            if self._may_have(file, instance_id, instance_id)
        ]
        row = max(
            self._of_instance(files, instance_id), key=lambda one: one["event_id"], default=None
        )
        if row is None:
            return None
        # Attempts end between the beginning of a run and its end; a skipped one has no time itself.
        # A day more on either side: clocks of masters and workers differ.
        days = (_day(row["created_at"], -1), _day(row["finished_at"], 1))
        files = [
            file
            for file in self._contents.of(ATTEMPTS.name, days)
            if self._may_have(file, instance_id, instance_id)
        ]
        attempts: dict[int, dict[str, Any]] = {}
        for one in self._of_instance(files, instance_id):
            known = attempts.get(one["attempt_id"])
            if known is None or known["event_id"] < one["event_id"]:
                attempts[one["attempt_id"]] = one
        order = sorted(attempts.values(), key=lambda one: one["attempt_id"])
        left_out = max(0, len(order) - self._most_attempts)
        return PastInstance(row, order[left_out:], self._tasks(row), left_out)

    def _of_instance(self, files: Sequence[HistoryFile], instance_id: int) -> list[dict[str, Any]]:
        def read(file: HistoryFile) -> list[dict[str, Any]]:
            parquet = self._open(file)
            groups = [
                group
                for group, least, most in _id_ranges(parquet.metadata)
                if least <= instance_id <= most
            ]
            if not groups:
                return []
            ids = parquet.read_row_groups(groups, columns=["instance_id"])["instance_id"]
            at = pc.indices_nonzero(pc.equal(ids, instance_id))
            return _dicts(parquet.read_row_groups(groups).take(at)) if len(at) else []

        return [row for rows in self._each(files, read) for row in rows]

    def _tasks(self, row: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Return the tasks of the version that a run is of.

        It is the newest one that was published before the run: of another workflow, that had the
        name before or has it now, may be others.
        """
        key = (row["project"], row["workflow"], row["version"])
        files = self._contents.of(PLANS.name, (date.min, _day(row["finished_at"])))
        published: list[_Plan] = []
        for some in _batched(files[::-1], _READERS):
            for plans in self._each(some, self._plans):
                published += plans.get(key, ())
            if any(at <= row["created_at"] for at, _ in published):
                break
        # Where clocks differ it may be a little later than the run.
        return min(
            published,
            key=lambda one: (one[0] > row["created_at"], abs(row["created_at"] - one[0])),
            default=(0, None),
        )[1]

    # -- files ---------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Read the manifests if there are new ones."""
        if self._store.last_sequence() != self._contents.sequence:
            self._contents = self._store.contents()

    def _each(self, items: Iterable[Any], read: Callable[[Any], Any]) -> Iterator[Any]:
        """Read several at once; what one raises, this does."""
        many = list(items)
        return map(read, many) if len(many) < 2 else self._readers.map(read, many)

    def _open(self, file: HistoryFile) -> pq.ParquetFile:
        source: Any = _Ranged(self._store, file)
        if file.size <= self._small:
            source = io.BytesIO(self._store.read_range(file, 0, file.size))
            return pq.ParquetFile(source)
        return pq.ParquetFile(source, metadata=self._footers(file), pre_buffer=True)

    def _footer(self, file: HistoryFile) -> pq.FileMetaData:
        return pq.read_metadata(_Ranged(self._store, file))

    def _id_columns(self, file: HistoryFile) -> pa.Table:
        return self._open(file).read(columns=["instance_id", "event_id"])

    def _plans_in(self, file: HistoryFile) -> dict[tuple[str, str, int], list[_Plan]]:
        """Return the plans in a file by project, workflow and version."""
        found: dict[tuple[str, str, int], list[_Plan]] = {}
        for row in _dicts(self._open(file).read(columns=[*PLANS.key, "tasks"])):
            key = (row["project"], row["workflow"], row["version"])
            found.setdefault(key, []).append((row["published_at"], row["tasks"]))
        return found

    def _may_have(self, file: HistoryFile, low: int, high: int) -> bool:
        """Whether a file can have rows of instances between two ids, by its manifest or footer."""
        if file.ids is not None:
            return file.ids[0] <= high and file.ids[1] >= low
        footer = self._footers(file)
        return any(least <= high and most >= low for _, least, most in _id_ranges(footer))


def _condition(rows: pa.Table, wanted: PageWanted, before: At | None) -> Any:
    """Return for each row whether it fulfils all filters."""
    at, one = rows["finished_at"], rows["instance_id"]
    found = pc.is_valid(at)
    if before is not None:
        is_earlier = pc.less(at, before[0])
        is_lower = pc.and_(pc.equal(at, before[0]), pc.less(one, before[1]))
        found = pc.and_(found, pc.or_(is_earlier, is_lower))
    if wanted.projects is not None:
        found = pc.and_(found, _is_in(rows["project"], wanted.projects))
    if wanted.workflow is not None:
        found = pc.and_(found, pc.equal(rows["workflow"], wanted.workflow))
    if wanted.states:
        found = pc.and_(found, _is_in(rows["state"], wanted.states))
    return found


def _is_in(column: Any, values: Sequence[str]) -> Any:
    return pc.is_in(column, value_set=pa.array(values, pa.string()))


def _id_ranges(footer: pq.FileMetaData) -> Iterator[tuple[int, int, int]]:
    """Yield each row group with the lowest and the highest instance in it."""
    column = footer.schema.names.index("instance_id")
    for group in range(footer.num_row_groups):
        numbers = footer.row_group(group).column(column).statistics
        if numbers is None or not numbers.has_min_max:
            yield group, 0, 2**63 - 1
        else:
            yield group, numbers.min, numbers.max


def _dicts(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as answers hold them: times are microseconds, labels a map."""
    columns = []
    for name in rows.column_names:
        values = rows[name]
        if pa.types.is_timestamp(values.type):
            columns.append(values.cast(pa.int64()).to_pylist())
        elif pa.types.is_map(values.type):
            columns.append([dict(one or ()) for one in values.to_pylist()])
        else:
            columns.append(values.to_pylist())
    return [
        dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)
    ]


def _batched(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _growing(items: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    """Yield one item, then two, then four: the first ones are often enough."""
    start, size = 0, 1
    while start < len(items):
        yield items[start : start + size]
        start, size = start + size, min(2 * size, most)


def _day(at_us: int, later: int = 0) -> date:
    """Return the day of an instant, or one that is ``later`` by so many, within what dates hold."""
    day = (_EPOCH + timedelta(microseconds=min(at_us, _LAST_US))).date()
    return date.fromordinal(min(max(day.toordinal() + later, 1), date.max.toordinal()))
