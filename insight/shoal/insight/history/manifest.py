"""Manifests: which files the history has.

Every export adds one, numbered from 1 without a gap. It names the files that come and those that
go. Now and then one is *full*: it names all files there are, and the ones before it can go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Self


@dataclass(frozen=True)
class HistoryFile:
    """A Parquet file with rows of one day of a table. ``size`` is in bytes.

    Its rows come from the exports ``since`` to ``sequence``: more than one if it was joined.
    ``ids``: the lowest and the highest ``instance_id`` of instances and attempts; None: it has
    none, or was written before that was noted.
    """

    path: str  # below the folder of the history
    table: str
    day: date
    rows: int
    size: int
    sha256: str
    since: int
    ids: tuple[int, int] | None = None

    @property
    def sequence(self) -> int:
        """The number of the export that has written it."""
        return int(self.path.rpartition("/")[2].partition("-")[0])

    @property
    def written_at(self) -> datetime:
        """When it was written, by the clock of the machine that wrote it."""
        return datetime.fromtimestamp(int(self.path.rpartition("/")[2].split("-")[1]) / 1e6, UTC)

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return asdict(self) | {"day": self.day.isoformat()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Build it from what ``to_json`` made."""
        ids = stored.get("ids")
        values = {"day": date.fromisoformat(stored["day"]), "ids": ids and (ids[0], ids[1])}
        return cls(**{**stored, **values})


@dataclass(frozen=True)
class Manifest:
    """What one export has changed.

    ``files`` have come, ``replaced`` (paths) have gone; of a full one ``files`` are all there are.
    ``settled_until``: what had ended by then was exported, here or earlier; None: not yet so far.
    ``left_out``: how many rows could not be read, by table.
    """

    sequence: int
    files: Sequence[HistoryFile]
    settled_until: datetime | None
    replaced: Sequence[str] = ()
    is_full: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return {
            "sequence": self.sequence,
            "files": [file.to_json() for file in self.files],
            "settled_until": self.settled_until and self.settled_until.isoformat(),
            "replaced": list(self.replaced),
            "is_full": self.is_full,
            "left_out": dict(self.left_out),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Build it from what ``to_json`` made."""
        until = stored["settled_until"]
        return cls(
            sequence=stored["sequence"],
            files=[HistoryFile.from_json(file) for file in stored["files"]],
            settled_until=until and datetime.fromisoformat(until),
            replaced=tuple(stored["replaced"]),
            is_full=stored["is_full"],
            left_out=stored["left_out"],
        )


@dataclass(frozen=True)
class Contents:
    """The history as a whole: its files by their paths. ``sequence`` 0: nothing was exported."""

    sequence: int = 0
    files: Mapping[str, HistoryFile] = field(default_factory=dict)
    settled_until: datetime | None = None

    def after(self, manifests: Iterable[Manifest]) -> "Contents":
        """Return the contents behind these manifests, which follow in order."""
        sequence, files, until = self.sequence, dict(self.files), self.settled_until
        for manifest in manifests:
            if manifest.is_full:
                files = {}
            for path in manifest.replaced:
                files.pop(path, None)
            files |= {file.path: file for file in manifest.files}
            sequence, until = manifest.sequence, manifest.settled_until or until
        return Contents(sequence, files, until)

    def of(self, table: str, days: tuple[date, date] | None = None) -> list[HistoryFile]:
        """Return the files of a table; ``days``: of these days alone, the first and the last."""
        found = (file for file in self.files.values() if file.table == table)
        if days is not None:
            found = (file for file in found if days[0] <= file.day <= days[1])
        return sorted(found, key=lambda file: (file.day, file.path))
