"""The files of the history: the only place of the jobs that knows how manifests are read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path

import fsspec
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from shoal.insight.history.store import HistoryStore, NoHistory
from shoal.insight.history.tables import INSTANCES
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.errors import MissingFile


@dataclass(frozen=True)
class SourceFile:
    """A file that counts. ``url`` is absolute; ``rows`` is how many it has.

    Its rows come from the exports ``since`` to ``exported``, which are numbered in their order.
    """

    url: str
    table: str
    day: date
    rows: int
    since: int
    exported: int


def history_files(root: str, table: str, days: Days | None = None) -> list[str]:
    """Return the URLs of the files of a table that the manifests name; ``days`` None: of all days.

    Raises NoHistory, DamagedHistory.
    """
    return [one.url for one in files_of(manifested(root), table, days)]


def files_of(files: Iterable[SourceFile], table: str, days: Days | None = None) -> list[SourceFile]:
    """Return the files of a table and of some days; None: of all."""
    return [one for one in files if one.table == table and (days is None or one.day in days)]


def manifested(root: str) -> list[SourceFile]:
    """Return all files that manifests name. Raises NoHistory, DamagedHistory, StorageError."""
    store = HistoryStore.at(root)
    contents = store.contents()
    if not contents.sequence:
        raise NoHistory(root)
    fs, path = fsspec.core.url_to_fs(store.root)
    return [
        SourceFile(
            url=fs.unstrip_protocol(f"{path}/{one.path}"),
            table=one.table,
            day=one.day,
            rows=one.rows,
            since=one.since,
            exported=one.sequence,
        )
        for one in contents.files.values()
    ]


def first_begun(files: Iterable[SourceFile], days: Days) -> date | None:
    """Return the day on which the first of the runs was created that ended on some days.

    None: there is none. Reads one column. Raises MissingFile.
    """
    earliest: list[date] = []
    for one in files_of(files, INSTANCES.name, days):
        try:
            with fsspec.open(one.url, "rb") as file:
                created = pc.min(pq.read_table(file, columns=["created_at"])["created_at"]).as_py()
        except FileNotFoundError as error:
            raise MissingFile(one.url.removeprefix("file://")) from error
        if created is not None:
            earliest.append(created.astimezone(UTC).date())
    return min(earliest, default=None)


def local_paths(files: Sequence[SourceFile], scratch: Path) -> list[str]:
    """Return where files are that all machines see; those of a URL are copied to ``scratch``.

    Raises MissingFile.
    """
    if not files:
        return []
    fs, _ = fsspec.core.url_to_fs(files[0].url)
    paths = [one.url.split("://", 1)[1] for one in files]
    if not isinstance(fs, LocalFileSystem):
        paths = [str(scratch / "history" / path) for path in paths]
        for one, copy in zip(files, paths, strict=True):
            _fetch(fs, one.url, Path(copy))
    for path in paths:
        if not Path(path).is_file():
            raise MissingFile(path)
    return paths


def _fetch(fs: fsspec.AbstractFileSystem, url: str, copy: Path) -> None:
    if copy.exists():
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        fs.get_file(url, str(copy))
    except FileNotFoundError as error:
        raise MissingFile(url) from error
