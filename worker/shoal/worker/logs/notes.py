"""Lines that the worker itself adds to the log of an attempt."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

_MOST_NAMES = 20


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
