"""Where the contents of resources are kept: a folder, S3, HDFS … whatever fsspec can reach.

Objects have names made of a project's and a random part; they are written once and never changed.
Everything here blocks. Drivers of storages other than a folder are imported at their first use.
"""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shoal.core.errors import ShoalError
from shoal.runtime.settings import ClusterSettings

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: Bytes that are read or written in one piece.
PIECE = 1 << 20
# A name comes out of the database: nothing in it leads out of the storage.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}/[0-9a-f]{32}")
_EXTRAS = {"s3": "s3", "s3a": "s3", "hdfs": "hdfs", "webhdfs": "hdfs"}


class StorageError(ShoalError):
    """The storage of resources cannot be used."""

    def __init__(self, url: str, what: str, why: object) -> None:
        said = str(why).strip() or type(why).__name__
        super().__init__(
            f"cannot {what} in the storage of resources, {url}: {said}; it is the setting "
            "resources_url, and every API and worker must reach it"
        )


class ObjectMissing(StorageError):
    """The storage does not have an object that the database names."""


class Storage:
    """The storage at a URL, such as /srv/shoal/resources, s3://bucket/folder, webhdfs://host/…"""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: tuple[AbstractFileSystem, str] | None = None

    @classmethod
    def of(cls, cluster: ClusterSettings) -> "Storage":
        """Return the storage that the settings name."""
        return cls(cluster.resources)

    @staticmethod
    def new_name(project: str) -> str:
        """Return a name that no object has."""
        return f"{project}/{uuid.uuid4().hex}"

    @contextmanager
    def writing(self, name: str) -> Iterator["Writer"]:
        """Open a new object. It is complete and durable when the block has ended well.

        After an exception in the block some of it may be there: ``remove`` it. Raises StorageError.
        """
        what = f"write {name}"
        with _telling(self.url, what):
            files, path = self._at(name)
            is_local = "file" in files.protocol
            if is_local:
                Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = files.open(path, "wb")
        try:
            yield _Told(file, self.url, what)
        except BaseException:
            with suppress(Exception):
                _abandon(file)
            raise
        with _telling(self.url, what):
            if is_local:
                _make_durable(file, Path(path).parent)
            file.close()

    @contextmanager
    def reading(self, name: str) -> Iterator["Reader"]:
        """Open an object. Raises ObjectMissing, StorageError."""
        what = f"read {name}"
        with _telling(self.url, what):
            files, path = self._at(name)
            file = files.open(path, "rb")
        try:
            yield _Told(file, self.url, what)
        finally:
            with suppress(Exception):
                file.close()

    def remove(self, name: str) -> None:
        """Remove an object, which may be gone already. Raises StorageError."""
        with _telling(self.url, f"remove {name}"):
            files, path = self._at(name)
            with suppress(FileNotFoundError):
                files.rm_file(path)

    def _at(self, name: str) -> tuple["AbstractFileSystem", str]:
        """Return the file system, and an object's path there. Raises ObjectMissing."""
        if not _NAME.fullmatch(name):
            raise ObjectMissing(self.url, "work", f"{name!r:.200} is no name of an object")
        if self._opened is None:
            self._opened = self._open()
        files, root = self._opened
        return files, f"{root.rstrip('/')}/{name}"

    def _open(self) -> tuple["AbstractFileSystem", str]:
        from fsspec.core import url_to_fs

        protocol = self.url.partition("://")[0] if "://" in self.url else ""
        # Others write there, too: what was listed once must not be believed later.
        options = {"skip_instance_cache": True}
        if protocol in ("s3", "s3a"):
            options["use_listings_cache"] = False
        try:
            files, root = url_to_fs(self.url, **options)
        except ImportError as error:
            extra = _EXTRAS.get(protocol)
            hint = f"; `pip install shoal[{extra}]`" if extra else ""
            raise StorageError(self.url, "work", f"{error}{hint}") from error
        return files, str(root)


class Reader(Protocol):
    """An object that is being read."""

    def read(self, size: int) -> bytes: ...


class Writer(Protocol):
    """An object that is being written."""

    def write(self, data: bytes) -> int: ...


class _Told:
    """A file whose errors say which storage it is about."""

    def __init__(self, file: Any, url: str, what: str) -> None:
        self._file, self._url, self._what = file, url, what

    def read(self, size: int) -> bytes:
        with _telling(self._url, self._what):
            return bytes(self._file.read(size))

    def write(self, data: bytes) -> int:
        with _telling(self._url, self._what):
            return int(self._file.write(data))


@contextmanager
def _telling(url: str, what: str) -> Iterator[None]:
    """Raise what drivers raise as errors of ours."""
    try:
        yield
    except ShoalError:
        raise
    except FileNotFoundError as error:
        raise ObjectMissing(url, what, "it is not there") from error
    except Exception as error:  # drivers raise whatever their libraries do
        raise StorageError(url, what, error) from error


def _abandon(file: Any) -> None:
    """Close a file without completing it, where that is a difference."""
    if hasattr(file, "_upload_chunk"):  # a buffer; to close it would complete the object
        file.discard()
        file.closed = True
    else:
        file.close()


def _make_durable(file: Any, folder: Path) -> None:
    file.flush()
    os.fsync(file.fileno())
    entry = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)
