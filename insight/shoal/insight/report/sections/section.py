"""What a section is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from shoal.insight.pages.document import Cell, table


@dataclass(frozen=True)
class Section:
    """A section; ``body`` is HTML."""

    key: str
    heading: str
    lead: str
    body: Sequence[str]


def plural(count: int, noun: str) -> str:
    """Return "1 workflow" or "2 workflows"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def folded(
    summary: str, caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> Iterator[str]:
    """Yield a table that opens when it is asked for."""
    yield f"<details><summary>{escape(summary)}</summary>"
    yield from table(caption, head, rows)
    yield "</details>"
