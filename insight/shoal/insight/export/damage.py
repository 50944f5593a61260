"""Which files of the history are looked at again, and what follows when one is not whole.

A file is read back once after it was written; all are again and again, a few with each export.
One that is damaged or missing leaves the manifest, and the export goes back to where its rows come
once more, as far as the database still has them. It counts again as soon as it is whole, as after
it was restored from a copy.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

import pyarrow.parquet as pq

from shoal.insight.history.manifest import Contents, HistoryFile
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import ATTEMPTS, COMMANDS, INSTANCES, PLANS, TABLES, TAKEOVERS
from shoal.sql.repositories.exports.finished_rows import Ends
from shoal.sql.repositories.exports.position import ExportPosition

Key = tuple[Any, ...]
# Looked at again with each export: with four an hour 3,000 files a day.
_FILES_AGAIN = 32
_BYTES_AGAIN = 64 << 20


@dataclass(frozen=True)
class Damage:
    """A file that was found damaged or missing.

    ``sequence``: the export that went back for its rows.
    """

    file: HistoryFile
    since: datetime
    sequence: int

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return {
            "file": self.file.to_json(),
            "since": self.since.isoformat(),
            "sequence": self.sequence,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Build it from what ``to_json`` made."""
        return cls(
            HistoryFile.from_json(stored["file"]),
            datetime.fromisoformat(stored["since"]),
            stored["sequence"],
        )

    def is_made_good(self, store: HistoryStore, contents: Contents) -> bool:
        """Whether as many rows as it had have come again: of its day, ended when it was written,
        and in no other file that was there before. Raises StorageError, DamagedHistory.
        """
        again: set[Key] = set()
        before: set[Key] = set()
        for file in contents.of(self.file.table, (self.file.day, self.file.day)):
            found = before if file.since <= self.sequence else again
            found |= _keys(store, file, self.file.written_at)
        return len(again - before) >= self.file.rows

    def __str__(self) -> str:
        file = self.file
        return f"{file.path} ({file.rows} {file.table} of {file.day}, since {self.since:%F %R} UTC)"


def _keys(store: HistoryStore, file: HistoryFile, until: datetime) -> set[Key]:
    """Return the keys of the rows that had ended at an instant."""
    table = next(one for one in TABLES if one.name == file.table)
    names = list(dict.fromkeys((*table.key, table.at)))
    read = pq.read_table(io.BytesIO(store.read(file)), columns=names)
    *keys, at = [read[name].to_pylist() for name in (*table.key, table.at)]
    rows = zip(*keys, at, strict=True)
    return {tuple(key) for *key, ended in rows if ended <= until}


def damages_of(position: ExportPosition) -> list[Damage]:
    """Return the files that are damaged or missing, as far as was seen."""
    return [Damage.from_json(one) for one in position.damaged.values()]


def with_damages(position: ExportPosition, damages: Iterable[Damage]) -> ExportPosition:
    """Return the position with these files as the damaged ones."""
    return replace(position, damaged={one.file.path: one.to_json() for one in damages})


def not_whole(store: HistoryStore, files: Iterable[HistoryFile]) -> list[HistoryFile]:
    """Return those that are damaged or missing. Raises StorageError if the storage is away."""
    return [file for file in files if not store.is_whole(file)]


def to_look_at(contents: Contents, verified: int, checked: str) -> Iterator[HistoryFile]:
    """Yield the files to look at: those of exports behind ``verified``, and the next few others.

    ``checked``: the path up to which the others were looked at.
    """
    old = []
    for file in contents.files.values():
        if file.sequence > verified:
            yield file
        else:
            old.append(file)
    yield from next_few(old, checked)


def next_few(files: Iterable[HistoryFile], checked: str) -> list[HistoryFile]:
    """Return the files behind a path, in their order and then from the start again."""
    order = sorted(files, key=lambda one: (one.path <= checked, one.path))
    few: list[HistoryFile] = []
    size = 0
    for file in order[:_FILES_AGAIN]:
        size += file.size
        if few and size > _BYTES_AGAIN:
            break
        few.append(file)
    return few


def gone_back(position: ExportPosition, files: Sequence[HistoryFile], ends: Ends) -> ExportPosition:
    """Return from where an export brings the rows of these files once more."""
    tables = {file.table for file in files}
    if tables & {ATTEMPTS.name, INSTANCES.name, PLANS.name}:
        position = replace(position, instances=0, instances_end=ends.instance)
    if PLANS.name in tables:
        position = replace(position, plans={})
    if COMMANDS.name in tables:
        position = replace(position, command=0, open_commands=())
    if TAKEOVERS.name in tables:
        position = replace(position, takeover=0)
    return position
