"""The process that writes an attempt's files into the storage of resources; what it is to do comes
by its standard input, as JSON: see ``Errand``. It answers with what it has written, or why not.

What a task leaves in its folder is anything. A file counts only if it lies there as a file of its
own: no link leads to it or stands on the way, and no other name in the file system is its.
"""

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Self

from shoal.core.errors import ShoalError, shortened
from shoal.runtime.storage import PIECE, Storage, StorageError
from shoal.worker.home.download import PAUSES_S
from shoal.worker.processes.work_files import ANSWER_FILE

_LONGEST_REASON = 2_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Leaving:
    """A file in an attempt's folder, the resource that it becomes, and its object's name."""

    file: str
    path: str
    object: str


@dataclass(frozen=True)
class Stored:
    """What was written of a file. ``size`` is in bytes."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Upload:
    """Files of ``folder`` to be written; each may have ``largest`` bytes."""

    url: str
    folder: str
    largest: int
    files: Sequence[Leaving]

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build it from a text that ``to_json`` made."""
        fields = json.loads(text)
        files = [Leaving(**one) for one in fields.pop("files")]
        return cls(**fields, files=files)


class NotUsable(ShoalError):
    """What a task has left is not a file that can become a resource."""

    def __init__(self, leaving: Leaving, problem: str) -> None:
        super().__init__(f"publish: {leaving.file} {problem}")


def main() -> int:
    """Write all files; return the exit code."""
    errand = Upload.from_json(sys.stdin.read())
    storage = Storage(errand.url)
    try:
        for one in errand.files:  # before anything is written
            with opened(Path(errand.folder), one, errand.largest):
                pass
        stored = [_store(storage, errand, one) for one in errand.files]
    except (ShoalError, OSError, MemoryError) as error:
        reason = shortened(str(error) or repr(error), _LONGEST_REASON)
        Path(ANSWER_FILE).write_text(reason, encoding="utf-8")
        _remove(storage, errand)
        return 1
    told = json.dumps([asdict(one) for one in stored])
    Path(ANSWER_FILE).write_text(told, encoding="utf-8")
    return 0


@contextmanager
def opened(folder: Path, leaving: Leaving, largest: int) -> Iterator[BinaryIO]:
    """Open a file that a task has left. Raises NotUsable, OSError."""
    *above, name = leaving.file.split("/")
    try:
        parent = os.open(folder, _FOLDER)
        try:
            for part in above:
                below = os.open(part, _FOLDER, dir_fd=parent)
                os.close(parent)
                parent = below
            fd = os.open(name, _FILE, dir_fd=parent)
        finally:
            os.close(parent)
    except FileNotFoundError:
        text = "is not there: the task has made no such file in its folder"
        raise NotUsable(leaving, text) from None
    except OSError as error:
        text = f"cannot be used: {error.strerror}; links are not followed"
        raise NotUsable(leaving, text) from error
    try:
        if problem := _problem(os.fstat(fd), largest):
            raise NotUsable(leaving, problem)
        with open(fd, "rb", buffering=0, closefd=False) as file:
            yield file
    finally:
        os.close(fd)


def _problem(found: os.stat_result, largest: int) -> str | None:
    if stat.S_ISDIR(found.st_mode):
        return "is a folder; name one file of it, or pack it into an archive"
    if not stat.S_ISREG(found.st_mode):
        return "is not a file"
    if found.st_nlink != 1:
        return "has other names, too (hard links); make a copy of it"
    if found.st_size > largest:
        return _too_large(largest)
    return None


def _too_large(largest: int) -> str:
    return (
        f"is larger than {largest >> 20} MiB, which a resource may have; that is resource_mb in "
        "the section [cluster]"
    )


def _store(storage: Storage, errand: Upload, leaving: Leaving) -> Stored:
    """Write one file. Raises NotUsable, StorageError, OSError."""
    for pause_s in (*PAUSES_S, None):
        try:
            return _try_to_store(storage, errand, leaving)
        except StorageError:
            if pause_s is None:
                raise
            time.sleep(pause_s)
    raise AssertionError


def _try_to_store(storage: Storage, errand: Upload, leaving: Leaving) -> Stored:
    digest, size = hashlib.sha256(), 0
    with (
        opened(Path(errand.folder), leaving, errand.largest) as source,
        storage.writing(leaving.object) as target,
    ):
        while piece := source.read(PIECE):
            size += len(piece)
            if size > errand.largest:
                raise NotUsable(leaving, _too_large(errand.largest))
            digest.update(piece)
            target.write(piece)
    return Stored(leaving.path, digest.hexdigest(), size)


def _remove(storage: Storage, errand: Upload) -> None:
    """Remove what was written; masters remove what is left."""
    for one in errand.files:
        with suppress(StorageError):
            storage.remove(one.object)


if __name__ == "__main__":
    sys.exit(main())
