"""Results that no master has committed yet, on stable storage.

The launcher stores exit records here, so a result survives the agent, the worker and the machine:
most as a line in a journal (``supervisor/shim/journal.py``), large ones, and those that no journal
takes, in a JSON file each. The agent removes one when the partition's owner has answered
*committed* or *superseded*. Methods block for the disk, except ``note``: from an event loop call
them through ``asyncio.to_thread``.
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

import structlog

from shoal.core.errors import shortened
from shoal.core.untrusted import read_json
from shoal.worker.processes.program import ATTEMPT_ID
from shoal.worker.supervisor.shim.journal import SUFFIX as JOURNAL
from shoal.worker.supervisor.shim.journal import pending, read_all, record_at, settle, sync_folder
from shoal.worker.supervisor.shim.records import write_record

log = structlog.get_logger()

_LONGEST = 1 << 30  # bytes of a result: all that its attempt may write

_LATEST_S = 1e12  # since the Unix epoch: no result is from a later time

SUFFIX = ".json"


@dataclass(frozen=True)
class SpoolEntry:
    """One stored result. ``stored_at`` is in seconds since the Unix epoch."""

    id: str
    record: Mapping[str, Any]
    stored_at: float = field(default=0.0, compare=False)


class Spool:
    """A folder of results. Files that are not JSON are quarantined, in ``corrupt/``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[str, tuple[str, int]] = {}  # journal and place, where known
        self._removing = threading.Lock()  # no place is settled that was used again meanwhile
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, entry_id: str) -> Path:
        """Return where the result of ``entry_id`` lies: the launcher's ``record_path``.

        Raises ValueError if the id is not a slug.
        """
        if ATTEMPT_ID.fullmatch(entry_id) is None:
            raise ValueError(f"spool id {entry_id!r} is not a slug ({ATTEMPT_ID.pattern})")
        return self.folder / (entry_id + SUFFIX)

    def write(self, entry_id: str, record: Mapping[str, Any]) -> None:
        """Store ``record`` durably, in one step, replacing an older one. Raises OSError."""
        write_record(str(self.path(entry_id)), record)
        sync_folder(str(self.folder))

    def note(self, entry_id: str, journal: str, place: int) -> None:
        """The launcher has stored that result there."""
        self._places[entry_id] = journal, place

    def pending(self) -> list[SpoolEntry]:
        """Return all results, oldest first. Half-written files are not results yet."""
        found = {entry.id: entry for path in self._files() if (entry := self._read(path))}
        for journal in self._journals():
            for place, entry in self._in_journal(journal):
                self.note(entry.id, journal, place)
                if entry.id in found:
                    del self._places[entry.id]  # stored twice
                found[entry.id] = entry
        return sorted(found.values(), key=lambda entry: (entry.stored_at, entry.id))

    def get(self, entry_id: str) -> Mapping[str, Any]:
        """Return the stored result of ``entry_id``. Raises OSError, ValueError."""
        known, path = self._places.get(entry_id), self.path(entry_id)
        if known is not None:
            with self._open(known[0]) as journal:
                content = record_at(journal.fileno(), known[1])
        elif path.exists():
            content = path.read_bytes()
        else:  # stored by a shim that did not live to report the place
            for journal_name in self._journals():
                for _, entry in self._in_journal(journal_name, entry_id):
                    return entry.record
            content = None
        record = read_json(content or b"", most=_LONGEST)
        if not isinstance(record, dict):
            raise ValueError(f"the result of {entry_id} in {self.folder} is not a JSON object")
        return record

    def remove(self, entry_id: str) -> None:
        """Forget a result; one that is gone already is fine.

        Not synced: a result that comes back after a power cut is reported again, which masters
        recognise.
        """
        with self._removing:
            known = self._places.pop(entry_id, None)
            if known is not None:
                self._settle(*known)
                return
            # It has a file of its own, was stored by a shim that did not live to report the place,
            # or by two shims.
            self.path(entry_id).unlink(missing_ok=True)
            for journal in self._journals():
                for place, _ in self._in_journal(journal, entry_id):
                    self._settle(journal, place)

    def _settle(self, journal: str, place: int) -> None:
        fd = os.open(os.path.join(self.folder, journal), os.O_WRONLY | os.O_CLOEXEC)
        try:
            settle(fd, place)
        finally:
            os.close(fd)

    def _open(self, journal: str) -> FileIO:
        return FileIO(self.folder / journal, "r+")

    def _journals(self) -> list[str]:
        return [name for name in os.listdir(self.folder) if name.endswith(JOURNAL)]

    def _in_journal(
        self, journal: str, entry_id: str | None = None
    ) -> Iterator[tuple[int, SpoolEntry]]:
        """Yield results that wait in a journal, with their places; only ``entry_id``'s if given."""
        try:
            with self._open(journal) as file:
                content = read_all(file.fileno())
        except OSError as error:  # perhaps better next time
            log.warning("journal cannot be read", journal=journal, error=str(error))
            return
        for place, text in pending(content):
            if text is None:
                if entry_id is None:  # else perhaps it is just being written
                    log.warning("result in a journal is damaged", journal=journal, place=place)
            elif entry_id is None or entry_id.encode() in text:
                try:
                    found = _in_line(text)
                except ValueError as error:
                    if entry_id is None:
                        self._keep(f"{journal}.{place}", text, error)
                        self._settle(journal, place)
                    continue
                if entry_id in (None, found.id):
                    yield place, found

    def _files(self) -> list[Path]:
        return [
            path
            for path in self.folder.iterdir()
            if path.suffix == SUFFIX and ATTEMPT_ID.fullmatch(path.stem)
        ]

    def _read(self, path: Path) -> SpoolEntry | None:
        try:
            stored_at, record = path.stat().st_mtime, read_json(path.read_bytes(), most=_LONGEST)
            if not isinstance(record, dict):
                raise ValueError("not a JSON object")
        except FileNotFoundError:  # removed since we listed it
            return None
        except OSError as error:  # perhaps better next time
            log.warning("spool file cannot be read", path=str(path), error=str(error))
            return None
        except ValueError as error:
            self._quarantine(path, error)
            return None
        return SpoolEntry(path.stem, record, stored_at)

    def quarantine(self, entry: SpoolEntry, error: Exception) -> None:
        """Move a result that is not one to ``corrupt/``. Raises OSError."""
        self._keep(entry.id, json.dumps(entry.record).encode(), error)
        self.remove(entry.id)

    def _keep(self, name: str, content: bytes, error: Exception) -> None:
        corrupt = self.folder / "corrupt"
        log.warning("result is corrupt", entry=name, error=shortened(repr(error), 500))
        corrupt.mkdir(mode=0o700, exist_ok=True)
        (corrupt / f"{name}.{time.time_ns()}").write_bytes(content)

    def _quarantine(self, path: Path, error: ValueError) -> None:
        corrupt = self.folder / "corrupt"
        log.warning("spool file is corrupt", path=str(path), error=str(error), moved=str(corrupt))
        with suppress(OSError):  # the next read tries again
            corrupt.mkdir(mode=0o700, exist_ok=True)
            os.replace(path, corrupt / f"{path.name}.{path.stat().st_mtime_ns}")


def _in_line(text: bytes) -> SpoolEntry:
    """Return the result of a line of a journal. Raises ValueError."""
    record = read_json(text, most=_LONGEST)
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    entry_id, finished_at = record.get("id"), record.get("finished_at")
    if not isinstance(entry_id, str) or ATTEMPT_ID.fullmatch(entry_id) is None:
        raise ValueError(f"id {shortened(repr(entry_id), 100)} is not the id of an attempt")
    if not isinstance(finished_at, int | float) or not abs(finished_at) < _LATEST_S:
        raise ValueError(f"finished_at {shortened(repr(finished_at), 100)} is not a time")
    return SpoolEntry(entry_id, record, finished_at)
