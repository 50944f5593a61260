"""Results that no master has committed yet, one JSON file each, on stable storage.

The launcher writes exit records here, so a result survives the agent, the worker and the machine.
The agent removes a file when the partition's owner has answered *committed* or *superseded*.
Methods block for the disk: from an event loop call them through ``asyncio.to_thread``.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from shoal.worker.attempt import ATTEMPT_ID
from shoal.worker.launcher_records import sync_folder, write_record

log = structlog.get_logger()

SUFFIX = ".json"


@dataclass(frozen=True)
class SpoolEntry:
    """One stored result."""

    id: str
    record: Mapping[str, Any]


class Spool:
    """A folder of results. Files that are no JSON are set aside in ``corrupt/``, with a warning."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, entry_id: str) -> Path:
        """Return where the result of ``entry_id`` lies: the launcher's ``record_path``.

        Raises ValueError if the id is no slug.
        """
        if ATTEMPT_ID.fullmatch(entry_id) is None:
            raise ValueError(f"spool id {entry_id!r} is no slug ({ATTEMPT_ID.pattern})")
        return self.folder / (entry_id + SUFFIX)

    def write(self, entry_id: str, record: Mapping[str, Any]) -> None:
        """Store ``record`` durably, in one step, replacing an older one. Raises OSError."""
        write_record(str(self.path(entry_id)), record)
        sync_folder(str(self.folder))

    def pending(self) -> list[SpoolEntry]:
        """Return all results, oldest first. Half-written files are not results yet."""
        entries = (self._read(path) for path in sorted(self._files(), key=_age))
        return [entry for entry in entries if entry is not None]

    def get(self, entry_id: str) -> Mapping[str, Any]:
        """Return the stored result of ``entry_id``. Raises OSError, ValueError."""
        record = json.loads(self.path(entry_id).read_bytes())
        if not isinstance(record, dict):
            raise ValueError(f"the result of {entry_id} in {self.folder} is no JSON object")
        return record

    def remove(self, entry_id: str) -> None:
        """Forget a result; one that is gone already is fine.

        Not synced: a result that comes back after a power cut is reported again, which masters
        recognise.
        """
        self.path(entry_id).unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return [
            path
            for path in self.folder.iterdir()
            if path.suffix == SUFFIX and ATTEMPT_ID.fullmatch(path.stem)
        ]

    def _read(self, path: Path) -> SpoolEntry | None:
        try:
            record = json.loads(path.read_bytes())
            if not isinstance(record, dict):
                raise ValueError("not a JSON object")
        except FileNotFoundError:  # removed since we listed it
            return None
        except OSError as error:  # perhaps better next time
            log.warning("spool file cannot be read", path=str(path), error=str(error))
            return None
        except ValueError as error:
            self._set_aside(path, error)
            return None
        return SpoolEntry(path.stem, record)

    def _set_aside(self, path: Path, error: ValueError) -> None:
        corrupt = self.folder / "corrupt"
        log.warning("spool file is corrupt", path=str(path), error=str(error), moved=str(corrupt))
        with suppress(OSError):  # the next look tries again
            corrupt.mkdir(mode=0o700, exist_ok=True)
            os.replace(path, corrupt / f"{path.name}.{path.stat().st_mtime_ns}")


def _age(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, path.name
    except FileNotFoundError:
        return 0, path.name
