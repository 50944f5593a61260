"""The line of a log that says most about a failure: what a program has said last."""

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from shoal.core.errors import shortened

_READ = 16 * 1024  # bytes, of the end
_LONGEST = 300  # characters
_OWN = "shoal: "
# How Python and Java call what went wrong, as ``KeyError: 'a'``, perhaps with the name of a thread
# or a package before it. Behind it programs still clean up, and say so.
_ERROR = re.compile(r"(?:^|[\s.])[A-Z]\w*(?:Error|Exception)(?::|$)")


def last_line(log: Path) -> str:
    """Return the last line that names an error, else the last with text; "" if none. Blocks.

    Lines of Shoal's own, which begin with its name, are none of the program's.
    """
    lines: list[str] = []
    with suppress(OSError), open(log, "rb", opener=_opened) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _READ))
        lines = file.read(_READ).decode("utf-8", "replace").splitlines()
    plain = [_plain(line) for line in lines]
    said = [line for line in plain if line and not line.startswith(_OWN)]
    errors = [line for line in said if _ERROR.search(line)]
    return shortened((errors or said or [""])[-1], _LONGEST)


def _opened(path: str, flags: int) -> int:
    """Open a log that its task may have replaced: a named pipe there would wait for ever."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)


def _plain(line: str) -> str:
    """Return a line without what would steer a terminal, white space made single spaces."""
    return " ".join("".join(c if c.isprintable() else " " for c in line).split())
