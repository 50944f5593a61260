"""The body of an answer on its way into a file: counted, unpacked, never longer than allowed.

Shoal asks for bodies as they are. A server that compresses all the same is understood if it says
gzip; what is unpacked counts, and unpacking stops at the limit. In memory there is one piece.
"""

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, Self

_PIECE = 1 << 16  # bytes
_GZIP = zlib.MAX_WBITS | 16


class BodyRefused(Exception):
    """The body is too long, or packed in a way that is not understood; the text says so."""


class Unpacker(Protocol):
    """Takes a body's bytes as they come, yields them as they are meant."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds. Raises BodyRefused."""
        ...

    def finish(self) -> None:
        """The body is over. Raises BodyRefused if something is missing."""
        ...


def unpacker(encoding: str) -> Unpacker:
    """Return what unpacks a body with this Content-Encoding. Raises BodyRefused."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return Plain()
    if name in ("gzip", "x-gzip"):
        return Gunzip()
    raise BodyRefused(
        f"the server sends the body with Content-Encoding {name[:40]}, though it was asked for "
        "without; only gzip is understood"
    )


class Plain:
    """Leaves a body as it is."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """See Unpacker."""
        yield data

    def finish(self) -> None:
        """See Unpacker."""


class Gunzip:
    """Unpacks gzip, of several members too, in pieces of a bounded size."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """See Unpacker."""
        self._begun = self._begun or bool(data)
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            try:
                piece = self._member.decompress(data, _PIECE)
            except zlib.error:
                raise BodyRefused("the server says gzip, but the body is not") from None
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            yield piece

    def finish(self) -> None:
        """See Unpacker."""
        if self._begun and not self._member.eof:
            raise BodyRefused("the body is gzip that ends too early")


class BodyFile:
    """Writes a body of at most ``most`` bytes into a new file. Its block closes it."""

    def __init__(self, path: Path, most: int, encoding: str, *, hashed: bool) -> None:
        self.size = 0
        self._most = most
        self._unpacker = unpacker(encoding)
        self._digest = hashlib.sha256() if hashed else None
        self._file = path.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, data: bytes) -> None:
        """Take what has come. Raises BodyRefused, OSError."""
        for piece in self._unpacker.pieces(data):
            self.size += len(piece)
            self.require_room(self.size)
            self._file.write(piece)
            if self._digest is not None:
                self._digest.update(piece)

    def finish(self) -> None:
        """The body is over. Raises BodyRefused."""
        self._unpacker.finish()

    def require_room(self, size: int) -> None:
        """Raise BodyRefused if a body may not have so many bytes."""
        if size > self._most:
            raise BodyRefused(
                f"the body is longer than {self._most:,} bytes; max_body says how long it may be"
            )

    @property
    def sha256(self) -> str:
        """Of all bytes so far, in hexadecimal digits; empty if it is not ``hashed``."""
        return self._digest.hexdigest() if self._digest is not None else ""
