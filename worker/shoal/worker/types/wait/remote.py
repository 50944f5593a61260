"""What is at a URL of a storage: S3, HDFS."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.wait.kind import WILD
from shoal.worker.types.wait.local import MOST_MATCHES
from shoal.worker.types.wait.roots import Roots
from shoal.worker.types.wait.verdict import Found

_EXTRAS = {"s3": "s3", "s3a": "s3", "hdfs": "hdfs", "webhdfs": "hdfs"}
_TIMES = ("LastModified", "mtime", "modificationTime", "modified", "last_modified")


class StorageTrouble(Exception):
    """The storage has not answered as it should; that may pass."""


def entries(url: str, roots: Roots) -> list[Found]:
    """Return what is at a URL, or matches it. Blocks. Raises WorkFailed, StorageTrouble."""
    from fsspec.core import url_to_fs

    roots.require_url(url)
    protocol = url.partition("://")[0]
    options = {"skip_instance_cache": True}
    if protocol in ("s3", "s3a"):
        options["use_listings_cache"] = False
    try:
        files, path = url_to_fs(url, **options)
    except ImportError as error:
        text = f"{protocol}: {error}; install it on the worker: pip install 'shoal"
        raise WorkFailed(f"{text}[{_EXTRAS[protocol]}]'") from error
    try:
        if WILD.search(path):
            found: Mapping[str, Mapping[str, Any]] = files.glob(path, detail=True)
        else:
            found = {path: files.info(path)}
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise WorkFailed(f"{url}: the worker may not look there: {error}", permanent=True) from None
    except Exception as error:  # drivers raise whatever their libraries do
        said = str(error).strip() or type(error).__name__
        raise StorageTrouble(f"{url}: {said}") from error
    if len(found) > MOST_MATCHES:
        text = f"{url} matches more than {MOST_MATCHES:,} names; say more exactly what counts"
        raise WorkFailed(text, permanent=True)
    root = url[: len(url) - len(path)] if url.endswith(path) else f"{protocol}://"
    return [_found(root + name, info) for name, info in found.items()]


def _found(path: str, info: Mapping[str, Any]) -> Found:
    is_folder = info.get("type") == "directory"
    return Found(path, int(info.get("size") or 0), _changed_at(info), is_folder)


def _changed_at(info: Mapping[str, Any]) -> float | None:
    for name in _TIMES:
        match info.get(name):
            case datetime() as moment:
                return moment.timestamp()
            case int() | float() as number:
                # WebHDFS counts milliseconds.
                return number / 1000 if name == "modificationTime" else float(number)
            case _:
                continue
    return None
