"""Lines of an attempt's log: those that the worker adds, and the one that explains a failure."""

import errno
import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from shoal.core.errors import shortened

_MOST_NAMES = 20
_READ = 16 * 1024  # bytes, of the end
_LONGEST = 300  # characters
_OWN = "shoal: "
# How Python and Java call what went wrong, as ``KeyError: 'a'``, perhaps with the name of a thread
# or a package before it. Behind it programs still clean up, and say so.
_ERROR = re.compile(r"(?:^|[\s.])[A-Z]\w*(?:Error|Exception)(?::|$)")


def in_file_only(name: str, size: int) -> str:
    """Return the line about a parameter that fits into no environment variable."""
    return (
        f"shoal: the parameter {name} is not an environment variable (its {size:,} bytes are too "
        "many, or hold a NUL character); it is in the JSON file $SHOAL_PARAMETERS"
    )


def environment_used(label: str) -> str:
    """Return the line about the environment that an attempt runs in, NAME@VERSION."""
    return f"shoal: environment: {label}"


def resources_used(names: Sequence[str]) -> str:
    """Return the line about the resources that an attempt gets, as PATH@VERSION."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"shoal: resources: {', '.join(names[:_MOST_NAMES])}{more}"


def handed_over(paths: Mapping[str, str]) -> str:
    """Return the line about files that an attempt hands over: resources' paths by files' names."""
    names = [file if file == path else f"{file} as {path}" for file, path in sorted(paths.items())]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"shoal: handed over: {', '.join(names[:_MOST_NAMES])}{more}"


def append_line(path: Path, line: str) -> None:
    """Add a line to a log that the launcher may have begun. Blocks. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "ab") as file:
        file.write(line.encode("utf-8", "replace") + b"\n")


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
