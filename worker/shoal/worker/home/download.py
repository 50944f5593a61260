"""The process that fetches resources from their storage; what it is to do comes by its standard
input, as JSON: see ``Errand``.

Drivers of storages are large, block, and wait for a silent server as long as they like: none of
that is for the agent. A file has its name in the cache only when its content is checked.
"""

import hashlib
import json
import os
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from shoal.core.errors import ShoalError, shortened
from shoal.runtime.storage import PIECE, ObjectMissing, Storage, StorageError
from shoal.worker.processes.work_files import ANSWER_FILE
from shoal.worker.supervisor.shim.child import NO_ROOM

#: Exit code: this machine has no descriptor, process or memory left for it (EX_TEMPFAIL).
STARVED = 75
#: Before the name of a file that is not complete.
UNFINISHED = "."
#: Between tries: a storage may be away for a moment.
PAUSES_S = (1.0, 3.0, 9.0)
_LONGEST_REASON = 2_000


@dataclass(frozen=True)
class File:
    """One file: its name in the storage, and its content."""

    object: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Download:
    """Files to be put into ``folder``, each by the name of its checksum."""

    url: str
    folder: str
    files: Sequence[File]

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build it from a text that ``to_json`` made."""
        fields = json.loads(text)
        files = [File(**one) for one in fields.pop("files")]
        return cls(**fields, files=files)


class WrongContent(ShoalError):
    """What the storage holds is not what was stored."""

    def __init__(self, file: File) -> None:
        super().__init__(
            f"the object {file.object} in the storage of resources is not what was stored: it has "
            "another size or checksum; put the file there again"
        )


def main() -> int:
    """Fetch all files; return the exit code."""
    errand = Download.from_json(sys.stdin.read())
    storage, folder = Storage(errand.url), Path(errand.folder)
    try:
        for file in errand.files:
            _fetch(storage, file, folder)
    except (ShoalError, OSError, MemoryError) as error:
        reason = shortened(str(error) or repr(error), _LONGEST_REASON)
        Path(ANSWER_FILE).write_text(reason, encoding="utf-8")
        return STARVED if _is_starved(error) else 1
    return 0


def _is_starved(error: BaseException | None) -> bool:
    if error is None:
        return False
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in NO_ROOM):
        return True
    return _is_starved(error.__cause__)


def _fetch(storage: Storage, file: File, folder: Path) -> None:
    """Fetch one file. Raises StorageError, WrongContent, OSError."""
    for pause_s in (*PAUSES_S, None):
        try:
            _try_to_fetch(storage, file, folder)
        except ObjectMissing:
            raise
        except StorageError:
            if pause_s is None:
                raise
            time.sleep(pause_s)
        else:
            return


def _try_to_fetch(storage: Storage, file: File, folder: Path) -> None:
    unfinished = folder / f"{UNFINISHED}{file.sha256}.{uuid.uuid4().hex}"
    digest, size = hashlib.sha256(), 0
    try:
        with storage.reading(file.object) as source, unfinished.open("xb") as target:
            while piece := source.read(PIECE):
                digest.update(piece)
                size += len(piece)
                if size > file.size:
                    break
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
        if (digest.hexdigest(), size) != (file.sha256, file.size):
            raise WrongContent(file)
        unfinished.rename(folder / file.sha256)
    finally:
        unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
