"""The keys of the secrets: a file with a key a line, which others on the machine cannot read.

A key's id is a digest of it, so no two keys have the same id, whatever machine they are on. The
first line is the key that a cluster begins with; which one encrypts later stands in the database.
"""

import base64
import binascii
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE

from shoal.core.errors import ShoalError
from shoal.runtime import failpoints

KEY_BYTES = 32
_ID_DIGITS = 12
_FORBIDDEN = 0o037  # others: nothing; the group may read (mounted files), and not write


class VaultError(ShoalError):
    """Secrets cannot be encrypted or decrypted."""


class NoSecretsKey(VaultError):
    """There is no key to encrypt or decrypt secrets with."""

    def __init__(self, file: Path, why: str) -> None:
        self.file = file
        super().__init__(
            f"cannot use the key of the secrets in {file}: {why}; `shoal up` makes one in the data "
            "folder; for other clusters make one with `openssl rand -base64 32`, give the file to "
            "every master and API, and name it in the setting secrets_key"
        )


class KeyFileOpen(VaultError):
    """Others may read the keys."""

    def __init__(self, file: Path, mode: int) -> None:
        self.file = file
        super().__init__(
            f"others may read the keys of the secrets in {file} (mode {mode:03o}), so they are "
            f"not used; run: chmod 600 '{file}', and if another person may have read it, "
            "`shoal secrets rotate`"
        )


def key_id(key: bytes) -> str:
    """Return what a key is called."""
    return hashlib.sha256(b"shoal key id\0" + key).hexdigest()[:_ID_DIGITS]


class KeyFile:
    """The keys in one file. It is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._keys: dict[str, bytes] = {}

    def keys(self) -> Mapping[str, bytes]:
        """Return the keys that are in the file now, by id, in its order.

        Blocks for the file. Raises NoSecretsKey, KeyFileOpen.
        """
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._stamp:
                self._keys, self._stamp = self._read(found.st_mode), stamp
        except OSError as error:
            raise NoSecretsKey(self.path, error.strerror or str(error)) from error
        return self._keys

    def add(self, key: bytes) -> str:
        """Add a key behind the others, durably; return its id. Raises as ``keys``, and OSError."""
        with self._locked():
            keys = self.keys()
            made = key_id(key)
            if made not in keys:
                _replace(self.path, [*keys.values(), key])
        return made

    def retire(self, ids: Iterable[str]) -> list[str]:
        """Move keys into the file ….retired, which nothing reads; return those that were here.

        Raises as ``keys``, and OSError.
        """
        with self._locked():
            keys = self.keys()
            gone = [one for one in ids if one in keys]
            if gone:
                aside = KeyFile(self.path.with_name(f"{self.path.name}.retired"))
                kept = aside.keys() if aside.path.exists() else {}
                _replace(aside.path, {**kept, **{one: keys[one] for one in gone}}.values())
                failpoints.hit("rotate.between_key_files")
                _replace(self.path, [key for one, key in keys.items() if one not in gone])
        return gone

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing the file; on the folder, for the file is replaced."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _read(self, mode: int) -> dict[str, bytes]:
        if S_IMODE(mode) & _FORBIDDEN:
            raise KeyFileOpen(self.path, S_IMODE(mode))
        keys = [_decoded(line) for line in self.path.read_bytes().splitlines() if line.strip()]
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise NoSecretsKey(self.path, f"it does not hold {KEY_BYTES} bytes in base64 a line")
        return {key_id(key): key for key in keys}


def create_key(file: Path) -> None:
    """Make a random key in ``file`` (0600), unless it is there already."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = _written(file, [os.urandom(KEY_BYTES)])
    try:
        os.link(temporary, file)  # never over an existing one: its secrets would be lost
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _decoded(line: bytes) -> bytes:
    try:
        return base64.b64decode(line.strip(), validate=True)
    except (ValueError, binascii.Error):
        return b""


def _replace(file: Path, keys: Iterable[bytes]) -> None:
    os.replace(_written(file, keys), file)
    descriptor = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _written(file: Path, keys: Iterable[bytes]) -> Path:
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.writelines(base64.b64encode(key) + b"\n" for key in keys)
        out.flush()
        os.fsync(out.fileno())
    return temporary
