"""Files of the worker: databases, and the certificates that libraries take from a file only."""

import re
import tempfile
from pathlib import Path

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.failures import cannot_connect

MEMORY = ":memory:"
_ODD = re.compile(
    r"[\x00-\x1f?#]"
)  # the drivers, or what they are made of, would read more into it


def is_read_only(source: DataSource, *, read_only: bool) -> bool:
    """Return whether a file is only to be read: the task says so, or the data source."""
    return read_only or bool(source.options.get("read_only", False))


def database_file(source: DataSource, *, read_only: bool) -> Path | None:
    """Return the file that a data source names; None: a database in memory, gone with the session.

    A path must say by itself which file it means: absolute, without ``~`` or variables, and no
    URI, whose parameters could mean another file. A file that is not there is made, in a folder
    that is, unless it is only to be read. Raises WorkFailed.
    """
    name = source.database
    if name == MEMORY:
        return None
    path = Path(name)
    if not path.is_absolute() or ".." in path.parts or _ODD.search(name):
        raise _bad(
            source, f"the database must be the absolute path of a file, or {MEMORY}: {name!r}"
        )
    if path.is_dir():
        raise _bad(source, f"{name} is a folder: name the file in it")
    if path.exists():
        return path
    if read_only:
        raise _bad(source, f"there is no file {name} on this worker")
    if not path.parent.is_dir():
        raise _bad(source, f"there is no folder {path.parent} on this worker: create it there")
    return path


def _bad(source: DataSource, reason: str) -> WorkFailed:
    return cannot_connect(source, reason, permanent=True)


def authority_file(source: DataSource) -> str | None:
    """Return a file with the CA certificate of a data source; None if it has none.

    The file is in the attempt's folder, and is removed with it.
    """
    certificate = source.options.get("ca_certificate")
    if not certificate:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".pem", dir=Path.cwd(), delete=False) as file:
        file.write(str(certificate))
    return file.name
