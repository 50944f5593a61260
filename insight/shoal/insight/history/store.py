"""The storage of the history: its files and manifests, below a folder for each cluster.

Everything here blocks.
"""

import hashlib
import io
import json
import re
import secrets
import time
from collections.abc import Collection
from datetime import date
from typing import Self

from shoal.core.errors import ShoalError
from shoal.insight.history.manifest import Contents, HistoryFile, Manifest
from shoal.insight.history.tables import TABLES
from shoal.runtime.storage import ObjectMissing, Purpose, Storage, cluster_folder

_CLUSTER = r"[0-9a-f]{32}"
_FILE = r"[0-9]{12}-([0-9]{16})-[0-9a-f]{8}\.parquet"
_PART = r"(\.[0-9a-f]{32}\.part)?"  # what an exporter has left that was killed as it wrote
HISTORY = Purpose(
    "the exported history",
    "history_url",
    re.compile(
        rf"{_CLUSTER}/(manifest/[0-9]{{20}}(\.full)?\.json|"
        rf"[a-z_]+/day=[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}/{_FILE}){_PART}"
    ),
)
_MANIFEST = re.compile(r"([0-9]{20})(\.full)?\.json")
_UNFINISHED = re.compile(_MANIFEST.pattern + r"\.[0-9a-f]{32}\.part")
_FOLDER = re.compile(r"day=([0-9]{4}-[0-9]{2}-[0-9]{2})")
_TRIES = 5  # to read manifests while an exporter removes those before a full one


class DamagedHistory(ShoalError):
    """The storage does not have what its manifests name, or something else."""


class NoHistory(ShoalError):
    """There is no history in a place."""

    def __init__(self, root: str) -> None:
        super().__init__(
            f"no history in {root}: there is no manifest/*.json; export some first, or name the "
            "folder or URL that `shoal insight status` shows"
        )


