"""The author's own files: the line that called the SDK, and programs of tasks beside it."""

import sys
from pathlib import Path

from shoal.runtime.documents.source import SourcePosition

_OURS = "shoal.client."


def call_site() -> SourcePosition:
    """Return the innermost line outside this package that led here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return SourcePosition(frame.f_code.co_filename, frame.f_lineno)


MAX_SCRIPT_BYTES = 2**20


def read_script(file: Path) -> str:
    """Return the text of a program. Raises ValueError that says what is wrong with the file."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_SCRIPT_BYTES + 1)
    except FileNotFoundError:
        raise ValueError(f"there is no file {file}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{file} cannot be read: {reason}") from None
    if len(content) > MAX_SCRIPT_BYTES:
        raise ValueError(f"{file} is larger than {MAX_SCRIPT_BYTES // 2**20} MiB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{file} is not UTF-8 text: line {line}") from None
