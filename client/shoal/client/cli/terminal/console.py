"""A console on which no text can be a command to the terminal.

Names, reasons, descriptions, outputs: much of what is shown was written by others. All of it comes
through here on its way to the screen, so nobody who prints something has to think of it.
"""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from shoal.client.cli.terminal.text import harmless


class HarmlessConsole(Console):
    """Strips control sequences from whatever is rendered; its own colours is not text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of ``renderable``."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(harmless(segment.text).replace("\r", ""), segment.style)