class HistoryStore:
    """The history of the cluster with this uid in the storage at ``url``."""

    def __init__(self, url: str, cluster: str) -> None:
        self._storage = Storage(url, HISTORY)
        self._cluster = cluster_folder(cluster)

    @classmethod
    def at(cls, root: str) -> Self:
        """Return the history whose ``root`` this is, or the only one that lies there.

        Raises NoHistory, StorageError.
        """
        url, _, name = root.rstrip("/").rpartition("/")
        if not url or not re.fullmatch(_CLUSTER, name):
            url = root
            names = [
                one for one in Storage(url, HISTORY).names_in("") if re.fullmatch(_CLUSTER, one)
            ]
            if len(names) != 1:
                raise NoHistory(root)
            [name] = names
        found = cls(url, "")
        found._cluster = name
        return found

    @property
    def root(self) -> str:
        """The URL below which the paths of files begin."""
        return f"{self._storage.url.rstrip('/')}/{self._cluster}"

    @property
    def results(self) -> str:
        """The URL of the folder that results of the jobs are in by default."""
        return f"{self.root}/rollups"

    def put(
        self,
        sequence: int,
        table: str,
        day: date,
        content: bytes,
        rows: int,
        since: int | None = None,
        ids: tuple[int, int] | None = None,
    ) -> HistoryFile:
        """Store a file under a name that no other has. Raises StorageError.

        ``since``: the first export that it has rows of; None: this one. ``ids``: of its instances.
        """
        name = f"{sequence:012}-{time.time_ns() // 1000:016}-{secrets.token_hex(4)}.parquet"
        path = f"{table}/day={day.isoformat()}/{name}"
        self._storage.put(f"{self._cluster}/{path}", io.BytesIO(content))
        digest = hashlib.sha256(content).hexdigest()
        size, first = len(content), since or sequence
        return HistoryFile(path, table, day, rows, size, digest, first, ids)

    def read_range(self, file: HistoryFile, start: int, end: int) -> bytes:
        """Return bytes of a file, unchecked. Raises ObjectMissing, StorageError."""
        return self._storage.read_range(f"{self._cluster}/{file.path}", start, end)

    def read(self, file: HistoryFile) -> bytes:
        """Return the content of a file. Raises StorageError, DamagedHistory."""
        content = self._storage.read_range(f"{self._cluster}/{file.path}", 0, file.size)
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise DamagedHistory(
                f"{self.root}/{file.path} is not what was exported: restore it from a copy, or "
                "export the history anew to an empty folder"
            )
        return content

    def is_whole(self, file: HistoryFile) -> bool:
        """Whether a file is there, with the size and digest that its manifest says.

        Raises StorageError if the storage is away.
        """
        name = f"{self._cluster}/{file.path}"
        try:
            if self._storage.size(name) != file.size:
                return False
            content = self._storage.read_range(name, 0, file.size)
        except ObjectMissing:
            return False
        return hashlib.sha256(content).hexdigest() == file.sha256

    def put_manifest(self, manifest: Manifest) -> None:
        """Store a manifest; the same one may be there already. Raises StorageError."""
        content = json.dumps(manifest.to_json(), separators=(",", ":")).encode()
        name = self._manifest(manifest.sequence, manifest.is_full)
        self._storage.put(name, io.BytesIO(content))

    def contents(self) -> Contents:
        """Return what the history has. Raises StorageError, DamagedHistory."""
        for remaining in reversed(range(_TRIES)):
            try:
                return self._contents()
            except ObjectMissing:
                if not remaining:
                    raise
        raise AssertionError("unreachable")

    def last_sequence(self) -> int:
        """Return the number of the last manifest; 0: there is none. Raises StorageError."""
        return max((sequence for sequence, _ in self._manifests()), default=0)

    def forget_before(self, sequence: int) -> int:
        """Remove the manifests before a full one; return how many. Raises StorageError."""
        found = [(number, full) for number, full in self._manifests() if number < sequence]
        for number, full in found:
            self._storage.remove(self._manifest(number, full))
        folder = f"{self._cluster}/manifest"
        for name in self._storage.names_in(folder):
            # No exporter writes a manifest before a full one.
            # No exporter writes a manifest before a full one.
            if (match := _UNFINISHED.fullmatch(name)) and int(match[1]) < sequence:
                self._storage.remove(f"{folder}/{name}")
        return len(found)

    def folders(self) -> list[tuple[str, date]]:
        """Return the tables and days that have a folder. Raises StorageError."""
        return [
            (table.name, date.fromisoformat(match[1]))
            for table in TABLES
            for name in self._storage.names_in(f"{self._cluster}/{table.name}")
            if (match := _FOLDER.fullmatch(name))
        ]

    def sweep(self, table: str, day: date, keep: Collection[str], older_s: float) -> int:
        """Remove the files of a day that are not to be kept and were written so long ago.

        ``keep``: paths. Exporters that were killed leave such files, and what was replaced is one.
        Returns how many. Raises StorageError.
        """
        folder = f"{table}/day={day.isoformat()}"
        before = time.time_ns() // 1000 - int(older_s * 1_000_000)
        removed = 0
        for name in self._storage.names_in(f"{self._cluster}/{folder}"):
            match = re.fullmatch(_FILE + _PART, name)
            if match and int(match[1]) < before and f"{folder}/{name}" not in keep:
                self._storage.remove(f"{self._cluster}/{folder}/{name}")
                removed += 1
        return removed

    def _contents(self) -> Contents:
        found = self._manifests()
        first = max((number for number, is_full in found if is_full), default=1)
        needed = [(number, is_full) for number, is_full in found if number >= first]
        wanted = list(range(first, first + len(needed))) if needed else []
        if [number for number, _ in needed] != wanted:
            missing = min(set(range(first, needed[-1][0])) - {number for number, _ in needed})
            raise DamagedHistory(
                f"{self.root}/manifest lacks the manifest {missing}: restore it from a copy, or "
                "export the history anew to an empty folder"
            )
        return Contents().after(self._read(number, is_full) for number, is_full in needed)

    def _read(self, sequence: int, is_full: bool) -> Manifest:
        name = self._manifest(sequence, is_full)
        content = self._storage.read_range(name, 0, self._storage.size(name))
        try:
            return Manifest.from_json(json.loads(content))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedHistory(
                f"{self._storage.url}/{name} is not a manifest: {error}; restore it from a copy, "
                "or export the history anew to an empty folder"
            ) from error

    def _manifests(self) -> list[tuple[int, bool]]:
        """Return the numbers of the manifests there are, in order, and which are full."""
        names = self._storage.names_in(f"{self._cluster}/manifest")
        found = (_MANIFEST.fullmatch(name) for name in names)
        return sorted((int(match[1]), bool(match[2])) for match in found if match)

    def _manifest(self, sequence: int, is_full: bool) -> str:
        return f"{self._cluster}/manifest/{sequence:020}{'.full' if is_full else ''}.json"
