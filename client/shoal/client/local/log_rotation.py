"""Logs of processes that write on: copied and emptied, since their writers keep them open."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 16 * 2**20


def rotate(log: Path, most_bytes: int = MOST_BYTES) -> bool:
    """Copy a log that has become too long to ``<name>.1`` and empty it; return whether it was.

    Its writer has opened it for appending, so what comes next stands at its beginning.
    Lines written between the last read and the emptying are lost: microseconds. The older copy is
    overwritten. On a full disk there is no copy, and the log is emptied all the same.
    """
    try:
        if log.stat().st_size <= most_bytes:
            return False
    except OSError:
        return False
    kept = log.with_name(f"{log.name}.1")
    with suppress(OSError):
        _copy(log, kept)
    with suppress(OSError):
        os.truncate(log, 0)
        return True
    return False


def _copy(log: Path, kept: Path) -> None:
    """Copy until nothing comes any more."""
    try:
        with log.open("rb") as source, kept.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            while piece := source.read():
                target.write(piece)
    except OSError:
        kept.unlink(missing_ok=True)  # half of it would only fill the disk
        raise
