"""Where the contents of resources and finished logs are kept: a folder, S3, HDFS … whatever
fsspec can reach.

Everything here blocks. Drivers of storages other than a folder are imported at their first use.
"""

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self

from shoal.core.errors import ShoalError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

    from shoal.runtime.settings import ClusterSettings  # costs a helper 0.1 s

#: Bytes that are read or written in one piece.
PIECE = 1 << 20
_COPY = 4 << 20  # bytes of a file that are copied at once
_EXTRAS = {"s3": "s3", "s3a": "s3", "hdfs": "hdfs", "webhdfs": "hdfs"}


@dataclass(frozen=True)
class Purpose:
    """What a storage holds, the setting that names it, and what its objects are called.

    Names come out of the database or from outside: nothing in one leads out of the storage.
    """

    what: str
    setting: str
    names: re.Pattern[str]


#: The folder of the cluster that has written it ("owner"), a project's name, and a random part:
#: written once and never changed. Names of version 0.1.0 have no folder.
RESOURCES = Purpose(
    "resources",
    "resources_url",
    re.compile(r"(?:(?P<owner>[0-9a-f]{32})/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,99}/[0-9a-f]{32}"),
)


#: For callers that only list the history: no object is read or written with it.
LISTED_HISTORY = Purpose("the exported history", "history_url", re.compile(r"(?!)"))


