"""Output of the CLI on a terminal without colours."""

import io
from typing import Any

from rich.console import Console


def shown(renderable: Any, width: int = 200) -> list[str]:
    """The lines on a terminal without colours."""
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]
