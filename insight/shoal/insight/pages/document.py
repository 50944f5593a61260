"""The frame of a page, its tables, and how it is stored. All texts are escaped here."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from shoal.core.errors import ShoalError


class PageNotWritten(ShoalError, OSError):
    """The page could not be stored."""


@dataclass(frozen=True)
class Markup:
    """What is HTML already: everything else is text and becomes escaped."""

    html: str


Cell = str | Markup

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --line: #d1d9e0; --paper: #fff;
  --panel: #f6f8fa; --busy: #1f6feb; --wait: #b35900; --bad: #c0272d; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9da7b3; --line: #3d444d;
  --paper: #0d1117; --panel: #161b22; --busy: #58a6ff; --wait: #f0a04b; --bad: #ff7b72;
  --good: #3fb950; } }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.dim, caption, figcaption, .dim { color: var(--dim); }
figure { margin: 1rem 0; overflow-x: auto; } figure svg { width: 100%; min-width: 32rem;
  height: auto; }
svg text { fill: var(--dim); font-size: 12px; }
.axis { stroke: var(--line); } .busy { fill: var(--busy); }
.wait { fill: none; stroke: var(--wait); stroke-width: 1.5; } .limit { stroke: var(--bad);
  stroke-dasharray: 4 4; }
div.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; padding: .3rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.bad { color: var(--bad); font-weight: 600; }
"""


def document(title: str, body: Iterable[str], style: str = "") -> str:
    """Return a page; ``body`` is HTML, ``style`` more of its style sheet."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head><body><main>",
            *body,
            "</main></body></html>",
            "",
        ]
    )


def write(text: str, path: Path) -> None:
    """Write a page to a file. Raises PageNotWritten."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PageNotWritten(f"{path}: cannot be written: {error}") from error


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Yield a table; the first cell of a row names it."""
    yield f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>'
    yield "".join(f'<th scope="col">{escape(name)}</th>' for name in head) + "</tr></thead><tbody>"
    for first, *others in rows:
        cells = "".join(f"<td>{html(cell)}</td>" for cell in others)
        yield f'<tr><th scope="row">{html(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def html(cell: Cell) -> str:
    """Return the HTML of a text, or of what is HTML."""
    return cell.html if isinstance(cell, Markup) else escape(cell)


@dataclass(frozen=True)
class Section:
    """A section; ``body`` is HTML."""

    key: str
    heading: str
    lead: str
    body: Sequence[str]


def folded(
    summary: str, caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> Iterator[str]:
    """Yield a table that opens when it is asked for."""
    yield f"<details><summary>{escape(summary)}</summary>"
    yield from table(caption, head, rows)
    yield "</details>"
