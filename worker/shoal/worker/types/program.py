"""What the task types have in common: programs as texts and as resources, and arguments."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from shoal.core.definition.resources import FileReference, local_path
from shoal.core.errors import ShoalError
from shoal.core.task_types import CommandLine, ResourceName, Script
from shoal.worker.processes.work_files import write_new

LARGEST_TEXT = 8 << 20  # bytes of a resource that is read as a program text


class CannotRun(ShoalError):
    """The program of a task cannot be started on this worker; the text says what is missing."""


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain the NUL character: no program could receive it")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty: there is nothing to run")
    return text


def _no_option(text: str) -> str:
    if text.startswith("-"):
        raise ValueError(f"{text!r} starts with a dash: it could be taken for an option")
    return text


# A program text that must say something.
Program = Annotated[Script, AfterValidator(_no_nul), AfterValidator(_not_blank)]
# A resource of the project instead.
ProgramFile = Annotated[
    FileReference | None,
    Field(
        description="Instead of the text: a resource of the project, PATH or PATH@VERSION. Nothing "
        "is rendered in it; its parameters are variables, as for the text.",
    ),
    ResourceName(),
    CommandLine(),
]
# One argument for a program. It arrives character by character, no shell ever reads it.
Argument = Annotated[str, AfterValidator(_no_nul)]
Arguments = Annotated[
    tuple[Argument, ...],
    Field(description="Arguments of the program, each passed as it is."),
    CommandLine(),
]
# A value in a place where options are read too.
Plain = Annotated[Argument, AfterValidator(_no_option), CommandLine()]


def write_program(folder: Path, name: str, text: str) -> Path:
    """Write ``text`` to a new file that only its owner can read and run. Raises OSError.

    The bytes are the text's in UTF-8, line ends included.
    """
    path = folder / name
    write_new(path, text.encode("utf-8"), 0o700)
    return path


def require_one(text: str | None, file: str | None, name: str = "script") -> None:
    """Raise ValueError unless a program is given in one of the two ways."""
    if (text is None) == (file is None):
        raise ValueError(f"give exactly one of {name} and file")


def program(folder: Path, name: str, text: str | None, file: str | None) -> Path:
    """Return where an attempt's program is: its text in a new file, or the resource. Blocks.

    Raises OSError.
    """
    return write_program(folder, name, text or "") if file is None else folder / local_path(file)


def beginning(path: Path) -> str:
    """Return the first part of a program, whatever it holds. Blocks. Raises OSError."""
    with path.open("rb") as file:
        # A read of at most so many bytes takes memory for all of them at once.
        size = os.fstat(file.fileno()).st_size
        return file.read(min(size, LARGEST_TEXT)).decode("utf-8", "replace")


def program_text(folder: Path, text: str | None, file: str | None) -> str:
    """Return the text of an attempt's program. Blocks. Raises CannotRun, OSError."""
    if file is None:
        return text or ""
    path = folder / local_path(file)
    if (size := path.stat().st_size) > LARGEST_TEXT:
        raise CannotRun(f"{file} has {size >> 20} MiB: too large for a program text")
    try:
        found = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CannotRun(f"{file} is not UTF-8 text: {error}") from None
    if not found.strip():
        raise CannotRun(f"{file} is empty: there is nothing to run")
    if "\0" in found:
        raise CannotRun(f"{file} holds the NUL character: no program could receive it")
    return found


def placeholders_left(texts: Sequence[str]) -> list[str]:
    """Return those that still contain ``${…}`` or ``$[…]``, which no master has rendered."""
    return [text for text in texts if "${" in text or "$[" in text]