def cluster_folder(uid: str) -> str:
    """Return the folder of a cluster in a storage that clusters may share, whatever its uid is."""
    return hashlib.sha256(uid.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class StorageLimits:
    """What may be stored, in bytes: of one file, and of all versions of a project's files."""

    file: int
    project: int

    @classmethod
    def of(cls, cluster: "ClusterSettings") -> Self:
        """Return the limits of the settings."""
        return cls(cluster.resource_mb << 20, cluster.resource_project_mb << 20)


class StorageError(ShoalError):
    """A storage cannot be used."""

    def __init__(self, storage: "Storage", what: str, why: object) -> None:
        said = str(why).strip() or type(why).__name__
        purpose = storage.purpose
        super().__init__(
            f"cannot {what} in the storage of {purpose.what}, {storage.url}: {said}; it is the "
            f"setting {purpose.setting}, and every API, worker and master must reach it"
        )


class ObjectMissing(StorageError):
    """The storage does not have an object that the database names."""


class Storage:
    """The storage at a URL, such as /srv/shoal/resources, s3://bucket/folder, webhdfs://host/…"""

    def __init__(self, url: str, purpose: Purpose = RESOURCES) -> None:
        self.url, self.purpose = url, purpose
        self._opened: tuple[AbstractFileSystem, str] | None = None

    @classmethod
    def of(cls, cluster: "ClusterSettings") -> "Storage":
        """Return the storage of resources that the settings name."""
        return cls(cluster.resources)

    @staticmethod
    def new_name(project: str, cluster: str) -> str:
        """Return a name that no object has, of the cluster with this uid."""
        return f"{cluster_folder(cluster)}/{project}/{uuid.uuid4().hex}"

    @staticmethod
    def name_for(project: str, cluster: str, task_instance_id: int, number: int) -> str:
        """Return the name of the object that an attempt writes for its file of this number.

        It is always the same, and no other cluster's. ``cluster``: the uid.
        """
        told = json.dumps([cluster, task_instance_id, number]).encode()
        return f"{cluster_folder(cluster)}/{project}/{hashlib.sha256(told).hexdigest()[:32]}"

    @contextmanager
    def writing(self, name: str) -> Iterator["Writer"]:
        """Open a new object. It is complete and durable when the block has ended well.

        After an exception in the block some of it may be there: ``remove`` it. Raises StorageError.
        """
        what = f"write {name}"
        with _telling(self, what):
            files, path = self._at(name)
        with self._writing(files, path, what) as file:
            yield file

    @contextmanager
    def _writing(self, files: "AbstractFileSystem", path: str, what: str) -> Iterator["Writer"]:
        with _telling(self, what):
            if _is_local(files):
                _make_private(Path(path).parent, Path(self._files()[1]))
            file = files.open(path, "wb")
        try:
            yield _Told(file, self, what)
        except BaseException:
            with suppress(Exception):
                _abandon(file)
            raise
        with _telling(self, what):
            if _is_local(files):
                _make_durable(file, Path(path).parent)
            file.close()

    @contextmanager
    def reading(self, name: str) -> Iterator["RangeReader"]:
        """Open an object. Raises ObjectMissing, StorageError."""
        what = f"read {name}"
        with _telling(self, what):
            files, path = self._at(name)
            file = files.open(path, "rb")
        try:
            yield _Told(file, self, what)
        finally:
            with suppress(Exception):
                file.close()

    def remove(self, name: str) -> None:
        """Remove an object, which may be gone already. Raises StorageError."""
        with _telling(self, f"remove {name}"):
            files, path = self._at(name)
            with suppress(FileNotFoundError):
                files.rm_file(path)

    def put(self, name: str, source: BinaryIO) -> int:
        """Write an object from a file, complete or not at all, over the one that there may be.

        Returns its bytes. Raises StorageError; OSError if the file cannot be read.
        """
        what = f"write {name}"
        with _telling(self, what):
            files, path = self._at(name)
        # An object of S3 is there when it has been closed, and not before.
        part = path if _is_s3(files) else f"{path}.{uuid.uuid4().hex}.part"
        size = 0
        try:
            with self._writing(files, part, what) as file:
                while piece := source.read(_COPY):
                    size += file.write(piece)
            if part != path:
                with _telling(self, what):
                    _rename(files, part, path)
        except BaseException:
            if part != path:
                with suppress(Exception):
                    files.rm_file(part)
            raise
        return size

    def size(self, name: str) -> int:
        """Return the bytes of an object. Raises ObjectMissing, StorageError."""
        with _telling(self, f"read {name}"):
            files, path = self._at(name)
            return int(files.info(path)["size"])

    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``. Raises ObjectMissing, StorageError."""
        if start >= end:
            return b""
        with _telling(self, f"read {name}"):
            files, path = self._at(name)
            return bytes(files.cat_file(path, start=start, end=end))

    def names_in(self, folder: str) -> list[str]:
        """Return the names of what lies in a folder, which need not be there.

        ``folder``: a path of the caller's making. Raises StorageError.
        """
        with _telling(self, f"list {folder}"):
            files, root = self._files()
            try:
                found = files.ls(f"{root}/{folder}", detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
            return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def written_s(self, folder: str) -> float | None:
        """Return when the newest object of a folder was written, in seconds since 1970.

        None: there is none, or the storage does not tell. Raises StorageError.
        """
        with _telling(self, f"list {folder}"):
            files, root = self._files()
            try:
                found = [_written_s(one) for one in files.ls(f"{root}/{folder}", detail=True)]
            except (FileNotFoundError, NotADirectoryError):
                return None
            return max((one for one in found if one is not None), default=None)

    def remove_folder(self, folder: str) -> None:
        """Remove all in a folder, which need not be there. Raises StorageError."""
        with _telling(self, f"remove {folder}"):
            files, root = self._files()
            with suppress(FileNotFoundError):
                if not _is_s3(files):
                    files.rm(f"{root}/{folder}", recursive=True)
                    return
                for path in files.find(f"{root}/{folder}"):  # rm() would read [ in it as a pattern
                    files.rm_file(path)

    def _at(self, name: str) -> tuple["AbstractFileSystem", str]:
        """Return the file system, and an object's path there. Raises ObjectMissing."""
        if not self.purpose.names.fullmatch(name):
            raise ObjectMissing(self, "work", f"{name!r:.200} is not a name of an object")
        files, root = self._files()
        return files, f"{root}/{name}"

    def _files(self) -> tuple["AbstractFileSystem", str]:
        """Return the file system, and the path of the storage there."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

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
            raise StorageError(self, "work", f"{error}{hint}") from error
        return files, str(root).rstrip("/")


class RangeReader(Protocol):
    """An object that is being read."""

    def read(self, size: int) -> bytes: ...


class Writer(Protocol):
    """An object that is being written."""

    def write(self, data: bytes) -> int: ...


class _Told:
    """A file whose errors say which storage it is about."""

    def __init__(self, file: Any, storage: Storage, what: str) -> None:
        self._file, self._storage, self._what = file, storage, what

    def read(self, size: int) -> bytes:
        with _telling(self._storage, self._what):
            return bytes(self._file.read(size))

    def write(self, data: bytes) -> int:
        with _telling(self._storage, self._what):
            return int(self._file.write(data))


@contextmanager
def _telling(storage: Storage, what: str) -> Iterator[None]:
    """Raise what drivers raise as errors of ours."""
    try:
        yield
    except ShoalError:
        raise
    except FileNotFoundError as error:
        raise ObjectMissing(storage, what, "it is not there") from error
    except Exception as error:  # drivers raise whatever their libraries do
        raise StorageError(storage, what, error) from error


def _written_s(info: dict[str, Any]) -> float | None:
    """Return when a file was written, as folders, S3 and HDFS tell it."""
    if "mtime" in info:
        return float(info["mtime"])
    if (at := info.get("LastModified")) is not None:
        return float(at.timestamp())
    if "modificationTime" in info:
        return float(info["modificationTime"]) / 1000
    return None


def _make_private(folder: Path, root: Path) -> None:
    """Make a folder below ``root``, and those on the way, for this user alone."""
    if folder == root or root not in folder.parents:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    _make_private(folder.parent, root)
    folder.mkdir(mode=0o700, exist_ok=True)


def _is_local(files: "AbstractFileSystem") -> bool:
    return "file" in files.protocol


def _is_s3(files: "AbstractFileSystem") -> bool:
    return "s3" in files.protocol


def _rename(files: "AbstractFileSystem", part: str, path: str) -> None:
    if _is_local(files):
        os.replace(part, path)
        _sync_folder(Path(path).parent)
        return
    with suppress(FileNotFoundError):
        files.rm_file(path)  # others do not rename over what is there
    files.mv(part, path)


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
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    entry = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)
