"""Where output goes: results on standard output, everything said on the way on standard error.

Files and pipes get plain lines that are never cut; terminals get colours (unless ``NO_COLOR`` is
set) and their own width.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from shoal.core.errors import ShoalError

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.progress import Progress

_C1 = re.compile(r"[\x7f-\x9f]")  # what JSON does not escape, and terminals may obey
# Wide enough for any line: only terminals have an edge.
_NO_EDGE = 10_000


@cache
def out() -> "Console":
    """The console of results."""
    return _console(stderr=False)


@cache
def err() -> "Console":
    """The console of messages, progress and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> "Console":
    """Return a console on which no text can be a command to the terminal.

    Names, reasons, descriptions and outputs were written by others. All of them pass through here,
    so that no command has to remove control sequences itself.
    """
    from rich.console import Console
    from rich.segment import Segment

    from shoal.client.cli.terminal.appearance import harmless

    class HarmlessConsole(Console):
        """Strips control sequences from rendered text; its own colours are not text."""

        def render(
            self, renderable: "RenderableType", options: "ConsoleOptions | None" = None
        ) -> "Iterable[Segment]":
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(harmless(segment.text).replace("\r", ""), segment.style)

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _NO_EDGE
    return HarmlessConsole(stderr=stderr, width=width, highlight=False, emoji=False)


def print_json(value: Any) -> None:
    """Print a result for programs."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(_C1.sub(lambda found: f"\\u{ord(found[0]):04x}", text), flush=True)


def print_result(text: str, document: Any, *, as_json: bool) -> None:
    """Print a result: ``text`` for people, ``document`` for programs."""
    if as_json:
        print_json(document)
    else:
        out().print(text)


def say(text: str, style: str = "") -> None:
    """Print a message that is not a result."""
    from rich.text import Text

    err().print(Text(text, style), soft_wrap=True)


def tell_error(error: ShoalError) -> None:
    """Print an error in words."""
    from rich.text import Text

    text = Text.assemble(("error: ", "bold red"), str(error))
    err().print(text, soft_wrap=True)


@contextmanager
def progress(what: str, *, in_bytes: bool = False) -> Iterator["Progress"]:
    """Show a bar on standard error while the block runs; nothing where there is no terminal."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn(what), BarColumn(bar_width=30), count, TimeRemainingColumn())
    with Progress(*columns, console=err(), transient=True, disable=not err().is_terminal) as shown:
        yield shown
