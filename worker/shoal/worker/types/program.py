"""What the task types have in common: program texts, arguments, and which users may run them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from shoal.core.errors import ShoalError
from shoal.core.task_types import CommandLine, Script
from shoal.worker.execution.work_files import write_new


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


def placeholders_left(texts: Sequence[str]) -> list[str]:
    """Return those that still contain ``${…}`` or ``$[…]``, which no master has rendered."""
    return [text for text in texts if "${" in text or "$[" in text]
