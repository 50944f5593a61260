"""Lines that the worker itself adds to the log of an attempt."""

import os
from pathlib import Path


def in_file_only(name: str, size: int) -> str:
    """Return the line about a parameter that fits into no environment variable."""
    return (
        f"shoal: the parameter {name} is no environment variable (its {size:,} bytes are too many, "
        "or hold a NUL character); it is in the JSON file $SHOAL_PARAMETERS"
    )


def append_line(path: Path, line: str) -> None:
    """Add a line to a log that the launcher may have begun. Blocks. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "ab") as file:
        file.write(line.encode("utf-8", "replace") + b"\n")
