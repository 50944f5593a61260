"""Exit records in files that are written over in place: one write and one sync for each.

A record in a file of its own takes a new file, two syncs and two changes of its folder, six times
the processor time. A journal is a file of zeros that is made once and has lines put into it, one
for each record:

    +CRC JSON       not settled yet: CRC-32 of the JSON in eight hexadecimal digits
    -CRC JSON       settled: the agent has put the minus there, which need not be durable

When it is full and all of it is settled, it begins anew; else it becomes longer. A line that a
power cut or a kill has left half-written has a wrong CRC; it was never reported.

One process at a time stores (it holds the file's lock), the agent reads and settles beside it.
"""

from __future__ import annotations

import fcntl
import os
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIX = ".lines"
SIZE = 1 << 16  # bytes of a journal with nothing but settled records
LONGEST = 1 << 14  # bytes of a record; a longer one gets a file of its own
PENDING, SETTLED = b"+", b"-"
_HEAD = 10  # bytes before the JSON


class Journal:
    """The journal that one shim writes. Opened with the first record; everything blocks."""

    def __init__(self, number: int) -> None:
        """``number`` is no other living shim's; an earlier shim may have left a file of it."""
        self._name = f"shim-{number}{SUFFIX}"
        self._folder: str | None = None
        self._fd = -1
        self._size = self._end = 0

    def append(self, folder: str, record: bytes) -> tuple[str, int]:
        """Store a record (JSON) durably in that folder's journal. Returns file name and place.

        Raises OSError: then it may be stored or not.
        """
        if folder != self._folder:
            self._open(folder)
        line = b"%b%08x %b\n" % (PENDING, crc32(record), record)
        if self._end + len(line) > self._size:
            self._make_room()
        write_at(self._fd, line, self._end)
        os.fdatasync(self._fd)
        place, self._end = self._end, self._end + len(line)
        return self._name, place

    def _open(self, folder: str) -> None:
        self.close()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(os.path.join(folder, self._name), flags, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._go_on()
            os.fsync(self._fd)
            sync_folder(folder)
        except OSError:
            self.close()
            raise
        self._folder = folder

    def close(self) -> None:
        """Leave the file to another writer."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._folder = -1, None

    def _go_on(self) -> None:
        """Find the end of what a former process has stored; what it has begun only is settled."""
        content = read_all(self._fd)
        text = content.rstrip(b"\0")
        if text and not text.endswith(b"\n"):
            text += b"\n"
            write_at(self._fd, b"\n", len(text) - 1)
        for place, record in pending(text):
            if record is None:
                settle(self._fd, place)
        self._end, self._size = len(text), len(content)
        if self._size < SIZE:
            self._lengthen(SIZE - self._size)

    def _make_room(self) -> None:
        if next(pending(read_all(self._fd)), None) is not None:
            self._lengthen(SIZE)
            return
        os.ftruncate(self._fd, min(self._size, SIZE))
        write_at(self._fd, bytes(SIZE), 0)
        self._end, self._size = 0, SIZE

    def _lengthen(self, size: int) -> None:
        """Append so many zeros: what is written over later needs no room, and no new metadata."""
        write_at(self._fd, bytes(size), self._size)
        self._size += size


def pending(content: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield place and JSON of each record that is not settled; None for JSON if it is damaged."""
    place = 0 if content.startswith(PENDING) else content.find(b"\n" + PENDING) + 1
    while content.startswith(PENDING, place):
        end = content.find(b"\n", place)
        end = len(content) if end < 0 else end
        record = content[place + _HEAD : end]
        sound = content[place + 1 : place + _HEAD] == b"%08x " % crc32(record)
        yield place, record if sound else None
        place = content.find(b"\n" + PENDING, end) + 1 or len(content)


def settle(fd: int, place: int) -> None:
    """Mark the record at ``place`` as settled."""
    write_at(fd, SETTLED, place)


def record_at(fd: int, place: int) -> bytes | None:
    """Return the JSON of the record at ``place``; None if there is none, or it is settled."""
    line = os.pread(fd, _HEAD + LONGEST + 1, place)
    return dict(pending(line)).get(0)


def read_all(fd: int) -> bytes:
    """Return the whole content of a journal."""
    pieces, position = [], 0
    while piece := os.pread(fd, 1 << 20, position):
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def write_at(fd: int, data: bytes, position: int) -> None:
    """Write all of ``data``. Raises OSError."""
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, position)
        left, position = left[written:], position + written


def sync_folder(path: str) -> None:
    """Make the names in a folder durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
